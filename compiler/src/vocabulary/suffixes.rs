//! What tokens have from the first occurrence of a byte on.

use std::sync::OnceLock;

use super::trie::sorted;
use super::{LONG_LIST, Trie, Vocabulary, get_bit};
use crate::byteset::ByteSet;

/// Texts of more tokens than this are not looked at one by one.
const MANY: usize = 512;

/// A trie of so small a part of the tokens is made of their texts: a look at all others would cost more.
const FEW: usize = 16;

/// A token and where in its text a byte occurs first.
pub type Occurrence = (u32, u32);

/// For each byte the tokens that hold it, in the order of what they have from its first occurrence on. Long lists are
/// made when they are first asked for.
pub(super) struct Suffixes {
    by_byte: Box<[OnceLock<Box<[Occurrence]>>]>,
    tries: Box<[OnceLock<Trie>]>,
    /// The place of each token in the order of the tokens' texts.
    ranks: Box<[u32]>,
}

impl Suffixes {
    pub(super) fn new() -> Suffixes {
        Suffixes {
            by_byte: (0..256).map(|_| OnceLock::new()).collect(),
            tries: (0..256).map(|_| OnceLock::new()).collect(),
            ranks: [].into(),
        }
    }
}

impl Vocabulary {
    /// The tokens whose text is whole characters and then this byte, with their suffixes from there on in order.
    pub fn suffixes(&self, byte: u8) -> &[Occurrence] {
        self.suffixes.by_byte[byte as usize].get_or_init(|| {
            let first = |&t: &u32| {
                let text = self.token(t);
                let at = text.iter().position(|&b| b == byte)?;
                std::str::from_utf8(&text[..at]).ok().map(|_| (&text[at..], (t, at as u32)))
            };
            let found = sorted(self.holders(byte).iter().filter_map(first).collect());
            found.into_iter().map(|(_, occurrence)| occurrence).collect()
        })
    }

    /// The same as a trie: what these tokens have from the first occurrence of the byte on.
    pub fn suffix_trie(&self, byte: u8) -> &Trie {
        self.suffixes.tries[byte as usize].get_or_init(|| {
            let ends = self.suffixes(byte).iter().map(|&(t, at)| (&self.token(t)[at as usize..], t));
            Trie::of_sorted(&ends.collect::<Vec<_>>())
        })
    }

    /// The texts of the tokens that hold a byte of the set.
    pub fn texts_with(&self, set: ByteSet) -> Trie {
        if self.holders_of_any(set) > self.size / FEW {
            return self.trie.restricted(&self.holders_row(set));
        }
        let mut tokens: Vec<u32> = set.iter().flat_map(|byte| self.holders(byte)).copied().collect();
        tokens.sort_unstable_by_key(|&t| self.suffixes.ranks[t as usize]);
        tokens.dedup();
        Trie::of_sorted(&tokens.into_iter().map(|t| (self.token(t), t)).collect::<Vec<_>>())
    }

    /// Where a byte occurs first in a token that holds it.
    pub fn first_of(&self, byte: u8, token: u32) -> u32 {
        self.token(token).iter().take_while(|&&other| other != byte).count() as u32
    }

    /// Whether all that a token has before the first occurrence of a byte are bytes of the set.
    pub fn has_only_before(&self, set: ByteSet, byte: u8, token: u32) -> bool {
        self.token(token).iter().take_while(|&&other| other != byte).all(|&other| set.contains(other))
    }

    /// Adds those of some tokens that hold `byte` to `out` which have only bytes of the set before its first occurrence.
    pub fn add_with_only_before(&self, (set, byte): (ByteSet, u8), tokens: Vec<u32>, out: &mut Vec<u32>) {
        // most of many have no other byte at all, which a row of bits tells without a look at their texts
        let clean = (tokens.len() > MANY).then(|| {
            let mut row = vec![u32::MAX; self.words()];
            self.exclude(ByteSet::ALL.minus(set.or(ByteSet::only(byte))), &mut row);
            row
        });
        let is_clean = |token| clean.as_ref().is_some_and(|row| get_bit(row, token));
        out.extend(tokens.into_iter().filter(|&token| is_clean(token) || self.has_only_before(set, byte, token)));
    }

    /// Makes what is needed at the first strings of most grammars.
    pub(super) fn index_suffixes(&mut self) {
        let mut ranks = vec![0; self.size].into_boxed_slice();
        self.trie.tokens().iter().zip(0..).for_each(|(&t, rank)| ranks[t as usize] = rank);
        self.suffixes.ranks = ranks;
        for byte in 0..=255 {
            if self.holders(byte).len() <= LONG_LIST {
                self.suffixes(byte);
            }
            if byte.is_ascii() && !byte.is_ascii_alphabetic() && byte != b' ' {
                self.suffix_trie(byte);
            }
        }
    }
}
