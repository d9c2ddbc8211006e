//! Bit rows: bit `t % 32` of word `t / 32` stands for token `t`.

#[inline]
pub fn set_bit(row: &mut [u32], t: u32) {
    row[(t >> 5) as usize] |= 1 << (t & 31);
}

#[inline]
pub fn clear_bit(row: &mut [u32], t: u32) {
    row[(t >> 5) as usize] &= !(1 << (t & 31));
}

#[inline]
pub fn get_bit(row: &[u32], t: u32) -> bool {
    row[(t >> 5) as usize] >> (t & 31) & 1 != 0
}

/// The tokens of a row, ascending.
pub fn ones(row: &[u32]) -> impl Iterator<Item = u32> {
    row.iter().enumerate().flat_map(|(word, &bits)| {
        let mut left = bits;
        std::iter::from_fn(move || {
            let bit = left.trailing_zeros();
            left &= left.checked_sub(1)?;
            Some(word as u32 * 32 + bit)
        })
    })
}

pub fn or_into(row: &mut [u32], other: &[u32]) {
    row.iter_mut().zip(other).for_each(|(a, b)| *a |= b);
}
