//! What every strategy works with, and what it answers.

use super::cache::{ConstraintCache, VocabularyCache};
use super::row::Draft;
use crate::budget::Budget;
use crate::error::Result;
use crate::stack::Machine;
use crate::vocabulary::Vocabulary;

/// Residuals from which fewer bytes lead on allow few tokens: a plain walk finds them.
pub(super) const BROAD: u32 = 20;

/// Sorting out the ends of more tokens than this costs more than a walk.
pub(super) const MANY: usize = 16_384;

/// If whether they are allowed depends on more of a truncated stack for more tokens than this, they are not kept to be
/// tried one by one.
pub(super) const MOST_UNSURE: usize = 2048;

/// Makes masks of kernels. The strategies are its methods, each in a file of its own.
pub(super) struct MaskMaker<'a> {
    pub(super) machine: &'a mut Machine,
    pub(super) vocab: &'a Vocabulary,
    pub(super) shared: &'a VocabularyCache,
    pub(super) local: &'a mut ConstraintCache,
    pub(super) budget: &'a mut Budget,
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
