//! A finished mask row.

use crate::vocabulary::set_bit;

/// Rows with at most this many tokens are kept as lists.
const SPARSE: usize = 512;

#[derive(Debug, PartialEq, Eq, Hash)]
pub enum Row {
    Sparse(Box<[u32]>),
    Dense(Box<[u32]>),
}

impl Row {
    pub fn new(bits: &[u32]) -> Row {
        let count: usize = bits.iter().map(|w| w.count_ones() as usize).sum();
        if count > SPARSE.min(bits.len() / 2) {
            return Row::Dense(bits.into());
        }
        let mut ids = Vec::with_capacity(count);
        for (i, &word) in bits.iter().enumerate() {
            let mut w = word;
            while w != 0 {
                ids.push(i as u32 * 32 + w.trailing_zeros());
                w &= w - 1;
            }
        }
        Row::Sparse(ids.into())
    }

    /// Writes the row; words beyond the vocabulary are cleared.
    #[inline]
    pub fn write(&self, out: &mut [u32]) {
        match self {
            Row::Dense(bits) => {
                let n = bits.len().min(out.len());
                out[..n].copy_from_slice(&bits[..n]);
                out[n..].fill(0);
            }
            Row::Sparse(ids) => {
                out.fill(0);
                ids.iter().for_each(|&t| set_bit(out, t));
            }
        }
    }

    pub fn memory(&self) -> usize {
        let (Row::Sparse(list) | Row::Dense(list)) = self;
        list.len() * 4 + 48
    }
}
