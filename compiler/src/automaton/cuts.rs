//! Tokens that end inside a character, on vocabularies in which single bytes cannot complete every character.
//!
//! If `é` is a token and so is its first byte, but not its second, that byte leads to where the grammar goes on with a
//! byte that no token begins with. So it is allowed only if other tokens complete a character there. Most vocabularies
//! have no such tokens, and most of those that have bytes inside longer tokens only have none either.

use rustc_hash::FxHashSet;

use super::configuration::Configuration;
use super::engine::Engine;
use crate::byteset::ByteSet;
use crate::error::Result;
use crate::mask::Row;
use crate::stack::DEAD;
use crate::vocabulary::get_bit;

impl Engine {
    /// Whether a text may end where a token has led to, as far as the character is concerned that it may end in.
    #[inline]
    pub(super) fn may_stop(&mut self, at: &Configuration, token: u32) -> Result<bool> {
        match &self.cuts {
            Some(characters) if characters.cut.binary_search(&token).is_ok() => {
                Ok(self.rest_of_character(at)?.is_some())
            }
            _ => Ok(true),
        }
    }

    /// A row without the tokens behind which no token completes the character; `None` if there are none.
    pub(super) fn without_cuts(&mut self, at: &Configuration, row: &Row) -> Result<Option<Row>> {
        let Some(characters) = self.cuts.clone() else { return Ok(None) };
        let vocab = self.vocab.clone();
        let mut bits = vec![0u32; vocab.words()];
        row.write(&mut bits);
        let mut refused = Vec::new();
        for &token in characters.cut.iter().filter(|&&token| get_bit(&bits, token)) {
            let mut behind = at.clone();
            if !self.move_behind(&mut behind, vocab.token(token))? || self.rest_of_character(&behind)?.is_none() {
                refused.push(token);
            }
        }
        Ok(if refused.is_empty() { None } else { Some(row.without(&refused, vocab.words())) })
    }

    /// Tokens that complete the character in which a text has ended, as few as possible, and where they lead; none at
    /// all if it has not ended in one. `None` if there are no such tokens.
    pub(super) fn rest_of_character(&mut self, at: &Configuration) -> Result<Option<(Vec<u32>, Configuration)>> {
        let (vocab, characters) = (self.vocab.clone(), self.cuts.clone());
        let inside = characters.iter().flat_map(|characters| &characters.inside);
        let mut met = FxHashSet::from_iter([at.clone()]);
        // breadth first; each with the index of the one before it, and the token between them
        let mut found = vec![(at.clone(), 0, 0u32)];
        let mut next = 0;
        while let Some((at, ..)) = found.get(next) {
            let at = at.clone();
            if self.machine.first(at.state, &mut self.budget)?.and(ByteSet::range(0x80, 0xBF)).is_empty() {
                let mut tokens = Vec::new();
                while next != 0 {
                    tokens.push(found[next].2);
                    next = found[next].1;
                }
                tokens.reverse();
                return Ok(Some((tokens, at)));
            }
            for &token in inside.clone() {
                self.budget.spend(1)?;
                let mut behind = at.clone();
                if self.move_behind(&mut behind, vocab.token(token))? && met.insert(behind.clone()) {
                    found.push((behind, next, token));
                }
            }
            next += 1;
        }
        Ok(None)
    }

    /// Moves a configuration behind a token's text. Returns whether the grammar goes on there.
    fn move_behind(&mut self, at: &mut Configuration, text: &[u8]) -> Result<bool> {
        if self.machine.needs_history() {
            return self.follower().follow_text(at, text);
        }
        at.state = self.advance(at.state, text)?;
        Ok(at.state != DEAD)
    }
}
