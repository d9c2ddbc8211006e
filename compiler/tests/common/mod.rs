//! A builder of grammars for tests, as `grammarspec/grammars/builder.py` is for front-ends.

#![allow(dead_code, unreachable_pub)] // every test takes what it needs

use std::sync::Arc;

use _compiler::automaton::{Anchor, Constraint, Index};
use _compiler::budget::Limits;
use _compiler::error::Error;
use _compiler::ir::codes::op;
use _compiler::ir::{Ir, Parts, UNBOUNDED};
use _compiler::vocabulary::Vocabulary;

#[derive(Default)]
pub struct Builder {
    ops: Vec<u32>,
    blob: Vec<u8>,
    rules: Vec<u32>,
    nodes: u32,
}

impl Builder {
    pub fn node(&mut self, op: u32, operands: &[u32]) -> u32 {
        self.ops.extend([op, operands.len() as u32]);
        self.ops.extend(operands);
        self.nodes += 1;
        self.nodes - 1
    }

    pub fn literal(&mut self, text: &str) -> u32 {
        let at = self.blob.len() as u32;
        self.blob.extend_from_slice(text.as_bytes());
        self.node(op::LITERAL, &[at, text.len() as u32])
    }

    pub fn bytes(&mut self, lo: u8, hi: u8) -> u32 {
        self.node(op::BYTES, &[lo.into(), hi.into()])
    }

    pub fn seq(&mut self, nodes: &[u32]) -> u32 {
        self.node(op::SEQ, nodes)
    }

    pub fn alt(&mut self, nodes: &[u32]) -> u32 {
        self.node(op::ALT, nodes)
    }

    pub fn repeat(&mut self, node: u32, least: u32, most: Option<u32>) -> u32 {
        self.node(op::REPEAT, &[node, least, most.unwrap_or(UNBOUNDED)])
    }

    pub fn both(&mut self, nodes: &[u32]) -> u32 {
        self.node(op::BOTH, nodes)
    }

    pub fn complement(&mut self, node: u32) -> u32 {
        self.node(op::COMPLEMENT, &[node])
    }

    pub fn terminal(&mut self, node: u32) -> u32 {
        self.node(op::TERMINAL, &[node])
    }

    pub fn rule(&mut self) -> u32 {
        self.rules.push(UNBOUNDED);
        self.rules.len() as u32 - 1
    }

    pub fn call(&mut self, rule: u32) -> u32 {
        self.node(op::CALL, &[rule])
    }

    pub fn when(&mut self, operands: &[u32]) -> u32 {
        self.node(op::WHEN, operands)
    }

    /// `update`: fresh, the counter's bits (at, width), one more than the rule it is like or 0, bits to set.
    pub fn call_with(&mut self, rule: u32, update: &[u32]) -> u32 {
        self.node(op::CALL_WITH, &[&[rule], update].concat())
    }

    pub fn define(&mut self, rule: u32, body: u32) {
        self.rules[rule as usize] = body;
    }

    pub fn ir(&self, start: u32) -> Result<Ir, Error> {
        let names = (0..self.rules.len()).map(|i| format!("r{i}")).collect();
        let kinds = vec![0; self.rules.len()];
        Ir::decode(Parts { ops: &self.ops, rules: &self.rules, blob: &self.blob, names, kinds: &kinds, start })
    }

    pub fn constraint(&self, start: u32) -> Result<Constraint, Error> {
        compile(self.ir(start)?, Limits::default())
    }
}

/// The 256 bytes, a few longer tokens, EOS.
pub const EOS: u32 = 261;

pub fn index() -> Index {
    let mut tokens: Vec<Option<Vec<u8>>> = (0..=255u8).map(|b| Some(vec![b])).collect();
    tokens.extend([b"ab".to_vec(), b"((".to_vec(), b"aaaa".to_vec(), b"+a".to_vec(), b" a".to_vec()].map(Some));
    tokens.push(None);
    let size = tokens.len();
    Index::new(Vocabulary::new(tokens.iter().map(|t| t.as_deref()), vec![EOS], Vec::new(), size))
}

pub fn compile(ir: Ir, limits: Limits) -> Result<Constraint, Error> {
    Constraint::new(Arc::new(ir), &index(), limits, None)
}

/// The state after the text, byte by byte.
pub fn walk(constraint: &Constraint, text: &str) -> Option<Arc<Anchor>> {
    let mut at = constraint.start();
    for b in text.bytes() {
        at = constraint.lock().step(at.id, b.into()).unwrap()?;
    }
    Some(at)
}

pub fn accepts(constraint: &Constraint, text: &str) -> bool {
    walk(constraint, text).is_some_and(|at| constraint.lock().is_accepting(at.id).unwrap())
}

/// The tokens that the mask of a state allows.
pub fn allowed(constraint: &Constraint, state: u32) -> Vec<u32> {
    let mut row = vec![0u32; constraint.vocab.words()];
    constraint.lock().row(state).unwrap().write(&mut row);
    (0..constraint.vocab.size as u32).filter(|&t| row[t as usize / 32] >> (t % 32) & 1 != 0).collect()
}
