//! Zero-width assertions inside one terminal, by derivatives.
//!
//! Within a scope, `Ahead(B)` standing before `k` means `B & k`: the whole rest is in both. `Behind(D)` carries
//! what remains of its language after the text so far, so every byte that is consumed advances all the `Behind`s
//! in what follows (`shift`), and at the assertion itself it holds if `D` is nullable. The state set stays
//! finite: it is a product of the residual with the trackers' finitely many residuals.

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::arena::{Arena, EMPTY, EPS, Flags, Id, List, Node, TOP};
use super::byteset::ByteSet;
use super::derive::Parts;
use crate::deep;
use crate::ir::UNBOUNDED;

/// Units of work of one step of a derivative with assertions.
const STEP: u64 = 64;

impl Arena {
    /// Derivatives of `x` closed over by `close`.
    pub(super) fn scope_parts(&mut self, x: Id, close: fn(&mut Arena, Id) -> Id) -> Parts {
        let mut sets = Vec::new();
        self.sets_below(x, &mut sets, &mut FxHashMap::default());
        sets.sort_unstable();
        sets.dedup();
        let mut out = Parts::new();
        for class in minterms(self.alphabet, &sets) {
            let byte = class.iter().next().expect("a class has a byte");
            let mut memo = FxHashMap::default();
            let residual = self.derive_in_scope(x, EPS, byte, &mut memo);
            let residual = close(self, residual);
            if residual == EMPTY {
                continue;
            }
            match out.iter_mut().find(|p| p.1 == residual) {
                Some(p) => p.0 = p.0.or(class),
                None => out.push((class, residual)),
            }
        }
        out
    }

    /// Every set of bytes that an expression can look at, however far ahead.
    fn sets_below(&self, x: Id, out: &mut Vec<ByteSet>, seen: &mut FxHashMap<Id, ()>) {
        if seen.insert(x, ()).is_some() {
            return;
        }
        match self.nodes[x as usize] {
            Node::Empty | Node::Eps | Node::Accept(_) => {}
            Node::Class(s) => out.push(self.sets[s as usize]),
            Node::Concat(a, b) => {
                deep(|| self.sets_below(a, out, seen));
                deep(|| self.sets_below(b, out, seen));
            }
            Node::Alt(k) | Node::And(k) => self.list(k).iter().for_each(|&i| deep(|| self.sets_below(i, out, seen))),
            Node::Not(a) | Node::Repeat(a, ..) | Node::Ahead(a) | Node::Behind(a) | Node::Scope(a) | Node::Unit(a) => {
                deep(|| self.sets_below(a, out, seen));
            }
        }
    }

    /// The derivative by `byte` of `x k`, where `x` consumes the byte; `k` is what follows, not yet shifted.
    fn derive_in_scope(&mut self, x: Id, k: Id, byte: u8, shifts: &mut FxHashMap<Id, Id>) -> Id {
        self.fuel = self.fuel.saturating_sub(STEP);
        if self.fuel == 0 {
            return EMPTY;
        }
        match self.nodes[x as usize] {
            Node::Concat(a, b) => {
                let rest = self.concat(b, k);
                let first = deep(|| self.derive_in_scope(a, rest, byte, shifts));
                let mut all = List::from_slice(&[first]);
                let conditions = self.empty_under(a);
                if !conditions.is_empty() {
                    let after = deep(|| self.derive_in_scope(b, k, byte, shifts));
                    for condition in conditions {
                        let ahead = deep(|| self.derive_in_scope(condition, EPS, byte, shifts));
                        all.push(self.conjunction(ahead, after));
                    }
                }
                self.alt(&all)
            }
            Node::Alt(kids) => {
                let kids: List = self.list(kids).into();
                let all: List = kids.into_iter().map(|i| deep(|| self.derive_in_scope(i, k, byte, shifts))).collect();
                self.alt(&all)
            }
            Node::Repeat(body, least, most) if self.flag(body, Flags::LOOKS) => {
                let fewer = if most == UNBOUNDED { most } else { most - 1 };
                let again = self.repeat(body, least.saturating_sub(1), fewer);
                let rest = self.concat(again, k);
                let mut all = List::from_slice(&[deep(|| self.derive_in_scope(body, rest, byte, shifts))]);
                // iterations that match the empty text here count, under their condition
                let conditions = if least > 1 { self.empty_under(body) } else { SmallVec::new() };
                if !conditions.is_empty() {
                    let again = self.repeat(body, 0, fewer);
                    let rest = self.concat(again, k);
                    let after = deep(|| self.derive_in_scope(body, rest, byte, shifts));
                    for condition in conditions {
                        let ahead = deep(|| self.derive_in_scope(condition, EPS, byte, shifts));
                        all.push(self.conjunction(ahead, after));
                    }
                }
                self.alt(&all)
            }
            Node::Ahead(_) | Node::Behind(_) => EMPTY,
            _ => {
                // `x` itself has no assertion outside its own scopes
                let hit = self.parts(x).into_iter().find(|(set, _)| set.contains(byte)).map_or(EMPTY, |(_, t)| t);
                if hit == EMPTY {
                    return EMPTY;
                }
                let rest = self.shift(k, byte, shifts);
                self.concat(hit, rest)
            }
        }
    }

    /// Intersection of two whole-rest languages, each with its own assertions.
    fn conjunction(&mut self, a: Id, b: Id) -> Id {
        let (a, b) = (self.scope(a), self.scope(b));
        self.and(&[a, b])
    }

    /// The conditions (on the whole rest) under any one of which `x` matches the empty text here.
    fn empty_under(&mut self, x: Id) -> SmallVec<[Id; 2]> {
        if !self.flag(x, Flags::LOOKS) {
            return if self.nullable(x) { SmallVec::from_slice(&[TOP]) } else { SmallVec::new() };
        }
        match self.nodes[x as usize] {
            Node::Ahead(b) => SmallVec::from_slice(&[b]),
            Node::Behind(d) => {
                if self.nullable(d) {
                    SmallVec::from_slice(&[TOP])
                } else {
                    SmallVec::new()
                }
            }
            Node::Repeat(_, 0, _) => SmallVec::from_slice(&[TOP]),
            Node::Repeat(body, ..) => deep(|| self.empty_under(body)),
            Node::Concat(a, b) => {
                let (left, right) = deep(|| (self.empty_under(a), self.empty_under(b)));
                let mut out = SmallVec::new();
                for &l in &left {
                    for &r in &right {
                        let both = self.conjunction(l, r);
                        if both != EMPTY && !out.contains(&both) {
                            out.push(both);
                        }
                    }
                }
                out
            }
            Node::Alt(k) => {
                let kids: List = self.list(k).into();
                let mut out: SmallVec<[Id; 2]> = SmallVec::new();
                for i in kids {
                    for c in deep(|| self.empty_under(i)) {
                        if !out.contains(&c) {
                            out.push(c);
                        }
                    }
                }
                out
            }
            _ => SmallVec::new(),
        }
    }

    /// `x` with every `Behind` in it advanced by one byte.
    fn shift(&mut self, x: Id, byte: u8, memo: &mut FxHashMap<Id, Id>) -> Id {
        if !self.flag(x, Flags::LOOKS) && !self.holds_behind(x) {
            return x;
        }
        if let Some(&done) = memo.get(&x) {
            return done;
        }
        let out = match self.nodes[x as usize] {
            Node::Concat(a, b) => {
                let (a, b) = deep(|| (self.shift(a, byte, memo), self.shift(b, byte, memo)));
                self.concat(a, b)
            }
            Node::Alt(k) => {
                let kids: List = self.list(k).into();
                let kids: List = kids.into_iter().map(|i| deep(|| self.shift(i, byte, memo))).collect();
                self.alt(&kids)
            }
            Node::And(k) => {
                let kids: List = self.list(k).into();
                let kids: List = kids.into_iter().map(|i| deep(|| self.shift(i, byte, memo))).collect();
                self.and(&kids)
            }
            Node::Not(a) => {
                let a = deep(|| self.shift(a, byte, memo));
                self.not(a)
            }
            Node::Repeat(a, least, most) => {
                let a = deep(|| self.shift(a, byte, memo));
                self.repeat(a, least, most)
            }
            Node::Ahead(a) => {
                let a = deep(|| self.shift(a, byte, memo));
                self.ahead(a)
            }
            Node::Scope(a) => {
                let a = deep(|| self.shift(a, byte, memo));
                self.scope(a)
            }
            Node::Behind(d) => {
                let d = self.scope(d);
                let next = self.parts(d).into_iter().find(|(set, _)| set.contains(byte)).map_or(EMPTY, |(_, t)| t);
                self.behind(next)
            }
            _ => x,
        };
        memo.insert(x, out);
        out
    }

    fn holds_behind(&self, x: Id) -> bool {
        // scopes hide the flag; only they, and what Boolean operators hold, need a look inside (a terminal inside
        // this one has a beginning of its own)
        match self.nodes[x as usize] {
            Node::Scope(_) => true,
            Node::And(k) | Node::Alt(k) => self.list(k).iter().any(|&i| deep(|| self.holds_behind(i))),
            Node::Not(a) | Node::Repeat(a, ..) => deep(|| self.holds_behind(a)),
            Node::Concat(a, b) => deep(|| self.holds_behind(a)) || deep(|| self.holds_behind(b)),
            _ => false,
        }
    }
}

/// The coarsest partition of `all` that no set of `sets` cuts.
fn minterms(all: ByteSet, sets: &[ByteSet]) -> Vec<ByteSet> {
    let mut classes = vec![all];
    for &set in sets {
        let mut next = Vec::with_capacity(classes.len() + 1);
        for class in classes {
            for piece in [class.and(set), class.minus(set)] {
                if !piece.is_empty() {
                    next.push(piece);
                }
            }
        }
        classes = next;
    }
    classes
}
