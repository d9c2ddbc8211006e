//! Endings where what may follow a terminal depends on the text behind it, or a parser decides: found by search.
//!
//! The search is A* (Hart, Nilsson and Raphael 1968) over the places between two tokens. What is still to come is
//! estimated by the lengths that the rules alone ask for, as if any lexeme could follow any other: for a parser, by the
//! items of its states, each a rule that may have been begun.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use super::continuation::{Frame, Stack};
use super::instances::UNSET;
use super::position::{Pos, PosId};
use super::shortest::{LONGEST, NEVER};
use super::step::{Head, Machine};
use crate::budget::Budget;
use crate::error::{Error, Result};
use crate::ir::{Indenter, Lexeme, NodeId, Parser, RuleId};
use crate::recursion::deep;
use crate::regular::Id;

/// The ends of a residual: a shortest text to each, and what is left there (an `Accept`, perhaps under a condition).
type Ways = Arc<[(Box<[u8]>, Id, PosId)]>;

/// An end of a head: a text to it, what is left there, and its position.
type End = (Box<[u8]>, Head, PosId);

/// What has been found out for searches.
#[derive(Default)]
pub(super) struct Searches {
    ways: FxHashMap<Id, Ways>,
    /// By parser.
    items: FxHashMap<RuleId, Arc<Items>>,
    /// Lower bounds of what parsers still read, by stack of one topmost state.
    to_come: FxHashMap<Stack, u64>,
    /// Whether heads have an ending.
    alive: FxHashMap<Head, bool>,
    /// Conditions under which any lexeme can follow: what ends under one of them has an ending.
    open: FxHashSet<Id>,
}

/// Steps that an item of a parser's state costs a search.
const ITEM: u64 = 8;

/// Blanks by which a new block is wider than the one around it.
const NEW_BLOCK: u32 = 4;

impl Searches {
    pub(super) fn new(open: FxHashSet<Id>) -> Searches {
        Searches { open, ..Searches::default() }
    }

    pub(super) fn open(&self) -> impl Iterator<Item = Id> + '_ {
        self.open.iter().copied()
    }

    pub(super) fn memory(&self) -> usize {
        self.ways.len() * 128 + self.to_come.len() * 24 + self.alive.len() * 24
    }
}

/// What each state of a parser may have begun.
struct Items {
    /// By state: how many symbols of a rule have been read, the symbol that it derives, the bytes that the rest takes.
    begun: Vec<Vec<(u32, u32, u64)>>,
    /// The bytes of a whole text.
    whole: u64,
}

/// A place between two tokens that a search has come to.
struct Place {
    head: Head,
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
        let mut places: Vec<Place> = Vec::new();
        let found = self.search_places(kernel, &mut places, false, budget)?;
        Ok(found.map(|at| spell(&places, at)))
    }

    /// Whether a head has any ending.
    pub fn lives(&mut self, head: Head, budget: &mut Budget) -> Result<bool> {
        if let Some(&known) = self.searches.alive.get(&head) {
            return Ok(known);
        }
        let counts = self.counts_byte_by_byte(head);
        // what ends a line can go on until the next line fits a block: otherwise, care would be taken everywhere
        if self.ends_freely(head) || counts && !self.searches.open.is_empty() {
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

    /// Whether a head is the end of a lexeme that any other can follow.
    fn ends_freely(&self, head: Head) -> bool {
        let (condition, x) = self.arena.under_condition(head.rest);
        self.arena.is_accept(x) && self.searches.open.contains(&condition)
    }

    /// Whether any end of a head has an ending: the nearest mostly has.
    fn ends_alive(&mut self, head: Head, budget: &mut Budget) -> Result<bool> {
        let mut ended: FxHashSet<Id> = FxHashSet::default();
        let mut met: FxHashSet<Id> = FxHashSet::from_iter([head.rest]);
        let mut queue = VecDeque::from([head.rest]);
        while let Some(at) = queue.pop_front() {
            budget.spend(4)?;
            for (condition, position) in self.arena.ends(at) {
                let tag = self.accept(position);
                let rest = self.arena.under(condition, tag);
                if self.arena.alive(condition, budget)?
                    && ended.insert(rest)
                    && self.lives(Head { rest, ..head }, budget)?
                {
                    return Ok(true);
                }
            }
            let edges = self.arena.edges(at, budget)?;
            queue.extend(edges.iter().map(|edge| edge.1).filter(|&next| met.insert(next)));
        }
        Ok(false)
    }

    /// The same by a search, which also shows it for the places that it goes through.
    fn reaches_an_ending(&mut self, head: Head, budget: &mut Budget) -> Result<bool> {
        let mut places: Vec<Place> = Vec::new();
        let found = self.search_places(&[head], &mut places, true, budget)?;
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
        places: &mut Vec<Place>,
        known: bool,
        budget: &mut Budget,
    ) -> Result<Option<usize>> {
        let mut queue: BinaryHeap<Reverse<(u64, usize)>> = BinaryHeap::new();
        let mut met: FxHashSet<Head> = FxHashSet::default();
        let mut pending: Vec<(Head, u64, usize)> = kernel.iter().map(|&head| (head, 0, usize::MAX)).collect();
        loop {
            for (head, length, from) in std::mem::take(&mut pending) {
                for (text, head, position) in self.ends_of(head, budget)? {
                    budget.spend(4)?;
                    let length = length + text.len() as u64;
                    let estimate = self.left_behind(position, head.stack, budget)?;
                    if estimate != NEVER && !met.contains(&head) {
                        queue.push(Reverse((length + estimate, places.len())));
                        places.push(Place { head, length, from, text });
                    }
                }
            }
            let Some(Reverse((_, at))) = queue.pop() else { return Ok(None) };
            let Place { head, length, .. } = places[at];
            if !met.insert(head) {
                continue;
            }
            if length > LONGEST {
                return Err(Error::Limit { which: "bytes of the shortest ending", limit: LONGEST });
            }
            if known && let Some(&alive) = self.searches.alive.get(&head) {
                if alive {
                    return Ok(Some(at));
                }
                continue;
            }
            let closure = self.close(&[head], budget)?;
            if closure.accepting {
                return Ok(Some(at));
            }
            pending.extend(closure.heads.iter().map(|&head| (head, length, at)));
        }
    }

    /// The ends of a head: a shortest text to each, what is left there, and its position. Where blanks of lines are
    /// counted, several texts: one for each block that can go on, and one for a new block.
    fn ends_of(&mut self, head: Head, budget: &mut Budget) -> Result<Vec<End>> {
        let mut found = Vec::new();
        for (text, rest, position) in self.ways(head.rest, budget)?.iter() {
            if !self.counts_columns {
                found.push((text.clone(), Head { rest: *rest, ..head }, *position));
                continue;
            }
            for text in self.laid_out(text, *position, head.stack) {
                let (mut stack, mut at) = (head.stack, head.rest);
                for &byte in &text {
                    stack = self.after_byte(stack, byte);
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

    /// The length of a shortest lexeme, whatever follows it.
    pub(super) fn shortest_of_lexeme(&mut self, node: NodeId, budget: &mut Budget) -> Result<u64> {
        let x = self.whole_lexeme(node, budget)?;
        Ok(self.ways(x, budget)?.iter().map(|way| way.0.len() as u64).min().unwrap_or(NEVER))
    }

    /// The ends of a residual.
    pub(super) fn ways(&mut self, rest: Id, budget: &mut Budget) -> Result<Ways> {
        if let Some(known) = self.searches.ways.get(&rest) {
            return Ok(known.clone());
        }
        let alternatives = self.arena.alternatives(rest);
        if alternatives.len() > 1 {
            let mut all: Vec<(Box<[u8]>, Id, PosId)> = Vec::new();
            for x in alternatives {
                all.extend(deep(|| self.ways(x, budget))?.iter().cloned());
            }
            let mut ended: FxHashSet<Id> = FxHashSet::default();
            all.sort_by_key(|way| way.0.len());
            all.retain(|way| ended.insert(way.1));
            let ways: Ways = all.into();
            self.searches.ways.insert(rest, ways.clone());
            return Ok(ways);
        }
        let mut found = Vec::new();
        let mut ended: FxHashSet<Id> = FxHashSet::default();
        let mut met: FxHashSet<Id> = FxHashSet::from_iter([rest]);
        let mut queue = VecDeque::from([(rest, Vec::new())]);
        while let Some((at, text)) = queue.pop_front() {
            budget.spend(8)?;
            for (condition, position) in self.arena.ends(at) {
                let end = self.accept(position);
                let end = self.arena.under(condition, end);
                if self.arena.alive(condition, budget)? && ended.insert(end) {
                    found.push((text.clone().into(), end, position));
                }
            }
            for (byte, next) in self.arena.successors(at, budget)? {
                if met.insert(next) {
                    let mut text = text.clone();
                    text.push(byte);
                    queue.push_back((next, text));
                }
            }
        }
        let ways: Ways = found.into();
        self.searches.ways.insert(rest, ways.clone());
        Ok(ways)
    }

    /// A lower bound of the bytes that are still to come behind a position.
    fn left_behind(&mut self, position: PosId, stack: Stack, budget: &mut Budget) -> Result<u64> {
        let Pos::Token { rule, terminal, .. } = self.positions.get(position) else {
            let here = self.position_length(position, stack, budget)?;
            let rule = self.positions.rule(position);
            return Ok(here.saturating_add(self.after_rule(rule, stack, budget)?.0));
        };
        let ir = self.ir.clone();
        let parser = ir.parser(rule).expect("the rule is a parser's");
        let within = |i: &Indenter| i.newline == terminal && self.instances.layout(self.stacks.param(stack)).depth > 0;
        if parser.is_ignored(terminal) || parser.indenter().is_some_and(within) {
            return self.parser_to_come(rule, parser, stack, budget);
        }
        let mut least = NEVER;
        for frame in self.moves(rule, parser, stack, terminal, budget)?.frames {
            let stack = self.stacks.of_frames(UNSET, vec![frame]);
            least = least.min(self.parser_to_come(rule, parser, stack, budget)?);
        }
        Ok(least)
    }

    /// A lower bound of the bytes that a parser still reads: the cheapest way to complete what its states have begun.
    fn parser_to_come(&mut self, rule: RuleId, parser: &Parser, stack: Stack, budget: &mut Budget) -> Result<u64> {
        let items = self.items(rule, parser, budget)?;
        let mut least = NEVER;
        for frame in self.stacks.frames(stack).to_vec() {
            let from = self.stacks.of_frames(UNSET, vec![frame]);
            if let Some(&known) = self.searches.to_come.get(&from) {
                least = least.min(known);
                continue;
            }
            let found = self.complete_parser(rule, parser, &items, from, budget)?;
            self.searches.to_come.insert(from, found);
            least = least.min(found);
        }
        Ok(least)
    }

    fn complete_parser(
        &mut self,
        rule: RuleId,
        parser: &Parser,
        items: &Items,
        from: Stack,
        budget: &mut Budget,
    ) -> Result<u64> {
        let mut queue = BinaryHeap::from([Reverse((0u64, from))]);
        let mut met: FxHashSet<Stack> = FxHashSet::default();
        while let Some(Reverse((length, stack))) = queue.pop() {
            if !met.insert(stack) {
                continue;
            }
            if let Some(&known) = self.searches.to_come.get(&stack) {
                // exact, but other ways may be shorter: it is enough for a lower bound to take the first that is met
                return Ok(length.saturating_add(known));
            }
            budget.spend(4)?;
            for top in self.stacks.frames(stack).to_vec() {
                let Pos::State { state, .. } = self.positions.get(top.back) else { continue };
                if parser.is_end(state) {
                    return Ok(length);
                }
                if state == parser.start {
                    queue.push(Reverse((length.saturating_add(items.whole), self.ended(rule, parser, top))));
                }
                for &(read, symbol, rest) in &items.begun[state as usize] {
                    let mut tops = vec![top];
                    for _ in 0..read {
                        let below: FxHashSet<Stack> = tops.iter().map(|top| top.below).collect();
                        tops = below.iter().flat_map(|&k| self.stacks.frames(k).iter().copied()).collect();
                    }
                    budget.spend(ITEM + 2 * u64::from(read) + 4 * tops.len() as u64)?;
                    for top in tops {
                        let Pos::State { state, .. } = self.positions.get(top.back) else { continue };
                        if let Some(next) = parser.goto(state, symbol) {
                            let below = self.stacks.of_frames(UNSET, vec![top]);
                            let frame = self.frame_of(rule, next, below);
                            let next = self.stacks.of_frames(UNSET, vec![frame]);
                            queue.push(Reverse((length.saturating_add(rest), next)));
                        }
                    }
                }
            }
        }
        Ok(NEVER)
    }

    /// The stack on which the whole text has been read.
    fn ended(&mut self, rule: RuleId, parser: &Parser, start: Frame) -> Stack {
        let below = self.stacks.of_frames(UNSET, vec![start]);
        let frame = self.frame_of(rule, parser.end(), below);
        self.stacks.of_frames(UNSET, vec![frame])
    }

    /// What each state of a parser may have begun, and how many bytes the rest of it takes.
    fn items(&mut self, rule: RuleId, parser: &Parser, budget: &mut Budget) -> Result<Arc<Items>> {
        if let Some(known) = self.searches.items.get(&rule) {
            return Ok(known.clone());
        }
        let lengths = self.symbol_lengths(rule, parser, budget)?;
        let length = |symbol: &u32| lengths.get(symbol).copied().unwrap_or(NEVER);
        let mut begun = vec![Vec::new(); parser.states() as usize];
        let mut by_symbol: FxHashMap<u32, Vec<u32>> = FxHashMap::default();
        for (number, (symbol, _)) in parser.rules().iter().enumerate() {
            by_symbol.entry(*symbol).or_default().push(number as u32);
        }
        // where a symbol may come, each of its rules may begin: it is followed through the states that it passes
        for state in 0..parser.states() {
            for symbol in parser.derived_in(state) {
                for &number in by_symbol.get(&symbol).map_or(&[][..], |numbers| numbers) {
                    let parts = &parser.rules()[number as usize].1;
                    budget.spend(parts.len() as u64)?;
                    let mut at = state;
                    for (read, &part) in (1u32..).zip(parts) {
                        let Some(next) = parser.next(at, part) else { break };
                        at = next;
                        let rest = parts[read as usize..].iter().fold(0u64, |sum, s| sum.saturating_add(length(s)));
                        let item = (read, symbol, rest);
                        let known: &mut Vec<_> = &mut begun[at as usize];
                        if rest != NEVER && !known.contains(&item) {
                            known.push(item);
                        }
                    }
                }
            }
        }
        let whole = parser.symbol_into(parser.start, parser.end()).map_or(NEVER, |symbol| length(&symbol));
        let items = Arc::new(Items { begun, whole });
        self.searches.items.insert(rule, items.clone());
        Ok(items)
    }

    /// The least number of bytes of each symbol.
    pub(super) fn symbol_lengths(
        &mut self,
        rule: RuleId,
        parser: &Parser,
        budget: &mut Budget,
    ) -> Result<FxHashMap<u32, u64>> {
        let mut lexemes: Vec<Lexeme> = parser.all_lexemes().collect();
        lexemes.sort_unstable();
        lexemes.dedup();
        let mut lengths: FxHashMap<u32, u64> = FxHashMap::default();
        for lexeme in lexemes {
            let x = self.lexeme(rule, lexeme, budget)?;
            let least = self.ways(x, budget)?.iter().map(|way| way.0.len() as u64).min();
            if let Some(least) = least {
                let known = lengths.entry(lexeme.terminal).or_insert(least);
                *known = least.min(*known);
            }
        }
        if let Some(indenter) = parser.indenter() {
            lengths.extend([(indenter.indent, 0), (indenter.dedent, 0)]);
        }
        let mut changed = true;
        while changed {
            changed = false;
            for (symbol, parts) in parser.rules() {
                budget.spend(1)?;
                let sum = parts.iter().try_fold(0u64, |sum, s| Some(sum.saturating_add(*lengths.get(s)?)));
                if let Some(sum) = sum
                    && lengths.get(symbol).is_none_or(|&known| sum < known)
                {
                    lengths.insert(*symbol, sum);
                    changed = true;
                }
            }
        }
        Ok(lengths)
    }
}

/// The text that leads to a place.
fn spell(places: &[Place], mut at: usize) -> Vec<u8> {
    let mut parts: Vec<&[u8]> = Vec::new();
    while let Some(place) = places.get(at) {
        parts.push(&place.text);
        at = place.from;
    }
    parts.reverse();
    parts.concat()
}
