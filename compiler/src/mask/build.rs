//! The mask of a configuration.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::budget::Budget;
use crate::error::Result;
use crate::regular::{Arena, ByteSet, EMPTY, Form, Id, Region};
use crate::stack::{CUT_OFF, DEAD, Head, Heads, Machine, Spot};
use crate::vocabulary::{Name, NodeIndex, Trie, Vocabulary, get_bit};

use super::blanks::blank_bytes;
use super::classes::{Branch, ClassCache, Ends, TokenClass};
use super::looping::{Looping, characters, spot_loop};
use super::region::region;
use super::row::{Draft, Row};

/// Residuals that fewer bytes lead on allow few tokens: a plain walk finds them.
const BROAD: u32 = 20;

/// Of the bytes that lead to one residual from half of the printable ones, one is among these, if not on purpose.
const PROBES: [u8; 6] = *b"z~Q7k!";

/// Walks in lockstep that have not ended after so many nodes will take as long as two walks.
const FAR: usize = 8192;

/// A walk that has gone below so many nodes looks for whole branches that it may take at once.
const LONG: usize = 1024;

/// Branches of fewer tokens than this are walked.
const BULK: usize = 64;

/// Sorting out the ends of more tokens than this costs more than a walk.
const MANY: usize = 16_384;

pub struct MaskMaker<'a> {
    pub machine: &'a mut Machine,
    pub vocab: &'a Vocabulary,
    pub classes: &'a ClassCache,
    /// Masks that others are patches of.
    pub bases: &'a mut FxHashMap<Head, Draft>,
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

    fn head(&mut self, head: Head) -> Answer<Draft> {
        // the mask of a union is the union of the masks
        let mut all = Draft::default();
        let mut others: Vec<Id> = Vec::new();
        for rest in self.machine.arena.branches(head.rest) {
            let Some((w, x)) = self.machine.arena.led_by(rest, blank_bytes()) else {
                others.push(rest);
                continue;
            };
            let after = Head { rest: x, ..head };
            let nullable = self.machine.arena.nullable(x);
            let after = if nullable {
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
            if !nullable {
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
            if let Some((base, class)) = self.exclusion(head)?
                && let Some(answer) = self.difference(head, base, class.texts(self.vocab))?
            {
                return Ok(answer);
            }
            if self.stays_broad(head)? {
                if let Some(region) = region(&mut self.machine.arena, head.rest, self.budget)?
                    && self.vocab.holders_of_any(region.changing) <= MANY
                {
                    return self.region(head, region);
                }
                if let Some(base) = self.base(head)?
                    && let Some(answer) = self.difference(head, base, &self.vocab.trie)?
                {
                    return Ok(answer);
                }
            }
        }
        let mut draft = Draft::default();
        let start = self.machine.spot_of_closure(&[head], self.budget)?;
        Ok(self.walk(&self.vocab.trie, start, &mut draft.set)?.map(|()| draft))
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

    /// Plain tokens are allowed, whatever follows; of the others the ends are walked.
    fn looping(&mut self, head: Head, looping: &Looping) -> Answer<Draft> {
        let class = self.classes.class(self.vocab, looping.plain, looping.changing);
        let start = self.machine.spot(&[head], self.budget)?;
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

    /// Plain tokens are allowed, wherever they lead; the others are walked.
    fn region(&mut self, head: Head, region: Region) -> Answer<Draft> {
        let class = self.classes.class(self.vocab, region.plain, region.changing);
        let start = self.machine.spot_of_closure(&[head], self.budget)?;
        let mut draft = Draft { base: Some(class.plain.clone()), ..Draft::default() };
        Ok(self.walk(class.texts(self.vocab), start, &mut draft.set)?.map(|()| draft))
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

    /// If a head is "any but these, or these" (any key but the declared ones, or one of those): its loop, and the class
    /// of the tokens on which the two may differ.
    fn exclusion(&mut self, head: Head) -> Result<Option<(Head, Arc<TokenClass>)>> {
        let branches = self.machine.arena.branches(head.rest);
        let arena = &mut self.machine.arena;
        let all_but = |arena: &Arena, x: Id| match arena.form(x) {
            Form::Then(part, tail) => arena.but_for_few(part).map(|all| (all, tail)),
            _ => None,
        };
        let Some((i, all, tail)) =
            (0..branches.len()).find_map(|i| all_but(arena, branches[i]).map(|(all, tail)| (i, all, tail)))
        else {
            return Ok(None);
        };
        let rest = arena.concat(all, tail);
        let base = Head { rest, ..head };
        let Some(looping) = Looping::of(self.machine, self.classes, base, self.budget)? else { return Ok(None) };
        let plain = looping.plain.and(ByteSet::range(0, 127));
        let arena = &self.machine.arena;
        let led = |x: Id| arena.runs_into(x, plain, looping.changing);
        if arena.nullable(rest)
            || looping.most.is_some()
            || self.vocab.holders_of_any(looping.changing) > MANY
            || !branches.iter().enumerate().all(|(k, &x)| k == i || led(x))
        {
            return Ok(None);
        }
        Ok(Some((base, self.classes.class(self.vocab, looping.plain, looping.changing))))
    }

    /// Whether, after the first byte, many others may follow; not so where keys begin of which each is known.
    fn stays_broad(&mut self, head: Head) -> Result<bool> {
        for probe in PROBES {
            let (_, rest) = self.machine.arena.edge(head.rest, probe, self.budget)?;
            if rest != EMPTY && self.machine.arena.first(rest, self.budget)?.len() >= BROAD {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The head that most printable bytes lead to, where it loops: "any key but these" is "any key" after the first
    /// byte that no such key has.
    fn base(&mut self, head: Head) -> Result<Option<Head>> {
        let printable = ByteSet::range(0x20, 0x7E);
        let mut found = None;
        for probe in PROBES {
            let (set, rest) = self.machine.arena.edge(head.rest, probe, self.budget)?;
            if set.and(printable).len() * 2 >= printable.len() {
                found = Some(rest);
                break;
            }
        }
        let Some(rest) = found.filter(|&rest| rest != head.rest && !self.machine.arena.nullable(rest)) else {
            return Ok(None);
        };
        let base = Head { rest, ..head };
        let looping = Looping::of(self.machine, self.classes, base, self.budget)?;
        let good = |l: &Looping| l.most.is_none() && self.vocab.holders_of_any(l.changing) <= MANY;
        Ok(looping.filter(good).map(|_| base))
    }

    /// The mask of `head` as that of `base` patched where the two differ: both are walked in lockstep, and where they
    /// meet the rest is the same. `None`: they do not meet soon.
    fn difference(&mut self, head: Head, base: Head, trie: &Trie) -> Result<Option<Option<Draft>>> {
        let mut draft = match self.bases.get(&base) {
            Some(known) => known.clone(),
            None => {
                let Some(found) = self.head(base)? else { return Ok(Some(None)) };
                self.bases.insert(base, found.clone());
                found
            }
        };
        let mut visits = 0;
        let mut start = [DEAD; 2];
        for (spot, head) in start.iter_mut().zip([head, base]) {
            *spot = self.machine.spot_of_closure(&[head], self.budget)?;
        }
        let mut todo: Vec<(NodeIndex, [Spot; 2])> = vec![(0, start)];
        while let Some((node, [ours, theirs])) = todo.pop() {
            let first = self.machine.first(ours, self.budget)?.or(self.machine.first(theirs, self.budget)?);
            if visits > FAR {
                return Ok(None);
            }
            let mut rest = trie.child_bytes(node).and(first);
            while let Some(byte) = rest.first() {
                self.budget.spend(1)?;
                let (our_bytes, ours) = self.machine.go_class(ours, byte, self.budget)?;
                let (their_bytes, theirs) = self.machine.go_class(theirs, byte, self.budget)?;
                if ours == CUT_OFF || theirs == CUT_OFF {
                    return Ok(Some(None));
                }
                let class = our_bytes.and(their_bytes).and(rest);
                rest = rest.minus(class);
                if ours == theirs {
                    continue;
                }
                for (_, child) in trie.children(node, class) {
                    visits += 1;
                    match (ours, theirs) {
                        (DEAD, _) => draft.clear.extend_from_slice(trie.tokens_at(child)),
                        (_, DEAD) => draft.set.extend_from_slice(trie.tokens_at(child)),
                        _ => {}
                    }
                    if !trie.is_leaf(child) {
                        todo.push((child, [ours, theirs]));
                    }
                }
            }
        }
        draft.clear.sort_unstable();
        draft.set.retain(|t| draft.clear.binary_search(t).is_err());
        Ok(Some(Some(draft)))
    }

    /// Walks a trie and adds the tokens that survive.
    fn walk(&mut self, trie: &Trie, start: Spot, out: &mut Vec<u32>) -> Answer<()> {
        self.walk_on(trie, vec![(0, start)], out)
    }

    /// The tokens below a node that are not plain, given that plain bytes lead from the spot `here` to one that loops on
    /// them (mostly the same). What begins with a changing byte is left to do.
    fn leave(
        &mut self,
        (trie, node): (&Trie, NodeIndex),
        branch: &Branch,
        (here, looping, changing): (Spot, Spot, ByteSet),
        (todo, out): (&mut Vec<(NodeIndex, Spot)>, &mut Vec<u32>),
    ) -> Answer<()> {
        for byte in changing.iter() {
            if let Some(child) = trie.child(node, byte) {
                let next = self.machine.go(here, byte, self.budget)?;
                if next == CUT_OFF {
                    return Ok(None);
                } else if next != DEAD {
                    out.extend_from_slice(trie.tokens_at(child));
                    todo.push((child, next));
                }
            }
            match branch.ends(trie, byte) {
                Ends::Nodes([]) => {}
                Ends::Nodes(nodes) => {
                    let next = self.machine.go(looping, byte, self.budget)?;
                    if next == CUT_OFF {
                        return Ok(None);
                    } else if next != DEAD {
                        for &node in nodes {
                            out.extend_from_slice(trie.tokens_at(node));
                            todo.push((node, next));
                        }
                    }
                }
                Ends::Merged(ends) => {
                    if self.walk(ends, looping, out)?.is_none() {
                        return Ok(None);
                    }
                }
            }
        }
        Ok(Some(()))
    }

    /// Goes on with a walk that has come to these nodes.
    fn walk_on(&mut self, trie: &Trie, mut todo: Vec<(NodeIndex, Spot)>, out: &mut Vec<u32>) -> Answer<()> {
        let mut plain: FxHashMap<Spot, ByteSet> = FxHashMap::default();
        let mut visits = 0;
        while let Some((node, spot)) = todo.pop() {
            if let Some((bytes, tokens)) = trie.below(node)
                && tokens.len() >= BULK
            {
                if let Some((plain, changing)) = spot_loop(self.machine, self.classes, spot, self.budget)? {
                    if bytes.minus(plain.and(ByteSet::range(0, 127))).is_empty() {
                        out.extend_from_slice(tokens);
                        continue;
                    }
                    if let Some(name) = trie.name
                        && self.vocab.later_holders_of_any(changing) <= MANY
                    {
                        let branch = self.classes.branch((name, trie), node, plain);
                        out.extend_from_slice(&branch.plain);
                        let spots = (spot, spot, changing);
                        if self.leave((trie, node), &branch, spots, (&mut todo, out))?.is_none() {
                            return Ok(None);
                        }
                        continue;
                    }
                }
                if visits > LONG && bytes.minus(self.plain(spot, &mut plain)?).is_empty() {
                    out.extend_from_slice(tokens);
                    continue;
                }
            }
            let first = self.machine.first(spot, self.budget)?;
            let from = todo.len();
            for (byte, child) in trie.children(node, first) {
                self.budget.spend(1)?;
                let spot = self.machine.go(spot, byte, self.budget)?;
                if spot <= CUT_OFF {
                    if spot == CUT_OFF {
                        return Ok(None);
                    }
                    continue;
                }
                out.extend_from_slice(trie.tokens_at(child));
                if !trie.is_leaf(child) {
                    todo.push((child, spot));
                }
            }
            visits += todo.len() - from;
            todo[from..].reverse(); // what lies first in memory goes first
        }
        Ok(Some(()))
    }

    /// The ASCII bytes that may follow a spot in any number and order.
    fn plain(&mut self, spot: Spot, known: &mut FxHashMap<Spot, ByteSet>) -> Result<ByteSet> {
        if let Some(&plain) = known.get(&spot) {
            return Ok(plain);
        }
        let mut plain = ByteSet::NONE;
        if self.machine.first(spot, self.budget)?.len() >= BROAD
            && let Some(head) = self.machine.only_head(spot, self.budget)?
            && let Some(region) = region(&mut self.machine.arena, head.rest, self.budget)?
        {
            plain = region.plain.and(ByteSet::range(0, 127));
        }
        known.insert(spot, plain);
        Ok(plain)
    }
}
