//! Regular languages over bytes: hash-consed expressions, their derivatives, and the lazy DFA that these make.
//!
//! In come regular grammar expressions (`lower.rs`); out come ids of expressions, and for each of them its transitions
//! by byte and whether anything can complete it (`dfa.rs`, with `held.rs`). A *residual*, what may still follow a text, is an
//! expression too (its derivative by the text, Brzozowski 1964), so that a DFA state is an expression's id.
//! Intersection, complement and zero-width assertions need no construction of their own. Expressions that are equal up
//! to the identities applied at construction have one id. Different ids may still stand for equal languages; that costs
//! states, not correctness.
//!
//! An expression of the context-free level ends in `Accept`s, tags that name the position after the terminal
//! (`tags.rs`). `saturate.rs`, `slack.rs` and `limits.rs` drop counts that a token cannot tell apart, which keeps masks
//! few (`covering.rs`, `bounded.rs`: lengths beside patterns); `import.rs` copies living expressions into a fresh arena.
//! What is lowered for a vocabulary is restricted to its [`Alphabet`], so that every text can be spelled
//! (`characters.rs`).

mod arena;
mod boolean;
mod bounded;
mod characters;
mod covering;
mod derive;
mod dfa;
mod held;
mod import;
mod limits;
mod looks;
mod lower;
mod saturate;
mod slack;
mod tags;
mod union;
mod within;

pub use arena::{Arena, EMPTY, EPS, Form, Id, List, TOP};
pub use characters::Alphabet;
pub use limits::{Limit, Limits, Marks};
pub use lower::Lowered;
pub use saturate::{Counts, SMALL, Saturated, saturated_bounds};
pub use tags::Ends;
