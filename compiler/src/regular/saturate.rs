//! Counts that no single token can tell apart.
//!
//! A token of at most `cap` bytes completes at most `cap` iterations of a body that takes a byte at least. So a
//! lower bound beyond `cap` cannot be met within it, nor an upper bound beyond `cap` be hit: all such bounds give
//! the same mask. Masks are computed for, and cached by, the saturated residual.

use super::arena::{Arena, Flags, Id, List, Node};
use crate::deep;
use crate::ir::UNBOUNDED;

impl Arena {
    /// The saturated form: equal to the expression as far as one token can see. `position` saturates the
    /// position of an `Accept`, saying too whether it still holds a large count (it never does).
    pub fn saturate(&mut self, id: Id, position: &mut dyn FnMut(u32) -> u32) -> Id {
        if !self.flag(id, Flags::COUNTS) {
            return id;
        }
        if let Some(&done) = self.saturated.get(&id) {
            return done;
        }
        let out = match self.nodes[id as usize] {
            Node::Concat(a, b) => {
                let (a, b) = deep(|| (self.saturate(a, position), self.saturate(b, position)));
                self.concat(a, b)
            }
            Node::Alt(k) => {
                let kids: List = self.list(k).into();
                let kids: List = kids
                    .into_iter()
                    .map(|i| deep(|| self.saturate(i, position)))
                    .collect();
                self.alt(&kids)
            }
            // not below Boolean operators: whether an intersection is empty depends on the exact counts
            Node::Repeat(x, least, most) if !self.nullable(x) => {
                let x = deep(|| self.saturate(x, position));
                let beyond = self.cap + 1;
                self.repeat(
                    x,
                    least.min(beyond),
                    if most > beyond { UNBOUNDED } else { most },
                )
            }
            Node::Accept(p) => self.accept(position(p), false),
            _ => id,
        };
        self.saturated.insert(id, out);
        out
    }
}
