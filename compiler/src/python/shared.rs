//! What the Python objects of one constraint share.

use std::ops::Deref;
use std::sync::Arc;

use pyo3::prelude::*;

use super::detached::detached;
use super::errors::OrRaise;
use super::memory;
use crate::automaton::{self, Engine, Lease, StateId};
use crate::error::{Error, Result};
use crate::mask::Row;

/// A hold of a constraint. Memory that ends with it goes back to the system.
pub(super) struct Shared {
    constraint: Lease,
    /// Dropped after the constraint.
    freed: Freed,
}

impl Deref for Shared {
    type Target = automaton::Constraint;

    fn deref(&self) -> &automaton::Constraint {
        &self.constraint
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.freed.0 = self.constraint.end();
    }
}

/// Counts the bytes that were freed before it is dropped.
struct Freed(usize);

impl Drop for Freed {
    fn drop(&mut self) {
        memory::count_freed(self.0);
    }
}

impl Shared {
    pub(super) fn new(constraint: Lease) -> Arc<Shared> {
        Arc::new(Shared { constraint, freed: Freed(0) })
    }

    /// Makes a call: at once if it takes few steps, else without the GIL, so that no other thread waits for it.
    pub(super) fn run<R: Send>(&self, py: Python<'_>, call: impl Fn(&mut Engine) -> Result<R> + Sync) -> PyResult<R> {
        let answer = self.constraint.briefly(&call).unwrap_or_else(|| self.at_length(py, &call));
        answer.or_raise(py)
    }

    /// The mask row of a state; without the GIL where it has to be computed.
    pub(super) fn row(&self, py: Python<'_>, state: StateId) -> PyResult<Arc<Row>> {
        match self.constraint.cached_row(state) {
            Some(row) => Ok(row),
            None => self.at_length(py, |engine| engine.row(state)).or_raise(py),
        }
    }

    /// Makes a call without the GIL. One that hits a limit, or is cancelled, gives back the memory that it took.
    pub(super) fn at_length<R: Send>(
        &self,
        py: Python<'_>,
        call: impl FnOnce(&mut Engine) -> Result<R> + Send,
    ) -> Result<R> {
        detached(py, || {
            let mut engine = self.constraint.lock();
            let answer = engine.guarded(call);
            if answer.as_ref().is_err_and(Error::ends_work) {
                let taken = engine.memory();
                engine.collect();
                memory::count_freed(taken.saturating_sub(engine.memory()));
            }
            answer
        })
    }
}
