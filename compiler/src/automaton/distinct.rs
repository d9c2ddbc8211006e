//! Steps, masks and endings where the items of an array, or the names in an object, must be distinct.
//!
//! The pushdown automaton knows nothing of that. A [`Follower`] follows texts on it with their histories: after a byte
//! that ends an item or name for the second time, it drops the heads that stand in marked rules from the kernel. What
//! is left may be a dead end, where all that can follow repeats something. So a token is allowed only if some text
//! behind it leads to an item that is new, or that can no longer become an old one; [`Follower::can_complete`] searches
//! for such a text. Mask rows are those of the pushdown automaton less the tokens behind which there is none.

use rustc_hash::{FxHashMap, FxHashSet};

use super::configuration::Configuration;
use crate::budget::Budget;
use crate::byteset::ByteSet;
use crate::distinct::History;
use crate::error::{Error, Result};
use crate::ir::Kinds;
use crate::mask::Row;
use crate::recursion::deep;
use crate::stack::{ByteState, DEAD, Machine};
use crate::vocabulary::{Vocabulary, blank_bytes, get_bit};

/// Bytes of an ending, at most.
const LONGEST: usize = 1 << 20;

/// Earlier items or names that are compared with an open one in a step.
const COMPARED: u64 = 4;

/// The configurations from which it is known whether a text can be completed without a repetition.
#[derive(Default)]
pub(super) struct Completable {
    known: FxHashMap<Configuration, bool>,
    /// The epoch of the table of byte states that the configurations are of.
    epoch: u32,
}

impl Completable {
    pub(super) fn clear(&mut self) {
        self.known.clear();
    }
}

/// Follows texts on a pushdown automaton whose grammar has marked rules.
pub(super) struct Follower<'a> {
    pub(super) machine: &'a mut Machine,
    pub(super) vocab: &'a Vocabulary,
    pub(super) completable: &'a mut Completable,
    pub(super) budget: &'a mut Budget,
}

impl Follower<'_> {
    /// Moves a configuration behind one byte. Returns whether the byte is allowed there; if not, `at` means nothing
    /// more.
    fn follow(&mut self, at: &mut Configuration, byte: u8) -> Result<bool> {
        let structural = !at.history.as_ref().is_some_and(History::in_string);
        at.state = self.machine.go(at.state, byte, self.budget)?;
        if at.state == DEAD {
            return Ok(false);
        }
        if let Some(history) = &mut at.history {
            if history.completes(byte) && history.record(self.machine.kinds_at(at.state, self.budget)?) {
                let repeating = Kinds::ITEMS.or(Kinds::NAMES);
                at.state = self.machine.without_kinds(at.state, repeating, self.budget)?;
                if at.state == DEAD {
                    return Ok(false);
                }
            }
            history.push(byte);
        }
        if structural && matches!(byte, b'[' | b'{') {
            let kinds = self.machine.kinds_at(at.state, self.budget)?;
            match &mut at.history {
                _ if !kinds.has(Kinds::OPENS) => {}
                Some(history) => history.track(kinds.has(Kinds::FEW)),
                None => at.history = Some(History::new(byte, kinds.has(Kinds::FEW))),
            }
        }
        if at.history.as_ref().is_some_and(History::is_closed) {
            at.history = None;
        }
        Ok(true)
    }

    /// Whether some text leads from here to where no open item or name can still become one that was there before.
    fn can_complete(&mut self, at: &Configuration) -> Result<bool> {
        let Some(history) = &at.history else { return Ok(true) };
        if !history.may_repeat() {
            return Ok(true);
        }
        if self.completable.epoch != self.machine.table.epoch {
            self.completable.epoch = self.machine.table.epoch;
            self.completable.clear();
        }
        if let Some(&known) = self.completable.known.get(at) {
            return Ok(known);
        }
        self.budget.spend(64)?;
        let mut found = false;
        for byte in self.bytes_to_try(at)? {
            let mut next = at.clone();
            if self.follow(&mut next, byte)? {
                next.history.iter_mut().for_each(History::narrow);
                if deep(|| self.can_complete(&next))? {
                    found = true;
                    break;
                }
            }
        }
        self.completable.known.insert(at.clone(), found);
        Ok(found)
    }

    /// The bytes to try from here: closing brackets first, and whitespace last, where it leads to anything else.
    fn bytes_to_try(&mut self, at: &Configuration) -> Result<Vec<u8>> {
        let first: ByteSet = self.machine.first(at.state, self.budget)?;
        let solid = first.minus(blank_bytes());
        let mut bytes: Vec<u8> = solid.iter().collect();
        bytes.sort_by_key(|b| !matches!(b, b']' | b'}'));
        let in_string = at.history.as_ref().is_some_and(History::in_string);
        for blank in first.and(blank_bytes()).iter() {
            // where lines are indented, an array goes on with a line break or ends
            if in_string || solid.is_empty() || self.leads_elsewhere(at.state, blank, solid)? {
                bytes.push(blank);
            }
        }
        Ok(bytes)
    }

    /// Whether whitespace can be followed by more than what can stand in its place.
    fn leads_elsewhere(&mut self, state: ByteState, blank: u8, solid: ByteSet) -> Result<bool> {
        let next = self.machine.go(state, blank, self.budget)?;
        let behind = self.machine.first(next, self.budget)?.minus(blank_bytes());
        Ok(behind.is_empty() || !behind.minus(solid).is_empty())
    }

    /// Moves a configuration behind a token's text. Returns whether the token is allowed there.
    pub(super) fn follow_text(&mut self, at: &mut Configuration, text: &[u8]) -> Result<bool> {
        for &byte in text {
            if !self.follow(at, byte)? {
                return Ok(false);
            }
        }
        if let Some(history) = &mut at.history {
            self.budget.spend(history.compared() as u64 / COMPARED)?;
            history.narrow();
        }
        Ok(!text.is_empty() && self.can_complete(at)?)
    }

    /// A row of the pushdown automaton without the tokens that would have to repeat something; `None` if there are
    /// none.
    pub(super) fn without_repetitions(&mut self, at: &Configuration, row: &Row) -> Result<Option<Row>> {
        let vocab = self.vocab;
        let mut refused = Vec::new();
        // where values are many, an open string can always become a new one: only whole repetitions matter
        let quick = at.history.as_ref().filter(|history| !history.has_few());
        let refused_ends: FxHashSet<Vec<u8>> = quick.map_or_else(Vec::new, History::refused_ends).into_iter().collect();
        for token in self.candidates(at, row) {
            let text = vocab.token(token);
            if quick.is_some_and(|history| ends_nothing_else(history, text, &refused_ends)) {
                continue;
            }
            if is_risky(at.history.as_ref(), text) && !self.follow_text(&mut at.clone(), text)? {
                refused.push(token);
            }
        }
        Ok(if refused.is_empty() { None } else { Some(row.without(&refused, vocab.words())) })
    }

    /// The tokens of a row that may have to repeat something: those that can end an item or name, or go on like one
    /// that was there before.
    fn candidates(&self, at: &Configuration, row: &Row) -> Vec<u32> {
        if let Some(tokens) = row.listed() {
            return tokens.to_vec();
        }
        let vocab = self.vocab;
        let mut bits = vec![0u32; vocab.words()];
        row.write(&mut bits);
        let mut out: Vec<u32> = match &at.history {
            None => [b'[', b'{'].iter().flat_map(|&b| vocab.holders(b)).copied().collect(),
            Some(history) if history.in_string() => {
                let mut out = vocab.holders(b'"').to_vec();
                if history.has_few() {
                    for rest in history.refused_ends() {
                        out.extend(vocab.trie.prefixes(&rest).flat_map(|(_, tokens)| tokens));
                    }
                }
                out
            }
            Some(_) => (0..vocab.size as u32).collect(),
        };
        out.retain(|&token| get_bit(&bits, token));
        out.sort_unstable();
        out.dedup();
        out
    }

    /// The bytes that may stand behind a text, and whether it may end there.
    pub(super) fn next_bytes(&mut self, mut at: Configuration, after: &[u8]) -> Result<(Vec<u8>, bool)> {
        for &byte in after {
            at.state = self.machine.in_bounds(at.state, self.budget)?;
            if !self.follow(&mut at, byte)? {
                return Ok((Vec::new(), false));
            }
        }
        at.state = self.machine.in_bounds(at.state, self.budget)?;
        let mut bytes = Vec::new();
        for byte in self.machine.first(at.state, self.budget)?.iter() {
            if self.follow_text(&mut at.clone(), &[byte])? {
                bytes.push(byte);
            }
        }
        Ok((bytes, self.machine.accepts(at.state, self.budget)?))
    }

    /// A short accepted ending in bytes: the shortest one of the pushdown automaton, but for bytes that avoid
    /// repetitions.
    pub(super) fn shortest_ending(&mut self, mut at: Configuration) -> Result<Vec<u8>> {
        let mut out = Vec::new();
        while out.len() < LONGEST {
            let kernel = self.machine.kernel_of(at.state, self.budget)?;
            let rest = self.machine.shortest_ending(&kernel, self.budget)?;
            let mut end = at.clone();
            let mut followed = 0;
            while followed < rest.len() && self.follow(&mut end, rest[followed])? {
                followed += 1;
            }
            if followed == rest.len() {
                out.extend(rest);
                return Ok(out);
            }
            let mut best: Option<(usize, u8, Configuration)> = None;
            for byte in self.bytes_to_try(&at)? {
                let mut next = at.clone();
                if self.follow(&mut next, byte)? && self.can_complete(&next)? {
                    let kernel = self.machine.kernel_of(next.state, self.budget)?;
                    let length = self.machine.shortest_ending(&kernel, self.budget)?.len();
                    if best.as_ref().is_none_or(|b| length < b.0) {
                        best = Some((length, byte, next));
                    }
                }
            }
            let Some((_, byte, next)) = best else { break };
            out.push(byte);
            at = next;
        }
        Err(Error::Limit { which: "length of an ending that repeats nothing (bytes)", limit: LONGEST as u64 })
    }
}

/// Whether a text ends no item or name but the open string, and that one, if at all, as a new one: with an end that is
/// not in `refused_ends`.
fn ends_nothing_else(history: &History, text: &[u8], refused_ends: &FxHashSet<Vec<u8>>) -> bool {
    let mut rest = text;
    if history.in_string() {
        let mut escaped = history.is_escaped();
        let end = text.iter().position(|&b| {
            let ends = b == b'"' && !escaped;
            escaped = b == b'\\' && !escaped;
            ends
        });
        let Some(end) = end else { return true };
        if refused_ends.contains(&text[..=end]) {
            return false;
        }
        rest = &text[end + 1..];
    } else if history.in_number_or_literal() {
        return text.iter().all(|&b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'+' | b'-'));
    }
    // closing brackets, one comma or colon, opening brackets, and the beginning of a string
    let blanks = blank_bytes();
    let mut bytes = rest.iter().copied().filter(|&b| !blanks.contains(b)).peekable();
    // (what the brackets close holds the new string, so that it is new as well)
    while history.in_string() && bytes.next_if(|b| matches!(b, b']' | b'}')).is_some() {}
    bytes.next_if(|b| matches!(b, b',' | b':'));
    while bytes.next_if(|b| matches!(b, b'[' | b'{')).is_some() {}
    match bytes.next() {
        Some(b'"') => bytes.all(|b| b != b'"'),
        other => other.is_none(),
    }
}

/// Whether a text that the pushdown automaton allows may repeat something, as far as the text alone shows.
fn is_risky(history: Option<&History>, text: &[u8]) -> bool {
    let Some(history) = history else {
        return text.iter().any(|b| matches!(b, b',' | b':'));
    };
    let mut history = history.clone();
    for &byte in text {
        if !history.in_string() && matches!(byte, b'[' | b'{') {
            return true;
        }
        if history.completes(byte) && history.record(Kinds::ALL) {
            return true;
        }
        history.push(byte);
        if history.is_closed() {
            return text.iter().any(|b| matches!(b, b'[' | b'{'));
        }
    }
    history.may_repeat()
}
