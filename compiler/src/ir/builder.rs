//! The builder of grammars: front-ends describe expressions one by one, and equal ones are stored once (hash-consing).

use std::hash::BuildHasher;
use std::sync::Arc;

use hashbrown::HashTable;
use hashbrown::hash_table::Entry;
use rustc_hash::{FxBuildHasher, FxHashMap, FxHashSet};

use super::codes::op;
use super::needed::Needed;
use super::{Guard, Ir, Kinds, Node, NodeId, Operands, PIECE, Parser, Placed, RuleId, UNBOUNDED, Update};
use crate::byteset::ByteSet;
use crate::error::{Error, Result};

/// How many expressions a front-end usually adds to those that it shares with others.
const USUAL: usize = 100;

/// Expressions. Each one that is described gets a number, in the order of description; callers use these numbers as
/// operands. Equal expressions have different numbers, but the same [`NodeId`].
#[derive(Clone, Default)]
struct Expressions {
    nodes: Vec<Node>,
    /// The ids of `nodes`, by the hash of the node.
    ids: HashTable<NodeId>,
    /// For the number of each expression that was described, its id.
    of: Vec<NodeId>,
    /// The number of each literal, by its id.
    literals: FxHashMap<NodeId, u32>,
}

impl Expressions {
    fn with_capacity(nodes: usize) -> Expressions {
        Expressions {
            nodes: Vec::with_capacity(nodes),
            ids: HashTable::with_capacity(nodes),
            of: Vec::with_capacity(nodes),
            ..Expressions::default()
        }
    }
}

/// A grammar that is being built.
#[derive(Default)]
pub struct IrBuilder {
    /// The first expressions, which other builders share.
    shared: Arc<Expressions>,
    /// The other expressions: their numbers and ids continue those of `shared`.
    own: Expressions,
    /// The number of the body of each rule; `UNBOUNDED` if the rule has no body yet.
    rules: Vec<u32>,
    names: Vec<String>,
    kinds: Vec<Kinds>,
    size: usize,
}

impl IrBuilder {
    /// A builder with memory for this number of nodes.
    pub fn with_capacity(nodes: usize) -> IrBuilder {
        IrBuilder { own: Expressions::with_capacity(nodes), ..IrBuilder::default() }
    }

    /// A builder with the same contents. The two share the memory of the first expressions; both can be extended.
    pub fn fork(&mut self) -> IrBuilder {
        if self.shared.of.is_empty() {
            self.shared = Arc::new(std::mem::take(&mut self.own));
        }
        let own = if self.own.of.is_empty() { Expressions::with_capacity(USUAL) } else { self.own.clone() };
        let (shared, rules, names) = (self.shared.clone(), self.rules.clone(), self.names.clone());
        IrBuilder { shared, own, rules, names, kinds: self.kinds.clone(), size: self.size }
    }

    /// The size of what has been described, in integers: for each node two, and one for each operand.
    pub fn size(&self) -> usize {
        self.size
    }

    /// The expression of exactly this text; equal texts get the same number.
    pub fn literal(&mut self, text: &[u8]) -> u32 {
        let id = self.in_pieces(text);
        if let Some(&node) = self.shared.literals.get(&id) {
            return node;
        }
        let next = self.described();
        let node = *self.own.literals.entry(id).or_insert(next);
        if node == next {
            self.push(id, 2);
        }
        node
    }

    /// The expression of any one of these texts.
    pub fn words(&mut self, texts: Vec<Box<[u8]>>) -> u32 {
        let operands = 2 * texts.len();
        let id = self.intern(any_of(texts));
        self.push(id, operands)
    }

    /// The expression of an operation ([`op`]) on these operands. Operands of `LITERAL` and `WORDS` are offsets and
    /// lengths of texts in the blob.
    pub fn node(&mut self, op: u32, operands: &[u32], blob: &[u8]) -> Result<u32> {
        let id = self
            .decode(op, operands, blob)
            .map(|node| match &node {
                Node::Literal(text) if text.len() > PIECE => self.in_pieces(text),
                _ => self.intern(node),
            })
            .map_err(|why| Error::Malformed(format!("malformed grammar at node {}: {why}", self.described())))?;
        Ok(self.push(id, operands.len()))
    }

    /// Declares a rule. `kinds`: the bits of its [`Kinds`].
    pub fn rule(&mut self, name: String, kinds: u8) -> Result<RuleId> {
        if kinds & !Kinds::ALL.0 != 0 {
            return Err(Error::Malformed("there is no such kind of rules".into()));
        }
        self.rules.push(UNBOUNDED);
        self.names.push(name);
        self.kinds.push(Kinds(kinds));
        Ok(self.rules.len() as RuleId - 1)
    }

    /// Sets the body of a rule. [`IrBuilder::build`] checks whether there is such a node.
    pub fn define(&mut self, rule: RuleId, body: u32) -> Result<()> {
        let own =
            self.rules.get_mut(rule as usize).ok_or_else(|| Error::Malformed(format!("there is no rule {rule}")))?;
        *own = body;
        Ok(())
    }

    /// Sets the body of all rules that have none yet.
    pub fn define_others(&mut self, body: u32) {
        self.rules.iter_mut().filter(|own| **own == UNBOUNDED).for_each(|own| *own = body);
    }

    /// Adds a copy of a grammar that was built before; returns the number of its start.
    pub fn embed(&mut self, ir: &Ir) -> Result<u32> {
        let first = self.rules.len() as RuleId;
        let encoded = ir.encode(self.described(), first);
        for (name, &kinds) in ir.names.iter().zip(&encoded.kinds) {
            self.rule(name.clone(), kinds)?;
        }
        self.nodes(&encoded.ops, &encoded.blob)?;
        self.rules[first as usize..].copy_from_slice(&encoded.rules);
        Ok(encoded.start)
    }

    /// Adds a sequence of nodes, each encoded as `[op, number of operands, operands...]`.
    pub(super) fn nodes(&mut self, ops: &[u32], blob: &[u8]) -> Result<()> {
        let cut_off = || Error::Malformed("malformed grammar: a node is cut off".into());
        let mut at = 0;
        while at < ops.len() {
            let head = ops.get(at..at + 2).ok_or_else(cut_off)?;
            let end = at + 2 + head[1] as usize;
            self.node(head[0], ops.get(at + 2..end).ok_or_else(cut_off)?, blob)?;
            at = end;
        }
        Ok(())
    }

    /// The grammar, which keeps only what can be reached from its start. `start`: the number of the expression of the
    /// whole text.
    pub fn build(&self, start: u32) -> Result<Ir> {
        let body = |node: u32| self.operand(node).map_err(|why| Error::Malformed(format!("malformed grammar: {why}")));
        let mut bodies = Vec::with_capacity(self.rules.len());
        for (&node, name) in self.rules.iter().zip(&self.names) {
            if node == UNBOUNDED {
                return Err(Error::Malformed(format!("rule {name:?} has no body")));
            }
            bodies.push(body(node)?);
        }
        let start = body(start)?;
        let needed = Needed::from(start, &self.shared.nodes, &self.own.nodes, &bodies);
        let mut rules: Vec<NodeId> = needed.of_rules(&bodies).map(|&old| needed.node(old)).collect();
        let mut names: Vec<String> = needed.of_rules(&self.names).cloned().collect();
        let mut kinds: Vec<Kinds> = needed.of_rules(&self.kinds).copied().collect();
        rules.push(needed.node(start));
        names.push("start".into());
        kinds.push(Kinds::default());
        if kinds.iter().all(|&kind| kind == Kinds::default()) {
            kinds.clear();
        }
        Ir::analysed(needed.of_nodes(&self.shared.nodes, &self.own.nodes), rules, names, kinds)
    }

    // ------------------------------------------------------------------ nodes
    /// How many expressions have been described.
    fn described(&self) -> u32 {
        (self.shared.of.len() + self.own.of.len()) as u32
    }

    fn push(&mut self, id: NodeId, operands: usize) -> u32 {
        self.size += 2 + operands;
        self.own.of.push(id);
        self.described() - 1
    }

    /// A text, in pieces if it is long: the automaton makes expressions of those that it comes to.
    fn in_pieces(&mut self, text: &[u8]) -> NodeId {
        let (mut all, mut rest) = (Operands::new(), text);
        while rest.len() > PIECE
            && let Some(cut) = (PIECE / 2..PIECE).rev().find(|&at| is_between_characters(rest, at))
        {
            all.push(self.intern(Node::Literal(rest[..cut].into())));
            rest = &rest[cut..];
        }
        let last = self.intern(Node::Literal(rest.into()));
        if all.is_empty() {
            return last;
        }
        all.push(last);
        self.intern(Node::Seq(all))
    }

    fn intern(&mut self, node: Node) -> NodeId {
        let hash_of = |node: &Node| FxBuildHasher.hash_one(node);
        let hash = hash_of(&node);
        if let Some(&id) = self.shared.ids.find(hash, |&id| self.shared.nodes[id as usize] == node) {
            return id;
        }
        let first = self.shared.nodes.len();
        let nodes = &mut self.own.nodes;
        let at = |id: NodeId| id as usize - first;
        match self.own.ids.entry(hash, |&id| nodes[at(id)] == node, |&id| hash_of(&nodes[at(id)])) {
            Entry::Occupied(known) => *known.get(),
            Entry::Vacant(free) => {
                let id = (first + nodes.len()) as NodeId;
                free.insert(id);
                nodes.push(node);
                id
            }
        }
    }

    /// The expression of an id.
    fn expression(&self, id: NodeId) -> &Node {
        let (shared, id) = (&self.shared.nodes, id as usize);
        shared.get(id).unwrap_or_else(|| &self.own.nodes[id - shared.len()])
    }

    fn operand(&self, n: u32) -> Result<NodeId, String> {
        let (shared, at) = (&self.shared.of, n as usize);
        let id = shared.get(at).or_else(|| self.own.of.get(at - shared.len()));
        id.copied().ok_or_else(|| format!("node {n} is not defined before its use"))
    }

    fn all(&self, operands: &[u32]) -> Result<Operands, String> {
        operands.iter().map(|&n| self.operand(n)).collect()
    }

    fn one(&self, operands: &[u32]) -> Result<NodeId, String> {
        match operands {
            [n] => self.operand(*n),
            _ => Err("one operand expected".into()),
        }
    }

    fn placed(&self, operands: &[u32]) -> Result<Box<[Placed]>, String> {
        if operands.is_empty() || !operands.len().is_multiple_of(3) {
            return Err("three operands of each lexeme expected".into());
        }
        operands
            .chunks(3)
            .map(|one| {
                let before = (one[0] != UNBOUNDED).then_some(one[0]);
                Ok(Placed { before, text: self.operand(one[1])?, last: one[2] })
            })
            .collect()
    }

    fn decode(&self, op: u32, operands: &[u32], blob: &[u8]) -> Result<Node, String> {
        Ok(match op {
            op::NOTHING => Node::Nothing,
            op::LITERAL => match operands {
                [offset, len] => Node::Literal(text(blob, *offset, *len)?),
                _ => return Err("two operands expected".into()),
            },
            op::BYTES => {
                let mut set = ByteSet::NONE;
                for (lo, hi) in ranges(operands, 255)? {
                    set = set.or(ByteSet::range(lo as u8, hi as u8));
                }
                Node::Bytes(set)
            }
            op::CODEPOINTS => Node::Codepoints(merged(ranges(operands, 0x10FFFF)?).into()),
            op::SEQ => {
                let all = self.all(operands)?;
                if all.len() == 1 { self.expression(all[0]).clone() } else { Node::Seq(all) }
            }
            op::ALT => {
                let mut all = self.all(operands)?;
                drop_repeated(&mut all);
                if all.len() == 1 { self.expression(all[0]).clone() } else { Node::Alt(all) }
            }
            op::REPEAT => match operands {
                [_, least, most] if least > most => Node::Nothing,
                // the operand is left out, so that a rule that is never called does not seem to be called
                [n, _, 0] => self.operand(*n).map(|_| Node::Seq(Operands::new()))?,
                [n, least, most] => Node::Repeat(self.operand(*n)?, *least, *most),
                _ => return Err("three operands expected".into()),
            },
            op::BOTH => Node::Both(self.all(operands)?),
            op::COMPLEMENT => Node::Complement(self.one(operands)?),
            op::AHEAD => Node::Ahead(self.one(operands)?),
            op::BEHIND => Node::Behind(self.one(operands)?),
            op::TERMINAL => Node::Terminal(self.one(operands)?),
            op::LEXEME => Node::Lexeme(self.one(operands)?),
            op::LEXEMES => Node::Lexemes(self.placed(operands)?),
            op::TEXT if operands.is_empty() => return Err("an operand expected".into()),
            op::TEXT => Node::Text(self.all(operands)?),
            op::PARSER => Node::Parser(Parser::decode(operands, |n| self.operand(n))?.into()),
            op::CALL => match operands {
                [rule] if (*rule as usize) < self.rules.len() => Node::Call(*rule),
                _ => return Err("a rule's number expected".into()),
            },
            op::WORDS => {
                if !operands.len().is_multiple_of(2) {
                    return Err("pairs of operands expected".into());
                }
                any_of(operands.chunks(2).map(|p| text(blob, p[0], p[1])).collect::<Result<_, _>>()?)
            }
            op::WHEN => Node::When(Guard::decode(operands)?),
            op::CALL_WITH => match operands {
                [rule, update @ ..] if (*rule as usize) < self.rules.len() => {
                    let update = Update::decode(update)?;
                    if update.like.is_some_and(|like| like as usize >= self.rules.len()) {
                        return Err("a rule's number expected".into());
                    }
                    Node::CallWith(*rule, update)
                }
                _ => return Err("a rule's number expected".into()),
            },
            _ => return Err(format!("unknown operation {op}")),
        })
    }
}

/// Whether a text can be cut before a byte: neither a character nor a mark goes on there.
fn is_between_characters(text: &[u8], at: usize) -> bool {
    let begins = |byte: u8| byte.is_ascii() || (0xC2..=0xF4).contains(&byte);
    begins(text[at]) && text[at - 1] < 0xF5
}

/// The node of any one of these texts; their order and repetitions do not matter.
fn any_of(mut texts: Vec<Box<[u8]>>) -> Node {
    texts.sort_unstable();
    texts.dedup();
    Node::Words(texts.into())
}

fn text(blob: &[u8], offset: u32, len: u32) -> Result<Box<[u8]>, String> {
    let (from, len) = (offset as usize, len as usize);
    blob.get(from..from.saturating_add(len)).map(Box::from).ok_or_else(|| "text outside the blob".into())
}

/// Keeps the first of equal ids.
fn drop_repeated(ids: &mut Operands) {
    if ids.len() == 2 {
        ids.dedup(); // most alternatives are two
        return;
    }
    let mut seen = FxHashSet::default();
    ids.retain(|id| seen.insert(*id));
}

fn ranges(operands: &[u32], last: u32) -> Result<Vec<(u32, u32)>, String> {
    if !operands.len().is_multiple_of(2) {
        return Err("pairs of bounds expected".into());
    }
    operands
        .chunks(2)
        .map(
            |p| {
                if p[0] <= p[1] && p[1] <= last { Ok((p[0], p[1])) } else { Err("bounds out of order or range".into()) }
            },
        )
        .collect()
}

/// Sorts and merges ranges, and removes surrogates, which have no UTF-8.
fn merged(mut ranges: Vec<(u32, u32)>) -> Vec<(u32, u32)> {
    ranges.sort_unstable();
    let mut out: Vec<(u32, u32)> = Vec::with_capacity(ranges.len());
    for (lo, hi) in ranges {
        match out.last_mut() {
            Some(last) if lo <= last.1.saturating_add(1) => last.1 = last.1.max(hi),
            _ => out.push((lo, hi)),
        }
    }
    let mut clean = Vec::with_capacity(out.len() + 1);
    for (lo, hi) in out {
        if lo < 0xD800 {
            clean.push((lo, hi.min(0xD7FF)));
        }
        if hi > 0xDFFF {
            clean.push((lo.max(0xE000), hi));
        }
    }
    clean
}
