//! Positions: what is left of a rule's body, as hash-consed lists.

use rustc_hash::FxHashMap;

use crate::ir::{NodeId, RuleId, UNBOUNDED};

pub type PosId = u32;

/// The end of the whole text.
pub(super) const BOTTOM: PosId = 0;

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Pos {
    Bottom,
    /// The end of a rule.
    End(RuleId),
    /// An expression, then the rest.
    Then(NodeId, PosId),
    /// Some more iterations of an expression, then the rest.
    Again {
        body: NodeId,
        least: u32,
        most: u32,
        next: PosId,
    },
}

pub struct Positions {
    list: Vec<Pos>,
    /// The rule whose end the list leads to.
    rules: Vec<RuleId>,
    /// Whether a count beyond the saturation bound occurs.
    counts: Vec<bool>,
    ids: FxHashMap<Pos, PosId>,
    saturated: FxHashMap<PosId, PosId>,
    cap: u32,
}

impl Positions {
    pub fn new(cap: u32) -> Positions {
        let mut p = Positions {
            list: Vec::new(),
            rules: Vec::new(),
            counts: Vec::new(),
            ids: FxHashMap::default(),
            saturated: FxHashMap::default(),
            cap,
        };
        p.intern(Pos::Bottom);
        p
    }

    pub(super) fn get(&self, p: PosId) -> Pos {
        self.list[p as usize]
    }

    pub(super) fn rule(&self, p: PosId) -> RuleId {
        self.rules[p as usize]
    }

    pub fn counts(&self, p: PosId) -> bool {
        self.counts[p as usize]
    }

    pub fn memory(&self) -> usize {
        self.list.len() * 64
    }

    pub(super) fn intern(&mut self, pos: Pos) -> PosId {
        if let Some(&id) = self.ids.get(&pos) {
            return id;
        }
        let (rule, counts) = match pos {
            Pos::Bottom => (RuleId::MAX, false),
            Pos::End(rule) => (rule, false),
            Pos::Then(_, next) => (self.rule(next), self.counts(next)),
            Pos::Again {
                least, most, next, ..
            } => (
                self.rule(next),
                self.counts(next) || self.beyond(least, most),
            ),
        };
        let id = self.list.len() as PosId;
        self.list.push(pos);
        self.rules.push(rule);
        self.counts.push(counts);
        self.ids.insert(pos, id);
        id
    }

    fn beyond(&self, least: u32, most: u32) -> bool {
        least > self.cap + 1 || (most != UNBOUNDED && most > self.cap + 1)
    }

    /// The position with counts that no single token can tell apart made equal (bodies take a byte at least:
    /// iterations of a nullable body are not counted).
    pub fn saturate(&mut self, p: PosId) -> PosId {
        if !self.counts(p) {
            return p;
        }
        if let Some(&s) = self.saturated.get(&p) {
            return s;
        }
        // lists are as long as rules are: down to where nothing changes, then up again
        let mut path = Vec::new();
        let mut at = p;
        while self.counts(at) {
            path.push(self.get(at));
            at = match self.get(at) {
                Pos::Then(_, next) | Pos::Again { next, .. } => next,
                Pos::Bottom | Pos::End(_) => unreachable!("an end holds no counts"),
            };
        }
        for pos in path.into_iter().rev() {
            at = self.intern(match pos {
                Pos::Then(node, _) => Pos::Then(node, at),
                Pos::Again {
                    body, least, most, ..
                } => Pos::Again {
                    body,
                    least: least.min(self.cap + 1),
                    most: if most > self.cap + 1 { UNBOUNDED } else { most },
                    next: at,
                },
                Pos::Bottom | Pos::End(_) => unreachable!("an end holds no counts"),
            });
        }
        self.saturated.insert(p, at);
        at
    }
}
