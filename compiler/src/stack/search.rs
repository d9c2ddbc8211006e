//! Endings found by search: for grammars in which what may follow a terminal depends on the text after it, or in which
//! a parser decides that.
//!
//! The search is A* (Hart, Nilsson and Raphael 1968) over the places between two lexemes. What is still to come is
//! estimated by the lengths that the rules alone ask for, as if any lexeme could follow any other; for a parser, by the
//! items of its states, each a rule that may have been begun. Far from an ending, the estimate is multiplied (Pohl
//! 1970), since it leaves out much that has to stand between lexemes, the blanks of lines above all. So endings are
//! short, but not always shortest ones. What was found is kept for the places that an ending goes through, so that a
//! text that follows it gets what is left of it without another search.
//!
//! Whether a head has any ending (`lives`) is found out by the same search, or by a simpler one.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use super::combining::Free;
use super::completing::{Completed, Configuration};
use super::continuation::{Stack, UNSURE};
use super::estimates::Items;
use super::position::{Pos, PosId};
use super::shortest::{LONGEST, NEVER};
use super::step::{Head, Machine};
use super::ways::{MOST_RESIDUALS, Way, Ways};
use crate::budget::Budget;
use crate::error::{Error, Result};
use crate::ir::{Parser, RuleId};
use crate::regular::{Id, List};

/// An end of a head: a text to it, what is left there, and its position.
type End = (Box<[u8]>, Head, PosId);

/// What has been found out for searches.
#[derive(Default)]
pub(super) struct Searches {
    pub(super) ways: FxHashMap<Id, Ways>,
    /// What residuals are with a tag that means nothing, and their own tag; see [`Machine::ways_of_length`].
    pub(super) alike: FxHashMap<Id, (Id, Option<PosId>)>,
    /// Those that ways lead through.
    pub(super) residuals: usize,
    /// By parser.
    pub(super) items: FxHashMap<RuleId, Arc<Items>>,
    /// Lower bounds of what parsers still read, by configuration of one topmost state.
    pub(super) to_come: FxHashMap<Configuration, u64>,
    free_ends: FxHashMap<Id, FreeEnds>,
    /// Whether heads have an ending.
    alive: FxHashMap<Head, bool>,
    /// Endings that were found.
    endings: FxHashMap<Head, Arc<[u8]>>,
    /// Bytes of these.
    written: usize,
    /// What is known to have an ending without a search, and the bytes of that.
    pub(super) free: Free,
    held: usize,
    /// Whether parsers complete stacks, as far as that was asked.
    pub(super) completed: Completed,
}

/// How many times the estimate of what is still to come counts, beyond the bytes that are near.
const WEIGHT: u64 = 3;
const NEAR: u64 = 8;

/// Bytes of endings that are kept of one search.
const KEPT: usize = 1 << 20;

/// Blanks by which a new block is wider than the one around it.
pub(super) const NEW_BLOCK: u32 = 4;

impl Searches {
    pub(super) fn new(free: Free) -> Searches {
        let held = free.completing.values().map(|completing| completing.memory).sum();
        Searches { free, held, ..Searches::default() }
    }

    pub(super) fn memory(&self) -> usize {
        let endings = self.endings.len() * 48 + self.written;
        endings
            + self.held
            + self.ways.len() * 256
            + self.residuals * 48
            + (self.alive.len() + self.alike.len() + self.free_ends.len()) * 24
            + (self.to_come.len() + self.completed.len()) * 48
    }
}

/// The ends of a residual that any lexeme can follow.
#[derive(Clone)]
enum FreeEnds {
    /// There is one behind which all can be completed, whatever the stack.
    Always,
    /// The positions of tokens behind which that depends on the stack.
    Tokens(Arc<[PosId]>),
}

/// What a search looks at next.
#[derive(Clone, Copy)]
enum Next {
    Place(usize),
    /// The ends of a head that are not known yet: those to which texts of this length lead, and longer ones.
    Ends {
        head: Head,
        /// The place before the head.
        from: usize,
        length: usize,
    },
}

/// A search that goes on.
#[derive(Default)]
struct Search {
    places: Vec<Place>,
    /// Lower bounds of the endings through what is looked at next, by its number in `next`.
    queue: BinaryHeap<Reverse<(u64, usize)>>,
    next: Vec<Next>,
    met: FxHashSet<Head>,
}

impl Search {
    fn add(&mut self, bound: u64, next: Next) {
        self.queue.push(Reverse((bound, self.next.len())));
        self.next.push(next);
    }
}

/// A place between two tokens that a search has come to.
struct Place {
    head: Head,
    /// What the text to it counts, see [`Machine::cost`].
    length: u64,
    /// The place before it, and the text from there to here.
    from: usize,
    text: Box<[u8]>,
}

impl Machine {
    /// A text that makes the kernel accept, mostly a shortest one; `None`: there is none.
    pub(super) fn find_ending(&mut self, kernel: &[Head], budget: &mut Budget) -> Result<Option<Vec<u8>>> {
        self.find_lengths(budget)?;
        if self.close(kernel, budget)?.accepting {
            return Ok(Some(Vec::new()));
        }
        let (places, found) = self.search_places(kernel, false, budget)?;
        Ok(found.map(|at| self.note_ending(&places, at)))
    }

    /// The text that leads to a place, and ends behind it. It is kept for the places on the way, from the last one on,
    /// as far as there is room: of all of a long way, these texts are as many bytes as the square of its length.
    fn note_ending(&mut self, places: &[Place], mut at: usize) -> Vec<u8> {
        let known = self.searches.endings.get(&places[at].head);
        let mut reversed: Vec<u8> = known.map_or(Vec::new(), |known| known.iter().rev().copied().collect());
        let mut kept = 0;
        while let Some(place) = places.get(at) {
            if kept + reversed.len() <= KEPT && !self.searches.endings.contains_key(&place.head) {
                kept += reversed.len();
                self.searches.written += reversed.len();
                self.searches.endings.insert(place.head, reversed.iter().rev().copied().collect());
            }
            reversed.extend(place.text.iter().rev());
            at = place.from;
        }
        reversed.reverse();
        reversed
    }

    /// Whether a head has any ending; `None`: that depends on more of a truncated stack.
    pub fn lives(&mut self, head: Head, budget: &mut Budget) -> Result<Option<bool>> {
        if head.stack == UNSURE {
            return Ok(None);
        }
        if !self.careful || self.settles_truncated() && self.has_free_end(head, budget)? {
            return Ok(Some(true));
        }
        if self.stacks.is_truncated(head.stack) {
            return Ok(None);
        }
        self.has_ending(head, budget).map(Some)
    }

    /// Whether it mostly shows without the whole of a stack that a head has an ending.
    pub fn settles_truncated(&self) -> bool {
        !self.careful || self.searches.free.is_any()
    }

    /// Whether a head has an end that any lexeme can follow, behind which all can be completed, as far as the topmost
    /// states of its stack show it.
    fn has_free_end(&mut self, head: Head, budget: &mut Budget) -> Result<bool> {
        // what ends a line can go on until the next line fits a block: otherwise, care would be taken everywhere
        if self.counts_byte_by_byte(head) {
            return Ok(true);
        }
        let ends = match self.searches.free_ends.get(&head.rest) {
            Some(known) => known.clone(),
            None => {
                let found = self.free_ends(head.rest, budget)?;
                self.searches.free_ends.insert(head.rest, found.clone());
                found
            }
        };
        let FreeEnds::Tokens(tokens) = ends else { return Ok(true) };
        for &token in tokens.iter() {
            if let Some((rule, stack)) = self.behind_token(token, head.stack, budget)?
                && self.completes_by_top(rule, stack)
            {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The free ends of a residual. Of one of very many states, the nearest ones.
    fn free_ends(&mut self, rest: Id, budget: &mut Budget) -> Result<FreeEnds> {
        let mut tokens = Vec::new();
        for branch in self.arena.alternatives(rest) {
            let mut length = 0;
            let before = self.searches.residuals;
            while self.searches.residuals - before <= MOST_RESIDUALS
                && let Some(ends) = self.ends_of_length(branch, length, budget)?
            {
                budget.spend(4)?;
                for end in ends {
                    let (condition, x) = self.arena.under_condition(end);
                    if !self.arena.is_accept(x) || !self.searches.free.holds(condition) {
                        continue;
                    }
                    let token = self.arena.tags(x).first().copied();
                    if self.searches.free.completing.is_empty() || token.is_some_and(|t| self.always_completes(t)) {
                        return Ok(FreeEnds::Always);
                    }
                    tokens.extend(token);
                }
                length += 1;
            }
        }
        tokens.sort_unstable();
        tokens.dedup();
        Ok(FreeEnds::Tokens(tokens.into()))
    }

    /// Whether all can be completed behind a token, whatever stands before it.
    fn always_completes(&self, token: PosId) -> bool {
        let Pos::Token { rule, terminal, .. } = self.positions.get(token) else { return false };
        let Some(completing) = self.searches.free.completing.get(&rule) else { return true };
        let is_ignored = self.ir.parser(rule).is_some_and(|parser| parser.is_ignored(terminal));
        !is_ignored && completing.always_behind(terminal)
    }

    /// The stack behind a token, if there surely is one, and the parser that reads the token.
    fn behind_token(&mut self, token: PosId, stack: Stack, budget: &mut Budget) -> Result<Option<(RuleId, Stack)>> {
        let Pos::Token { rule, terminal, .. } = self.positions.get(token) else { return Ok(None) };
        let ir = self.ir.clone();
        let Some(parser) = ir.parser(rule) else { return Ok(None) };
        let next = match parser.is_ignored(terminal) {
            true => Some(stack),
            false => self.read(rule, parser, stack, terminal, budget)?.flatten(),
        };
        Ok(next.map(|next| (rule, next)))
    }

    /// Whether a head of a whole stack has any ending.
    fn has_ending(&mut self, head: Head, budget: &mut Budget) -> Result<bool> {
        if let Some(&known) = self.searches.alive.get(&head) {
            return Ok(known);
        }
        let counts = self.counts_byte_by_byte(head);
        // what ends a line can go on until the next line fits a block: otherwise, care would be taken everywhere
        if self.ends_freely(head, budget)? || counts && self.searches.free.is_any() {
            self.searches.alive.insert(head, true);
            return Ok(true);
        }
        self.find_lengths(budget)?;
        let lives = if counts || self.arena.is_end(head.rest) {
            self.reaches_an_ending(head, budget)?
        } else {
            self.ends_alive(head, budget)?
        };
        self.searches.alive.insert(head, lives);
        Ok(lives)
    }

    /// Whether a head is the end of a lexeme that any other can follow, behind which all can be completed.
    fn ends_freely(&mut self, head: Head, budget: &mut Budget) -> Result<bool> {
        let (condition, x) = self.arena.under_condition(head.rest);
        if !self.arena.is_accept(x) || !self.searches.free.holds(condition) {
            return Ok(false);
        }
        if self.searches.free.completing.is_empty() {
            return Ok(true);
        }
        let Some(&token) = self.arena.tags(x).first() else { return Ok(false) };
        match self.behind_token(token, head.stack, budget)? {
            Some((rule, stack)) => self.completes(rule, stack, budget),
            None => Ok(false),
        }
    }

    /// Whether any end of a head has an ending: the nearest mostly has.
    fn ends_alive(&mut self, head: Head, budget: &mut Budget) -> Result<bool> {
        let mut branches = self.arena.alternatives(head.rest);
        let mut length = 0;
        while !branches.is_empty() {
            let mut left = List::new();
            for branch in branches {
                budget.spend(4)?;
                let Some(ends) = self.ends_of_length(branch, length, budget)? else { continue };
                left.push(branch);
                for rest in ends {
                    if self.has_ending(Head { rest, ..head }, budget)? {
                        return Ok(true);
                    }
                }
            }
            branches = left;
            length += 1;
        }
        Ok(false)
    }

    /// The same by a search, which also shows it for the places that it goes through.
    fn reaches_an_ending(&mut self, head: Head, budget: &mut Budget) -> Result<bool> {
        let (places, found) = self.search_places(&[head], true, budget)?;
        match found {
            Some(mut at) => {
                while let Some(place) = places.get(at) {
                    self.searches.alive.insert(place.head, true);
                    at = place.from;
                }
            }
            None => self.searches.alive.extend(places.iter().map(|place| (place.head, false))),
        }
        Ok(found.is_some())
    }

    /// Searches for a place at which the text can end; with `known`, for one that is known to have an ending.
    fn search_places(
        &mut self,
        kernel: &[Head],
        known: bool,
        budget: &mut Budget,
    ) -> Result<(Vec<Place>, Option<usize>)> {
        let mut search = Search::default();
        self.add_heads(kernel, usize::MAX, &mut search, budget)?;
        while let Some(Reverse((_, at))) = search.queue.pop() {
            let at = match search.next[at] {
                Next::Place(at) => at,
                Next::Ends { head, from, length } => {
                    self.add_ends(head, (from, length), &mut search, budget)?;
                    continue;
                }
            };
            let Place { head, length, .. } = search.places[at];
            if !search.met.insert(head) {
                continue;
            }
            if length > LONGEST {
                return Err(Error::Limit { which: "bytes of the shortest ending", limit: LONGEST });
            }
            if known && let Some(&alive) = self.searches.alive.get(&head) {
                if alive {
                    return Ok((search.places, Some(at)));
                }
                continue;
            }
            if known && self.ends_freely(head, budget)? || !known && self.searches.endings.contains_key(&head) {
                return Ok((search.places, Some(at)));
            }
            let closure = self.close(&[head], budget)?;
            if closure.accepting {
                return Ok((search.places, Some(at)));
            }
            self.add_heads(&closure.heads, at, &mut search, budget)?;
        }
        Ok((search.places, None))
    }

    /// Adds the ends of heads behind a place. They are looked for when no other place is nearer to an ending.
    fn add_heads(&mut self, heads: &[Head], from: usize, search: &mut Search, budget: &mut Budget) -> Result<()> {
        let so_far = search.places.get(from).map_or(0, |place| place.length);
        for &head in heads {
            for rest in self.arena.alternatives(head.rest) {
                let head = Head { rest, ..head };
                match self.untagged(rest).1 {
                    // the stack behind a line says more than the one before it
                    Some(position) if !self.counts_columns => {
                        budget.spend(4)?;
                        let estimate = self.left_behind(position, head.stack, budget)?;
                        if estimate != NEVER {
                            let shortest = u64::from(self.arena.least_length(rest));
                            let bound = so_far.saturating_add(shortest).saturating_add(weighted(estimate));
                            search.add(bound, Next::Ends { head, from, length: 0 });
                        }
                    }
                    Some(_) => self.add_ends(head, (from, 0), search, budget)?,
                    None => {
                        let head = self.without_dead_lexemes(head, budget)?;
                        self.add_ends(head, (from, 0), search, budget)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// A head without the lexemes behind which a parser cannot complete what it has begun.
    fn without_dead_lexemes(&mut self, head: Head, budget: &mut Budget) -> Result<Head> {
        let mut positions: FxHashSet<PosId> = FxHashSet::default();
        self.arena.every_tag(head.rest, &mut |position| {
            positions.insert(position);
            true
        });
        let mut dead: FxHashSet<PosId> = FxHashSet::default();
        for position in positions {
            budget.spend(4)?;
            if !self.counts_columns && self.left_behind(position, head.stack, budget)? == NEVER {
                dead.insert(position);
            }
        }
        if dead.is_empty() {
            return Ok(head);
        }
        let rest = self.arena.without_tags(head.rest, &mut |position| dead.contains(&position));
        Ok(Head { rest, ..head })
    }

    /// Adds the nearest ends of a head to which texts of a length, or longer ones, lead; the others are left for later.
    fn add_ends(
        &mut self,
        head: Head,
        (from, mut length): (usize, usize),
        search: &mut Search,
        budget: &mut Budget,
    ) -> Result<()> {
        let so_far = search.places.get(from).map_or(0, |place| place.length);
        let mut least = None;
        while least.is_none() || self.knows_ways(head.rest, length) {
            budget.spend(4)?;
            let Some(ways) = self.ways_of_length(head.rest, length, budget)? else { return Ok(()) };
            length += 1;
            for (text, head, position) in self.ends_of(head, &ways, budget)? {
                budget.spend(4)?;
                let length = so_far + self.cost(&text);
                let estimate = self.left_behind(position, head.stack, budget)?;
                least = Some(least.unwrap_or(NEVER).min(estimate));
                if estimate != NEVER && !search.met.contains(&head) {
                    let ending = self.searches.endings.get(&head).map(|ending| ending.len() as u64);
                    let left = ending.unwrap_or(weighted(estimate));
                    search.add(length.saturating_add(left), Next::Place(search.places.len()));
                    search.places.push(Place { head, length, from, text });
                }
            }
        }
        // what the other ends of a lexeme leave is estimated as what these leave
        let least = least.unwrap_or(NEVER);
        let bound = (so_far + length as u64).saturating_add(weighted(least));
        if least != NEVER {
            search.add(bound, Next::Ends { head, from, length });
        }
        Ok(())
    }

    /// What a text counts: its bytes, but the blanks of a line no more than a new block's. If all counted, a search deep
    /// inside blocks would try all short texts before the first line.
    fn cost(&self, text: &[u8]) -> u64 {
        let blanks = text.iter().rev().take_while(|&&byte| byte == b' ').count() as u64;
        text.len() as u64 - if self.counts_columns { blanks.saturating_sub(NEW_BLOCK.into()) } else { 0 }
    }

    /// Ends of a head, given those of its residual: a text to each, what is left there, and its position. Where blanks of
    /// lines are counted, several texts: one for each block that can go on, and one for a new block.
    fn ends_of(&mut self, head: Head, ways: &[Way], budget: &mut Budget) -> Result<Vec<End>> {
        let mut found = Vec::new();
        for (text, rest, position) in ways {
            if !self.counts_columns {
                found.push((text.clone(), Head { rest: *rest, ..head }, *position));
                continue;
            }
            for text in self.laid_out(text, *position, head.stack) {
                budget.spend(text.len() as u64 / 4)?;
                let stack = self.after_bytes(head.stack, &text);
                let mut at = head.rest;
                for &byte in &text {
                    at = self.arena.next(at, byte, budget)?;
                }
                for (condition, end) in self.arena.ends(at) {
                    if end == *position {
                        let end = self.accept(end);
                        let rest = self.arena.under(condition, end);
                        let stack = self.forget_column(stack, rest);
                        found.push((text.clone().into(), Head { rest, stack }, *position));
                    }
                }
            }
        }
        Ok(found)
    }

    /// Texts like this one, for lines of different widths if it ends one.
    fn laid_out(&mut self, text: &[u8], position: PosId, stack: Stack) -> Vec<Vec<u8>> {
        let mut texts = vec![text.to_vec()];
        let Pos::Token { rule, terminal, .. } = self.positions.get(position) else { return texts };
        let ir = self.ir.clone();
        let layout = self.instances.layout(self.stacks.param(stack));
        match ir.parser(rule).and_then(Parser::indenter) {
            Some(indenter) if indenter.newline == terminal && layout.depth == 0 => {}
            _ => return texts,
        }
        for &width in layout.indents.iter().chain(&[0, layout.indent() + NEW_BLOCK]) {
            let blanks = vec![b' '; width as usize];
            texts.push([text, &blanks].concat());
            texts.push([text, b"\n", &blanks].concat());
            if let Some(more) = width.checked_sub(layout.column.unwrap_or(0)) {
                texts.push([text, &vec![b' '; more as usize]].concat());
            }
        }
        texts
    }
}

/// An estimate as it counts.
fn weighted(estimate: u64) -> u64 {
    estimate.saturating_add(estimate.saturating_sub(NEAR).saturating_mul(WEIGHT - 1))
}
