//! Heads that loop on most characters: a shared row of the tokens that stay in the loop, and a walk over the ends of the
//! others.

use std::sync::Arc;

use crate::error::Result;
use crate::mask::cache::Interior;
use crate::mask::maker::{Answer, Attempt, MANY, MaskMaker};
use crate::mask::row::{Draft, Row};
use crate::mask::shape::Looping;
use crate::regular::Form;
use crate::stack::{ByteState, DEAD, Head};
use crate::vocabulary::{Name, clear_bit, get_bit, set_bit};

impl MaskMaker<'_> {
    /// The strategy for heads that loop, where few tokens hold a byte that ends the loop.
    pub(super) fn by_loop(&mut self, head: Head) -> Result<Attempt> {
        let Some(looping) = self.looping(head)? else { return Ok(Attempt::Declined) };
        if self.vocab.holders_of_any(looping.changing) <= MANY {
            return Ok(self.loop_mask(head, &looping)?.into());
        } else if looping.most.is_none() && self.vocab.later_holders_of_any(looping.changing) <= MANY {
            return Ok(self.narrow_loop_mask(head, &looping)?.into());
        }
        Ok(Attempt::Declined)
    }

    /// Tokens that stay in the loop are allowed, whatever follows it; of the others the ends are walked.
    pub(super) fn loop_mask(&mut self, head: Head, looping: &Looping) -> Answer<Draft> {
        if let Some(most) = looping.most {
            return self.counted_loop_mask(head, looping, most).map(Some);
        }
        if let Some((interior, after)) = self.interior(head, looping)? {
            let mut draft = Draft { base: Some(interior.inside.clone()), ..Draft::default() };
            return Ok(self.walk(&interior.exits, after, &mut draft)?.map(|()| draft));
        }
        let class = self.shared.class(self.vocab, looping.plain, looping.changing);
        let mut draft = Draft { base: Some(class.plain.clone()), ..Draft::default() };
        let start = self.machine.byte_state(&[head], self.budget)?;
        Ok(self.walk(class.ends(self.vocab), start, &mut draft)?.map(|()| draft))
    }

    /// If it is clear by the next byte whether a head's loop goes on: what tokens do inside, and the state behind it.
    fn interior(&mut self, head: Head, looping: &Looping) -> Result<Option<(Arc<Interior>, ByteState)>> {
        let Form::Then(inner, rest) = self.machine.arena.form(head.rest) else { return Ok(None) };
        if !self.machine.arena.nullable(inner) {
            return Ok(None);
        }
        let after = self.machine.byte_state(&[Head { rest, ..head }], self.budget)?;
        let first = self.machine.first(after, self.budget)?;
        let bytes = (looping.plain, looping.changing);
        let interior = self.shared.interior(self.vocab, bytes, (&mut self.machine.arena, inner), self.budget)?;
        Ok(if interior.going_on.and(first).is_empty() { Some((interior, after)) } else { None })
    }

    /// Where the loop is counted, so that what follows depends on the number of characters, plain tokens of too many are
    /// left out and the others tried.
    fn counted_loop_mask(&mut self, head: Head, looping: &Looping, most: u32) -> Result<Draft> {
        let class = self.shared.class(self.vocab, looping.plain, looping.changing);
        let start = self.machine.byte_state(&[head], self.budget)?;
        let mut bits = class.plain.to_vec();
        self.vocab.exclude_longer(most, &mut bits);
        let mut draft = Draft { base: Some(bits.into()), ..Draft::default() };
        for t in class.others() {
            match self.try_token(start, t)? {
                DEAD => {}
                state => draft.reach(self.machine.is_unsure(state), &[t]),
            }
        }
        Ok(draft)
    }

    /// The mask of a kernel that is one counted loop, given the row of the loop without its count, which is right for
    /// tokens of at most `length` bytes: `None` if that is its own. With it, tokens of which it depends on more of a
    /// truncated stack whether they are allowed.
    pub(in crate::mask) fn shortened(
        &mut self,
        kernel: &[Head],
        wide: &Row,
        length: u32,
    ) -> Answer<(Option<Row>, Vec<u32>)> {
        self.begin();
        let &[head] = kernel else { return Ok(None) };
        let Some(looping) = self.looping(head)? else { return Ok(None) };
        let Some(most) = looping.most.filter(|_| self.vocab.holders_of_any(looping.changing) <= MANY) else {
            return Ok(None);
        };
        let class = self.shared.class(self.vocab, looping.plain, looping.changing);
        let start = self.machine.byte_state(kernel, self.budget)?;
        let mut before = vec![0; self.vocab.words()];
        wide.write(&mut before);
        let (mut bits, mut unsure) = (before.clone(), Vec::new());
        self.vocab.exclude_longer(most, &mut bits);
        for t in class.others().filter(|&t| get_bit(&before, t)) {
            if self.vocab.token(t).len() as u64 <= length.into() {
                set_bit(&mut bits, t);
                continue;
            }
            clear_bit(&mut bits, t);
            match self.try_token(start, t)? {
                DEAD => {}
                state if self.machine.is_unsure(state) => unsure.push(t),
                _ => set_bit(&mut bits, t),
            }
        }
        Ok(Some(((bits != before).then(|| Row::of(bits.into())), unsure)))
    }

    /// The mask of a loop where many tokens hold a changing byte, most of them as their first (a blank, say): the row is
    /// of the tokens that begin with a plain byte.
    fn narrow_loop_mask(&mut self, head: Head, looping: &Looping) -> Answer<Draft> {
        let trie = &self.vocab.trie;
        let branch = self.shared.branch((Name::Tokens, trie), 0, looping.plain);
        let mut draft = Draft { base: Some(branch.row(self.vocab.words())), ..Draft::default() };
        let here = self.machine.closure_state(&[head], self.budget)?;
        let states = (here, self.machine.byte_state(&[head], self.budget)?, looping.changing);
        let mut todo = Vec::new();
        if self.leave((trie, 0), &branch, states, (&mut todo, &mut draft))?.is_none() {
            return Ok(None);
        }
        Ok(self.walk_on(trie, todo, &mut draft)?.map(|()| draft))
    }
}
