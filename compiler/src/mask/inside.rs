//! What a residual allows inside its terminal, and where tokens leave it: per vocabulary, for all grammars.

use std::sync::Arc;

use parking_lot::Mutex;
use rustc_hash::FxHashMap;

use super::looping::Looping;
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
    /// Everywhere: the terminal may end after every character.
    Everywhere,
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
            Exits::Everywhere => 0,
        };
        self.bits.len() * 4 + exits + 128
    }
}

/// Merging the ends of more tokens than this costs more than walking them.
const MERGE_LIMIT: usize = 16_384;

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
        InsideCache {
            entries: Mutex::default(),
            limit,
        }
    }

    /// The part for residual `x`, which carries no tag.
    pub(super) fn get(
        &self,
        arena: &mut Arena,
        x: Id,
        vocab: &Vocabulary,
        budget: &mut Budget,
    ) -> Result<Arc<Inside>> {
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
    match Looping::of(arena, x, budget)? {
        Some(looping) => by_algebra(arena, x, &looping, vocab, budget),
        None => by_walk(arena, x, vocab, budget),
    }
}

/// For a residual that most characters only count down, if that: bit rows of whole classes, then one by one the
/// tokens that hold a byte on which more happens.
fn by_algebra(
    arena: &mut Arena,
    x: Id,
    looping: &Looping,
    vocab: &Vocabulary,
    budget: &mut Budget,
) -> Result<Inside> {
    let mut bits: Box<[u32]> = vocab.utf8_prefixes().into();
    for b in ByteSet::ALL.minus(looping.plain).iter() {
        budget.spend(8)?;
        vocab.exclude(b, &mut bits);
    }
    if let Some(most) = looping.most {
        vocab.exclude_longer(most, &mut bits);
    }
    let mut changing: Vec<u32> = looping
        .changing
        .iter()
        .flat_map(|b| vocab.holders(b))
        .copied()
        .collect();
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
    let exits = if arena.nullable(x) {
        Exits::Everywhere
    } else {
        Exits::Ends(Trie::new(ends))
    };
    Ok(Inside { bits, exits })
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
        trie.tokens_at(node)
            .iter()
            .for_each(|&t| set_bit(&mut bits, t));
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
        return Ok(Inside {
            bits,
            exits: Exits::Nodes(nodes),
        });
    }
    let mut ends: Vec<(&[u8], u32)> = Vec::with_capacity(below);
    for &n in &nodes {
        let depth = trie.nodes[n as usize].depth as usize;
        ends.extend(
            trie.tokens_below(n as usize)
                .iter()
                .map(|&t| (&vocab.token(t)[depth..], t)),
        );
    }
    Ok(Inside {
        bits,
        exits: Exits::Ends(Trie::new(ends)),
    })
}
