//! One byte at a time: closures of kernels and their successors.

use std::rc::Rc;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::continuation::{ANY, Continuations, Frame, NO_CALLEE, Stack};
use super::grammar::Analysis;
use super::position::{BOTTOM, Pos, PosId, Positions};
use super::shortest::Shortest;
use super::table::Table;
use crate::budget::Budget;
use crate::error::Result;
use crate::ir::{Ir, Node, RuleId, UNBOUNDED};
use crate::regular::{Arena, Counts, EMPTY, EPS, Id, Lowered};

/// A residual of the current terminal (ending in `Accept`s) and what follows the rule it stands in.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub struct Head {
    pub rest: Id,
    pub stack: Stack,
}

/// A kernel, or the closure of one: sorted, no two heads with the same residual or the same stack.
pub type Heads = SmallVec<[Head; 2]>;

/// What a kernel can go on with.
#[derive(Default, Debug)]
pub struct Closure {
    pub heads: Heads,
    /// The text may end here.
    pub accepting: bool,
    /// A truncated stack was popped: the answer depends on more of it.
    pub cut_off: bool,
}

/// What a position predicts within its rule.
#[derive(Default, Clone)]
struct Expansion {
    /// The terminals that can come next, each ending in the `Accept` of the position after it.
    direct: Id,
    /// Calls and where they return to.
    calls: Vec<(RuleId, PosId)>,
    /// The end of the rule can be reached without a byte.
    done: bool,
}

/// What a nullable residual adds when its terminal ends.
struct Ending {
    /// The residual itself and what can follow in the same rule.
    direct: Id,
    calls: Vec<(RuleId, PosId)>,
    completes: SmallVec<[RuleId; 2]>,
}

type Rcs<K, V> = FxHashMap<K, Rc<V>>;

/// The automaton of a grammar over bytes, derived as far as it was asked for.
pub struct Machine {
    pub(super) ir: Arc<Ir>,
    pub analysis: Analysis,
    pub arena: Arena,
    pub stacks: Continuations,
    pub positions: Positions,
    lowered: Lowered,
    expansions: Rcs<PosId, Expansion>,
    entries: Rcs<RuleId, Expansion>,
    /// Where a completed left-recursive rule may go on as the first part of a rule of its component.
    loops: FxHashMap<RuleId, Vec<PosId>>,
    endings: Rcs<Id, Ending>,
    pub table: Table,
    pub(super) shortest: Shortest,
}

// The `Rc`s never leave the machine, which is moved and used as a whole, under a lock.
unsafe impl Send for Machine {}

impl Machine {
    pub fn new(ir: Arc<Ir>, mut arena: Arena, budget: &mut Budget) -> Result<Machine> {
        let mut lowered = vec![None; ir.nodes.len()];
        let analysis = Analysis::new(&ir, &mut arena, &mut lowered, budget)?;
        let cap = arena.cap();
        Ok(Machine {
            ir,
            analysis,
            arena,
            stacks: Continuations::default(),
            positions: Positions::new(cap),
            lowered,
            expansions: Rcs::default(),
            entries: Rcs::default(),
            loops: FxHashMap::default(),
            endings: Rcs::default(),
            table: Table::default(),
            shortest: Shortest::default(),
        })
    }

    /// The kernel before the first byte.
    pub fn start(&mut self) -> Heads {
        let rule = self.ir.start();
        let callee = if self.analysis.left_recursive(rule) { rule } else { NO_CALLEE };
        let stack = self.stacks.push(Frame { callee, back: BOTTOM, below: ANY });
        let end = self.positions.intern(Pos::End(rule));
        let first = self.positions.intern(Pos::Then(self.ir.body(rule), end));
        let rest = self.accept(first);
        SmallVec::from_slice(&[Head { rest, stack }])
    }

    pub fn accept(&mut self, position: PosId) -> Id {
        let counts = self.positions.counts(position);
        self.arena.accept(position, counts)
    }

    pub fn memory(&self) -> usize {
        self.arena.memory()
            + self.stacks.memory()
            + self.positions.memory()
            + self.table.memory()
            + (self.expansions.len() + self.endings.len()) * 120
    }

    /// Forgets everything derived but the given kernels, which are rewritten to what replaces them.
    pub fn collect(&mut self, kernels: &mut [&mut Heads]) {
        let fresh = self.arena.emptied();
        let arena = std::mem::replace(&mut self.arena, fresh);
        let stacks = std::mem::take(&mut self.stacks);
        self.lowered.iter_mut().for_each(|l| *l = None);
        self.expansions.clear();
        self.entries.clear();
        self.loops.clear();
        self.endings.clear();
        self.table.clear();
        self.shortest.forget_stacks();
        let (mut expressions, mut continuations) = Default::default();
        for kernel in kernels {
            for head in kernel.iter_mut() {
                head.rest = self.arena.import(&arena, head.rest, &mut expressions);
                head.stack = self.stacks.import(&stacks, head.stack, &mut continuations);
            }
            kernel.sort_unstable();
        }
    }

    /// Predictions of a position in the middle of a rule.
    fn expansion(&mut self, p: PosId, budget: &mut Budget) -> Result<Rc<Expansion>> {
        if let Some(e) = self.expansions.get(&p) {
            return Ok(e.clone());
        }
        let e = Rc::new(self.expand(p, budget)?);
        self.expansions.insert(p, e.clone());
        Ok(e)
    }

    /// Predictions at the start of a rule. For a left-recursive rule: of its whole component, without the calls
    /// among its members, which become loops.
    fn entry(&mut self, rule: RuleId, budget: &mut Budget) -> Result<Rc<Expansion>> {
        if let Some(e) = self.entries.get(&rule) {
            return Ok(e.clone());
        }
        let members: Vec<RuleId> =
            if self.analysis.left_recursive(rule) { self.analysis.members(rule).to_vec() } else { vec![rule] };
        let component = self.analysis.component(rule);
        let mut all = Expansion::default();
        let mut directs: Vec<Id> = Vec::new();
        for &member in &members {
            let end = self.positions.intern(Pos::End(member));
            let first = self.positions.intern(Pos::Then(self.ir.body(member), end));
            let e = self.expand(first, budget)?;
            directs.push(e.direct);
            for (callee, back) in e.calls {
                if self.analysis.left_recursive(rule) && self.analysis.component(callee) == component {
                    self.loops.entry(callee).or_default().push(back);
                } else {
                    all.calls.push((callee, back));
                }
            }
        }
        all.direct = self.arena.alt(&directs);
        let all = Rc::new(all);
        for member in members {
            self.entries.insert(member, all.clone());
        }
        Ok(all)
    }

    fn expand(&mut self, from: PosId, budget: &mut Budget) -> Result<Expansion> {
        let ir = self.ir.clone();
        let mut out = Expansion::default();
        let mut directs: Vec<Id> = Vec::new();
        let mut seen: rustc_hash::FxHashSet<PosId> = Default::default();
        // bounded iterations already entered without a byte: fewer of them add nothing
        let mut entered: rustc_hash::FxHashSet<(u32, PosId)> = Default::default();
        let mut todo = vec![from];
        while let Some(p) = todo.pop() {
            if !seen.insert(p) {
                continue;
            }
            budget.spend(4)?;
            let (node, next) = match self.positions.get(p) {
                Pos::Bottom => continue,
                Pos::End(_) => {
                    out.done = true;
                    continue;
                }
                Pos::Again { body, least, most, next } => {
                    self.iterate(body, least, most, next, &mut entered, &mut todo);
                    continue;
                }
                Pos::Then(node, next) => (node, next),
            };
            if !self.analysis.productive[node as usize] {
                continue;
            }
            let facts = ir.facts[node as usize];
            let body = &ir.nodes[node as usize];
            if ir.is_unit(node) {
                let (x, after) = self.unit(node, next, budget)?;
                if self.arena.nullable(x) {
                    todo.push(after);
                }
                let tag = self.accept(after);
                if x != EPS {
                    directs.push(self.arena.concat(x, tag));
                }
                continue;
            }
            match body {
                Node::Seq(os) => {
                    let first = os.iter().rev().fold(next, |rest, &o| self.positions.intern(Pos::Then(o, rest)));
                    todo.push(first);
                }
                Node::Alt(os) => {
                    for &o in os.iter().rev() {
                        todo.push(self.positions.intern(Pos::Then(o, next)));
                    }
                }
                Node::Repeat(x, least, most) => self.iterate(*x, *least, *most, next, &mut entered, &mut todo),
                Node::Call(rule) if facts.regular => {
                    todo.push(self.positions.intern(Pos::Then(ir.body(*rule), next)));
                }
                Node::Call(rule) => {
                    if !out.calls.contains(&(*rule, next)) {
                        out.calls.push((*rule, next));
                    }
                    if self.analysis.nullable[node as usize] {
                        todo.push(next);
                    }
                }
                _ => unreachable!("every other expression is one lexical unit"),
            }
        }
        out.direct = self.arena.alt(&directs);
        Ok(out)
    }

    fn iterate(
        &mut self,
        body: u32,
        least: u32,
        most: u32,
        next: PosId,
        entered: &mut rustc_hash::FxHashSet<(u32, PosId)>,
        todo: &mut Vec<PosId>,
    ) {
        let nullable = self.analysis.nullable[body as usize];
        let least = if nullable { 0 } else { least };
        if least == 0 {
            todo.push(next);
        }
        if most == 0 || !self.analysis.productive[body as usize] || (nullable && !entered.insert((body, next))) {
            return;
        }
        let most = if most == UNBOUNDED { most } else { most - 1 };
        let after = if most == 0 {
            next
        } else {
            self.positions.intern(Pos::Again { body, least: least.saturating_sub(1), most, next })
        };
        todo.push(self.positions.intern(Pos::Then(body, after)));
    }

    /// The lexical unit that starts with `node`: flat neighbours are joined to it. Its language and what follows.
    fn unit(&mut self, node: u32, next: PosId, budget: &mut Budget) -> Result<(Id, PosId)> {
        let ir = self.ir.clone();
        let joins = |n: u32| ir.facts[n as usize].flat && !ir.facts[n as usize].looks;
        let mut parts: SmallVec<[Id; 8]> = SmallVec::new();
        let first = self.arena.lower(&ir, node, &mut self.lowered, budget)?;
        parts.push(self.arena.unit(first));
        let mut after = next;
        if joins(node) {
            while let Pos::Then(n, rest) = self.positions.get(after) {
                if !joins(n) {
                    break;
                }
                parts.push(self.arena.lower(&ir, n, &mut self.lowered, budget)?);
                after = rest;
            }
        }
        let x = parts.into_iter().rev().fold(EPS, |rest, x| self.arena.concat(x, rest));
        Ok((x, after))
    }

    /// The language of a regular expression by itself.
    pub(super) fn unit_alone(&mut self, node: u32, budget: &mut Budget) -> Result<Id> {
        let ir = self.ir.clone();
        let x = self.arena.lower(&ir, node, &mut self.lowered, budget)?;
        Ok(self.arena.unit(x))
    }

    /// Where a completed rule of a left-recursive component goes on.
    pub(super) fn loops_of(&mut self, rule: RuleId, budget: &mut Budget) -> Result<Vec<PosId>> {
        if self.analysis.left_recursive(rule) {
            self.entry(rule, budget)?;
        }
        Ok(self.loops.get(&rule).cloned().unwrap_or_default())
    }

    fn ending(&mut self, rest: Id, budget: &mut Budget) -> Result<Rc<Ending>> {
        if let Some(e) = self.endings.get(&rest) {
            return Ok(e.clone());
        }
        let mut tags = SmallVec::new();
        self.arena.tags(rest, &mut tags);
        let mut todo: Vec<PosId> = tags.to_vec();
        let mut seen: rustc_hash::FxHashSet<PosId> = Default::default();
        let mut out = Ending { direct: EMPTY, calls: Vec::new(), completes: SmallVec::new() };
        let mut directs: Vec<Id> = Vec::new();
        if !(tags.len() == 1 && self.accept(tags[0]) == rest) {
            directs.push(rest);
        }
        while let Some(p) = todo.pop() {
            if !seen.insert(p) {
                continue;
            }
            let e = self.expansion(p, budget)?;
            directs.push(e.direct);
            for &call in &e.calls {
                if !out.calls.contains(&call) {
                    out.calls.push(call);
                }
            }
            let rule = self.positions.rule(p);
            if e.done && p != BOTTOM && !out.completes.contains(&rule) {
                out.completes.push(rule);
                if self.analysis.left_recursive(rule) {
                    self.entry(rule, budget)?;
                    todo.extend(self.loops.get(&rule).into_iter().flatten());
                }
            }
        }
        out.direct = self.arena.alt(&directs);
        let out = Rc::new(out);
        self.endings.insert(rest, out.clone());
        Ok(out)
    }

    /// What a kernel can go on with.
    pub fn close(&mut self, kernel: &[Head], budget: &mut Budget) -> Result<Closure> {
        let mut out = Closure::default();
        let mut calls: Pending = Vec::new();
        let mut todo: SmallVec<[Head; 8]> = kernel.into();
        let mut seen: rustc_hash::FxHashSet<Head> = Default::default();
        while let Some(head) = todo.pop() {
            if !self.arena.nullable(head.rest) {
                out.heads.push(head);
                continue;
            }
            budget.spend(4)?;
            let ending = self.ending(head.rest, budget)?;
            if ending.direct != EMPTY {
                out.heads.push(Head { rest: ending.direct, stack: head.stack });
            }
            for &(rule, back) in &ending.calls {
                self.call(rule, back, head.stack, &mut calls);
            }
            for &rule in &ending.completes {
                if head.stack == ANY {
                    out.cut_off = true;
                    continue;
                }
                let frames: SmallVec<[Frame; 4]> = self.stacks.frames(head.stack).into();
                for f in frames {
                    if f.callee != NO_CALLEE && f.callee != rule {
                        continue;
                    }
                    if self.stacks.is_bottom(f) {
                        out.accepting = true;
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
            let (_, rule, frames, passed) = calls.swap_remove(i);
            budget.spend(4)?;
            let mut stack = if frames.is_empty() { None } else { Some(self.stacks.of_frames(frames)) };
            for k in passed {
                stack = Some(stack.map_or(k, |s| self.stacks.union(s, k)));
            }
            let stack = stack.expect("a call has a caller");
            let entry = self.entry(rule, budget)?;
            if entry.direct != EMPTY {
                out.heads.push(Head { rest: entry.direct, stack });
            }
            for &(callee, back) in &entry.calls {
                self.call(callee, back, stack, &mut calls);
            }
        }
        self.normalise(&mut out.heads);
        Ok(out)
    }

    /// Notes a call of `rule` returning to `back` over `stack`.
    fn call(&mut self, rule: RuleId, back: PosId, stack: Stack, calls: &mut Pending) {
        let recursive = self.analysis.left_recursive(rule);
        let component = self.analysis.component(rule);
        let i = calls.iter().position(|c| c.1 == rule).unwrap_or_else(|| {
            calls.push((component, rule, Vec::new(), SmallVec::new()));
            calls.len() - 1
        });
        // A call in last place hands its caller's stack on, so that right recursion stays flat: exact unless the
        // completion of the caller has to be seen (left-recursive rules go on after it), but for a rule that is
        // alone in its component and calls itself, where going on after the callee is the same as after the caller.
        let tail = match self.positions.get(back) {
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
    }

    /// The kernel after one byte from a closure.
    #[inline]
    pub fn step(&mut self, closure: &[Head], byte: u8, budget: &mut Budget) -> Result<Heads> {
        let mut out = Heads::new();
        for &head in closure {
            let rest = self.arena.next(head.rest, byte, budget)?;
            if rest != EMPTY {
                out.push(Head { rest, stack: head.stack });
            }
        }
        if out.len() > 1 {
            self.normalise(&mut out);
        }
        Ok(out)
    }

    /// Heads with one residual share their stacks' union; then heads over one stack their residuals' union.
    fn normalise(&mut self, heads: &mut Heads) {
        if heads.len() < 2 {
            return;
        }
        heads.sort_unstable();
        heads.dedup();
        let mut merged = Heads::new();
        for &h in heads.iter() {
            match merged.last_mut() {
                Some(last) if last.rest == h.rest => last.stack = self.stacks.union(last.stack, h.stack),
                _ => merged.push(h),
            }
        }
        merged.sort_unstable_by_key(|h| (h.stack, h.rest));
        heads.clear();
        for &h in &merged {
            match heads.last_mut() {
                Some(last) if last.stack == h.stack => last.rest = self.arena.alt2(last.rest, h.rest),
                _ => heads.push(h),
            }
        }
        heads.sort_unstable();
    }

    /// The kernel as far as a token can see: stacks cut off `depth` frames down, counts saturated. Also the least
    /// bound that was dropped loosely: longer tokens have to be tried on the kernel itself.
    pub fn footprint(&mut self, kernel: &[Head], depth: u32, counts: Counts) -> (Heads, u32) {
        let positions = &mut self.positions;
        let mut dropped = UNBOUNDED;
        let mut out = Heads::new();
        for h in kernel {
            let rest = self.arena.saturate(h.rest, counts, &mut |p| positions.saturate(p, counts));
            let stack = self.stacks.truncate(h.stack, depth, counts, &mut |p| positions.saturate(p, counts));
            dropped = dropped.min(rest.1).min(stack.1);
            out.push(Head { rest: rest.0, stack: stack.0 });
        }
        self.normalise(&mut out);
        (out, dropped)
    }
}

/// Calls that wait to be entered: component and rule of the callee, frames to return to, stacks handed on.
type Pending = Vec<(u32, RuleId, Vec<Frame>, SmallVec<[Stack; 2]>)>;
