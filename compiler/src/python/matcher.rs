//! `Matcher`: the path of states of one sequence; `fill_bitmasks` for many of them.

use std::sync::Arc;

use parking_lot::Mutex;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};

use super::detached::detached;
use super::errors::OrRaise;
use super::memory::Rows;
use super::shared::Shared;
use crate::automaton::{self, Anchor, ENDED, StateId};
use crate::mask::Row;

/// Bytes that one call for forced text returns at most.
const FORCED_LIMIT: usize = 1 << 16;

#[pyclass(frozen, module = "grammarspec._compiler")]
pub(super) struct Matcher {
    /// The `Constraint` of Python that made the matcher.
    handle: Py<PyAny>,
    constraint: Arc<Shared>,
    /// The state after each accepted token, the start first.
    path: Mutex<Vec<Arc<Anchor>>>,
}

impl Matcher {
    /// A matcher at the start of a constraint; `handle` is its object in Python.
    pub(super) fn new(handle: Py<PyAny>, constraint: Arc<Shared>) -> Matcher {
        let path = vec![constraint.start()];
        Matcher { handle, constraint, path: Mutex::new(path) }
    }

    fn last(&self) -> StateId {
        self.path.lock().last().expect("the start is never dropped").id
    }

    /// Goes on from a state that a call began with. Raises `RuntimeError` if another thread has moved the matcher since.
    fn advance(&self, from: StateId, to: Arc<Anchor>) -> PyResult<()> {
        let mut path = self.path.lock();
        if path.last().expect("the start is never dropped").id != from {
            return Err(PyRuntimeError::new_err("a matcher is the path of one sequence; two threads moved it at once"));
        }
        path.push(to);
        Ok(())
    }

    fn write(&self, py: Python<'_>, rows: &Bound<'_, PyAny>, first: usize, masks: &[Arc<Row>]) -> PyResult<()> {
        Rows::of(rows)?.write(py, first, masks, self.constraint.vocab.words())
    }
}

#[pymethods]
impl Matcher {
    #[pyo3(signature = (rows, row = 0))]
    fn fill_bitmask(&self, py: Python<'_>, rows: &Bound<'_, PyAny>, row: usize) -> PyResult<()> {
        let mask = self.constraint.row(py, self.last())?;
        self.write(py, rows, row, &[mask])
    }

    #[pyo3(signature = (tokens, rows, row = 0))]
    fn fill_draft_bitmasks(
        &self,
        py: Python<'_>,
        tokens: Vec<u32>,
        rows: &Bound<'_, PyAny>,
        row: usize,
    ) -> PyResult<usize> {
        let state = self.last();
        let (masks, accepted) = self.constraint.run(py, |engine| engine.draft_rows(state, &tokens))?;
        self.write(py, rows, row, &masks)?;
        Ok(accepted)
    }

    fn accept_token(&self, py: Python<'_>, token: u32) -> PyResult<bool> {
        let state = self.last();
        match self.constraint.run(py, |engine| engine.step(state, token))? {
            Some(next) => self.advance(state, next).map(|()| true),
            None => Ok(false),
        }
    }

    fn accept_tokens(&self, py: Python<'_>, tokens: Vec<u32>) -> PyResult<usize> {
        for (i, &t) in tokens.iter().enumerate() {
            if !self.accept_token(py, t)? {
                return Ok(i);
            }
        }
        Ok(tokens.len())
    }

    fn validate_tokens(&self, py: Python<'_>, tokens: Vec<u32>) -> PyResult<usize> {
        let state = self.last();
        self.constraint.run(py, |engine| engine.validate(state, &tokens))
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

/// Row `i` gets the mask of matcher `i`. `threads`: 0 for as many as there are cores.
#[pyfunction]
#[pyo3(signature = (matchers, rows, threads = 0))]
pub(super) fn fill_bitmasks(
    py: Python<'_>,
    matchers: &Bound<'_, PyList>,
    rows: &Bound<'_, PyAny>,
    threads: usize,
) -> PyResult<()> {
    let mut held: Vec<(Arc<Shared>, Arc<Anchor>)> = Vec::with_capacity(matchers.len());
    let mut needed = 0;
    for matcher in matchers {
        let matcher = matcher.cast::<Matcher>()?.get();
        needed = needed.max(matcher.constraint.vocab.words());
        let last = matcher.path.lock().last().expect("the start is never dropped").clone();
        held.push((matcher.constraint.clone(), last));
    }
    let masks = detached(py, || {
        let jobs: Vec<(&automaton::Constraint, StateId)> = held.iter().map(|(c, state)| (&***c, state.id)).collect();
        automaton::rows(&jobs, threads)
    });
    let masks = masks.or_raise(py)?;
    Rows::of(rows)?.write(py, 0, &masks, needed)
}
