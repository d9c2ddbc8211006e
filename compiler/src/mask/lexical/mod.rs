//! Masks of grammars with lexers, made of what single lexemes do.
//!
//! A token there may hold several lexemes: the rest of one, whole ones, the beginning of another. Which lexemes may
//! stand side by side depends on the stack; what a token does inside one of them does not. So the tokens are followed
//! lexeme by lexeme: on the vocabulary's trie for the residual at hand, which gives the tokens that end inside it and, for
//! each way in which it may end, a trie of what the others have behind that end. These are followed for each lexeme that
//! the stack allows next, and so on. A step (a residual on a trie) is taken once
//! (`steps.rs`), by what is known of the vocabulary where it can be (`runs.rs`); a mask puts steps together (`masks.rs`).

mod masks;
mod runs;
mod steps;
mod union;

pub(super) use steps::Steps;
