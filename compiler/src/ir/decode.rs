//! From the builder's flat arrays to hash-consed expressions.

use std::hash::BuildHasher;

use hashbrown::HashTable;
use hashbrown::hash_table::Entry;
use rustc_hash::{FxBuildHasher, FxHashSet};

use super::codes::op;
use super::{Guard, Ir, Kinds, Node, NodeId, Parser, UNBOUNDED, Update};
use crate::byteset::ByteSet;
use crate::error::{Error, Result};

/// The builder's arrays, as `grammarspec/grammars/builder.py` writes them.
pub struct Parts<'a> {
    /// `[op, number of operands, operands...]` per node.
    pub ops: &'a [u32],
    /// The body of each rule, `UNBOUNDED` where none was given.
    pub rules: &'a [u32],
    /// Bytes of the literals.
    pub blob: &'a [u8],
    pub names: Vec<String>,
    /// The marks of each rule, as bits of [`Kinds`].
    pub kinds: &'a [u8],
    pub start: u32,
}

struct Decoder<'a> {
    parts: &'a Parts<'a>,
    nodes: Vec<Node>,
    /// The ids of `nodes`, by the hash of the node.
    ids: HashTable<NodeId>,
    /// The hash-consed id of each of the builder's nodes.
    of: Vec<NodeId>,
}

impl Ir {
    /// Decodes and checks the builder's arrays. Fails with `Error::Malformed` or `Error::Unsupported`; no input panics.
    pub fn decode(parts: &Parts) -> Result<Ir> {
        let about = parts.ops.len() / 4; // a node takes four or five numbers
        let mut d = Decoder {
            parts,
            nodes: Vec::with_capacity(about),
            ids: HashTable::with_capacity(about),
            of: Vec::with_capacity(about),
        };
        let mut at = 0;
        while at < parts.ops.len() {
            let head = parts.ops.get(at..at + 2).ok_or_else(|| malformed(at, "cut off"))?;
            let end = at + 2 + head[1] as usize;
            let operands = parts.ops.get(at + 2..end).ok_or_else(|| malformed(at, "cut off"))?;
            let node = d.node(head[0], operands).map_err(|why| malformed(at, &why))?;
            let id = d.intern(node);
            d.of.push(id);
            at = end;
        }
        let mut rules = Vec::with_capacity(parts.rules.len() + 1);
        if parts.names.len() != parts.rules.len() || parts.kinds.len() != parts.rules.len() {
            return Err(Error::Malformed("as many names and kinds as rules are needed".into()));
        }
        if parts.kinds.iter().any(|&kind| kind & !Kinds::ALL.0 != 0) {
            return Err(Error::Malformed("there is no such kind of rules".into()));
        }
        for (i, &body) in parts.rules.iter().enumerate() {
            if body == UNBOUNDED {
                return Err(Error::Malformed(format!("rule {:?} has no body", parts.names[i])));
            }
            rules.push(d.operand(body).map_err(|why| malformed(0, &why))?);
        }
        rules.push(d.operand(parts.start).map_err(|why| malformed(0, &why))?);
        let mut names = parts.names.clone();
        names.push("start".into());
        let mut kinds: Vec<Kinds> = parts.kinds.iter().map(|&kind| Kinds(kind)).collect();
        kinds.push(Kinds::default());
        if kinds.iter().all(|&kind| kind == Kinds::default()) {
            kinds.clear();
        }
        Ir::analysed(d.nodes, rules, names, kinds)
    }
}

fn malformed(at: usize, why: &str) -> Error {
    Error::Malformed(format!("malformed grammar at operation {at}: {why}"))
}

impl Decoder<'_> {
    fn intern(&mut self, node: Node) -> NodeId {
        let nodes = &mut self.nodes;
        let hash = |node: &Node| FxBuildHasher.hash_one(node);
        let found = self.ids.entry(hash(&node), |&id| nodes[id as usize] == node, |&id| hash(&nodes[id as usize]));
        match found {
            Entry::Occupied(known) => *known.get(),
            Entry::Vacant(free) => {
                let id = nodes.len() as NodeId;
                free.insert(id);
                nodes.push(node);
                id
            }
        }
    }

    fn operand(&self, n: u32) -> Result<NodeId, String> {
        self.of.get(n as usize).copied().ok_or_else(|| format!("node {n} is not defined before its use"))
    }

    fn all(&self, operands: &[u32]) -> Result<Box<[NodeId]>, String> {
        operands.iter().map(|&n| self.operand(n)).collect()
    }

    fn one(&self, operands: &[u32]) -> Result<NodeId, String> {
        match operands {
            [n] => self.operand(*n),
            _ => Err("one operand expected".into()),
        }
    }

    fn text(&self, offset: u32, len: u32) -> Result<Box<[u8]>, String> {
        let (from, len) = (offset as usize, len as usize);
        self.parts.blob.get(from..from.saturating_add(len)).map(Box::from).ok_or_else(|| "text outside the blob".into())
    }

    fn node(&self, op: u32, operands: &[u32]) -> Result<Node, String> {
        Ok(match op {
            op::NOTHING => Node::Nothing,
            op::LITERAL => match operands {
                [offset, len] => Node::Literal(self.text(*offset, *len)?),
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
                if all.len() == 1 { self.nodes[all[0] as usize].clone() } else { Node::Seq(all) }
            }
            op::ALT => {
                let mut all = self.all(operands)?.into_vec();
                drop_repeated(&mut all);
                if all.len() == 1 { self.nodes[all[0] as usize].clone() } else { Node::Alt(all.into()) }
            }
            op::REPEAT => match operands {
                [_, least, most] if least > most => Node::Nothing,
                // without the operand: what is never called must not look like a call
                [n, _, 0] => self.operand(*n).map(|_| Node::Seq(Box::default()))?,
                [n, least, most] => Node::Repeat(self.operand(*n)?, *least, *most),
                _ => return Err("three operands expected".into()),
            },
            op::BOTH => Node::Both(self.all(operands)?),
            op::COMPLEMENT => Node::Complement(self.one(operands)?),
            op::AHEAD => Node::Ahead(self.one(operands)?),
            op::BEHIND => Node::Behind(self.one(operands)?),
            op::TERMINAL => Node::Terminal(self.one(operands)?),
            op::LEXEME => Node::Lexeme(self.one(operands)?),
            op::TEXT if operands.is_empty() => return Err("an operand expected".into()),
            op::TEXT => Node::Text(self.all(operands)?),
            op::PARSER => Node::Parser(Parser::decode(operands, |n| self.operand(n))?.into()),
            op::CALL => match operands {
                [rule] if (*rule as usize) < self.parts.rules.len() => Node::Call(*rule),
                _ => return Err("a rule's number expected".into()),
            },
            op::WORDS => {
                if !operands.len().is_multiple_of(2) {
                    return Err("pairs of operands expected".into());
                }
                let texts: Result<Vec<_>, String> = operands.chunks(2).map(|p| self.text(p[0], p[1])).collect();
                let mut texts = texts?;
                texts.sort_unstable();
                texts.dedup();
                Node::Words(texts.into())
            }
            op::WHEN => Node::When(Guard::decode(operands)?),
            op::CALL_WITH => match operands {
                [rule, update @ ..] if (*rule as usize) < self.parts.rules.len() => {
                    let update = Update::decode(update)?;
                    if update.like.is_some_and(|like| like as usize >= self.parts.rules.len()) {
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

/// Keeps the first of equal ids.
fn drop_repeated(ids: &mut Vec<NodeId>) {
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

/// Sorted, merged ranges without surrogates, which UTF-8 cannot spell.
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
