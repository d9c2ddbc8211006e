//! Mask rows: drafts of masks, which strategies make, and finished rows, which are written to the caller's bitmask.

use std::sync::Arc;

use rustc_hash::FxHashSet;

use crate::vocabulary::{Vocabulary, clear_bit, get_bit, ones, set_bit};

/// Tokens that a finished row keeps as lists, at most.
const FEW: usize = 1024;

/// A mask under construction: a base of bits that others share, tokens to be cleared in it, and tokens to be set.
#[derive(Clone, Default)]
pub(super) struct Draft {
    /// Of all tokens of the vocabulary. `None`: no bits.
    pub(super) base: Option<Arc<[u32]>>,
    pub(super) clear: Vec<u32>,
    pub(super) set: Vec<u32>,
    /// Tokens of which it depends on more of a truncated stack whether they are allowed.
    pub(super) unsure: Vec<u32>,
}

/// Writes the bits of a base into `out`, less some tokens, plus some; words beyond the base are cleared.
#[inline]
fn write(base: Option<&[u32]>, clear: &[u32], set: &[u32], out: &mut [u32]) {
    match base {
        Some(bits) => {
            let n = bits.len().min(out.len());
            out[..n].copy_from_slice(&bits[..n]);
            out[n..].fill(0);
        }
        None => out.fill(0),
    }
    clear.iter().for_each(|&t| clear_bit(out, t));
    set.iter().for_each(|&t| set_bit(out, t));
}

/// Bits that no one else holds yet.
fn only(bits: &mut Arc<[u32]>) -> &mut [u32] {
    Arc::get_mut(bits).expect("they were just made")
}

impl Draft {
    /// Adds tokens that are allowed, or may be.
    #[inline]
    pub(super) fn reach(&mut self, unsure: bool, tokens: &[u32]) {
        let list = if unsure { &mut self.unsure } else { &mut self.set };
        match tokens {
            [] => {}
            [only] => list.push(*only), // as a rule
            _ => list.extend_from_slice(tokens),
        }
    }

    /// The same with all tokens in the base. There must be none of which anything is unsure.
    pub(super) fn with_base(&self, words: usize) -> Draft {
        Draft { base: Some(self.bits(words)), ..Draft::default() }
    }

    /// The same if a row is smaller than the list; it is also put together with others faster.
    pub(super) fn with_base_if_many(self, words: usize) -> Draft {
        if self.set.len() > words { self.with_base(words) } else { self }
    }

    /// A token of those to be set, or of the base, that is whole characters.
    pub(super) fn first_whole(&self, vocab: &Vocabulary) -> Option<u32> {
        let is_whole = |&token: &u32| std::str::from_utf8(vocab.token(token)).is_ok();
        let listed = self.set.iter().copied().find(is_whole);
        listed.or_else(|| ones(self.base.as_deref().unwrap_or_default()).find(is_whole))
    }

    /// Takes the tokens that are to be cleared from those that are to be set.
    pub(super) fn drop_cleared(&mut self, words: usize) {
        if self.clear.len() <= FEW {
            self.clear.sort_unstable();
            self.set.retain(|t| self.clear.binary_search(t).is_err());
        } else if !self.set.is_empty() {
            let mut cleared = vec![0u32; words];
            self.clear.iter().for_each(|&t| set_bit(&mut cleared, t));
            self.set.retain(|&t| !get_bit(&cleared, t));
        }
    }

    /// Bytes of the tokens, but for those in a base.
    pub(super) fn memory(&self) -> usize {
        (self.clear.len() + self.set.len() + self.unsure.len()) * 4 + 96
    }

    /// Adds the tokens of another draft.
    pub(super) fn add(&mut self, other: Draft, words: usize) {
        if self.base.is_none() && self.set.is_empty() && self.unsure.is_empty() {
            *self = other;
            return;
        }
        self.unsure.extend_from_slice(&other.unsure);
        if let Some(theirs) = &other.base {
            if let Some(ours) = &self.base {
                if Arc::ptr_eq(ours, theirs) {
                    let cleared: FxHashSet<u32> = other.clear.into_iter().collect();
                    self.clear.retain(|t| cleared.contains(t));
                    self.set.extend(other.set);
                    return;
                }
                let (mut bits, more) = (self.bits(words), other.bits(words));
                only(&mut bits).iter_mut().zip(&more[..]).for_each(|(a, b)| *a |= b);
                *self = Draft { base: Some(bits), unsure: std::mem::take(&mut self.unsure), ..Draft::default() };
                return;
            }
            (self.base, self.clear) = (other.base, other.clear);
        }
        self.set.extend(other.set);
    }

    /// The bits of all tokens, but for those of which anything is unsure.
    fn bits(&self, words: usize) -> Arc<[u32]> {
        let mut bits = match &self.base {
            Some(base) => Arc::from(&base[..]),
            None => std::iter::repeat_n(0, words).collect(),
        };
        let out = only(&mut bits);
        self.clear.iter().for_each(|&t| clear_bit(out, t));
        self.set.iter().for_each(|&t| set_bit(out, t));
        bits
    }

    /// The row, and the tokens that it may lack.
    pub(super) fn finish(mut self, words: usize) -> (Row, Vec<u32>) {
        let mut unsure = std::mem::take(&mut self.unsure);
        if !unsure.is_empty() {
            let bits = self.bits(words);
            unsure.retain(|&token| !get_bit(&bits, token));
            unsure.sort_unstable();
            unsure.dedup();
        }
        (self.row(words), unsure)
    }

    fn row(self, words: usize) -> Row {
        match self.base {
            None if self.set.len() <= FEW.min(words) => Row { base: None, clear: [].into(), set: self.set.into() },
            Some(base) if self.set.len() + self.clear.len() <= FEW => {
                Row { base: Some(base), clear: self.clear.into(), set: self.set.into() }
            }
            _ => Row::of(self.bits(words)),
        }
    }
}

/// A finished mask row: bits that others may share, less some tokens, plus some.
#[derive(Debug)]
pub struct Row {
    base: Option<Arc<[u32]>>,
    clear: Box<[u32]>,
    set: Box<[u32]>,
}

impl Row {
    /// The row of these bits.
    pub(super) fn of(bits: Arc<[u32]>) -> Row {
        Row { base: Some(bits), clear: [].into(), set: [].into() }
    }

    /// Writes the row; words beyond the vocabulary are cleared.
    #[inline]
    pub fn write(&self, out: &mut [u32]) {
        write(self.base.as_deref(), &self.clear, &self.set, out);
    }

    /// All tokens of the row, in no order, if they are few enough to be kept as a list.
    pub fn listed(&self) -> Option<&[u32]> {
        if self.base.is_none() { Some(&self.set) } else { None }
    }

    /// The row without these tokens.
    pub fn without(&self, tokens: &[u32], words: usize) -> Row {
        let mut draft = self.draft();
        draft.clear.extend_from_slice(tokens);
        let gone: FxHashSet<u32> = tokens.iter().copied().collect();
        draft.set.retain(|t| !gone.contains(t));
        draft.row(words)
    }

    /// The row with these tokens.
    pub(super) fn with(&self, tokens: &[u32], words: usize) -> Row {
        let mut draft = self.draft();
        draft.set.extend_from_slice(tokens);
        draft.row(words)
    }

    fn draft(&self) -> Draft {
        let (clear, set) = (self.clear.to_vec(), self.set.to_vec());
        Draft { base: self.base.clone(), clear, set, unsure: Vec::new() }
    }

    /// Bytes held by this row alone: without its bits, which others may share.
    pub fn memory(&self) -> usize {
        (self.clear.len() + self.set.len()) * 4 + 96
    }

    /// The bits that others may share.
    pub fn base(&self) -> Option<&Arc<[u32]>> {
        self.base.as_ref()
    }
}
