//! Whether a loop has all texts of an expression: the strings of any characters, say, those of a format. Where it has,
//! their intersection is the expression alone.
//!
//! The texts are followed through the loop's automaton, which has few states, part by part of the expression: none of its
//! own residuals is made, of which there may be many.

use smallvec::SmallVec;

use super::arena::{Arena, Flags, Id, List, Node};
use crate::budget::Budget;
use crate::byteset::ByteSet;
use crate::error::Result;
use crate::ir::UNBOUNDED;
use crate::recursion::deep;

/// States of the loop's automaton, in order.
pub(super) type Reached = SmallVec<[Id; 4]>;

/// Expressions that lead to more states than this are not followed.
const MOST: usize = 16;

impl Arena {
    /// Whether `x*` or `x+` has all texts of another expression, as far as that is soon found out.
    pub(super) fn covers(&mut self, looping: Id, other: Id, budget: &mut Budget) -> Result<bool> {
        let Node::Repeat(x, least @ (0 | 1), UNBOUNDED) = self.nodes[looping as usize] else { return Ok(false) };
        let opaque = self.any_of(&[other]) & (Flags::LOOKS | Flags::TAGGED) != 0;
        if opaque || !self.is_elementary(looping) || least == 1 && self.nullable(other) {
            return Ok(false);
        }
        let from = self.repeat(x, 0, UNBOUNDED);
        let reached = self.reached(other, from, budget)?;
        Ok(reached.is_some_and(|ends| ends.iter().all(|&end| self.nullable(end))))
    }

    /// Where the texts of an expression lead from a state of a loop's automaton. `None`: somewhere that is not alive, or
    /// to too many states.
    fn reached(&mut self, x: Id, from: Id, budget: &mut Budget) -> Result<Option<Reached>> {
        if let Some(known) = self.reached.get(&(x, from)) {
            return Ok(known.clone());
        }
        budget.spend(4)?;
        let found = match self.nodes[x as usize] {
            Node::Empty => Some(Reached::new()),
            Node::Eps => Some(Reached::from_slice(&[from])),
            Node::Class(set) => {
                let set = self.sets[set as usize];
                let mut covered = ByteSet::NONE;
                let mut ends = Reached::new();
                for (bytes, target) in self.edges(from, budget)? {
                    if !bytes.and(set).is_empty() {
                        covered = covered.or(bytes);
                        ends.push(target);
                    }
                }
                set.minus(covered).is_empty().then_some(ends)
            }
            Node::Concat(head, tail) => match deep(|| self.reached(head, from, budget))? {
                Some(states) => self.reached_from(tail, &states, budget)?,
                None => None,
            },
            Node::Alt(kids) => {
                let kids: List = self.list(kids).into();
                let mut all = Some(Reached::new());
                for kid in kids {
                    let ends = deep(|| self.reached(kid, from, budget))?;
                    all = all.zip(ends).map(|(mut all, ends)| {
                        all.extend(ends);
                        all
                    });
                    if all.is_none() {
                        break;
                    }
                }
                all
            }
            Node::Repeat(body, ..) => {
                // more iterations than there may be lead perhaps to more states
                let mut all = Some(Reached::from_slice(&[from]));
                let mut before = 0;
                while let Some(states) = &mut all
                    && states.len() > before
                    && states.len() <= MOST
                {
                    before = states.len();
                    let next = self.reached_from(body, &states.clone(), budget)?;
                    all = all.zip(next).map(|(mut all, next)| {
                        all.extend(next);
                        all.sort_unstable();
                        all.dedup();
                        all
                    });
                }
                all
            }
            Node::And(kids) => {
                // its texts are among those of each operand
                let kids: List = self.list(kids).into();
                let mut found = None;
                for kid in kids {
                    if found.is_none() {
                        found = deep(|| self.reached(kid, from, budget))?;
                    }
                }
                found
            }
            _ => None,
        };
        let found = found.and_then(|mut ends| {
            ends.sort_unstable();
            ends.dedup();
            (ends.len() <= MOST).then_some(ends)
        });
        self.reached.insert((x, from), found.clone());
        Ok(found)
    }

    fn reached_from(&mut self, x: Id, states: &[Id], budget: &mut Budget) -> Result<Option<Reached>> {
        let mut all = Reached::new();
        for &state in states {
            match deep(|| self.reached(x, state, budget))? {
                Some(ends) => all.extend(ends),
                None => return Ok(None),
            }
        }
        Ok(Some(all))
    }
}
