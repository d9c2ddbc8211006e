//! Which of the tokens' whitespace an expression admits.

use crate::budget::Budget;
use crate::error::Result;
use crate::regular::{Arena, EMPTY, Id};
use crate::vocabulary::Vocabulary;

/// What an expression of whitespace admits.
pub(in crate::mask) struct Whitespace {
    /// Tokens of whitespace after which it is alive.
    pub(in crate::mask) only: Vec<u32>,
    /// Of each run of whitespace that tokens begin with: whether it may stop there.
    pub(in crate::mask) stops: Vec<bool>,
}

impl Whitespace {
    pub(super) fn new(vocab: &Vocabulary, arena: &mut Arena, w: Id, budget: &mut Budget) -> Result<Whitespace> {
        let mut out = Whitespace { only: Vec::new(), stops: Vec::new() };
        let mut after = vec![w]; // the states after each byte of the run before, with which the next one often begins
        let mut before: &[u8] = &[];
        for run in vocab.blank_runs() {
            let shared = run.text.iter().zip(before).take_while(|(a, b)| a == b).count();
            after.truncate(shared + 1);
            for &b in &run.text[shared..] {
                let q = after[after.len() - 1];
                after.push(if q == EMPTY { EMPTY } else { arena.next(q, b, budget)? });
            }
            before = &run.text;
            let q = after[run.text.len()];
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
