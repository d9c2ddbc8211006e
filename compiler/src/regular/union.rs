//! Unions in normal form.
//!
//! Unions are flat, sorted and without repetition (the similarity of Brzozowski 1964). Common heads are factored out,
//! which turns enumerations into tries, and adjacent ranges of repetitions are merged, so that residuals of
//! `(a|aa){0,500}` are ranges of counts and not sets of them.

use smallvec::SmallVec;

use super::arena::{Arena, EMPTY, EPS, Flags, Id, Kids, List, Node, TOP};
use crate::budget::Budget;
use crate::byteset::ByteSet;
use crate::error::Result;
use crate::ir::UNBOUNDED;
use crate::recursion::deep;

/// A union that cost so much, in operands, is kept.
const DEAR: u64 = 500;

/// Loops over fewer bytes seldom absorb anything.
const WIDE: u32 = 32;

impl Arena {
    /// The union of some expressions, or the limit that making it hit.
    pub fn alt_within(&mut self, items: &[Id], budget: &mut Budget) -> Result<Id> {
        if let [only] = items {
            return Ok(*only);
        }
        self.metered(budget, |arena| arena.alt(items))
    }

    /// Union.
    pub fn alt(&mut self, items: &[Id]) -> Id {
        let mut flat: List = SmallVec::new();
        for &i in items {
            match self.nodes[i as usize] {
                Node::Empty => {}
                Node::Not(EMPTY) => return TOP,
                Node::Alt(k) => flat.extend_from_slice(self.list(k)),
                _ => flat.push(i),
            }
        }
        self.pay_for(2 * flat.len());
        if self.is_spent() {
            return EMPTY;
        }
        flat.sort_unstable();
        flat.dedup();
        self.absorb_conditions(&mut flat);
        self.merge_classes(&mut flat);
        self.merge_heads(&mut flat);
        self.absorb(&mut flat);
        if flat.len() > 1
            && flat[0] == EPS
            && flat[1..].iter().any(|&i| self.ever_nullable(i) && !self.flag(i, Flags::TAGGED))
        {
            flat.remove(0);
        }
        match flat.len() {
            0 => EMPTY,
            1 => flat[0],
            _ => {
                let flags = self.union_flags(&flat);
                self.intern(Node::Alt(Kids::NONE), &flat, flags)
            }
        }
    }

    /// `c* t | w c* t` is `c* t` where `w` is made of `c`s. Without this identity, a residual that has found one of
    /// several words would still tell the others apart.
    fn absorb(&mut self, flat: &mut List) {
        let mut at = 0;
        while at < flat.len() && flat.len() > 1 {
            let whole = flat[at];
            let (head, tail) = if let Node::Concat(h, t) = self.nodes[whole as usize] { (h, t) } else { (whole, EPS) };
            if let Some((c, single)) = self.wide_loop(head) {
                self.pay_for(4 * flat.len()); // each of which is looked into
                let end = |x: Id| x == whole || tail == EPS && x == EPS;
                flat.retain(|x| *x == whole || !self.fades(*x, c, single, &end));
                at = flat.iter().position(|&x| x == whole).expect("it is kept");
            }
            at += 1;
        }
    }

    /// The same for what follows `c*`: `c* (t | w t)` is `c* t`.
    fn absorb_after(&mut self, head: Id, tails: &mut List) {
        let Some((c, single)) = self.wide_loop(head) else { return };
        let mut flat: List = SmallVec::new();
        self.pay_for(4 * tails.len());
        for &t in tails.iter() {
            match self.nodes[t as usize] {
                Node::Alt(k) => flat.extend_from_slice(self.list(k)),
                _ => flat.push(t),
            }
        }
        *tails =
            flat.iter().copied().filter(|&x| !self.fades(x, c, single, &|y| y != x && flat.contains(&y))).collect();
    }

    /// If `x` is a repetition, any number of times, of most characters: its body, and the characters of it that are one
    /// byte.
    fn wide_loop(&self, x: Id) -> Option<(Id, ByteSet)> {
        let Node::Repeat(c, 0, UNBOUNDED) = self.nodes[x as usize] else { return None };
        let single = self.single_bytes(c);
        (single.len() >= WIDE && !self.open(c)).then_some((c, single))
    }

    /// Whether every text of `x` is made of `c`s until it goes on as one of the ends.
    fn fades(&self, x: Id, c: Id, single: ByteSet, end: &dyn Fn(Id) -> bool) -> bool {
        end(x)
            || match self.nodes[x as usize] {
                Node::Concat(head, tail) => {
                    self.is_made_of(head, c, single) && deep(|| self.fades(tail, c, single, end))
                }
                Node::Alt(k) => self.list(k).iter().all(|&i| deep(|| self.fades(i, c, single, end))),
                _ => end(EPS) && self.is_made_of(x, c, single),
            }
    }

    /// Whether the texts of `x` are certainly in `c*`; `single`: the texts of `c` that are one byte.
    fn is_made_of(&self, x: Id, c: Id, single: ByteSet) -> bool {
        x == c
            || match self.nodes[x as usize] {
                Node::Eps => true,
                Node::Class(s) => self.sets[s as usize].minus(single).is_empty(),
                Node::Repeat(y, ..) => deep(|| self.is_made_of(y, c, single)),
                Node::Alt(k) => {
                    let whole_characters = if let Node::Alt(k) = self.nodes[c as usize] { self.list(k) } else { &[] };
                    let fits = |i: &Id| whole_characters.contains(i) || deep(|| self.is_made_of(*i, c, single));
                    self.list(k).iter().all(fits)
                }
                _ => false,
            }
    }

    /// The texts of an expression that are one byte, as far as its form shows them.
    fn single_bytes(&self, x: Id) -> ByteSet {
        let class =
            |i: Id| if let Node::Class(s) = self.nodes[i as usize] { self.sets[s as usize] } else { ByteSet::NONE };
        match self.nodes[x as usize] {
            Node::Alt(k) => self.list(k).iter().fold(ByteSet::NONE, |all, &i| all.or(class(i))),
            _ => class(x),
        }
    }

    fn merge_classes(&mut self, flat: &mut List) {
        let is_class = |arena: &Arena, i: &Id| matches!(arena.nodes[*i as usize], Node::Class(_));
        if flat.iter().filter(|i| is_class(self, i)).count() < 2 {
            return;
        }
        let mut all = ByteSet::NONE;
        for &i in flat.iter() {
            if let Node::Class(s) = self.nodes[i as usize] {
                all = all.or(self.sets[s as usize]);
            }
        }
        flat.retain(|i| !is_class(self, i));
        flat.push(self.class(all));
        flat.sort_unstable();
    }

    /// `h t | h u` becomes `h (t|u)`, and `x{a,b} t | x{c,d} t` one range where the ranges touch.
    fn merge_heads(&mut self, flat: &mut List) {
        if flat.len() < 2 {
            return;
        }
        let split = |arena: &Arena, i: Id| match arena.nodes[i as usize] {
            Node::Concat(h, t) => (h, t),
            _ => (i, EPS),
        };
        // (class of heads that may merge, head, tail): repetitions of one body count as one class
        let mut parts: SmallVec<[(Id, Id, Id); 8]> = flat
            .iter()
            .map(|&i| {
                let (h, t) = split(self, i);
                match self.nodes[h as usize] {
                    Node::Repeat(x, ..) if !self.flag(x, Flags::LOOKS) => (x, h, t),
                    _ => (h, h, t),
                }
            })
            .collect();
        parts.sort_unstable();
        if parts.windows(2).all(|w| w[0].0 != w[1].0) {
            return;
        }
        let mut out: List = SmallVec::new();
        let mut from = 0;
        while from < parts.len() {
            let mut to = from + 1;
            while to < parts.len() && parts[to].0 == parts[from].0 {
                to += 1;
            }
            if to - from == 1 {
                let (_, h, t) = parts[from];
                out.push(self.concat(h, t));
            } else {
                let group: SmallVec<[(Id, Id, Id); 8]> = parts[from..to].into();
                self.merge_group(&group, &mut out);
            }
            from = to;
        }
        out.sort_unstable();
        out.dedup();
        *flat = out;
    }

    fn merge_group(&mut self, group: &[(Id, Id, Id)], out: &mut List) {
        // first equal heads, then touching ranges with equal tails
        let mut by_head: SmallVec<[(Id, Id); 8]> = SmallVec::new();
        let mut at = 0;
        while at < group.len() {
            let head = group[at].1;
            let mut tails: List = SmallVec::new();
            while at < group.len() && group[at].1 == head {
                tails.push(group[at].2);
                at += 1;
            }
            let tail = if tails.len() == 1 {
                tails[0]
            } else {
                self.absorb_after(head, &mut tails);
                deep(|| self.alt_of_tails(&tails))
            };
            by_head.push((head, tail));
        }
        let mut ranges: SmallVec<[(Id, Id, u32, u32); 8]> = SmallVec::new();
        for (head, tail) in by_head {
            match self.nodes[head as usize] {
                Node::Repeat(x, a, b) => ranges.push((tail, x, a, b)),
                _ => {
                    let joined = self.concat(head, tail);
                    out.push(joined);
                }
            }
        }
        ranges.sort_unstable();
        let mut merged: SmallVec<[(Id, Id, u32, u32); 8]> = SmallVec::new();
        for (tail, x, a, b) in ranges {
            match merged.last_mut() {
                Some(m) if m.0 == tail && m.1 == x && a <= m.3.saturating_add(1) => m.3 = m.3.max(b),
                _ => merged.push((tail, x, a, b)),
            }
        }
        for (tail, x, a, b) in merged {
            let head = self.repeat(x, a, b);
            let joined = self.concat(head, tail);
            out.push(joined);
        }
    }

    /// The union of what follows a common head. On the ways through a graph, the same ones meet again and again.
    #[inline(never)]
    fn alt_of_tails(&mut self, tails: &[Id]) -> Id {
        if !self.unions.is_empty()
            && let Some(&known) = self.unions.get(tails)
        {
            return known;
        }
        let before = self.fuel();
        let union = self.alt(tails);
        if before - self.fuel() >= DEAR && !self.is_spent() {
            self.unions.insert(tails.into(), union);
            self.union_operands += tails.len();
        }
        union
    }

    /// A union that the caller knows to be in normal form but for order (the branches of a trie).
    pub(super) fn alt_of_branches(&mut self, mut branches: List) -> Id {
        branches.sort_unstable();
        match branches.len() {
            0 => EMPTY,
            1 => branches[0],
            _ => {
                let flags = self.union_flags(&branches);
                self.intern(Node::Alt(Kids::NONE), &branches, flags)
            }
        }
    }

    /// Flags of a union.
    fn union_flags(&self, ids: &[Id]) -> Flags {
        Flags((self.any_of(ids) & !Flags::FINITE) | (self.all_of(ids) & Flags::FINITE))
    }
}
