//! The grammar compiler of grammarspec: grammar IR -> automaton over the tokens of a vocabulary.
//!
//! Data flows one way: [`ir`] (a grammar, independent of any vocabulary) and [`vocabulary`] (the token index)
//! come together in [`automaton`], whose states are configurations of the context-free level ([`stack`]) over
//! lazily derived regular languages ([`regular`]); [`mask`] turns a configuration into the set of allowed tokens.

pub mod automaton;
pub mod budget;
pub mod error;
pub mod ir;
pub mod mask;
pub mod memory;
pub mod regular;
pub mod stack;
pub mod vocabulary;

#[cfg(feature = "python")]
mod python;

/// Runs `f` with enough stack for deep recursion over user-given structure (nesting is limited elsewhere).
#[inline]
pub(crate) fn deep<R>(f: impl FnOnce() -> R) -> R {
    stacker::maybe_grow(48 * 1024, 1024 * 1024, f)
}
