//! What an LR parser can read from each of its states: which symbols, beginning with which terminals, and what cannot come
//! behind them.
//!
//! Two things keep it from what its rules allow. Its lexer may never read a terminal that the tables expect: one of higher
//! priority may take all its texts. And where the tables could go on in two ways before a terminal, one was chosen: a
//! rule that is complete there is *refused* before that terminal, which is shifted, or reduces another rule.

use std::collections::hash_map::Entry;

use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

use super::numbers::Numbers;
use crate::budget::Budget;
use crate::error::Result;
use crate::ir::Parser;

/// More ways to read a symbol from a state are not told apart.
const MOST_WAYS: usize = 64;

/// A way to read symbols one after the other.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Way {
    /// The terminals that it may begin with.
    begins: Numbers,
    /// Whether it may also be empty.
    is_empty: bool,
    /// The terminals that cannot come behind it.
    pub(super) refused: Numbers,
}

impl Way {
    /// To read nothing.
    fn nothing() -> Way {
        Way { begins: Numbers::default(), is_empty: true, refused: Numbers::default() }
    }

    /// What cannot come behind it where these terminals cannot come before it.
    pub(super) fn behind(&self, refused: &Numbers) -> impl Iterator<Item = Numbers> + use<> {
        let by_text = self.begins.has_others_than(refused).then(|| self.refused.clone());
        let by_nothing = self.is_empty.then(|| {
            let mut both = refused.clone();
            both.extend(&self.refused);
            both
        });
        by_text.into_iter().chain(by_nothing)
    }
}

/// Some ways, no two of which refuse the same.
#[derive(Clone, Default, Debug)]
pub(super) struct Ways {
    all: SmallVec<[Way; 1]>,
    /// Whether there are too many, and some are left out.
    pub(super) cut_off: bool,
}

impl Ways {
    fn of(way: Way) -> Ways {
        Ways { all: SmallVec::from_iter([way]), cut_off: false }
    }

    /// That to read nothing.
    pub(super) fn nothing() -> Ways {
        Ways::of(Way::nothing())
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Way> {
        self.all.iter()
    }

    /// The ways that lead through one of these and then one of others.
    fn and(&self, others: &Ways) -> Ways {
        let mut both = Ways { all: SmallVec::new(), cut_off: self.cut_off || others.cut_off };
        for next in others.iter() {
            let mut by_text: Option<Numbers> = None;
            for way in self.iter().filter(|way| next.begins.has_others_than(&way.refused)) {
                let begins = by_text.get_or_insert_default();
                begins.extend(&way.begins);
                if way.is_empty {
                    begins.extend(&next.begins.without(&way.refused));
                }
            }
            if let Some(begins) = by_text {
                both.add(&Way { begins, is_empty: false, refused: next.refused.clone() });
            }
            for way in self.iter().filter(|_| next.is_empty) {
                let mut refused = way.refused.clone();
                refused.extend(&next.refused);
                both.add(&Way { begins: way.begins.clone(), is_empty: way.is_empty, refused });
            }
        }
        both
    }

    /// Adds a way. Returns whether that changes anything.
    fn add(&mut self, way: &Way) -> bool {
        if let Some(known) = self.all.iter_mut().find(|known| known.refused == way.refused) {
            let new = way.is_empty && !known.is_empty;
            known.is_empty |= way.is_empty;
            return known.begins.extend(&way.begins) || new;
        }
        if self.all.len() == MOST_WAYS {
            return !std::mem::replace(&mut self.cut_off, true);
        }
        self.all.push(way.clone());
        true
    }
}

/// The rules of a parser.
pub(super) struct Rules<'a> {
    pub(super) parser: &'a Parser,
    /// The states in which each symbol that is no terminal may begin, and those behind it.
    begins: FxHashMap<u32, Vec<(u32, u32)>>,
    /// The numbers of rules that have texts, if every terminal has one: those behind the rules that they consist of.
    order: Vec<u32>,
    /// By terminal: those that cannot come behind it, as far as that is asked for.
    pub(super) kept_apart: FxHashMap<u32, Numbers>,
}

impl<'a> Rules<'a> {
    pub(super) fn new(parser: &'a Parser, budget: &mut Budget) -> Result<Rules<'a>> {
        let mut begins: FxHashMap<u32, Vec<(u32, u32)>> = FxHashMap::default();
        for state in 0..parser.states() {
            for (symbol, next) in parser.gotos(state) {
                begins.entry(symbol).or_default().push((state, next));
            }
        }
        let mut order = Vec::new();
        let mut found: FxHashSet<u32> = FxHashSet::default();
        let mut left: Vec<u32> = (0..parser.rules().len() as u32).collect();
        let mut before = usize::MAX;
        while left.len() != before {
            before = left.len();
            budget.spend(before as u64)?;
            left.retain(|&rule| {
                let (symbol, parts) = &parser.rules()[rule as usize];
                let has_text = parts.iter().all(|part| !begins.contains_key(part) || found.contains(part));
                if has_text {
                    order.push(rule);
                    found.insert(*symbol);
                }
                !has_text
            });
        }
        Ok(Rules { parser, begins, order, kept_apart: FxHashMap::default() })
    }

    /// Whether each symbol that is no terminal has a text. (A parser lists only the rules that it may reduce.)
    pub(super) fn have_texts(&self) -> bool {
        let made: FxHashSet<u32> = self.order.iter().map(|&rule| self.parser.rule(rule).0).collect();
        self.begins.keys().all(|symbol| made.contains(symbol))
    }

    /// Visits each rule in each state in which it may begin: with the state, the state behind the symbol that the rule
    /// makes, and the number of the rule.
    pub(super) fn each(
        &self,
        budget: &mut Budget,
        mut visit: impl FnMut(&mut Budget, u32, u32, u32) -> Result<()>,
    ) -> Result<()> {
        for &rule in &self.order {
            let places = self.begins.get(&self.parser.rule(rule).0).map_or(&[][..], |places| places);
            budget.spend(1 + places.len() as u64 / 4)?;
            for &(state, next) in places {
                visit(budget, state, next, rule)?;
            }
        }
        Ok(())
    }

    /// Visits each rule in each state that its first symbols lead to from where it may begin.
    pub(super) fn each_reached(
        &self,
        budget: &mut Budget,
        mut visit: impl FnMut(&mut Budget, Reached<'a>) -> Result<()>,
    ) -> Result<()> {
        self.each(budget, |budget, from, _, rule| {
            let (symbol, parts) = &self.parser.rules()[rule as usize];
            let mut at = from;
            for (read, &part) in (1..).zip(parts) {
                let Some(next) = self.parser.next(at, part) else { break };
                at = next;
                visit(budget, Reached { rule, symbol: *symbol, parts, read, from, at })?;
            }
            Ok(())
        })
    }
}

/// A rule in a state that its first symbols lead to.
pub(super) struct Reached<'a> {
    pub(super) rule: u32,
    /// The symbol that it makes, and the symbols that it consists of.
    pub(super) symbol: u32,
    pub(super) parts: &'a [u32],
    /// How many of them have been read, one at least: from one state to another one.
    pub(super) read: usize,
    pub(super) from: u32,
    pub(super) at: u32,
}

/// What the lexer of a parser reads, by its modes and by the states of the parser.
pub(super) struct Lexer {
    /// By mode: the terminals that the tables expect in its states.
    expected: Vec<FxHashSet<u32>>,
    /// By mode: the terminals that can be read.
    read: Vec<FxHashSet<u32>>,
    /// By state: the modes in which the terminal may have been read that comes when the state is on top of the stack. It
    /// is read before anything is reduced, in the mode of the state behind the last terminal.
    before: Vec<Numbers>,
}

/// The number of the mode of a state.
pub(super) fn mode(parser: &Parser, state: u32) -> u32 {
    parser.mode(state, 0) / parser.classes()
}

impl Lexer {
    fn new(parser: &Parser, read: Vec<FxHashSet<u32>>) -> Lexer {
        let mut expected = vec![FxHashSet::default(); read.len()];
        for state in 0..parser.states() {
            expected[mode(parser, state) as usize].extend(parser.expected(state));
        }
        let mut before = vec![Numbers::default(); parser.states() as usize];
        before[parser.start as usize] = Numbers::of([mode(parser, parser.start)]);
        Lexer { expected, read, before }
    }

    /// Whether the lexer reads a terminal, for each mode in which it may come before a state reads it.
    fn reads(&self, state: u32, terminal: u32) -> impl Iterator<Item = bool> + '_ {
        let modes = self.before[state as usize].iter();
        let possible = modes.filter(move |&mode| self.expected[mode as usize].contains(&terminal));
        possible.map(move |mode| self.read[mode as usize].contains(&terminal))
    }

    fn may_read(&self, state: u32, terminal: u32) -> bool {
        self.reads(state, terminal).any(|is_read| is_read)
    }

    fn surely_reads(&self, state: u32, terminal: u32) -> bool {
        self.may_read(state, terminal) && self.reads(state, terminal).all(|is_read| is_read)
    }
}

/// What may follow a symbol that is read.
#[derive(Clone, Debug)]
pub(super) struct Step {
    pub(super) next: u32,
    pub(super) ways: Ways,
    /// The round in which ways were added last.
    changed: u32,
}

/// The steps of a parser by symbols that can be read: by terminals, and by the symbols that rules make of what can be read.
pub(super) struct Steps {
    /// By state, and by symbol.
    pub(super) from: Vec<FxHashMap<u32, Step>>,
    /// How often all rules have been looked at.
    round: u32,
}

impl Steps {
    fn new(parser: &Parser) -> Steps {
        Steps { from: vec![FxHashMap::default(); parser.states() as usize], round: 0 }
    }

    /// The steps that a parser may make, and its lexer. What that may read in a state depends on the steps to there: the
    /// least fixpoint of both.
    pub(super) fn possible(rules: &Rules, read: Vec<FxHashSet<u32>>, budget: &mut Budget) -> Result<(Steps, Lexer)> {
        let parser = rules.parser;
        let mut lexer = Lexer::new(parser, read);
        let mut steps = Steps::new(parser);
        let mut changed = true;
        while changed {
            changed = false;
            steps.round += 1;
            for state in 0..parser.states() {
                budget.spend(1 + parser.actions(state).len() as u64 / 4)?;
                for terminal in parser.expected(state) {
                    if let Some(next) = parser.shift(state, terminal)
                        && lexer.may_read(state, terminal)
                    {
                        changed |= steps.add_terminal(rules, state, terminal, next);
                        lexer.before[next as usize].extend(&Numbers::of([mode(parser, next)]));
                    }
                }
            }
            rules.each(budget, |budget, state, next, rule| {
                // behind what a rule makes: the modes of the state behind its last symbol
                let last = steps.add_rule(parser, (state, next), rule, (&mut changed, budget))?;
                if let Some(last) = last.filter(|&last| last != next) {
                    let more = lexer.before[last as usize].clone();
                    changed |= lexer.before[next as usize].extend(&more);
                }
                Ok(())
            })?;
        }
        Ok((steps, lexer))
    }

    /// The steps by terminals that the lexer surely reads.
    pub(super) fn sure(rules: &Rules, lexer: &Lexer, budget: &mut Budget) -> Result<Steps> {
        Steps::by(rules, |state, terminal| lexer.surely_reads(state, terminal), budget)
    }

    /// The steps of a parser whose lexer reads all that its tables expect.
    pub(super) fn all(rules: &Rules, budget: &mut Budget) -> Result<Steps> {
        Steps::by(rules, |_, _| true, budget)
    }

    fn by(rules: &Rules, is_read: impl Fn(u32, u32) -> bool, budget: &mut Budget) -> Result<Steps> {
        let parser = rules.parser;
        let mut steps = Steps::new(parser);
        for state in 0..parser.states() {
            budget.spend(1 + parser.actions(state).len() as u64 / 4)?;
            for terminal in parser.expected(state).filter(|&terminal| is_read(state, terminal)) {
                if let Some(next) = parser.shift(state, terminal) {
                    steps.add_terminal(rules, state, terminal, next);
                }
            }
        }
        let mut changed = true;
        while changed {
            changed = false;
            steps.round += 1;
            rules.each(budget, |budget, state, next, rule| {
                steps.add_rule(parser, (state, next), rule, (&mut changed, budget)).map(drop)
            })?;
        }
        Ok(steps)
    }

    /// Adds the step by a terminal. Returns whether it is new.
    fn add_terminal(&mut self, rules: &Rules, state: u32, terminal: u32, next: u32) -> bool {
        let Entry::Vacant(new) = self.from[state as usize].entry(terminal) else { return false };
        let refused = rules.kept_apart.get(&terminal).cloned().unwrap_or_default();
        let way = Way { begins: Numbers::of([terminal]), is_empty: false, refused };
        new.insert(Step { next, ways: Ways::of(way), changed: self.round });
        true
    }

    /// Adds the step by what a rule makes, if its symbols can be read. Returns the state behind the last of them.
    fn add_rule(
        &mut self,
        parser: &Parser,
        (state, next): (u32, u32),
        rule: u32,
        (changed, budget): (&mut bool, &mut Budget),
    ) -> Result<Option<u32>> {
        let (symbol, parts) = &parser.rules()[rule as usize];
        let mut last = state;
        let mut latest = 1;
        for part in parts {
            let Some(step) = self.from[last as usize].get(part) else { return Ok(None) };
            (last, latest) = (step.next, latest.max(step.changed));
        }
        if latest + 1 < self.round {
            return Ok(Some(last));
        }
        let ways = self.ways(parser, state, (rule, parts), budget)?;
        if ways.all.is_empty() {
            return Ok(None);
        }
        let new = || Step { next, ways: Ways::default(), changed: 0 };
        let known = self.from[state as usize].entry(*symbol).or_insert_with(new);
        let mut grown = false;
        for way in ways.iter() {
            grown |= known.ways.add(way);
        }
        known.ways.cut_off |= ways.cut_off;
        if grown {
            known.changed = self.round;
            *changed = true;
        }
        Ok(Some(last))
    }

    /// How the symbols of a rule that have not been read can be, so that the rule is reduced.
    pub(super) fn rest(&self, parser: &Parser, reached: &Reached, budget: &mut Budget) -> Result<Ways> {
        self.ways(parser, reached.at, (reached.rule, &reached.parts[reached.read..]), budget)
    }

    /// How the last symbols of a rule can be read from a state, so that the rule is reduced.
    fn ways(&self, parser: &Parser, state: u32, (rule, parts): (u32, &[u32]), budget: &mut Budget) -> Result<Ways> {
        let mut at = state;
        let mut ways = Ways::nothing();
        for part in parts {
            let Some(step) = self.from[at as usize].get(part) else { return Ok(Ways::default()) };
            budget.spend((ways.all.len() * step.ways.all.len() / 4) as u64)?;
            (at, ways) = (step.next, ways.and(&step.ways));
        }
        let refused = parser.refused(at, rule);
        if !refused.is_empty() {
            let end = Way { refused: Numbers::of(refused.iter().copied()), ..Way::nothing() };
            ways = ways.and(&Ways::of(end));
        }
        Ok(ways)
    }

    /// Whether a whole text can be read.
    pub(super) fn read_whole(&self, parser: &Parser) -> bool {
        let whole = parser.symbol_into(parser.start, parser.end());
        let step = whole.and_then(|symbol| self.from[parser.start as usize].get(&symbol));
        step.is_some_and(|step| step.ways.iter().any(|way| !way.refused.contains(Parser::END)))
    }

    /// Bytes held.
    pub(super) fn memory(&self) -> usize {
        self.from.iter().map(|steps| steps.len() * (size_of::<Step>() + 8)).sum()
    }

    /// Whether ways were left out.
    pub(super) fn are_cut_off(&self) -> bool {
        self.from.iter().flat_map(FxHashMap::values).any(|step| step.ways.cut_off)
    }
}
