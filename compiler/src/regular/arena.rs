//! Hash-consed regular expressions and their smart constructors.
//!
//! The normal forms keep the set of derivatives small: unions are flat, sorted, without repetition, with common
//! heads factored out (which turns enumerations into tries) and touching repetition ranges merged (which keeps
//! `(a|aa){0,500}` from remembering every count).

use hashbrown::HashTable;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::ByteSet;
use crate::deep;
use crate::ir::UNBOUNDED;

/// An expression's id in its arena.
pub type Id = u32;

/// The empty language; as a residual: dead.
pub const EMPTY: Id = 0;
/// The empty text.
pub const EPS: Id = 1;
/// Every byte string.
pub const TOP: Id = 2;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Kids {
    start: u32,
    len: u32,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Node {
    Empty,
    Eps,
    Class(u32),
    Concat(Id, Id),
    Alt(Kids),
    And(Kids),
    Not(Id),
    Repeat(Id, u32, u32),
    /// The end of a terminal: what follows is at this position of the context-free level.
    Accept(u32),
    /// The whole rest of the enclosing scope is in the operand.
    Ahead(Id),
    /// The operand is what remains of a language that all the text so far must be in.
    Behind(Id),
    /// An operand of a Boolean operator in which `Ahead` and `Behind` occur: they look at all of the terminal.
    Scope(Id),
    /// A whole terminal in which `Ahead` and `Behind` occur: they look no further.
    Unit(Id),
}

/// An expression taken apart, for those who match on its shape.
#[derive(Clone, Copy, Debug)]
pub enum Expr<'a> {
    Accept(u32),
    Alt(&'a [Id]),
    Concat(Id, Id),
    Other,
}

/// Properties of an expression that are passed up at construction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Flags(pub(super) u8);

impl Flags {
    pub(super) const NULLABLE: u8 = 1;
    /// Contains a Boolean operator or a scope: alive only if a search says so.
    pub(super) const SEARCH: u8 = 2;
    /// Contains `Ahead` or `Behind` outside a scope.
    pub(super) const LOOKS: u8 = 4;
    /// Contains `Accept`.
    pub(super) const TAGGED: u8 = 8;
    /// Contains a count that saturation may change (or may contain one: positions are asked).
    pub(super) const COUNTS: u8 = 16;
    /// Surely a finite language.
    pub(super) const FINITE: u8 = 32;
    /// Surely an infinite language.
    pub(super) const INFINITE: u8 = 64;
    /// Flags that pass from any part to the whole.
    const SPREADING: u8 = Self::SEARCH | Self::LOOKS | Self::TAGGED | Self::COUNTS;
    /// Flags that the whole has if all parts have them.
    const SHARED: u8 = Self::NULLABLE | Self::FINITE;

    #[inline]
    pub(super) fn has(self, flag: u8) -> bool {
        self.0 & flag != 0
    }
}

pub struct Arena {
    pub(super) nodes: Vec<Node>,
    pub(super) flags: Vec<Flags>,
    /// Keyed structural hash: equal for equal structure in every arena of this process.
    hashes: Vec<u128>,
    kids: Vec<Id>,
    table: HashTable<Id>,
    pub(super) sets: Vec<ByteSet>,
    set_ids: FxHashMap<ByteSet, u32>,
    /// Bytes that the vocabulary can spell on their own; no class holds another.
    pub(super) alphabet: ByteSet,
    /// Counts above this look alike to any single token.
    pub(super) cap: u32,
    /// Hash keys of this process.
    keys: (u128, u128),
    pub(super) dfa: super::dfa::Tables,
    pub(super) saturated: FxHashMap<(Id, super::Counts), super::Saturated>,
    /// For masks: the bytes on which a residual loops, where it was asked for.
    pub(crate) loops: FxHashMap<Id, Option<ByteSet>>,
}

pub(super) type List = SmallVec<[Id; 8]>;

impl Arena {
    /// `alphabet`: the bytes that may occur; `cap`: a number of bytes that no token exceeds.
    pub fn new(alphabet: ByteSet, cap: u32, keys: (u128, u128)) -> Arena {
        let mut arena = Arena {
            nodes: Vec::new(),
            flags: Vec::new(),
            hashes: Vec::new(),
            kids: Vec::new(),
            table: HashTable::new(),
            sets: Vec::new(),
            set_ids: FxHashMap::default(),
            alphabet,
            cap,
            keys: (keys.0 | 1, keys.1 | 1),
            dfa: super::dfa::Tables::default(),
            saturated: FxHashMap::default(),
            loops: FxHashMap::default(),
        };
        arena.intern(Node::Empty, &[], Flags(Flags::FINITE));
        arena.intern(Node::Eps, &[], Flags(Flags::NULLABLE | Flags::FINITE));
        arena.intern(Node::Not(EMPTY), &[], Flags(Flags::NULLABLE | Flags::INFINITE));
        arena
    }

    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    pub fn is_empty(&self) -> bool {
        false // it always holds EMPTY, EPS and TOP
    }

    /// Bytes that this arena holds, roughly.
    pub fn memory(&self) -> usize {
        self.nodes.len() * 48 + self.kids.len() * 4 + self.dfa.memory()
    }

    #[inline]
    pub fn nullable(&self, id: Id) -> bool {
        self.flags[id as usize].has(Flags::NULLABLE)
    }

    #[inline]
    pub(super) fn flag(&self, id: Id, flag: u8) -> bool {
        self.flags[id as usize].has(flag)
    }

    /// A hash of the expression's structure, comparable between arenas of one process.
    pub fn hash(&self, id: Id) -> u128 {
        self.hashes[id as usize]
    }

    pub fn expr(&self, id: Id) -> Expr<'_> {
        match self.nodes[id as usize] {
            Node::Accept(p) => Expr::Accept(p),
            Node::Alt(k) => Expr::Alt(self.list(k)),
            Node::Concat(h, t) => Expr::Concat(h, t),
            _ => Expr::Other,
        }
    }

    #[inline]
    pub(super) fn list(&self, k: Kids) -> &[Id] {
        &self.kids[k.start as usize..(k.start + k.len) as usize]
    }

    fn mix(&self, a: u128, b: u128) -> u128 {
        let x = (a ^ self.keys.0).wrapping_mul(self.keys.1).rotate_left(59) ^ b;
        let y = x.wrapping_mul(self.keys.0 | 1);
        y ^ (y >> 67)
    }

    /// Interns a node; `kids` are the operands of an `Alt` or `And`, whose own `Kids` are filled in here.
    fn intern(&mut self, node: Node, kids: &[Id], flags: Flags) -> Id {
        let h = |id: Id| self.hashes[id as usize];
        // unions and intersections are sets: their operands' order is that of ids, which differs between arenas
        let sum = |ids: &[Id]| ids.iter().fold(0u128, |acc, &i| acc.wrapping_add(self.mix(h(i), 77)));
        let hash = match node {
            Node::Empty => self.mix(1, 0),
            Node::Eps => self.mix(2, 0),
            Node::Class(s) => {
                let w = self.sets[s as usize].0;
                self.mix(
                    self.mix(3, u128::from(w[0]) << 64 | u128::from(w[1])),
                    u128::from(w[2]) << 64 | u128::from(w[3]),
                )
            }
            Node::Concat(a, b) => self.mix(self.mix(4, h(a)), h(b)),
            Node::Alt(_) => self.mix(5, sum(kids)),
            Node::And(_) => self.mix(6, sum(kids)),
            Node::Not(a) => self.mix(7, h(a)),
            Node::Repeat(a, m, n) => self.mix(self.mix(8, h(a)), u128::from(m) << 32 | u128::from(n)),
            Node::Accept(p) => self.mix(9, u128::from(p)),
            Node::Ahead(a) => self.mix(10, h(a)),
            Node::Behind(a) => self.mix(11, h(a)),
            Node::Scope(a) => self.mix(12, h(a)),
            Node::Unit(a) => self.mix(13, h(a)),
        };
        let same = |&id: &Id| match (self.nodes[id as usize], node) {
            (Node::Alt(k), Node::Alt(_)) | (Node::And(k), Node::And(_)) => self.list(k) == kids,
            (a, b) => a == b,
        };
        if let Some(&id) = self.table.find(hash as u64, same) {
            return id;
        }
        let stored = Kids { start: self.kids.len() as u32, len: kids.len() as u32 };
        let node = match node {
            Node::Alt(_) => Node::Alt(stored),
            Node::And(_) => Node::And(stored),
            other => other,
        };
        self.kids.extend_from_slice(kids);
        let id = self.nodes.len() as Id;
        self.nodes.push(node);
        self.flags.push(flags);
        self.hashes.push(hash);
        let hashes = &self.hashes;
        self.table.insert_unique(hash as u64, id, |&i| hashes[i as usize] as u64);
        id
    }

    fn any_of(&self, ids: &[Id]) -> u8 {
        ids.iter().fold(0, |acc, &i| acc | self.flags[i as usize].0)
    }

    fn all_of(&self, ids: &[Id]) -> u8 {
        ids.iter().fold(u8::MAX, |acc, &i| acc & self.flags[i as usize].0)
    }

    /// Flags of a union.
    fn union_flags(&self, ids: &[Id]) -> Flags {
        Flags((self.any_of(ids) & !Flags::FINITE) | (self.all_of(ids) & Flags::FINITE))
    }

    /// "This infinite language but for those finitely many texts", like any key but the declared ones: infinite,
    /// which no search has to find out.
    fn infinite_but_for_finitely_many(&self, ids: &[Id]) -> bool {
        let excluded = |i: &Id| matches!(self.nodes[*i as usize], Node::Not(x) if self.flag(x, Flags::FINITE));
        let kept: SmallVec<[Id; 2]> = ids.iter().copied().filter(|i| !excluded(i)).collect();
        matches!(kept[..], [only] if self.flag(only, Flags::INFINITE) && !self.flag(only, Flags::LOOKS))
    }

    /// One byte of the set (those bytes of it that the vocabulary can spell).
    pub fn class(&mut self, set: ByteSet) -> Id {
        let set = set.and(self.alphabet);
        if set.is_empty() {
            return EMPTY;
        }
        let sets = &mut self.sets;
        let id = *self.set_ids.entry(set).or_insert_with(|| {
            sets.push(set);
            sets.len() as u32 - 1
        });
        self.intern(Node::Class(id), &[], Flags(Flags::FINITE))
    }

    pub fn byte(&mut self, b: u8) -> Id {
        self.class(ByteSet::range(b, b))
    }

    pub fn literal(&mut self, text: &[u8]) -> Id {
        self.literal_then(text, EPS)
    }

    pub(super) fn literal_then(&mut self, text: &[u8], then: Id) -> Id {
        text.iter().rev().fold(then, |rest, &b| {
            let head = self.byte(b);
            self.concat(head, rest)
        })
    }

    /// One after the other; right-associated.
    pub fn concat(&mut self, head: Id, tail: Id) -> Id {
        if head == EMPTY || tail == EMPTY {
            return EMPTY;
        }
        if head == EPS {
            return tail;
        }
        if tail == EPS {
            return head;
        }
        match self.nodes[head as usize] {
            Node::Concat(a, b) => {
                let rest = deep(|| self.concat(b, tail));
                return self.concat(a, rest);
            }
            Node::Repeat(x, a, b) => {
                // x{a,b} x{c,d} = x{a+c,b+d}
                let (next, rest) = match self.nodes[tail as usize] {
                    Node::Concat(h, t) => (h, t),
                    _ => (tail, EPS),
                };
                if let Node::Repeat(y, c, d) = self.nodes[next as usize]
                    && x == y
                    && !self.flag(x, Flags::LOOKS)
                {
                    let most = if b == UNBOUNDED || d == UNBOUNDED { UNBOUNDED } else { b.saturating_add(d) };
                    let joined = self.repeat(x, a.saturating_add(c).min(UNBOUNDED - 1), most);
                    return self.concat(joined, rest);
                }
            }
            Node::Not(EMPTY) if tail == TOP => return TOP,
            _ => {}
        }
        let (h, t) = (self.flags[head as usize].0, self.flags[tail as usize].0);
        let mut flags = (h & t & Flags::SHARED) | ((h | t) & Flags::SPREADING);
        if (h | t) & Flags::INFINITE != 0 && flags & Flags::SEARCH == 0 {
            flags |= Flags::INFINITE; // the other part is not empty
        }
        self.intern(Node::Concat(head, tail), &[], Flags(flags))
    }

    /// `least` to `most` times.
    pub fn repeat(&mut self, x: Id, mut least: u32, most: u32) -> Id {
        if most == 0 || x == EPS {
            return EPS;
        }
        if x == EMPTY {
            return if least == 0 { EPS } else { EMPTY };
        }
        let below = self.flags[x as usize];
        if below.has(Flags::NULLABLE) && !below.has(Flags::LOOKS) {
            least = 0;
        }
        if (least, most) == (1, 1) {
            return x;
        }
        if x == TOP {
            return TOP;
        }
        if let Node::Repeat(y, 0, UNBOUNDED) = self.nodes[x as usize]
            && !below.has(Flags::LOOKS)
        {
            return self.repeat(y, 0, UNBOUNDED);
        }
        let mut flags = below.0 & (Flags::SPREADING | Flags::INFINITE);
        if most != UNBOUNDED {
            flags |= below.0 & Flags::FINITE;
        } else if !below.has(Flags::SEARCH) {
            flags |= Flags::INFINITE; // the body is neither empty nor the empty text
        }
        if least == 0 || below.has(Flags::NULLABLE) {
            flags |= Flags::NULLABLE;
        }
        if least > self.cap + 1 || (most != UNBOUNDED && most > super::SMALL) {
            flags |= Flags::COUNTS;
        }
        self.intern(Node::Repeat(x, least, most), &[], Flags(flags))
    }

    /// The end of a terminal. `counts`: whether the position holds counts that saturation may change.
    pub fn accept(&mut self, position: u32, counts: bool) -> Id {
        let counts = if counts { Flags::COUNTS } else { 0 };
        self.intern(Node::Accept(position), &[], Flags(Flags::NULLABLE | Flags::TAGGED | counts))
    }

    pub fn alt2(&mut self, a: Id, b: Id) -> Id {
        if a == b || b == EMPTY {
            return a;
        }
        if a == EMPTY {
            return b;
        }
        self.alt(&[a, b])
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
        flat.sort_unstable();
        flat.dedup();
        self.merge_classes(&mut flat);
        self.merge_heads(&mut flat);
        if flat.len() > 1 && flat[0] == EPS && flat[1..].iter().any(|&i| self.plain_nullable(i)) {
            flat.remove(0);
        }
        match flat.len() {
            0 => EMPTY,
            1 => flat[0],
            _ => {
                let flags = self.union_flags(&flat);
                self.intern(Node::Alt(Kids { start: 0, len: 0 }), &flat, flags)
            }
        }
    }

    /// Nullable without a tag or condition, so that a union with the empty text adds nothing.
    fn plain_nullable(&self, id: Id) -> bool {
        let f = self.flags[id as usize];
        f.has(Flags::NULLABLE) && !f.has(Flags::TAGGED) && !f.has(Flags::LOOKS)
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
            let tail = if tails.len() == 1 { tails[0] } else { deep(|| self.alt(&tails)) };
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

    /// A union that the caller knows to be in normal form but for order (the branches of a trie).
    pub(super) fn alt_of_branches(&mut self, mut branches: List) -> Id {
        branches.sort_unstable();
        match branches.len() {
            0 => EMPTY,
            1 => branches[0],
            _ => {
                let flags = self.union_flags(&branches);
                self.intern(Node::Alt(Kids { start: 0, len: 0 }), &branches, flags)
            }
        }
    }

    /// Intersection. Operands carry no tags.
    pub fn and(&mut self, items: &[Id]) -> Id {
        let mut flat: List = SmallVec::new();
        for &i in items {
            match self.nodes[i as usize] {
                Node::Empty => return EMPTY,
                Node::Not(EMPTY) => {}
                Node::And(k) => flat.extend_from_slice(self.list(k)),
                _ => flat.push(i),
            }
        }
        flat.sort_unstable();
        flat.dedup();
        let opposite = |arena: &Arena, i: Id| match arena.nodes[i as usize] {
            Node::Not(x) => flat.binary_search(&x).is_ok(),
            _ => false,
        };
        if flat.iter().any(|&i| opposite(self, i)) {
            return EMPTY;
        }
        match flat.len() {
            0 => TOP,
            1 => flat[0],
            _ if flat[0] == EPS => {
                if flat.iter().all(|&i| self.nullable(i)) {
                    EPS
                } else {
                    EMPTY
                }
            }
            _ => {
                let nullable = flat.iter().all(|&i| self.nullable(i));
                let search = if self.infinite_but_for_finitely_many(&flat) { Flags::INFINITE } else { Flags::SEARCH };
                let flags = (self.any_of(&flat) & Flags::LOOKS) | search | u8::from(nullable);
                self.intern(Node::And(Kids { start: 0, len: 0 }), &flat, Flags(flags))
            }
        }
    }

    /// Complement. The operand carries no tag.
    pub fn not(&mut self, x: Id) -> Id {
        if let Node::Not(y) = self.nodes[x as usize] {
            return y;
        }
        let f = self.flags[x as usize];
        let flags = (f.0 & !Flags::NULLABLE & !Flags::COUNTS) | Flags::SEARCH | u8::from(!f.has(Flags::NULLABLE));
        self.intern(Node::Not(x), &[], Flags(flags))
    }

    pub fn ahead(&mut self, x: Id) -> Id {
        if x == EMPTY || x == TOP {
            return if x == TOP { EPS } else { EMPTY };
        }
        let flags = (self.flags[x as usize].0 & Flags::NULLABLE) | Flags::LOOKS | Flags::SEARCH;
        self.intern(Node::Ahead(x), &[], Flags(flags))
    }

    pub fn behind(&mut self, x: Id) -> Id {
        if x == EMPTY || x == TOP {
            return if x == TOP { EPS } else { EMPTY };
        }
        let flags = (self.flags[x as usize].0 & Flags::NULLABLE) | Flags::LOOKS | Flags::SEARCH;
        self.intern(Node::Behind(x), &[], Flags(flags))
    }

    /// An operand of a Boolean operator: its assertions become conditions on its own rest, as derivatives need it.
    pub fn scope(&mut self, x: Id) -> Id {
        self.closed_over(x, Node::Scope(x))
    }

    /// A whole terminal: `Ahead` and `Behind` inside it look no further.
    pub fn unit(&mut self, x: Id) -> Id {
        self.closed_over(x, Node::Unit(x))
    }

    fn closed_over(&mut self, x: Id, node: Node) -> Id {
        if !self.flag(x, Flags::LOOKS) {
            return x;
        }
        let flags = (self.flags[x as usize].0 & Flags::NULLABLE) | Flags::SEARCH;
        self.intern(node, &[], Flags(flags))
    }

    /// The positions whose `Accept` can be reached without another byte.
    pub fn tags(&self, id: Id, out: &mut SmallVec<[u32; 4]>) {
        if !self.flag(id, Flags::TAGGED) || !self.nullable(id) {
            return;
        }
        match self.nodes[id as usize] {
            Node::Accept(p) => {
                if !out.contains(&p) {
                    out.push(p);
                }
            }
            Node::Concat(_, t) => deep(|| self.tags(t, out)), // the head is nullable, too
            Node::Alt(k) => self.list(k).iter().for_each(|&i| deep(|| self.tags(i, out))),
            _ => {}
        }
    }

    /// The one position that all of the expression's `Accept`s name, and the expression without them.
    /// `None` if it names several.
    pub fn untag(&mut self, id: Id) -> Option<(Id, u32)> {
        match self.nodes[id as usize] {
            Node::Accept(p) => Some((EPS, p)),
            Node::Concat(h, t) => {
                let (rest, p) = deep(|| self.untag(t))?;
                Some((self.concat(h, rest), p))
            }
            Node::Alt(k) => {
                let kids: List = self.list(k).into();
                let mut only = None;
                let mut out: List = SmallVec::new();
                for i in kids {
                    let (x, p) = deep(|| self.untag(i))?;
                    if only.is_some_and(|o| o != p) {
                        return None;
                    }
                    only = Some(p);
                    out.push(x);
                }
                Some((self.alt(&out), only?))
            }
            _ => None,
        }
    }
}

impl Arena {
    pub(super) fn keys(&self) -> (u128, u128) {
        self.keys
    }

    pub(super) fn holds_counts(&self, id: Id) -> bool {
        self.flag(id, Flags::COUNTS)
    }

    /// Counts above this look alike to any single token.
    pub fn cap(&self) -> u32 {
        self.cap
    }

    /// A repetition at the head: its body, its upper bound, and what comes after it.
    pub fn counted(&self, id: Id) -> Option<(Id, u32, Id)> {
        let (head, rest) = match self.nodes[id as usize] {
            Node::Concat(head, rest) => (head, rest),
            _ => (id, EPS),
        };
        match self.nodes[head as usize] {
            Node::Repeat(body, _, most) => Some((body, most, rest)),
            _ => None,
        }
    }

    /// Whether the vocabulary can spell the byte on its own.
    pub fn spells(&self, b: u8) -> bool {
        self.alphabet.contains(b)
    }
}
