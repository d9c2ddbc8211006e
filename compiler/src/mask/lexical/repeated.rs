//! Tokens in which one character stands many times, each time as a lexeme: `****`, `((((`, `----`.
//!
//! Vocabularies have many of them, long ones too. What such a lexeme leads to is looked up by what stands behind the one
//! before, so that they are followed without a step for each character.

use std::sync::Arc;

use super::masks::After;
use super::texts::{Found, Place};
use super::union::Union;
use crate::byteset::ByteSet;
use crate::error::Result;
use crate::mask::maker::{Answer, MaskMaker};
use crate::stack::Head;

/// A character that is a whole lexeme, and the only one that may begin with it.
#[derive(Clone)]
pub(super) struct Single {
    lexeme: Head,
    /// The lexeme at its end.
    ended: Head,
    after: Arc<After>,
}

impl MaskMaker<'_> {
    /// Adds the tokens of a place that are allowed behind an end.
    pub(super) fn follow_behind(&mut self, after: &Arc<After>, mut place: Place, out: &mut Union) -> Answer<()> {
        let trie = self.trie(place);
        let Some(character) = place.branch().map(|node| trie.byte(node)) else {
            return self.follow(&after.heads, place, out);
        };
        let mut after = after.clone();
        while let Some(node) = place.branch()
            && let Some(next) = trie.child(node, character)
            && let Some(single) = self.single(&after, character)?
        {
            if out.gives_up() {
                return Ok(None);
            } else if !out.has_not((place, single.lexeme.rest, single.lexeme.stack)) {
                return Ok(Some(()));
            }
            self.budget.spend(1)?;
            let tokens = trie.tokens_at(node);
            if !tokens.is_empty() {
                match self.machine.lives(single.ended, self.budget)? {
                    Some(true) => out.set.extend_from_slice(tokens),
                    Some(false) => {}
                    None => out.unsure.extend_from_slice(tokens),
                }
            }
            let first = single.after.first;
            let others: Found =
                trie.children(node, first.minus(ByteSet::only(character))).map(|(_, child)| child).collect();
            if !others.is_empty() {
                let others = self.texts_at((place, &trie), &others)?;
                if self.follow(&single.after.heads, others, out)?.is_none() {
                    return Ok(None);
                }
            }
            if !first.contains(character) {
                return Ok(Some(()));
            }
            place = place.at(next);
            after = single.after;
        }
        self.follow(&after.heads, place, out)
    }

    /// What a character leads to that is a lexeme, if no other one may begin with it.
    fn single(&mut self, after: &After, character: u8) -> Result<Option<Single>> {
        let key = (after.number, character);
        if let Some(known) = self.local.steps.singles.get(&key) {
            return Ok(known.clone());
        }
        let found = self.find_single(after, character)?;
        self.local.steps.singles.insert(key, found.clone());
        Ok(found)
    }

    fn find_single(&mut self, after: &After, character: u8) -> Result<Option<Single>> {
        let mut found = None;
        for &head in &after.heads {
            if head.is_anything() || self.machine.column(head).is_some() {
                return Ok(None);
            }
            for &(rest, first) in self.alternatives(head.rest)?.iter() {
                if first.contains(character) && found.replace(Head { rest, ..head }).is_some() {
                    return Ok(None);
                }
            }
        }
        let Some(lexeme) = found else { return Ok(None) };
        let rest = self.machine.arena.next(lexeme.rest, character, self.budget)?;
        if !self.machine.arena.may_end_here(rest) || !self.machine.arena.first(rest, self.budget)?.is_empty() {
            return Ok(None);
        }
        let &[end] = &self.ends_of(rest)?[..] else { return Ok(None) };
        let ended = Head { rest, ..lexeme };
        Ok(Some(Single { lexeme, ended, after: self.after(ended, end)? }))
    }
}
