//! Zero-width assertions inside one terminal, by derivatives.
//!
//! Within a scope, `Ahead(B)` before `k` means `B & k`: the whole rest is in both. `Behind(D)` carries the derivative
//! of its language by the text so far. So every byte that is consumed advances all `Behind`s in what follows (`shift`),
//! and the assertion holds where `D` is nullable. There are finitely many residuals: each is made of one of the
//! expression without assertions and one of each assertion's language. (Derivatives with lookarounds: Miyazaki and
//! Minamide 2019; Varatalu, Veanes and Ernits 2025.)

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::arena::{Arena, EMPTY, EPS, Flags, Id, List, Node, TOP};
use super::derive::Parts;
use crate::byteset::ByteSet;
use crate::ir::UNBOUNDED;
use crate::recursion::deep;

/// Units of work of one step of a derivative with assertions, and of looking at one expression for sets of bytes.
const STEP: usize = 8;
const LOOK: usize = 3;

/// What is found once for all derivatives of one scope.
#[derive(Default)]
struct Scoped {
    /// Derivatives of the expressions in it without assertions.
    plain: FxHashMap<Id, Parts>,
    /// The bytes that expressions may begin with.
    leading: FxHashMap<Id, ByteSet>,
    /// Expressions with their `Behind`s advanced by the current byte.
    shifted: FxHashMap<Id, Id>,
}

impl Arena {
    /// Derivatives of `x` closed over by `close`.
    pub(super) fn scope_parts(&mut self, x: Id, close: fn(&mut Arena, Id) -> Id) -> Parts {
        let mut memo = Scoped::default();
        let mut sets = Vec::new();
        self.distinctions(x, true, &mut sets, &mut FxHashMap::default(), &mut memo);
        sets.sort_unstable();
        sets.dedup();
        let mut out = Parts::new();
        for class in minterms(self.alphabet, &sets) {
            let byte = class.iter().next().expect("a class has a byte");
            memo.shifted.clear();
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

    /// Adds the sets of bytes that tell derivatives of `x` apart: those that it can begin with, if it stands at the
    /// `front`, and those that tell derivatives of its `Behind`s apart.
    fn distinctions(
        &mut self,
        x: Id,
        front: bool,
        out: &mut Vec<ByteSet>,
        seen: &mut FxHashMap<(Id, bool), ()>,
        memo: &mut Scoped,
    ) {
        if !front && !self.open(x) || self.is_spent() || seen.insert((x, front), ()).is_some() {
            return;
        }
        self.pay_for(LOOK);
        if front && self.is_plain(x) {
            out.extend(self.plain_parts(x, memo).iter().map(|p| p.0));
        }
        let front = front && !self.is_plain(x);
        let mut go = |arena: &mut Arena, i: Id, front: bool| deep(|| arena.distinctions(i, front, out, seen, memo));
        match self.nodes[x as usize] {
            // a terminal inside this one has a beginning of its own
            Node::Empty | Node::Eps | Node::Accept(_) | Node::Class(_) => {}
            Node::Unit(_) | Node::Lexeme(_) | Node::Under(..) | Node::Past(_) | Node::After(..) => {}
            Node::Concat(a, b) => {
                go(self, a, front);
                let passes = self.open(a) || self.nullable(a);
                go(self, b, front && passes);
            }
            Node::Alt(k) | Node::And(k) => {
                let kids: List = self.list(k).into();
                self.pay_for(kids.len() / 2); // most are passed over
                kids.into_iter().for_each(|i| go(self, i, front));
            }
            Node::Not(a) | Node::Repeat(a, ..) | Node::Ahead(a) | Node::Scope(a) => go(self, a, front),
            Node::Behind(d) => {
                let d = self.scope(d);
                out.extend(self.plain_parts(d, memo).iter().map(|p| p.0));
            }
        }
    }

    /// Whether [`Arena::parts`] can derive the expression: it has no assertion outside scopes of its own.
    fn is_plain(&self, x: Id) -> bool {
        !self.open(x) || matches!(self.nodes[x as usize], Node::And(_) | Node::Not(_) | Node::Scope(_))
    }

    /// The derivatives of an expression that is plain.
    fn plain_parts<'m>(&mut self, x: Id, memo: &'m mut Scoped) -> &'m Parts {
        memo.plain.entry(x).or_insert_with(|| deep(|| self.parts(x)))
    }

    fn plain_derivative(&mut self, x: Id, byte: u8, memo: &mut Scoped) -> Id {
        self.plain_parts(x, memo).iter().find(|(set, _)| set.contains(byte)).map_or(EMPTY, |p| p.1)
    }

    /// The bytes that `x` may begin with, whatever its assertions say.
    fn leading(&mut self, x: Id, memo: &mut Scoped) -> ByteSet {
        if let Some(&known) = memo.leading.get(&x) {
            return known;
        }
        let bytes = match self.nodes[x as usize] {
            _ if self.is_plain(x) => self.plain_parts(x, memo).iter().fold(ByteSet::NONE, |all, part| all.or(part.0)),
            Node::Concat(a, b) => {
                let first = deep(|| self.leading(a, memo));
                if self.open(a) || self.nullable(a) { first.or(deep(|| self.leading(b, memo))) } else { first }
            }
            Node::Alt(k) => {
                let kids: List = self.list(k).into();
                kids.into_iter().fold(ByteSet::NONE, |all, i| all.or(deep(|| self.leading(i, memo))))
            }
            Node::Repeat(body, ..) => deep(|| self.leading(body, memo)),
            _ => ByteSet::NONE, // assertions
        };
        memo.leading.insert(x, bytes);
        bytes
    }

    /// The derivative by `byte` of `x k`, where `x` consumes the byte; `k` is what follows, not yet shifted.
    fn derive_in_scope(&mut self, x: Id, k: Id, byte: u8, memo: &mut Scoped) -> Id {
        if !self.leading(x, memo).contains(byte) {
            self.pay_for(1);
            return EMPTY;
        }
        self.pay_for(STEP);
        if self.is_spent() {
            return EMPTY;
        }
        if self.is_plain(x) {
            return match self.plain_derivative(x, byte, memo) {
                EMPTY => EMPTY,
                hit => {
                    let rest = self.shift(k, byte, memo);
                    self.concat(hit, rest)
                }
            };
        }
        match self.nodes[x as usize] {
            Node::Concat(a, b) => {
                let rest = self.concat(b, k);
                let first = deep(|| self.derive_in_scope(a, rest, byte, memo));
                let mut all = List::from_slice(&[first]);
                let conditions = self.empty_under(a);
                if !conditions.is_empty() {
                    let after = deep(|| self.derive_in_scope(b, k, byte, memo));
                    for condition in conditions {
                        let ahead = deep(|| self.derive_in_scope(condition, EPS, byte, memo));
                        all.push(self.conjunction(ahead, after));
                    }
                }
                self.alt(&all)
            }
            Node::Alt(kids) => {
                let kids: List = self.list(kids).into();
                let all: List = kids.into_iter().map(|i| deep(|| self.derive_in_scope(i, k, byte, memo))).collect();
                self.alt(&all)
            }
            Node::Repeat(body, least, most) => {
                let fewer = if most == UNBOUNDED { most } else { most - 1 };
                let again = self.repeat(body, least.saturating_sub(1), fewer);
                let rest = self.concat(again, k);
                let mut all = List::from_slice(&[deep(|| self.derive_in_scope(body, rest, byte, memo))]);
                // iterations that match the empty text here count, under their condition
                let conditions = if least > 1 { self.empty_under(body) } else { SmallVec::new() };
                if !conditions.is_empty() {
                    let again = self.repeat(body, 0, fewer);
                    let rest = self.concat(again, k);
                    let after = deep(|| self.derive_in_scope(body, rest, byte, memo));
                    for condition in conditions {
                        let ahead = deep(|| self.derive_in_scope(condition, EPS, byte, memo));
                        all.push(self.conjunction(ahead, after));
                    }
                }
                self.alt(&all)
            }
            Node::Ahead(_) | Node::Behind(_) => EMPTY,
            _ => unreachable!("the others are plain"),
        }
    }

    /// Intersection of two whole-rest languages, each with its own assertions. If the second has tags, the first one
    /// goes on behind them.
    fn conjunction(&mut self, a: Id, b: Id) -> Id {
        if a == TOP || b == TOP {
            return if a == TOP { b } else { a };
        }
        if self.flag(b, Flags::TAGGED) {
            let b = self.lexeme(b);
            return self.under(a, b);
        }
        let (a, b) = (self.scope(a), self.scope(b));
        self.and(&[a, b])
    }

    /// The conditions (on the whole rest) under any one of which `x` matches the empty text here.
    pub(super) fn empty_under(&mut self, x: Id) -> SmallVec<[Id; 2]> {
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
    fn shift(&mut self, x: Id, byte: u8, memo: &mut Scoped) -> Id {
        if !self.flag(x, Flags::BEHIND) {
            return x;
        }
        if let Some(&done) = memo.shifted.get(&x) {
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
                let next = self.plain_derivative(d, byte, memo);
                self.behind(next)
            }
            _ => x,
        };
        memo.shifted.insert(x, out);
        out
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
