//! What the Python objects of one constraint share.

use std::ops::Deref;
use std::sync::Arc;

use pyo3::prelude::*;

use super::errors::OrRaise;
use super::memory;
use crate::automaton::{self, StateId};
use crate::mask::Row;

/// A constraint whose memory goes back to the system when the last of its users drops it.
pub(super) struct Shared {
    constraint: automaton::Constraint,
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
        self.freed.0 = self.constraint.memory();
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
    pub(super) fn new(constraint: automaton::Constraint) -> Arc<Shared> {
        Arc::new(Shared { constraint, freed: Freed(0) })
    }

    /// Runs `f` at once where the lock is free, else without the GIL, so that a long computation of another
    /// thread holds up only those who wait for it.
    pub(super) fn run<R: Send>(&self, py: Python<'_>, f: impl FnOnce(&automaton::Constraint) -> R + Send) -> R {
        if self.constraint.is_free() { f(&self.constraint) } else { py.detach(|| f(&self.constraint)) }
    }

    /// The mask row of a state; without the GIL where it has to be computed.
    pub(super) fn row(&self, py: Python<'_>, state: StateId) -> PyResult<Arc<Row>> {
        match self.constraint.cached_row(state) {
            Some(row) => Ok(row),
            None => py.detach(|| self.constraint.row(state)).or_raise(py),
        }
    }
}
