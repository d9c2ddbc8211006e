//! Sets of bytes.

/// A set of bytes as 256 bits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, PartialOrd, Ord)]
pub struct ByteSet(pub [u64; 4]);

impl ByteSet {
    pub const NONE: ByteSet = ByteSet([0; 4]);
    pub const ALL: ByteSet = ByteSet([u64::MAX; 4]);

    /// The bytes from `lo` to `hi`; none if `lo` is above `hi`.
    #[inline]
    pub const fn range(lo: u8, hi: u8) -> ByteSet {
        let mut words = [0; 4];
        let mut at = 0;
        while at < 4 {
            let from = (lo as u32).saturating_sub(at as u32 * 64);
            let to = (hi as u32 + 1).saturating_sub(at as u32 * 64); // past the last one
            let to = if to > 64 { 64 } else { to };
            if from < to {
                words[at] = u64::MAX >> (64 - (to - from)) << from;
            }
            at += 1;
        }
        ByteSet(words)
    }

    /// One byte.
    #[inline]
    pub fn only(byte: u8) -> ByteSet {
        let mut set = ByteSet::NONE;
        set.insert(byte);
        set
    }

    #[inline]
    pub fn insert(&mut self, b: u8) {
        self.0[(b >> 6) as usize] |= 1 << (b & 63);
    }

    #[inline]
    pub fn contains(&self, b: u8) -> bool {
        self.0[(b >> 6) as usize] >> (b & 63) & 1 != 0
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.0 == [0; 4]
    }

    pub fn len(&self) -> u32 {
        self.0.iter().map(|w| w.count_ones()).sum()
    }

    #[inline]
    fn zip(self, o: ByteSet, f: impl Fn(u64, u64) -> u64) -> ByteSet {
        ByteSet([f(self.0[0], o.0[0]), f(self.0[1], o.0[1]), f(self.0[2], o.0[2]), f(self.0[3], o.0[3])])
    }

    #[inline]
    pub fn and(self, o: ByteSet) -> ByteSet {
        self.zip(o, |a, b| a & b)
    }

    #[inline]
    pub fn or(self, o: ByteSet) -> ByteSet {
        self.zip(o, |a, b| a | b)
    }

    #[inline]
    pub fn minus(self, o: ByteSet) -> ByteSet {
        self.zip(o, |a, b| a & !b)
    }

    /// How many bytes of the set are lower than this one.
    #[inline]
    pub fn rank(&self, b: u8) -> u32 {
        let word = (b >> 6) as usize;
        let below = self.0[..word].iter().map(|w| w.count_ones()).sum::<u32>();
        below + (self.0[word] & ((1 << (b & 63)) - 1)).count_ones()
    }

    /// The lowest byte.
    #[inline]
    pub fn first(mut self) -> Option<u8> {
        self.take_first()
    }

    /// Removes the lowest byte.
    #[inline]
    pub fn take_first(&mut self) -> Option<u8> {
        for (i, word) in self.0.iter_mut().enumerate() {
            if *word != 0 {
                let bit = word.trailing_zeros();
                *word &= *word - 1;
                return Some((i as u32 * 64 + bit) as u8);
            }
        }
        None
    }

    /// The bytes of the set, ascending.
    #[inline]
    pub fn iter(self) -> impl Iterator<Item = u8> {
        self.0.into_iter().enumerate().flat_map(|(i, word)| {
            let mut rest = word;
            std::iter::from_fn(move || {
                (rest != 0).then(|| {
                    let bit = rest.trailing_zeros();
                    rest &= rest - 1;
                    (i as u32 * 64 + bit) as u8
                })
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_hold_the_bytes_between_their_ends() {
        for lo in 0..=255 {
            for hi in 0..=255 {
                assert_eq!(ByteSet::range(lo, hi).iter().collect::<Vec<_>>(), (lo..=hi).collect::<Vec<_>>());
            }
        }
    }
}
