//! The mask of a configuration.

use crate::budget::Budget;
use crate::error::Result;
use crate::regular::{EMPTY, Id};
use crate::stack::{Head, Heads, Machine};
use crate::vocabulary::{Trie, Vocabulary, clear_bit, or_into, set_bit};

use super::inside::{Exits, InsideCache, self_loop};

/// Whether the mask is the configuration's, or depends on more of its stacks than was given.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    Complete,
    CutOff,
}

/// Residuals that at least so many bytes lead on are worth a shared, cached part.
const BROAD: usize = 64;

pub struct MaskMaker<'a> {
    pub machine: &'a mut Machine,
    pub vocab: &'a Vocabulary,
    pub cache: &'a InsideCache,
    pub budget: &'a mut Budget,
}

impl MaskMaker<'_> {
    /// Sets the bits of the tokens that `kernel` allows, EOS tokens included, in the cleared row `out`.
    pub fn fill(&mut self, kernel: &[Head], out: &mut [u32]) -> Result<Outcome> {
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
            return self.walk(&self.vocab.trie, 0, self.vocab.trie.nodes.len(), &[head], out);
        }
        if let Some(base) = self.base(head.rest, &row)? {
            let base = Head { rest: base, stack: head.stack };
            return self.add_by_difference(head, base, out);
        }
        match self.machine.arena.untag(head.rest) {
            Some((x, position)) => self.add_terminal(x, position, head, out),
            None => self.walk(&self.vocab.trie, 0, self.vocab.trie.nodes.len(), &[head], out),
        }
    }

    /// The residual that most bytes lead to, where it is the inside of something that loops: "any key but these"
    /// is "any key" after the first byte that no such key has.
    fn base(&mut self, rest: Id, row: &[Id; 256]) -> Result<Option<Id>> {
        let candidate = row[0x20..0x7F].iter().copied().filter(|&q| q != EMPTY && q != rest).max_by_key(|&q| {
            row[0x20..0x7F].iter().filter(|&&r| r == q).count()
        });
        let Some(q) = candidate else { return Ok(None) };
        if row[0x20..0x7F].iter().filter(|&&r| r == q).count() < 24 {
            return Ok(None);
        }
        let Some((x, _)) = self.machine.arena.untag(q) else { return Ok(None) };
        Ok(self_loop(&mut self.machine.arena, x, self.budget)?.map(|_| q))
    }

    /// One terminal, ending at one position: its shared part, and its ways out walked over what follows.
    fn add_terminal(&mut self, x: Id, position: u32, head: Head, out: &mut [u32]) -> Result<Outcome> {
        let inside = self.cache.get(&mut self.machine.arena, x, self.vocab, self.budget)?;
        or_into(out, &inside.bits);
        let after = Head { rest: self.machine.accept(position), stack: head.stack };
        match &inside.exits {
            Exits::Ends(trie) if trie.nodes.is_empty() => Ok(Outcome::Complete),
            Exits::Nodes(nodes) if nodes.is_empty() => Ok(Outcome::Complete),
            exits => {
                let follow = self.machine.close(&[after], self.budget)?;
                if follow.cut_off {
                    return Ok(Outcome::CutOff);
                }
                match exits {
                    Exits::Ends(trie) => self.walk(trie, 0, trie.nodes.len(), &follow.heads, out),
                    Exits::Nodes(nodes) => {
                        for &n in nodes {
                            let end = self.vocab.trie.nodes[n as usize].end as usize;
                            let outcome = self.walk(&self.vocab.trie, n as usize + 1, end, &follow.heads, out)?;
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

    /// Walks nodes `from..to` of a trie, starting from a closure, and sets the bits of the tokens that survive.
    fn walk(&mut self, trie: &Trie, from: usize, to: usize, start: &[Head], out: &mut [u32]) -> Result<Outcome> {
        let Some(first) = trie.nodes.get(from) else { return Ok(Outcome::Complete) };
        let base = first.depth as usize;
        let mut levels: Vec<Heads> = vec![start.into()];
        let mut i = from;
        while i < to {
            let node = &trie.nodes[i];
            self.budget.spend(1)?;
            let level = node.depth as usize - base;
            let kernel = self.machine.step(&levels[level], node.byte, self.budget)?;
            if kernel.is_empty() {
                i = node.end as usize;
                continue;
            }
            trie.tokens_at(node).iter().for_each(|&t| set_bit(out, t));
            if node.end as usize > i + 1 {
                let Some(closure) = self.followed(kernel)? else { return Ok(Outcome::CutOff) };
                levels.truncate(level + 1);
                levels.push(closure);
            }
            i += 1;
        }
        Ok(Outcome::Complete)
    }

    /// The closure of a kernel in the middle of a token; `None` if it is cut off.
    fn followed(&mut self, kernel: Heads) -> Result<Option<Heads>> {
        if kernel.iter().all(|h| !self.machine.arena.nullable(h.rest)) {
            return Ok(Some(kernel));
        }
        let closure = self.machine.close(&kernel, self.budget)?;
        Ok(if closure.cut_off { None } else { Some(closure.heads) })
    }

    /// The mask of `head` as that of `base` patched where the two differ: both are walked in lockstep, and where
    /// they meet the rest is the same.
    fn add_by_difference(&mut self, head: Head, base: Head, out: &mut [u32]) -> Result<Outcome> {
        let mut bits = vec![0u32; out.len()];
        if self.add_head(base, &mut bits)? == Outcome::CutOff {
            return Ok(Outcome::CutOff);
        }
        let trie = &self.vocab.trie;
        let mut levels: Vec<(Heads, Heads)> = vec![(Heads::from_slice(&[head]), Heads::from_slice(&[base]))];
        let mut i = 0;
        while i < trie.nodes.len() {
            let node = &trie.nodes[i];
            self.budget.spend(1)?;
            let level = node.depth as usize - 1;
            let ours = self.machine.step(&levels[level].0, node.byte, self.budget)?;
            let theirs = self.machine.step(&levels[level].1, node.byte, self.budget)?;
            if ours == theirs {
                i = node.end as usize;
                continue;
            }
            for &t in trie.tokens_at(node) {
                if ours.is_empty() { clear_bit(&mut bits, t) } else { set_bit(&mut bits, t) }
            }
            if node.end as usize > i + 1 {
                let (Some(ours), Some(theirs)) = (self.followed(ours)?, self.followed(theirs)?) else {
                    return Ok(Outcome::CutOff);
                };
                levels.truncate(level + 1);
                levels.push((ours, theirs));
            }
            i += 1;
        }
        or_into(out, &bits);
        Ok(Outcome::Complete)
    }
}
