//! What a search for an ending estimates: lower bounds of the bytes that are still to come.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use super::continuation::{Frame, Stack};
use super::instances::UNSET;
use super::position::{Pos, PosId};
use super::search::NEW_BLOCK;
use super::shortest::{NEVER, plus};
use super::step::Machine;
use crate::budget::Budget;
use crate::error::Result;
use crate::ir::{Lexeme, Parser, RuleId};

/// Steps that an item of a parser's state costs a search.
const ITEM: u64 = 8;

/// What each state of a parser may have begun.
pub(super) struct Items {
    /// By state: how many symbols of a rule have been read, the symbol that it derives, the bytes that the rest takes.
    begun: Vec<Vec<(u32, u32, u64)>>,
    /// The bytes of a whole text.
    whole: u64,
}

impl Machine {
    /// A lower bound of the bytes that are still to come behind a position.
    pub(super) fn left_behind(&mut self, position: PosId, stack: Stack, budget: &mut Budget) -> Result<u64> {
        let Pos::Token { rule, terminal, .. } = self.positions.get(position) else {
            let here = self.position_length(position, stack, budget)?;
            let rule = self.positions.rule(position);
            return Ok(plus(here, self.after_rule(rule, stack, budget)?.0));
        };
        let ir = self.ir.clone();
        let parser = ir.parser(rule).expect("the rule is a parser's");
        if parser.is_ignored(terminal) {
            return self.parser_to_come(rule, parser, stack, budget);
        }
        match self.read(rule, parser, stack, terminal, budget)? {
            Some(Some(next)) => self.parser_to_come(rule, parser, next, budget),
            _ => Ok(NEVER),
        }
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
        // lengths so far, stacks, and those that they come from
        let mut queue = BinaryHeap::from([Reverse((0u64, from, from))]);
        let mut before: FxHashMap<Stack, (u64, Stack)> = FxHashMap::default();
        // the shortest way so far that leads to a stack of which it is known how it goes on
        let mut best: Option<(u64, Stack)> = None;
        while let Some(Reverse((length, stack, back))) = queue.pop() {
            if best.is_some_and(|(whole, _)| whole <= length) {
                break;
            }
            if before.contains_key(&stack) {
                continue;
            }
            before.insert(stack, (length, back));
            let mut is_end = false;
            let known = self.searches.to_come.get(&stack).copied();
            budget.spend(4)?;
            for top in self.stacks.frames(stack).to_vec() {
                let Pos::State { state, .. } = self.positions.get(top.back) else { continue };
                is_end |= parser.is_end(state);
                if known.is_some() || is_end {
                    continue;
                }
                if state == parser.start {
                    let length = plus(length, items.whole);
                    queue.push(Reverse((length, self.ended(rule, parser, top), stack)));
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
                            queue.push(Reverse((plus(length, rest), next, stack)));
                        }
                    }
                }
            }
            if let Some(left) = if is_end { Some(0) } else { known } {
                let whole = plus(length, left);
                if best.is_none_or(|(known, _)| whole < known) {
                    best = Some((whole, stack));
                }
            }
        }
        let Some((whole, mut at)) = best else { return Ok(NEVER) };
        while at != from {
            let (length, back) = before[&at];
            self.searches.to_come.insert(at, whole - length);
            at = back;
        }
        Ok(whole)
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
                        let rest = parts[read as usize..].iter().fold(0u64, |sum, s| plus(sum, length(s)));
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
    fn symbol_lengths(&mut self, rule: RuleId, parser: &Parser, budget: &mut Budget) -> Result<FxHashMap<u32, u64>> {
        let mut lexemes: Vec<Lexeme> = parser.all_lexemes().collect();
        lexemes.sort_unstable();
        lexemes.dedup();
        let mut lengths: FxHashMap<u32, u64> = FxHashMap::default();
        for lexeme in lexemes {
            let x = self.lexeme(rule, lexeme, budget)?;
            if let Some(least) = self.nearest_end(x, budget)? {
                let known = lengths.entry(lexeme.terminal).or_insert(least);
                *known = least.min(*known);
            }
        }
        if let Some(indenter) = parser.indenter() {
            lengths.extend([(indenter.indent, NEW_BLOCK.into()), (indenter.dedent, 0)]);
        }
        let mut changed = true;
        while changed {
            changed = false;
            for (symbol, parts) in parser.rules() {
                budget.spend(1)?;
                let sum = parts.iter().try_fold(0u64, |sum, s| Some(plus(sum, *lengths.get(s)?)));
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
