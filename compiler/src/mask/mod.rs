//! Masks: which tokens a configuration allows.
//!
//! Most heads allow few tokens and are walked over the vocabulary's trie. Those that loop on most characters (string
//! interiors) are a shared row of plain tokens and a walk over the few different ends of the others ([`classes`]);
//! those that soon come to loop (any key but these) are such a mask, patched. `docs/design.md` has the whole list.

mod blanks;
mod build;
mod classes;
mod looping;
mod patch;
mod region;
mod row;
mod walk;

pub use build::MaskMaker;
pub use classes::ClassCache;
pub use row::{Draft, Row};
