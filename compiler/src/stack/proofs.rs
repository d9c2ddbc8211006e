//! Productivity and nullability of expressions given a parameter, by search.
//!
//! Without parameters both are least fixpoints over the grammar, found at once (`grammar.rs`). With them, a rule has as
//! many instances as its parameter has values, far too many to look at. So the same fixpoint is searched from the
//! question at hand, as in the evaluation of and/or graphs: depth first, alternatives in their order (those of lower
//! rank first where no parameter matters), and no further than to a proof. What is proven or refuted stays known.
//!
//! If every step of a parameter leads nearer to an ending, as with the keys of an object, the first path is a proof.
//! For other grammars the search may be exponential, and is ended by the budget.

use rustc_hash::{FxHashMap, FxHashSet};

use super::instances::{ParamId, UNSET};
use super::step::Machine;
use crate::budget::Budget;
use crate::error::Result;
use crate::ir::{Node, NodeId, Update};

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Property {
    /// Some text belongs to the expression.
    Productive,
    /// The empty text belongs to it.
    Nullable,
}

type Question = (Property, NodeId, ParamId);
type GoalId = u32;

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// Not examined.
    New,
    /// Examined, but not settled.
    Open,
    Proven,
    Refuted,
}

struct Goal {
    question: Question,
    state: State,
    /// For a union: one proven part proves it, and it is refuted when all parts are. Otherwise the other way round.
    any: bool,
    /// The number of parts that are not proven yet; for a union, not refuted yet.
    missing: usize,
    parts: Vec<GoalId>,
    /// For a union: the parts that were not needed so far, the next one last.
    rest: Vec<Question>,
    /// The goals that it is a part of.
    users: Vec<GoalId>,
}

#[derive(Default)]
pub(super) struct Proofs {
    goals: Vec<Goal>,
    ids: FxHashMap<Question, GoalId>,
    /// The alternative that proved a union.
    witnesses: FxHashMap<Question, NodeId>,
    /// The room of all `rest`, in questions.
    waiting: usize,
}

/// Units of work of a goal, with its questions and what it tells others.
const GOAL: u64 = 6;

/// Words of a parameter that are copied and compared in a step.
const WORDS: u64 = 64;

/// Goals between two looks at the memory that they take.
const LOOK_EVERY: usize = 256;

/// How a question depends on others.
enum Parts {
    Known(bool),
    All(Vec<Question>),
    Any(Vec<Question>),
}

impl Proofs {
    fn goal(&mut self, question: Question) -> GoalId {
        let next = self.goals.len() as GoalId;
        let id = *self.ids.entry(question).or_insert(next);
        if id == next {
            self.goals.push(Goal {
                question,
                state: State::New,
                any: false,
                missing: 0,
                parts: Vec::new(),
                rest: Vec::new(),
                users: Vec::new(),
            });
        }
        id
    }

    fn settled(&self, id: GoalId) -> bool {
        matches!(self.goals[id as usize].state, State::Proven | State::Refuted)
    }

    /// Settles a goal and all that this settles.
    fn settle(&mut self, id: GoalId, proven: bool) {
        let mut todo = vec![(id, proven)];
        while let Some((id, proven)) = todo.pop() {
            if self.settled(id) {
                continue;
            }
            let goal = &mut self.goals[id as usize];
            goal.state = if proven { State::Proven } else { State::Refuted };
            // what is settled needs no parts: unions of thousands of keys are asked for at each key
            goal.parts = Vec::new();
            self.waiting -= std::mem::take(&mut goal.rest).capacity();
            for user in std::mem::take(&mut goal.users) {
                self.tell(user, id, proven, &mut todo);
            }
        }
    }

    /// One part of a goal is settled.
    fn tell(&mut self, id: GoalId, part: GoalId, proven: bool, todo: &mut Vec<(GoalId, bool)>) {
        let witness = self.goals[part as usize].question.1;
        let goal = &mut self.goals[id as usize];
        if goal.state != State::Open {
            return;
        }
        if goal.any == proven {
            todo.push((id, proven));
            if proven {
                self.witnesses.entry(goal.question).or_insert(witness);
            }
            return;
        }
        goal.missing -= 1;
        if goal.missing == 0 {
            todo.push((id, proven));
        }
    }

    /// Opens a goal all of whose parts are needed.
    fn open_all(&mut self, id: GoalId, parts: Vec<GoalId>) {
        let goal = &mut self.goals[id as usize];
        (goal.state, goal.any, goal.missing) = (State::Open, false, parts.len());
        if parts.is_empty() {
            return self.settle(id, true);
        }
        for part in parts {
            self.add_part(id, part);
        }
    }

    /// Opens a goal one of whose parts is needed; they are added as long as it is not settled.
    fn open_any(&mut self, id: GoalId, mut questions: Vec<Question>) {
        questions.reverse();
        self.waiting += questions.capacity();
        let goal = &mut self.goals[id as usize];
        (goal.state, goal.any, goal.missing, goal.rest) = (State::Open, true, questions.len(), questions);
        if self.goals[id as usize].missing == 0 {
            self.settle(id, false);
        }
    }

    /// One of a union's parts is refuted without having become a goal.
    fn refute_part(&mut self, id: GoalId) {
        let goal = &mut self.goals[id as usize];
        goal.missing -= 1;
        if goal.missing == 0 {
            self.settle(id, false);
        }
    }

    fn add_part(&mut self, id: GoalId, part: GoalId) {
        self.goals[id as usize].parts.push(part);
        if self.settled(part) {
            let proven = self.goals[part as usize].state == State::Proven;
            let mut settled = Vec::new();
            self.tell(id, part, proven, &mut settled);
            if let Some(&(_, proven)) = settled.first() {
                self.settle(id, proven);
            }
        } else {
            self.goals[part as usize].users.push(id);
        }
    }

    /// Refutes what an exhausted search from `root` left open: in a least fixpoint, what has no proof does not hold.
    fn refute(&mut self, root: GoalId) {
        let mut todo = vec![root];
        while let Some(id) = todo.pop() {
            let goal = &mut self.goals[id as usize];
            if goal.state == State::Open {
                goal.state = State::Refuted;
                self.waiting -= std::mem::take(&mut goal.rest).capacity();
                todo.extend(std::mem::take(&mut goal.parts));
            }
        }
    }

    pub(super) fn memory(&self) -> usize {
        self.goals.len() * 160 + self.waiting * size_of::<Question>()
    }
}

impl Machine {
    /// Whether any text belongs to the expression in a rule with this parameter.
    pub(super) fn productive(&mut self, node: NodeId, param: ParamId, budget: &mut Budget) -> Result<bool> {
        if !self.analysis.parametric(node) {
            return Ok(self.without_parameter(Property::Productive, node));
        }
        self.search((Property::Productive, node, param), budget)
    }

    /// Whether the empty text belongs to the expression in a rule with this parameter.
    pub(super) fn nullable(&mut self, node: NodeId, param: ParamId, budget: &mut Budget) -> Result<bool> {
        if !self.analysis.parametric(node) {
            return Ok(self.without_parameter(Property::Nullable, node));
        }
        self.search((Property::Nullable, node, param), budget)
    }

    /// The alternative by which a union was proven to be productive.
    pub(super) fn witness(&mut self, node: NodeId, param: ParamId, budget: &mut Budget) -> Result<NodeId> {
        self.productive(node, param, budget)?;
        Ok(self.proofs.witnesses[&self.canonical((Property::Productive, node, param))])
    }

    /// The question without a parameter that its expression does not depend on.
    fn canonical(&self, (property, node, param): Question) -> Question {
        (property, node, if self.ir.facts[node as usize].parameter { param } else { UNSET })
    }

    /// Answers a question.
    fn search(&mut self, question: Question, budget: &mut Budget) -> Result<bool> {
        let question = self.canonical(question);
        if let Some(known) = self.at_once(question) {
            return Ok(known);
        }
        let root = self.proofs.goal(question);
        let mut visited = FxHashSet::default();
        // goals, and whether it is a union's turn to add its next part
        let mut todo = vec![(root, false)];
        while let Some((id, resumed)) = todo.pop() {
            if self.proofs.settled(root) {
                break;
            }
            if self.proofs.settled(id) {
                continue;
            }
            let goal = &self.proofs.goals[id as usize];
            if id != root && goal.users.iter().all(|&u| self.proofs.settled(u)) {
                if resumed {
                    visited.remove(&id); // it may be needed again
                }
                continue;
            }
            if !resumed && !visited.insert(id) {
                continue;
            }
            if goal.state == State::New {
                budget.spend(GOAL + self.instances.size(goal.question.2) as u64 / WORDS)?;
                if (id as usize).is_multiple_of(LOOK_EVERY) {
                    self.check_memory()?;
                }
                match self.parts_of(goal.question) {
                    Parts::Known(proven) => self.proofs.settle(id, proven),
                    Parts::All(questions) => {
                        budget.spend(questions.len() as u64)?;
                        let parts = questions.into_iter().map(|q| self.proofs.goal(self.canonical(q))).collect();
                        self.proofs.open_all(id, parts);
                    }
                    Parts::Any(questions) => {
                        budget.spend(questions.len() as u64 / 4)?;
                        self.proofs.open_any(id, questions);
                    }
                }
            }
            self.explore(id, resumed, &mut todo, budget)?;
        }
        if !self.proofs.settled(root) {
            self.proofs.refute(root);
        }
        Ok(self.proofs.goals[root as usize].state == State::Proven)
    }

    /// The answer to a question about an expression whose parts are conditions and what is known: one for each key of an
    /// object, at each of its states, for which no goals are kept.
    fn at_once(&self, (property, node, param): Question) -> Option<bool> {
        match &self.ir.nodes[node as usize] {
            Node::Seq(os) => {
                let mut all = Some(true);
                for &o in os {
                    match self.known((property, o, param)) {
                        Some(true) => {}
                        Some(false) => return Some(false),
                        None => all = None,
                    }
                }
                all
            }
            _ => self.known((property, node, param)),
        }
    }

    /// The answer to a question about a condition, or about an expression of which it is known whatever the parameter.
    fn known(&self, (property, node, param): Question) -> Option<bool> {
        if !self.analysis.parametric(node) {
            return Some(self.without_parameter(property, node));
        }
        match &self.ir.nodes[node as usize] {
            Node::When(guard) => Some(self.instances.holds(param, guard)),
            Node::CallWith(_, Update { like: Some(like), .. }) if property == Property::Productive => {
                let question = (property, self.ir.body(*like), UNSET);
                if self.ir.facts[question.1 as usize].parameter {
                    return None;
                }
                if !self.analysis.parametric(question.1) {
                    return Some(self.without_parameter(property, question.1));
                }
                let goal = *self.proofs.ids.get(&question)?;
                self.proofs.settled(goal).then(|| self.proofs.goals[goal as usize].state == State::Proven)
            }
            _ => None,
        }
    }

    /// The answer to a question about an expression that depends on no parameter, not even one of a rule that it calls.
    fn without_parameter(&self, property: Property, node: NodeId) -> bool {
        match property {
            Property::Productive => self.analysis.productive[node as usize],
            Property::Nullable => self.analysis.nullable[node as usize],
        }
    }

    /// Adds to `todo` what an open goal needs next: its parts, and for a union the next alternative after them.
    fn explore(
        &mut self,
        id: GoalId,
        resumed: bool,
        todo: &mut Vec<(GoalId, bool)>,
        budget: &mut Budget,
    ) -> Result<()> {
        if resumed {
            while !self.proofs.settled(id)
                && let Some(&question) = self.proofs.goals[id as usize].rest.last()
            {
                // the alternative is taken only when it is paid for: a search that ends here goes on there later
                budget.spend(1)?;
                let barred = self.is_barred(question.1, question.2);
                self.proofs.goals[id as usize].rest.pop();
                if barred {
                    self.proofs.refute_part(id);
                    continue;
                }
                let part = self.proofs.goal(self.canonical(question));
                self.proofs.add_part(id, part);
                if !self.proofs.settled(part) {
                    todo.extend([(id, true), (part, false)]);
                    break;
                }
            }
        } else if !self.proofs.settled(id) {
            let goal = &self.proofs.goals[id as usize];
            if goal.any {
                todo.push((id, true));
            }
            todo.extend(goal.parts.iter().rev().map(|&part| (part, false)));
        }
        Ok(())
    }

    /// Whether the expression begins with a condition that does not hold.
    fn is_barred(&self, node: NodeId, param: ParamId) -> bool {
        match &self.ir.nodes[node as usize] {
            Node::When(guard) => !self.instances.holds(param, guard),
            Node::Seq(os) => os.first().is_some_and(|&first| match &self.ir.nodes[first as usize] {
                Node::When(guard) => !self.instances.holds(param, guard),
                _ => false,
            }),
            _ => false,
        }
    }

    /// What an answer depends on.
    fn parts_of(&mut self, (property, node, param): Question) -> Parts {
        if !self.analysis.parametric(node) {
            return Parts::Known(self.without_parameter(property, node));
        }
        let ir = self.ir.clone();
        match &ir.nodes[node as usize] {
            Node::When(guard) => Parts::Known(self.instances.holds(param, guard)),
            Node::CallWith(rule, update) => {
                let rule = if property == Property::Productive { update.like.as_ref().unwrap_or(rule) } else { rule };
                let body = ir.body(*rule);
                let depends = ir.facts[body as usize].parameter;
                let param = if depends { self.instances.updated(param, update) } else { UNSET };
                Parts::All(vec![(property, body, param)])
            }
            Node::Call(rule) => Parts::All(vec![(property, ir.body(*rule), UNSET)]),
            // conditions first: they cost nothing and often settle the rest
            Node::Seq(os) => {
                let guards = os.iter().filter(|&&o| matches!(ir.nodes[o as usize], Node::When(_)));
                let others = os.iter().filter(|&&o| !matches!(ir.nodes[o as usize], Node::When(_)));
                Parts::All(guards.chain(others).map(|&o| (property, o, param)).collect())
            }
            Node::Alt(os) => {
                let mut alternatives = os.to_vec();
                if !ir.facts[node as usize].parameter {
                    alternatives.sort_by_key(|&o| self.analysis.rank(o));
                }
                Parts::Any(alternatives.into_iter().map(|o| (property, o, param)).collect())
            }
            Node::Repeat(_, 0, _) => Parts::Known(true),
            Node::Repeat(o, ..) => Parts::All(vec![(property, *o, param)]),
            _ => unreachable!("no other expression depends on a parameter"),
        }
    }
}
