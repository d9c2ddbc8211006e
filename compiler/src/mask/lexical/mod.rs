//! Masks of grammars with lexers, computed lexeme by lexeme.
//!
//! In such a grammar, one token may contain several lexemes: the rest of one, whole ones, the beginning of another.
//! Which lexemes may follow each other depends on the stack; what a token does inside one lexeme does not. So a mask
//! is computed in *steps*. A step walks a trie of texts for the residual of one lexeme. It finds the tokens that end
//! inside the lexeme; and, for each way in which the lexeme may end, a trie of the rests that other tokens have after
//! that end. The next steps walk these tries for each lexeme that the stack allows next.
//!
//! The step of a residual on a trie is computed once (`steps.rs`): from tables of the vocabulary where the residual
//! begins with a run of characters (`runs.rs`), and with the indentation of the next line where a lexeme can end one
//! (`lines.rs`). Masks are put together from steps (`masks.rs`) as unions of tokens (`union.rs`).

mod lines;
mod masks;
mod runs;
mod steps;
mod union;

pub(super) use steps::Steps;
