//! Regular languages over bytes: hash-consed expressions, their derivatives, and the lazy DFA these make.
//!
//! A residual (what may still follow) is an expression, so a DFA state is an expression's id. Equal languages
//! usually, but not always, meet in one id; nothing relies on different ids meaning different languages.

mod arena;
mod boolean;
mod derive;
mod dfa;
mod import;
mod looks;
mod lower;
mod saturate;
mod slack;
mod tags;
mod union;

pub use arena::{Arena, EMPTY, EPS, Form, Id, TOP};
pub use lower::Lowered;
pub use saturate::{Counts, SMALL, Saturated, saturated_bounds};
