//! Sets of small numbers as bits.

use smallvec::SmallVec;

use crate::ir::Parser;

/// A set of small numbers; or of terminals, of which the end of the text is one.
#[derive(PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub(super) struct Numbers(SmallVec<[u64; 2]>);

impl Clone for Numbers {
    fn clone(&self) -> Numbers {
        Numbers(SmallVec::from_slice(&self.0))
    }
}

impl Numbers {
    pub(super) fn of(numbers: impl IntoIterator<Item = u32>) -> Numbers {
        let mut set = Numbers::default();
        for number in numbers {
            let (word, bit) = Numbers::place(number);
            if set.0.len() <= word {
                set.0.resize(word + 1, 0);
            }
            set.0[word] |= bit;
        }
        set
    }

    /// The end of the text comes first.
    fn place(number: u32) -> (usize, u64) {
        let place = number.wrapping_sub(Parser::END);
        (place as usize / 64, 1 << (place % 64))
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        let places =
            (0..64 * self.0.len() as u32).filter(|place| self.0[*place as usize / 64] >> (place % 64) & 1 != 0);
        places.map(|place| place.wrapping_add(Parser::END))
    }

    pub(super) fn contains(&self, number: u32) -> bool {
        let (word, bit) = Numbers::place(number);
        self.0.get(word).is_some_and(|&bits| bits & bit != 0)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How many words of memory it takes.
    pub(super) fn words(&self) -> usize {
        self.0.len()
    }

    /// Those that are in both.
    pub(super) fn and(&self, others: &Numbers) -> Numbers {
        Numbers::shortened(self.0.iter().zip(&others.0).map(|(a, b)| a & b).collect())
    }

    pub(super) fn has_others_than(&self, others: &Numbers) -> bool {
        self.0.iter().enumerate().any(|(at, &bits)| bits & !others.0.get(at).copied().unwrap_or(0) != 0)
    }

    /// Adds others. Returns whether there are new ones among them.
    pub(super) fn extend(&mut self, others: &Numbers) -> bool {
        if self.0.len() < others.0.len() {
            self.0.resize(others.0.len(), 0);
        }
        let mut grown = false;
        for (word, &bits) in self.0.iter_mut().zip(&others.0) {
            grown |= bits & !*word != 0;
            *word |= bits;
        }
        grown
    }

    pub(super) fn without(&self, others: &Numbers) -> Numbers {
        let other = |at: usize| others.0.get(at).copied().unwrap_or(0);
        Numbers::shortened(self.0.iter().enumerate().map(|(at, &bits)| bits & !other(at)).collect())
    }

    /// Equal sets are equal words: the last one is not empty.
    fn shortened(mut words: SmallVec<[u64; 2]>) -> Numbers {
        while words.last() == Some(&0) {
            words.pop();
        }
        Numbers(words)
    }
}
