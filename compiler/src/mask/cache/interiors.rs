//! What tokens do in a loop: which of them stay inside, and what the others have behind it.
//!
//! The loop of a string is its characters and its escapes. A token that stays among them is allowed, whatever follows the
//! string; of the others only what they have from the closing quote on matters, which is little. Where characters are
//! counted, it matters too how many of them a token has.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::classes::TokenClass;
use crate::budget::Budget;
use crate::byteset::ByteSet;
use crate::error::Result;
use crate::regular::{Arena, Id};
use crate::vocabulary::{Trie, Vocabulary, count_characters, set_bit};

/// How many times the tokens that are not plain go around a loop: how many characters of a string they have.
pub(in crate::mask) struct Rounds {
    /// Of those that stay inside: the rounds that they begin.
    pub(in crate::mask) inside: Vec<(u32, u32)>,
    /// Of those that may leave: the rounds before they do.
    pub(in crate::mask) exits: FxHashMap<u32, u32>,
}

impl Rounds {
    /// `class`: as for [`Interior::new`]. `None`: a text may go around the loop in several ways.
    pub(super) fn new(
        vocab: &Vocabulary,
        class: &TokenClass,
        arena: &mut Arena,
        inner: Id,
        budget: &mut Budget,
    ) -> Result<Option<Rounds>> {
        let mut found = Rounds { inside: Vec::new(), exits: FxHashMap::default() };
        'tokens: for (token, plain, end) in class.split(vocab) {
            let (mut rounds, mut rest) = (count_characters(plain), inner);
            for &byte in end {
                budget.spend(1)?;
                if !arena.first(rest, budget)?.contains(byte) {
                    if rest == inner {
                        found.exits.insert(token, rounds);
                    }
                    continue 'tokens;
                }
                rounds += u32::from(rest == inner);
                rest = arena.next(rest, byte, budget)?;
                if rest != inner && arena.nullable(rest) {
                    return Ok(None);
                }
            }
            found.inside.push((token, rounds));
        }
        Ok(Some(found))
    }

    pub(super) fn memory(&self) -> usize {
        (self.inside.capacity() + self.exits.capacity()) * 8
    }
}

/// The tokens of a vocabulary, followed through a loop: an expression that may end, and that plain bytes lead back to.
pub(in crate::mask) struct Interior {
    /// Those that stay inside.
    pub(in crate::mask) inside: Arc<[u32]>,
    /// What the others have from where the loop may end, and does if the next byte is not in `going_on`. `None`: the loop
    /// goes around by plain bytes alone, so that it ends before whatever changing byte comes first.
    pub(in crate::mask) exits: Option<Trie>,
    /// The bytes that may go on inside where the loop may end.
    pub(in crate::mask) going_on: ByteSet,
}

impl Interior {
    /// `class`: the tokens, sorted for the plain and the changing bytes of the loop `inner`.
    pub(super) fn new(
        vocab: &Vocabulary,
        class: &TokenClass,
        (plain, changing): (ByteSet, ByteSet),
        arena: &mut Arena,
        inner: Id,
        budget: &mut Budget,
    ) -> Result<Interior> {
        let first = arena.first(inner, budget)?;
        if first.and(changing).is_empty() {
            return Ok(Interior { inside: class.plain.clone(), exits: None, going_on: first });
        }
        let plain = plain.and(ByteSet::range(0, 127));
        let ends = class.ends(vocab);
        let (mut inside, mut exits, mut going_on) = (class.plain.to_vec(), Vec::new(), ByteSet::NONE);
        let mut todo = vec![(0, inner)];
        while let Some((node, rest)) = todo.pop() {
            if rest == inner
                && let Some((bytes, tokens)) = ends.below(node)
                && bytes.minus(plain).is_empty()
            {
                tokens.iter().for_each(|&t| set_bit(&mut inside, t));
                continue;
            }
            let (first, may_end) = (arena.first(rest, budget)?, arena.nullable(rest));
            going_on = if may_end { going_on.or(first) } else { going_on };
            for (byte, child) in ends.children(node, ByteSet::ALL) {
                budget.spend(1)?;
                if first.contains(byte) {
                    ends.tokens_at(child).iter().for_each(|&t| set_bit(&mut inside, t));
                    todo.push((child, arena.next(rest, byte, budget)?));
                } else if may_end {
                    exits.push(child);
                }
            }
        }
        Ok(Interior { inside: inside.into(), exits: Some(ends.texts_of(exits.into_iter())), going_on })
    }

    /// Bytes held, but for those of the class.
    pub(super) fn memory(&self) -> usize {
        64 + self.exits.as_ref().map_or(0, |exits| self.inside.len() * 4 + exits.memory())
    }
}
