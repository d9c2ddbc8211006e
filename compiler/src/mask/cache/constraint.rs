//! What was found out about the residuals and byte states of one constraint while its masks were made.

use rustc_hash::FxHashMap;

use crate::byteset::ByteSet;
use crate::mask::lexical::Steps;
use crate::mask::row::Draft;
use crate::regular::Id;
use crate::stack::{ByteState, Head};

/// A set of residuals between which the characters of plain bytes lead, in any order, all of them alive.
#[derive(Clone, Copy, Debug)]
pub(in crate::mask) struct Region {
    pub(in crate::mask) plain: ByteSet,
    /// Other bytes that lead from some of the residuals to something alive.
    pub(in crate::mask) changing: ByteSet,
}

/// Found once per residual or state: `None` as a value says that there is no such thing.
#[derive(Default)]
pub(in crate::mask) struct ConstraintCache {
    /// The bytes of the characters on which a residual loops.
    pub(in crate::mask) self_loops: FxHashMap<Id, Option<ByteSet>>,
    /// The region that a residual belongs to.
    pub(in crate::mask) regions: FxHashMap<Id, Option<Region>>,
    /// The bytes of the characters that lead from a branch to residuals that it is a branch of.
    pub(in crate::mask) returning: FxHashMap<Id, Option<ByteSet>>,
    /// The masks of single heads that those of others are patches of.
    pub(in crate::mask) bases: FxHashMap<Head, Draft>,
    /// Heads whose masks took long walks, the last first.
    pub(in crate::mask) kin: Vec<(Head, Draft)>,
    /// Bytes of the bits of these and of those before them, which rows may still share.
    pub(in crate::mask) kin_bits: usize,
    /// The bytes on which a byte state loops, and the others that lead on from it.
    pub(in crate::mask) state_loops: FxHashMap<ByteState, Option<(ByteSet, ByteSet)>>,
    /// What is known of lexemes.
    pub(in crate::mask) steps: Steps,
    epoch: u32,
}

impl ConstraintCache {
    /// Forgets what is known of byte states if the table has been emptied since.
    pub(in crate::mask) fn enter_epoch(&mut self, epoch: u32) {
        if self.epoch != epoch {
            self.epoch = epoch;
            self.state_loops.clear();
        }
    }

    /// Bytes held, roughly.
    pub(in crate::mask) fn memory(&self) -> usize {
        self.bases.len() * 2048
            + self.kin_bits
            + (self.self_loops.len() + self.returning.len() + self.regions.len()) * 40
            + self.steps.memory()
    }
}
