//! The context-free level: positions in rules, continuations (sets of stacks), and configurations.
//!
//! A configuration is a set of heads (residual of the current terminal, continuation). Only kernels, what is
//! left right after a byte, are interned; what they predict is derived. See `docs/design.md`.

mod components;
mod continuation;
mod grammar;
mod instances;
mod position;
mod predict;
mod proofs;
mod shortest;
mod step;
mod table;
mod threads;

pub use components::{Components, components};
pub use continuation::{ANY, Continuations, Frame, NO_CALLEE, Stack};
pub use grammar::Analysis;
pub use position::{PosId, Positions};
pub use step::{Closure, Head, Heads, Machine};
pub use table::{CUT_OFF, DEAD, Spot};
