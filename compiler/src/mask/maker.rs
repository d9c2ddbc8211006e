//! What every strategy works with, and what it answers.

use super::cache::{ConstraintCache, VocabularyCache};
use super::row::Draft;
use crate::budget::Budget;
use crate::error::Result;
use crate::stack::{ByteState, CUT_OFF, Machine};
use crate::vocabulary::Vocabulary;

/// Residuals from which fewer bytes lead on allow few tokens: a plain walk finds them.
pub(super) const BROAD: u32 = 20;

/// Sorting out the ends of more tokens than this costs more than a walk.
pub(super) const MANY: usize = 16_384;

/// If whether they are allowed depends on more of a truncated stack for more tokens than this, they are not kept to be
/// tried one by one.
const MOST_UNSURE: usize = 2048;

/// Makes masks of kernels. The strategies are its methods, each in a file of its own.
pub(super) struct MaskMaker<'a> {
    pub(super) machine: &'a mut Machine,
    pub(super) vocab: &'a Vocabulary,
    pub(super) shared: &'a VocabularyCache,
    pub(super) local: &'a mut ConstraintCache,
    pub(super) budget: &'a mut Budget,
}

impl MaskMaker<'_> {
    /// Whether so many tokens are left open by a truncated stack that the mask is better made from more of it.
    pub(super) fn leaves_much_open(&self, tokens: usize) -> bool {
        tokens > MOST_UNSURE
    }

    /// Whether to give up where a truncated stack leaves open what follows. Without a lexer, walks end soon: the next one,
    /// on more of the stack, costs less than to try tokens one by one.
    #[inline]
    pub(super) fn gives_up(&self, state: ByteState) -> bool {
        state == CUT_OFF && !self.machine.has_lexemes
    }
}

/// `None`: the answer depends on more of a truncated stack.
pub(super) type Answer<T> = Result<Option<T>>;

/// What a strategy gives for a head.
pub(super) enum Attempt {
    /// The mask.
    Made(Draft),
    /// The mask depends on more of a truncated stack.
    Deeper,
    /// The head is not of the kind that the strategy is for.
    Declined,
}

impl From<Option<Draft>> for Attempt {
    fn from(answer: Option<Draft>) -> Attempt {
        answer.map_or(Attempt::Deeper, Attempt::Made)
    }
}
