//! Puts masks together from steps.

use std::sync::Arc;

use super::steps::{End, Part, Step};
use super::texts::{LARGE, Place, Rests, VOCABULARY};
use super::union::Union;
use crate::byteset::ByteSet;
use crate::error::Result;
use crate::mask::maker::{Answer, MaskMaker};
use crate::mask::row::Draft;
use crate::recursion::deep;
use crate::regular::Id;
use crate::stack::{DEAD, Head, Heads};
use crate::vocabulary::NodeIndex;

/// Of how many frames of a stack parts are made. With fewer, more ends are left open; with more, fewer masks share them.
const FRAMES: u32 = 4;

/// What may stand behind an end of a lexeme: the closure, and the bytes with which its heads begin.
pub(super) struct After {
    pub(super) number: u32,
    pub(super) heads: Heads,
    pub(super) first: ByteSet,
}

impl MaskMaker<'_> {
    /// The mask of the heads of a closure.
    pub(in crate::mask) fn lexical_mask(&mut self, heads: &[Head]) -> Answer<Draft> {
        let followed = std::mem::take(&mut self.local.steps.followed); // to grow anew for each mask takes time
        let mut all = Union::default();
        all.followed = followed;
        let whole = self.follow(heads, VOCABULARY, &mut all);
        self.local.steps.followed = std::mem::take(&mut all.followed);
        self.local.steps.followed.clear();
        Ok(whole?.map(|()| all.draft()))
    }

    /// Adds the tokens of a place that heads allow.
    pub(super) fn follow(&mut self, heads: &[Head], place: Place, out: &mut Union) -> Answer<()> {
        let starts = self.starts(place);
        for &head in heads {
            if out.gives_up() {
                return Ok(None);
            }
            if self.leaves_much_open(out.unsure.len() / 4) {
                out.unsure.sort_unstable();
                out.unsure.dedup();
                if self.leaves_much_open(out.unsure.len()) {
                    return Ok(None);
                }
            }
            if head.is_anything() {
                out.unsure.extend(self.tokens_of(place));
                continue;
            }
            for &(rest, first) in self.alternatives(head.rest)?.iter() {
                let step = (place, rest, head.stack);
                if first.and(starts).is_empty() || !out.has_not(step) {
                    continue;
                }
                if out.is_of_use_only_settled() && self.local.steps.unsettled.contains(&step) {
                    return Ok(None);
                }
                let whole = deep(|| self.follow_one(Head { rest, ..head }, place, out))?;
                if whole.is_none() || out.gives_up() {
                    if out.is_of_use_only_settled() {
                        self.local.steps.unsettled.insert(step);
                    }
                    return Ok(None);
                }
            }
        }
        Ok(Some(()))
    }

    /// Adds the tokens of a place that a head allows.
    fn follow_one(&mut self, head: Head, place: Place, out: &mut Union) -> Answer<()> {
        let column = self.machine.column(head);
        let step = match column {
            None => self.step(place, head.rest)?,
            Some(column) if self.machine.lines_end_freely() => {
                let step = self.line_step(place, head.rest, column)?;
                if self.goes_on_lost(head, column, &step)? {
                    return self.follow_bytes(head, place, out);
                }
                step
            }
            Some(_) => return self.follow_bytes(head, place, out),
        };
        self.budget.spend(1 + step.reached.len() as u64)?;
        for (after, draft) in &step.reached {
            match self.machine.lives(Head { rest: *after, ..head }, self.budget)? {
                Some(true) => out.add(draft),
                Some(false) => {}
                None => out.add_unsure(draft),
            }
        }
        if step.ends.is_empty() {
            return Ok(Some(()));
        }
        let head = match column {
            // what is behind the ends is the same for all columns
            Some(column) if step.column.is_none() => {
                Head { stack: self.machine.at_column(head.stack, column.uncounted()), ..head }
            }
            _ => head,
        };
        let part = self.part(head, place, &step)?;
        out.set.extend_from_slice(&part.tokens);
        for &end in &part.open {
            if self.follow_end(head, &step.ends[end as usize], out)?.is_none() {
                return Ok(None);
            }
        }
        Ok(Some(()))
    }

    /// What the ends of a head's step lead to, as far as the topmost frames of its stack show it.
    fn part(&mut self, head: Head, place: Place, step: &Step) -> Result<Arc<Part>> {
        if !self.machine.settles_truncated() {
            return Ok(Arc::new(Part { open: (0..step.ends.len() as u32).collect(), ..Part::default() }));
        }
        let stack = self.machine.topmost(head.stack, FRAMES, self.budget)?;
        let key = (place, Head { stack, ..head });
        if let Some(known) = self.local.steps.parts.get(&key) {
            return Ok(known.clone());
        }
        let mut part = Part::default();
        for (at, end) in step.ends.iter().enumerate() {
            let mut found = Union::settled();
            let whole = self.follow_end(key.1, end, &mut found)?;
            match whole {
                Some(()) if found.is_settled() => part.tokens.extend(found.set),
                _ => part.open.push(at as u32),
            }
        }
        let part = Arc::new(part);
        self.local.steps.keep_part(key, part.clone());
        Ok(part)
    }

    /// Adds the tokens that go on behind an end of a head.
    fn follow_end(&mut self, head: Head, end: &End, out: &mut Union) -> Answer<()> {
        self.budget.spend(1)?;
        let stack = end.column.map_or(head.stack, |column| self.machine.at_column(head.stack, column));
        let known = self.after(Head { stack, ..head }, end.end)?;
        if let Some(draft) = self.by_bytes(&known.heads, &end.rests, known.first)? {
            out.add_less(draft, &end.except);
            return Ok(Some(()));
        }
        let Some(place) = self.place_of(&end.rests, known.first)? else { return Ok(Some(())) };
        if end.except.is_empty() {
            return self.follow_behind(&known, place, out);
        }
        let mut apart = out.beside();
        let whole = self.follow_behind(&known, place, &mut apart)?;
        out.add_without(apart, &end.except);
        Ok(whole)
    }

    /// The same, followed byte by byte.
    fn follow_bytes(&mut self, head: Head, place: Place, out: &mut Union) -> Answer<()> {
        let state = self.machine.closure_state(&[head], self.budget)?;
        let mut draft = Draft::default();
        let mut todo = Vec::new();
        let trie = self.trie(place);
        match self.nodes(place).list() {
            None => todo.push((0, state)),
            Some(nodes) => {
                for &node in nodes.iter() {
                    let next = self.machine.go(state, trie.byte(node), self.budget)?;
                    if next != DEAD {
                        draft.reach(self.machine.is_unsure(next), trie.tokens_at(node));
                        todo.push((node, next));
                    }
                }
            }
        }
        let walked = self.walk_on(&trie, todo, &mut draft)?;
        out.add(&draft);
        out.unsure.extend_from_slice(&draft.unsure);
        Ok(walked)
    }

    /// The tokens that heads allow behind an end, followed byte by byte: where each letter is a lexeme, one letter leads
    /// where the others do, which takes less to follow than to make a trie of all that tokens have behind each letter.
    fn by_bytes(&mut self, heads: &[Head], rests: &Rests, first: ByteSet) -> Result<Option<Draft>> {
        let Some(nodes) = rests.nodes.list().filter(|_| rests.tokens >= LARGE) else { return Ok(None) };
        let trie = self.trie(rests.place);
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

    /// What may stand behind an end of a head's lexeme.
    pub(super) fn after(&mut self, head: Head, (condition, position): (Id, u32)) -> Result<Arc<After>> {
        let tag = self.machine.accept(position);
        let end = Head { rest: self.machine.arena.under(condition, tag), ..head };
        if let Some(known) = self.local.steps.after.get(&end) {
            return Ok(known.clone());
        }
        let heads = self.machine.close(&[end], self.budget)?.heads;
        let mut first = ByteSet::NONE;
        for head in &heads {
            for &(_, bytes) in self.alternatives(head.rest)?.iter() {
                first = first.or(bytes);
            }
        }
        let number = self.local.steps.after.len() as u32;
        let found = Arc::new(After { number, heads, first });
        self.local.steps.after.insert(end, found.clone());
        Ok(found)
    }
}
