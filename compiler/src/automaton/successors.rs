//! Where each token leads from one state, all at once: a row of the table that a device steps by.
//!
//! The trie of the vocabulary is followed on byte states, as by a walk for a mask; but where a state stays the same
//! whatever stands below a node, as in strings, all tokens below are known without entering it. Tokens that lead to the
//! same state have the same number. Only as many states are made as are asked for.

use std::cmp::Reverse;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::configuration::Configuration;
use super::engine::Engine;
use super::states::{Anchor, ENDED, StateId};
use crate::byteset::ByteSet;
use crate::error::Result;
use crate::stack::{ByteState, DEAD};
use crate::vocabulary::get_bit;

/// Stands for a token that is not allowed.
const REFUSED: i32 = -1;
/// Stands for a token that is allowed and leads to a state that was not made.
const NOT_MADE: i32 = -2;

/// Where tokens lead.
pub struct Successors {
    /// For each token the index of a state in `states`, [`REFUSED`] or [`NOT_MADE`].
    pub of: Vec<i32>,
    /// No state is there twice.
    pub states: Vec<Arc<Anchor>>,
}

/// Byte states in the order in which tokens were found to lead there.
#[derive(Default)]
struct Met {
    numbers: FxHashMap<ByteState, i32>,
    /// Each with the number of tokens that lead there.
    states: Vec<(ByteState, usize)>,
}

impl Met {
    fn note(&mut self, state: ByteState, tokens: &[u32], of: &mut [i32]) {
        if tokens.is_empty() {
            return;
        }
        let number = *self.numbers.entry(state).or_insert_with(|| {
            self.states.push((state, 0));
            self.states.len() as i32 - 1
        });
        self.states[number as usize].1 += tokens.len();
        tokens.iter().for_each(|&token| of[token as usize] = number);
    }
}

impl Engine {
    /// Where each token leads from a state. At most `most` states are made, those to which most tokens lead. Where
    /// values must be distinct, each token may lead to a state of its own: then no state is made if more than `most`
    /// tokens are allowed.
    pub fn successors(&mut self, id: StateId, most: usize) -> Result<Successors> {
        self.call(id, |engine| {
            if engine.machine.needs_history() { engine.one_by_one(id, most) } else { engine.along_the_trie(id, most) }
        })
    }

    fn along_the_trie(&mut self, id: StateId, most: usize) -> Result<Successors> {
        let vocab = self.vocab.clone();
        let mut of = vec![REFUSED; vocab.size];
        let mut met = Met::default();
        let start = self.byte_state(id)?;
        let mut todo = if start == DEAD { Vec::new() } else { vec![(0, start)] };
        while let Some((node, state)) = todo.pop() {
            if let Some((bytes, tokens)) = vocab.trie.below(node)
                && bytes.minus(self.staying(state, bytes)?).is_empty()
            {
                self.budget.spend(1 + tokens.len() as u64 / 64)?;
                met.note(state, tokens, &mut of);
                continue;
            }
            let first = self.machine.first(state, &mut self.budget)?;
            for (byte, child) in vocab.trie.children(node, first) {
                self.budget.spend(1)?;
                let next = self.machine.go(state, byte, &mut self.budget)?;
                if next == DEAD {
                    continue;
                }
                met.note(next, vocab.trie.tokens_at(child), &mut of);
                if !vocab.trie.is_leaf(child) {
                    todo.push((child, next));
                }
            }
        }
        self.refuse_cut_characters(&mut met, &mut of)?;
        self.name(id, most, of, &met)
    }

    /// The bytes of a set that lead from a state to itself; of no interest if one of them does not.
    fn staying(&mut self, state: ByteState, wanted: ByteSet) -> Result<ByteSet> {
        let (mut staying, mut left) = (ByteSet::NONE, wanted);
        while let Some(byte) = left.first() {
            let (same, next) = self.machine.go_class(state, byte, &mut self.budget)?;
            if next != state {
                break;
            }
            staying = staying.or(same);
            left = left.minus(same);
        }
        Ok(staying)
    }

    /// Refuses tokens behind which no token completes the character in which they end.
    fn refuse_cut_characters(&mut self, met: &mut Met, of: &mut [i32]) -> Result<()> {
        let Some(characters) = self.cuts.clone() else { return Ok(()) };
        let mut known: FxHashMap<i32, bool> = FxHashMap::default();
        for &token in &characters.cut {
            let number = of[token as usize];
            if number == REFUSED {
                continue;
            }
            let stops = match known.get(&number) {
                Some(&stops) => stops,
                None => {
                    let at = Configuration { state: met.states[number as usize].0, history: None };
                    let stops = self.rest_of_character(&at)?.is_some();
                    known.insert(number, stops);
                    stops
                }
            };
            if !stops {
                of[token as usize] = REFUSED;
                met.states[number as usize].1 -= 1;
            }
        }
        Ok(())
    }

    /// Makes the states to which most tokens lead. In `of` are indices of `met`.
    fn name(&mut self, id: StateId, most: usize, mut of: Vec<i32>, met: &Met) -> Result<Successors> {
        let mut order: Vec<usize> = (0..met.states.len()).filter(|&i| met.states[i].1 > 0).collect();
        order.sort_by_key(|&i| (Reverse(met.states[i].1), i));
        let mut numbers = vec![NOT_MADE; met.states.len()];
        let mut found = Found::default();
        let epoch = self.machine.table.epoch;
        for i in order.into_iter().take(most) {
            let anchor = self.state_of(Configuration { state: met.states[i].0, history: None })?;
            if self.machine.table.epoch != epoch {
                break; // there was no room for more, and the byte states have lost their meaning
            }
            numbers[i] = found.number(anchor);
        }
        of.iter_mut().filter(|number| **number >= 0).for_each(|number| *number = numbers[*number as usize]);
        self.with_ends(id, of, found)
    }

    /// Follows each allowed token by itself, if they are few.
    fn one_by_one(&mut self, id: StateId, most: usize) -> Result<Successors> {
        let vocab = self.vocab.clone();
        let mut bits = vec![0u32; vocab.words()];
        self.find_row(id)?.write(&mut bits);
        let few = bits.iter().map(|word| word.count_ones() as usize).sum::<usize>() <= most;
        let mut of = vec![REFUSED; vocab.size];
        let mut found = Found::default();
        for token in (0..vocab.size as u32).filter(|&token| get_bit(&bits, token) && !vocab.is_eos(token)) {
            of[token as usize] = match if few { self.follow(id, token)? } else { None } {
                Some(anchor) => found.number(anchor),
                None => NOT_MADE,
            };
        }
        self.with_ends(id, of, found)
    }

    /// Adds the tokens that end texts.
    fn with_ends(&mut self, id: StateId, mut of: Vec<i32>, mut found: Found) -> Result<Successors> {
        let vocab = self.vocab.clone();
        let accepting = id != ENDED && self.accepting(id)?;
        let end = if accepting { found.number(self.states.anchor(ENDED)?) } else { REFUSED };
        vocab.eos.iter().for_each(|&token| of[token as usize] = end);
        Ok(Successors { of, states: found.states })
    }
}

/// States, each with the number under which tokens know it.
#[derive(Default)]
struct Found {
    numbers: FxHashMap<StateId, i32>,
    states: Vec<Arc<Anchor>>,
}

impl Found {
    fn number(&mut self, anchor: Arc<Anchor>) -> i32 {
        *self.numbers.entry(anchor.id).or_insert_with(|| {
            self.states.push(anchor);
            self.states.len() as i32 - 1
        })
    }
}
