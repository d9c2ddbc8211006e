//! Prediction: the terminals and calls that can come next at a position, and whether its rule can end there.
//!
//! Left-recursive rules are predicted by component: the members of a strongly connected component of the left-corner
//! graph are entered together, and the calls among them become *loops*: where a completed member goes on as the first
//! part of another. So a left recursion needs no frame that leads back to itself.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::instances::{Instance, ParamId};
use super::position::{BOTTOM, Pos, PosId};
use super::step::Machine;
use crate::budget::Budget;
use crate::error::Result;
use crate::ir::{Ir, Node, NodeId, PIECE, Placed, RuleId, UNBOUNDED};
use crate::regular::{EMPTY, EPS, Id, List, TOP};
use crate::small_set::SmallSet;

/// Positions, mostly few.
type Positions = SmallVec<[PosId; 16]>;

/// What a position predicts within its rule.
#[derive(Default, Clone)]
pub(super) struct Expansion {
    /// The terminals that can come next, each ending in the `Accept` of the position after it.
    pub(super) direct: Id,
    /// Calls and where they return to.
    pub(super) calls: Vec<(Instance, PosId)>,
    /// The rule can end here without another byte.
    done: bool,
}

/// What can follow a nullable residual, whose terminal may end here.
pub(super) struct Ending {
    /// The residual itself, if it can go on, and the terminals that can follow in the same rule.
    pub(super) direct: Id,
    pub(super) calls: Vec<(Instance, PosId)>,
    /// The rules that can end here.
    pub(super) completes: SmallVec<[RuleId; 2]>,
}

/// The most iterations of a nullable body that were entered without a byte before a position: fewer add nothing.
type Entered = FxHashMap<(NodeId, PosId), u32>;

/// Predictions found so far; shared, as the machine changes while one of them is read.
pub(super) type Shared<K, V> = FxHashMap<K, Arc<V>>;

impl Machine {
    /// Predictions of a position in the middle of a rule with this parameter.
    fn expansion(&mut self, p: PosId, param: ParamId, budget: &mut Budget) -> Result<Arc<Expansion>> {
        if let Some(e) = self.expansions.get(&(p, param)) {
            return Ok(e.clone());
        }
        let e = Arc::new(self.expand(p, param, budget)?);
        self.expansions.insert((p, param), e.clone());
        Ok(e)
    }

    /// Predictions at the start of a rule. For a left-recursive rule: of its whole component, without the calls
    /// among its members, which become loops.
    pub(super) fn entry(&mut self, instance: Instance, budget: &mut Budget) -> Result<Arc<Expansion>> {
        if let Some(e) = self.entries.get(&instance) {
            return Ok(e.clone());
        }
        let (rule, param) = (self.instances.rule(instance), self.instances.param(instance));
        let recursive = self.analysis.left_recursive(rule);
        let members: Vec<RuleId> = if recursive { self.analysis.members(rule).to_vec() } else { vec![rule] };
        let component = self.analysis.component(rule);
        let mut all = Expansion::default();
        let mut directs: Vec<Id> = Vec::new();
        for &member in &members {
            let end = self.positions.intern(Pos::End(member));
            let first = self.positions.intern(Pos::Then(self.ir.body(member), end));
            let e = self.expand(first, param, budget)?;
            directs.push(e.direct);
            for (callee, back) in e.calls {
                let called = self.instances.rule(callee);
                if recursive && self.analysis.component(called) == component {
                    self.loops.entry(called).or_default().push(back);
                } else {
                    all.calls.push((callee, back));
                }
            }
        }
        all.direct = self.arena.alt(&directs);
        let all = Arc::new(all);
        if recursive {
            // their rules have no parameter, and each is its own instance
            members.iter().for_each(|&member| drop(self.entries.insert(member, all.clone())));
        } else {
            self.entries.insert(instance, all.clone());
        }
        Ok(all)
    }

    /// Finds the predictions of a position in a rule with this parameter: a walk over what can be reached without a byte.
    fn expand(&mut self, from: PosId, param: ParamId, budget: &mut Budget) -> Result<Expansion> {
        let ir = self.ir.clone();
        let mut out = Expansion::default();
        let mut directs = List::new();
        let mut seen: SmallSet<PosId> = SmallSet::default();
        let mut entered = Entered::default();
        let mut todo = Positions::from_slice(&[from]);
        while let Some(p) = todo.pop() {
            if !seen.insert(p) {
                continue;
            }
            budget.spend(4)?;
            let (node, next) = match self.positions.get(p) {
                Pos::Bottom | Pos::State { .. } | Pos::Token { .. } => continue,
                Pos::End(_) => {
                    out.done = true;
                    continue;
                }
                Pos::Again { body, least, most, next } => {
                    self.iterate((body, least, most), next, param, (&mut entered, &mut todo), budget)?;
                    continue;
                }
                Pos::Then(node, next) => (node, next),
            };
            if !self.productive(node, param, budget)? {
                continue;
            }
            let facts = ir.facts[node as usize];
            let body = &ir.nodes[node as usize];
            if ir.is_unit(node) {
                let (direct, passed) = self.terminal_at(p, node, next, budget)?;
                todo.extend(passed);
                directs.push(direct);
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
                Node::Repeat(x, least, most) => {
                    self.iterate((*x, *least, *most), next, param, (&mut entered, &mut todo), budget)?;
                }
                Node::When(_) => todo.push(next), // it holds, being productive
                Node::Text(os) => todo.push(self.positions.intern(Pos::Then(os[0], next))),
                Node::Call(rule) if facts.regular => {
                    todo.push(self.positions.intern(Pos::Then(ir.body(*rule), next)));
                }
                Node::Call(_) | Node::CallWith(..) => {
                    let callee = match body {
                        Node::CallWith(rule, update) => {
                            let updated = self.instances.updated(param, update);
                            self.instances.of(*rule, updated)
                        }
                        Node::Call(rule) => *rule,
                        _ => unreachable!(),
                    };
                    if !out.calls.contains(&(callee, next)) {
                        out.calls.push((callee, next));
                    }
                    if self.nullable(node, param, budget)? {
                        todo.push(next);
                    }
                }
                _ => unreachable!("every other expression is one lexical unit"),
            }
        }
        out.direct = self.arena.alt(&directs);
        Ok(out)
    }

    /// One more of `least` to `most` iterations of a body, or `next`.
    fn iterate(
        &mut self,
        (body, least, most): (NodeId, u32, u32),
        next: PosId,
        param: ParamId,
        (entered, todo): (&mut Entered, &mut Positions),
        budget: &mut Budget,
    ) -> Result<()> {
        let nullable = self.nullable(body, param, budget)?;
        let least = if nullable { 0 } else { least };
        if least == 0 {
            todo.push(next);
        }
        if most == 0 || !self.productive(body, param, budget)? {
            return Ok(());
        }
        if nullable {
            let known = entered.entry((body, next)).or_default();
            if *known >= most {
                return Ok(());
            }
            *known = most;
        }
        let most = if most == UNBOUNDED { most } else { most - 1 };
        let after = if most == 0 {
            next
        } else {
            self.positions.intern(Pos::Again { body, least: least.saturating_sub(1), most, next })
        };
        todo.push(self.positions.intern(Pos::Then(body, after)));
        Ok(())
    }

    /// The terminal at a position, ending in the tag of the position after it; also that position, if the terminal may
    /// be empty. Kept, because many positions predict the same ones: the keys of an object, say.
    fn terminal_at(&mut self, p: PosId, node: NodeId, next: PosId, budget: &mut Budget) -> Result<(Id, Option<PosId>)> {
        if let Some(&known) = self.terminals.get(&p) {
            return Ok(known);
        }
        if let Node::Lexemes(all) = &self.ir.clone().nodes[node as usize] {
            let direct = self.lexemes_at(all, next, budget)?;
            self.terminals.insert(p, (direct, None));
            return Ok((direct, None));
        }
        let (literals, x, after) = self.unit(node, next, budget)?;
        let tag = self.accept(after);
        let mut direct =
            if x == EPS && literals.is_empty() { EMPTY } else { self.arena.concat_within(x, tag, budget)? };
        let ir = self.ir.clone();
        if matches!(ir.nodes[node as usize], Node::Lexeme(_)) {
            direct = self.arena.lexeme(direct);
        }
        for text in literals.iter().rev().filter_map(|&literal| text_of(&ir, literal)) {
            direct = self.arena.literal_then_within(text, direct, budget)?;
        }
        let found = (direct, (literals.is_empty() && self.arena.ever_nullable(x)).then_some(after));
        self.terminals.insert(p, found);
        Ok(found)
    }

    /// The lexemes at a position, ending in its tag under the condition of what their last character is.
    fn lexemes_at(&mut self, all: &[Placed], next: PosId, budget: &mut Budget) -> Result<Id> {
        let tag = self.accept(next);
        let mut lexemes = Vec::with_capacity(all.len());
        for one in all {
            let text = self.lexeme_text(one.text, budget)?;
            let past = self.arena.past(one.last);
            let end = self.arena.under(past, tag);
            let x = self.arena.concat_within(text, end, budget)?;
            let x = self.arena.lexeme(x);
            lexemes.push(one.before.map_or(x, |class| self.arena.after(class, x)));
        }
        self.arena.alt_within(&lexemes, budget)
    }

    /// The texts of a lexeme, or of a terminal that is used as one.
    pub(super) fn lexeme_text(&mut self, node: NodeId, budget: &mut Budget) -> Result<Id> {
        let ir = self.ir.clone();
        let x = self.arena.lower(&ir, node, &mut self.lowered, budget)?;
        Ok(if matches!(ir.nodes[node as usize], Node::Lexeme(_)) { x } else { self.arena.unit(x) })
    }

    /// The lexical unit that starts with `node`, joined with the flat expressions behind it: the literals that it begins
    /// with, which are not made into expressions twice; the language of what follows them; and the position after it.
    fn unit(&mut self, node: NodeId, next: PosId, budget: &mut Budget) -> Result<(SmallVec<[NodeId; 4]>, Id, PosId)> {
        let ir = self.ir.clone();
        let joins = |n: NodeId| ir.facts[n as usize].flat && !ir.facts[n as usize].looks;
        let mut nodes: SmallVec<[NodeId; 8]> = SmallVec::from_slice(&[node]);
        let mut after = next;
        let mut bytes = ir.nodes[node as usize].literal_bytes();
        if joins(node) {
            while let Pos::Then(n, rest) = self.positions.get(after)
                && joins(n)
            {
                bytes += ir.nodes[n as usize].literal_bytes();
                if bytes > PIECE {
                    break;
                }
                nodes.push(n);
                after = rest;
            }
        }
        let mut parts: SmallVec<[Id; 8]> = SmallVec::new();
        let literals: SmallVec<_> = nodes.iter().copied().take_while(|&n| text_of(&ir, n).is_some()).collect();
        for &n in &nodes[literals.len()..] {
            let x = self.arena.lower(&ir, n, &mut self.lowered, budget)?;
            let closed = n == node && !matches!(ir.nodes[n as usize], Node::Lexeme(_));
            parts.push(if closed { self.arena.unit(x) } else { x });
        }
        let x = parts.into_iter().rev().try_fold(EPS, |rest, x| self.arena.concat_within(x, rest, budget))?;
        Ok((literals, x, after))
    }

    /// The language of a regular expression by itself.
    pub(super) fn unit_alone(&mut self, node: u32, budget: &mut Budget) -> Result<Id> {
        let ir = self.ir.clone();
        let x = self.arena.lower(&ir, node, &mut self.lowered, budget)?;
        Ok(self.arena.unit(x))
    }

    /// The positions at which other rules of its component go on when a left-recursive rule is completed.
    pub(super) fn loops_of(&mut self, rule: RuleId, budget: &mut Budget) -> Result<Vec<PosId>> {
        if self.analysis.left_recursive(rule) {
            self.entry(rule, budget)?;
        }
        Ok(self.loops.get(&rule).cloned().unwrap_or_default())
    }

    /// What can follow where the terminal of a nullable residual ends, in a rule with this parameter, whatever the text
    /// behind it.
    pub(super) fn ending(&mut self, rest: Id, param: ParamId, budget: &mut Budget) -> Result<Arc<Ending>> {
        if let Some(e) = self.endings.get(&(rest, param)) {
            return Ok(e.clone());
        }
        let free = |&(condition, tag): &(Id, PosId)| (condition == TOP).then_some(tag);
        let mut todo: Positions = self.arena.ends(rest).iter().filter_map(free).collect();
        let mut seen: SmallSet<PosId> = SmallSet::default();
        let mut out = Ending { direct: EMPTY, calls: Vec::new(), completes: SmallVec::new() };
        let mut directs = List::new();
        if !self.arena.is_end(rest) {
            directs.push(rest);
        }
        while let Some(p) = todo.pop() {
            if !seen.insert(p) {
                continue;
            }
            let e = self.expansion(p, param, budget)?;
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
                    todo.extend(self.loops.get(&rule).into_iter().flatten().copied());
                }
            }
        }
        out.direct = self.arena.alt(&directs);
        let out = Arc::new(out);
        self.endings.insert((rest, param), out.clone());
        Ok(out)
    }
}

/// The text of a literal.
fn text_of(ir: &Ir, node: NodeId) -> Option<&[u8]> {
    match &ir.nodes[node as usize] {
        Node::Literal(text) if !text.is_empty() => Some(text),
        _ => None,
    }
}
