//! Interned states: kernels of the pushdown automaton, with their histories, under ids that are never used twice.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::distinct::{Held, History};
use crate::error::{Error, Result};
use crate::mask::Row;
use crate::stack::{ByteState, Heads};

pub type StateId = u32;

/// The state after EOS: nothing follows.
pub const ENDED: StateId = 0;

/// What keeps a state from being collected: it stays while a clone of its anchor is held.
#[derive(Debug)]
pub struct Anchor {
    pub id: StateId,
}

pub(super) struct State {
    pub(super) kernel: Heads,
    /// What the text has written in open arrays and objects whose items or names must be distinct.
    pub(super) history: Option<Arc<History>>,
    pub(super) anchor: Arc<Anchor>,
    pub(super) row: Option<Arc<Row>>,
    pub(super) accepting: Option<bool>,
    /// The byte state of the kernel, and the epoch of the machine's table for which the number holds.
    pub(super) byte_state: Option<(u32, ByteState)>,
}

#[derive(Default)]
pub(super) struct States {
    list: FxHashMap<StateId, State>,
    ids: FxHashMap<(Heads, Option<Arc<History>>), StateId>,
    next: StateId,
    /// The memory of the histories.
    held: Held,
}

impl States {
    pub(super) fn new() -> States {
        let mut states = States::default();
        let ended = states.intern(Heads::new(), None);
        debug_assert_eq!(ended.map(|anchor| anchor.id), Ok(ENDED));
        states
    }

    pub(super) fn len(&self) -> usize {
        self.list.len()
    }

    /// Whether half of the ids that there are have not been used.
    pub(super) fn has_ids(&self) -> bool {
        self.next <= StateId::MAX / 2
    }

    pub(super) fn memory(&self) -> usize {
        self.list.len() * 160 + self.held.bytes()
    }

    /// The anchor of the state with this kernel and history. Fails once all ids have been used.
    pub(super) fn intern(&mut self, kernel: Heads, history: Option<Arc<History>>) -> Result<Arc<Anchor>> {
        let key = (kernel, history);
        if let Some(id) = self.ids.get(&key) {
            return Ok(self.list[id].anchor.clone());
        }
        let id = self.next;
        let all_used = Error::Limit { which: "states made in all", limit: StateId::MAX.into() };
        self.next = id.checked_add(1).ok_or(all_used)?;
        let anchor = Arc::new(Anchor { id });
        self.ids.insert(key.clone(), id);
        let (kernel, history) = key;
        history.iter().for_each(|history| history.count(&mut self.held));
        self.list.insert(
            id,
            State { kernel, history, anchor: anchor.clone(), row: None, accepting: None, byte_state: None },
        );
        Ok(anchor)
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

    /// Drops the states that are not anchored elsewhere, and all rows. Returns how many states.
    pub(super) fn drop_unanchored(&mut self) -> usize {
        let before = self.list.len();
        self.list.retain(|&id, s| id == ENDED || Arc::strong_count(&s.anchor) > 1);
        self.list.values_mut().for_each(|s| s.row = None);
        self.held = Held::default();
        self.list.values().flat_map(|s| &s.history).for_each(|history| history.count(&mut self.held));
        before - self.list.len()
    }

    /// The kernels, to be rewritten in place. [`States::reindex`] must follow.
    pub(super) fn kernels(&mut self) -> impl Iterator<Item = &mut Heads> {
        self.list.values_mut().map(|s| &mut s.kernel)
    }

    /// Finds states by their kernels as these are now.
    pub(super) fn reindex(&mut self) {
        self.ids = self.list.iter().map(|(&id, s)| ((s.kernel.clone(), s.history.clone()), id)).collect();
    }
}
