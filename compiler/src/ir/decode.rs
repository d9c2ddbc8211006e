//! From flat arrays to hash-consed expressions.

use super::{Ir, IrBuilder};
use crate::error::{Error, Result};

/// A grammar as arrays, as [`super::encode`] writes them.
pub struct Parts<'a> {
    /// `[op, number of operands, operands...]` per node.
    pub ops: &'a [u32],
    /// The body of each rule, `UNBOUNDED` where none was given.
    pub rules: &'a [u32],
    /// Bytes of the literals.
    pub blob: &'a [u8],
    pub names: Vec<String>,
    /// The marks of each rule, as bits of [`super::Kinds`].
    pub kinds: &'a [u8],
    pub start: u32,
}

impl Ir {
    /// Decodes and checks the arrays. Fails with `Error::Malformed` or `Error::Unsupported`; no input panics.
    pub fn decode(parts: Parts) -> Result<Ir> {
        if parts.names.len() != parts.rules.len() || parts.kinds.len() != parts.rules.len() {
            return Err(Error::Malformed("as many names and kinds as rules are needed".into()));
        }
        let mut builder = IrBuilder::with_capacity(parts.ops.len() / 4); // a node takes four or five numbers
        for (name, &kinds) in parts.names.into_iter().zip(parts.kinds) {
            builder.rule(name, kinds)?;
        }
        builder.nodes(parts.ops, parts.blob)?;
        for (rule, &body) in parts.rules.iter().enumerate() {
            builder.define(rule as u32, body)?;
        }
        builder.build(parts.start)
    }
}
