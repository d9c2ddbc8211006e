//! Unions of sets of tokens, some of which are rows of bits.

use rustc_hash::FxHashSet;

use crate::mask::row::Draft;
use crate::vocabulary::{clear_bit, set_bit};

/// A union under construction.
#[derive(Default)]
pub(super) struct Union {
    /// Empty until a row is added.
    bits: Vec<u32>,
    set: Vec<u32>,
    /// Tokens of which it depends on more of a truncated stack whether they belong to it.
    pub(super) unsure: Vec<u32>,
}

impl Union {
    pub(super) fn add(&mut self, draft: &Draft) {
        if let Some(base) = &draft.base {
            if self.bits.is_empty() {
                self.bits = base.to_vec();
            } else {
                self.bits.iter_mut().zip(base.iter()).for_each(|(ours, theirs)| *ours |= theirs);
            }
        }
        self.set.extend_from_slice(&draft.set);
    }

    /// Adds tokens that belong to it if a truncated stack goes on in some way.
    pub(super) fn add_unsure(&mut self, draft: &Draft) {
        for (word, bits) in draft.base.iter().flat_map(|base| base.iter().enumerate()) {
            let mut left = *bits;
            while left != 0 {
                self.unsure.push(word as u32 * 32 + left.trailing_zeros());
                left &= left - 1;
            }
        }
        self.unsure.extend_from_slice(&draft.set);
    }

    /// Adds another union but for some tokens.
    pub(super) fn add_without(&mut self, mut other: Union, except: &[u32]) {
        let gone: FxHashSet<u32> = except.iter().copied().collect();
        if !other.bits.is_empty() {
            except.iter().for_each(|&token| clear_bit(&mut other.bits, token));
            if self.bits.is_empty() {
                self.bits = other.bits;
            } else {
                self.bits.iter_mut().zip(other.bits).for_each(|(ours, theirs)| *ours |= theirs);
            }
        }
        self.set.extend(other.set.into_iter().filter(|token| !gone.contains(token)));
        self.unsure.extend(other.unsure.into_iter().filter(|token| !gone.contains(token)));
    }

    pub(super) fn draft(mut self) -> Draft {
        if self.bits.is_empty() {
            return Draft { set: self.set, unsure: self.unsure, ..Draft::default() };
        }
        self.set.iter().for_each(|&token| set_bit(&mut self.bits, token));
        Draft { base: Some(self.bits.into()), unsure: self.unsure, ..Draft::default() }
    }
}
