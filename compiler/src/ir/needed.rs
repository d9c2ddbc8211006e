//! The part of a description that its start needs: front-ends describe more than they use in the end.

use super::{Node, NodeId, RuleId};

/// Numbers nothing that is needed.
const LEFT_OUT: u32 = u32::MAX;

/// The expressions and rules that a grammar keeps, with their new numbers, which are in the order of the old ones.
pub(super) struct Needed {
    nodes: Vec<u32>,
    rules: Vec<u32>,
}

impl Needed {
    /// What can be reached from an expression of those that are shared and their own; `body` is that of each rule.
    pub(super) fn from(start: NodeId, shared: &[Node], own: &[Node], body: &[NodeId]) -> Needed {
        let mut needed = Needed { nodes: vec![LEFT_OUT; shared.len() + own.len()], rules: vec![LEFT_OUT; body.len()] };
        let mut todo = vec![start];
        while let Some(id) = todo.pop() {
            let id = id as usize;
            if std::mem::replace(&mut needed.nodes[id], 0) != LEFT_OUT {
                continue;
            }
            let node = shared.get(id).unwrap_or_else(|| &own[id - shared.len()]);
            node.operands(|operand| todo.push(operand));
            let mut call = |rule: RuleId| {
                if std::mem::replace(&mut needed.rules[rule as usize], 0) == LEFT_OUT {
                    todo.push(body[rule as usize]);
                }
            };
            match node {
                Node::Call(rule) => call(*rule),
                Node::CallWith(rule, update) => {
                    call(*rule);
                    update.like.into_iter().for_each(call);
                }
                _ => {}
            }
        }
        for numbers in [&mut needed.nodes, &mut needed.rules] {
            numbers.iter_mut().filter(|number| **number != LEFT_OUT).zip(0..).for_each(|(number, new)| *number = new);
        }
        needed
    }

    /// Of things in the order of the rules, those of the rules that are kept.
    pub(super) fn of_rules<'a, T>(&'a self, all: &'a [T]) -> impl Iterator<Item = &'a T> {
        kept(all, &self.rules)
    }

    /// The expressions that are kept, in new numbers.
    pub(super) fn of_nodes(&self, shared: &[Node], own: &[Node]) -> Vec<Node> {
        let (first, others) = self.nodes.split_at(shared.len());
        let mut nodes: Vec<Node> = kept(shared, first).chain(kept(own, others)).cloned().collect();
        nodes.iter_mut().for_each(|node| self.renumber(node));
        nodes
    }

    /// The new number of an expression that is kept.
    pub(super) fn node(&self, old: NodeId) -> NodeId {
        self.nodes[old as usize]
    }

    fn rule(&self, old: RuleId) -> RuleId {
        self.rules[old as usize]
    }

    fn renumber(&self, node: &mut Node) {
        node.operands_mut(|operand| *operand = self.node(*operand));
        match node {
            Node::Call(rule) => *rule = self.rule(*rule),
            Node::CallWith(rule, update) => {
                *rule = self.rule(*rule);
                update.like = update.like.map(|rule| self.rule(rule));
            }
            _ => {}
        }
    }
}

/// The things whose numbers are not left out.
fn kept<'a, T>(all: &'a [T], numbers: &'a [u32]) -> impl Iterator<Item = &'a T> {
    all.iter().zip(numbers).filter(|(_, number)| **number != LEFT_OUT).map(|(one, _)| one)
}
