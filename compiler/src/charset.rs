//! Sets of code points.

use crate::byteset::ByteSet;

/// A set of code points as one bit for each, in words of 64: beyond ASCII, their UTF-8 differs in the last byte only.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CharSet(Box<[u64]>);

impl Default for CharSet {
    fn default() -> CharSet {
        CharSet(vec![0; CharSet::WORDS].into())
    }
}

impl CharSet {
    pub const WORDS: usize = 0x11_0000 / 64;

    pub fn insert(&mut self, c: u32) {
        self.0[c as usize / 64] |= 1 << (c % 64);
    }

    /// Adds the code points from `first` to `last`.
    pub fn insert_range(&mut self, first: u32, last: u32) {
        for word in first / 64..=last / 64 {
            let low = if word == first / 64 { first % 64 } else { 0 };
            let high = if word == last / 64 { last % 64 } else { 63 };
            self.0[word as usize] |= (u64::MAX << low) & (u64::MAX >> (63 - high));
        }
    }

    pub fn contains(&self, c: u32) -> bool {
        self.0[c as usize / 64] >> (c % 64) & 1 != 0
    }

    pub fn is_empty(&self) -> bool {
        self.0.iter().all(|&word| word == 0)
    }

    pub fn len(&self) -> usize {
        self.0.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// Keeps the code points that are in the other set too.
    pub fn intersect(&mut self, other: &CharSet) {
        self.0.iter_mut().zip(&other.0).for_each(|(word, w)| *word &= w);
    }

    /// Drops the code points that are in the other set.
    pub fn subtract(&mut self, other: &CharSet) {
        self.0.iter_mut().zip(&other.0).for_each(|(word, w)| *word &= !w);
    }

    /// Adds the characters beyond ASCII of a word that end in these bytes.
    pub fn insert_endings(&mut self, word: usize, last: ByteSet) {
        self.0[word] |= last.0[2];
    }

    /// The code points of the set from `first` to `last`.
    pub fn between(&self, first: u32, last: u32) -> impl Iterator<Item = u32> + '_ {
        let words = (first / 64..=last / 64).filter(|&at| self.0[at as usize] != 0);
        words.flat_map(|at| at * 64..at * 64 + 64).filter(move |&c| (first..=last).contains(&c) && self.contains(c))
    }

    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        self.between(0, 0x10_FFFF)
    }

    /// The ASCII characters, which are bytes.
    pub fn ascii(&self) -> ByteSet {
        ByteSet([self.0[0], self.0[1], 0, 0])
    }

    /// Whether one of the code points of `many` words from that of number `from` on is in the set.
    pub fn has_any(&self, from: usize, many: usize) -> bool {
        self.0[from..from + many].iter().any(|&word| word != 0)
    }

    /// The last bytes of the characters beyond ASCII in the word of this number.
    pub fn last_bytes(&self, word: usize) -> ByteSet {
        ByteSet([0, 0, self.0[word], 0])
    }

    /// The bytes of all characters in UTF-8.
    pub fn bytes(&self) -> ByteSet {
        let mut all = self.ascii();
        for (at, _) in self.words().filter(|&(at, _)| at >= 2) {
            // any character of the word, without its last byte
            let c = char::from_u32(at as u32 * 64).expect("no surrogates are in a set");
            let mut text = [0; 4];
            let text = c.encode_utf8(&mut text).as_bytes();
            text[..text.len() - 1].iter().for_each(|&b| all.insert(b));
            all = all.or(self.last_bytes(at));
        }
        all
    }

    /// The words that are not empty, with their numbers.
    fn words(&self) -> impl Iterator<Item = (usize, u64)> + '_ {
        self.0.iter().copied().enumerate().filter(|&(_, word)| word != 0)
    }
}
