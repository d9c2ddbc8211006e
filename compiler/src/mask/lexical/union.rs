//! Unions of sets of tokens, which are given as lists or as mask rows.

use std::sync::Arc;

use rustc_hash::FxHashSet;

use super::texts::Place;
use crate::mask::row::Draft;
use crate::regular::Id;
use crate::stack::Stack;
use crate::vocabulary::{clear_bit, ones, or_into};

/// The steps that a union has: texts, residual and continuation.
pub(super) type Followed = FxHashSet<(Place, Id, Stack)>;

/// A union under construction.
#[derive(Default)]
pub(super) struct Union {
    /// Tokens as a mask row. Mostly only one is added, which is not copied.
    row: Option<Arc<[u32]>>,
    pub(super) set: Vec<u32>,
    /// Tokens that may belong to the union: that depends on the part of the stack that was cut off.
    pub(super) unsure: Vec<u32>,
    /// Whether it is of no use unless it is settled.
    only_settled: bool,
    /// The steps that it has already, unless it is of no use unless it is settled: parts of steps are kept then.
    pub(super) followed: Followed,
}

impl Union {
    /// One that is of no use unless it is settled.
    pub(super) fn settled() -> Union {
        Union { only_settled: true, ..Union::default() }
    }

    /// An empty one of the same use.
    pub(super) fn beside(&self) -> Union {
        Union { only_settled: self.only_settled, ..Union::default() }
    }

    /// Whether it is a list of tokens all of which belong to it.
    pub(super) fn is_settled(&self) -> bool {
        self.row.is_none() && self.unsure.is_empty()
    }

    /// Notes a step. Returns whether the union does not have it yet.
    pub(super) fn has_not(&mut self, step: (Place, Id, Stack)) -> bool {
        self.only_settled || self.followed.insert(step)
    }

    pub(super) fn is_of_use_only_settled(&self) -> bool {
        self.only_settled
    }

    /// Whether it is of no use.
    pub(super) fn gives_up(&self) -> bool {
        self.only_settled && !self.is_settled()
    }

    pub(super) fn add(&mut self, draft: &Draft) {
        if let Some(base) = &draft.base {
            self.add_row(base);
        }
        self.set.extend_from_slice(&draft.set);
    }

    fn add_row(&mut self, row: &Arc<[u32]>) {
        match &mut self.row {
            None => self.row = Some(row.clone()),
            Some(ours) if Arc::ptr_eq(ours, row) => {}
            Some(ours) => or_into(Arc::make_mut(ours), row),
        }
    }

    /// Adds tokens to `unsure`.
    pub(super) fn add_unsure(&mut self, draft: &Draft) {
        self.unsure.extend(ones(draft.base.as_deref().unwrap_or_default()));
        self.unsure.extend_from_slice(&draft.set);
    }

    /// Adds the tokens of a walk, without some.
    pub(super) fn add_less(&mut self, draft: Draft, except: &[u32]) {
        let mut apart = Union::default();
        apart.add(&draft);
        apart.unsure = draft.unsure;
        self.add_without(apart, except);
    }

    /// Adds another union, without some tokens, which are in order.
    pub(super) fn add_without(&mut self, mut other: Union, except: &[u32]) {
        let stays = |token: &u32| except.binary_search(token).is_err();
        if let Some(row) = &mut other.row {
            if !except.is_empty() {
                let bits = Arc::make_mut(row);
                except.iter().for_each(|&token| clear_bit(bits, token));
            }
            self.add_row(row);
        }
        self.set.extend(other.set.into_iter().filter(stays));
        self.unsure.extend(other.unsure.into_iter().filter(stays));
    }

    pub(super) fn draft(self) -> Draft {
        Draft { base: self.row, set: self.set, unsure: self.unsure, ..Draft::default() }
    }
}
