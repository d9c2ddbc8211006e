//! Regions: sets of residuals between which most characters lead, all of them alive. Patterns that may match anywhere
//! in a string have them, and identifiers that must not end in a hyphen. Which residual a token of such characters
//! leads to depends on the one that it starts from; that it leads to a living one does not.

use rustc_hash::FxHashSet;

use super::looping::{Lead, MIN_PLAIN, lead_bytes};
use crate::budget::Budget;
use crate::byteset::ByteSet;
use crate::error::Result;
use crate::mask::cache::Region;
use crate::mask::maker::MaskMaker;
use crate::regular::{Arena, EMPTY, Id};

/// Larger regions are not looked for: finding one costs as much as a few walks.
const MOST: usize = 256;

/// Residuals that count further than this have no region: each number of a count is a residual of its own.
const MANY: u32 = 32;

impl MaskMaker<'_> {
    /// The region that a residual belongs to, if there is one. Kept for all residuals of it.
    pub(in crate::mask) fn region(&mut self, x: Id) -> Result<Option<Region>> {
        let x = self.machine.arena.untag(x).map_or(x, |(untagged, _)| untagged);
        if let Some(&known) = self.local.regions.get(&x) {
            return Ok(known);
        }
        let mut members = vec![x];
        let found = explore(&mut self.machine.arena, &mut members, self.budget)?;
        // if there is no region around this residual, none is looked for around those that it leads to
        for member in members {
            self.local.regions.entry(member).or_insert(found);
        }
        Ok(found)
    }
}

/// Adds the residuals that plain characters lead to from the first of `members`. What is plain is narrowed as residuals
/// are met: a byte stays plain if every one of them accepts it and it leads none of them out.
fn explore(arena: &mut Arena, members: &mut Vec<Id>, budget: &mut Budget) -> Result<Option<Region>> {
    let ascii = ByteSet::range(0, 127);
    let mut plain = arena.first(members[0], budget)?.and(ascii);
    let mut leads: Vec<Lead> = lead_bytes().collect();
    let mut first = ByteSet::NONE;
    let mut met = FxHashSet::from_iter([members[0]]);
    let mut at = 0;
    while at < members.len() {
        let x = members[at];
        at += 1;
        if members.len() > MOST || plain.len() < MIN_PLAIN || arena.nullable(x) || arena.counts_down(x, MANY) {
            return Ok(None);
        }
        let here = arena.first(x, budget)?;
        first = first.or(here);
        plain = plain.and(here);
        for (set, target) in arena.edges(x, budget)?.to_vec() {
            if set.and(plain).is_empty() {
                continue;
            }
            // a byte behind which few of the others can follow leads out of the region, as a closing quote does
            if arena.first(target, budget)?.and(plain).len() * 2 < plain.len() {
                plain = plain.minus(set);
            } else if met.insert(target) {
                members.push(target);
            }
        }
        let mut known: Vec<(Id, u8, ByteSet, bool)> = Vec::new(); // leads of one kind have the same answer
        let mut kept = Vec::with_capacity(leads.len());
        for lead in leads {
            let q = arena.next(x, lead.byte, budget)?;
            let before = known.iter().find(|k| (k.0, k.1, k.2) == (q, lead.more, lead.second)).map(|k| k.3);
            let all_alive = match before {
                Some(all_alive) => all_alive,
                None => {
                    let mut ends = Vec::new();
                    let all_alive = characters_end(arena, q, lead.more, lead.second, &mut ends, budget)?;
                    if all_alive {
                        members.extend(ends.into_iter().filter(|&end| met.insert(end)));
                    }
                    known.push((q, lead.more, lead.second, all_alive));
                    all_alive
                }
            };
            if all_alive {
                kept.push(lead);
            }
        }
        leads = kept;
    }
    // some members were reached by bytes that are no longer plain: they only make the region larger than necessary
    leads.iter().for_each(|lead| plain.insert(lead.byte));
    if !leads.is_empty() {
        plain = plain.or(arena.alphabet().and(ByteSet::range(0x80, 0xBF)));
    }
    let changing = first.minus(plain);
    Ok(Some(Region { plain, changing }))
}

/// Whether any `more` continuation bytes (the first of `set`) lead somewhere alive from `q`; collects where.
fn characters_end(
    arena: &mut Arena,
    q: Id,
    more: u8,
    set: ByteSet,
    ends: &mut Vec<Id>,
    budget: &mut Budget,
) -> Result<bool> {
    let set = set.and(arena.alphabet());
    if q == EMPTY || arena.first(q, budget)? != set {
        return Ok(false);
    }
    for (_, next) in arena.edges(q, budget)?.to_vec() {
        if more == 1 {
            ends.push(next);
        } else if !characters_end(arena, next, more - 1, ByteSet::range(0x80, 0xBF), ends, budget)? {
            return Ok(false);
        }
    }
    Ok(true)
}
