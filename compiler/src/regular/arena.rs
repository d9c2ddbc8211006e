//! Hash-consed regular expressions: nodes, their properties, and the constructors of concatenation and repetition.
//!
//! The constructors apply identities, so that an expression has finitely many derivatives, and few (Brzozowski 1964).
//! The constructors of unions are in `union.rs`, those of Boolean operators and assertions in `boolean.rs`.

use std::sync::Arc;

use hashbrown::HashTable;
use rustc_hash::{FxBuildHasher, FxHashMap, FxHashSet};
use smallvec::SmallVec;

use super::characters::{Alphabet, Findings};
use super::covering::Reached;
use super::derive::Entries;
use crate::budget::Budget;
use crate::byteset::ByteSet;
use crate::error::{Error, Result};
use crate::growth::push;
use crate::ir::UNBOUNDED;
use crate::recursion::deep;
use crate::vocabulary::Characters;

/// Operands and nodes whose making counts as one step of a budget.
const PER_STEP: u64 = 4;

/// Nodes that may be copied without a meter, which would take as long.
const SMALL_ARENA: usize = 512;

/// A node takes as long to make as so many operands to look at.
const NODE: usize = 3;
/// Nodes that caches hold: with each so many more, work costs once more what it does with few.
const CACHED_NODES: usize = 1 << 18;

/// The fuel of work that is not metered.
const ENDLESS: u64 = u64::MAX;

/// Nodes that are made between two looks at the memory.
const LOOK_EVERY: Id = 1024;

/// An expression's id in its arena.
pub type Id = u32;

/// The empty language: as a residual, nothing can complete the text.
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

impl Kids {
    /// A placeholder that [`Arena::intern`] replaces.
    pub(super) const NONE: Kids = Kids { start: 0, len: 0 };
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
    /// A lookahead: the whole rest of the enclosing scope is in the operand.
    Ahead(Id),
    /// A lookbehind: the text of the scope so far is in a language. The operand is that language's derivative by this
    /// text.
    Behind(Id),
    /// An operand of a Boolean operator in which `Ahead` and `Behind` occur: they see all of the terminal.
    Scope(Id),
    /// A whole terminal in which `Ahead` and `Behind` occur: they see no further.
    Unit(Id),
    /// A terminal with its tags, in which `Ahead` and `Behind` occur: what is ahead goes on behind the tags.
    Lexeme(Id),
    /// The texts of the second operand, which has tags, where the whole rest, behind the tags too, is in the first.
    Under(Id, Id),
    /// A condition that only the beginnings of lexemes know: the character before is of this class. Any rest meets it.
    Past(u32),
    /// The texts of the operand, a lexeme that has not begun, if the character before them is of this class.
    After(u32, Id),
}

/// How a residual can be split to be followed part by part.
#[derive(Clone, Copy, Debug)]
pub enum Form {
    /// One byte of the set, then the rest.
    Byte(ByteSet, Id),
    /// A part that holds no tag, then the rest.
    Then(Id, Id),
    /// A union of so many operands; see [`Arena::operand`].
    Union(usize),
    /// It cannot be split.
    Whole,
}

/// Properties of an expression, derived from its operands' when it is made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Flags(pub(super) u8);

impl Flags {
    pub(super) const NULLABLE: u8 = 1;
    /// Contains a Boolean operator or a scope: whether it is empty takes a search.
    pub(super) const SEARCH: u8 = 2;
    /// Contains `Ahead` or `Behind` outside a scope.
    pub(super) const LOOKS: u8 = 4;
    /// Contains `Accept`.
    pub(super) const TAGGED: u8 = 8;
    /// Contains a count that saturation may change, or an `Accept` whose position holds one.
    pub(super) const COUNTS: u8 = 16;
    /// Surely a finite language.
    pub(super) const FINITE: u8 = 32;
    /// Surely an infinite language.
    pub(super) const INFINITE: u8 = 64;
    /// Contains `Behind` outside a `Unit`: its language, and whether it is nullable, depend on the text before it.
    pub(super) const BEHIND: u8 = 128;
    /// Flags that pass from any part to the whole.
    const SPREADING: u8 = Self::SEARCH | Self::LOOKS | Self::BEHIND | Self::TAGGED | Self::COUNTS;
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
    /// Keyed structural hashes: equal for equal structures in all arenas of this process.
    hashes: Vec<u128>,
    kids: Vec<Id>,
    table: HashTable<Id>,
    pub(super) sets: Vec<ByteSet>,
    set_ids: FxHashMap<ByteSet, u32>,
    /// Bytes of the texts that the vocabulary can spell; no class holds another.
    pub(super) alphabet: ByteSet,
    /// Bytes that some class asked for although the vocabulary spells them inside longer tokens only.
    pub(super) missed: ByteSet,
    pub(super) inner: ByteSet,
    /// The characters that texts are made of; `None`: they are made of bytes.
    pub(super) characters: Option<Arc<Characters>>,
    pub(super) findings: Findings,
    /// What may still be made in [`Arena::metered`], in operands and nodes. At 0 all work stops early, and its result
    /// means nothing.
    fuel: u64,
    /// Bytes that the arena may hold.
    pub most_memory: usize,
    /// The limit that this is a part of, as errors have it.
    pub max_memory: usize,
    /// No token can tell counts above this apart.
    pub(super) cap: u32,
    /// Hash keys of this process.
    keys: (u128, u128),
    pub(super) dfa: super::dfa::Tables,
    /// Derivatives of expressions without tags.
    pub(super) derived: FxHashMap<Id, (u32, u32)>,
    /// Derivatives that are known, one expression after another.
    pub(super) derivatives: Vec<(ByteSet, Id)>,
    /// Empty lists, to be used again.
    pub(super) spare_entries: Vec<Entries>,
    /// Unions of what follows a common head, as far as they were dear.
    pub(super) unions: FxHashMap<Box<[Id]>, Id>,
    /// The operands of all of these.
    pub(super) union_operands: usize,
    /// Counted repetitions as grammars have them, of which no iteration is done.
    pub(super) written: FxHashSet<Id>,
    /// The slack of intersections, as far as known; see `slack.rs`.
    pub(super) slacks: FxHashMap<Id, Option<u32>>,
    pub(super) slacks_from_forms: FxHashMap<Id, u32>,
    /// The marks of iterations; see `limits.rs`.
    pub(super) marks: FxHashMap<Id, super::Marks>,
    /// Where the texts of an expression lead in the automaton of a loop; see `covering.rs`.
    pub(super) reached: FxHashMap<(Id, Id), Option<Reached>>,
    pub(super) saturated: FxHashMap<(Id, super::Counts, bool), super::Saturated>,
    /// Whether lexemes know the class of the character before them.
    pub(super) has_classes: bool,
    /// What follows behind characters of a class, by the condition that says it.
    pub(super) begun: FxHashMap<(Id, Id), Id>,
}

pub type List = SmallVec<[Id; 8]>;

impl Arena {
    /// An empty arena for a vocabulary.
    ///
    /// `alphabet`: what texts are made of; `cap`: the bytes of the longest token; `keys`: of structural hashes.
    pub fn new(alphabet: Alphabet, cap: u32, keys: (u128, u128)) -> Arena {
        let mut arena = Arena {
            // most grammars need about so many
            nodes: Vec::with_capacity(1024),
            flags: Vec::with_capacity(1024),
            hashes: Vec::with_capacity(1024),
            kids: Vec::with_capacity(512),
            table: HashTable::with_capacity(1024),
            sets: Vec::with_capacity(64),
            set_ids: FxHashMap::with_capacity_and_hasher(56, FxBuildHasher),
            alphabet: alphabet.bytes,
            missed: ByteSet::NONE,
            inner: alphabet.inner,
            characters: alphabet.characters,
            findings: Findings::default(),
            fuel: ENDLESS,
            most_memory: usize::MAX,
            max_memory: usize::MAX,
            cap,
            keys: (keys.0 | 1, keys.1 | 1),
            dfa: super::dfa::Tables::new(),
            derived: FxHashMap::with_capacity_and_hasher(56, FxBuildHasher),
            derivatives: Vec::new(),
            spare_entries: Vec::new(),
            unions: FxHashMap::default(),
            union_operands: 0,
            written: FxHashSet::default(),
            slacks: FxHashMap::default(),
            slacks_from_forms: FxHashMap::default(),
            marks: FxHashMap::default(),
            reached: FxHashMap::default(),
            saturated: FxHashMap::default(),
            has_classes: false,
            begun: FxHashMap::default(),
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
        let of_counts = self.slacks.len() + self.slacks_from_forms.len() + self.marks.len() + self.reached.len();
        let known = of_counts + self.saturated.len() + self.begun.len() + 2 * self.unions.len();
        self.nodes.len() * 48
            + (self.kids.len() + self.union_operands) * 4
            + self.dfa.memory()
            + self.derived.len() * 24
            + self.derivatives.capacity() * size_of::<(ByteSet, Id)>()
            + known * 40
    }

    /// What has been paid for is told by two of these.
    #[inline]
    pub(super) fn fuel(&self) -> u64 {
        self.fuel
    }

    /// Pays for work on so many operands.
    #[inline]
    pub(super) fn pay_for(&mut self, operands: usize) {
        self.fuel = self.fuel.saturating_sub(operands as u64);
    }

    /// Whether the budget of [`Arena::metered`] is spent.
    #[inline]
    pub(super) fn is_spent(&self) -> bool {
        self.fuel == 0
    }

    /// What `make` gives, which works on expressions, or the limit that it hit.
    pub(super) fn metered<T>(&mut self, budget: &mut Budget, make: impl FnOnce(&mut Arena) -> T) -> Result<T> {
        self.check_memory()?;
        let dear = 1 + (self.nodes.len() / CACHED_NODES) as u64;
        let before = (budget.left().saturating_mul(PER_STEP) / dear).max(1);
        self.fuel = before;
        let made = make(self);
        let left = std::mem::replace(&mut self.fuel, ENDLESS);
        if left == 0 {
            self.check_memory()?;
            return Err(budget.exhausted());
        }
        budget.spend((before - left).div_ceil(PER_STEP) * dear)?;
        Ok(made)
    }

    /// Spends the budget of [`Arena::metered`] where the arena holds more than it may.
    #[cold]
    fn look_at_memory(&mut self) {
        if self.fuel < ENDLESS / 2 && self.memory() > self.most_memory {
            self.fuel = 0;
        }
    }

    fn check_memory(&self) -> Result<()> {
        if self.memory() > self.most_memory {
            return Err(self.out_of_memory());
        }
        Ok(())
    }

    /// The error of a call that holds more memory than it may.
    pub(crate) fn out_of_memory(&self) -> Error {
        Error::Limit { which: "max_memory (bytes)", limit: self.max_memory as u64 }
    }

    /// Whether the empty text belongs to the expression (for one with tags: whether its terminal can end here).
    #[inline]
    pub fn nullable(&self, id: Id) -> bool {
        self.flags[id as usize].has(Flags::NULLABLE)
    }

    /// Whether the empty text belongs to it wherever it stands.
    pub fn ever_nullable(&self, id: Id) -> bool {
        self.nullable(id) && !self.open(id)
    }

    /// Whether it contains assertions that see more than its own text.
    pub(super) fn open(&self, id: Id) -> bool {
        self.flag(id, Flags::LOOKS | Flags::BEHIND)
    }

    #[inline]
    pub(super) fn flag(&self, id: Id, flag: u8) -> bool {
        self.flags[id as usize].has(flag)
    }

    /// A hash of the expression's structure, comparable between arenas of one process.
    pub fn hash(&self, id: Id) -> u128 {
        self.hashes[id as usize]
    }

    /// The operands of a union, or the expression itself.
    pub fn branches(&self, id: Id) -> SmallVec<[Id; 8]> {
        match self.nodes[id as usize] {
            Node::Alt(k) => self.list(k).into(),
            _ => SmallVec::from_slice(&[id]),
        }
    }

    #[inline]
    pub fn form(&self, id: Id) -> Form {
        match self.nodes[id as usize] {
            Node::Concat(h, t) => match self.nodes[h as usize] {
                Node::Class(s) => Form::Byte(self.sets[s as usize], t),
                _ if self.flag(h, Flags::TAGGED) || self.open(id) => Form::Whole,
                _ => Form::Then(h, t),
            },
            Node::Class(s) => Form::Byte(self.sets[s as usize], EPS),
            Node::Alt(k) if !self.open(id) => Form::Union(k.len as usize),
            _ => Form::Whole,
        }
    }

    /// An operand of a union.
    #[inline]
    pub fn operand(&self, union: Id, i: usize) -> Id {
        let Node::Alt(k) = self.nodes[union as usize] else { unreachable!("only unions have operands") };
        self.kids[k.start as usize + i]
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
    pub(super) fn intern(&mut self, node: Node, kids: &[Id], flags: Flags) -> Id {
        self.pay_for(NODE + kids.len());
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
            Node::Lexeme(a) => self.mix(14, h(a)),
            Node::Under(a, b) => self.mix(self.mix(15, h(a)), h(b)),
            Node::Past(class) => self.mix(16, u128::from(class)),
            Node::After(class, a) => self.mix(self.mix(17, h(a)), u128::from(class)),
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
        if id.is_multiple_of(LOOK_EVERY) {
            self.look_at_memory();
        }
        push(&mut self.nodes, node);
        push(&mut self.flags, flags);
        push(&mut self.hashes, hash);
        let hashes = &self.hashes;
        self.table.insert_unique(hash as u64, id, |&i| hashes[i as usize] as u64);
        id
    }

    pub(super) fn any_of(&self, ids: &[Id]) -> u8 {
        ids.iter().fold(0, |acc, &i| acc | self.flags[i as usize].0)
    }

    pub(super) fn all_of(&self, ids: &[Id]) -> u8 {
        ids.iter().fold(u8::MAX, |acc, &i| acc & self.flags[i as usize].0)
    }

    /// One byte of the set (those bytes of it that are in the alphabet).
    pub fn class(&mut self, set: ByteSet) -> Id {
        self.missed = self.missed.or(set.and(self.inner));
        let set = set.and(self.alphabet);
        if set.is_empty() {
            return EMPTY;
        }
        let id = self.set_id(set);
        self.intern(Node::Class(id), &[], Flags(Flags::FINITE))
    }

    /// The index in `sets` of a set of bytes.
    pub(super) fn set_id(&mut self, set: ByteSet) -> u32 {
        let sets = &mut self.sets;
        *self.set_ids.entry(set).or_insert_with(|| {
            sets.push(set);
            sets.len() as u32 - 1
        })
    }

    pub fn byte(&mut self, b: u8) -> Id {
        self.class(ByteSet::only(b))
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

    /// A text and what comes after it, or the limit that making it hit.
    pub fn literal_then_within(&mut self, text: &[u8], then: Id, budget: &mut Budget) -> Result<Id> {
        self.metered(budget, |arena| arena.literal_then(text, then))
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
        if tail == TOP && self.ever_nullable(head) {
            return TOP;
        }
        match self.nodes[head as usize] {
            Node::Concat(a, b) => {
                // as many nodes are made as the head has parts
                if self.is_spent() {
                    return EMPTY;
                }
                self.pay_for(4);
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
            _ => {}
        }
        let (h, t) = (self.flags[head as usize].0, self.flags[tail as usize].0);
        let mut flags = (h & t & Flags::SHARED) | ((h | t) & Flags::SPREADING);
        if (h | t) & Flags::INFINITE != 0 && flags & Flags::SEARCH == 0 {
            flags |= Flags::INFINITE; // the other part is not empty
        }
        self.intern(Node::Concat(head, tail), &[], Flags(flags))
    }

    /// The concatenation, or the limit that making it hit.
    pub fn concat_within(&mut self, head: Id, tail: Id, budget: &mut Budget) -> Result<Id> {
        match self.nodes[head as usize] {
            // each part of the head is a node, so that a small arena has no long ones
            Node::Concat(..) if tail != EPS && self.nodes.len() > SMALL_ARENA => {
                self.metered(budget, |arena| arena.concat(head, tail))
            }
            _ => Ok(self.concat(head, tail)),
        }
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
        if self.ever_nullable(x) {
            least = 0;
        }
        if (least, most) == (1, 1) {
            return x;
        }
        let any_byte = |arena: &Arena| matches!(arena.nodes[x as usize], Node::Class(s) if arena.sets[s as usize] == arena.alphabet);
        if x == TOP || (least, most) == (0, UNBOUNDED) && any_byte(self) {
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
        let size = self.least_length(x).max(1);
        if least > self.cap / size + 1 || (most != UNBOUNDED && most.saturating_mul(size) > super::SMALL) {
            flags |= Flags::COUNTS;
        }
        self.intern(Node::Repeat(x, least, most), &[], Flags(flags))
    }

    /// What texts are made of.
    pub(super) fn spelling(&self) -> Alphabet {
        Alphabet { bytes: self.alphabet, inner: self.inner, characters: self.characters.clone() }
    }

    pub(super) fn keys(&self) -> (u128, u128) {
        self.keys
    }

    pub(super) fn holds_counts(&self, id: Id) -> bool {
        self.flag(id, Flags::COUNTS)
    }

    /// No token can tell counts above this apart: the bytes of the longest one.
    pub fn cap(&self) -> u32 {
        self.cap
    }

    /// The bytes of the texts that the vocabulary can spell.
    pub fn alphabet(&self) -> ByteSet {
        self.alphabet
    }
}
