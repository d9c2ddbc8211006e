//! Classes of tokens by their bytes: per vocabulary, shared by all grammars.
//!
//! Where a residual loops on most characters, a token is either *plain* (made of such characters alone) or plain up to
//! some byte on which the residual changes. The plain ones are one row of bits; of the others only the ends matter,
//! and equal ends are merged: of 1,345 tokens that hold a quote, some 300 ends remain.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use parking_lot::RwLock;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::blanks::Blanks;
use crate::budget::Budget;
use crate::error::Result;
use crate::regular::{Arena, ByteSet, Id};
use crate::vocabulary::{Name, NodeIndex, Trie, Vocabulary, set_bit};

/// The tokens of a vocabulary as a looping residual sees them.
pub(super) struct TokenClass {
    /// Well-formed (but for a cut last character) and of plain bytes alone.
    pub(super) plain: Arc<[u32]>,
    /// The other tokens that are so up to a changing byte, ascending, and where that byte is.
    others: Vec<(u32, u32)>,
    /// What they have from that byte on, once asked for.
    ends: OnceLock<Trie>,
    /// Their whole texts, once asked for.
    texts: OnceLock<Trie>,
}

impl TokenClass {
    fn new(vocab: &Vocabulary, plain: ByteSet, changing: ByteSet) -> TokenClass {
        let mut bits: Vec<u32> = vocab.utf8_prefixes().to_vec();
        for b in ByteSet::ALL.minus(plain).iter() {
            vocab.exclude(b, &mut bits);
        }
        let mut holders: Vec<u32> = changing.iter().flat_map(|b| vocab.holders(b)).copied().collect();
        holders.sort_unstable();
        holders.dedup();
        let run = |&t: &u32| {
            let text = vocab.token(t);
            let run = text.iter().take_while(|b| plain.contains(**b)).count();
            let ok = changing.contains(text[run]) && std::str::from_utf8(&text[..run]).is_ok();
            ok.then_some((t, run as u32))
        };
        let others = holders.iter().filter_map(run).collect();
        TokenClass { plain: bits.into(), others, ends: OnceLock::new(), texts: OnceLock::new() }
    }

    pub(super) fn others(&self) -> impl Iterator<Item = u32> + '_ {
        self.others.iter().map(|o| o.0)
    }

    /// The tokens that are not plain, from their first byte that is not plain on.
    pub(super) fn ends(&self, vocab: &Vocabulary) -> &Trie {
        let end = |&(t, run): &(u32, u32)| (&vocab.token(t)[run as usize..], t);
        self.ends.get_or_init(|| Trie::new(self.others.iter().map(end).collect()))
    }

    /// The same by their whole texts.
    pub(super) fn texts(&self, vocab: &Vocabulary) -> &Trie {
        self.texts.get_or_init(|| Trie::new(self.others().map(|t| (vocab.token(t), t)).collect()))
    }

    /// Bytes held, with what may be made later.
    fn memory(&self) -> usize {
        self.plain.len() * 4 + self.others.len() * 100 + 128
    }
}

/// A branch of a trie, as a residual sees it that loops on plain bytes and is met at the branch's node.
pub(super) struct Branch {
    /// Tokens that are well-formed (but for a cut last character) and of plain bytes alone, from the node on.
    pub(super) plain: Vec<u32>,
    /// The plain tokens as a row, once asked for.
    row: OnceLock<Arc<[u32]>>,
    /// By byte that is not plain, ascending: the nodes that it leads to behind plain bytes (one at least).
    exits: Vec<(u8, Exits)>,
}

/// The bytes of a character that is not whole.
type Character = SmallVec<[u8; 4]>;

/// The character after one more byte, empty where it is whole. `None`: no character goes on so.
fn go_on(last: &Character, byte: u8) -> Option<Character> {
    if last.is_empty() && byte < 128 {
        return Some(Character::new());
    }
    let mut next = last.clone();
    next.push(byte);
    match std::str::from_utf8(&next) {
        Ok(_) => Some(Character::new()),
        Err(e) => e.error_len().is_none().then_some(next),
    }
}

#[derive(Default)]
struct Exits {
    nodes: Vec<NodeIndex>,
    /// What tokens have from the byte on, equal ends merged: made for exits that are used often.
    ends: OnceLock<Trie>,
    uses: AtomicU32,
}

/// Where to go on from, behind plain bytes.
pub(super) enum Ends<'a> {
    /// With the byte that is not plain and all after it.
    Merged(&'a Trie),
    /// Behind that byte.
    Nodes(&'a [NodeIndex]),
}

/// Ends that were used so often are merged at the next use, which costs as much as a few walks over them.
const OFTEN: u32 = 2;

impl Branch {
    fn new(trie: &Trie, from: NodeIndex, plain: ByteSet) -> Branch {
        let ascii = plain.and(ByteSet::range(0, 127));
        let mut branch = Branch { plain: Vec::new(), row: OnceLock::new(), exits: Vec::new() };
        let mut exits: Vec<Vec<NodeIndex>> = vec![Vec::new(); 256];
        // nodes with the last character so far, as far as it goes: whole or ASCII characters are not kept
        let mut todo: Vec<(NodeIndex, Character)> = vec![(from, Character::new())];
        while let Some((node, last)) = todo.pop() {
            if last.is_empty()
                && let Some((bytes, tokens)) = trie.below(node)
                && bytes.minus(ascii).is_empty()
            {
                branch.plain.extend_from_slice(tokens);
                continue;
            }
            for (byte, child) in trie.children(node, ByteSet::ALL) {
                if !plain.contains(byte) {
                    if last.is_empty() && node != from {
                        exits[byte as usize].push(child);
                    }
                } else if let Some(last) = go_on(&last, byte) {
                    branch.plain.extend_from_slice(trie.tokens_at(child));
                    todo.push((child, last));
                }
            }
        }
        let used = exits.into_iter().enumerate().filter(|(_, nodes)| !nodes.is_empty());
        branch.exits = used.map(|(byte, nodes)| (byte as u8, Exits { nodes, ..Exits::default() })).collect();
        branch
    }

    pub(super) fn row(&self, words: usize) -> Arc<[u32]> {
        let make = || {
            let mut bits = vec![0u32; words];
            self.plain.iter().for_each(|&t| set_bit(&mut bits, t));
            bits.into()
        };
        self.row.get_or_init(make).clone()
    }

    /// What tokens have behind plain bytes (one at least) from this byte on, which is not plain.
    pub(super) fn ends(&self, trie: &Trie, byte: u8) -> Ends<'_> {
        let Ok(i) = self.exits.binary_search_by_key(&byte, |e| e.0) else { return Ends::Nodes(&[]) };
        let Exits { nodes, ends, uses } = &self.exits[i].1;
        if uses.fetch_add(1, Ordering::Relaxed) < OFTEN {
            return Ends::Nodes(nodes);
        }
        Ends::Merged(ends.get_or_init(|| {
            let (mut bytes, mut ends) = (Vec::new(), Vec::new());
            for &node in nodes {
                trie.texts_from(node, &mut |text, token| {
                    bytes.extend_from_slice(text);
                    ends.push((bytes.len() - text.len()..bytes.len(), token));
                });
            }
            Trie::new(ends.into_iter().map(|(text, token)| (&bytes[text], token)).collect())
        }))
    }

    /// Bytes held, with what may be made later.
    fn memory(&self) -> usize {
        let exits: usize = self.exits.iter().map(|e| e.1.nodes.len() * 100).sum();
        self.plain.len() * 8 + exits + 128
    }
}

/// Classes and what else is known of a vocabulary, bounded by bytes; the least recently used go first.
pub struct ClassCache {
    entries: RwLock<Entries>,
    limit: usize,
}

/// What is cached, by bytes that are plain and changing, or by the hash of an expression.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Key {
    Class(ByteSet, ByteSet),
    Branch(Name, NodeIndex, ByteSet),
    Blanks(u128),
    SelfLoop(u128),
}

#[derive(Clone)]
enum Entry {
    Class(Arc<TokenClass>),
    Branch(Arc<Branch>),
    Blanks(Arc<Blanks>),
    SelfLoop(Option<ByteSet>),
}

impl Entry {
    fn memory(&self) -> usize {
        match self {
            Entry::Class(class) => class.memory(),
            Entry::Branch(branch) => branch.memory(),
            Entry::Blanks(blanks) => blanks.memory(),
            Entry::SelfLoop(_) => 128,
        }
    }
}

#[derive(Default)]
struct Entries {
    /// With the time of the last use.
    map: FxHashMap<Key, (Entry, AtomicU64)>,
    bytes: usize,
    /// The number of entries made: a time that stands still while threads only read.
    made: u64,
}

impl ClassCache {
    pub fn new(limit: usize) -> ClassCache {
        ClassCache { entries: RwLock::default(), limit }
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

    /// What a vocabulary's trie has below a node.
    pub(super) fn branch(&self, (name, trie): (Name, &Trie), node: NodeIndex, plain: ByteSet) -> Arc<Branch> {
        let key = Key::Branch(name, node, plain);
        if let Some(Entry::Branch(branch)) = self.get(key) {
            return branch;
        }
        let branch = Arc::new(Branch::new(trie, node, plain));
        self.put(key, Entry::Branch(branch.clone()));
        branch
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
