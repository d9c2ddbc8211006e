//! Upper bounds of counts inside intersections: a pattern with a length, `p & c{0,63}`.
//!
//! Whether a token is allowed depends on whether the rest of the pattern still fits into what the count leaves. So an
//! upper bound may be dropped only for tokens that leave as many iterations as the pattern can need to end: its
//! *slack*, the longest of the shortest texts of its residuals.

use rustc_hash::FxHashMap;

use super::arena::{Arena, EMPTY, Id, List, Node};
use super::saturate::SMALL;
use crate::budget::Budget;
use crate::error::Result;
use crate::ir::UNBOUNDED;
use crate::recursion::deep;

/// Intersections with more residuals keep their counts.
const MOST: usize = 512;

impl Arena {
    /// The intersection without upper bounds, and the number of bytes up to which tokens cannot tell it from the
    /// original.
    pub(super) fn without_upper_bounds(&mut self, id: Id, budget: &mut Budget) -> Result<Option<(Id, u32)>> {
        let (open, most) = self.opened(id);
        if most == UNBOUNDED || open == EMPTY {
            return Ok(None);
        }
        let slack = self.slack(open, budget)?;
        Ok(slack.and_then(|slack| most.checked_sub(slack)).map(|visible| (open, visible)))
    }

    /// The expression with its upper bounds dropped, and the least of them.
    fn opened(&mut self, id: Id) -> (Id, u32) {
        match self.nodes[id as usize] {
            Node::Repeat(x, least, most) if most != UNBOUNDED && most > SMALL && !self.nullable(x) => {
                (self.repeat(x, least, UNBOUNDED), most)
            }
            Node::Concat(a, b) => {
                let (a, b) = deep(|| (self.opened(a), self.opened(b)));
                (self.concat(a.0, b.0), a.1.min(b.1))
            }
            Node::Alt(k) | Node::And(k) => {
                let kids: List = self.list(k).into();
                let opened: Vec<(Id, u32)> = kids.into_iter().map(|i| deep(|| self.opened(i))).collect();
                let ids: List = opened.iter().map(|o| o.0).collect();
                let most = opened.iter().map(|o| o.1).min().unwrap_or(UNBOUNDED);
                let all = if let Node::And(_) = self.nodes[id as usize] { self.and(&ids) } else { self.alt(&ids) };
                (all, most)
            }
            _ => (id, UNBOUNDED),
        }
    }

    /// The longest of the shortest texts of all residuals, in bytes. `None`: there are too many residuals to look at.
    fn slack(&mut self, id: Id, budget: &mut Budget) -> Result<Option<u32>> {
        if let Some(&known) = self.slacks.get(&id) {
            return Ok(known);
        }
        let mut residuals = vec![id];
        let mut index = FxHashMap::from_iter([(id, 0usize)]);
        let mut before: Vec<Vec<usize>> = vec![Vec::new()];
        let mut at = 0;
        while at < residuals.len() && residuals.len() <= MOST {
            let targets: List = self.edges(residuals[at], budget)?.map(|edge| edge.1).collect();
            for target in targets {
                let i = *index.entry(target).or_insert_with(|| {
                    residuals.push(target);
                    before.push(Vec::new());
                    residuals.len() - 1
                });
                before[i].push(at);
            }
            at += 1;
        }
        let mut slack = None;
        if residuals.len() <= MOST {
            // backwards from the ends, breadth first
            let mut lengths = vec![u32::MAX; residuals.len()];
            let mut layer: Vec<usize> = (0..residuals.len()).filter(|&i| self.nullable(residuals[i])).collect();
            let mut length = 0;
            while !layer.is_empty() {
                let mut next = Vec::new();
                for i in layer {
                    if lengths[i] == u32::MAX {
                        lengths[i] = length;
                        next.extend_from_slice(&before[i]);
                    }
                }
                layer = next;
                length += 1;
            }
            slack = lengths.into_iter().max();
        }
        // the slack of a residual that is reached from here may be less, but seldom is; and if too many residuals are
        // reached from one, too many are reached from most
        for residual in residuals {
            self.slacks.entry(residual).or_insert(slack);
        }
        Ok(slack)
    }
}
