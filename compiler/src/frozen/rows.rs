//! Mask rows: the tokens that each state allows. Equal rows are stored once.

use rustc_hash::FxHashMap;

use super::explore::NONE;
use super::table::Table;
use super::{Bounds, Sources, too_large};
use crate::error::Result;
use crate::vocabulary::set_bit;

/// The number of each state's row, and the distinct rows one after the other, in the order of the first states that
/// have them.
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
    let mut before: Option<&[u64]> = None;
    for (i, set) in allowed.iter().enumerate() {
        let (written, rest) = pool.split_at_mut(i * words);
        sources.budget.spend(
            1 + tokens.write(set, before, &written[written.len().saturating_sub(words)..], &mut rest[..words]),
        )?;
        before = Some(set);
    }
    Ok((mask_row, pool))
}

/// Which of at most 64 transitions lead to a state, as bits.
fn bits(transitions: &[u32]) -> u64 {
    transitions.iter().enumerate().fold(0, |set, (i, &to)| set | u64::from(to != NONE) << i)
}

/// The numbers in a set.
fn members(set: &[u64]) -> impl Iterator<Item = usize> + '_ {
    set.iter().enumerate().flat_map(|(i, &word)| {
        let mut rest = word;
        std::iter::from_fn(move || {
            (rest != 0).then(|| {
                let bit = rest.trailing_zeros();
                rest &= rest - 1;
                i * 64 + bit as usize
            })
        })
    })
}

/// The tokens of each class, as a list; for classes of many tokens, also as a mask row.
struct TokensOf {
    lists: Vec<Vec<u32>>,
    rows: Vec<Option<Vec<u32>>>,
    /// The cost of writing each class.
    costs: Vec<usize>,
}

/// The number of words of a row that are written in the time of one single bit.
const SIDE_BY_SIDE: usize = 8;

/// The number of words or bits that are written in the time of one step of a budget.
const WRITTEN: usize = 256;

impl TokensOf {
    fn new(table: &Table, words: usize) -> TokensOf {
        let mut lists: Vec<Vec<u32>> = vec![Vec::new(); table.classes];
        table.class_of.iter().zip(0..).for_each(|(&class, token)| lists[class as usize].push(token));
        let most = words / SIDE_BY_SIDE;
        let row = |list: &Vec<u32>| {
            let mut bits = vec![0; words];
            list.iter().for_each(|&token| set_bit(&mut bits, token));
            bits
        };
        let rows = lists.iter().map(|list| if list.len() > most { Some(row(list)) } else { None }).collect();
        let costs = lists.iter().map(|list| list.len().min(most) + 1).collect();
        TokensOf { lists, rows, costs }
    }

    /// Writes the row of a set of classes into `out`, which must be zero. `before` is another set, and `row` its row:
    /// if few classes differ, that row is copied, and the bits of these classes are flipped. Returns the steps to
    /// charge.
    fn write(&self, set: &[u64], before: Option<&[u64]>, row: &[u32], out: &mut [u32]) -> u64 {
        let cost = |set: &[u64]| members(set).map(|class| self.costs[class]).sum::<usize>();
        let differing = before.map(|before| set.iter().zip(before).map(|(a, b)| a ^ b).collect::<Vec<u64>>());
        let whole = cost(set);
        let (flipped, steps) = match &differing {
            Some(differing) if cost(differing) + out.len() / SIDE_BY_SIDE < whole => {
                out.copy_from_slice(row);
                (&differing[..], cost(differing))
            }
            _ => (set, whole),
        };
        members(flipped).for_each(|class| self.flip(class, out));
        (steps / WRITTEN) as u64
    }

    /// Flips the bits of all tokens of a class. (Each token is in one class only.)
    fn flip(&self, class: usize, out: &mut [u32]) {
        match &self.rows[class] {
            Some(row) => out.iter_mut().zip(row).for_each(|(out, bits)| *out ^= bits),
            None => self.lists[class].iter().for_each(|&token| out[token as usize / 32] ^= 1 << (token % 32)),
        }
    }
}
