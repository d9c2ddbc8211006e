//! `Matcher`: the path of states of one sequence; `fill_bitmasks` for many of them.

use std::sync::Arc;

use parking_lot::Mutex;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};

use super::errors::OrRaise;
use super::memory::Rows;
use super::shared::Shared;
use crate::automaton::{self, Anchor, ENDED, StateId, spell};
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
    /// The array that was filled last, so that filling it again asks Python for nothing.
    target: Mutex<Option<(Py<PyAny>, Rows)>>,
}

impl Matcher {
    /// A matcher at the start of a constraint; `handle` is its object in Python.
    pub(super) fn new(handle: Py<PyAny>, constraint: Arc<Shared>) -> Matcher {
        let path = vec![constraint.start()];
        Matcher { handle, constraint, path: Mutex::new(path), target: Mutex::new(None) }
    }

    fn last(&self) -> StateId {
        self.path.lock().last().expect("the start is never dropped").id
    }

    /// Writes masks into rows from `first` on.
    fn write(&self, py: Python<'_>, rows: &Bound<'_, PyAny>, first: usize, masks: &[Arc<Row>]) -> PyResult<()> {
        let needed = self.constraint.vocab.words();
        let write = |out: &Rows| {
            out.check(first.saturating_add(masks.len() - 1), needed)?;
            out.write(py, first, masks)
        };
        let mut target = self.target.lock();
        if let Some((array, out)) = target.as_ref()
            && array.is(rows)
        {
            return write(out);
        }
        let new = Rows::of(rows)?;
        write(&new)?;
        if new.is_exported() {
            *target = Some((rows.clone().unbind(), new));
        }
        Ok(())
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
        let (masks, accepted) = self.constraint.run(py, |c| c.draft_rows(state, &tokens)).or_raise(py)?;
        self.write(py, rows, row, &masks)?;
        Ok(accepted)
    }

    fn accept_token(&self, py: Python<'_>, token: u32) -> PyResult<bool> {
        let state = self.last();
        let next = self.constraint.run(py, |c| c.step(state, token)).or_raise(py)?;
        Ok(match next {
            Some(anchor) => {
                self.path.lock().push(anchor);
                true
            }
            None => false,
        })
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
        self.constraint.run(py, |c| c.validate(state, &tokens)).or_raise(py)
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
            target: Mutex::new(None),
        }
    }

    fn reset(&self) {
        self.path.lock().truncate(1);
    }

    #[getter]
    fn is_accepting(&self, py: Python<'_>) -> PyResult<bool> {
        let state = self.last();
        self.constraint.run(py, |c| c.is_accepting(state)).or_raise(py)
    }

    #[getter]
    fn is_terminated(&self) -> bool {
        self.last() == ENDED
    }

    #[pyo3(signature = (after = b"".as_slice()), text_signature = "($self, after=b'')")]
    fn forced_bytes<'py>(&self, py: Python<'py>, after: &[u8]) -> PyResult<Bound<'py, PyBytes>> {
        let state = self.last();
        let text = self.constraint.run(py, |c| c.forced_bytes(state, after, FORCED_LIMIT)).or_raise(py)?;
        Ok(PyBytes::new(py, &text))
    }

    fn forced_tokens(&self, py: Python<'_>) -> PyResult<Vec<u32>> {
        let state = self.last();
        let text = self.constraint.run(py, |c| c.forced_bytes(state, &[], FORCED_LIMIT)).or_raise(py)?;
        Ok(spell(&self.constraint.vocab, &text, false))
    }

    #[pyo3(signature = (after = b"".as_slice()), text_signature = "($self, after=b'')")]
    fn next_bytes<'py>(&self, py: Python<'py>, after: &[u8]) -> PyResult<(Bound<'py, PyBytes>, bool)> {
        let state = self.last();
        let (bytes, ends) = self.constraint.run(py, |c| c.next_bytes(state, after)).or_raise(py)?;
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
    let rows = Rows::of(rows)?;
    let mut held: Vec<(Arc<Shared>, Arc<Anchor>)> = Vec::with_capacity(matchers.len());
    for (i, matcher) in matchers.iter().enumerate() {
        let matcher = matcher.downcast::<Matcher>()?.get();
        rows.check(i, matcher.constraint.vocab.words())?;
        let last = matcher.path.lock().last().expect("the start is never dropped").clone();
        held.push((matcher.constraint.clone(), last));
    }
    let masks = py.detach(|| {
        let jobs: Vec<(&automaton::Constraint, StateId)> = held.iter().map(|(c, state)| (&***c, state.id)).collect();
        automaton::rows(&jobs, threads)
    });
    rows.write(py, 0, &masks.or_raise(py)?)
}
