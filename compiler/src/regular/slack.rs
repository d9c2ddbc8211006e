//! Upper bounds of counts inside intersections: a pattern with a length, `p & c{0,63}`, and those within the pattern. And
//! those beside assertions, which are intersections of what follows: `c{1,63}\b`.
//!
//! Whether a token is allowed depends on whether the rest of the pattern still fits into what the count leaves. So an
//! upper bound may be dropped only for tokens that leave as many iterations as the pattern can need to end: its
//! *slack*, the longest of the shortest texts of its residuals.

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::arena::{Arena, EMPTY, Flags, Id, Kids, List, Node};
use super::limits::{FEW, Limit, Limits};
use super::saturate::Counts;
use crate::budget::Budget;
use crate::error::Result;
use crate::ir::UNBOUNDED;
use crate::recursion::deep;

/// Intersections with more residuals keep their counts.
const MOST: usize = 512;

/// How often bounds that have to be kept are looked for: each time, the slack may be another.
const TRIES: usize = 3;

/// An upper bound that is dropped.
struct Bound {
    limit: Limit,
    /// The iterations that the shortest texts of residuals have beyond those that have begun; `None`: no more than these
    /// have bytes.
    slack: Option<u32>,
}

type Bounds = SmallVec<[Bound; 2]>;

/// What bounds ask of tokens, where the shortest texts of all residuals have no more than `slack` bytes. An error if that
/// is too much, which says how high bounds have to be.
fn limits_of(bounds: &Bounds, slack: u32, visible: impl Fn(Limit) -> u32) -> std::result::Result<Limits, u32> {
    let (mut limits, mut needed) = (Limits::new(), 0);
    for Bound { limit, slack: own } in bounds {
        let more = own.unwrap_or(slack).saturating_add(limit.begun());
        match limit.most.checked_sub(more) {
            Some(most) if most >= visible(*limit) => limits.push(Limit { most, ..*limit }),
            _ => needed = needed.max(more.saturating_add(visible(*limit))),
        }
    }
    if needed == 0 { Ok(limits) } else { Err(needed) }
}

impl Arena {
    /// An intersection, or a scope of assertions, without those of its upper bounds that can be dropped, and what these ask
    /// of tokens: nothing, if they are exact. `None`: all are kept.
    pub(super) fn loosened(&mut self, id: Id, counts: Counts, budget: &mut Budget) -> Result<Option<(Id, Limits)>> {
        let cap = self.cap;
        let (mut at_least, visible): (u32, &dyn Fn(Limit) -> u32) = match counts {
            Counts::Kept | Counts::Exact => (cap, &|_| cap),
            Counts::Below(bound) => (bound, &|_| 0),
            Counts::Loose => (0, &|limit| limit.far()),
        };
        for _ in 0..TRIES {
            let mut bounds = Bounds::new();
            let open = self.opened(id, at_least, &mut bounds, budget)?;
            if bounds.is_empty() || open == EMPTY {
                return Ok(None);
            }
            if self.is_elementary(open)
                && let Ok(limits) = limits_of(&bounds, self.slack_from_form(open), visible)
            {
                return Ok(Some((open, self.that_tell(limits))));
            }
            let Some(slack) = self.slack(open, budget)? else {
                // all tokens may tell
                let limits = bounds.iter().map(|bound| Limit { most: 0, ..bound.limit }).collect();
                return Ok(if let Counts::Below(_) = counts { Some((open, limits)) } else { None });
            };
            match limits_of(&bounds, slack, visible) {
                Ok(limits) => return Ok(Some((open, self.that_tell(limits)))),
                Err(needed) => at_least = needed,
            }
        }
        Ok(None)
    }

    /// The limits that the longest token may be beyond.
    fn that_tell(&self, mut limits: Limits) -> Limits {
        limits.retain(|limit| limit.most < self.cap);
        limits
    }

    /// An intersection with its upper bounds from `at_least` on dropped, and these. One with a loop that then has all texts
    /// of another operand is one no longer.
    fn opened_intersection(&mut self, k: Kids, at_least: u32, all: &mut Bounds, budget: &mut Budget) -> Result<Id> {
        let mut kids: SmallVec<[(Id, Bounds); 4]> = self.list(k).iter().map(|&kid| (kid, Bounds::new())).collect();
        for (kid, bounds) in &mut kids {
            *kid = self.opened(*kid, at_least, bounds, budget)?;
        }
        let mut at = 0;
        while at < kids.len() {
            let mut covers = false;
            for other in 0..kids.len() {
                covers = covers || other != at && self.covers(kids[at].0, kids[other].0, budget)?;
            }
            if covers {
                all.extend(kids.remove(at).1.into_iter().map(|bound| Bound { slack: None, ..bound }));
            } else {
                at += 1;
            }
        }
        // the shortest texts of an expression that is none have the fewest iterations, too
        let is_alone = kids.len() == 1 && self.is_elementary(kids[0].0);
        let ids: List = kids.iter().map(|kid| kid.0).collect();
        let bounds = kids.into_iter().flat_map(|kid| kid.1);
        all.extend(bounds.map(|bound| Bound { slack: bound.slack.filter(|_| is_alone), ..bound }));
        Ok(self.and(&ids))
    }

    /// The expression with its upper bounds from `at_least` on dropped, and these.
    fn opened(&mut self, id: Id, at_least: u32, bounds: &mut Bounds, budget: &mut Budget) -> Result<Id> {
        if !self.flag(id, Flags::COUNTS) {
            return Ok(id);
        }
        budget.spend(1)?;
        Ok(match self.nodes[id as usize] {
            Node::Repeat(x, least, most) if !self.nullable(x) => {
                let body = deep(|| self.opened(x, at_least, bounds, budget))?;
                let limit = Limit { marks: self.marks(x), most };
                if most == UNBOUNDED || most < limit.far().max(at_least) || most <= FEW {
                    return Ok(self.repeat(body, least, most));
                }
                bounds.push(Bound { limit, slack: Some(least) });
                self.repeat(body, least, UNBOUNDED)
            }
            Node::Concat(a, b) => {
                let x = deep(|| self.opened(a, at_least, bounds, budget))?;
                let y = deep(|| self.opened(b, at_least, bounds, budget))?;
                if (x, y) == (a, b) { id } else { self.concat(x, y) }
            }
            Node::Alt(k) => {
                let mut kids: List = self.list(k).into();
                for kid in &mut kids {
                    *kid = deep(|| self.opened(*kid, at_least, bounds, budget))?;
                }
                if kids[..] == *self.list(k) { id } else { self.alt(&kids) }
            }
            Node::And(k) => deep(|| self.opened_intersection(k, at_least, bounds, budget))?,
            Node::Scope(x) | Node::Unit(x) => {
                // the shortest texts that meet its assertions may have any number of iterations
                let mut inside = Bounds::new();
                let open = deep(|| self.opened(x, at_least, &mut inside, budget))?;
                bounds.extend(inside.into_iter().map(|bound| Bound { slack: None, ..bound }));
                if matches!(self.nodes[id as usize], Node::Scope(_)) { self.scope(open) } else { self.unit(open) }
            }
            _ => id,
        })
    }

    /// Whether an expression has no Boolean operators, so that its form shows how long its texts are.
    pub(super) fn is_elementary(&self, id: Id) -> bool {
        self.any_of(&[id]) & (Flags::SEARCH | Flags::LOOKS | Flags::TAGGED) == 0
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

    /// A bound of the shortest texts of the residuals of an expression without Boolean operators, from its form.
    fn slack_from_form(&mut self, id: Id) -> u32 {
        if let Some(&known) = self.slacks_from_forms.get(&id) {
            return known;
        }
        let slack = match self.nodes[id as usize] {
            Node::Class(_) => 1,
            Node::Concat(a, b) => {
                let inside = deep(|| self.slack_from_form(a)).saturating_add(self.least_length(b));
                inside.max(deep(|| self.slack_from_form(b)))
            }
            Node::Alt(k) => {
                let kids: List = self.list(k).into();
                kids.into_iter().map(|kid| deep(|| self.slack_from_form(kid))).max().unwrap_or(0)
            }
            Node::Repeat(x, least, _) => {
                let others = self.least_length(x).saturating_mul(least.saturating_sub(1));
                deep(|| self.slack_from_form(x)).saturating_add(others)
            }
            _ => 0,
        };
        self.slacks_from_forms.insert(id, slack);
        slack
    }
}
