//! Positions: what is left of a rule's body, as hash-consed linked lists of expressions (the dotted rules of Earley).

use rustc_hash::FxHashMap;

use crate::ir::{NodeId, RuleId, UNBOUNDED};
use crate::regular::{Counts, SMALL, Saturated, saturated_bounds};

pub type PosId = u32;

/// The position at the end of the whole text.
pub(super) const BOTTOM: PosId = 0;

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Pos {
    Bottom,
    /// The end of a rule.
    End(RuleId),
    /// A state of the parser that a rule is the language of: the stack of such positions is the parser's own.
    State {
        rule: RuleId,
        state: u32,
    },
    /// The end of a lexeme that such a parser reads, behind a character of the class `last`.
    Token {
        rule: RuleId,
        terminal: u32,
        last: u32,
    },
    /// An expression, and the position after it.
    Then(NodeId, PosId),
    /// `least` to `most` further iterations of an expression, and the position after them.
    Again {
        body: NodeId,
        least: u32,
        most: u32,
        next: PosId,
    },
}

pub struct Positions {
    list: Vec<Pos>,
    /// The rule in which each position stands.
    rules: Vec<RuleId>,
    /// Whether each position holds a count that saturation may change.
    counts: Vec<bool>,
    ids: FxHashMap<Pos, PosId>,
    saturated: FxHashMap<(PosId, Counts), Saturated>,
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
            Pos::End(rule) | Pos::State { rule, .. } | Pos::Token { rule, .. } => (rule, false),
            Pos::Then(_, next) => (self.rule(next), self.counts(next)),
            Pos::Again { least, most, next, .. } => {
                (self.rule(next), self.counts(next) || least > self.cap + 1 || (most != UNBOUNDED && most > SMALL))
            }
        };
        let id = self.list.len() as PosId;
        self.list.push(pos);
        self.rules.push(rule);
        self.counts.push(counts);
        self.ids.insert(pos, id);
        id
    }

    /// Copies a position of another table into this one.
    pub(super) fn import(&mut self, from: &Positions, p: PosId, done: &mut FxHashMap<PosId, PosId>) -> PosId {
        // lists are as long as rules are: down to what is known, then up again
        let mut path = Vec::new();
        let mut at = p;
        let mut new = loop {
            if let Some(&known) = done.get(&at) {
                break known;
            }
            path.push(at);
            at = match from.get(at) {
                Pos::Then(_, next) | Pos::Again { next, .. } => next,
                Pos::Bottom => break BOTTOM,
                end @ (Pos::End(_) | Pos::State { .. } | Pos::Token { .. }) => break self.intern(end),
            };
        };
        for old in path.into_iter().rev() {
            new = match from.get(old) {
                Pos::Then(node, _) => self.intern(Pos::Then(node, new)),
                Pos::Again { body, least, most, .. } => self.intern(Pos::Again { body, least, most, next: new }),
                _ => new,
            };
            done.insert(old, new);
        }
        new
    }

    /// The position with its counts saturated as [`Counts`] says, and the least upper bound that was dropped. Every
    /// counted iteration takes a byte: those of a nullable body are not counted.
    pub fn saturate(&mut self, p: PosId, counts: Counts) -> Saturated {
        if !self.counts(p) {
            return (p, UNBOUNDED);
        }
        if let Some(&s) = self.saturated.get(&(p, counts)) {
            return s;
        }
        // lists are as long as rules are: down to where nothing changes, then up again
        let mut path = Vec::new();
        let mut at = p;
        while self.counts(at) {
            path.push(self.get(at));
            at = match self.get(at) {
                Pos::Then(_, next) | Pos::Again { next, .. } => next,
                _ => unreachable!("an end holds no counts"),
            };
        }
        let mut least_dropped = UNBOUNDED;
        for pos in path.into_iter().rev() {
            at = self.intern(match pos {
                Pos::Then(node, _) => Pos::Then(node, at),
                Pos::Again { body, least, most, .. } => {
                    let (least, most, dropped) = saturated_bounds((least, most), 1, self.cap, counts);
                    least_dropped = least_dropped.min(dropped);
                    Pos::Again { body, least, most, next: at }
                }
                _ => unreachable!("an end holds no counts"),
            });
        }
        self.saturated.insert((p, counts), (at, least_dropped));
        (at, least_dropped)
    }
}
