//! From hash-consed expressions to flat arrays.

use super::codes::op;
use super::{Ir, Node, NodeId, Placed, RuleId, UNBOUNDED, Update};

/// A grammar as arrays, as [`super::Parts`] has them.
pub struct Encoded {
    pub ops: Vec<u32>,
    pub rules: Vec<NodeId>,
    pub blob: Vec<u8>,
    pub kinds: Vec<u8>,
    pub start: NodeId,
}

impl Ir {
    /// The arrays that describe this grammar where so many nodes and rules stand before it.
    pub fn encode(&self, nodes: u32, rules: u32) -> Encoded {
        let node = |n: &NodeId| n + nodes;
        let rule = |r: RuleId| r + rules;
        let mut ops: Vec<u32> = Vec::new();
        let mut blob: Vec<u8> = Vec::new();
        let mut put = |text: &[u8], out: &mut Vec<u32>| {
            out.push(blob.len() as u32);
            out.push(text.len() as u32);
            blob.extend_from_slice(text);
        };
        for expression in &self.nodes {
            let at = ops.len();
            ops.extend([0, 0]); // the operation and the number of operands
            let args = &mut ops;
            let op = match expression {
                Node::Nothing => op::NOTHING,
                Node::Literal(text) => {
                    put(text, args);
                    op::LITERAL
                }
                Node::Bytes(set) => {
                    args.extend(set.iter().flat_map(|b| [u32::from(b), u32::from(b)]));
                    op::BYTES
                }
                Node::Codepoints(ranges) => {
                    args.extend(ranges.iter().flat_map(|&(lo, hi)| [lo, hi]));
                    op::CODEPOINTS
                }
                Node::Seq(os) => {
                    args.extend(os.iter().map(node));
                    op::SEQ
                }
                Node::Alt(os) => {
                    args.extend(os.iter().map(node));
                    op::ALT
                }
                Node::Repeat(o, least, most) => {
                    args.extend([node(o), *least, *most]);
                    op::REPEAT
                }
                Node::Both(os) => {
                    args.extend(os.iter().map(node));
                    op::BOTH
                }
                Node::Complement(o) => {
                    args.push(node(o));
                    op::COMPLEMENT
                }
                Node::Ahead(o) => {
                    args.push(node(o));
                    op::AHEAD
                }
                Node::Behind(o) => {
                    args.push(node(o));
                    op::BEHIND
                }
                Node::Terminal(o) => {
                    args.push(node(o));
                    op::TERMINAL
                }
                Node::Lexeme(o) => {
                    args.push(node(o));
                    op::LEXEME
                }
                Node::Lexemes(all) => {
                    let numbers = |one: &Placed| [one.before.unwrap_or(UNBOUNDED), node(&one.text), one.last];
                    args.extend(all.iter().flat_map(numbers));
                    op::LEXEMES
                }
                Node::Text(os) => {
                    args.extend(os.iter().map(node));
                    op::TEXT
                }
                Node::Parser(parser) => {
                    args.extend(parser.encode(|n| node(&n)));
                    op::PARSER
                }
                Node::Call(callee) => {
                    args.push(rule(*callee));
                    op::CALL
                }
                Node::CallWith(callee, update) => {
                    args.push(rule(*callee));
                    args.extend(Update { like: update.like.map(rule), ..update.clone() }.encode());
                    op::CALL_WITH
                }
                Node::When(guard) => {
                    args.extend(guard.encode());
                    op::WHEN
                }
                Node::Words(texts) => {
                    texts.iter().for_each(|t| put(t, args));
                    op::WORDS
                }
            };
            ops[at] = op;
            ops[at + 1] = (ops.len() - at - 2) as u32;
        }
        let (start, rules) = self.rules.split_last().expect("a grammar has a start");
        let kinds = (0..rules.len()).map(|i| self.kinds.get(i).map_or(0, |kinds| kinds.0)).collect();
        Encoded { ops, rules: rules.iter().map(node).collect(), blob, kinds, start: node(start) }
    }
}
