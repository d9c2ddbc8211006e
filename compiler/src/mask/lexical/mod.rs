//! Masks of grammars with lexers, computed lexeme by lexeme.
//!
//! In such a grammar, one token may contain several lexemes: the rest of one, whole ones, the beginning of another.
//! Which lexemes may follow each other depends on the stack; what a token does inside one lexeme does not. So a mask
//! is computed in *steps*. A step follows the residual of one lexeme on some texts. It finds the tokens that end inside
//! the lexeme; and, for each way in which the lexeme may end, the rests that other tokens have after that end. The next
//! steps follow these, as texts, for each lexeme that the stack allows next.
//!
//! Texts are those of a trie, or those from some of its nodes on (`texts.rs`). The step of a residual on them is computed
//! once (`steps.rs`): from tables of the vocabulary where the residual begins with a run of characters (`runs.rs`), and
//! with the indentation of the next line where a lexeme can end one (`lines.rs`). Steps on all tokens are shared by the
//! constraints on a vocabulary (`shared.rs`). Masks are put together from steps (`masks.rs`) as unions of tokens
//! (`union.rs`); tokens of one character many times are followed without steps (`repeated.rs`). What most ends of a step
//! lead to depends on a few frames of the stack only; these *parts* of masks are kept, too.

mod lines;
mod masks;
mod repeated;
mod runs;
mod shared;
mod steps;
mod texts;
mod union;

pub(super) use shared::SharedStep;
pub(super) use steps::Steps;
