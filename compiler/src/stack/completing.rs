//! What an LR parser can complete of what it has begun, although its lexer may not read every terminal that the tables
//! expect, and the tables may refuse to complete a rule (`reading.rs`).

use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

use super::continuation::{Frame, Stack};
use super::instances::UNSET;
use super::numbers::Numbers;
use super::position::Pos;
use super::reading::{Lexer, Reached, Rules, Step, Steps, Way, mode};
use super::step::Machine;
use crate::budget::Budget;
use crate::error::Result;
use crate::ir::{Parser, RuleId};

/// The rest of a rule that can be read in a state.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Item {
    /// What the rule makes, and how many symbols of it have been read.
    pub(super) symbol: u32,
    pub(super) read: usize,
    pub(super) way: Way,
}

/// Items, by state.
type Items = Vec<Vec<Item>>;

/// Steps of a parser by terminals: the state that each begins in, and the terminals by which it does.
type Uncertain = FxHashMap<u32, Numbers>;

/// What a parser surely completes of what it has begun.
pub(super) struct Completing {
    items: Items,
    /// The steps behind which it depends on more of the stack whether anything can be completed.
    uncertain: Uncertain,
    /// Whether it can read a whole text from its start state.
    from_start: bool,
    /// The steps that it may make.
    pub(super) possible: Steps,
    /// Bytes held.
    pub(super) memory: usize,
}

/// A stack, and the terminals that cannot come behind it.
pub(super) type Configuration = (Stack, Numbers);

/// What is known of configurations: whether what they have begun can be completed.
pub(super) type Completed = FxHashMap<Configuration, bool>;

impl Completing {
    /// Whether something can be completed behind a terminal, whatever stands before it.
    pub(super) fn always_behind(&self, terminal: u32) -> bool {
        self.uncertain.values().all(|terminals| !terminals.contains(terminal))
    }
}

/// What an LR parser can do of what its rules allow.
pub(super) enum Completes {
    /// Always something that it has begun, until all is complete.
    All,
    /// Surely this.
    Only(Completing),
    /// Too much is refused to tell.
    Unknown,
}

impl Machine {
    /// What a parser surely completes of what it has begun, by terminals that its lexer can read there.
    pub(super) fn completes_surely(&mut self, parser: &Parser, budget: &mut Budget) -> Result<Completes> {
        let rules = Rules::new(parser, budget)?;
        let Some((possible, lexer)) = self.possible_steps(&rules, budget)? else { return Ok(Completes::All) };
        if possible.are_cut_off() {
            return Ok(Completes::Unknown);
        }
        let sure = lexer.map(|lexer| Steps::sure(&rules, &lexer, budget)).transpose()?;
        let sure = sure.as_ref().unwrap_or(&possible);
        let items = items(&rules, sure, budget)?;
        let uncertain = uncertain(&rules, &possible, &items, budget)?;
        if uncertain.is_empty() {
            return Ok(Completes::All);
        }
        let from_start = sure.read_whole(parser);
        let memory = items.iter().map(|items| items.len() * size_of::<Item>()).sum::<usize>() + possible.memory();
        Ok(Completes::Only(Completing { items, uncertain, from_start, possible, memory }))
    }

    /// The steps that a parser may make, if these are not all that its rules allow; and its lexer, if that does not read
    /// all that the tables expect.
    pub(super) fn possible_steps(
        &mut self,
        rules: &Rules,
        budget: &mut Budget,
    ) -> Result<Option<(Steps, Option<Lexer>)>> {
        let parser = rules.parser;
        let read = self.terminals_read(parser, budget)?;
        let is_read = |state, terminal: u32| read[mode(parser, state) as usize].contains(&terminal);
        let mut states = 0..parser.states();
        if !states.all(|state| parser.expected(state).all(|terminal| is_read(state, terminal))) {
            let (steps, lexer) = Steps::possible(rules, read, budget)?;
            return Ok(Some((steps, Some(lexer))));
        }
        let all = rules.have_texts() && !parser.refuses() && rules.kept_apart.is_empty();
        Ok(if all { None } else { Some((Steps::all(rules, budget)?, None)) })
    }

    /// Whether a parser can complete a stack, as far as that follows from what it surely completes.
    pub(super) fn completes(&mut self, rule: RuleId, stack: Stack, budget: &mut Budget) -> Result<bool> {
        let ir = self.ir.clone();
        let Some(parser) = ir.parser(rule) else { return Ok(false) };
        let Some(completing) = self.searches.free.completing.get(&rule).cloned() else { return Ok(true) };
        let start = (stack, Numbers::default());
        if let Some(&known) = self.searches.completed.get(&start) {
            return Ok(known);
        }
        let mut todo = vec![start.clone()];
        let mut before: FxHashMap<Configuration, Configuration> =
            FxHashMap::from_iter([(start.clone(), start.clone())]);
        while let Some(at) = todo.pop() {
            budget.spend(2)?;
            let known = self.searches.completed.get(&at).copied();
            if known == Some(false) {
                continue;
            }
            let tops = if known.is_some() { Vec::new() } else { self.stacks.frames(at.0).to_vec() };
            let mut completed = known.is_some();
            for top in tops {
                let Pos::State { state, .. } = self.positions.get(top.back) else { continue };
                completed |= parser.is_end(state) && !at.1.contains(Parser::END);
                completed |= state == parser.start && completing.from_start;
                for item in &completing.items[state as usize] {
                    for refused in item.way.behind(&at.1) {
                        budget.spend(1)?;
                        for next in self.stacks_behind((rule, parser), top, (item.symbol, item.read), budget)? {
                            let next = (next, refused.clone());
                            before.entry(next).or_insert_with_key(|next| {
                                todo.push(next.clone());
                                at.clone()
                            });
                        }
                    }
                }
            }
            if completed {
                // so are the configurations on the way to it
                let mut on_the_way = &at;
                while *on_the_way != start {
                    self.searches.completed.insert(on_the_way.clone(), true);
                    on_the_way = &before[on_the_way];
                }
                self.searches.completed.insert(start, true);
                return Ok(true);
            }
        }
        self.searches.completed.extend(before.into_keys().map(|at| (at, false)));
        Ok(false)
    }

    /// Whether a parser can complete a stack whatever stands below its two topmost states.
    pub(super) fn completes_by_top(&self, rule: RuleId, stack: Stack) -> bool {
        let Some(parser) = self.ir.parser(rule) else { return false };
        let Some(completing) = self.searches.free.completing.get(&rule) else { return true };
        let state = |frame: &Frame| match self.positions.get(frame.back) {
            Pos::State { state, .. } => Some(state),
            _ => None,
        };
        self.stacks.frames(stack).iter().any(|top| {
            let Some(at) = state(top) else { return false };
            let is_sure = |before: u32| {
                let mut uncertain = completing.uncertain.get(&before).into_iter().flat_map(Numbers::iter);
                uncertain.all(|terminal| parser.next(before, terminal) != Some(at))
            };
            at == parser.start && completing.from_start
                || self.stacks.frames(top.below).iter().filter_map(state).any(is_sure)
        })
    }

    /// The stacks of one topmost state behind a symbol that is made of so many symbols on a stack.
    pub(super) fn stacks_behind(
        &mut self,
        place: (RuleId, &Parser),
        top: Frame,
        item: (u32, usize),
        budget: &mut Budget,
    ) -> Result<SmallVec<[Stack; 2]>> {
        let frames = self.reduced(place, top, item, budget)?.unwrap_or_default();
        Ok(frames.into_iter().map(|(frame, _)| self.stacks.of_frames(UNSET, &mut [frame])).collect())
    }

    /// The terminals that the lexer of a parser can read, by its modes, whatever character stands before.
    fn terminals_read(&mut self, parser: &Parser, budget: &mut Budget) -> Result<Vec<FxHashSet<u32>>> {
        let mut read: Vec<FxHashSet<u32>> = Vec::new();
        for modes in parser.modes().chunks(parser.classes() as usize) {
            let mut terminals = FxHashSet::default();
            for lexeme in modes.iter().flatten().filter(|lexeme| !parser.is_ignored(lexeme.terminal)) {
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

/// The items of rules the rests of which can be read by some steps.
fn items(rules: &Rules, steps: &Steps, budget: &mut Budget) -> Result<Items> {
    let mut items = vec![Vec::new(); rules.parser.states() as usize];
    rules.each_reached(budget, |budget, reached| {
        let items: &mut Vec<Item> = &mut items[reached.at as usize];
        for way in steps.rest(rules.parser, &reached, budget)?.iter() {
            let item = Item { symbol: reached.symbol, read: reached.read, way: way.clone() };
            budget.spend(items.len() as u64 / 16)?;
            if !items.contains(&item) {
                items.push(item);
            }
        }
        Ok(())
    })?;
    Ok(items)
}

/// The terminals that a parser may read behind which it may not complete anything that it has begun, by the states in
/// which they are read. The others are the greatest solution of two rules. A step leads to the end of something if a rule
/// goes on behind its symbol with what stands on the stack already, so that completing it makes the stack shorter, and
/// each step that this completes leads there; or if it ends the text. And the first symbol of a rule does where the symbol
/// that the rule makes of it does: that is a least fixpoint, because what is completed behind a single symbol only takes
/// its place: an item makes a list of one item, and nothing is gained unless the list can end.
fn uncertain(rules: &Rules, possible: &Steps, items: &Items, budget: &mut Budget) -> Result<Uncertain> {
    let parser = rules.parser;
    let mut steps: Vec<(u32, u32, &Step, &Numbers)> = Vec::new();
    for state in reachable(parser, possible) {
        for (&symbol, step) in &possible.from[state as usize] {
            steps.extend(step.ways.iter().map(|way| (state, symbol, step, &way.refused)));
        }
    }
    let origins = origins(rules, budget)?;
    // by symbol, and by what is refused behind it: the states in which steps begin that do not lead there
    let mut bad: FxHashMap<(u32, &Numbers), FxHashSet<u32>> = FxHashMap::default();
    loop {
        let mut left = steps.clone();
        let mut leading: FxHashSet<(u32, u32, Numbers)> = FxHashSet::default();
        let mut before = usize::MAX;
        while left.len() != before {
            before = left.len();
            let tried: usize = left.iter().map(|(_, _, step, _)| 8 + items[step.next as usize].len()).sum();
            budget.spend(tried as u64 / 32)?;
            left.retain(|&(state, symbol, step, refused)| {
                let ends = parser.is_end(step.next) && !refused.contains(Parser::END);
                let leads = |item: &Item| {
                    let mut behind = item.way.behind(refused);
                    behind.any(|refused| {
                        if item.read == 1 {
                            return leading.contains(&(state, item.symbol, refused));
                        }
                        let begun = &origins[&(step.next, item.symbol, item.read)];
                        bad.get(&(item.symbol, &refused)).is_none_or(|bad| bad.is_disjoint(begun))
                    })
                };
                let leads = ends || items[step.next as usize].iter().any(leads);
                if leads {
                    leading.insert((state, symbol, refused.clone()));
                }
                !leads
            });
        }
        let mut known = 0;
        for &(state, symbol, _, refused) in &left {
            known += usize::from(!bad.entry((symbol, refused)).or_default().insert(state));
        }
        if known == left.len() {
            let mut uncertain: FxHashMap<u32, Numbers> = FxHashMap::default();
            for &(state, symbol, ..) in left.iter().filter(|step| parser.goto(step.0, step.1).is_none()) {
                uncertain.entry(state).or_default().extend(&Numbers::of([symbol]));
            }
            return Ok(uncertain);
        }
    }
}

/// By state, and by how many symbols of a rule that makes a symbol have been read: where that may have been begun.
fn origins(rules: &Rules, budget: &mut Budget) -> Result<FxHashMap<(u32, u32, usize), FxHashSet<u32>>> {
    let mut origins: FxHashMap<(u32, u32, usize), FxHashSet<u32>> = FxHashMap::default();
    rules.each_reached(budget, |_, Reached { at, symbol, read, from, .. }| {
        origins.entry((at, symbol, read)).or_default().insert(from);
        Ok(())
    })?;
    Ok(origins)
}

/// The states that some steps lead to.
fn reachable(parser: &Parser, steps: &Steps) -> FxHashSet<u32> {
    let mut met: FxHashSet<u32> = FxHashSet::from_iter([parser.start]);
    let mut todo = vec![parser.start];
    while let Some(state) = todo.pop() {
        todo.extend(steps.from[state as usize].values().map(|step| step.next).filter(|&next| met.insert(next)));
    }
    met
}
