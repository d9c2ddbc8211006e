//! Heads that begin with whitespace: `W x`, where the whitespace `W` may be empty and `x` begins with something else.
//!
//! A token that begins with whitespace is that all through, or goes on with an *end* that `x` alone decides. So the ends
//! are walked from `x`, once for all the whitespace that tokens have before them, and what whitespace `W` admits is known
//! by its expression, for all grammars on the vocabulary.

use crate::budget::Budget;
use crate::error::Result;
use crate::regular::{Arena, ByteSet, EMPTY, Id};
use crate::vocabulary::Vocabulary;

/// What an expression of whitespace admits.
pub(super) struct Blanks {
    /// Tokens of whitespace after which it is alive.
    pub(super) only: Vec<u32>,
    /// Of each run of whitespace that tokens begin with: whether it may stop there.
    pub(super) stops: Vec<bool>,
}

impl Blanks {
    pub(super) fn new(vocab: &Vocabulary, arena: &mut Arena, w: Id, budget: &mut Budget) -> Result<Blanks> {
        let mut out = Blanks { only: Vec::new(), stops: Vec::new() };
        for run in vocab.blank_runs() {
            let mut q = w;
            for &b in &run.text {
                q = arena.next(q, b, budget)?;
                if q == EMPTY {
                    break;
                }
            }
            out.stops.push(arena.nullable(q));
            if q != EMPTY {
                out.only.extend_from_slice(&run.tokens);
            }
        }
        Ok(out)
    }

    pub(super) fn memory(&self) -> usize {
        self.only.len() * 4 + self.stops.len() + 64
    }
}

/// JSON's whitespace (RFC 8259, section 2).
pub(super) fn blank_bytes() -> ByteSet {
    crate::vocabulary::BLANK.iter().fold(ByteSet::NONE, |mut set, &b| {
        set.insert(b);
        set
    })
}
