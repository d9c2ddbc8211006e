//! Unions of sets of tokens, which are given as lists or as mask rows.

use rustc_hash::FxHashSet;

use super::texts::Place;
use crate::mask::row::Draft;
use crate::regular::Id;
use crate::stack::Stack;
use crate::vocabulary::{clear_bit, set_bit};

/// The steps that a union has: texts, residual and continuation.
pub(super) type Followed = FxHashSet<(Place, Id, Stack)>;

/// A union under construction.
#[derive(Default)]
pub(super) struct Union {
    /// The tokens as a mask row; empty until a mask row is added.
    bits: Vec<u32>,
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
        self.bits.is_empty() && self.unsure.is_empty()
    }

    /// Notes a step. Returns whether the union does not have it yet.
    pub(super) fn has_not(&mut self, step: (Place, Id, Stack)) -> bool {
        self.only_settled || self.followed.insert(step)
    }

    /// Whether it is of no use.
    pub(super) fn gives_up(&self) -> bool {
        self.only_settled && !self.is_settled()
    }

    pub(super) fn add(&mut self, draft: &Draft) {
        if let Some(base) = &draft.base {
            if self.bits.is_empty() {
                self.bits = base.to_vec();
            } else {
                self.bits.iter_mut().zip(base.iter()).for_each(|(ours, theirs)| *ours |= theirs);
            }
        }
        self.set.extend_from_slice(&draft.set);
    }

    /// Adds tokens to `unsure`.
    pub(super) fn add_unsure(&mut self, draft: &Draft) {
        for (word, bits) in draft.base.iter().flat_map(|base| base.iter().enumerate()) {
            let mut left = *bits;
            while left != 0 {
                self.unsure.push(word as u32 * 32 + left.trailing_zeros());
                left &= left - 1;
            }
        }
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
        if !other.bits.is_empty() {
            except.iter().for_each(|&token| clear_bit(&mut other.bits, token));
            if self.bits.is_empty() {
                self.bits = other.bits;
            } else {
                self.bits.iter_mut().zip(other.bits).for_each(|(ours, theirs)| *ours |= theirs);
            }
        }
        self.set.extend(other.set.into_iter().filter(stays));
        self.unsure.extend(other.unsure.into_iter().filter(stays));
    }

    pub(super) fn draft(mut self) -> Draft {
        if self.bits.is_empty() {
            return Draft { set: self.set, unsure: self.unsure, ..Draft::default() };
        }
        self.set.iter().for_each(|&token| set_bit(&mut self.bits, token));
        Draft { base: Some(self.bits.into()), unsure: self.unsure, ..Draft::default() }
    }
}
