//! The mask of a configuration.

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::blanks::blank_bytes;
use super::classes::ClassCache;
use super::looping::{Looping, characters};
use super::patch::Patch;
use super::region::region;
use super::row::{Draft, Row};
use crate::budget::Budget;
use crate::error::Result;
use crate::regular::{ByteSet, EMPTY, Id, Region};
use crate::stack::{CUT_OFF, DEAD, Head, Heads, Machine, Spot};
use crate::vocabulary::{Name, Vocabulary, get_bit};

/// Residuals that fewer bytes lead on allow few tokens: a plain walk finds them.
pub(super) const BROAD: u32 = 20;

/// Sorting out the ends of more tokens than this costs more than a walk.
pub(super) const MANY: usize = 16_384;

pub struct MaskMaker<'a> {
    pub machine: &'a mut Machine,
    pub vocab: &'a Vocabulary,
    pub classes: &'a ClassCache,
    /// Masks that others are patches of.
    pub bases: &'a mut FxHashMap<Head, Draft>,
    pub budget: &'a mut Budget,
}

/// `None`: the answer depends on more of a truncated stack.
pub(super) type Answer<T> = Result<Option<T>>;

impl MaskMaker<'_> {
    /// The row of the tokens that `kernel` allows, EOS tokens included.
    pub fn row(&mut self, kernel: &[Head]) -> Answer<Row> {
        self.machine.table.refresh();
        let closure = self.machine.close(kernel, self.budget)?;
        if closure.cut_off {
            return Ok(None);
        }
        let mut all = Draft::default();
        if closure.accepting {
            all.set.extend_from_slice(&self.vocab.eos);
        }
        for &head in &closure.heads {
            let Some(part) = self.head(head)? else { return Ok(None) };
            all.add(part, self.vocab.words());
        }
        Ok(Some(all.finish(self.vocab.words())))
    }

    /// Those of `tokens` that `kernel` does not allow, given that it does without its counts.
    pub fn refused(&mut self, kernel: &[Head], tokens: &[u32]) -> Answer<Vec<u32>> {
        self.machine.table.refresh();
        let start = self.machine.spot(kernel, self.budget)?;
        // a counter of characters: of the tokens made of these alone, it is known without a walk
        let counter = match kernel {
            [head] => Looping::of(self.machine, self.classes, *head, self.budget)?,
            _ => None,
        };
        let counter = counter.filter(|c| self.vocab.holders_of_any(c.changing) <= MANY);
        let counter = counter.and_then(|c| Some((self.classes.class(self.vocab, c.plain, c.changing), c.most?)));
        let mut out = Vec::new();
        for &t in tokens {
            if let Some((class, most)) = &counter
                && get_bit(&class.plain, t)
            {
                if characters(self.vocab.token(t)) > *most as usize {
                    out.push(t);
                }
                continue;
            }
            match self.try_token(start, t)? {
                CUT_OFF => return Ok(None),
                DEAD => out.push(t),
                _ => {}
            }
        }
        Ok(Some(out))
    }

    pub(super) fn head(&mut self, head: Head) -> Answer<Draft> {
        // the mask of a union is the union of the masks
        let mut all = Draft::default();
        let mut others: SmallVec<[Id; 8]> = SmallVec::new();
        for rest in self.machine.arena.branches(head.rest) {
            let Some((w, x)) = self.machine.arena.led_by(rest, blank_bytes()) else {
                others.push(rest);
                continue;
            };
            let after = Head { rest: x, ..head };
            let after = if self.machine.arena.nullable(x) {
                let closure = self.machine.close(&[after], self.budget)?;
                if closure.cut_off {
                    return Ok(None);
                }
                closure.heads
            } else {
                Heads::from_slice(&[after])
            };
            let start = self.machine.spot_of_closure(&after, self.budget)?;
            if self.machine.first(start, self.budget)?.and(blank_bytes()) != ByteSet::NONE {
                others.push(rest); // whitespace may go on in what follows
                continue;
            }
            let Some(mut part) = self.blanks_then(w, start)? else { return Ok(None) };
            all.set.append(&mut part);
            if !self.machine.arena.is_accept(x) {
                others.push(x);
            }
        }
        let rest = self.machine.arena.alt(&others);
        if rest != EMPTY {
            let Some(part) = self.unblank(Head { rest, ..head })? else { return Ok(None) };
            all.add(part, self.vocab.words());
        }
        Ok(Some(all))
    }

    /// The tokens that begin with whitespace of `w`, and go on from `start` if at all.
    fn blanks_then(&mut self, w: Id, start: Spot) -> Answer<Vec<u32>> {
        let blanks = self.classes.blanks(self.vocab, &mut self.machine.arena, w, self.budget)?;
        let mut found = Vec::new();
        if self.walk(self.vocab.after_blanks(), start, &mut found)?.is_none() {
            return Ok(None);
        }
        found.retain(|&t| blanks.stops[self.vocab.blank_run(t)]);
        found.extend_from_slice(&blanks.only);
        Ok(Some(found))
    }

    /// A head that does not begin with whitespace and something else.
    fn unblank(&mut self, head: Head) -> Answer<Draft> {
        if self.machine.arena.first(head.rest, self.budget)?.len() >= BROAD {
            if let Some(looping) = Looping::of(self.machine, self.classes, head, self.budget)? {
                if self.vocab.holders_of_any(looping.changing) <= MANY {
                    return self.looping(head, &looping);
                } else if looping.most.is_none() && self.vocab.later_holders_of_any(looping.changing) <= MANY {
                    return self.narrow_looping(head, &looping);
                }
            }
            if let Some(exclusion) = self.exclusion(head)? {
                match self.patched_exclusion(head, &exclusion)? {
                    Patch::Made(draft) => return Ok(Some(draft)),
                    Patch::Deeper => return Ok(None),
                    Patch::Apart => {}
                }
            }
            if self.stays_broad(head)? {
                if let Some(region) = region(&mut self.machine.arena, head.rest, self.budget)?
                    && self.vocab.holders_of_any(region.changing) <= MANY
                {
                    return self.region(head, region);
                }
                if let Some(base) = self.base(head)? {
                    match self.patched(head, base)? {
                        Patch::Made(draft) => return Ok(Some(draft)),
                        Patch::Deeper => return Ok(None),
                        Patch::Apart => {}
                    }
                }
            }
        }
        let mut draft = Draft::default();
        let start = self.machine.spot_of_closure(&[head], self.budget)?;
        Ok(self.walk(&self.vocab.trie, start, &mut draft.set)?.map(|()| draft))
    }

    /// Plain tokens are allowed, whatever follows; of the others the ends are walked.
    fn looping(&mut self, head: Head, looping: &Looping) -> Answer<Draft> {
        let class = self.classes.class(self.vocab, looping.plain, looping.changing);
        let start = self.machine.spot(&[head], self.budget)?;
        let mut draft = Draft::default();
        let Some(most) = looping.most else {
            draft.base = Some(class.plain.clone());
            return Ok(self.walk(class.ends(self.vocab), start, &mut draft.set)?.map(|()| draft));
        };
        let mut bits = class.plain.to_vec();
        self.vocab.exclude_longer(most, &mut bits);
        draft.base = Some(bits.into());
        for t in class.others() {
            match self.try_token(start, t)? {
                CUT_OFF => return Ok(None),
                DEAD => {}
                _ => draft.set.push(t),
            }
        }
        Ok(Some(draft))
    }

    /// The same where many tokens have a changing byte, most of them as their first (a blank, say).
    fn narrow_looping(&mut self, head: Head, looping: &Looping) -> Answer<Draft> {
        let trie = &self.vocab.trie;
        let branch = self.classes.branch((Name::Tokens, trie), 0, looping.plain);
        let mut draft = Draft { base: Some(branch.row(self.vocab.words())), ..Draft::default() };
        let here = self.machine.spot_of_closure(&[head], self.budget)?;
        let spots = (here, self.machine.spot(&[head], self.budget)?, looping.changing);
        let mut todo = Vec::new();
        if self.leave((trie, 0), &branch, spots, (&mut todo, &mut draft.set))?.is_none() {
            return Ok(None);
        }
        Ok(self.walk_on(trie, todo, &mut draft.set)?.map(|()| draft))
    }

    /// Plain tokens are allowed, wherever they lead; the others are walked.
    fn region(&mut self, head: Head, region: Region) -> Answer<Draft> {
        let class = self.classes.class(self.vocab, region.plain, region.changing);
        let start = self.machine.spot_of_closure(&[head], self.budget)?;
        let mut draft = Draft { base: Some(class.plain.clone()), ..Draft::default() };
        Ok(self.walk(class.texts(self.vocab), start, &mut draft.set)?.map(|()| draft))
    }
}
