//! Intersections of an expression with a bounded number of characters, `p & c{0,63}`: whether a token fits is known from
//! what it leads to in `p`, and how many characters it has. So no residual of the intersection has to be made, of which
//! there is one for each number of characters.

use super::arena::{Arena, EMPTY, EPS, Id, List, Node, TOP};
use crate::budget::Budget;
use crate::byteset::ByteSet;
use crate::error::Result;
use crate::ir::UNBOUNDED;

/// Characters with more residuals are not looked at.
const MOST: usize = 64;

/// An intersection of an elementary expression with characters that are counted.
#[derive(Clone, Copy)]
pub struct Bounded {
    /// The expression, all of whose texts are of characters.
    texts: Id,
    /// Any number of characters.
    characters: Id,
    least: u32,
    most: u32,
    /// What may follow the intersection begins with one of these.
    after: ByteSet,
}

impl Arena {
    /// The intersection that an expression begins with, if it is one of this form.
    pub fn bounded(&mut self, id: Id, budget: &mut Budget) -> Result<Option<Bounded>> {
        let Some((mut others, tail)) = self.intersection(id) else { return Ok(None) };
        if self.nullable(tail) {
            return Ok(None);
        }
        let counted = others.iter().position(|&kid| match self.nodes[kid as usize] {
            Node::Repeat(x, _, most) => most != UNBOUNDED && self.is_elementary(x) && !self.nullable(x),
            _ => false,
        });
        let Some(counted) = counted else { return Ok(None) };
        let Node::Repeat(x, least, most) = self.nodes[others.remove(counted) as usize] else { unreachable!() };
        let texts = self.and(&others);
        let characters = self.repeat(x, 0, UNBOUNDED);
        if !self.is_elementary(texts) || !self.is_code(x, budget)? || !self.covers(characters, texts, budget)? {
            return Ok(None);
        }
        let after = self.first(tail, budget)?;
        Ok(Some(Bounded { texts, characters, least, most, after }))
    }

    /// The operands of an intersection, and what follows it.
    pub fn intersection(&self, id: Id) -> Option<(List, Id)> {
        let (head, tail) = match self.nodes[id as usize] {
            Node::Concat(head, tail) => (head, tail),
            _ => (id, EPS),
        };
        let Node::And(kids) = self.nodes[head as usize] else { return None };
        Some((self.list(kids).into(), tail))
    }

    /// Any number of the characters of which an expression has so many at least, `c{3,}` or `c{3}` and then anything.
    pub fn without_lower_bound(&mut self, id: Id) -> Option<Id> {
        match self.nodes[id as usize] {
            Node::Repeat(x, _, UNBOUNDED) => Some(self.repeat(x, 0, UNBOUNDED)),
            Node::Concat(head, TOP) => match self.nodes[head as usize] {
                Node::Repeat(x, least, most) if least == most => Some(self.repeat(x, 0, UNBOUNDED)),
                _ => None,
            },
            _ => None,
        }
    }

    /// Whether no text of an expression is the beginning of another one, so that it is clear where each one ends.
    fn is_code(&mut self, x: Id, budget: &mut Budget) -> Result<bool> {
        let mut residuals = vec![x];
        let mut at = 0;
        while at < residuals.len() {
            if residuals.len() > MOST || residuals[at] != EPS && self.nullable(residuals[at]) {
                return Ok(false);
            }
            let targets: List = self.edges(residuals[at], budget)?.map(|edge| edge.1).collect();
            for target in targets {
                if !residuals.contains(&target) {
                    residuals.push(target);
                }
            }
            at += 1;
        }
        Ok(true)
    }

    /// Whether a token fits into the rest of an intersection. `None`: that takes a closer look.
    pub fn fits(&mut self, bounded: &Bounded, token: &[u8], budget: &mut Budget) -> Result<Option<bool>> {
        let (mut rest, mut within, mut count) = (bounded.texts, bounded.characters, 0u32);
        for &byte in token {
            if self.nullable(rest) && bounded.after.contains(byte) {
                return Ok(None);
            }
            if within == bounded.characters {
                count += 1;
            }
            rest = self.next(rest, byte, budget)?;
            within = self.next(within, byte, budget)?;
            if rest == EMPTY || within == EMPTY {
                return Ok(None);
            }
        }
        // the shortest text from here on has no more characters than bytes, and one at least if it has any and no
        // character is left to end
        let shortest = self.least_length(rest);
        let more = u32::from(shortest > 0 && within == bounded.characters);
        if count.saturating_add(more) > bounded.most {
            return Ok(Some(false));
        }
        Ok((count >= bounded.least && count.saturating_add(shortest) <= bounded.most).then_some(true))
    }
}
