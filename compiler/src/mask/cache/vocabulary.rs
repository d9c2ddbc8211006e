//! The cache that all constraints on a vocabulary share.

use std::hash::BuildHasher;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use parking_lot::RwLock;
use rustc_hash::{FxBuildHasher, FxHashMap};

use super::branches::Branch;
use super::classes::TokenClass;
use super::interiors::{Interior, Rounds};
use super::whitespace::Whitespace;
use crate::budget::Budget;
use crate::byteset::ByteSet;
use crate::error::Result;
use crate::mask::lexical::SharedStep;
use crate::regular::{Arena, Id, Limit, Marks};
use crate::vocabulary::{Name, NodeIndex, Trie, Vocabulary};

/// The numbers of tries that were given a name. None is used twice in a process: what is cached by the name of a trie that
/// was dropped is never found.
static NAMES: AtomicU32 = AtomicU32::new(0);

/// What masks need to know of a vocabulary, whatever the grammar: shared by its constraints and bounded by bytes. The
/// least recently used entries go first.
pub struct VocabularyCache {
    entries: RwLock<Entries>,
    limit: usize,
}

/// Entries are known by their plain and changing bytes, or by the hash of an expression, which all grammars share.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Key {
    Class(ByteSet, ByteSet),
    Holders(ByteSet),
    Marked(Marks),
    Interior(u128, ByteSet, ByteSet),
    Rounds(u128, ByteSet, ByteSet),
    Branch(Name, NodeIndex, ByteSet),
    Behind(Name, ByteSet),
    /// By a hash of the nodes.
    Texts(Name, u64),
    Whitespace(u128),
    SelfLoop(u128),
    /// Also by whether residuals have a meaning.
    Step(u128, bool),
}

#[derive(Clone)]
enum Entry {
    Class(Arc<TokenClass>),
    Holders(Arc<Trie>),
    /// Tokens, each behind the number of its marks.
    Marked(Arc<[(u32, u32)]>),
    Interior(Arc<Interior>),
    Rounds(Option<Arc<Rounds>>),
    Branch(Arc<Branch>),
    Behind(Arc<Trie>),
    Texts(Arc<[NodeIndex]>, Arc<Trie>),
    Whitespace(Arc<Whitespace>),
    SelfLoop(Option<ByteSet>),
    Step(Arc<SharedStep>),
}

impl Entry {
    fn memory(&self) -> usize {
        match self {
            Entry::Class(class) => class.memory(),
            Entry::Holders(trie) => trie.memory(),
            Entry::Marked(tokens) => tokens.len() * 8,
            Entry::Interior(interior) => interior.memory(),
            Entry::Rounds(rounds) => 128 + rounds.as_ref().map_or(0, |rounds| rounds.memory()),
            Entry::Branch(branch) => branch.memory(),
            Entry::Behind(trie) => trie.memory(),
            Entry::Texts(nodes, trie) => nodes.len() * 4 + trie.memory(),
            Entry::Whitespace(whitespace) => whitespace.memory(),
            Entry::SelfLoop(_) => 128,
            Entry::Step(step) => step.memory(),
        }
    }
}

#[derive(Default)]
struct Entries {
    /// With the time of the last use.
    map: FxHashMap<Key, (Entry, AtomicU64)>,
    bytes: usize,
    /// The number of entries made. It serves as the time of uses, and does not change while threads only read.
    made: u64,
}

impl VocabularyCache {
    pub fn new(limit: usize) -> VocabularyCache {
        VocabularyCache { entries: RwLock::default(), limit }
    }

    pub(in crate::mask) fn class(&self, vocab: &Vocabulary, plain: ByteSet, changing: ByteSet) -> Arc<TokenClass> {
        let key = Key::Class(plain, changing);
        if let Some(Entry::Class(class)) = self.get(key) {
            return class;
        }
        let class = Arc::new(TokenClass::new(vocab, plain, changing));
        self.put(key, Entry::Class(class.clone()));
        class
    }

    /// The texts of the tokens that hold any of some bytes.
    pub(in crate::mask) fn holders(&self, vocab: &Vocabulary, bytes: ByteSet) -> Arc<Trie> {
        let key = Key::Holders(bytes);
        if let Some(Entry::Holders(trie)) = self.get(key) {
            return trie;
        }
        let trie = Arc::new(vocab.texts_with(bytes));
        self.put(key, Entry::Holders(trie.clone()));
        trie
    }

    /// The tokens that are beyond a limit.
    pub(in crate::mask) fn beyond(&self, vocab: &Vocabulary, limit: Limit) -> Vec<u32> {
        if limit.marks == Marks::NONE {
            return vocab.longer_than(limit.most).to_vec();
        }
        let key = Key::Marked(limit.marks);
        let marked = match self.get(key) {
            Some(Entry::Marked(marked)) => marked,
            _ => {
                let marked: Arc<[(u32, u32)]> = marked(vocab, limit.marks).into();
                self.put(key, Entry::Marked(marked.clone()));
                marked
            }
        };
        marked.iter().take_while(|&&(marks, _)| marks > limit.most).map(|&(_, token)| token).collect()
    }

    /// What tokens do in the loop `inner` of an expression with these plain and changing bytes.
    pub(in crate::mask) fn interior(
        &self,
        vocab: &Vocabulary,
        (plain, changing): (ByteSet, ByteSet),
        (arena, inner): (&mut Arena, Id),
        budget: &mut Budget,
    ) -> Result<Arc<Interior>> {
        let key = Key::Interior(arena.hash(inner), plain, changing);
        if let Some(Entry::Interior(interior)) = self.get(key) {
            return Ok(interior);
        }
        let class = self.class(vocab, plain, changing);
        let interior = Arc::new(Interior::new(vocab, &class, (plain, changing), arena, inner, budget)?);
        self.put(key, Entry::Interior(interior.clone()));
        Ok(interior)
    }

    /// How many times tokens go around the loop `inner`, if that is certain.
    pub(in crate::mask) fn rounds(
        &self,
        vocab: &Vocabulary,
        (plain, changing): (ByteSet, ByteSet),
        (arena, inner): (&mut Arena, Id),
        budget: &mut Budget,
    ) -> Result<Option<Arc<Rounds>>> {
        let key = Key::Rounds(arena.hash(inner), plain, changing);
        if let Some(Entry::Rounds(rounds)) = self.get(key) {
            return Ok(rounds);
        }
        let class = self.class(vocab, plain, changing);
        let rounds = Rounds::new(vocab, &class, arena, inner, budget)?.map(Arc::new);
        self.put(key, Entry::Rounds(rounds.clone()));
        Ok(rounds)
    }

    /// What a vocabulary's trie has below a node.
    pub(in crate::mask) fn branch(&self, (name, trie): (Name, &Trie), node: NodeIndex, plain: ByteSet) -> Arc<Branch> {
        let key = Key::Branch(name, node, plain);
        if let Some(Entry::Branch(branch)) = self.get(key) {
            return branch;
        }
        let branch = Arc::new(Branch::new(trie, node, plain));
        self.put(key, Entry::Branch(branch.clone()));
        branch
    }

    /// What the tokens of a trie with a name that begin with plain characters have behind these, if they have anything.
    /// It begins with a byte that is not plain.
    pub(in crate::mask) fn behind(&self, (name, trie): (Name, &Trie), plain: ByteSet) -> Arc<Trie> {
        let key = Key::Behind(name, plain);
        if let Some(Entry::Behind(behind)) = self.get(key) {
            return behind;
        }
        let branch = self.branch((name, trie), 0, plain);
        let nodes = branch.exits().flat_map(|(_, nodes)| nodes.iter().copied());
        let name = Name::Behind(NAMES.fetch_add(1, Ordering::Relaxed));
        let behind = Arc::new(trie.texts_of(nodes).named(name));
        self.put(key, Entry::Behind(behind.clone()));
        behind
    }

    /// The texts from some nodes of a trie with a name on.
    pub(in crate::mask) fn texts_of(&self, (name, trie): (Name, &Trie), nodes: &[NodeIndex]) -> Arc<Trie> {
        let key = Key::Texts(name, FxBuildHasher.hash_one(nodes));
        if let Some(Entry::Texts(known, texts)) = self.get(key)
            && *known == *nodes
        {
            return texts;
        }
        let name = Name::Behind(NAMES.fetch_add(1, Ordering::Relaxed));
        let texts = Arc::new(trie.texts_of(nodes.iter().copied()).named(name));
        self.put(key, Entry::Texts(nodes.into(), texts.clone()));
        texts
    }

    /// Whether it is known already what tokens have behind these characters.
    pub(in crate::mask) fn knows_behind(&self, name: Name, plain: ByteSet) -> bool {
        self.entries.read().map.contains_key(&Key::Behind(name, plain))
    }

    /// What the expression `w` of whitespace admits.
    pub(in crate::mask) fn whitespace(
        &self,
        vocab: &Vocabulary,
        arena: &mut Arena,
        w: Id,
        budget: &mut Budget,
    ) -> Result<Arc<Whitespace>> {
        let key = Key::Whitespace(arena.hash(w));
        if let Some(Entry::Whitespace(whitespace)) = self.get(key) {
            return Ok(whitespace);
        }
        let whitespace = Arc::new(Whitespace::new(vocab, arena, w, budget)?);
        self.put(key, Entry::Whitespace(whitespace.clone()));
        Ok(whitespace)
    }

    /// The bytes on which an expression loops, by its hash; the outer `None`: not known.
    pub(in crate::mask) fn self_loop(&self, hash: u128) -> Option<Option<ByteSet>> {
        match self.get(Key::SelfLoop(hash)) {
            Some(Entry::SelfLoop(found)) => Some(found),
            _ => None,
        }
    }

    pub(in crate::mask) fn put_self_loop(&self, hash: u128, found: Option<ByteSet>) {
        self.put(Key::SelfLoop(hash), Entry::SelfLoop(found));
    }

    /// What all tokens do inside a lexeme.
    pub(in crate::mask) fn step(&self, (hash, is_careful): (u128, bool)) -> Option<Arc<SharedStep>> {
        match self.get(Key::Step(hash, is_careful)) {
            Some(Entry::Step(step)) => Some(step),
            _ => None,
        }
    }

    pub(in crate::mask) fn put_step(&self, (hash, is_careful): (u128, bool), step: SharedStep) {
        self.put(Key::Step(hash, is_careful), Entry::Step(Arc::new(step)));
    }

    fn get(&self, key: Key) -> Option<Entry> {
        let entries = self.entries.read();
        let (entry, used) = entries.map.get(&key)?;
        if used.load(Ordering::Relaxed) != entries.made {
            used.store(entries.made, Ordering::Relaxed);
        }
        Some(entry.clone())
    }

    fn put(&self, key: Key, entry: Entry) {
        let mut entries = self.entries.write();
        entries.made += 1;
        let now = entries.made;
        entries.bytes += entry.memory();
        if let Some((old, _)) = entries.map.insert(key, (entry, now.into())) {
            entries.bytes -= old.memory();
        }
        if entries.bytes > self.limit {
            entries.evict(self.limit / 2);
        }
    }
}

/// The tokens that hold several marks, each behind the number of these, in descending order.
fn marked(vocab: &Vocabulary, marks: Marks) -> Vec<(u32, u32)> {
    let holders = marks.0.iter().flat_map(|byte| vocab.holders(byte).iter().copied());
    let several = holders.filter(|&t| vocab.token(t)[1..].iter().any(|&byte| marks.0.contains(byte)));
    let mut found: Vec<(u32, u32)> =
        several.map(|t| (marks.count(vocab.token(t)), t)).filter(|&(count, _)| count > 1).collect();
    found.sort_unstable_by(|a, b| b.cmp(a));
    found.dedup();
    found
}

impl Entries {
    fn evict(&mut self, down_to: usize) {
        let mut ages: Vec<(u64, Key)> = self.map.iter().map(|(key, e)| (e.1.load(Ordering::Relaxed), *key)).collect();
        ages.sort_unstable();
        for (_, key) in ages {
            if self.bytes <= down_to {
                break;
            }
            if let Some((entry, _)) = self.map.remove(&key) {
                self.bytes -= entry.memory();
            }
        }
    }
}
