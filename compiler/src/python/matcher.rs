//! `Matcher`: the path of states of one sequence; `fill_bitmasks` for many of them.

use std::sync::Arc;

use parking_lot::Mutex;
use pyo3::exceptions::{PyOverflowError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};

use super::detached::detached;
use super::errors::{OrRaise, raise};
use super::memory::Rows;
use super::shared::Shared;
use crate::automaton::{self, Anchor, ENDED, Job, StateId};
use crate::error::Error;
use crate::mask::Row;
use crate::vocabulary::{clear_bit, get_bit, set_bit};

/// Bytes that one call for forced text returns at most.
const FORCED_LIMIT: usize = 1 << 16;

/// A token as callers name it: any whole number. One that no vocabulary has is none that is allowed.
#[derive(Clone, Copy)]
pub(super) struct Token(pub(super) u32);

impl<'py> FromPyObject<'_, 'py> for Token {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Token> {
        match object.extract::<u32>() {
            Ok(token) => Ok(Token(token)),
            Err(error) if error.is_instance_of::<PyOverflowError>(object.py()) => Ok(Token(u32::MAX)),
            Err(error) => Err(error),
        }
    }
}

#[pyclass(frozen, module = "grammarspec._compiler")]
pub(super) struct Matcher {
    /// The `Constraint` of Python that made the matcher.
    handle: Py<PyAny>,
    constraint: Arc<Shared>,
    /// Tokens that end the text beside those of the vocabulary, whatever they are elsewhere.
    ends: Arc<[u32]>,
    /// The state after each accepted token, the start first.
    path: Mutex<Vec<Arc<Anchor>>>,
}

impl Matcher {
    /// A matcher at the start of a constraint; `handle` is its object in Python. Raises `ValueError` if the vocabulary
    /// has no such tokens as `ends`.
    pub(super) fn new(handle: Py<PyAny>, constraint: Arc<Shared>, ends: Vec<Token>) -> PyResult<Matcher> {
        let path = vec![constraint.start()];
        let size = constraint.vocab.size;
        if let Some(wrong) = ends.iter().find(|token| token.0 as usize >= size) {
            let shown = if wrong.0 == u32::MAX { "a number".into() } else { wrong.0.to_string() };
            return Err(PyValueError::new_err(format!("end_token_ids has {shown} that is none of {size} tokens")));
        }
        let ends = ends.iter().map(|token| token.0).filter(|&token| !constraint.vocab.is_eos(token)).collect();
        Ok(Matcher { handle, constraint, ends, path: Mutex::new(path) })
    }

    fn last(&self) -> StateId {
        self.path.lock().last().expect("the start is never dropped").id
    }

    /// The token as the vocabulary has it: for one that ends this text, one that ends all texts.
    fn known(&self, token: Token) -> u32 {
        if self.ends.contains(&token.0) { self.constraint.vocab.eos[0] } else { token.0 }
    }

    fn all_known(&self, tokens: &[Token]) -> Vec<u32> {
        tokens.iter().map(|&token| self.known(token)).collect()
    }

    /// Goes on from a state that a call began with. Raises `RuntimeError` if another thread has moved the matcher since.
    fn advance(&self, from: StateId, to: impl IntoIterator<Item = Arc<Anchor>>) -> PyResult<()> {
        let mut path = self.path.lock();
        if path.last().expect("the start is never dropped").id != from {
            return Err(PyRuntimeError::new_err("a matcher is the path of one sequence; two threads moved it at once"));
        }
        path.extend(to);
        Ok(())
    }

    /// Writes masks into rows that were checked. Raises `Unsatisfiable` if the tokens that end this text were the only
    /// ones that could have gone on with it.
    fn write(&self, py: Python<'_>, rows: &Rows, first: usize, masks: &[Arc<Row>]) -> PyResult<()> {
        let end = self.constraint.vocab.eos[0];
        for (i, mask) in masks.iter().enumerate() {
            let stuck = rows.with(py, first + i, |out| {
                mask.write(out);
                end_with(out, end, &self.ends)
            });
            if stuck {
                let message = "the tokens that end this text are the only ones that could go on with it";
                return Err(raise(py, Error::Unsatisfiable(message.into())));
            }
        }
        Ok(())
    }
}

/// Allows tokens where `end` is allowed, and only there. Returns whether nothing is left for it.
fn end_with(row: &mut [u32], end: u32, ends: &[u32]) -> bool {
    if get_bit(row, end) {
        ends.iter().for_each(|&token| set_bit(row, token));
        return false;
    }
    let mut lost = false;
    for &token in ends {
        lost |= get_bit(row, token);
        clear_bit(row, token);
    }
    lost && row.iter().all(|&word| word == 0)
}

#[pymethods]
impl Matcher {
    #[pyo3(signature = (rows, row = 0))]
    fn fill_bitmask(&self, py: Python<'_>, rows: &Bound<'_, PyAny>, row: usize) -> PyResult<()> {
        let mask = self.constraint.row(py, self.last())?;
        let rows = Rows::of(rows)?;
        rows.check(row, self.constraint.vocab.words())?;
        self.write(py, &rows, row, &[mask])
    }

    #[pyo3(signature = (tokens, rows, row = 0))]
    fn fill_draft_bitmasks(
        &self,
        py: Python<'_>,
        tokens: Vec<Token>,
        rows: &Bound<'_, PyAny>,
        row: usize,
    ) -> PyResult<usize> {
        let (state, tokens) = (self.last(), self.all_known(&tokens));
        let (masks, accepted) = self.constraint.run(py, |engine| engine.draft_rows(state, &tokens))?;
        let rows = Rows::of(rows)?;
        rows.check(row.saturating_add(tokens.len()), self.constraint.vocab.words())?;
        self.write(py, &rows, row, &masks)?;
        Ok(accepted)
    }

    fn accept_token(&self, py: Python<'_>, token: Token) -> PyResult<bool> {
        let (state, token) = (self.last(), self.known(token));
        match self.constraint.run(py, |engine| engine.step(state, token))? {
            Some(next) => self.advance(state, [next]).map(|()| true),
            None => Ok(false),
        }
    }

    fn accept_tokens(&self, py: Python<'_>, tokens: Vec<Token>) -> PyResult<usize> {
        let (state, tokens) = (self.last(), self.all_known(&tokens));
        let path = self.constraint.run(py, |engine| engine.steps(state, &tokens))?;
        let accepted = path.len();
        self.advance(state, path).map(|()| accepted)
    }

    fn validate_tokens(&self, py: Python<'_>, tokens: Vec<Token>) -> PyResult<usize> {
        let (state, tokens) = (self.last(), self.all_known(&tokens));
        self.constraint.run(py, |engine| engine.validate(state, &tokens))
    }

    fn accepting_prefixes(&self, py: Python<'_>, tokens: Vec<Token>) -> PyResult<Vec<usize>> {
        let (state, tokens) = (self.last(), self.all_known(&tokens));
        self.constraint.run(py, |engine| engine.accepting_prefixes(state, &tokens))
    }

    fn rollback(&self, n: usize) -> PyResult<()> {
        let mut path = self.path.lock();
        if n >= path.len() {
            return Err(PyValueError::new_err(format!(
                "rollback of {n} tokens; only {} were accepted",
                path.len() - 1
            )));
        }
        let keep = path.len() - n;
        path.truncate(keep);
        Ok(())
    }

    fn fork(&self, py: Python<'_>) -> Matcher {
        Matcher {
            handle: self.handle.clone_ref(py),
            constraint: self.constraint.clone(),
            ends: self.ends.clone(),
            path: Mutex::new(self.path.lock().clone()),
        }
    }

    fn reset(&self) {
        self.path.lock().truncate(1);
    }

    #[getter]
    fn is_accepting(&self, py: Python<'_>) -> PyResult<bool> {
        let state = self.last();
        self.constraint.run(py, |engine| engine.is_accepting(state))
    }

    #[getter]
    fn is_terminated(&self) -> bool {
        self.last() == ENDED
    }

    #[pyo3(signature = (after = b"".as_slice()), text_signature = "($self, after=b'')")]
    fn forced_bytes<'py>(&self, py: Python<'py>, after: &[u8]) -> PyResult<Bound<'py, PyBytes>> {
        let state = self.last();
        let text = self.constraint.run(py, |engine| engine.forced_bytes(state, after, FORCED_LIMIT))?;
        Ok(PyBytes::new(py, &text))
    }

    fn forced_tokens(&self, py: Python<'_>) -> PyResult<Vec<u32>> {
        let state = self.last();
        self.constraint.run(py, |engine| engine.forced_tokens(state, FORCED_LIMIT))
    }

    #[pyo3(signature = (after = b"".as_slice()), text_signature = "($self, after=b'')")]
    fn next_bytes<'py>(&self, py: Python<'py>, after: &[u8]) -> PyResult<(Bound<'py, PyBytes>, bool)> {
        let state = self.last();
        let (bytes, ends) = self.constraint.run(py, |engine| engine.next_bytes(state, after))?;
        Ok((PyBytes::new(py, &bytes), ends))
    }

    #[getter]
    fn state(&self) -> StateId {
        self.last()
    }

    #[getter]
    fn constraint(&self, py: Python<'_>) -> Py<PyAny> {
        self.handle.clone_ref(py)
    }
}

/// What `fill_bitmasks` takes of a matcher: its constraint, its state, the tokens of its draft.
type Held<'py> = (PyRef<'py, Matcher>, Arc<Shared>, Arc<Anchor>, Vec<u32>);

fn held<'py>(matchers: &Bound<'py, PyList>, drafts: Option<Vec<Vec<Token>>>) -> PyResult<Vec<Held<'py>>> {
    let mut drafts = drafts.map(Vec::into_iter);
    let mut all = Vec::with_capacity(matchers.len());
    for matcher in matchers {
        let matcher = matcher.cast_into::<Matcher>()?.borrow();
        let draft = drafts.as_mut().and_then(Iterator::next).unwrap_or_default();
        let last = matcher.path.lock().last().expect("the start is never dropped").clone();
        let (constraint, tokens) = (matcher.constraint.clone(), matcher.all_known(&draft));
        all.push((matcher, constraint, last, tokens));
    }
    Ok(all)
}

/// The rows of each matcher, without the GIL.
fn rows_of(py: Python<'_>, all: &[Held<'_>], threads: usize) -> Vec<Result<automaton::Rows, Error>> {
    let parts: Vec<_> = all.iter().map(|(_, constraint, last, draft)| (constraint, last.id, draft)).collect();
    detached(py, || {
        let jobs: Vec<Job> =
            parts.iter().map(|(constraint, state, draft)| Job { constraint, state: *state, draft }).collect();
        automaton::rows(&jobs, threads)
    })
}

/// Row `i` gets the mask of matcher `i`. `threads`: 0 for as many as there are cores.
#[pyfunction]
#[pyo3(signature = (matchers, rows, threads = 0))]
pub(super) fn fill_bitmasks(
    py: Python<'_>,
    matchers: &Bound<'_, PyList>,
    rows: &Bound<'_, PyAny>,
    threads: usize,
) -> PyResult<()> {
    let all = held(matchers, None)?;
    let masks: Result<Vec<_>, Error> = rows_of(py, &all, threads).into_iter().collect();
    let masks = masks.or_raise(py)?;
    let rows = Rows::of(rows)?;
    let needed = all.iter().map(|(_, constraint, ..)| constraint.vocab.words()).max();
    if let (Some(needed), Some(last)) = (needed, all.len().checked_sub(1)) {
        rows.check(last, needed)?;
    }
    for (i, ((matcher, ..), (masks, _))) in all.iter().zip(&masks).enumerate() {
        matcher.write(py, &rows, i, masks)?;
    }
    Ok(())
}

/// As `fill_bitmasks`, but matcher `i` has the rows from `firsts[i]` on, one more than `drafts[i]` has tokens, and what
/// fails is its own: its rows then allow every token. Returns, for each, how many tokens of its draft are allowed, or
/// the error.
#[pyfunction]
pub(super) fn fill_each<'py>(
    py: Python<'py>,
    matchers: &Bound<'py, PyList>,
    rows: &Bound<'py, PyAny>,
    firsts: Vec<usize>,
    drafts: Vec<Vec<Token>>,
    threads: usize,
) -> PyResult<Vec<Bound<'py, PyAny>>> {
    if firsts.len() != matchers.len() || drafts.len() != matchers.len() {
        return Err(PyValueError::new_err(format!(
            "{} matchers need as many first rows and drafts, not {} and {}",
            matchers.len(),
            firsts.len(),
            drafts.len()
        )));
    }
    let all = held(matchers, Some(drafts))?;
    let found = rows_of(py, &all, threads);
    let rows = Rows::of(rows)?;
    for ((_, constraint, _, draft), first) in all.iter().zip(&firsts) {
        rows.check(first.saturating_add(draft.len()), constraint.vocab.words())?;
    }
    let mut spans: Vec<_> =
        all.iter().zip(&firsts).map(|((.., draft), &first)| first..first + draft.len() + 1).collect();
    spans.sort_unstable_by_key(|span| span.start);
    if let Some(pair) = spans.windows(2).find(|pair| pair[1].start < pair[0].end) {
        return Err(PyValueError::new_err(format!("row {} is to hold the masks of two sequences", pair[1].start)));
    }
    let mut told = Vec::with_capacity(all.len());
    for (((matcher, constraint, _, draft), first), found) in all.iter().zip(firsts).zip(found) {
        let written = found.or_raise(py).and_then(|(masks, allowed)| {
            matcher.write(py, &rows, first, &masks)?;
            Ok(allowed)
        });
        told.push(match written {
            Ok(allowed) => allowed.into_pyobject(py)?.into_any(),
            Err(error) => {
                (first..=first + draft.len())
                    .for_each(|row| rows.with(py, row, |out| allow_all(out, constraint.vocab.size)));
                error.into_value(py).into_bound(py).into_any()
            }
        });
    }
    Ok(told)
}

/// Sets the bits of all tokens, and no others.
fn allow_all(row: &mut [u32], size: usize) {
    row.fill(0);
    row[..size / 32].fill(u32::MAX);
    if !size.is_multiple_of(32) {
        row[size / 32] = (1 << (size % 32)) - 1;
    }
}
