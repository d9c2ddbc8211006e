//! Classes of tokens by their bytes: per vocabulary, shared by all grammars.
//!
//! Where a residual loops on most characters, a token is either *plain* (made of such characters alone) or plain up to
//! some byte on which the residual changes. The plain ones are one row of bits; of the others only the ends matter,
//! and equal ends are merged: of 1,345 tokens that hold a quote, some 300 ends remain.

use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use rustc_hash::FxHashMap;

use super::blanks::Blanks;
use crate::budget::Budget;
use crate::error::Result;
use crate::regular::{Arena, ByteSet, Id};
use crate::vocabulary::{Name, NodeIndex, Trie, Vocabulary};

/// The tokens of a vocabulary as a looping residual sees them.
pub(super) struct TokenClass {
    /// Well-formed (but for a cut last character) and of plain bytes alone.
    pub(super) plain: Arc<[u32]>,
    /// The other tokens, from their first byte that is not plain (and is a changing one) on.
    pub(super) ends: Trie,
    /// These tokens themselves, ascending.
    pub(super) others: Vec<u32>,
    /// Their whole texts, once asked for.
    texts: OnceLock<Trie>,
}

impl TokenClass {
    fn new(vocab: &Vocabulary, plain: ByteSet, changing: ByteSet) -> TokenClass {
        let mut bits: Vec<u32> = vocab.utf8_prefixes().to_vec();
        for b in ByteSet::ALL.minus(plain).iter() {
            vocab.exclude(b, &mut bits);
        }
        let mut others: Vec<u32> = changing.iter().flat_map(|b| vocab.holders(b)).copied().collect();
        others.sort_unstable();
        others.dedup();
        let mut ends: Vec<(&[u8], u32)> = Vec::with_capacity(others.len());
        others.retain(|&t| {
            let text = vocab.token(t);
            let run = text.iter().take_while(|b| plain.contains(**b)).count();
            let ok = changing.contains(text[run]) && std::str::from_utf8(&text[..run]).is_ok();
            if ok {
                ends.push((&text[run..], t));
            }
            ok
        });
        TokenClass { plain: bits.into(), ends: Trie::new(ends), others, texts: OnceLock::new() }
    }

    /// The tokens that are not plain, by their whole texts.
    pub(super) fn texts(&self, vocab: &Vocabulary) -> &Trie {
        self.texts.get_or_init(|| Trie::new(self.others.iter().map(|&t| (vocab.token(t), t)).collect()))
    }

    /// Bytes held, with what may be made later.
    fn memory(&self) -> usize {
        self.plain.len() * 4 + self.ends.memory() + self.others.len() * 100 + 128
    }
}

/// The tokens of a branch of a trie, as a residual sees them that loops and is met at the branch.
pub(super) struct BranchClass {
    /// Well-formed (but for a cut last character) and of plain bytes alone, from the branch on.
    pub(super) plain: Vec<u32>,
    /// The others, from their first byte that is not plain (and is a changing one) on.
    pub(super) ends: Trie,
}

impl BranchClass {
    fn new(trie: &Trie, node: NodeIndex, plain: ByteSet, changing: ByteSet) -> BranchClass {
        let mut alone = Vec::new();
        let mut ends: Vec<(Vec<u8>, u32)> = Vec::new();
        trie.texts_below(node, &mut |text, token| {
            let (run, end) = text.split_at(text.iter().take_while(|b| plain.contains(**b)).count());
            match (std::str::from_utf8(run), end.first()) {
                (Ok(_), None) => alone.push(token),
                (Err(e), None) if e.error_len().is_none() => alone.push(token),
                (Ok(_), Some(&byte)) if changing.contains(byte) => ends.push((end.into(), token)),
                _ => {}
            }
        });
        let ends = Trie::new(ends.iter().map(|(end, token)| (&end[..], *token)).collect());
        BranchClass { plain: alone, ends }
    }

    fn memory(&self) -> usize {
        self.plain.len() * 4 + self.ends.memory() + 128
    }
}

/// Classes and what else is known of a vocabulary, bounded by bytes; the least recently used go first.
pub struct ClassCache {
    entries: Mutex<Entries>,
    limit: usize,
}

/// What is cached, by bytes that are plain and changing, or by the hash of an expression.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Key {
    Class(ByteSet, ByteSet),
    Branch(Name, NodeIndex, ByteSet, ByteSet),
    Blanks(u128),
    SelfLoop(u128),
}

#[derive(Clone)]
enum Entry {
    Class(Arc<TokenClass>),
    Branch(Arc<BranchClass>),
    Blanks(Arc<Blanks>),
    SelfLoop(Option<ByteSet>),
}

impl Entry {
    fn memory(&self) -> usize {
        match self {
            Entry::Class(class) => class.memory(),
            Entry::Branch(class) => class.memory(),
            Entry::Blanks(blanks) => blanks.memory(),
            Entry::SelfLoop(_) => 128,
        }
    }
}

#[derive(Default)]
struct Entries {
    map: FxHashMap<Key, (Entry, u64)>,
    bytes: usize,
    clock: u64,
}

impl ClassCache {
    pub fn new(limit: usize) -> ClassCache {
        ClassCache { entries: Mutex::default(), limit }
    }

    pub(super) fn class(&self, vocab: &Vocabulary, plain: ByteSet, changing: ByteSet) -> Arc<TokenClass> {
        let key = Key::Class(plain, changing);
        if let Some(Entry::Class(class)) = self.get(key) {
            return class;
        }
        let class = Arc::new(TokenClass::new(vocab, plain, changing));
        self.put(key, Entry::Class(class.clone()));
        class
    }

    /// The class of the tokens below a node of a vocabulary's trie.
    pub(super) fn branch(
        &self,
        (name, trie): (Name, &Trie),
        node: NodeIndex,
        plain: ByteSet,
        changing: ByteSet,
    ) -> Arc<BranchClass> {
        let key = Key::Branch(name, node, plain, changing);
        if let Some(Entry::Branch(class)) = self.get(key) {
            return class;
        }
        let class = Arc::new(BranchClass::new(trie, node, plain, changing));
        self.put(key, Entry::Branch(class.clone()));
        class
    }

    /// What the expression `w` of whitespace admits.
    pub(super) fn blanks(
        &self,
        vocab: &Vocabulary,
        arena: &mut Arena,
        w: Id,
        budget: &mut Budget,
    ) -> Result<Arc<Blanks>> {
        let key = Key::Blanks(arena.hash(w));
        if let Some(Entry::Blanks(blanks)) = self.get(key) {
            return Ok(blanks);
        }
        let blanks = Arc::new(Blanks::new(vocab, arena, w, budget)?);
        self.put(key, Entry::Blanks(blanks.clone()));
        Ok(blanks)
    }

    /// The bytes on which an expression loops, by its hash; the outer `None`: not known.
    pub(super) fn self_loop(&self, hash: u128) -> Option<Option<ByteSet>> {
        match self.get(Key::SelfLoop(hash)) {
            Some(Entry::SelfLoop(found)) => Some(found),
            _ => None,
        }
    }

    pub(super) fn put_self_loop(&self, hash: u128, found: Option<ByteSet>) {
        self.put(Key::SelfLoop(hash), Entry::SelfLoop(found));
    }

    fn get(&self, key: Key) -> Option<Entry> {
        let mut entries = self.entries.lock();
        entries.clock += 1;
        let now = entries.clock;
        let (entry, used) = entries.map.get_mut(&key)?;
        *used = now;
        Some(entry.clone())
    }

    fn put(&self, key: Key, entry: Entry) {
        let mut entries = self.entries.lock();
        let now = entries.clock;
        entries.bytes += entry.memory();
        if let Some((old, _)) = entries.map.insert(key, (entry, now)) {
            entries.bytes -= old.memory();
        }
        if entries.bytes > self.limit {
            entries.evict(self.limit / 2);
        }
    }
}

impl Entries {
    fn evict(&mut self, down_to: usize) {
        let mut ages: Vec<(u64, Key)> = self.map.iter().map(|(k, v)| (v.1, *k)).collect();
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
