//! The ends of residuals and a shortest text to each, found as far as they are asked for, the nearest first.

use std::sync::Arc;

use rustc_hash::FxHashSet;

use super::position::PosId;
use super::search::Searches;
use super::shortest::NEVER;
use super::step::Machine;
use crate::budget::Budget;
use crate::error::Result;
use crate::ir::NodeId;
use crate::regular::Id;

/// An end of a residual: a shortest text to it, and what is left there (an `Accept`, perhaps under a condition).
pub(super) type Way = (Box<[u8]>, Id, PosId);

/// The ends of a residual, the nearest first, as far as they were asked for.
#[derive(Default)]
pub(super) struct Ways {
    /// By the length of the texts to them.
    found: Vec<Arc<[Way]>>,
    ended: FxHashSet<Id>,
    /// The residuals that texts of the next length lead to first, each with one.
    next: Vec<(Id, Vec<u8>)>,
    met: FxHashSet<Id>,
}

/// Residuals of a lexeme, as far as it is worthwhile to look at all of them for its ends.
const MOST_RESIDUALS: usize = 1024;

impl Searches {
    /// Whether it is known which ends of a residual texts of a length lead to.
    pub(super) fn knows_ways(&self, rest: Id, length: usize) -> bool {
        self.ways.get(&rest).is_some_and(|ways| length < ways.found.len() || ways.next.is_empty())
    }
}

impl Machine {
    /// The length of a shortest lexeme, whatever follows it.
    pub(super) fn shortest_of_lexeme(&mut self, node: NodeId, budget: &mut Budget) -> Result<u64> {
        let x = self.whole_lexeme(node, budget)?;
        Ok(self.nearest_end(x, budget)?.unwrap_or(NEVER))
    }

    /// The length of a shortest text that leads to an end of a residual.
    pub(super) fn nearest_end(&mut self, rest: Id, budget: &mut Budget) -> Result<Option<u64>> {
        let mut length = 0;
        while let Some(ways) = self.ways_of_length(rest, length, budget)? {
            if !ways.is_empty() {
                return Ok(Some(length as u64));
            }
            length += 1;
        }
        Ok(None)
    }

    /// The ends of a residual; of one of very many states, the nearest.
    pub(super) fn ways(&mut self, rest: Id, budget: &mut Budget) -> Result<Vec<Way>> {
        let mut all = Vec::new();
        for x in self.arena.alternatives(rest) {
            let mut length = 0;
            while let Some(ways) = self.ways_of_length(x, length, budget)? {
                all.extend_from_slice(&ways);
                length += 1;
                if self.searches.ways[&x].met.len() > MOST_RESIDUALS && !all.is_empty() {
                    break;
                }
            }
        }
        let mut ended: FxHashSet<Id> = FxHashSet::default();
        all.sort_by_key(|way| way.0.len());
        all.retain(|way| ended.insert(way.1));
        Ok(all)
    }

    /// The ends of a residual to which texts of a length lead, but no shorter ones; `None`: texts of that length lead to
    /// nothing that shorter ones do not lead to. To be asked for one length after the other.
    pub(super) fn ways_of_length(
        &mut self,
        rest: Id,
        length: usize,
        budget: &mut Budget,
    ) -> Result<Option<Arc<[Way]>>> {
        if let Some(known) = self.searches.ways.get(&rest)
            && (length < known.found.len() || known.next.is_empty())
        {
            return Ok(known.found.get(length).cloned());
        }
        let mut ways = match self.searches.ways.remove(&rest) {
            Some(known) => known,
            None => Ways { next: vec![(rest, Vec::new())], met: FxHashSet::from_iter([rest]), ..Ways::default() },
        };
        let found = self.go_on(&mut ways, budget)?;
        self.searches.ways.insert(rest, ways);
        Ok(Some(found))
    }

    /// Finds the ends of a residual to which texts that are longer by a byte lead.
    fn go_on(&mut self, ways: &mut Ways, budget: &mut Budget) -> Result<Arc<[Way]>> {
        let mut found = Vec::new();
        for (at, text) in std::mem::take(&mut ways.next) {
            budget.spend(8)?;
            for (condition, position) in self.arena.ends(at) {
                let end = self.accept(position);
                let end = self.arena.under(condition, end);
                if self.arena.alive(condition, budget)? && ways.ended.insert(end) {
                    found.push((text.clone().into(), end, position));
                }
            }
            for (byte, next) in self.arena.successors(at, budget)? {
                if ways.met.insert(next) {
                    self.searches.residuals += 1;
                    let mut text = text.clone();
                    text.push(byte);
                    ways.next.push((next, text));
                }
            }
        }
        let found: Arc<[Way]> = found.into();
        ways.found.push(found.clone());
        Ok(found)
    }
}
