//! The tokens of a vocabulary, sorted for a residual that loops on most characters (a string's interior).
//!
//! A token is *plain* if it consists of such characters, so that the residual is the same behind it; others are plain
//! up to some byte on which the residual changes. The plain tokens are one row of bits. Of the others mostly the ends
//! matter, from that byte on, which are the same for all sets of characters (`vocabulary/suffixes.rs`).

use std::sync::{Arc, OnceLock};

use crate::byteset::ByteSet;
use crate::vocabulary::{Occurrence, Vocabulary};

/// The tokens of a vocabulary, sorted for a residual that loops on plain bytes.
pub(in crate::mask) struct TokenClass {
    /// Well-formed (but for a cut last character) and of plain bytes alone.
    pub(in crate::mask) plain: Arc<[u32]>,
    /// The plain and the changing bytes.
    bytes: (ByteSet, ByteSet),
    /// The other tokens that are plain up to a changing byte, and the index of that byte, in the order of what they have
    /// from there on; made when they are first needed, as all that follows.
    others: OnceLock<Vec<Occurrence>>,
    /// How many these may be.
    most_others: usize,
}

impl TokenClass {
    pub(super) fn new(vocab: &Vocabulary, plain: ByteSet, changing: ByteSet) -> TokenClass {
        let mut bits: Vec<u32> = vocab.utf8_prefixes().to_vec();
        vocab.exclude(ByteSet::ALL.minus(plain), &mut bits);
        TokenClass {
            plain: bits.into(),
            bytes: (plain, changing),
            others: OnceLock::new(),
            most_others: vocab.holders_of_any(changing),
        }
    }

    fn occurrences(&self, vocab: &Vocabulary) -> &[Occurrence] {
        self.others.get_or_init(|| {
            let (plain, changing) = self.bytes;
            let is_plain = |&&(t, run): &&Occurrence| vocab.token(t)[..run as usize].iter().all(|&b| plain.contains(b));
            changing.iter().flat_map(|b| vocab.suffixes(b)).filter(is_plain).copied().collect()
        })
    }

    /// The tokens that are not plain, but up to a changing byte.
    pub(in crate::mask) fn others(&self, vocab: &Vocabulary) -> impl Iterator<Item = u32> + '_ {
        self.occurrences(vocab).iter().map(|o| o.0)
    }

    /// The tokens that are not plain, with what they have before their first byte that is not, and from there on.
    pub(in crate::mask) fn split<'a>(&self, vocab: &'a Vocabulary) -> impl Iterator<Item = (u32, &'a [u8], &'a [u8])> {
        self.occurrences(vocab).iter().map(|&(t, run)| {
            let (plain, end) = vocab.token(t).split_at(run as usize);
            (t, plain, end)
        })
    }

    /// Bytes held, with what may be made later.
    pub(super) fn memory(&self) -> usize {
        self.plain.len() * 4 + self.most_others * 8 + 128
    }
}
