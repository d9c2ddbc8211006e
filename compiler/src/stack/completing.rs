//! Whether an LR parser can always complete what it has begun, although its lexer may not read every terminal that the
//! tables expect: one of higher priority may take all its texts.

use std::collections::BTreeSet;

use rustc_hash::{FxHashMap, FxHashSet};

use super::step::Machine;
use crate::budget::Budget;
use crate::error::Result;
use crate::ir::Parser;

/// A state, and a symbol that is read in it.
type Step = (u32, u32);

impl Machine {
    /// Whether a parser can always complete something that it has begun, until all is complete, by terminals that its
    /// lexer can read there.
    pub(super) fn completes_all(&mut self, parser: &Parser, budget: &mut Budget) -> Result<bool> {
        let read = self.terminals_read(parser, budget)?;
        let own_mode = |state| &read[mode(parser, state)];
        let mut states = 0..parser.states();
        if states.all(|state| parser.expected(state).all(|terminal| own_mode(state).contains(&terminal)))
            && have_texts(parser, budget)?
        {
            return Ok(true);
        }
        let rules = Rules::new(parser);
        let lexer = Lexer::new(&rules, read, budget)?;
        let sure = Steps::new(&rules, |state, terminal| lexer.surely_reads(state, terminal), budget)?;
        let possible = Steps::new(&rules, |state, terminal| lexer.may_read(state, terminal), budget)?;
        let completing = sure.completing(budget)?;
        Ok(possible.all_reachable(|step| completing.contains(&step)))
    }

    /// The terminals that the lexer of a parser can read, by its modes, whatever character stands before.
    fn terminals_read(&mut self, parser: &Parser, budget: &mut Budget) -> Result<Vec<FxHashSet<u32>>> {
        let mut read: Vec<FxHashSet<u32>> = Vec::new();
        for modes in parser.modes().chunks(parser.classes() as usize) {
            let mut terminals = FxHashSet::default();
            for lexeme in modes.iter().flatten() {
                let x = self.whole_lexeme(lexeme.text, budget)?;
                if self.arena.alive(x, budget)? {
                    terminals.insert(lexeme.terminal);
                }
            }
            if let Some(indenter) = parser.indenter() {
                terminals.extend([indenter.indent, indenter.dedent]);
            }
            read.push(terminals);
        }
        Ok(read)
    }
}

/// Whether each symbol that is no terminal has a text, if every terminal has one. (A parser lists only the rules that it
/// reduces, so a symbol may have none.)
fn have_texts(parser: &Parser, budget: &mut Budget) -> Result<bool> {
    let made: FxHashSet<u32> = (0..parser.states()).flat_map(|state| parser.derived_in(state)).collect();
    let mut found: FxHashSet<u32> = FxHashSet::default();
    let mut before = usize::MAX;
    while found.len() != before {
        before = found.len();
        for (symbol, parts) in parser.rules() {
            budget.spend(1)?;
            if parts.iter().all(|part| !made.contains(part) || found.contains(part)) {
                found.insert(*symbol);
            }
        }
    }
    Ok(found.len() == made.len())
}

/// The rules of a parser.
struct Rules<'a> {
    parser: &'a Parser,
    /// What the rules of each symbol consist of.
    by_symbol: FxHashMap<u32, Vec<&'a [u32]>>,
}

impl<'a> Rules<'a> {
    fn new(parser: &'a Parser) -> Rules<'a> {
        let mut by_symbol: FxHashMap<u32, Vec<&[u32]>> = FxHashMap::default();
        for (symbol, parts) in parser.rules() {
            by_symbol.entry(*symbol).or_default().push(parts);
        }
        Rules { parser, by_symbol }
    }

    /// Visits each rule in each state in which it may begin: with the state, the symbol that it makes, and its parts.
    fn each(&self, budget: &mut Budget, mut visit: impl FnMut(u32, u32, &[u32])) -> Result<()> {
        for state in 0..self.parser.states() {
            for symbol in self.parser.derived_in(state) {
                for parts in self.by_symbol.get(&symbol).into_iter().flatten() {
                    budget.spend(1 + parts.len() as u64)?;
                    visit(state, symbol, parts);
                }
            }
        }
        Ok(())
    }

    /// The same, again and again, with the state behind the symbol, until no visit changes anything.
    fn until_stable(&self, budget: &mut Budget, mut visit: impl FnMut(u32, (u32, u32), &[u32]) -> bool) -> Result<()> {
        let mut changed = true;
        while changed {
            changed = false;
            self.each(budget, |state, symbol, parts| {
                if let Some(next) = self.parser.goto(state, symbol) {
                    changed |= visit(state, (symbol, next), parts);
                }
            })?;
        }
        Ok(())
    }
}

/// What the lexer of a parser reads, by its modes and by the states of the parser.
struct Lexer {
    /// By mode: the terminals that the tables expect in its states.
    expected: Vec<FxHashSet<u32>>,
    /// By mode: the terminals that can be read.
    read: Vec<FxHashSet<u32>>,
    /// By state: the modes in which the terminal may have been read that comes when the state is on top of the stack. It
    /// is read before anything is reduced, in the mode of the state behind the last terminal.
    before: Vec<BTreeSet<usize>>,
}

/// The number of the mode of a state.
fn mode(parser: &Parser, state: u32) -> usize {
    (parser.mode(state, 0) / parser.classes()) as usize
}

impl Lexer {
    fn new(rules: &Rules, read: Vec<FxHashSet<u32>>, budget: &mut Budget) -> Result<Lexer> {
        let parser = rules.parser;
        let mut expected = vec![FxHashSet::default(); read.len()];
        let mut before = vec![BTreeSet::new(); parser.states() as usize];
        before[parser.start as usize].insert(mode(parser, parser.start));
        for state in 0..parser.states() {
            expected[mode(parser, state)].extend(parser.expected(state));
            for next in parser.expected(state).filter_map(|terminal| parser.next(state, terminal)) {
                before[next as usize].insert(mode(parser, next));
            }
        }
        // behind what a rule makes: the modes of the state behind its last symbol
        rules.until_stable(budget, |state, (_, next), parts| {
            let last = parts.iter().try_fold(state, |at, &part| parser.next(at, part));
            let Some(last) = last else { return false };
            let more = before[last as usize].clone();
            let known = before[next as usize].len();
            before[next as usize].extend(more);
            before[next as usize].len() > known
        })?;
        Ok(Lexer { expected, read, before })
    }

    /// Whether the lexer reads a terminal, for each mode in which it may come before a state reads it.
    fn reads(&self, state: u32, terminal: u32) -> impl Iterator<Item = bool> + '_ {
        let modes = self.before[state as usize].iter();
        let possible = modes.filter(move |&&mode| self.expected[mode].contains(&terminal));
        possible.map(move |&mode| self.read[mode].contains(&terminal))
    }

    fn may_read(&self, state: u32, terminal: u32) -> bool {
        self.reads(state, terminal).any(|is_read| is_read)
    }

    fn surely_reads(&self, state: u32, terminal: u32) -> bool {
        self.may_read(state, terminal) && self.reads(state, terminal).all(|is_read| is_read)
    }
}

/// The steps of a parser by symbols that can be read.
struct Steps<'a> {
    rules: &'a Rules<'a>,
    /// By state: the symbols that can be read in it, and the states behind them.
    from: Vec<FxHashMap<u32, u32>>,
}

/// Where what was begun by a rule can be completed.
#[derive(Default)]
struct Completed {
    /// The states behind second symbols of rules and later ones, where the rest of the rule can be read.
    later: FxHashSet<u32>,
    /// By where a rule begins and what it makes: its first symbol, if the rest can be read behind it.
    firsts: FxHashMap<Step, Vec<u32>>,
}

impl<'a> Steps<'a> {
    /// Those by terminals that are read, and then by the symbols that rules make of what can be read in a state.
    fn new(rules: &'a Rules, is_read: impl Fn(u32, u32) -> bool, budget: &mut Budget) -> Result<Steps<'a>> {
        let parser = rules.parser;
        let shifts = |state| {
            let read = parser.expected(state).filter(|&terminal| is_read(state, terminal));
            read.filter_map(|terminal| Some((terminal, parser.next(state, terminal)?))).collect()
        };
        let mut steps = Steps { rules, from: (0..parser.states()).map(shifts).collect() };
        rules.until_stable(budget, |state, (symbol, next), parts| {
            let new = !steps.from[state as usize].contains_key(&symbol) && steps.can_be_read(state, parts);
            if new {
                steps.from[state as usize].insert(symbol, next);
            }
            new
        })?;
        Ok(steps)
    }

    /// Whether some symbols can be read one after the other.
    fn can_be_read(&self, state: u32, parts: &[u32]) -> bool {
        parts.iter().try_fold(state, |at, part| self.from[at as usize].get(part).copied()).is_some()
    }

    /// The steps that may be part of completing what was begun: the least fixpoint of two rules. A step does if a rule
    /// goes on behind its symbol with what stands on the stack already, so that completing it makes the stack shorter, or
    /// if it ends the text. And the first symbol of a rule does where the symbol that the rule makes of it does. That is
    /// asked because what is completed behind a single symbol only takes its place: an item makes a list of one item,
    /// and nothing is gained unless the list can end.
    fn completing(&self, budget: &mut Budget) -> Result<FxHashSet<Step>> {
        let completed = self.completed(budget)?;
        let parser = self.rules.parser;
        let ends = |next: u32| completed.later.contains(&next) || parser.is_end(next);
        let mut todo: Vec<Step> = Vec::new();
        for state in 0..parser.states() {
            let symbols = parser.expected(state).chain(parser.derived_in(state));
            let ending = symbols.filter(|&symbol| parser.next(state, symbol).is_some_and(ends));
            todo.extend(ending.map(|symbol| (state, symbol)));
        }
        let mut completing: FxHashSet<Step> = todo.iter().copied().collect();
        while let Some((state, symbol)) = todo.pop() {
            for &first in completed.firsts.get(&(state, symbol)).into_iter().flatten() {
                if completing.insert((state, first)) {
                    todo.push((state, first));
                }
            }
        }
        Ok(completing)
    }

    /// What can be completed of all rules, from where they may begin.
    fn completed(&self, budget: &mut Budget) -> Result<Completed> {
        let mut completed = Completed::default();
        self.rules.each(budget, |state, symbol, parts| {
            let step = |at: &mut u32, part: &u32| {
                *at = self.rules.parser.next(*at, *part)?;
                Some(*at)
            };
            let path: Vec<u32> = parts.iter().scan(state, step).collect();
            if path.len() < parts.len() {
                return;
            }
            for (place, &at) in path.iter().enumerate().rev() {
                if parts.get(place + 1).is_some_and(|next| !self.from[at as usize].contains_key(next)) {
                    return;
                } else if place > 0 {
                    completed.later.insert(at);
                } else {
                    completed.firsts.entry((state, symbol)).or_default().push(parts[0]);
                }
            }
        })?;
        Ok(completed)
    }

    /// Whether something holds of each step that can be come to.
    fn all_reachable(&self, holds: impl Fn(Step) -> bool) -> bool {
        let mut met: FxHashSet<u32> = FxHashSet::from_iter([self.rules.parser.start]);
        let mut todo = vec![self.rules.parser.start];
        while let Some(state) = todo.pop() {
            for (&symbol, &next) in &self.from[state as usize] {
                if !holds((state, symbol)) {
                    return false;
                }
                if met.insert(next) {
                    todo.push(next);
                }
            }
        }
        true
    }
}
