//! The grammar compiler of grammarspec: from a grammar (IR) and a vocabulary to an automaton over tokens.
//!
//! Data flows one way, and each room knows only those before it in this list:
//!
//! * [`ir`]: a grammar as the front-ends describe it, independent of any vocabulary;
//! * [`vocabulary`]: the tokens, indexed for walks;
//! * [`regular`]: regular languages over bytes, by derivatives;
//! * [`stack`]: the context-free level above them, a pushdown automaton over bytes;
//! * [`distinct`]: the items and names that a JSON text has so far and must not repeat;
//! * [`mask`]: the tokens that a state allows;
//! * [`frozen`]: a whole automaton over tokens as flat tables, where it is finite;
//! * [`automaton`]: states with ids, steps and masks, behind a lock: what a caller uses;
//! * `python`: the same as a Python module.
//!
//! [`byteset`], [`charset`], [`budget`], [`error`], `growth`, `recursion` and `small_set` are the ground that all of them stand on.

pub mod automaton;
pub mod budget;
pub mod byteset;
pub mod charset;
pub mod distinct;
pub mod error;
pub mod frozen;
pub mod ir;
pub mod mask;
pub mod regular;
pub mod stack;
pub mod vocabulary;

mod growth;
#[cfg(feature = "python")]
mod python;
mod recursion;
mod small_set;
