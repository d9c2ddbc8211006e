//! What tokens do in a loop: which of them stay inside, and what the others have behind it.
//!
//! The loop of a string is its characters and its escapes. A token that stays among them is allowed, whatever follows the
//! string; of the others only what they have from the closing quote on matters, which is little. Where characters are
//! counted, it matters too how many of them a token has.

use std::collections::hash_map::Entry;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};

use rustc_hash::FxHashMap;

use super::classes::TokenClass;
use crate::budget::Budget;
use crate::byteset::ByteSet;
use crate::error::Result;
use crate::mask::shape::find_self_loop;
use crate::regular::{Arena, Id};
use crate::vocabulary::{Occurrence, Trie, Vocabulary, count_characters, set_bit};

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

/// The tokens of a vocabulary, followed through a loop: an expression that plain bytes lead back to.
pub(in crate::mask) struct Interior {
    /// Those that stay inside.
    pub(in crate::mask) inside: Arc<[u32]>,
    /// The bytes that may go on inside where the loop may end.
    pub(in crate::mask) going_on: ByteSet,
    plain: ByteSet,
    /// The changing bytes that only lead out of the loop.
    leaving: ByteSet,
    /// Tokens that have gone on by another changing byte, and where in them the loop may end, and does if that byte is not
    /// in `going_on`.
    left: Vec<Occurrence>,
    /// What the tokens of `left` have from there on.
    exits: Trie,
    /// The same with the ends of tokens that leave by bytes which few tokens hold, for interiors that are used often.
    more_exits: OnceLock<Trie>,
    /// How many tokens these may be.
    most_exits: usize,
    uses: AtomicU32,
}

const ASCII: ByteSet = ByteSet::range(0, 127);

/// Exits that were used so often are made into one trie at their next use, which takes as long as a few walks over them.
const OFTEN: u32 = 6;

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
        let mut going_on = arena.first(inner, budget)?;
        let leaving = changing.minus(going_on);
        let (mut inside, mut left) = (Vec::new(), Vec::new());
        let mut loops: FxHashMap<Id, ByteSet> = FxHashMap::from_iter([(inner, plain.and(ASCII))]);
        for byte in changing.minus(leaving).iter() {
            let ends = vocab.suffix_trie(byte);
            let (mut stay, mut todo) = (Vec::new(), vec![(0, 0, inner)]);
            while let Some((node, depth, rest)) = todo.pop() {
                let (first, may_end) = (arena.first(rest, budget)?, arena.nullable(rest));
                going_on = if may_end { going_on.or(first) } else { going_on };
                if let Some((bytes, tokens)) = ends.below(node) {
                    let back = match loops.entry(rest) {
                        Entry::Occupied(known) => *known.get(),
                        Entry::Vacant(new) => {
                            *new.insert(find_self_loop(arena, rest, budget)?.unwrap_or(ByteSet::NONE).and(ASCII))
                        }
                    };
                    if bytes.minus(back).is_empty() {
                        stay.extend_from_slice(tokens);
                        continue;
                    }
                }
                for (next, child) in ends.children(node, ByteSet::ALL) {
                    budget.spend(1)?;
                    if first.contains(next) {
                        stay.extend_from_slice(ends.tokens_at(child));
                        if !ends.is_leaf(child) {
                            todo.push((child, depth + 1, arena.next(rest, next, budget)?));
                        }
                    } else if may_end {
                        let begins_plain = |&&token: &&u32| vocab.has_only_before(plain, byte, token);
                        let leave = ends.tokens_from(child).iter().filter(begins_plain);
                        left.extend(leave.map(|&token| (token, vocab.first_of(byte, token) + depth)));
                    }
                }
            }
            vocab.add_with_only_before((plain, byte), stay, &mut inside);
        }
        let mut row = class.plain.clone();
        if !inside.is_empty() {
            let mut bits = row.to_vec();
            inside.into_iter().for_each(|token| set_bit(&mut bits, token));
            row = bits.into();
        }
        Ok(Interior {
            inside: row,
            going_on,
            plain,
            leaving,
            most_exits: left.len() + vocab.holders_of_any(vocab.held_by_few(leaving)),
            exits: trie_of(vocab, left.iter()),
            left,
            more_exits: OnceLock::new(),
            uses: AtomicU32::new(0),
        })
    }

    /// What tokens have from where they leave the loop; and the bytes by which others leave, each at the first place in
    /// them, if they are plain before.
    pub(in crate::mask) fn exits(&self, vocab: &Vocabulary) -> (&Trie, ByteSet) {
        if self.uses.fetch_add(1, Ordering::Relaxed) < OFTEN {
            return (&self.exits, self.leaving);
        }
        let few = vocab.held_by_few(self.leaving);
        let more = self.more_exits.get_or_init(|| {
            let leave = few.iter().flat_map(|byte| {
                vocab.suffixes(byte).iter().filter(move |(token, _)| vocab.has_only_before(self.plain, byte, *token))
            });
            trie_of(vocab, leave.chain(&self.left))
        });
        (more, self.leaving.minus(few))
    }

    /// Bytes held, with what may be made later.
    pub(super) fn memory(&self) -> usize {
        self.inside.len() * 4 + self.exits.memory() + self.most_exits * 100 + 256
    }
}

/// The trie of what tokens have from some places on.
fn trie_of<'a>(vocab: &Vocabulary, ends: impl Iterator<Item = &'a Occurrence>) -> Trie {
    Trie::new(ends.map(|&(token, at)| (&vocab.token(token)[at as usize..], token)).collect())
}
