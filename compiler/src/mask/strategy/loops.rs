//! Heads that loop on most characters: a shared row of the tokens that stay in the loop, and a walk over the ends of the
//! others.

use std::sync::Arc;

use crate::byteset::ByteSet;
use crate::error::Result;
use crate::ir::UNBOUNDED;
use crate::mask::cache::{Interior, Region, Rounds};
use crate::mask::maker::{Answer, Attempt, MANY, MaskMaker};
use crate::mask::row::{Draft, Row};
use crate::mask::shape::Looping;
use crate::regular::Id;
use crate::stack::{ByteState, DEAD, Head};
use crate::vocabulary::{Name, clear_bit, get_bit, set_bit};

/// Where more tokens hold a byte that leads out of a loop (`h`, in any text with `http` in it), a region is looked for in
/// which most of these bytes change nothing.
const OFTEN_LEFT: usize = 4096;

impl MaskMaker<'_> {
    /// The strategy for heads that loop, where few tokens hold a byte that ends the loop.
    pub(super) fn by_loop(&mut self, head: Head) -> Result<Attempt> {
        let Some(looping) = self.looping(head)? else { return Ok(Attempt::Declined) };
        if self.vocab.holders_of_any(looping.changing) <= MANY {
            return Ok(self.loop_mask(head, &looping)?.into());
        } else if looping.most.is_none() && self.vocab.later_holders_of_any(looping.changing) <= MANY {
            return match self.wider_region(head, &looping)? {
                Some(region) => Ok(self.region_mask(head, region)?.into()),
                None => Ok(self.narrow_loop_mask(head, &looping)?.into()),
            };
        }
        Ok(Attempt::Declined)
    }

    /// The region around a loop that many tokens leave, if far fewer hold a byte that changes something there.
    fn wider_region(&mut self, head: Head, looping: &Looping) -> Result<Option<Region>> {
        let leaving = self.vocab.holders_of_any(looping.changing);
        if leaving <= OFTEN_LEFT {
            return Ok(None);
        }
        let region = self.region(head.rest)?;
        Ok(region.filter(|region| self.vocab.holders_of_any(region.changing) < leaving / 2))
    }

    /// Tokens that stay in the loop are allowed, whatever follows it; of the others the ends are walked.
    pub(super) fn loop_mask(&mut self, head: Head, looping: &Looping) -> Answer<Draft> {
        if let Some(most) = looping.most {
            return self.counted_loop_mask(head, looping, most);
        }
        if let Some(region) = self.wider_region(head, looping)? {
            return self.region_mask(head, region);
        }
        if let Some((inner, rest)) = self.machine.arena.optional_part(head.rest, self.budget)?
            && let Some((interior, after)) = self.interior(inner, Head { rest, ..head }, looping)?
        {
            let mut draft = Draft { base: Some(interior.inside.clone()), ..Draft::default() };
            return Ok(self.leave_interior(&interior, after, looping, &mut draft)?.map(|()| draft));
        }
        let class = self.shared.class(self.vocab, looping.plain, looping.changing);
        let mut draft = Draft { base: Some(class.plain.clone()), ..Draft::default() };
        let start = self.machine.byte_state(&[head], self.budget)?;
        Ok(self.leave_plain(start, (looping.plain, looping.changing), &mut draft)?.map(|()| draft))
    }

    /// If it is clear by the next byte whether the loop `inner` goes on before a head: what tokens do inside, and the
    /// state behind it.
    fn interior(&mut self, inner: Id, after: Head, looping: &Looping) -> Result<Option<(Arc<Interior>, ByteState)>> {
        let after = self.machine.byte_state(&[after], self.budget)?;
        let first = self.machine.first(after, self.budget)?;
        let bytes = (looping.plain, looping.changing);
        let interior = self.shared.interior(self.vocab, bytes, (&mut self.machine.arena, inner), self.budget)?;
        Ok(if interior.going_on.and(first).is_empty() { Some((interior, after)) } else { None })
    }

    /// Adds the tokens that leave a loop and go on from the state behind it.
    fn leave_interior(
        &mut self,
        interior: &Interior,
        after: ByteState,
        looping: &Looping,
        draft: &mut Draft,
    ) -> Answer<()> {
        let (exits, leaving) = interior.exits(self.vocab);
        if self.walk(exits, after, draft)?.is_none() {
            return Ok(None);
        }
        self.leave_plain(after, (looping.plain, leaving), draft)
    }

    /// Adds the tokens that are plain up to a changing byte and go on with it from a state.
    fn leave_plain(
        &mut self,
        state: ByteState,
        (plain, changing): (ByteSet, ByteSet),
        draft: &mut Draft,
    ) -> Answer<()> {
        for byte in self.machine.first(state, self.budget)?.and(changing).iter() {
            // the ends of all tokens with this byte, which are shared by all sets of plain bytes
            let mut ends = Draft::default();
            if self.walk(self.vocab.suffix_trie(byte), state, &mut ends)?.is_none() {
                return Ok(None);
            }
            for (ends, out) in [(ends.set, &mut draft.set), (ends.unsure, &mut draft.unsure)] {
                self.vocab.add_with_only_before((plain, byte), ends, out);
            }
        }
        Ok(Some(()))
    }

    /// How many times tokens go around the loop `inner`, if that is certain.
    fn rounds(&mut self, inner: Id, looping: &Looping) -> Result<Option<Arc<Rounds>>> {
        let bytes = (looping.plain, looping.changing);
        self.shared.rounds(self.vocab, bytes, (&mut self.machine.arena, inner), self.budget)
    }

    /// Where the loop is counted, so that what follows depends on the number of characters, plain tokens of too many are
    /// left out; of the others those are allowed that have as many as they may, or each is tried.
    fn counted_loop_mask(&mut self, head: Head, looping: &Looping, most: u32) -> Answer<Draft> {
        let class = self.shared.class(self.vocab, looping.plain, looping.changing);
        let mut bits = class.plain.to_vec();
        self.vocab.exclude_longer(most, &mut bits);
        let mut draft = Draft { base: Some(bits.into()), ..Draft::default() };
        if let Some((body, (least, _), rest)) = self.machine.arena.counted(head.rest)
            && !self.machine.arena.nullable(body)
            && let inner = self.machine.arena.repeat(body, 0, UNBOUNDED)
            && let Some((interior, after)) = self.interior(inner, Head { rest, ..head }, looping)?
            && let Some(rounds) = self.rounds(inner, looping)?
        {
            if self.leave_interior(&interior, after, looping, &mut draft)?.is_none() {
                return Ok(None);
            }
            let fits = |t: &u32| (least..=most).contains(&rounds.exits[t]);
            draft.set.retain(fits);
            draft.unsure.retain(fits);
            draft.set.extend(rounds.inside.iter().filter(|(_, rounds)| *rounds <= most).map(|(t, _)| *t));
            return Ok(Some(draft));
        }
        let start = self.machine.byte_state(&[head], self.budget)?;
        for t in class.others(self.vocab) {
            match self.try_token(start, t)? {
                DEAD => {}
                state => draft.reach(self.machine.is_unsure(state), &[t]),
            }
        }
        Ok(Some(draft))
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
        for t in class.others(self.vocab).filter(|&t| get_bit(&before, t)) {
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
