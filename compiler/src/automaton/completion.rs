//! Short accepted endings.

use std::collections::VecDeque;

use rustc_hash::FxHashMap;

use super::engine::Engine;
use super::states::{ENDED, StateId};
use crate::error::{Error, Result};
use crate::regular::EMPTY;
use crate::stack::Heads;
use crate::vocabulary::Vocabulary;

/// Configurations that one search may visit.
const SEARCH_LIMIT: usize = 200_000;

impl Engine {
    /// The shortest accepted ending in bytes, spelled with as few tokens as these bytes can be.
    pub(super) fn shortest_completion(&mut self, id: StateId) -> Result<Vec<u32>> {
        self.budget.refill();
        if id == ENDED {
            return Ok(Vec::new());
        }
        let start = self.states.get(id)?.kernel.clone();
        let text = self.shortest_ending(start)?;
        Ok(fewest_tokens(&self.vocab, &text))
    }

    /// Breadth first over kernels.
    fn shortest_ending(&mut self, start: Heads) -> Result<Vec<u8>> {
        let mut came_from: FxHashMap<Heads, Option<(Heads, u8)>> = FxHashMap::default();
        let mut queue = VecDeque::from([start.clone()]);
        came_from.insert(start, None);
        while let Some(kernel) = queue.pop_front() {
            let closure = self.machine.close(&kernel, &mut self.budget)?;
            if closure.accepting {
                let mut text = Vec::new();
                let mut at = &kernel;
                while let Some(Some((before, byte))) = came_from.get(at) {
                    text.push(*byte);
                    at = before;
                }
                text.reverse();
                return Ok(text);
            }
            if came_from.len() > SEARCH_LIMIT {
                return Err(Error::Limit { which: "configurations in one search", limit: SEARCH_LIMIT as u64 });
            }
            for byte in self.next_bytes(&closure.heads)? {
                let next = self.machine.step(&closure.heads, byte, &mut self.budget)?;
                if !came_from.contains_key(&next) {
                    came_from.insert(next.clone(), Some((kernel.clone(), byte)));
                    queue.push_back(next);
                }
            }
        }
        Err(Error::Unsatisfiable("no accepted ending can be reached".into()))
    }

    /// One byte for every distinct successor of a closure.
    fn next_bytes(&mut self, heads: &Heads) -> Result<Vec<u8>> {
        let mut columns: Vec<Vec<u32>> = vec![Vec::new(); 256];
        for h in heads {
            let row = *self.machine.arena.row(h.rest, &mut self.budget)?;
            columns.iter_mut().zip(row).for_each(|(c, q)| c.push(q));
        }
        let mut seen = rustc_hash::FxHashSet::default();
        let mut out = Vec::new();
        for (b, column) in columns.into_iter().enumerate() {
            if column.iter().any(|&q| q != EMPTY) && seen.insert(column) {
                out.push(b as u8);
            }
        }
        Ok(out)
    }
}

/// The text as a shortest sequence of tokens (dynamic programme from the end; every byte is a token on its own).
pub(super) fn fewest_tokens(vocab: &Vocabulary, text: &[u8]) -> Vec<u32> {
    let mut best: Vec<(u32, u32)> = vec![(u32::MAX, 0); text.len() + 1];
    best[text.len()] = (0, 0);
    for from in (0..text.len()).rev() {
        for (len, token) in vocab.trie.prefixes(&text[from..]) {
            let cost = best[from + len].0.saturating_add(1);
            if cost < best[from].0 {
                best[from] = (cost, token);
            }
        }
    }
    let mut out = Vec::new();
    let mut at = 0;
    while at < text.len() && best[at].0 != u32::MAX {
        let token = best[at].1;
        out.push(token);
        at += vocab.token(token).len();
    }
    out
}

/// The forced text as tokens, longest match first. The last token is left out where a longer one could still
/// cover its bytes once more text is known.
pub fn forced_tokens(vocab: &Vocabulary, text: &[u8]) -> Vec<u32> {
    let mut out = Vec::new();
    let mut at = 0;
    while at < text.len() {
        let rest = &text[at..];
        if vocab.trie.extends(rest) {
            break;
        }
        let Some((len, token)) = vocab.trie.prefixes(rest).last() else {
            break;
        };
        out.push(token);
        at += len;
    }
    out
}
