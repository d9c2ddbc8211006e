//! The caches of masks: what is known of a vocabulary, shared by all grammars on it, and of one constraint.

mod branches;
mod classes;
mod constraint;
mod interiors;
mod vocabulary;
mod whitespace;

pub(super) use branches::{Branch, Ends};
pub(super) use constraint::{ConstraintCache, Region};
pub(super) use interiors::{Interior, Rounds};
pub use vocabulary::VocabularyCache;
