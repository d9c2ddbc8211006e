//! Masks: which tokens a configuration allows.
//!
//! The mask of a head is what its residual allows inside the current terminal (`inside`, cached per vocabulary
//! and shared by all grammars) and the tokens that cross the terminal's end, which are walked over what follows.

mod build;
mod inside;
mod looping;
mod row;

pub use build::{MaskMaker, Outcome};
pub use inside::{Inside, InsideCache};
pub use row::Row;
