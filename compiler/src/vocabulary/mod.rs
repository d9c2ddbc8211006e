//! The vocabulary index: a tokenizer's tokens, arranged for the questions that masks ask. Built once per tokenizer.
//!
//! In come the tokens' texts; out come a trie of them (`trie.rs`), the tokens that hold a byte, those that are
//! well-formed UTF-8, those of more than so many characters, those that begin with whitespace (`blanks.rs`), and what
//! tokens have from a byte on (`suffixes.rs`); and, where some bytes stand inside longer tokens only, the characters
//! that tokens spell (`characters.rs`).

mod bits;
mod blanks;
mod characters;
mod merging;
mod suffixes;
mod trie;

use std::sync::{Arc, OnceLock};

pub use bits::{clear_bit, get_bit, ones, or_into, set_bit};
pub use blanks::{BlankRun, blank_bytes};
pub use characters::{Characters, count_characters};
pub use suffixes::Occurrence;
pub use trie::{Name, NodeIndex, Trie};

use crate::byteset::ByteSet;

/// Tokens of more characters than this are few.
const SHORT: usize = 24;

/// Lists of tokens longer than this are also kept as rows of bits.
const LONG_LIST: usize = 2048;

/// Ranges of bytes, first and last, each of which most sets of characters hold as a whole or not at all.
const RANGES: [(u8, u8); 5] = [(0x00, 0x1F), (b'0', b'9'), (b'A', b'Z'), (b'a', b'z'), (0x80, 0xFF)];

pub struct Vocabulary {
    /// Number of logits.
    pub size: usize,
    /// Token bytes, end to end; `None` tokens are empty.
    bytes: Vec<u8>,
    spans: Vec<u32>,
    pub eos: Vec<u32>,
    /// Tokens that are no text, in ascending order. Their bytes are the marks by which grammars name them.
    special: Vec<u32>,
    pub trie: Trie,
    /// Bytes that are a token on their own.
    pub alphabet: ByteSet,
    /// Bytes that occur in longer tokens only.
    pub inner: ByteSet,
    characters: OnceLock<Arc<Characters>>,
    /// Bytes of the longest token that is text.
    pub longest: usize,
    /// Tokens that hold the byte, ascending.
    holders: Vec<Vec<u32>>,
    /// Long lists of these, as rows of bits; other rows are empty.
    holder_rows: Vec<Box<[u32]>>,
    /// Tokens that hold any byte of a range.
    range_rows: [Box<[u32]>; RANGES.len()],
    /// How many tokens hold the byte behind their first.
    later_holders: Vec<u32>,
    /// Tokens that are well-formed UTF-8, but for a last character that may be cut off.
    utf8_prefixes: Box<[u32]>,
    /// Tokens of more than one character, longest first, with their numbers of characters.
    by_characters: Vec<(u16, u32)>,
    /// Tokens of more than 0, 1, 2, ... characters.
    longer: [Box<[u32]>; SHORT],
    /// Tokens of more than one byte, longest first.
    by_bytes: Vec<u32>,
    blanks: blanks::Blanks,
    suffixes: suffixes::Suffixes,
}

impl Vocabulary {
    /// Whether both have the same tokens, and the same ones of them end a text.
    pub fn same_as(&self, other: &Self) -> bool {
        std::ptr::eq(self, other)
            || (self.size == other.size
                && self.eos == other.eos
                && self.special == other.special
                && self.spans == other.spans
                && self.bytes == other.bytes)
    }

    /// `tokens[i]`: the text of token `i`, `None` (or empty) where it is no text. At least `tokens.len()` logits.
    ///
    /// `special`: tokens whose bytes are a mark that names them. No other token may hold any of these bytes, and
    /// grammars must use marks as a whole, not parts of them.
    pub fn new<'a>(
        tokens: impl Iterator<Item = Option<&'a [u8]>>,
        eos: Vec<u32>,
        mut special: Vec<u32>,
        size: usize,
    ) -> Vocabulary {
        let (mut bytes, mut spans) = (Vec::new(), vec![0u32]);
        for token in tokens.take(size) {
            bytes.extend_from_slice(token.unwrap_or_default());
            spans.push(bytes.len() as u32);
        }
        spans.resize(size + 1, bytes.len() as u32);
        special.sort_unstable();
        let mut v = Vocabulary {
            size,
            bytes,
            spans,
            eos,
            special,
            trie: Trie::default(),
            alphabet: ByteSet::NONE,
            inner: ByteSet::NONE,
            characters: OnceLock::new(),
            longest: 0,
            holders: vec![Vec::new(); 256],
            holder_rows: Vec::new(),
            range_rows: Default::default(),
            later_holders: vec![0; 256],
            utf8_prefixes: Box::default(),
            by_characters: Vec::new(),
            longer: Default::default(),
            by_bytes: Vec::new(),
            blanks: blanks::Blanks::new(std::iter::empty(), 0),
            suffixes: suffixes::Suffixes::new(),
        };
        v.eos.sort_unstable();
        v.eos.dedup();
        v.eos.retain(|&t| (t as usize) < size);
        let mut items: Vec<(&[u8], u32)> = Vec::with_capacity(size);
        for t in 0..size as u32 {
            let text = v.token(t);
            if text.is_empty() || v.eos.binary_search(&t).is_ok() {
                continue;
            }
            items.push((text, t));
        }
        let mut alphabet = ByteSet::NONE;
        let mut longest = 0;
        let mut holders = vec![Vec::new(); 256];
        let mut later_holders = vec![0; 256];
        for &(text, t) in &items {
            if v.is_special(t) {
                // the mark is one token, so it does not matter that its bytes are no tokens
                text.iter().for_each(|&b| alphabet.insert(b));
            } else {
                longest = longest.max(text.len());
            }
            if let [b] = text {
                alphabet.insert(*b);
            }
            for (i, &b) in text.iter().enumerate() {
                let list: &mut Vec<u32> = &mut holders[b as usize];
                if list.last() != Some(&t) {
                    list.push(t);
                }
                later_holders[b as usize] += u32::from(i > 0 && !text[1..i].contains(&b));
            }
        }
        let long = |&&(text, t): &&(&[u8], u32)| text.len() > 1 && !v.is_special(t);
        let mut by_bytes: Vec<u32> = items.iter().filter(long).map(|i| i.1).collect();
        by_bytes.sort_by_key(|&t| std::cmp::Reverse(v.token(t).len()));
        let blanks = blanks::Blanks::new(items.iter().copied(), size);
        let trie = Trie::new(items).named(Name::Tokens);
        v.by_bytes = by_bytes;
        v.trie = trie;
        v.blanks = blanks;
        for b in 0..=255u8 {
            if !holders[b as usize].is_empty() && !alphabet.contains(b) {
                v.inner.insert(b);
            }
        }
        v.alphabet = alphabet;
        v.longest = longest;
        v.holders = holders;
        v.later_holders = later_holders;
        // once per vocabulary, rather than at the first string of the first grammar
        v.index_holders();
        v.index_characters();
        v.index_suffixes();
        v
    }

    /// Makes the rows of the tokens that hold a byte, and of those that are UTF-8.
    fn index_holders(&mut self) {
        let row_of_many = |b: u8| match self.holders(b).len() {
            0..=LONG_LIST => Box::default(),
            _ => self.holders_row(ByteSet::only(b)),
        };
        self.holder_rows = (0..=255).map(row_of_many).collect();
        self.range_rows = RANGES.map(|(first, last)| self.holders_row(ByteSet::range(first, last)));
        let mut prefixes = vec![0; self.words()].into_boxed_slice();
        for &t in self.trie.tokens() {
            if std::str::from_utf8(self.token(t)).err().is_none_or(|e| e.error_len().is_none()) {
                set_bit(&mut prefixes, t);
            }
        }
        self.utf8_prefixes = prefixes;
    }

    /// Makes the rows of the tokens of so many characters.
    fn index_characters(&mut self) {
        let characters = |t| (count_characters(self.token(t)) as u16, t);
        let text = (0..self.size as u32).filter(|&t| !self.is_special(t) && !self.is_eos(t));
        let mut list: Vec<(u16, u32)> = text.map(characters).filter(|&(n, _)| n > 1).collect();
        list.sort_unstable_by(|a, b| b.cmp(a));
        let (mut bits, mut left) = (vec![0; self.words()], list.iter().peekable());
        for most in (0..SHORT).rev() {
            while let Some(&(_, t)) = left.next_if(|(n, _)| usize::from(*n) > most) {
                set_bit(&mut bits, t);
            }
            self.longer[most] = bits.clone().into();
        }
        self.by_characters = list;
    }

    /// A number by which to see that two vocabularies differ, the same in every process: FNV-1a of the tokens, of those
    /// that end a text and of those that are no text. It is no proof against somebody who wants two to have the same.
    pub fn fingerprint(&self) -> u64 {
        let add = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01B3);
        let lists = [&self.spans, &self.eos, &self.special];
        let numbers = lists.into_iter().flat_map(|list| std::iter::once(list.len() as u32).chain(list.iter().copied()));
        let bytes = numbers.flat_map(u32::to_le_bytes).chain(self.bytes.iter().copied());
        bytes.fold(0xCBF2_9CE4_8422_2325, add)
    }

    /// Words of a mask row.
    pub fn words(&self) -> usize {
        self.size.div_ceil(32)
    }

    /// The token's text; empty if it is no text or no token.
    #[inline]
    pub fn token(&self, t: u32) -> &[u8] {
        match (self.spans.get(t as usize), self.spans.get(t as usize + 1)) {
            (Some(&a), Some(&b)) => &self.bytes[a as usize..b as usize],
            _ => &[],
        }
    }

    pub fn is_eos(&self, t: u32) -> bool {
        self.eos.contains(&t)
    }

    /// The token's bytes are no text.
    pub fn is_special(&self, t: u32) -> bool {
        self.special.binary_search(&t).is_ok()
    }

    /// The characters that tokens spell; found when they are first asked for, since most grammars on most vocabularies
    /// need none.
    pub fn characters(&self) -> &Arc<Characters> {
        self.characters.get_or_init(|| {
            let marks = self.alphabet.and(ByteSet::range(0xF5, 0xFF));
            let tokens = self.trie.tokens().iter().filter(|&&t| !self.is_special(t));
            let tokens: Vec<(&[u8], u32)> = tokens.map(|&t| (self.token(t), t)).collect();
            Arc::new(Characters::new(&tokens, self.alphabet.minus(marks), marks))
        })
    }

    /// Tokens that hold the byte, ascending.
    pub fn holders(&self, b: u8) -> &[u32] {
        &self.holders[b as usize]
    }

    /// Those bytes of the set that few tokens hold.
    pub fn held_by_few(&self, set: ByteSet) -> ByteSet {
        let mut few = ByteSet::NONE;
        set.iter().filter(|&b| self.holders(b).len() <= LONG_LIST).for_each(|b| few.insert(b));
        few
    }

    /// How many tokens hold a byte of the set, those that hold several counted as often.
    pub fn holders_of_any(&self, set: ByteSet) -> usize {
        set.iter().map(|b| self.holders(b).len()).sum()
    }

    /// The same without counting first bytes.
    pub fn later_holders_of_any(&self, set: ByteSet) -> usize {
        set.iter().map(|b| self.later_holders[b as usize] as usize).sum()
    }

    /// Clears the tokens that hold any byte of the set.
    pub fn exclude(&self, mut set: ByteSet, row: &mut [u32]) {
        let mut clear = |holders: &[u32]| row.iter_mut().zip(holders).for_each(|(word, held)| *word &= !held);
        for (&(first, last), holders) in RANGES.iter().zip(&self.range_rows) {
            let range = ByteSet::range(first, last);
            if range.minus(set).is_empty() {
                clear(holders);
                set = set.minus(range);
            }
        }
        let few = self.held_by_few(set);
        set.minus(few).iter().for_each(|b| clear(&self.holder_rows[b as usize]));
        few.iter().flat_map(|b| self.holders(b)).for_each(|&t| clear_bit(row, t));
    }

    /// The tokens that hold any byte of the set, as a row of bits.
    fn holders_row(&self, set: ByteSet) -> Box<[u32]> {
        let mut bits = vec![0; self.words()].into_boxed_slice();
        set.iter().flat_map(|b| self.holders(b)).for_each(|&t| set_bit(&mut bits, t));
        bits
    }

    /// Tokens that are well-formed UTF-8, but for a last character that may be cut off, as a row of bits.
    pub fn utf8_prefixes(&self) -> &[u32] {
        &self.utf8_prefixes
    }

    /// Tokens of more than `bytes` bytes.
    pub fn longer_than(&self, bytes: u32) -> &[u32] {
        let n = self.by_bytes.partition_point(|&t| self.token(t).len() as u64 > u64::from(bytes));
        &self.by_bytes[..n]
    }

    /// The runs of whitespace that tokens begin with.
    pub fn blank_runs(&self) -> &[BlankRun] {
        &self.blanks.runs
    }

    /// The index of the run that a token begins with, if it does.
    #[inline]
    pub fn blank_run(&self, t: u32) -> usize {
        self.blanks.run_of[t as usize] as usize
    }

    /// The tokens that begin with whitespace and go on, by what comes after it.
    pub fn after_blanks(&self) -> &Trie {
        &self.blanks.ends
    }

    /// The tokens of text of more than `most` characters (a cut one at the end counts), each behind their number.
    pub fn longer(&self, most: u32) -> impl Iterator<Item = (u32, u32)> + '_ {
        let all = self.by_characters.iter().map(|&(n, t)| (u32::from(n), t));
        all.take_while(move |&(n, _)| n > most)
    }

    /// Clears the tokens of text of more than `most` characters (a cut one at the end counts).
    pub fn exclude_longer(&self, most: u32, row: &mut [u32]) {
        match self.longer.get(most as usize) {
            Some(longer) => row.iter_mut().zip(longer).for_each(|(word, longer)| *word &= !longer),
            None => {
                self.longer(most).for_each(|(_, t)| clear_bit(row, t)); // they are few
            }
        }
    }
}
