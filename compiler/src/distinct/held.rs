//! Counts the memory of structure that histories share.

use std::sync::Arc;

use rustc_hash::FxHashSet;

/// The parts of some histories, and the bytes that these hold, each part counted once.
#[derive(Default)]
pub struct Held {
    /// The addresses of the parts. The histories must be alive as long as this is used: addresses are used again.
    parts: FxHashSet<usize>,
    bytes: usize,
}

/// What a part costs beside its own bytes: its reference counts, its allocation and its place in the set.
const OVERHEAD: usize = 48;

impl Held {
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Adds memory that is not shared.
    pub(super) fn add_own(&mut self, bytes: usize) {
        self.bytes += bytes;
    }

    /// Adds a part of so many bytes. Returns whether it was not there before.
    pub(super) fn add<T: ?Sized>(&mut self, part: &Arc<T>, bytes: usize) -> bool {
        let new = self.parts.insert(Arc::as_ptr(part).cast::<()>() as usize);
        if new {
            self.bytes += bytes + OVERHEAD;
        }
        new
    }
}
