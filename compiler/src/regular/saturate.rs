//! Counts that a token cannot tell apart.
//!
//! A token of at most `n` bytes completes at most `n / k` iterations of a body that takes `k` bytes at least. So it can
//! neither reach a lower bound beyond that nor exceed an upper bound beyond that: whether it is allowed is the same for
//! all such bounds. A *saturated* form has one bound, or none, in place of them all.
//!
//! * [`Counts::Exact`]: `n` is the length of the longest token, so the saturated form has the same mask.
//! * [`Counts::Loose`]: all upper bounds beyond a small number are dropped. The mask is right for tokens no longer than
//!   the least bound dropped, and may be too wide for longer ones, which are then tried one by one. So the states of a
//!   counter share one mask but for these tokens.
//!
//! Counts of repetitions that have not begun (those of a string that may come later, say) stay as they are. They are
//! the same in all states, so that more masks would not become equal without them.
//!
//! For counts inside intersections, and beside assertions, see `slack.rs`; inside complements they stay as they are.

use smallvec::SmallVec;

use super::arena::{Arena, Flags, Id, List, Node};
use super::limits::Loosened;
use crate::budget::Budget;
use crate::error::Result;
use crate::ir::UNBOUNDED;
use crate::recursion::deep;

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Counts {
    /// As they are.
    Kept,
    Exact,
    /// Exact, but for upper bounds of intersections from this on.
    Below(u32),
    Loose,
}

/// Upper bounds that iterations of so few bytes reach are never dropped.
pub const SMALL: u32 = 8;

/// Parts in sequence that are looked at without being kept.
const FAR: usize = 32;

/// A saturated form and the least upper bound that was dropped loosely (`UNBOUNDED`: none).
pub type Saturated = (u32, u32);

/// Bounds of a repetition in saturated form, and the bytes up to which tokens cannot tell that from the exact one;
/// `size`: the least bytes of an iteration, `cap`: the bytes of the longest token.
pub fn saturated_bounds((least, most): (u32, u32), size: u32, cap: u32, counts: Counts) -> (u32, u32, u32) {
    if counts == Counts::Kept {
        return (least, most, UNBOUNDED);
    }
    let least = least.min(cap / size + 1);
    if most == UNBOUNDED {
        return (least, UNBOUNDED, UNBOUNDED);
    }
    let visible = most.saturating_mul(size);
    match counts {
        _ if visible > cap => (least, UNBOUNDED, UNBOUNDED),
        Counts::Loose if visible > SMALL => (least, UNBOUNDED, visible),
        _ => (least, most, UNBOUNDED),
    }
}

impl Arena {
    /// The saturated form. `position` saturates the position of an `Accept`.
    pub fn saturate(
        &mut self,
        id: Id,
        counts: Counts,
        position: &mut dyn FnMut(u32) -> Saturated,
        budget: &mut Budget,
    ) -> Result<Saturated> {
        self.saturate_at((id, counts, true), position, budget)
    }

    /// `front`: whether the expression is what may come next. Elsewhere only what repetitions leave to do has begun.
    fn saturate_at(
        &mut self,
        key: (Id, Counts, bool),
        position: &mut dyn FnMut(u32) -> Saturated,
        budget: &mut Budget,
    ) -> Result<Saturated> {
        let (id, counts, front) = key;
        if !self.flag(id, Flags::COUNTS) {
            return Ok((id, UNBOUNDED));
        }
        if let Some(&done) = self.saturated.get(&key) {
            return Ok(done);
        }
        let out = match self.nodes[id as usize] {
            Node::Concat(a, _) if !self.flag(a, Flags::COUNTS) => self.saturate_behind(key, position, budget)?,
            Node::Concat(a, b) => {
                let (x, of_a) = deep(|| self.saturate_at((a, counts, front), position, budget))?;
                let behind = (b, counts, front && self.nullable(a));
                let (y, of_b) = deep(|| self.saturate_at(behind, position, budget))?;
                (if (x, y) == (a, b) { id } else { self.concat_within(x, y, budget)? }, of_a.min(of_b))
            }
            Node::Alt(k) => {
                let mut dropped = UNBOUNDED;
                let mut kids: List = self.list(k).into();
                for kid in &mut kids {
                    let (x, d) = deep(|| self.saturate_at((*kid, counts, front), position, budget))?;
                    *kid = x;
                    dropped = dropped.min(d);
                }
                (if kids[..] == *self.list(k) { id } else { self.alt_within(&kids, budget)? }, dropped)
            }
            Node::Repeat(..) if !front && self.written.contains(&id) => (id, UNBOUNDED),
            Node::And(_) | Node::Scope(_) | Node::Unit(_) if front => match self.loosened(id, counts, budget)? {
                Some((open, limits)) => (open, limits.iter().map(|limit| limit.most).min().unwrap_or(UNBOUNDED)),
                None => (id, UNBOUNDED),
            },
            Node::Repeat(x, least, most) if !self.nullable(x) => {
                let (x, inner) = deep(|| self.saturate_at((x, counts, front), position, budget))?;
                let Loosened { bounds: (least, most), visible, .. } = self.loosened_bounds(x, (least, most), counts);
                (self.repeat(x, least, most), visible.min(inner))
            }
            Node::After(class, x) => {
                let (x, dropped) = deep(|| self.saturate_at((x, counts, front), position, budget))?;
                (self.after(class, x), dropped)
            }
            Node::Under(condition, x) => {
                let (x, dropped) = deep(|| self.saturate_at((x, counts, front), position, budget))?;
                (self.under(condition, x), dropped)
            }
            Node::Accept(p) => {
                let (p, dropped) = position(p);
                // what an exact form keeps, a loose one may still drop
                (self.accept(p, counts != Counts::Loose), dropped)
            }
            _ => (id, UNBOUNDED),
        };
        self.saturated.insert(key, out);
        Ok(out)
    }

    /// The saturated form of parts in sequence, of which the first ones count nothing: texts, as a rule. So nothing is
    /// kept for each of their letters.
    fn saturate_behind(
        &mut self,
        (id, counts, mut front): (Id, Counts, bool),
        position: &mut dyn FnMut(u32) -> Saturated,
        budget: &mut Budget,
    ) -> Result<Saturated> {
        let (mut parts, mut rest) = (SmallVec::<[Id; FAR]>::new(), id);
        while let Node::Concat(a, b) = self.nodes[rest as usize]
            && parts.len() < FAR
            && !self.flag(a, Flags::COUNTS)
        {
            parts.push(a);
            rest = b;
            front = front && self.nullable(a);
        }
        let (mut out, dropped) = deep(|| self.saturate_at((rest, counts, front), position, budget))?;
        if out == rest {
            return Ok((id, dropped));
        }
        for &part in parts.iter().rev() {
            out = self.concat_within(part, out, budget)?;
        }
        Ok((out, dropped))
    }
}
