//! The ends of residuals and a shortest text to each, found as far as they are asked for, the nearest first.

use std::sync::Arc;

use rustc_hash::FxHashSet;
use smallvec::SmallVec;

use super::position::{BOTTOM, PosId};
use super::shortest::NEVER;
use super::step::Machine;
use crate::budget::Budget;
use crate::error::Result;
use crate::ir::{Node, NodeId};
use crate::regular::{Id, List};

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
pub(super) const MOST_RESIDUALS: usize = 1024;

impl Machine {
    /// The length of a shortest lexeme, whatever follows it.
    pub(super) fn shortest_of_lexeme(&mut self, node: NodeId, budget: &mut Budget) -> Result<u64> {
        let ir = self.ir.clone();
        let texts: SmallVec<[NodeId; 4]> = match &ir.nodes[node as usize] {
            Node::Lexemes(all) => all.iter().map(|one| one.text).collect(),
            _ => SmallVec::from_slice(&[node]),
        };
        let mut shortest = NEVER;
        for text in texts {
            let x = self.whole_lexeme(text, budget)?;
            shortest = shortest.min(self.nearest_end(x, budget)?.unwrap_or(NEVER));
        }
        Ok(shortest)
    }

    /// The length of a shortest text that leads to an end of a residual.
    pub(super) fn nearest_end(&mut self, rest: Id, budget: &mut Budget) -> Result<Option<u64>> {
        let mut length = 0;
        while let Some(ends) = self.ends_of_length(rest, length, budget)? {
            if !ends.is_empty() {
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
                let (alike, _) = self.untagged(x);
                if self.searches.ways[&alike].met.len() > MOST_RESIDUALS && !all.is_empty() {
                    break;
                }
            }
        }
        let mut ended: FxHashSet<Id> = FxHashSet::default();
        all.sort_by_key(|way| way.0.len());
        all.retain(|way| ended.insert(way.1));
        Ok(all)
    }

    /// Whether all ends of a residual are known.
    pub(super) fn knows_all_ways(&mut self, rest: Id) -> bool {
        let alternatives = self.arena.alternatives(rest);
        alternatives.into_iter().all(|x| self.knows_ways(x, usize::MAX))
    }

    /// Whether it is known which ends of a residual texts of a length lead to.
    pub(super) fn knows_ways(&mut self, rest: Id, length: usize) -> bool {
        let (alike, _) = self.untagged(rest);
        let known = self.searches.ways.get(&alike);
        known.is_some_and(|ways| length < ways.found.len() || ways.next.is_empty())
    }

    /// The ends of a residual to which texts of a length lead, but no shorter ones; `None`: texts of that length lead to
    /// nothing that shorter ones do not lead to. To be asked for one length after the other.
    ///
    /// They are found once for all places at which a lexeme stands.
    pub(super) fn ways_of_length(
        &mut self,
        rest: Id,
        length: usize,
        budget: &mut Budget,
    ) -> Result<Option<Arc<[Way]>>> {
        let (alike, tag) = self.untagged(rest);
        let Some(ways) = self.ways_of_alike(alike, length, budget)? else { return Ok(None) };
        let Some(position) = tag else { return Ok(Some(ways)) };
        let own = ways.iter().map(|(text, left, _)| (text.clone(), self.tagged(*left, position), position));
        Ok(Some(own.collect()))
    }

    /// What is left at the ends of [`Machine::ways_of_length`].
    pub(super) fn ends_of_length(&mut self, rest: Id, length: usize, budget: &mut Budget) -> Result<Option<List>> {
        let (alike, tag) = self.untagged(rest);
        let Some(ways) = self.ways_of_alike(alike, length, budget)? else { return Ok(None) };
        let own = ways.iter().map(|&(_, left, _)| tag.map_or(left, |position| self.tagged(left, position)));
        Ok(Some(own.collect()))
    }

    /// What is left at an end with a tag that means nothing, with another tag in its place.
    fn tagged(&mut self, left: Id, position: PosId) -> Id {
        let end = self.accept(position);
        let (condition, _) = self.arena.under_condition(left);
        self.arena.under(condition, end)
    }

    /// The residual with a tag that means nothing in the place of its only one, and that one; the residual itself and
    /// `None`, if it has several.
    pub fn untagged(&mut self, rest: Id) -> (Id, Option<PosId>) {
        if let Some(&known) = self.searches.alike.get(&rest) {
            return known;
        }
        let mut only = None;
        let is_only = self.arena.every_tag(rest, &mut |position| *only.get_or_insert(position) == position);
        let nothing = self.accept(BOTTOM);
        let found = match only.filter(|_| is_only) {
            Some(position) => (self.arena.retagged(rest, nothing), Some(position)),
            None => (rest, None),
        };
        self.searches.alike.insert(rest, found);
        found
    }

    fn ways_of_alike(&mut self, rest: Id, length: usize, budget: &mut Budget) -> Result<Option<Arc<[Way]>>> {
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
