//! Shortest accepted endings, in bytes.
//!
//! The minimal lengths of expressions are a least fixpoint over the rules (as in Knuth's generalisation of Dijkstra's
//! algorithm, 1977), found once per constraint when they are first needed. With them, the length of a shortest ending
//! from a kernel is a sum along one stack, and the ending itself is spelled by taking the shortest alternative
//! everywhere. Where an expression depends on a parameter, the alternative is the one that its proof of productivity
//! used, and the ending is short rather than shortest.

use std::collections::VecDeque;

use rustc_hash::FxHashMap;

use super::continuation::{Frame, NO_CALLEE, Stack};
use super::instances::{ParamId, UNSET};
use super::position::{Pos, PosId};
use super::step::{Head, Machine};
use crate::budget::Budget;
use crate::error::{Error, Result};
use crate::ir::{Node, NodeId, RuleId};
use crate::recursion::deep;
use crate::regular::{EMPTY, Id};

/// No ending.
pub(super) const NEVER: u64 = u64::MAX;

/// The sum of two lengths. A length too great for its type is the greatest there is, and not `NEVER`.
pub(super) fn plus(a: u64, b: u64) -> u64 {
    if a == NEVER || b == NEVER { NEVER } else { a.saturating_add(b).min(NEVER - 1) }
}

/// The length of so many texts, in the same way.
fn times(length: u64, count: u32) -> u64 {
    match (length, count) {
        (_, 0) => 0,
        (NEVER, _) => NEVER,
        _ => length.saturating_mul(count.into()).min(NEVER - 1),
    }
}

/// Endings longer than this are not spelled out.
pub(super) const LONGEST: u64 = 1 << 20;

/// Minimal lengths found so far.
#[derive(Default)]
pub(super) struct Shortest {
    nodes: Option<Vec<u64>>,
    /// Shortest texts of lexical units.
    units: FxHashMap<NodeId, Vec<u8>>,
    /// The shortest alternative of each union. It is set only when it makes the union's length less, so that choices
    /// never form a cycle, not even through rules that call each other without a byte.
    choices: FxHashMap<NodeId, NodeId>,
    /// Lengths of expressions by the parameter that they depend on: of the texts that are spelled, not of shortest
    /// ones.
    parametric: FxHashMap<(NodeId, ParamId), u64>,
    /// By completed rule and stack: the bytes needed from there on, and the first step.
    after: FxHashMap<(RuleId, Stack), (u64, Step)>,
}

/// How a shortest ending goes on after a completed rule.
#[derive(Clone, Copy)]
pub(super) enum Step {
    Nowhere,
    Return(Frame),
    /// Goes on as the first part of another rule of its component.
    Loop(PosId),
}

impl Shortest {
    /// Drops what is kept by stack and parameter: to be called when their numbers lose their meaning.
    pub(super) fn forget_stacks(&mut self) {
        self.after.clear();
        self.parametric.clear();
    }
}

impl Machine {
    /// A shortest text that makes the kernel accept.
    pub fn shortest_ending(&mut self, kernel: &[Head], budget: &mut Budget) -> Result<Vec<u8>> {
        if self.has_lexemes {
            let found = self.find_ending(kernel, budget)?;
            return found.ok_or_else(|| Error::Unsatisfiable("no accepted ending can be reached".into()));
        }
        self.find_lengths(budget)?;
        let mut best: Option<(u64, Vec<u8>, PosId, Stack)> = None;
        for &head in kernel {
            let (length, text, position) = self.end_of_terminal(head, budget)?;
            if length != NEVER && best.as_ref().is_none_or(|b| length < b.0) {
                best = Some((length, text, position, head.stack));
            }
        }
        let Some((length, mut text, position, stack)) = best else {
            return Err(Error::Unsatisfiable("no accepted ending can be reached".into()));
        };
        if length > LONGEST {
            return Err(Error::Limit { which: "bytes of the shortest ending", limit: LONGEST });
        }
        self.spell_position(position, stack, &mut text, budget)?;
        self.spell_stack(self.positions.rule(position), stack, &mut text, budget)?;
        Ok(text)
    }

    /// The best way to the end of a head's terminal: total length from here, the terminal's rest, where it ends.
    fn end_of_terminal(&mut self, head: Head, budget: &mut Budget) -> Result<(u64, Vec<u8>, PosId)> {
        // breadth first over residuals; leaving at a position costs what follows it
        let mut from: FxHashMap<Id, (Id, u8)> = FxHashMap::default();
        let mut queue = VecDeque::from([(0u64, head.rest)]);
        let mut best = (NEVER, EMPTY, 0);
        from.insert(head.rest, (head.rest, 0));
        while let Some((length, rest)) = queue.pop_front() {
            if length >= best.0 {
                break;
            }
            budget.spend(8)?;
            for p in self.arena.tags(rest) {
                let rule = self.positions.rule(p);
                let here = plus(length, self.position_length(p, head.stack, budget)?);
                let total = plus(here, self.after_rule(rule, head.stack, budget)?.0);
                if total < best.0 {
                    best = (total, rest, p);
                }
            }
            for (byte, next) in self.arena.successors(rest, budget)? {
                from.entry(next).or_insert_with(|| {
                    queue.push_back((length + 1, next));
                    (rest, byte)
                });
            }
        }
        let mut text = Vec::new();
        let mut at = best.1;
        while best.0 != NEVER && at != head.rest {
            let (before, byte) = from[&at];
            text.push(byte);
            at = before;
        }
        text.reverse();
        Ok((best.0, text, best.2))
    }

    /// Bytes needed after the completion of `rule` over `stack`, and the first step of the way.
    pub(super) fn after_rule(&mut self, rule: RuleId, stack: Stack, budget: &mut Budget) -> Result<(u64, Step)> {
        if let Some(&known) = self.shortest.after.get(&(rule, stack)) {
            return Ok(known);
        }
        budget.spend(4)?;
        // the rules that may be completed over this stack without a return: the component, if left-recursive
        let members: Vec<RuleId> =
            if self.analysis.left_recursive(rule) { self.analysis.members(rule).to_vec() } else { vec![rule] };
        let mut ways = vec![(NEVER, Step::Nowhere); members.len()];
        for (m, way) in members.iter().zip(&mut ways) {
            for f in self.returns(*m, stack) {
                let length = deep(|| self.after_frame(f, budget))?;
                if length < way.0 {
                    *way = (length, Step::Return(f));
                }
            }
        }
        let mut changed = true;
        while changed {
            changed = false;
            for (i, &m) in members.iter().enumerate() {
                for back in self.loops_of(m, budget)? {
                    let next = self.positions.rule(back);
                    let at = members.iter().position(|&r| r == next).expect("loops stay in the component");
                    let length = plus(self.position_length(back, stack, budget)?, ways[at].0);
                    if length < ways[i].0 {
                        ways[i] = (length, Step::Loop(back));
                        changed = true;
                    }
                }
            }
        }
        for (&m, &way) in members.iter().zip(&ways) {
            self.shortest.after.insert((m, stack), way);
        }
        Ok(self.shortest.after[&(rule, stack)])
    }

    /// The frames that a completed rule returns to.
    fn returns(&self, rule: RuleId, stack: Stack) -> Vec<Frame> {
        let fits = |f: &&Frame| f.callee == NO_CALLEE || f.callee == rule;
        self.stacks.frames(stack).iter().filter(fits).copied().collect()
    }

    fn after_frame(&mut self, f: Frame, budget: &mut Budget) -> Result<u64> {
        if self.stacks.is_bottom(f) {
            return Ok(0);
        }
        let rest = self.after_rule(self.positions.rule(f.back), f.below, budget)?.0;
        Ok(plus(self.position_length(f.back, f.below, budget)?, rest))
    }

    fn spell_stack(
        &mut self,
        mut rule: RuleId,
        mut stack: Stack,
        out: &mut Vec<u8>,
        budget: &mut Budget,
    ) -> Result<()> {
        loop {
            let back = match self.after_rule(rule, stack, budget)?.1 {
                Step::Return(f) if self.stacks.is_bottom(f) => return Ok(()),
                Step::Return(f) => {
                    stack = f.below;
                    f.back
                }
                Step::Loop(back) => back,
                Step::Nowhere => unreachable!("what is alive can be completed"),
            };
            self.spell_position(back, stack, out, budget)?;
            rule = self.positions.rule(back);
        }
    }

    /// The length of the text that `spell_position` gives.
    pub(super) fn position_length(&mut self, p: PosId, stack: Stack, budget: &mut Budget) -> Result<u64> {
        let param = self.stacks.param(stack);
        let (mut at, mut total) = (p, 0u64);
        loop {
            let (length, next) = match self.positions.get(at) {
                Pos::Bottom | Pos::End(_) | Pos::State { .. } | Pos::Token { .. } => return Ok(total),
                Pos::Then(node, next) => (self.length(node, param, budget)?, next),
                Pos::Again { least: 0, next, .. } => (0, next),
                Pos::Again { body, least, next, .. } => (times(self.length(body, param, budget)?, least), next),
            };
            (at, total) = (next, plus(total, length));
        }
    }

    /// The length of the text that `spell` gives for an expression.
    fn length(&mut self, node: NodeId, param: ParamId, budget: &mut Budget) -> Result<u64> {
        if !self.analysis.parametric(node) {
            return Ok(self.shortest.nodes.as_ref().expect("found before")[node as usize]);
        }
        if let Some(&known) = self.shortest.parametric.get(&(node, param)) {
            return Ok(known);
        }
        let mut total = NEVER;
        if self.productive(node, param, budget)? {
            let (parts, count) = self.parts_of_text(node, param, budget)?;
            total = 0;
            for (part, param) in parts {
                total = plus(total, deep(|| self.length(part, param, budget))?);
            }
            total = times(total, count);
        }
        self.shortest.parametric.insert((node, param), total);
        Ok(total)
    }

    /// The parts, one after the other, of a productive expression's text, and how many times it has them.
    fn parts_of_text(
        &mut self,
        node: NodeId,
        param: ParamId,
        budget: &mut Budget,
    ) -> Result<(Vec<(NodeId, ParamId)>, u32)> {
        let ir = self.ir.clone();
        Ok(match &ir.nodes[node as usize] {
            Node::When(_) => (Vec::new(), 0),
            Node::Text(os) => (vec![(os[0], param)], 1),
            Node::Seq(os) => (os.iter().map(|&o| (o, param)).collect(), 1),
            Node::Alt(_) if self.analysis.parametric(node) => (vec![(self.witness(node, param, budget)?, param)], 1),
            Node::Alt(_) => (vec![(self.shortest.choices[&node], param)], 1),
            Node::Repeat(o, least, _) => (if *least == 0 { Vec::new() } else { vec![(*o, param)] }, *least),
            Node::Call(rule) => (vec![(ir.body(*rule), UNSET)], 1),
            Node::CallWith(rule, update) => (vec![(ir.body(*rule), self.instances.updated(param, update))], 1),
            _ => unreachable!("every other expression is one lexical unit"),
        })
    }

    /// Appends a shortest text of what is left of a rule, over this continuation.
    fn spell_position(&mut self, p: PosId, stack: Stack, out: &mut Vec<u8>, budget: &mut Budget) -> Result<()> {
        let param = self.stacks.param(stack);
        let mut at = p;
        loop {
            match self.positions.get(at) {
                Pos::Bottom | Pos::End(_) | Pos::State { .. } | Pos::Token { .. } => return Ok(()),
                Pos::Then(node, next) => {
                    self.spell(node, param, out, budget)?;
                    at = next;
                }
                Pos::Again { body, least, next, .. } => {
                    for _ in 0..least {
                        self.spell(body, param, out, budget)?;
                    }
                    at = next;
                }
            }
        }
    }

    /// Appends a shortest text of the expression (some text, where it depends on a parameter).
    fn spell(&mut self, node: NodeId, param: ParamId, out: &mut Vec<u8>, budget: &mut Budget) -> Result<()> {
        budget.spend(1)?;
        if let Some(text) = self.shortest.units.get(&node) {
            out.extend_from_slice(text);
            return Ok(());
        }
        let (parts, times) = self.parts_of_text(node, param, budget)?;
        for _ in 0..times {
            for &(part, param) in &parts {
                deep(|| self.spell(part, param, out, budget))?;
            }
        }
        Ok(())
    }

    /// Minimal lengths of all expressions outside lexical units.
    pub(super) fn find_lengths(&mut self, budget: &mut Budget) -> Result<()> {
        if self.shortest.nodes.is_some() {
            return Ok(());
        }
        let ir = self.ir.clone();
        let mut lengths = vec![NEVER; ir.nodes.len()];
        let mut needed: Vec<NodeId> = Vec::new();
        let mut seen = vec![false; ir.nodes.len()];
        let mut todo = ir.rules.clone();
        while let Some(id) = todo.pop() {
            if std::mem::replace(&mut seen[id as usize], true) || !self.analysis.productive[id as usize] {
                continue;
            }
            if let Node::Lexeme(_) | Node::Lexemes(_) = ir.nodes[id as usize] {
                lengths[id as usize] = self.shortest_of_lexeme(id, budget)?;
                continue;
            }
            if ir.is_unit(id) {
                let text = self.shortest_of_unit(id, budget)?;
                lengths[id as usize] = text.len() as u64;
                self.shortest.units.insert(id, text);
                continue;
            }
            if !self.analysis.parametric(id) {
                needed.push(id);
            }
            if !matches!(ir.nodes[id as usize], Node::Parser(_)) {
                ir.nodes[id as usize].operands(|o| todo.push(o));
            }
        }
        needed.sort_unstable();
        let mut changed = true;
        while changed {
            changed = false;
            for &id in &needed {
                budget.spend(1)?;
                let sum = |os: &[NodeId]| os.iter().fold(0u64, |acc, &o| plus(acc, lengths[o as usize]));
                let length = match &ir.nodes[id as usize] {
                    Node::Seq(os) => sum(os),
                    Node::Alt(os) => {
                        let least = os.iter().copied().min_by_key(|&o| lengths[o as usize]).expect("it is productive");
                        if lengths[least as usize] < lengths[id as usize] {
                            self.shortest.choices.insert(id, least);
                        }
                        lengths[least as usize]
                    }
                    Node::Repeat(_, 0, _) => 0,
                    Node::Repeat(o, least, _) => times(lengths[*o as usize], *least),
                    Node::Call(rule) => lengths[ir.body(*rule) as usize],
                    Node::Text(os) => lengths[os[0] as usize],
                    // a lower bound, as endings are searched for where there are parsers
                    Node::Parser(_) => 0,
                    _ => unreachable!("every other expression is one lexical unit"),
                };
                if length < lengths[id as usize] {
                    lengths[id as usize] = length;
                    changed = true;
                }
            }
        }
        self.shortest.nodes = Some(lengths);
        Ok(())
    }

    fn shortest_of_unit(&mut self, node: NodeId, budget: &mut Budget) -> Result<Vec<u8>> {
        if let Node::Literal(text) = &self.ir.nodes[node as usize] {
            return Ok(text.to_vec());
        }
        let x = self.unit_alone(node, budget)?;
        self.arena.shortest(x, budget)
    }
}
