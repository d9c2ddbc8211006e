//! Whether an LR parser can always complete what it has begun, although its lexer may not read every terminal that the
//! tables expect: one of higher priority may take all its texts.

use rustc_hash::{FxHashMap, FxHashSet};

use super::step::Machine;
use crate::budget::Budget;
use crate::error::Result;
use crate::ir::{Parser, RuleId};

/// A state, and a symbol that is read in it.
type Step = (u32, u32);

impl Machine {
    /// Whether a parser can always complete something that it has begun, until all is complete, by terminals that the
    /// lexer of the states on the way can read.
    pub(super) fn completes_all(&mut self, rule: RuleId, parser: &Parser, budget: &mut Budget) -> Result<bool> {
        let read = self.terminals_read(parser, budget)?;
        let is_read = |state, terminal| read[(parser.mode(state, 0) / parser.classes()) as usize].contains(&terminal);
        if (0..parser.states()).all(|state| parser.expected(state).all(|terminal| is_read(state, terminal))) {
            return Ok(true);
        }
        let lengths = self.symbol_lengths(rule, parser, budget)?;
        let steps = Steps::new(parser, |state, symbol| match parser.goto(state, symbol) {
            Some(_) => lengths.contains_key(&symbol),
            None => is_read(state, symbol),
        });
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
    fn new(parser: &'a Parser, can_be_read: impl Fn(u32, u32) -> bool) -> Steps<'a> {
        let from = |state| {
            let symbols = parser.expected(state).chain(parser.derived_in(state));
            let read = symbols.filter(|&symbol| can_be_read(state, symbol));
            read.filter_map(|symbol| Some((symbol, parser.next(state, symbol)?))).collect()
        };
        Steps { parser, from: (0..parser.states()).map(from).collect() }
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
                let step = |at: &mut u32, part: &u32| {
                    *at = *self.from[*at as usize].get(part)?;
                    Some(*at)
                };
                let path: Vec<u32> = parts.iter().scan(state, step).collect();
                if path.len() == parts.len() {
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
