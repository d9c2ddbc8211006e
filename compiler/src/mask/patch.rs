//! Masks that are another's but for a few tokens: "any key but these" is a string's interior on most.

use std::sync::Arc;

use super::build::{BROAD, MANY, MaskMaker};
use super::classes::TokenClass;
use super::looping::Looping;
use super::row::Draft;
use crate::deep;
use crate::error::Result;
use crate::regular::{Arena, ByteSet, EMPTY, EPS, Form, Id};
use crate::stack::{CUT_OFF, DEAD, Head, Spot};
use crate::vocabulary::{NodeIndex, Trie};

/// Of the bytes that lead to one residual from half of the printable ones, one is among these, if not on purpose.
const PROBES: [u8; 6] = *b"z~Q7k!";

/// Walks in lockstep that have not ended after so many nodes will take as long as two walks.
const FAR: usize = 8192;

/// A mask as another one's patch.
pub(super) enum Patch {
    Made(Draft),
    /// The answer depends on more of a truncated stack.
    Deeper,
    /// The two do not meet soon.
    Apart,
}

/// "Any but these, or these" (any key but the declared ones, or one of those): a loop but for finitely many texts.
pub(super) struct Exclusion {
    /// The loop.
    base: Head,
    class: Arc<TokenClass>,
    /// Bytes of which the first in a text ends what the loop sees of it.
    changing: ByteSet,
    /// What is excluded and what is added: elsewhere the head is as its loop.
    texts: Vec<Id>,
}

impl MaskMaker<'_> {
    pub(super) fn exclusion(&mut self, head: Head) -> Result<Option<Exclusion>> {
        let mut texts = self.machine.arena.branches(head.rest).to_vec();
        let arena = &mut self.machine.arena;
        let mut found = None;
        for (i, &x) in texts.iter().enumerate() {
            if let Form::Then(part, tail) = arena.form(x)
                && let Some((all, excluded)) = arena.but_for_few(part)
            {
                found = Some((i, all, excluded, tail));
                break;
            }
        }
        let Some((i, all, excluded, tail)) = found else { return Ok(None) };
        let rest = arena.concat(all, tail);
        let base = Head { rest, ..head };
        let Some(looping) = Looping::of(self.machine, self.classes, base, self.budget)? else { return Ok(None) };
        texts.swap_remove(i);
        let (plain, changing) = (looping.plain.and(ByteSet::range(0, 127)), looping.changing);
        let arena = &self.machine.arena;
        if arena.nullable(rest)
            || looping.most.is_some()
            || self.vocab.holders_of_any(changing) > MANY
            || !texts.iter().all(|&x| arena.runs_into(x, plain, changing))
        {
            return Ok(None);
        }
        texts.extend(excluded);
        let class = self.classes.class(self.vocab, looping.plain, changing);
        Ok(Some(Exclusion { base, class, changing, texts }))
    }

    /// The mask of an exclusion. Plain tokens can be followed by something that is not excluded. So only tokens with a
    /// changing byte may differ, and of them only those that say a whole excluded or added text up to that byte.
    pub(super) fn patched_exclusion(&mut self, head: Head, exclusion: &Exclusion) -> Result<Patch> {
        let Some(mut draft) = self.base_draft(exclusion.base)? else { return Ok(Patch::Deeper) };
        let trie = exclusion.class.texts(self.vocab);
        let start = self.start(head, exclusion.base)?;
        let mut forks = Forks { trie, ending: exclusion.changing, path: Vec::new(), found: Vec::new() };
        if !exclusion.texts.iter().all(|&x| forks.find(&self.machine.arena, x, 0)) {
            return self.lockstep(trie, vec![(0, start)], draft);
        }
        forks.found.sort_unstable();
        forks.found.dedup();
        let mut todo = Vec::new();
        for (node, path) in forks.found {
            let mut pair = start;
            for byte in path {
                for spot in &mut pair {
                    *spot = self.machine.go(*spot, byte, self.budget)?;
                }
            }
            if pair.contains(&CUT_OFF) {
                return Ok(Patch::Deeper);
            } else if pair[0] != pair[1] {
                differ(trie, node, pair, &mut draft);
                todo.push((node, pair));
            }
        }
        self.lockstep(trie, todo, draft)
    }

    /// Whether, after the first byte, many others may follow; not so where keys begin of which each is known.
    pub(super) fn stays_broad(&mut self, head: Head) -> Result<bool> {
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
    pub(super) fn base(&mut self, head: Head) -> Result<Option<Head>> {
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

    /// The mask of `head` as that of its base where they differ.
    pub(super) fn patched(&mut self, head: Head, base: Head) -> Result<Patch> {
        let Some(draft) = self.base_draft(base)? else { return Ok(Patch::Deeper) };
        let start = self.start(head, base)?;
        self.lockstep(&self.vocab.trie, vec![(0, start)], draft)
    }

    /// The mask of a head that others are patches of. `None`: it depends on more of a truncated stack.
    fn base_draft(&mut self, base: Head) -> Result<Option<Draft>> {
        if let Some(known) = self.bases.get(&base) {
            return Ok(Some(known.clone()));
        }
        let found = self.head(base)?;
        if let Some(draft) = &found {
            self.bases.insert(base, draft.clone());
        }
        Ok(found)
    }

    fn start(&mut self, head: Head, base: Head) -> Result<[Spot; 2]> {
        let ours = self.machine.spot_of_closure(&[head], self.budget)?;
        Ok([ours, self.machine.spot_of_closure(&[base], self.budget)?])
    }

    /// Patches the draft, which is of the second of each two spots, so that it is of the first: where the two meet, the
    /// rest is the same.
    fn lockstep(&mut self, trie: &Trie, mut todo: Vec<(NodeIndex, [Spot; 2])>, mut draft: Draft) -> Result<Patch> {
        let mut visits = 0;
        while let Some((node, [ours, theirs])) = todo.pop() {
            let first = self.machine.first(ours, self.budget)?.or(self.machine.first(theirs, self.budget)?);
            if visits > FAR {
                return Ok(Patch::Apart);
            }
            let mut rest = trie.child_bytes(node).and(first);
            while let Some(byte) = rest.first() {
                self.budget.spend(1)?;
                let (our_bytes, ours) = self.machine.go_class(ours, byte, self.budget)?;
                let (their_bytes, theirs) = self.machine.go_class(theirs, byte, self.budget)?;
                if ours == CUT_OFF || theirs == CUT_OFF {
                    return Ok(Patch::Deeper);
                }
                let class = our_bytes.and(their_bytes).and(rest);
                rest = rest.minus(class);
                if ours == theirs {
                    continue;
                }
                for (_, child) in trie.children(node, class) {
                    visits += 1;
                    differ(trie, child, [ours, theirs], &mut draft);
                    if !trie.is_leaf(child) {
                        todo.push((child, [ours, theirs]));
                    }
                }
            }
        }
        draft.clear.sort_unstable();
        draft.set.retain(|t| draft.clear.binary_search(t).is_err());
        Ok(Patch::Made(draft))
    }
}

/// Patches the tokens that end at a node.
fn differ(trie: &Trie, node: NodeIndex, spots: [Spot; 2], draft: &mut Draft) {
    match spots {
        [DEAD, _] => draft.clear.extend_from_slice(trie.tokens_at(node)),
        [_, DEAD] => draft.set.extend_from_slice(trie.tokens_at(node)),
        _ => {}
    }
}

/// Where texts leave a loop in a trie: behind the first ending byte of each.
struct Forks<'a> {
    trie: &'a Trie,
    ending: ByteSet,
    path: Vec<u8>,
    /// Nodes, with the bytes that lead to them.
    found: Vec<(NodeIndex, Vec<u8>)>,
}

impl Forks<'_> {
    /// Follows the texts of `x` from a node. `false`: it is not of a form to read texts from.
    fn find(&mut self, arena: &Arena, x: Id, node: NodeIndex) -> bool {
        let (set, rest) = match arena.form(x) {
            Form::Byte(set, rest) => (set, Some(rest)),
            Form::Union(n) => return (0..n).all(|i| deep(|| self.find(arena, arena.operand(x, i), node))),
            _ if x == EPS => (self.ending, None),
            _ => return false,
        };
        for (byte, child) in self.trie.children(node, set) {
            self.path.push(byte);
            if self.ending.contains(byte) {
                self.found.push((child, self.path.clone()));
            }
            let follows = match rest {
                Some(rest) if !self.ending.contains(byte) => deep(|| self.find(arena, rest, child)),
                _ => true,
            };
            self.path.pop();
            if !follows {
                return false;
            }
        }
        true
    }
}
