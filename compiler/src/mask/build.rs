//! The mask of a configuration.

use crate::budget::Budget;
use crate::error::Result;
use crate::regular::{EMPTY, Id};
use crate::stack::{CUT_OFF, DEAD, Head, Heads, Machine, Spot};
use crate::vocabulary::{Trie, Vocabulary, get_bit};

use super::classes::ClassCache;
use super::looping::{Looping, characters};
use super::row::{Draft, Row};

/// Residuals that fewer bytes lead on allow few tokens: a plain walk finds them.
const BROAD: usize = 20;

/// Sorting out the ends of more tokens than this costs more than a walk.
const MANY: usize = 16_384;

pub struct MaskMaker<'a> {
    pub machine: &'a mut Machine,
    pub vocab: &'a Vocabulary,
    pub classes: &'a ClassCache,
    pub budget: &'a mut Budget,
}

/// `None`: the answer depends on more of a truncated stack.
type Answer<T> = Result<Option<T>>;

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
        let start = self.machine.table.kernel(kernel.into());
        // a counter of characters: of the tokens made of these alone, it is known without a walk
        let counter = match kernel {
            [head] => Looping::of(self.machine, *head, self.budget)?,
            _ => None,
        };
        let counter = counter.filter(|c| self.vocab.holders_of_any(c.changing) <= MANY);
        let counter = counter.and_then(|c| Some((self.classes.get(self.vocab, c.plain, c.changing), c.most?)));
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

    fn head(&mut self, head: Head) -> Answer<Draft> {
        let row = *self.machine.arena.row(head.rest, self.budget)?;
        if row.iter().filter(|&&q| q != EMPTY).count() >= BROAD {
            if let Some(looping) = Looping::of(self.machine, head, self.budget)?
                && self.vocab.holders_of_any(looping.changing) <= MANY
            {
                return self.looping(head, &looping);
            }
            if let Some(base) = self.base(head, &row)? {
                return self.difference(head, base);
            }
        }
        let mut draft = Draft::default();
        let start = self.machine.table.closure(&Heads::from_slice(&[head]));
        Ok(self.walk(&self.vocab.trie, start, &mut draft.set)?.map(|()| draft))
    }

    /// Plain tokens are allowed, whatever follows; of the others the ends are walked.
    fn looping(&mut self, head: Head, looping: &Looping) -> Answer<Draft> {
        let class = self.classes.get(self.vocab, looping.plain, looping.changing);
        let start = self.machine.table.kernel(Heads::from_slice(&[head]));
        let mut draft = Draft::default();
        let Some(most) = looping.most else {
            draft.base = Some(class.plain.clone());
            return Ok(self.walk(&class.ends, start, &mut draft.set)?.map(|()| draft));
        };
        let mut bits = class.plain.to_vec();
        self.vocab.exclude_longer(most, &mut bits);
        draft.base = Some(bits.into());
        for &t in &class.others {
            match self.try_token(start, t)? {
                CUT_OFF => return Ok(None),
                DEAD => {}
                _ => draft.set.push(t),
            }
        }
        Ok(Some(draft))
    }

    /// Where one token leads.
    fn try_token(&mut self, start: Spot, token: u32) -> Result<Spot> {
        let text = self.vocab.token(token);
        self.budget.spend(text.len() as u64)?;
        let mut spot = if text.is_empty() { DEAD } else { start };
        for &b in text {
            spot = self.machine.go(spot, b, self.budget)?;
            if spot <= CUT_OFF {
                break;
            }
        }
        Ok(spot)
    }

    /// The head that most printable bytes lead to, where it loops: "any key but these" is "any key" after the first
    /// byte that no such key has.
    fn base(&mut self, head: Head, row: &[Id; 256]) -> Result<Option<Head>> {
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
        let rest = candidate.0;
        if rest == EMPTY
            || rest == head.rest
            || self.machine.arena.nullable(rest)
            || printable.iter().filter(|&&r| r == rest).count() * 2 < printable.len()
        {
            return Ok(None);
        }
        let base = Head { rest, ..head };
        let looping = Looping::of(self.machine, base, self.budget)?;
        let good = |l: &Looping| l.most.is_none() && self.vocab.holders_of_any(l.changing) <= MANY;
        Ok(looping.filter(good).map(|_| base))
    }

    /// The mask of `head` as that of `base` patched where the two differ: both are walked in lockstep, and where they
    /// meet the rest is the same.
    fn difference(&mut self, head: Head, base: Head) -> Answer<Draft> {
        let Some(mut draft) = self.head(base)? else { return Ok(None) };
        let table = &mut self.machine.table;
        let start = [head, base].map(|h| table.closure(&Heads::from_slice(&[h])));
        let trie = &self.vocab.trie;
        let mut levels = vec![start];
        let mut i = 0;
        while i < trie.nodes.len() {
            let node = &trie.nodes[i];
            self.budget.spend(1)?;
            let level = node.depth as usize - 1;
            let ours = self.machine.go(levels[level][0], node.byte, self.budget)?;
            let theirs = self.machine.go(levels[level][1], node.byte, self.budget)?;
            if ours == CUT_OFF || theirs == CUT_OFF {
                return Ok(None);
            }
            if ours == theirs {
                i = node.end as usize;
                continue;
            }
            let tokens = trie.tokens_at(node);
            match (ours, theirs) {
                (DEAD, _) => draft.clear.extend_from_slice(tokens),
                (_, DEAD) => draft.set.extend_from_slice(tokens),
                _ => {}
            }
            levels.truncate(level + 1);
            levels.push([ours, theirs]);
            i += 1;
        }
        draft.clear.sort_unstable();
        draft.set.retain(|t| draft.clear.binary_search(t).is_err());
        Ok(Some(draft))
    }

    /// Walks a trie and adds the tokens that survive.
    fn walk(&mut self, trie: &Trie, start: Spot, out: &mut Vec<u32>) -> Answer<()> {
        let mut levels: Vec<Spot> = vec![start];
        let mut i = 0;
        while i < trie.nodes.len() {
            let node = &trie.nodes[i];
            self.budget.spend(1)?;
            let level = node.depth as usize - 1;
            let spot = self.machine.go(levels[level], node.byte, self.budget)?;
            if spot <= CUT_OFF {
                if spot == CUT_OFF {
                    return Ok(None);
                }
                i = node.end as usize;
                continue;
            }
            out.extend_from_slice(trie.tokens_at(node));
            levels.truncate(level + 1);
            levels.push(spot);
            i += 1;
        }
        Ok(Some(()))
    }
}
