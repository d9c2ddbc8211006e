//! What a search for an ending estimates: lower bounds of the bytes that are still to come.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::completing::{Configuration, Item};
use super::continuation::{Frame, Stack};
use super::instances::UNSET;
use super::numbers::Numbers;
use super::position::{Pos, PosId};
use super::reading::{Rules, Ways};
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
    /// By state: items, and the bytes that the rests take.
    begun: Vec<Vec<(Item, u64)>>,
    /// The bytes of a whole text.
    whole: u64,
    /// By terminal: those that cannot come behind it.
    kept_apart: FxHashMap<u32, Numbers>,
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
        let items = self.items(rule, parser, budget)?;
        let (next, refused) = if parser.is_ignored(terminal) {
            (stack, Numbers::default())
        } else if let Some(Some(next)) = self.read(rule, parser, stack, terminal, budget)? {
            (next, items.kept_apart.get(&terminal).cloned().unwrap_or_default())
        } else {
            return Ok(NEVER);
        };
        let mut least = NEVER;
        for frame in self.stacks.frames(next).to_vec() {
            let from = (self.stacks.of_frames(UNSET, &mut [frame]), refused.clone());
            let known = self.searches.to_come.get(&from).copied();
            let left = match known {
                Some(left) => left,
                None => self.complete_parser(rule, parser, &items, &from, budget)?,
            };
            self.searches.to_come.insert(from, left);
            least = least.min(left);
        }
        Ok(least)
    }

    /// A lower bound of the bytes that a parser still reads: the cheapest way to complete what its states have begun.
    fn complete_parser(
        &mut self,
        rule: RuleId,
        parser: &Parser,
        items: &Items,
        from: &Configuration,
        budget: &mut Budget,
    ) -> Result<u64> {
        // lengths so far, configurations, and those that they come from
        let mut queue = BinaryHeap::from([Reverse((0u64, from.clone(), from.clone()))]);
        let mut before: FxHashMap<Configuration, (u64, Configuration)> = FxHashMap::default();
        // the shortest way so far that leads to one of which it is known how it goes on
        let mut best: Option<(u64, Configuration)> = None;
        while let Some(Reverse((length, at, back))) = queue.pop() {
            if best.as_ref().is_some_and(|&(whole, _)| whole <= length) {
                break;
            }
            if before.contains_key(&at) {
                continue;
            }
            before.insert(at.clone(), (length, back));
            let mut is_end = false;
            let known = self.searches.to_come.get(&at).copied();
            budget.spend(4)?;
            for top in self.stacks.frames(at.0).to_vec() {
                let Pos::State { state, .. } = self.positions.get(top.back) else { continue };
                is_end |= parser.is_end(state) && !at.1.contains(Parser::END);
                if known.is_some() || is_end {
                    continue;
                }
                if state == parser.start {
                    let length = plus(length, items.whole);
                    let ended = (self.ended(rule, parser, top), Numbers::default());
                    queue.push(Reverse((length, ended, at.clone())));
                }
                for (item, rest) in &items.begun[state as usize] {
                    for refused in item.way.behind(&at.1) {
                        let after = self.stacks_behind((rule, parser), top, (item.symbol, item.read), budget)?;
                        budget.spend(ITEM + (item.read + 4 * after.len()) as u64)?;
                        let length = plus(length, *rest);
                        let next = |stack| Reverse((length, (stack, refused.clone()), at.clone()));
                        queue.extend(after.into_iter().map(next));
                    }
                }
            }
            if let Some(left) = if is_end { Some(0) } else { known } {
                let whole = plus(length, left);
                if best.as_ref().is_none_or(|&(known, _)| whole < known) {
                    best = Some((whole, at));
                }
            }
        }
        let Some((whole, mut on_the_way)) = best else { return Ok(NEVER) };
        while on_the_way != *from {
            let (length, back) = before[&on_the_way].clone();
            self.searches.to_come.insert(on_the_way, whole - length);
            on_the_way = back;
        }
        Ok(whole)
    }

    /// The stack on which the whole text has been read.
    fn ended(&mut self, rule: RuleId, parser: &Parser, start: Frame) -> Stack {
        let below = self.stacks.of_frames(UNSET, &mut [start]);
        let frame = self.frame_of(rule, parser.end(), below);
        self.stacks.of_frames(UNSET, &mut [frame])
    }

    /// What each state of a parser may have begun and can complete, and how many bytes the rest of it takes.
    fn items(&mut self, rule: RuleId, parser: &Parser, budget: &mut Budget) -> Result<Arc<Items>> {
        if let Some(known) = self.searches.items.get(&rule) {
            return Ok(known.clone());
        }
        let lengths = self.symbol_lengths(rule, parser, budget)?;
        let mut rules = Rules::new(parser, budget)?;
        let completing = self.searches.free.completing.get(&rule).cloned();
        // where all heads are searched for an ending, as lexemes do not combine, it matters which do not
        let mut found = None;
        if !self.searches.free.is_any() {
            rules.kept_apart = self.kept_apart(parser, budget)?;
            found = self.possible_steps(&rules, budget)?.map(|(steps, _)| steps).filter(|steps| !steps.are_cut_off());
        }
        let possible = found.as_ref().or(completing.as_ref().map(|completing| &completing.possible));
        let length = |symbol: &u32| lengths.get(symbol).copied().unwrap_or(NEVER);
        let mut begun = vec![Vec::new(); parser.states() as usize];
        rules.each_reached(budget, |budget, reached| {
            let rest = reached.parts[reached.read..].iter().fold(0u64, |sum, s| plus(sum, length(s)));
            let ways = match possible {
                Some(possible) => possible.rest(parser, &reached, budget)?,
                None => Ways::nothing(),
            };
            let known: &mut Vec<_> = &mut begun[reached.at as usize];
            for way in ways.iter().filter(|_| rest != NEVER) {
                let item = (Item { symbol: reached.symbol, read: reached.read, way: way.clone() }, rest);
                budget.spend(known.len() as u64 / 16)?;
                if !known.contains(&item) {
                    known.push(item);
                }
            }
            Ok(())
        })?;
        let whole = match parser.symbol_into(parser.start, parser.end()) {
            Some(symbol) if possible.is_none_or(|possible| possible.read_whole(parser)) => length(&symbol),
            _ => NEVER,
        };
        let items = Arc::new(Items { begun, whole, kept_apart: rules.kept_apart });
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
