//! Mask rows: of each state the tokens that it allows, equal rows once.

use rustc_hash::FxHashMap;

use super::explore::NONE;
use super::table::Table;
use super::{Bounds, Sources, too_large};
use crate::error::Result;
use crate::vocabulary::{or_into, set_bit};

/// The row of each state, and the distinct rows one behind the other, in the order of the states that they are first
/// met for.
pub(super) fn rows(sources: &mut Sources, table: &Table, bounds: &Bounds) -> Result<(Vec<i32>, Vec<u32>)> {
    let words = sources.vocab.words();
    let most = bounds.max_pool / (words * 4).max(1);
    let mut known: FxHashMap<Vec<u64>, i32> = FxHashMap::default();
    let mut allowed: Vec<Vec<u64>> = Vec::new();
    let mut mask_row = Vec::with_capacity(table.states);
    for state in 0..table.states as u32 {
        let row = table.row(state);
        let set: Vec<u64> = row.chunks(64).map(bits).collect();
        let number = *known.entry(set).or_insert_with_key(|set| {
            allowed.push(set.clone());
            allowed.len() as i32 - 1
        });
        if allowed.len() > most {
            let bytes = allowed.len() * words * 4;
            return Err(too_large("bytes in its mask rows", bytes, bounds.max_pool, "max_pool"));
        }
        mask_row.push(number);
        sources.budget.spend(1 + row.len() as u64 / 256)?;
    }
    let tokens = TokensOf::new(table, words);
    let mut pool = vec![0u32; allowed.len() * words];
    for (set, out) in allowed.iter().zip(pool.chunks_mut(words.max(1))) {
        let classes = set
            .iter()
            .enumerate()
            .flat_map(|(i, &word)| (0..64).filter(move |b| word >> b & 1 != 0).map(move |b| i * 64 + b));
        let mut steps = 1;
        for class in classes {
            steps += tokens.write(class, out);
        }
        sources.budget.spend(steps / 64)?;
    }
    Ok((mask_row, pool))
}

/// Which of at most 64 transitions lead anywhere.
fn bits(transitions: &[u32]) -> u64 {
    transitions.iter().enumerate().fold(0, |set, (i, &to)| set | u64::from(to != NONE) << i)
}

/// The tokens of each class: as a row of bits where they are many.
struct TokensOf {
    lists: Vec<Vec<u32>>,
    rows: Vec<Option<Vec<u32>>>,
}

impl TokensOf {
    fn new(table: &Table, words: usize) -> TokensOf {
        let mut lists: Vec<Vec<u32>> = vec![Vec::new(); table.classes];
        table.class_of.iter().zip(0..).for_each(|(&class, token)| lists[class as usize].push(token));
        let row = |list: &Vec<u32>| {
            let mut bits = vec![0; words];
            list.iter().for_each(|&token| set_bit(&mut bits, token));
            bits
        };
        let rows = lists.iter().map(|list| if list.len() > words { Some(row(list)) } else { None }).collect();
        TokensOf { lists, rows }
    }

    /// Sets the bits of a class. Returns how many words or bits these were.
    fn write(&self, class: usize, out: &mut [u32]) -> u64 {
        match &self.rows[class] {
            Some(row) => or_into(out, row),
            None => self.lists[class].iter().for_each(|&token| set_bit(out, token)),
        }
        self.lists[class].len().min(out.len()) as u64
    }
}
