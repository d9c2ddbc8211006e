//! What tokens have from the first occurrence of a byte on.

use std::sync::OnceLock;

use super::{LONG_LIST, Trie, Vocabulary};

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

    pub(super) fn memory(&self) -> usize {
        let lists = self.by_byte.iter().filter_map(OnceLock::get).map(|list| size_of_val(&**list));
        let tries = self.tries.iter().filter_map(OnceLock::get).map(Trie::memory);
        lists.sum::<usize>() + tries.sum::<usize>() + size_of_val(&*self.ranks)
    }
}

impl Vocabulary {
    /// The tokens whose text is whole characters and then this byte, with their suffixes from there on in order.
    pub fn suffixes(&self, byte: u8) -> &[Occurrence] {
        self.suffixes.by_byte[byte as usize].get_or_init(|| {
            let first = |&t: &u32| {
                let text = self.token(t);
                let at = text.iter().position(|&b| b == byte)?;
                std::str::from_utf8(&text[..at]).ok().map(|_| (t, at as u32))
            };
            let mut found: Vec<Occurrence> = self.holders(byte).iter().filter_map(first).collect();
            found.sort_unstable_by_key(|&(t, at)| (&self.token(t)[at as usize..], t));
            found.into()
        })
    }

    /// The same as a trie: what these tokens have from the first occurrence of the byte on.
    pub fn suffix_trie(&self, byte: u8) -> &Trie {
        self.suffixes.tries[byte as usize].get_or_init(|| {
            let ends = self.suffixes(byte).iter().map(|&(t, at)| (&self.token(t)[at as usize..], t));
            Trie::of_sorted(&ends.collect::<Vec<_>>())
        })
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
        }
    }

    /// Sorts tokens by their texts.
    pub fn sort_by_text(&self, tokens: &mut [u32]) {
        tokens.sort_unstable_by_key(|&t| self.suffixes.ranks[t as usize]);
    }
}
