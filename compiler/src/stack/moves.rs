//! What an LR parser does before and with a token: reductions, then a shift.
//!
//! Grammars of expressions make an atom a factor, that a term, that a sum, and so on: a dozen reductions of single symbols
//! before most tokens. These depend on the state below the topmost one only, so they are found in the tables, and the
//! stack is left as it is.

use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

use super::continuation::{Frame, Frames, Stack};
use super::instances::UNSET;
use super::numbers::Numbers;
use super::position::Pos;
use super::step::Machine;
use crate::budget::Budget;
use crate::error::Result;
use crate::ir::{Action, Parser, RuleId};
use crate::small_set::SmallSet;

/// What a state, over another one, does before terminals.
pub(super) struct Actions {
    /// Those that it reads, after reductions of single symbols.
    reads: Numbers,
    /// The other reductions, each in the state that those of single symbols lead to, with the terminals before which it
    /// is made.
    reductions: Box<[(u32, u32, Numbers)]>,
    /// How many words all these sets take.
    words: usize,
}

/// Reductions of single symbols in a row that are not made on the stack, at most: in odd tables they go in a circle.
const IN_A_ROW: usize = 256;

/// Actions by the rule of the parser, a state, and the one below it. `None`: it is not the only one; then reductions of
/// single symbols are like all others.
pub(super) type ActionsByState = FxHashMap<(RuleId, u32, Option<u32>), Arc<Actions>>;

/// The topmost states after a reduction, each with the continuation below the state that it began in.
pub(super) type Reduced = SmallVec<[(Frame, Stack); 2]>;

/// Where the reductions before a token lead.
#[derive(Default)]
pub(super) struct Moves {
    /// The topmost states after it.
    pub(super) frames: Frames,
    /// For the end of the text: the callers' continuations.
    pub(super) callers: SmallVec<[Stack; 1]>,
    pub(super) cut_off: bool,
}

impl Machine {
    /// Which of some terminals the parser can read next: adds those that it can to `possible`, and returns those of which
    /// it depends on more of the stack. Terminals with the same reduction before them are followed together.
    pub(super) fn read_any(
        &mut self,
        (rule, parser): (RuleId, &Parser),
        stack: Stack,
        terminals: Numbers,
        possible: &mut Numbers,
        budget: &mut Budget,
    ) -> Result<Numbers> {
        let frames = self.stacks.frames(stack).iter();
        let mut todo: SmallVec<[(Frame, Numbers); 4]> = frames.map(|&frame| (frame, terminals.clone())).collect();
        let mut left = Numbers::default();
        let mut seen: SmallSet<(Frame, Numbers)> = SmallSet::default();
        while let Some((frame, terminals)) = todo.pop() {
            let Pos::State { state, .. } = self.positions.get(frame.back) else { continue };
            let actions = self.actions_of(rule, parser, state, self.state_below(frame));
            budget.spend(1 + (actions.reductions.len() + actions.words / 8) as u64)?;
            possible.extend(&actions.reads.and(&terminals));
            for (state, by, before) in &actions.reductions {
                let terminals = before.and(&terminals);
                if terminals.is_empty() {
                    continue;
                }
                let top = self.frame_of(rule, *state, frame.below);
                let Some(frames) = self.reduced((rule, parser), top, parser.rule(*by), budget)? else {
                    left.extend(&terminals);
                    continue;
                };
                let next = frames.into_iter().map(|(frame, _)| (frame, terminals.clone()));
                todo.extend(next.filter(|next| seen.insert(next.clone())));
            }
        }
        Ok(left.without(possible))
    }

    /// The state below that of a frame, if there is only one.
    fn state_below(&self, frame: Frame) -> Option<u32> {
        let &[below] = self.stacks.frames(frame.below) else { return None };
        match self.positions.get(below.back) {
            Pos::State { state, .. } => Some(state),
            _ => None,
        }
    }

    /// What a state does before terminals, over another one.
    fn actions_of(&mut self, rule: RuleId, parser: &Parser, state: u32, below: Option<u32>) -> Arc<Actions> {
        let key = (rule, state, below);
        if let Some(known) = self.parsers.actions.get(&key) {
            return known.clone();
        }
        let (mut reads, mut reductions) = (Vec::new(), Vec::new());
        let mut todo: Vec<(u32, Option<Numbers>)> = vec![(state, None)];
        let mut seen = FxHashSet::default();
        while let Some((state, terminals)) = todo.pop() {
            let mut reduces = Vec::new();
            for &(terminal, action) in parser.actions(state) {
                match action {
                    _ if terminals.as_ref().is_some_and(|terminals| !terminals.contains(terminal)) => {}
                    Action::Shift(_) => reads.push(terminal),
                    Action::Reduce(by) => reduces.push((by, terminal)),
                }
            }
            reduces.sort_unstable();
            for same in reduces.chunk_by(|a, b| a.0 == b.0) {
                let (by, before) = (same[0].0, Numbers::of(same.iter().map(|one| one.1)));
                match (below, parser.rule(by)) {
                    (Some(below), (symbol, 1)) => {
                        let next = parser.goto(below, symbol).map(|next| (next, Some(before)));
                        todo.extend(next.filter(|next| seen.insert(next.clone())));
                    }
                    _ => reductions.push((state, by, before)),
                }
            }
        }
        let reads = Numbers::of(reads);
        let words = reads.words() + reductions.iter().map(|(.., before)| before.words()).sum::<usize>();
        let made = Arc::new(Actions { reads, reductions: reductions.into(), words });
        self.parsers.words += words;
        self.parsers.actions.insert(key, made.clone());
        made
    }

    /// Where it leads that a symbol is made of so many symbols on a stack; `None`: it depends on more of the stack.
    pub(super) fn reduced(
        &mut self,
        (rule, parser): (RuleId, &Parser),
        frame: Frame,
        (symbol, length): (u32, usize),
        budget: &mut Budget,
    ) -> Result<Option<Reduced>> {
        let mut tops: SmallVec<[Frame; 2]> = SmallVec::from_slice(&[frame]);
        for _ in 0..length {
            budget.spend(tops.len() as u64)?;
            let mut below: SmallVec<[Stack; 2]> = tops.iter().map(|top| top.below).collect();
            below.sort_unstable();
            below.dedup();
            if below.iter().any(|&k| self.stacks.is_cut_off(k)) {
                return Ok(None);
            }
            tops = below.iter().flat_map(|&k| self.stacks.frames(k).iter().copied()).collect();
        }
        let mut after = SmallVec::new();
        for top in tops {
            let Pos::State { state, .. } = self.positions.get(top.back) else { continue };
            let Some(next) = parser.goto(state, symbol) else { continue };
            let below = self.stacks.of_frames(UNSET, &mut [top]);
            after.push((self.frame_of(rule, next, below), top.below));
        }
        Ok(Some(after))
    }

    /// Where the parser goes from a stack by a token: the reductions before it, and its shift.
    pub(super) fn moves(
        &mut self,
        rule: RuleId,
        parser: &Parser,
        stack: Stack,
        terminal: u32,
        budget: &mut Budget,
    ) -> Result<Moves> {
        let mut out = Moves::default();
        let mut todo: Frames = self.stacks.frames(stack).into();
        let mut seen: SmallSet<Frame> = SmallSet::default();
        while let Some(frame) = todo.pop() {
            budget.spend(1)?;
            let Pos::State { state, .. } = self.positions.get(frame.back) else { continue };
            let (state, actions) = past_single(parser, (state, self.state_below(frame)), terminal);
            let frame = self.frame_of(rule, state, frame.below);
            for &(_, action) in actions {
                match action {
                    Action::Shift(next) => {
                        let below = self.stacks.of_frames(UNSET, &mut [frame]);
                        out.frames.push(self.frame_of(rule, next, below));
                    }
                    Action::Reduce(by) => {
                        let Some(frames) = self.reduced((rule, parser), frame, parser.rule(by), budget)? else {
                            out.cut_off = true;
                            return Ok(out);
                        };
                        for (next, caller) in frames {
                            let Pos::State { state, .. } = self.positions.get(next.back) else { continue };
                            if terminal == Parser::END && parser.is_end(state) {
                                out.callers.push(caller);
                            } else if seen.insert(next) {
                                todo.push(next);
                            }
                        }
                    }
                }
            }
        }
        Ok(out)
    }
}

/// The state, over another one, that reductions of single symbols before a terminal lead to, while there is one way to
/// go on, and what is done there.
fn past_single(parser: &Parser, (mut state, below): (u32, Option<u32>), terminal: u32) -> (u32, &[(u32, Action)]) {
    let mut actions = parser.actions_before(state, terminal);
    for _ in 0..IN_A_ROW {
        let (&[(_, Action::Reduce(by))], Some(below)) = (actions, below) else { break };
        let (symbol, 1) = parser.rule(by) else { break };
        match parser.goto(below, symbol) {
            None => return (state, &[]),
            Some(next) if parser.is_end(next) => break, // what it returns to is asked for
            Some(next) => (state, actions) = (next, parser.actions_before(next, terminal)),
        }
    }
    (state, actions)
}
