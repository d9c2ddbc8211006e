//! Heads that are like one whose mask is known: from both, most bytes lead to the same residual. The masks may differ
//! only in tokens that begin with one of the other bytes.
//!
//! The inside of a class in a regular expression is such a place: each character may be the first of a range, so that
//! each leads to a residual of its own, and these differ in nothing but what a hyphen leads to.

use crate::byteset::ByteSet;
use crate::error::Result;
use crate::mask::maker::{Attempt, MaskMaker};
use crate::mask::row::Draft;
use crate::regular::Id;
use crate::stack::Head;

/// Heads whose masks are kept to be compared with.
const KEPT: usize = 4;

impl MaskMaker<'_> {
    /// The strategy for heads that are like one whose mask was made before: that mask, patched.
    pub(super) fn by_kin(&mut self, head: Head) -> Result<Attempt> {
        for at in 0..self.local.kin.len() {
            let other = self.local.kin[at].0;
            if other.stack == head.stack && self.are_kin(head, other)? {
                let draft = self.local.kin[at].1.clone();
                return self.patched(head, other, draft);
            }
        }
        Ok(Attempt::Declined)
    }

    /// Keeps a mask that took a long walk, for heads that are like its own. Those kept longest make room.
    pub(super) fn keep_kin(&mut self, head: Head, draft: &Draft) {
        self.local.kin.truncate(KEPT - 1);
        self.local.kin.insert(0, (head, draft.clone()));
        self.local.kin_bits += self.vocab.words() * 4;
    }

    /// Whether at least three of four printable bytes lead to the same residual from both.
    fn are_kin(&mut self, head: Head, other: Head) -> Result<bool> {
        let arena = &mut self.machine.arena;
        let ours: Vec<(ByteSet, Id)> = arena.edges(head.rest, self.budget)?.collect();
        let theirs = arena.edges(other.rest, self.budget)?;
        let mut same = ByteSet::NONE;
        for (bytes, target) in ours {
            let found = theirs.clone().filter(|edge| edge.1 == target);
            same = found.fold(same, |same, edge| same.or(edge.0.and(bytes)));
        }
        let printable = ByteSet::range(0x20, 0x7E);
        Ok(same.and(printable).len() * 4 >= printable.len() * 3)
    }
}
