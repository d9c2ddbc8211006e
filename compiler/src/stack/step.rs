//! The machine of a grammar: its parts, and the closures of kernels.
//!
//! A closure adds to the heads of a kernel what follows without another byte: calls are predicted, callers before
//! callees, so that each callee is entered once for all its callers; completed rules return to the frames of their
//! continuation.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::combining::Care;
use super::continuation::{ANY, Continuations, Frame, Frames, NO_CALLEE, Stack, UNSURE};
use super::grammar::Analysis;
use super::instances::{Instance, Instances, ParamId, UNSET};
use super::parser::Parsers;
use super::position::{BOTTOM, Pos, PosId, Positions};
use super::predict::{Ending, Expansion, Shared};
use super::proofs::Proofs;
use super::search::Searches;
use super::shortest::Shortest;
use super::table::{ByteState, Table};
use crate::budget::Budget;
use crate::error::{Error, Result};
use crate::ir::{Ir, Kinds, Parser, RuleId, UNBOUNDED};
use crate::regular::{Arena, Counts, EMPTY, Id, Limit, Limits, Lowered, TOP};
use crate::small_set::SmallSet;

/// A residual of the terminal at hand, which ends in the `Accept`s of the positions after it, and the continuation of
/// the rule that it stands in.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub struct Head {
    pub rest: Id,
    pub stack: Stack,
}

/// A kernel, or the closure of one: sorted, no two heads with the same stack, nor with the same residual where the
/// parameters of their rules are the same.
pub type Heads = SmallVec<[Head; 2]>;

/// What can follow a kernel.
#[derive(Default, Debug)]
pub struct Closure {
    pub heads: Heads,
    /// The text may end here.
    pub accepting: bool,
    /// Whether it depends on more of a truncated stack if the text may end here.
    pub may_accept: bool,
}

impl Head {
    /// Whether it stands for anything that may follow where a truncated stack was popped.
    pub fn is_anything(self) -> bool {
        self.rest == TOP && self.stack == UNSURE
    }
}

impl Closure {
    /// Whether a truncated stack was popped, so that anything may follow.
    pub fn is_open(&self) -> bool {
        self.heads.iter().any(|head| head.is_anything())
    }

    /// Notes that what follows depends on more of a truncated stack.
    pub(super) fn leave_open(&mut self) {
        self.heads.push(Head { rest: TOP, stack: UNSURE });
        self.may_accept = true;
    }
}

/// The pushdown automaton of a grammar over bytes, derived lazily.
pub struct Machine {
    pub(super) ir: Arc<Ir>,
    pub analysis: Arc<Analysis>,
    pub arena: Arena,
    pub stacks: Continuations,
    pub positions: Positions,
    pub(super) instances: Instances,
    pub(super) proofs: Proofs,
    pub(super) lowered: Lowered,
    pub(super) expansions: Shared<(PosId, ParamId), Expansion>,
    pub(super) entries: Shared<Instance, Expansion>,
    /// By left-recursive rule: the positions at which rules of its component go on behind it.
    pub(super) loops: FxHashMap<RuleId, Vec<PosId>>,
    pub(super) endings: Shared<(Id, ParamId), Ending>,
    pub(super) terminals: FxHashMap<PosId, (Id, Option<PosId>)>,
    pub table: Table,
    pub(super) shortest: Shortest,
    /// Whether what may follow a terminal can depend on more than the rules.
    pub has_lexemes: bool,
    /// Whether a parser counts the blanks of lines.
    pub(super) counts_columns: bool,
    /// Whether some of what rules and tables allow may have no ending, so that each head is searched for one.
    pub careful: bool,
    pub(super) parsers: Parsers,
    pub(super) searches: Searches,
}

impl Machine {
    pub fn new(ir: Arc<Ir>, mut arena: Arena, budget: &mut Budget) -> Result<Machine> {
        let mut lowered = vec![None; ir.nodes.len()];
        let analysis = Analysis::new(&ir, &mut arena, &mut lowered, budget)?;
        let instances = Instances::new(&ir);
        let mut machine = Machine::with((ir, Arc::new(analysis)), arena, instances, lowered);
        let start = machine.ir.body(machine.ir.start());
        if !machine.productive(start, UNSET, budget)? || !machine.starts(budget)? {
            return Err(Error::Unsatisfiable("the grammar describes no text that the vocabulary can spell".into()));
        }
        Ok(machine)
    }

    /// Whether the kernel before the first byte has an ending, where rules alone do not show it.
    fn starts(&mut self, budget: &mut Budget) -> Result<bool> {
        let start = self.start();
        if !self.has_lexemes {
            return Ok(true);
        }
        let care = self.care(budget)?;
        self.careful = !matches!(care, Care::Never);
        if let Care::But(free) = care {
            self.searches = Searches::new(free);
        }
        Ok(self.find_ending(&start, budget)?.is_some())
    }

    /// The kernel before the first byte.
    pub fn start(&mut self) -> Heads {
        let rule = self.ir.start();
        let callee = if self.analysis.left_recursive(rule) { rule } else { NO_CALLEE };
        let stack = self.stacks.of_frames(UNSET, &mut [Frame { callee, back: BOTTOM, below: ANY }]);
        let end = self.positions.intern(Pos::End(rule));
        let first = self.positions.intern(Pos::Then(self.ir.body(rule), end));
        let rest = self.accept(first);
        SmallVec::from_slice(&[Head { rest, stack }])
    }

    /// The residual of a terminal that has ended before this position.
    pub fn accept(&mut self, position: PosId) -> Id {
        let counts = self.positions.counts(position);
        self.arena.accept(position, counts)
    }

    pub fn memory(&self) -> usize {
        self.arena.memory()
            + self.stacks.memory()
            + self.positions.memory()
            + self.instances.memory()
            + self.proofs.memory()
            + self.table.memory()
            + self.parsers.memory()
            + self.searches.memory()
            + (self.expansions.len() + self.endings.len()) * 120
            + self.terminals.len() * 24
    }

    /// The name of the rule in which a head stands, as far as it is known.
    pub fn rule_name(&self, head: Head) -> Option<&str> {
        let mut rule = None;
        self.arena.every_tag(head.rest, &mut |position| {
            rule = Some(self.positions.rule(position));
            false
        });
        self.ir.names.get(rule? as usize).map(String::as_str)
    }

    /// Fails with `Error::Limit` if what was derived holds more memory than it may.
    pub(super) fn check_memory(&self) -> Result<()> {
        if self.memory() > self.arena.most_memory { Err(self.arena.out_of_memory()) } else { Ok(()) }
    }

    /// A machine that has derived nothing yet.
    fn with(grammar: (Arc<Ir>, Arc<Analysis>), arena: Arena, instances: Instances, lowered: Lowered) -> Machine {
        let positions = Positions::new(arena.cap());
        Machine {
            has_lexemes: grammar.0.has_lexemes(),
            counts_columns: grammar.0.counts_columns(),
            careful: false,
            ir: grammar.0,
            analysis: grammar.1,
            arena,
            stacks: Continuations::default(),
            positions,
            instances,
            proofs: Proofs::default(),
            lowered,
            expansions: Shared::default(),
            entries: Shared::default(),
            loops: FxHashMap::default(),
            endings: Shared::default(),
            terminals: FxHashMap::default(),
            table: Table::default(),
            shortest: Shortest::default(),
            parsers: Parsers::default(),
            searches: Searches::default(),
        }
    }

    /// Drops everything derived but what the given kernels need. These are rewritten to the new numbers.
    pub fn collect<'a>(&mut self, kernels: impl Iterator<Item = &'a mut Heads>) {
        let grammar = (self.ir.clone(), self.analysis.clone());
        let lowered = vec![None; self.ir.nodes.len()];
        let mut fresh = Machine::with(grammar, self.arena.emptied(), self.instances.emptied(), lowered);
        fresh.shortest = std::mem::take(&mut self.shortest);
        fresh.shortest.forget_stacks();
        fresh.careful = self.careful;
        fresh.table.epoch = self.table.epoch;
        fresh.table.clear();
        let old = std::mem::replace(self, fresh);
        let (mut expressions, mut continuations, mut done) = Default::default();
        let (positions, instances, stacks) = (&mut self.positions, &mut self.instances, &mut self.stacks);
        let mut position = |p| positions.import(&old.positions, p, &mut done);
        let mut param = |p| instances.import(&old.instances, p);
        let mut free = old.searches.free;
        let import = |&x: &Id| self.arena.import(&old.arena, x, &mut position, &mut expressions);
        free.conditions = free.conditions.iter().map(import).collect();
        self.searches = Searches::new(free);
        for kernel in kernels {
            for head in kernel.iter_mut() {
                head.rest = self.arena.import(&old.arena, head.rest, &mut position, &mut expressions);
                head.stack = stacks.import(&old.stacks, head.stack, &mut position, &mut param, &mut continuations);
            }
            kernel.sort_unstable();
        }
    }

    /// The closure of a kernel.
    pub fn close(&mut self, kernel: &[Head], budget: &mut Budget) -> Result<Closure> {
        let mut out = Closure::default();
        let mut further = Further::new();
        self.close_under(TOP, kernel, (&mut out, &mut further), budget)?;
        if !further.is_empty() {
            let mut seen: SmallSet<(Id, Head)> = SmallSet::default();
            while let Some((condition, head)) = further.pop() {
                if seen.insert((condition, head)) && self.arena.alive(condition, budget)? {
                    budget.spend(8)?;
                    self.close_under(condition, &[head], (&mut out, &mut further), budget)?;
                }
            }
        }
        self.normalise(&mut out.heads, budget)?;
        Ok(out)
    }

    /// Adds the closure of heads under a condition on all the text that follows. What follows under another one is
    /// added to `further`.
    fn close_under(
        &mut self,
        condition: Id,
        kernel: &[Head],
        (out, further): (&mut Closure, &mut Further),
        budget: &mut Budget,
    ) -> Result<()> {
        let mut calls = Pending::new();
        let mut todo: SmallVec<[Head; 8]> = kernel.into();
        let mut seen: SmallSet<Head> = SmallSet::default();
        while let Some(head) = todo.pop() {
            if !self.arena.nullable(head.rest) {
                self.add_head(condition, head, out);
                continue;
            }
            budget.spend(4)?;
            if self.has_lexemes && self.end_lexemes(condition, head, (&mut *out, &mut *further), budget)? {
                continue;
            }
            let ending = self.ending(head.rest, self.stacks.param(head.stack), budget)?;
            self.add_head(condition, Head { rest: ending.direct, ..head }, out);
            for &(rule, back) in &ending.calls {
                self.call(rule, back, head.stack, &mut calls, budget)?;
            }
            for &rule in &ending.completes {
                if !self.complete(condition, rule, head.stack, (&mut *out, &mut *further), budget)? {
                    continue;
                }
                // `further` has the returns from texts of their own; others are made here
                let frames: Frames = self.stacks.frames(head.stack).into();
                for f in frames {
                    if f.callee != NO_CALLEE && f.callee != rule || self.stacks.is_bottom(f) {
                        continue;
                    }
                    let popped = Head { rest: self.accept(f.back), stack: f.below };
                    if seen.insert(popped) {
                        budget.spend(2)?;
                        todo.push(popped);
                    }
                }
            }
        }
        // callers before callees, so that every callee is entered once, for all its callers
        while let Some(i) = (0..calls.len()).max_by_key(|&i| calls[i].0) {
            let (_, instance, mut frames, passed) = calls.swap_remove(i);
            budget.spend(4 + calls.len() as u64 / SCANNED + frames.len() as u64 / 4)?;
            let work = self.stacks.work();
            let (rule, param) = (self.instances.rule(instance), self.instances.param(instance));
            let mut stack = if frames.is_empty() { None } else { Some(self.stacks.of_frames(param, &mut frames)) };
            for k in passed {
                let k = self.stacks.below(param, k);
                stack = Some(stack.map_or(k, |s| self.stacks.union(s, k)));
            }
            let stack = stack.expect("a call has a caller");
            budget.spend((self.stacks.work() - work) as u64 / MERGED)?;
            if self.has_lexemes && self.ir.parser(rule).is_some() {
                let stack = self.before_text(rule, stack);
                let place = (rule, Parser::BEFORE_TEXT);
                self.before_token(condition, place, stack, (&mut *out, &mut *further), budget)?;
                continue;
            }
            let entry = self.entry(instance, budget)?;
            self.add_head(condition, Head { rest: entry.direct, stack }, out);
            for &(callee, back) in &entry.calls {
                self.call(callee, back, stack, &mut calls, budget)?;
            }
        }
        Ok(())
    }

    /// Adds a head under a condition on all the text that follows.
    pub(super) fn add_head(&mut self, condition: Id, head: Head, out: &mut Closure) {
        let rest = self.arena.under(condition, head.rest);
        if rest != EMPTY {
            out.heads.push(Head { rest, ..head });
        }
    }

    /// Takes the ends of a residual that depend on what follows, or that a parser reads. Returns whether there are no
    /// others.
    fn end_lexemes(
        &mut self,
        condition: Id,
        head: Head,
        (out, further): (&mut Closure, &mut Further),
        budget: &mut Budget,
    ) -> Result<bool> {
        let ends = self.arena.ends(head.rest);
        let mut only = true;
        for &(ahead, position) in &ends {
            let both = self.arena.both_hold(condition, ahead);
            match self.positions.get(position) {
                Pos::Token { rule, terminal, last } => {
                    if self.arena.alive(both, budget)? {
                        let token = (rule, terminal, last);
                        self.after_token(both, token, head.stack, (&mut *out, &mut *further), budget)?;
                    }
                }
                _ if ahead == TOP => only = false,
                _ => further.push((both, Head { rest: self.accept(position), ..head })),
            }
        }
        if only && !self.arena.is_end(head.rest) {
            self.add_head(condition, head, out);
        }
        Ok(only)
    }

    /// Ends a rule that has been completed under a condition. Returns whether there are returns to frames, in the same
    /// text, that remain to be made.
    pub(super) fn complete(
        &mut self,
        condition: Id,
        rule: RuleId,
        stack: Stack,
        (out, further): (&mut Closure, &mut Further),
        budget: &mut Budget,
    ) -> Result<bool> {
        if self.stacks.is_cut_off(stack) {
            out.leave_open();
            return Ok(false);
        }
        let fits = |f: &Frame| f.callee == NO_CALLEE || f.callee == rule;
        let met = self.arena.nullable(condition);
        budget.spend(self.stacks.frames(stack).len() as u64 / 4)?;
        out.accepting |= met && self.stacks.frames(stack).iter().any(|f| fits(f) && self.stacks.is_bottom(*f));
        if condition == TOP || !self.ir.is_text(rule) {
            return Ok(true);
        }
        // the text that the condition is about ends here
        let mut frames: Frames = self.stacks.frames(stack).into();
        frames.retain(|f| met && fits(f) && !self.stacks.is_bottom(*f));
        for f in frames {
            further.push((TOP, Head { rest: self.accept(f.back), stack: f.below }));
        }
        Ok(false)
    }

    /// Notes a call of `callee` returning to `back` over `stack`.
    fn call(
        &mut self,
        callee: Instance,
        back: PosId,
        stack: Stack,
        calls: &mut Pending,
        budget: &mut Budget,
    ) -> Result<()> {
        let rule = self.instances.rule(callee);
        let recursive = self.analysis.left_recursive(rule);
        let component = self.analysis.component(rule);
        let i = calls.iter().position(|c| c.1 == callee).unwrap_or_else(|| {
            calls.push((component, callee, Frames::new(), SmallVec::new()));
            calls.len() - 1
        });
        budget.spend((i + calls[i].3.len()) as u64 / SCANNED)?;
        // A call in last place hands its caller's stack on, so that right recursion does not grow the stack. That is
        // exact unless the completion of the caller matters, as it does for left-recursive rules, which go on after it.
        // A rule that is alone in its component and calls itself can hand its stack on nevertheless: it goes on after
        // the callee as it would after the caller.
        let tail = match self.positions.get(back) {
            Pos::End(caller) if self.ir.is_text(caller) => false,
            Pos::End(caller) if caller == rule => !recursive || self.analysis.members(rule).len() == 1,
            Pos::End(caller) => !recursive && !self.analysis.left_recursive(caller),
            _ => false,
        };
        if tail {
            if !calls[i].3.contains(&stack) {
                calls[i].3.push(stack);
            }
        } else {
            let callee = if recursive { rule } else { NO_CALLEE };
            calls[i].2.push(Frame { callee, back, below: stack });
        }
        Ok(())
    }

    /// The marks of the rules that the last byte before a state can belong to.
    pub fn kinds_at(&mut self, state: ByteState, budget: &mut Budget) -> Result<Kinds> {
        let mut kinds = Kinds::default();
        for head in self.kernel_of(state, budget)? {
            self.arena.every_tag(head.rest, &mut |p| {
                kinds = kinds.or(self.ir.kinds[self.positions.rule(p) as usize]);
                true
            });
        }
        Ok(kinds)
    }

    /// The state without the heads that stand in rules with any of these marks.
    pub fn without_kinds(&mut self, state: ByteState, kinds: Kinds, budget: &mut Budget) -> Result<ByteState> {
        let mut kernel = self.kernel_of(state, budget)?;
        let (ir, positions) = (&self.ir, &self.positions);
        let mut refused = |p| ir.kinds[positions.rule(p) as usize].has(kinds);
        for head in &mut kernel {
            head.rest = self.arena.without_tags(head.rest, &mut refused);
        }
        kernel.retain(|head| head.rest != EMPTY);
        self.normalise(&mut kernel, budget)?;
        self.byte_state(&kernel, budget)
    }

    /// Whether any rule is marked, so that a text's history has to be kept.
    pub fn needs_history(&self) -> bool {
        !self.ir.kinds.is_empty()
    }

    /// Brings heads into normal form: those with the same residual, in rules of one parameter, are merged over the union
    /// of their continuations, and then those over the same continuation into the union of their residuals.
    pub(super) fn normalise(&mut self, heads: &mut Heads, budget: &mut Budget) -> Result<()> {
        if heads.len() < 2 {
            return Ok(());
        }
        let merging = |stacks: &Continuations, h: &Head| (h.rest, h.stack == UNSURE, stacks.param(h.stack));
        heads.sort_unstable_by_key(|h| (merging(&self.stacks, h), h.stack));
        heads.dedup();
        let work = self.stacks.work();
        let mut merged = Heads::new();
        let mut left = &heads[..];
        while let Some(first) = left.first() {
            let same = left.iter().take_while(|h| merging(&self.stacks, h) == merging(&self.stacks, first)).count();
            let (group, others) = left.split_at(same);
            let stack = self.stacks.union_of(group.iter().map(|h| h.stack));
            merged.push(Head { rest: first.rest, stack });
            left = others;
        }
        budget.spend((self.stacks.work() - work) as u64 / MERGED)?;
        merged.sort_unstable_by_key(|h| (h.stack, h.rest));
        heads.clear();
        for group in merged.chunk_by(|a, b| a.stack == b.stack) {
            let parts: SmallVec<[Id; 8]> = group.iter().map(|h| h.rest).collect();
            heads.push(Head { rest: self.arena.alt_within(&parts, budget)?, stack: group[0].stack });
        }
        heads.sort_unstable();
        Ok(())
    }

    /// The footprint of a kernel: its stacks cut off `depth` frames down, its counts saturated. Also the least upper
    /// bound that was dropped loosely: longer tokens have to be tried on the kernel itself.
    pub fn footprint(
        &mut self,
        kernel: &[Head],
        depth: u32,
        counts: Counts,
        budget: &mut Budget,
    ) -> Result<(Heads, u32)> {
        let positions = &mut self.positions;
        let mut dropped = UNBOUNDED;
        let mut out = Heads::new();
        let work = self.stacks.work();
        for h in kernel {
            let rest = self.arena.saturate(h.rest, counts, &mut |p| positions.saturate(p, counts), budget)?;
            let stack = self.stacks.truncate(h.stack, depth, counts, &mut |p| positions.saturate(p, counts));
            dropped = dropped.min(rest.1).min(stack.1);
            out.push(Head { rest: rest.0, stack: stack.0 });
        }
        budget.spend((self.stacks.work() - work) as u64 / MERGED)?;
        self.normalise(&mut out, budget)?;
        Ok((out, dropped))
    }

    /// A kernel with its stacks cut off `depth` frames down, its counts kept.
    pub fn truncated(&mut self, kernel: &[Head], depth: u32, budget: &mut Budget) -> Result<Heads> {
        let mut out = Heads::new();
        for head in kernel {
            out.push(Head { stack: self.topmost(head.stack, depth, budget)?, ..*head });
        }
        self.normalise(&mut out, budget)?;
        Ok(out)
    }

    /// The topmost frames of a stack.
    pub fn topmost(&mut self, stack: Stack, depth: u32, budget: &mut Budget) -> Result<Stack> {
        let (positions, work) = (&mut self.positions, self.stacks.work());
        let mut kept = |p| positions.saturate(p, Counts::Kept);
        let (cut, _) = self.stacks.truncate(stack, depth, Counts::Kept, &mut kept);
        budget.spend((self.stacks.work() - work) as u64 / MERGED)?;
        Ok(cut)
    }

    /// What the upper bounds of a kernel ask of tokens that a footprint drops. `None`: it is not known.
    pub fn limits(
        &mut self,
        kernel: &[Head],
        depth: u32,
        counts: Counts,
        budget: &mut Budget,
    ) -> Result<Option<Limits>> {
        let positions = &mut self.positions;
        let mut position = |p| positions.saturate(p, counts);
        let mut all = Limits::new();
        for h in kernel {
            let (_, dropped) = self.stacks.truncate(h.stack, depth, counts, &mut position);
            all.extend(Limit::of_bytes(dropped));
            let Some(limits) = self.arena.limits(h.rest, counts, &mut position, budget)? else { return Ok(None) };
            all.extend(limits);
        }
        Ok(Some(all))
    }
}

/// Entries of a list that are looked through in the time of one step of a budget.
const SCANNED: u64 = 128;

/// Units of [`Continuations::work`] that are done in the time of one step of a budget.
const MERGED: u64 = 2;

/// Calls that wait to be entered: the callee's component and rule, the frames to return to, and the continuations of
/// callers that end with the call, which are handed on.
type Pending = SmallVec<[(u32, Instance, Frames, SmallVec<[Stack; 2]>); 2]>;

/// Heads that follow under a condition on all the text that follows.
pub(super) type Further = Vec<(Id, Head)>;
