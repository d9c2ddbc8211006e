//! What a residual allows inside its terminal, and where tokens leave it: per vocabulary, for all grammars.

use std::sync::Arc;

use parking_lot::Mutex;
use rustc_hash::FxHashMap;

use crate::budget::Budget;
use crate::error::Result;
use crate::regular::{Arena, ByteSet, EMPTY, Id};
use crate::vocabulary::{Trie, Vocabulary, set_bit};

/// Ways out of a terminal in the middle of a token.
pub(super) enum Exits {
    /// The ends of the tokens, equal ones merged: what is left after the terminal.
    Ends(Trie),
    /// Nodes of the vocabulary's trie below which tokens go on after the terminal (too much text to merge).
    Nodes(Vec<u32>),
}

pub struct Inside {
    pub(super) bits: Box<[u32]>,
    pub(super) exits: Exits,
}

impl Inside {
    fn memory(&self) -> usize {
        let exits = match &self.exits {
            Exits::Ends(trie) => trie.memory(),
            Exits::Nodes(list) => list.len() * 4,
        };
        self.bits.len() * 4 + exits + 128
    }
}

/// Merging the ends of more tokens than this costs more than walking them.
const MERGE_LIMIT: usize = 16_384;
/// Fewer looping ASCII bytes than this: a plain walk is as good.
const MIN_LOOP: u32 = 20;

/// Computed parts by structural hash of the residual, bounded by bytes; the least recently used go first.
pub struct InsideCache {
    entries: Mutex<Entries>,
    limit: usize,
}

#[derive(Default)]
struct Entries {
    map: FxHashMap<u128, (Arc<Inside>, u64)>,
    bytes: usize,
    clock: u64,
}

impl InsideCache {
    pub fn new(limit: usize) -> InsideCache {
        InsideCache { entries: Mutex::default(), limit }
    }

    /// The part for residual `x`, which carries no tag.
    pub(super) fn get(&self, arena: &mut Arena, x: Id, vocab: &Vocabulary, budget: &mut Budget) -> Result<Arc<Inside>> {
        let key = arena.hash(x);
        {
            let mut entries = self.entries.lock();
            entries.clock += 1;
            let now = entries.clock;
            if let Some((part, used)) = entries.map.get_mut(&key) {
                *used = now;
                return Ok(part.clone());
            }
        }
        let part = Arc::new(compute(arena, x, vocab, budget)?);
        let mut entries = self.entries.lock();
        let now = entries.clock;
        entries.bytes += part.memory();
        if let Some((old, _)) = entries.map.insert(key, (part.clone(), now)) {
            entries.bytes -= old.memory();
        }
        if entries.bytes > self.limit {
            entries.evict(self.limit / 2);
        }
        Ok(part)
    }
}

impl Entries {
    fn evict(&mut self, down_to: usize) {
        let mut ages: Vec<(u64, u128)> = self.map.iter().map(|(k, v)| (v.1, *k)).collect();
        ages.sort_unstable();
        for (_, key) in ages {
            if self.bytes <= down_to {
                break;
            }
            if let Some((part, _)) = self.map.remove(&key) {
                self.bytes -= part.memory();
            }
        }
    }
}

fn compute(arena: &mut Arena, x: Id, vocab: &Vocabulary, budget: &mut Budget) -> Result<Inside> {
    match self_loop(arena, x, budget)? {
        Some(looping) => by_algebra(arena, x, looping, vocab, budget),
        None => by_walk(arena, x, vocab, budget),
    }
}

/// The bytes that lead back to `x`, if they are many and all well-formed characters beyond ASCII do, too.
pub(super) fn self_loop(arena: &mut Arena, x: Id, budget: &mut Budget) -> Result<Option<ByteSet>> {
    let row = *arena.row(x, budget)?;
    let mut looping = ByteSet::NONE;
    (0..128u8).filter(|&b| row[b as usize] == x).for_each(|b| looping.insert(b));
    if looping.len() < MIN_LOOP {
        return Ok(None);
    }
    // lead byte -> continuation bytes still to come, range of the first of them (Unicode, table 3-7)
    for lead in 0x80..=0xFFu8 {
        let (count, lo, hi) = match lead {
            0xC2..=0xDF => (1, 0x80, 0xBF),
            0xE0 => (2, 0xA0, 0xBF),
            0xED => (2, 0x80, 0x9F),
            0xE1..=0xEF => (2, 0x80, 0xBF),
            0xF0 => (3, 0x90, 0xBF),
            0xF1..=0xF3 => (3, 0x80, 0xBF),
            0xF4 => (3, 0x80, 0x8F),
            _ => (0, 1, 0),
        };
        let target = row[lead as usize];
        let home = if count == 0 {
            target == EMPTY
        } else {
            !arena.spells(lead) || returns(arena, target, x, count, lo, hi, budget)?
        };
        if !home {
            return Ok(None);
        }
        if target != EMPTY {
            looping.insert(lead);
        }
    }
    (0x80..=0xBFu8).filter(|&b| arena.spells(b)).for_each(|b| looping.insert(b));
    Ok(Some(looping))
}

/// Whether from `q` any `count` continuation bytes (the first in `lo..=hi`), and nothing else, lead to `home`.
fn returns(arena: &mut Arena, q: Id, home: Id, count: u8, lo: u8, hi: u8, budget: &mut Budget) -> Result<bool> {
    if q == EMPTY {
        return Ok(false);
    }
    let row = *arena.row(q, budget)?;
    let next = row[lo as usize];
    for b in 0..=255u8 {
        let expected = if (lo..=hi).contains(&b) && arena.spells(b) { next } else { EMPTY };
        if row[b as usize] != expected {
            return Ok(false);
        }
    }
    if count == 1 { Ok(next == home) } else { returns(arena, next, home, count - 1, 0x80, 0xBF, budget) }
}

/// For a residual that most characters lead back to: bit rows of whole classes, then single tokens that hold a
/// byte on which the residual changes.
fn by_algebra(arena: &mut Arena, x: Id, looping: ByteSet, vocab: &Vocabulary, budget: &mut Budget) -> Result<Inside> {
    let mut bits: Box<[u32]> = vocab.utf8_prefixes().into();
    let row = *arena.row(x, budget)?;
    let mut changing: Vec<u32> = Vec::new();
    for b in ByteSet::ALL.minus(looping).iter() {
        budget.spend(8)?;
        vocab.exclude(b, &mut bits);
        if b < 128 && row[b as usize] != EMPTY {
            changing.extend_from_slice(vocab.holders(b));
        }
    }
    changing.sort_unstable();
    changing.dedup();
    let mut ends: Vec<(&[u8], u32)> = Vec::new();
    for t in changing {
        let text = vocab.token(t);
        budget.spend(text.len() as u64)?;
        let mut q = x;
        for (i, &b) in text.iter().enumerate() {
            if i > 0 && arena.nullable(q) {
                ends.push((&text[i..], t));
            }
            q = arena.next(q, b, budget)?;
            if q == EMPTY {
                break;
            }
        }
        if q != EMPTY {
            set_bit(&mut bits, t);
        }
    }
    Ok(Inside { bits, exits: Exits::Ends(Trie::new(ends)) })
}

/// For any other residual: a walk over the vocabulary's trie.
fn by_walk(arena: &mut Arena, x: Id, vocab: &Vocabulary, budget: &mut Budget) -> Result<Inside> {
    let trie = &vocab.trie;
    let mut bits = vec![0u32; vocab.words()].into_boxed_slice();
    let mut nodes: Vec<u32> = Vec::new();
    let mut below = 0;
    let mut states: Vec<Id> = vec![x];
    let mut i = 0;
    while i < trie.nodes.len() {
        let node = &trie.nodes[i];
        budget.spend(1)?;
        let q = arena.next(states[node.depth as usize - 1], node.byte, budget)?;
        if q == EMPTY {
            i = node.end as usize;
            continue;
        }
        trie.tokens_at(node).iter().for_each(|&t| set_bit(&mut bits, t));
        if node.end as usize > i + 1 {
            states.truncate(node.depth as usize);
            states.push(q);
            if arena.nullable(q) {
                nodes.push(i as u32);
                below += trie.tokens_below(i).len();
            }
        }
        i += 1;
    }
    if nodes.len() < 8 || below > MERGE_LIMIT {
        return Ok(Inside { bits, exits: Exits::Nodes(nodes) });
    }
    let mut ends: Vec<(&[u8], u32)> = Vec::with_capacity(below);
    for &n in &nodes {
        let depth = trie.nodes[n as usize].depth as usize;
        ends.extend(trie.tokens_below(n as usize).iter().map(|&t| (&vocab.token(t)[depth..], t)));
    }
    Ok(Inside { bits, exits: Exits::Ends(Trie::new(ends)) })
}
