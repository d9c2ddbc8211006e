//! Masks: which tokens a state allows.
//!
//! In comes a kernel of the pushdown automaton (`crate::stack`), out goes a [`Row`] of bits. [`Masks`] keeps the rows
//! of a constraint by *footprint* (what a kernel's mask depends on, see `masks.rs`) and asks a `MaskMaker` (`maker.rs`)
//! for those that are missing. What is found out on the way is kept in `cache/`: what depends on the vocabulary alone
//! ([`VocabularyCache`]) for all its grammars, what depends on the grammar for one constraint.
//!
//! # Strategies
//!
//! Most heads allow few tokens, and are walked over the vocabulary's trie. For those that allow many there are cheaper
//! ways, the *strategies*, each in a file of `strategy/`:
//!
//! | Strategy | Heads that it is for | What it does |
//! |---|---|---|
//! | `whitespace` | optional whitespace, then something else | walks what tokens have behind their whitespace |
//! | `loops` | string interiors, identifiers, `.{0,5}` | a shared row, and a walk over the ends of the other tokens |
//! | `patch` (exclusion) | "any key but these, or one of these" | the mask of "any key", and the few tokens that differ |
//! | `parts` | unions of such heads: keys of one object or another | the union of their masks |
//! | `patch` (neighbour) | heads from which most bytes lead to a loop | the loop's mask, and what differs |
//! | `kin` | classes in patterns, where each character may begin a range | the mask of a head like it, and what differs |
//! | `regions` | patterns that may match anywhere in a string | a shared row, and a walk over the other tokens |
//! | `walk` | all | follows the trie |
//!
//! Grammars with lexers are the exception: their masks are put together of what tokens do inside single lexemes
//! (`lexical/`).
//!
//! `strategy/mod.rs` decides. It splits a head into its branches and takes whitespace off; if many bytes lead on from
//! what is left, it tries the functions listed in `STRATEGIES` in their order. The stacks of a footprint are cut off at
//! some depth, so a strategy, which gets a head, gives an `Attempt`: `Made` with the mask as a `Draft` (a shared row of
//! bits, tokens to clear, tokens to set, and tokens that depend on what was cut off), `Deeper` where too much does
//! (the caller comes again with more of the stack), or `Declined` where the head is of another kind.
//!
//! Every mask must be exact: a strategy may be faster than a walk, but its tokens are the same.
//!
//! To add one: a file in `strategy/` with a method of `MaskMaker` that declines quickly what it is not for, and a line
//! in `STRATEGIES`, before the strategies that are slower where both fit. What it needs to know of a head's form stands
//! in `shape/`; what is worth keeping, in `cache/`.

mod cache;
mod lexical;
mod maker;
mod masks;
mod row;
mod shape;
mod strategy;

pub use cache::VocabularyCache;
pub use masks::{Masks, Sources};
pub use row::Row;
