//! The mask of a configuration.

use crate::budget::Budget;
use crate::error::Result;
use crate::regular::{ByteSet, EMPTY, Id};
use crate::stack::{CUT_OFF, DEAD, Head, Heads, Machine, Spot};
use crate::vocabulary::{Trie, Vocabulary, clear_bit, or_into, set_bit};

use super::inside::{Exits, InsideCache};
use super::looping::Looping;

/// Whether the mask is the configuration's, or depends on more of its stacks than was given.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    Complete,
    CutOff,
}

/// Residuals that at least so many bytes lead on are worth a shared, cached part.
const BROAD: usize = 20;

/// Up to so many tokens are tried one by one rather than by a walk over the whole vocabulary.
const FEW: usize = 20_000;

pub struct MaskMaker<'a> {
    pub machine: &'a mut Machine,
    pub vocab: &'a Vocabulary,
    pub cache: &'a InsideCache,
    pub budget: &'a mut Budget,
}

impl MaskMaker<'_> {
    /// Sets the bits of the tokens that `kernel` allows, EOS tokens included, in the cleared row `out`.
    pub fn fill(&mut self, kernel: &[Head], out: &mut [u32]) -> Result<Outcome> {
        self.machine.table.refresh();
        let closure = self.machine.close(kernel, self.budget)?;
        if closure.cut_off {
            return Ok(Outcome::CutOff);
        }
        if closure.accepting {
            self.vocab.eos.iter().for_each(|&t| set_bit(out, t));
        }
        for &head in &closure.heads {
            if self.add_head(head, out)? == Outcome::CutOff {
                return Ok(Outcome::CutOff);
            }
        }
        Ok(Outcome::Complete)
    }

    fn add_head(&mut self, head: Head, out: &mut [u32]) -> Result<Outcome> {
        let row = *self.machine.arena.row(head.rest, self.budget)?;
        if row.iter().filter(|&&q| q != EMPTY).count() < BROAD {
            return self.walk_vocabulary(head, out);
        }
        let terminal = self.machine.arena.untag(head.rest);
        if let Some((x, position)) = terminal
            && Looping::of(&mut self.machine.arena, x, self.budget)?.is_some()
        {
            return self.add_terminal(x, position, head, out);
        }
        if let Some(rest) = self.base(head.rest, &row)? {
            return self.add_by_difference(
                head,
                Head {
                    rest,
                    stack: head.stack,
                },
                out,
            );
        }
        match terminal {
            Some((x, position)) => self.add_terminal(x, position, head, out),
            None => self.walk_vocabulary(head, out),
        }
    }

    fn walk_vocabulary(&mut self, head: Head, out: &mut [u32]) -> Result<Outcome> {
        self.walk(
            &self.vocab.trie,
            0,
            self.vocab.trie.nodes.len(),
            &Heads::from_slice(&[head]),
            out,
        )
    }

    /// The residual that most printable bytes lead to, where it is the inside of something that loops: "any key but
    /// these" is "any key" after the first byte that no such key has.
    fn base(&mut self, rest: Id, row: &[Id; 256]) -> Result<Option<Id>> {
        let printable = &row[0x20..0x7F];
        let mut candidate = (EMPTY, 0);
        for &q in printable {
            // majority vote (Boyer and Moore 1981)
            match candidate {
                (c, n) if c == q => candidate.1 = n + 1,
                (_, 0) => candidate = (q, 1),
                _ => candidate.1 -= 1,
            }
        }
        let q = candidate.0;
        if q == EMPTY
            || q == rest
            || printable.iter().filter(|&&r| r == q).count() * 2 < printable.len()
        {
            return Ok(None);
        }
        let Some((x, _)) = self.machine.arena.untag(q) else {
            return Ok(None);
        };
        let looping = Looping::of(&mut self.machine.arena, x, self.budget)?;
        Ok(looping.filter(|l| l.most.is_none()).map(|_| q))
    }

    /// One terminal, ending at one position: its shared part, and its ways out walked over what follows.
    fn add_terminal(
        &mut self,
        x: Id,
        position: u32,
        head: Head,
        out: &mut [u32],
    ) -> Result<Outcome> {
        let inside = self
            .cache
            .get(&mut self.machine.arena, x, self.vocab, self.budget)?;
        or_into(out, &inside.bits);
        let after = Head {
            rest: self.machine.accept(position),
            stack: head.stack,
        };
        match &inside.exits {
            Exits::Ends(trie) if trie.nodes.is_empty() => Ok(Outcome::Complete),
            Exits::Nodes(nodes) if nodes.is_empty() => Ok(Outcome::Complete),
            exits => {
                let follow = self.machine.close(&[after], self.budget)?;
                if follow.cut_off {
                    return Ok(Outcome::CutOff);
                }
                match exits {
                    _ if follow.heads.is_empty() => Ok(Outcome::Complete),
                    Exits::Ends(trie) => self.walk(trie, 0, trie.nodes.len(), &follow.heads, out),
                    Exits::Everywhere => self.cross_everywhere(head, &follow.heads, out),
                    Exits::Nodes(nodes) => {
                        for &n in nodes {
                            let end = self.vocab.trie.nodes[n as usize].end as usize;
                            let outcome = self.walk(
                                &self.vocab.trie,
                                n as usize + 1,
                                end,
                                &follow.heads,
                                out,
                            )?;
                            if outcome == Outcome::CutOff {
                                return Ok(outcome);
                            }
                        }
                        Ok(Outcome::Complete)
                    }
                }
            }
        }
    }

    /// Tokens that leave the terminal of `head` after some character: those that hold a byte of what follows.
    fn cross_everywhere(&mut self, head: Head, follow: &Heads, out: &mut [u32]) -> Result<Outcome> {
        let mut first = ByteSet::NONE;
        for h in follow {
            first = first.or(self.machine.arena.first(h.rest, self.budget)?);
        }
        let vocab = self.vocab;
        if first.iter().map(|b| vocab.holders(b).len()).sum::<usize>() > FEW {
            let start = self.machine.table.kernel(Heads::from_slice(&[head]));
            return self.walk_from(&vocab.trie, 0, vocab.trie.nodes.len(), start, out);
        }
        let start = self.machine.table.kernel(Heads::from_slice(&[head]));
        for t in first.iter().flat_map(|b| vocab.holders(b)) {
            let text = vocab.token(*t);
            self.budget.spend(text.len() as u64)?;
            let mut spot = start;
            for &b in text {
                spot = self.machine.go(spot, b, self.budget)?;
                if spot <= CUT_OFF {
                    break;
                }
            }
            match spot {
                DEAD => {}
                CUT_OFF => return Ok(Outcome::CutOff),
                _ => set_bit(out, *t),
            }
        }
        Ok(Outcome::Complete)
    }

    /// Walks nodes `from..to` of a trie, going on with the given heads, and sets the bits of the tokens that survive.
    fn walk(
        &mut self,
        trie: &Trie,
        from: usize,
        to: usize,
        start: &Heads,
        out: &mut [u32],
    ) -> Result<Outcome> {
        let start = self.machine.table.closure(start);
        self.walk_from(trie, from, to, start, out)
    }

    fn walk_from(
        &mut self,
        trie: &Trie,
        from: usize,
        to: usize,
        start: Spot,
        out: &mut [u32],
    ) -> Result<Outcome> {
        let Some(first) = trie.nodes.get(from) else {
            return Ok(Outcome::Complete);
        };
        let base = first.depth as usize;
        let mut levels: Vec<Spot> = vec![start];
        let mut i = from;
        while i < to {
            let node = &trie.nodes[i];
            self.budget.spend(1)?;
            let level = node.depth as usize - base;
            let spot = self.machine.go(levels[level], node.byte, self.budget)?;
            if spot <= CUT_OFF {
                if spot == CUT_OFF {
                    return Ok(Outcome::CutOff);
                }
                i = node.end as usize;
                continue;
            }
            trie.tokens_at(node).iter().for_each(|&t| set_bit(out, t));
            levels.truncate(level + 1);
            levels.push(spot);
            i += 1;
        }
        Ok(Outcome::Complete)
    }

    /// The mask of `head` as that of `base` patched where the two differ: both are walked in lockstep, and where
    /// they meet the rest is the same.
    fn add_by_difference(&mut self, head: Head, base: Head, out: &mut [u32]) -> Result<Outcome> {
        let mut bits = vec![0u32; out.len()];
        if self.add_head(base, &mut bits)? == Outcome::CutOff {
            return Ok(Outcome::CutOff);
        }
        let trie = &self.vocab.trie;
        let table = &mut self.machine.table;
        let start = (
            table.closure(&Heads::from_slice(&[head])),
            table.closure(&Heads::from_slice(&[base])),
        );
        let mut levels: Vec<(Spot, Spot)> = vec![start];
        let mut i = 0;
        while i < trie.nodes.len() {
            let node = &trie.nodes[i];
            self.budget.spend(1)?;
            let level = node.depth as usize - 1;
            let (ours, theirs) = levels[level];
            let ours = self.machine.go(ours, node.byte, self.budget)?;
            let theirs = self.machine.go(theirs, node.byte, self.budget)?;
            if ours == CUT_OFF || theirs == CUT_OFF {
                return Ok(Outcome::CutOff);
            }
            if ours == theirs {
                i = node.end as usize;
                continue;
            }
            for &t in trie.tokens_at(node) {
                if ours == DEAD {
                    clear_bit(&mut bits, t)
                } else {
                    set_bit(&mut bits, t)
                }
            }
            levels.truncate(level + 1);
            levels.push((ours, theirs));
            i += 1;
        }
        or_into(out, &bits);
        Ok(Outcome::Complete)
    }
}
