//! Puts masks together from steps.

use std::sync::Arc;

use rustc_hash::FxHashSet;

use super::steps::{Behind, LARGE, Place, VOCABULARY};
use super::union::Union;
use crate::byteset::ByteSet;
use crate::error::Result;
use crate::mask::maker::{Answer, MaskMaker};
use crate::mask::row::Draft;
use crate::recursion::deep;
use crate::regular::Id;
use crate::stack::{Closure, DEAD, Head, Stack, UNSURE};
use crate::vocabulary::NodeIndex;

/// The steps that a mask has followed already: trie, residual and continuation.
pub(super) type Followed = FxHashSet<(Place, Id, Stack)>;

impl MaskMaker<'_> {
    /// The mask of the heads of a closure.
    pub(in crate::mask) fn lexical_mask(&mut self, heads: &[Head]) -> Answer<Draft> {
        let mut all = Union::default();
        let mut followed = std::mem::take(&mut self.local.steps.followed); // to grow anew for each mask takes time
        let whole = self.follow(heads, VOCABULARY, &mut followed, &mut all);
        followed.clear();
        self.local.steps.followed = followed;
        Ok(whole?.map(|()| all.draft()))
    }

    /// Adds the tokens of a trie that heads allow.
    fn follow(&mut self, heads: &[Head], place: Place, followed: &mut Followed, out: &mut Union) -> Answer<()> {
        let starts = self.trie(place).child_bytes(0);
        for &head in heads {
            if self.leaves_much_open(out.unsure.len() / 4) {
                out.unsure.sort_unstable();
                out.unsure.dedup();
                if self.leaves_much_open(out.unsure.len()) {
                    return Ok(None);
                }
            }
            if head.is_anything() {
                out.unsure.extend_from_slice(self.trie(place).tokens());
                continue;
            }
            for &(rest, first) in self.alternatives(head.rest)?.iter() {
                if !first.and(starts).is_empty()
                    && followed.insert((place, rest, head.stack))
                    && deep(|| self.follow_one(Head { rest, ..head }, place, followed, out))?.is_none()
                {
                    return Ok(None);
                }
            }
        }
        Ok(Some(()))
    }

    fn follow_one(&mut self, head: Head, place: Place, followed: &mut Followed, out: &mut Union) -> Answer<()> {
        let step = match self.machine.column(head) {
            None => self.step(place, head.rest)?,
            Some(column) => match self.line_step(place, head.rest, column)? {
                Some(step) => step,
                None => return self.follow_bytes(head, place, out),
            },
        };
        self.budget.spend(1 + (step.reached.len() + step.ends.len()) as u64)?;
        for (after, draft) in &step.reached {
            if head.stack == UNSURE {
                out.add_unsure(draft);
            } else if !self.machine.careful || self.machine.lives(Head { rest: *after, ..head }, self.budget)? {
                out.add(draft);
            }
        }
        for end in &step.ends {
            let stack = end.column.map_or(head.stack, |column| self.machine.at_column(head.stack, column));
            let known = self.after(Head { stack, ..head }, end.end)?;
            let (after, first) = &*known;
            if let Some(draft) = self.by_bytes(&after.heads, &end.behind, *first)? {
                out.add_less(draft, &end.except);
                continue;
            }
            let Some(behind) = self.behind(&end.behind, *first)? else { continue };
            if end.except.is_empty() {
                if self.follow(&after.heads, behind, followed, out)?.is_none() {
                    return Ok(None);
                }
                continue;
            }
            let mut apart = Union::default();
            if self.follow(&after.heads, behind, &mut Followed::default(), &mut apart)?.is_none() {
                return Ok(None);
            }
            out.add_without(apart, &end.except);
        }
        Ok(Some(()))
    }

    /// The same, followed byte by byte.
    fn follow_bytes(&mut self, head: Head, place: Place, out: &mut Union) -> Answer<()> {
        let state = self.machine.closure_state(&[head], self.budget)?;
        let mut draft = Draft::default();
        let walked = self.walk(&self.trie(place), state, &mut draft)?;
        out.add(&draft);
        out.unsure.extend_from_slice(&draft.unsure);
        Ok(walked)
    }

    /// The tokens that heads allow behind an end, followed byte by byte: where each letter is a lexeme, one letter leads
    /// where the others do, which takes less to follow than to make a trie of all that tokens have behind each letter.
    fn by_bytes(&mut self, heads: &[Head], behind: &Behind, first: ByteSet) -> Result<Option<Draft>> {
        let Behind::From(place, nodes) = behind else { return Ok(None) };
        let trie = self.trie(*place);
        let tokens = |node: NodeIndex| trie.tokens_from(node).len();
        let nodes = nodes.iter().copied().filter(|&node| first.contains(trie.byte(node)));
        let largest = nodes.clone().max_by_key(|&node| tokens(node));
        let Some(largest) = largest.filter(|_| nodes.clone().map(tokens).sum::<usize>() >= LARGE) else {
            return Ok(None);
        };
        let start = self.machine.closure_state(heads, self.budget)?;
        let state = self.machine.go(start, trie.byte(largest), self.budget)?;
        if !self.machine.is_between_lexemes(state) || self.state_loop(state)?.is_none() {
            return Ok(None);
        }
        let (mut todo, mut draft) = (Vec::new(), Draft::default());
        for node in nodes {
            self.budget.spend(1)?;
            let state = self.machine.go(start, trie.byte(node), self.budget)?;
            if state != DEAD {
                draft.reach(self.machine.is_unsure(state), trie.tokens_at(node));
                todo.push((node, state));
            }
        }
        Ok(self.walk_on(&trie, todo, &mut draft)?.map(|()| draft))
    }

    /// The closure after an end of a head's lexeme, and the bytes with which its heads begin.
    fn after(&mut self, head: Head, (condition, position): (Id, u32)) -> Result<Arc<(Closure, ByteSet)>> {
        let tag = self.machine.accept(position);
        let end = Head { rest: self.machine.arena.under(condition, tag), ..head };
        if let Some(known) = self.local.steps.closures.get(&end) {
            return Ok(known.clone());
        }
        let closure = self.machine.close(&[end], self.budget)?;
        let mut first = ByteSet::NONE;
        for head in &closure.heads {
            for &(_, bytes) in self.alternatives(head.rest)?.iter() {
                first = first.or(bytes);
            }
        }
        let found = Arc::new((closure, first));
        self.local.steps.closures.insert(end, found.clone());
        Ok(found)
    }
}
