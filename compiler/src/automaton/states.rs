//! Interned states: kernels of the automaton, with ids that are never used twice.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::error::{Error, Result};
use crate::mask::Row;
use crate::memory::Memory;
use crate::stack::{Heads, Spot};

pub type StateId = u32;

/// The state after EOS: nothing follows.
pub const ENDED: StateId = 0;

/// Roots a state: while a clone of its anchor is held, the state is not collected.
#[derive(Debug)]
pub struct Anchor {
    pub id: StateId,
}

pub(super) struct State {
    pub(super) kernel: Heads,
    /// What the text may not repeat.
    pub(super) memory: Option<Arc<Memory>>,
    pub(super) anchor: Arc<Anchor>,
    pub(super) row: Option<Arc<Row>>,
    pub(super) accepting: Option<bool>,
    /// Where the machine's table has the kernel, in that epoch of the table.
    pub(super) spot: Option<(u32, Spot)>,
}

#[derive(Default)]
pub(super) struct States {
    list: FxHashMap<StateId, State>,
    ids: FxHashMap<(Heads, Option<Arc<Memory>>), StateId>,
    next: StateId,
    /// Bytes of the memories.
    remembered: usize,
}

impl States {
    pub(super) fn new() -> States {
        let mut states = States::default();
        states.intern(Heads::new(), None); // ENDED
        states
    }

    pub(super) fn len(&self) -> usize {
        self.list.len()
    }

    pub(super) fn memory(&self) -> usize {
        self.list.len() * 160 + self.remembered
    }

    pub(super) fn intern(&mut self, kernel: Heads, memory: Option<Arc<Memory>>) -> Arc<Anchor> {
        let key = (kernel, memory);
        if let Some(id) = self.ids.get(&key) {
            return self.list[id].anchor.clone();
        }
        let id = self.next;
        self.next += 1;
        let anchor = Arc::new(Anchor { id });
        self.ids.insert(key.clone(), id);
        let (kernel, memory) = key;
        self.remembered += memory.as_ref().map_or(0, |memory| memory.size());
        self.list.insert(id, State { kernel, memory, anchor: anchor.clone(), row: None, accepting: None, spot: None });
        anchor
    }

    pub(super) fn get(&self, id: StateId) -> Result<&State> {
        self.list.get(&id).ok_or(Error::Collected(id))
    }

    pub(super) fn get_mut(&mut self, id: StateId) -> Result<&mut State> {
        self.list.get_mut(&id).ok_or(Error::Collected(id))
    }

    pub(super) fn anchor(&self, id: StateId) -> Result<Arc<Anchor>> {
        Ok(self.get(id)?.anchor.clone())
    }

    pub(super) fn cached_row(&self, id: StateId) -> Option<Arc<Row>> {
        self.list.get(&id)?.row.clone()
    }

    /// Drops the states that are not anchored elsewhere, and all rows. How many states.
    pub(super) fn drop_unanchored(&mut self) -> usize {
        let before = self.list.len();
        self.list.retain(|&id, s| id == ENDED || Arc::strong_count(&s.anchor) > 1);
        self.list.values_mut().for_each(|s| s.row = None);
        self.remembered = self.list.values().filter_map(|s| s.memory.as_ref()).map(|memory| memory.size()).sum();
        before - self.list.len()
    }

    /// The kernels, to be rewritten; [`States::reindex`] afterwards.
    pub(super) fn kernels(&mut self) -> impl Iterator<Item = &mut Heads> {
        self.list.values_mut().map(|s| &mut s.kernel)
    }

    pub(super) fn reindex(&mut self) {
        self.ids = self.list.iter().map(|(&id, s)| ((s.kernel.clone(), s.memory.clone()), id)).collect();
    }
}
