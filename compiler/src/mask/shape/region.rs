//! Regions: sets of residuals between which most characters lead, all of them alive. Patterns that may match anywhere
//! in a string have them, and identifiers that must not end in a hyphen. Which residual a token of such characters
//! leads to depends on the one that it starts from; that it leads to a living one does not.

use rustc_hash::FxHashSet;
use smallvec::SmallVec;

use super::looping::{Lead, MIN_PLAIN, lead_bytes};
use crate::budget::Budget;
use crate::byteset::ByteSet;
use crate::error::Result;
use crate::mask::cache::Region;
use crate::mask::maker::{self, MaskMaker};
use crate::recursion::deep;
use crate::regular::{Arena, EMPTY, Form, Id, List};
use crate::vocabulary::Vocabulary;

/// Larger regions are not looked for: finding one costs as much as a few walks.
const MOST: usize = 256;

/// Parts of residuals that are looked at in search of one region: more take longer than a few walks.
const MOST_PARTS: usize = 1 << 16;

/// Residuals that count further than this have no region: each number of a count is a residual of its own.
const MANY: u32 = 32;

impl MaskMaker<'_> {
    /// Whether it was found out before that a residual belongs to a region.
    pub(in crate::mask) fn knows_region(&mut self, x: Id) -> bool {
        let x = self.untagged(x);
        matches!(self.local.regions.get(&x), Some(Some(_)))
    }

    /// The region that a residual belongs to, if there is one. Kept for all residuals of it.
    pub(in crate::mask) fn region(&mut self, x: Id) -> Result<Option<Region>> {
        let x = self.untagged(x);
        if let Some(&known) = self.local.regions.get(&x) {
            return Ok(known);
        }
        if let Some(found) = self.region_around_branch(x)?
            && self.vocab.holders_of_any(found.changing) <= maker::MANY
        {
            self.local.regions.insert(x, Some(found));
            return Ok(Some(found));
        }
        let mut members = vec![x];
        let found = explore(&mut self.machine.arena, self.vocab, &mut members, self.budget)?;
        // if there is no region around this residual, none is looked for around those that it leads to
        for member in members {
            self.local.regions.entry(member).or_insert(found);
        }
        Ok(found)
    }
}

/// Branches that fewer ASCII bytes lead back to are followed as all others.
const LEAST_PLAIN: u32 = 64;

impl MaskMaker<'_> {
    /// The region of a residual with a branch that most characters lead back to, whatever else they begin: that of a
    /// pattern which may match anywhere, wherever it has begun to match. The other branches are not followed, since what
    /// this one allows they cannot forbid.
    fn region_around_branch(&mut self, x: Id) -> Result<Option<Region>> {
        for branch in self.machine.arena.branches(x) {
            if let Some(plain) = self.returning(branch)?
                && let Some(within) = self.machine.arena.within(x, plain)
            {
                return Ok(Some(Region { plain, changing: within.minus(plain) }));
            }
        }
        Ok(None)
    }

    /// The bytes of the characters that a branch loses no text by, if they are many.
    fn returning(&mut self, branch: Id) -> Result<Option<ByteSet>> {
        if let Some(&known) = self.local.returning.get(&branch) {
            return Ok(known);
        }
        let arena = &mut self.machine.arena;
        let found = match arena.intersection(branch) {
            Some((operands, tail)) => find_returning_intersection(arena, &operands, tail, self.budget)?,
            None if arena.alive(branch, self.budget)? => find_returning(arena, branch, self.budget)?,
            None => None,
        };
        self.local.returning.insert(branch, found);
        Ok(found)
    }
}

/// The same of an intersection in front of something: what each operand loses no text by, or a branch of each. It is
/// enough if these branches have a text in common.
fn find_returning_intersection(
    arena: &mut Arena,
    operands: &[Id],
    tail: Id,
    budget: &mut Budget,
) -> Result<Option<ByteSet>> {
    let mut all = ByteSet::ALL;
    let mut branches = List::new();
    for &operand in operands {
        let mut found = None;
        // characters that are counted from below become fewer: what follows has all texts that it had
        if let Some(looping) = arena.without_lower_bound(operand) {
            found = find_returning(arena, looping, budget)?.map(|plain| (operand, plain));
        } else {
            for branch in arena.branches(operand) {
                if found.is_none() {
                    found = find_returning(arena, branch, budget)?.map(|plain| (branch, plain));
                }
            }
        }
        let Some((branch, plain)) = found else { return Ok(None) };
        branches.push(branch);
        all = all.and(plain);
    }
    let together = arena.and(&branches);
    let whole = arena.concat(together, tail);
    Ok(if arena.alive(whole, budget)? && all.and(ByteSet::range(0, 127)).len() >= LEAST_PLAIN {
        Some(all)
    } else {
        None
    })
}

/// The bytes of the characters that lead from a branch to residuals that it is a branch of, if they are many.
fn find_returning(arena: &mut Arena, branch: Id, budget: &mut Budget) -> Result<Option<ByteSet>> {
    let returns = |arena: &Arena, target: Id| target == branch || arena.branches(target).contains(&branch);
    let mut plain = ByteSet::NONE;
    let edges: SmallVec<[(ByteSet, Id); 8]> = arena.edges(branch, budget)?.collect();
    for (set, target) in edges {
        if returns(arena, target) {
            plain = plain.or(set.and(ByteSet::range(0, 127)));
        }
    }
    if plain.len() < LEAST_PLAIN {
        return Ok(None);
    }
    let mut beyond = false;
    for lead in lead_bytes() {
        let after = arena.next(branch, lead.byte, budget)?;
        let mut ends = List::new();
        if characters_end(arena, after, lead.more, lead.second, &mut ends, budget)?
            && ends.iter().all(|&end| returns(arena, end))
        {
            plain.insert(lead.byte);
            beyond = true;
        }
    }
    if beyond {
        plain = plain.or(arena.alphabet().and(ByteSet::range(0x80, 0xBF)));
    }
    Ok(Some(plain))
}

/// Adds the residuals that plain characters lead to from the first of `members`. What is plain is narrowed as residuals
/// are met: a byte stays plain if every one of them accepts it and it leads none of them out.
fn explore(
    arena: &mut Arena,
    vocab: &Vocabulary,
    members: &mut Vec<Id>,
    budget: &mut Budget,
) -> Result<Option<Region>> {
    let mut plain = arena.first(members[0], budget)?.and(ByteSet::range(0, 127));
    let mut looked_at = 0;
    let mut of_letters: Option<(Region, Vec<Id>)> = None;
    let mut only_letters = false;
    loop {
        match (explore_by((arena, vocab), members, (&mut plain, &mut looked_at), budget)?, &of_letters) {
            (Found::Region(region), None) if only_letters => {
                let within = leading_within(arena, members, budget)?.or(plain);
                if within.minus(plain).is_empty() {
                    return Ok(Some(region));
                }
                plain = within;
                of_letters = Some((region, members.clone()));
            }
            (Found::Region(region), _) => return Ok(Some(region)),
            // a byte that leads out has led to members before, which would narrow the region for nothing
            (Found::Narrower, _) => {}
            (Found::Large | Found::None, Some((region, found))) => {
                members.clone_from(found);
                return Ok(Some(*region));
            }
            // brackets lead deeper and deeper: letters do not
            (Found::Large, None) if !plain.minus(alphanumeric()).is_empty() => {
                plain = plain.and(alphanumeric());
                only_letters = true;
            }
            (Found::Large | Found::None, None) => return Ok(None),
        }
        members.truncate(1);
    }
}

/// The ASCII bytes that lead from every one of some residuals to one of them.
fn leading_within(arena: &mut Arena, members: &[Id], budget: &mut Budget) -> Result<ByteSet> {
    let known: FxHashSet<Id> = members.iter().copied().collect();
    let mut within = ByteSet::range(0, 127);
    for &member in members {
        let mut here = ByteSet::NONE;
        for (set, target) in arena.edges(member, budget)? {
            if known.contains(&target) {
                here = here.or(set);
            }
        }
        within = within.and(here);
    }
    Ok(within)
}

fn alphanumeric() -> ByteSet {
    ByteSet::range(b'0', b'9').or(ByteSet::range(b'A', b'Z')).or(ByteSet::range(b'a', b'z'))
}

enum Found {
    Region(Region),
    None,
    /// It has too many members.
    Large,
    /// Some of the bytes lead out of it.
    Narrower,
}

/// The region of the first of `members`, if there is one in which all of these bytes are plain, or all but some that not
/// every member accepts.
fn explore_by(
    (arena, vocab): (&mut Arena, &Vocabulary),
    members: &mut Vec<Id>,
    (plain, looked_at): (&mut ByteSet, &mut usize),
    budget: &mut Budget,
) -> Result<Found> {
    let mut leads: Vec<Lead> = lead_bytes().collect();
    let mut kept: Vec<Lead> = Vec::with_capacity(leads.len());
    let mut known: Vec<(Id, u8, ByteSet, bool)> = Vec::new(); // leads of one kind have the same answer
    let mut first = ByteSet::NONE;
    let mut met = FxHashSet::from_iter([members[0]]);
    let mut explored: FxHashSet<SmallVec<[Id; 4]>> = FxHashSet::default();
    let mut at = 0;
    while at < members.len() {
        let x = members[at];
        at += 1;
        if members.len() > MOST {
            return Ok(Found::Large);
        } else if *looked_at > MOST_PARTS || plain.len() < MIN_PLAIN || arena.nullable(x) || arena.counts_down(x, MANY)
        {
            return Ok(Found::None);
        }
        let here = Core::of(arena, x, *plain, budget)?;
        *looked_at += here.looked_at;
        first = first.or(here.first);
        *plain = plain.and(here.first);
        if !explored.insert(here.parts) {
            continue;
        }
        let mut out = ByteSet::NONE;
        let edges: Vec<(ByteSet, Id)> = arena.edges(x, budget)?.collect();
        budget.spend(edges.len() as u64)?;
        for (set, target) in edges {
            if set.and(*plain).is_empty() {
                continue;
            }
            // a byte behind which few of the others can follow leads out of the region, as a closing quote does; where it
            // has to be given up or they have, those go that fewer tokens hold
            let after = Core::of(arena, target, *plain, budget)?;
            *looked_at += after.looked_at;
            let lost = plain.minus(after.first);
            if *looked_at > MOST_PARTS {
                return Ok(Found::None);
            } else if lost.len() * 2 > plain.len()
                || !lost.is_empty() && vocab.holders_of_any(lost) > vocab.holders_of_any(set.and(*plain))
            {
                out = out.or(set);
            } else if met.insert(target) {
                members.push(target);
            }
        }
        if !out.and(*plain).is_empty() {
            *plain = plain.minus(out);
            return Ok(Found::Narrower);
        }
        known.clear();
        kept.clear();
        for &lead in &leads {
            let q = arena.next(x, lead.byte, budget)?;
            let before = known.iter().find(|k| (k.0, k.1, k.2) == (q, lead.more, lead.second)).map(|k| k.3);
            let all_alive = match before {
                Some(all_alive) => all_alive,
                None => {
                    let mut ends = List::new();
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
        std::mem::swap(&mut leads, &mut kept);
    }
    let mut all = *plain;
    leads.iter().for_each(|lead| all.insert(lead.byte));
    if !leads.is_empty() {
        all = all.or(arena.alphabet().and(ByteSet::range(0x80, 0xBF)));
    }
    Ok(Found::Region(Region { plain: all, changing: first.minus(all) }))
}

/// What decides where plain characters lead from a residual: after any `c` in a class, `-z` may follow to make a range,
/// which begins with no plain byte, or whatever else may follow in the class, the same after each `c`.
struct Core {
    /// The parts of the residual that begin with plain bytes, or with those beyond ASCII, in order.
    parts: SmallVec<[Id; 4]>,
    /// The bytes that lead on from the residual.
    first: ByteSet,
    /// How many parts were looked at.
    looked_at: usize,
}

impl Core {
    fn of(arena: &mut Arena, x: Id, plain: ByteSet, budget: &mut Budget) -> Result<Core> {
        let mut core = Core { parts: SmallVec::new(), first: ByteSet::NONE, looked_at: 0 };
        core.add(arena, x, plain.or(ByteSet::range(128, 255)), budget)?;
        core.parts.sort_unstable();
        core.parts.dedup();
        Ok(core)
    }

    fn add(&mut self, arena: &mut Arena, x: Id, decisive: ByteSet, budget: &mut Budget) -> Result<()> {
        self.looked_at += 1;
        if !arena.alive(x, budget)? {
            return Ok(());
        }
        match arena.form(x) {
            Form::Union(n) => {
                for i in 0..n {
                    let operand = arena.operand(x, i);
                    deep(|| self.add(arena, operand, decisive, budget))?;
                }
                return Ok(());
            }
            Form::Then(part, tail) if arena.nullable(part) => {
                let first = arena.first(part, budget)?;
                if first.and(decisive).is_empty() {
                    self.first = self.first.or(first);
                    return deep(|| self.add(arena, tail, decisive, budget));
                }
            }
            _ => {}
        }
        let first = arena.first(x, budget)?;
        self.first = self.first.or(first);
        if !first.and(decisive).is_empty() {
            self.parts.push(x);
        }
        Ok(())
    }
}

/// Whether any `more` continuation bytes (the first of `set`) lead somewhere alive from `q`; collects where.
fn characters_end(
    arena: &mut Arena,
    q: Id,
    more: u8,
    set: ByteSet,
    ends: &mut List,
    budget: &mut Budget,
) -> Result<bool> {
    let set = set.and(arena.alphabet());
    if q == EMPTY || arena.first(q, budget)? != set {
        return Ok(false);
    }
    let targets: List = arena.edges(q, budget)?.map(|edge| edge.1).collect();
    for next in targets {
        if more == 1 {
            ends.push(next);
        } else if !characters_end(arena, next, more - 1, ByteSet::range(0x80, 0xBF), ends, budget)? {
            return Ok(false);
        }
    }
    Ok(true)
}
