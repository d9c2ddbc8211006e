//! The mask of a kernel: which strategy makes it.
//!
//! The mask of a kernel is the union of the masks of its closure's heads; the mask of a head is the union of those of
//! its residual's branches. Whitespace that a branch begins with is split off. If many bytes ([`BROAD`]) lead on from
//! what remains, it is given to the strategies of [`STRATEGIES`], in their order, until one does not decline. Where few
//! do, or all strategies decline, the trie is walked, which fits every head.
//!
//! Grammars with lexers have a way of their own (`../lexical`). Where heads are searched for an ending
//! (`Machine::careful`), there are walks only.

mod kin;
mod loops;
mod parts;
mod patch;
mod regions;
mod stretches;
mod walk;
mod whitespace;

use smallvec::SmallVec;

use super::maker::{Answer, Attempt, BROAD, MaskMaker};
use super::row::{Draft, Row};
use crate::byteset::ByteSet;
use crate::error::Result;
use crate::regular::{EMPTY, Id};
use crate::stack::{CUT_OFF, DEAD, Head, Heads};
use crate::vocabulary::blank_bytes;

/// A way to make the mask of a head that many bytes lead on from.
type Strategy = for<'a, 'b> fn(&'a mut MaskMaker<'b>, Head) -> Result<Attempt>;

/// The strategies, in the order in which they are tried: each one is cheaper than those behind it where it fits.
const STRATEGIES: [Strategy; 9] = [
    |maker, head| maker.by_exclusion(head),
    |maker, head| maker.by_loop(head),
    |maker, head| maker.by_parts(head),
    |maker, head| maker.by_known_region(head),
    |maker, head| maker.by_neighbour(head),
    |maker, head| maker.by_kin(head),
    |maker, head| maker.by_neighbouring_region(head),
    |maker, head| maker.by_region(head),
    |maker, head| maker.by_stretch(head),
];

impl MaskMaker<'_> {
    /// The row of the tokens that `kernel` allows, EOS tokens included, and those of which that depends on more of a
    /// truncated stack.
    pub(super) fn row(&mut self, kernel: &[Head]) -> Answer<(Row, Vec<u32>)> {
        self.begin();
        let closure = self.machine.close(kernel, self.budget)?;
        if closure.is_open() {
            return Ok(None);
        }
        let mut all = Draft::default();
        if closure.accepting {
            all.set.extend_from_slice(&self.vocab.eos);
        } else if closure.may_accept {
            all.unsure.extend_from_slice(&self.vocab.eos);
        }
        if self.machine.has_lexemes {
            let Some(part) = self.lexical_mask(&closure.heads)? else { return Ok(None) };
            all.add(part, self.vocab.words());
        } else {
            for &head in &closure.heads {
                let Some(part) = self.head(head)? else { return Ok(None) };
                all.add(part, self.vocab.words());
            }
        }
        let (row, unsure) = all.finish(self.vocab.words());
        Ok(if self.leaves_much_open(unsure.len()) { None } else { Some((row, unsure)) })
    }

    /// Of tokens of which it depended on more of a truncated stack whether they are allowed: those that are by
    /// `kernel`, of which more is known, and those of which it still depends.
    pub(super) fn decided(&mut self, kernel: &[Head], tokens: &[u32]) -> Result<(Vec<u32>, Vec<u32>)> {
        self.begin();
        let start = self.machine.byte_state(kernel, self.budget)?;
        let mut draft = Draft::default();
        for &token in tokens {
            let state = if self.vocab.is_eos(token) {
                match self.machine.may_end(start, self.budget)? {
                    Some(false) => DEAD,
                    Some(true) => start,
                    None => CUT_OFF,
                }
            } else {
                self.try_token(start, token)?
            };
            if state != DEAD {
                draft.reach(self.machine.is_unsure(state), &[token]);
            }
        }
        Ok((draft.set, draft.unsure))
    }

    /// Those of `tokens` that `kernel` does not allow, given that it allows them with its counts left out, and those of
    /// which that depends on more of a truncated stack.
    pub(super) fn refused(&mut self, kernel: &[Head], tokens: &[u32]) -> Result<(Vec<u32>, Vec<u32>)> {
        self.begin();
        let start = self.machine.byte_state(kernel, self.budget)?;
        let (mut out, mut unsure) = (Vec::new(), Vec::new());
        let bounded = match kernel {
            [only] if !tokens.is_empty() => self.machine.arena.bounded(only.rest, self.budget)?,
            _ => None,
        };
        for &t in tokens {
            if let Some(bounded) = &bounded {
                match self.machine.arena.fits(bounded, self.vocab.token(t), self.budget)? {
                    Some(true) => continue,
                    Some(false) => {
                        out.push(t);
                        continue;
                    }
                    None => {}
                }
            }
            match self.try_token(start, t)? {
                DEAD => out.push(t),
                state if self.machine.is_unsure(state) => unsure.push(t),
                _ => {}
            }
        }
        Ok((out, unsure))
    }

    /// Makes room in the table of byte states, whose numbers then hold until the mask is made.
    pub(super) fn begin(&mut self) {
        self.machine.table.refresh();
        self.local.enter_epoch(self.machine.table.epoch);
    }

    /// The mask of one head of a closure.
    fn head(&mut self, head: Head) -> Answer<Draft> {
        // the mask of a union is the union of the masks
        let mut all = Draft::default();
        let mut others: SmallVec<[Id; 8]> = SmallVec::new();
        for rest in self.machine.arena.branches(head.rest) {
            let led = if self.machine.careful { None } else { self.machine.arena.led_by(rest, blank_bytes()) };
            let Some((w, x)) = led else {
                others.push(rest);
                continue;
            };
            let after = Head { rest: x, ..head };
            let after = if self.machine.arena.nullable(x) {
                let closure = self.machine.close(&[after], self.budget)?;
                if closure.is_open() {
                    return Ok(None);
                }
                closure.heads
            } else {
                Heads::from_slice(&[after])
            };
            let start = self.machine.closure_state(&after, self.budget)?;
            if self.machine.first(start, self.budget)?.and(blank_bytes()) != ByteSet::NONE {
                others.push(rest); // whitespace may go on in what follows
                continue;
            }
            let Some(part) = self.whitespace_then(w, start)? else { return Ok(None) };
            all.add(part, self.vocab.words());
            if !self.machine.arena.is_accept(x) {
                others.push(x);
            }
        }
        let rest = self.machine.arena.alt(&others);
        if rest != EMPTY {
            let Some(part) = self.without_whitespace(Head { rest, ..head })? else { return Ok(None) };
            all.add(part, self.vocab.words());
        }
        Ok(Some(all))
    }

    /// The mask of a head whose leading whitespace is split off: by the first strategy that fits.
    fn without_whitespace(&mut self, head: Head) -> Answer<Draft> {
        let start = self.machine.closure_state(&[head], self.budget)?;
        let broad = !self.machine.careful && self.machine.first(start, self.budget)?.len() >= BROAD;
        if broad {
            for strategy in STRATEGIES {
                match strategy(self, head)? {
                    Attempt::Made(draft) => return Ok(Some(draft)),
                    Attempt::Deeper => return Ok(None),
                    Attempt::Declined => {}
                }
            }
        }
        let mut draft = Draft::default();
        if self.walk(&self.vocab.trie, start, &mut draft)?.is_none() {
            return Ok(None);
        }
        if broad && draft.unsure.is_empty() {
            draft = draft.with_base(self.vocab.words());
            self.keep_kin(head, &draft);
        }
        Ok(Some(draft))
    }
}
