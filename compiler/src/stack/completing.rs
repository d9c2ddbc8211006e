//! Whether an LR parser can always complete what it has begun, although its lexer may not read every terminal that the
//! tables expect: one of higher priority may take all its texts.

use rustc_hash::{FxHashMap, FxHashSet};

use super::step::Machine;
use crate::budget::Budget;
use crate::error::Result;
use crate::ir::Parser;

/// A state, and a symbol that is read in it.
type Step = (u32, u32);

impl Machine {
    /// Whether a parser can always complete something that it has begun, until all is complete, by terminals that the
    /// lexer of the states on the way can read.
    pub(super) fn completes_all(&mut self, parser: &Parser, budget: &mut Budget) -> Result<bool> {
        let read = self.terminals_read(parser, budget)?;
        let is_read = |state, terminal| read[(parser.mode(state, 0) / parser.classes()) as usize].contains(&terminal);
        if (0..parser.states()).all(|state| parser.expected(state).all(|terminal| is_read(state, terminal))) {
            return Ok(true);
        }
        let steps = Steps::new(parser, is_read, budget)?;
        let completing = steps.completing(budget)?;
        Ok(steps.all_reachable(|step| completing.contains(&step)))
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

/// The steps of a parser by symbols that can be read.
struct Steps<'a> {
    parser: &'a Parser,
    /// By state: the symbols that can be read in it, and the states behind them.
    from: Vec<FxHashMap<u32, u32>>,
}

/// What the rules of a parser pass, as far as they can be read from where they may begin.
#[derive(Default)]
struct Passed {
    /// The states behind their second symbols and later ones.
    later: FxHashSet<u32>,
    /// By where they begin and what they make: their first symbols.
    firsts: FxHashMap<Step, Vec<u32>>,
}

impl<'a> Steps<'a> {
    /// Those by terminals that are read, and then by the symbols that rules make of what can be read in a state.
    fn new(parser: &'a Parser, is_read: impl Fn(u32, u32) -> bool, budget: &mut Budget) -> Result<Steps<'a>> {
        let shifts = |state| {
            let read = parser.expected(state).filter(|&terminal| is_read(state, terminal));
            read.filter_map(|terminal| Some((terminal, parser.next(state, terminal)?))).collect()
        };
        let mut steps = Steps { parser, from: (0..parser.states()).map(shifts).collect() };
        let mut rules: FxHashMap<u32, Vec<&[u32]>> = FxHashMap::default();
        for (symbol, parts) in parser.rules() {
            rules.entry(*symbol).or_default().push(parts);
        }
        let mut changed = true;
        while changed {
            changed = false;
            for state in 0..parser.states() {
                for symbol in parser.derived_in(state) {
                    budget.spend(1)?;
                    let mut rules = rules.get(&symbol).into_iter().flatten();
                    if !steps.from[state as usize].contains_key(&symbol)
                        && rules.any(|parts| steps.path(state, parts).is_some())
                        && let Some(next) = parser.goto(state, symbol)
                    {
                        steps.from[state as usize].insert(symbol, next);
                        changed = true;
                    }
                }
            }
        }
        Ok(steps)
    }

    /// The states behind each of some symbols, if they can be read one after the other.
    fn path(&self, state: u32, parts: &[u32]) -> Option<Vec<u32>> {
        let mut at = state;
        let step = |part: &u32| {
            at = *self.from[at as usize].get(part)?;
            Some(at)
        };
        parts.iter().map(step).collect()
    }

    /// The steps that may be part of completing what was begun: the least fixpoint of two rules. A step does if a rule
    /// goes on behind its symbol with what stands on the stack already, so that completing it makes the stack shorter, or
    /// if it ends the text. And the first symbol of a rule does where the symbol that the rule makes of it does. That is
    /// asked because what is completed behind a single symbol only takes its place: an item makes a list of one item,
    /// and nothing is gained unless the list can end.
    fn completing(&self, budget: &mut Budget) -> Result<FxHashSet<Step>> {
        let passed = self.passed(budget)?;
        let mut todo: Vec<Step> = Vec::new();
        for (state, steps) in (0u32..).zip(&self.from) {
            let ends = |next: u32| passed.later.contains(&next) || self.parser.is_end(next);
            todo.extend(steps.iter().filter(|step| ends(*step.1)).map(|step| (state, *step.0)));
        }
        let mut completing: FxHashSet<Step> = todo.iter().copied().collect();
        while let Some((state, symbol)) = todo.pop() {
            for &first in passed.firsts.get(&(state, symbol)).into_iter().flatten() {
                if completing.insert((state, first)) {
                    todo.push((state, first));
                }
            }
        }
        Ok(completing)
    }

    fn passed(&self, budget: &mut Budget) -> Result<Passed> {
        let mut passed = Passed::default();
        for state in 0..self.parser.states() {
            let derived: FxHashSet<u32> = self.parser.derived_in(state).collect();
            for (symbol, parts) in self.parser.rules() {
                budget.spend(1)?;
                if !derived.contains(symbol) {
                    continue;
                }
                if let Some(path) = self.path(state, parts) {
                    passed.later.extend(path.into_iter().skip(1));
                    passed.firsts.entry((state, *symbol)).or_default().extend(parts.first());
                }
            }
        }
        Ok(passed)
    }

    /// Whether something holds of each step that can be come to.
    fn all_reachable(&self, holds: impl Fn(Step) -> bool) -> bool {
        let mut met: FxHashSet<u32> = FxHashSet::from_iter([self.parser.start]);
        let mut todo = vec![self.parser.start];
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
