//! States with a memory: steps and masks where the text must not repeat what it has said.
//!
//! The machine knows nothing of it. After each byte that ends an item or a name, the ways on that it may not take are
//! taken from the kernel; and since it must always be able to end in one that is new, a token is allowed only if some
//! text after it can. Mask rows are the machine's, less the tokens for which that is not so.

use rustc_hash::FxHashSet;

use super::engine::Engine;
use super::states::StateId;
use crate::deep;
use crate::error::{Error, Result};
use crate::mask::Row;
use crate::memory::{Kinds, Memory};
use crate::regular::ByteSet;
use crate::stack::{DEAD, Spot};
use crate::vocabulary::get_bit;

/// A place in a text: where the machine is, and what is remembered.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) struct Place {
    pub(super) spot: Spot,
    pub(super) memory: Option<Memory>,
}

/// Bytes of a completion, at most.
const LONGEST: usize = 1 << 20;

fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r')
}

impl Engine {
    /// Whether the byte leads on from the place, which is then behind it.
    fn follow(&mut self, place: &mut Place, byte: u8) -> Result<bool> {
        let structural = !place.memory.as_ref().is_some_and(Memory::in_string);
        place.spot = self.machine.go(place.spot, byte, &mut self.budget)?;
        if place.spot == DEAD {
            return Ok(false);
        }
        if let Some(memory) = &mut place.memory {
            if memory.ends(byte) && memory.settle(self.machine.kinds_at(place.spot)) {
                let repeating = Kinds::ITEMS.or(Kinds::NAMES);
                place.spot = self.machine.without_kinds(place.spot, repeating, &mut self.budget)?;
                if place.spot == DEAD {
                    return Ok(false);
                }
            }
            memory.push(byte);
        }
        if structural && matches!(byte, b'[' | b'{') {
            let kinds = self.machine.kinds_at(place.spot);
            match &mut place.memory {
                _ if !kinds.has(Kinds::OPENS) => {}
                Some(memory) => memory.open(kinds.has(Kinds::FEW)),
                None => place.memory = Some(Memory::new(byte, kinds.has(Kinds::FEW))),
            }
        }
        if place.memory.as_ref().is_some_and(Memory::is_over) {
            place.memory = None;
        }
        Ok(true)
    }

    /// Whether some text leads from here to where nothing that is open can still be refused.
    fn can_end(&mut self, place: &Place) -> Result<bool> {
        let Some(memory) = &place.memory else { return Ok(true) };
        if !memory.binds() {
            return Ok(true);
        }
        if let Some(&known) = self.endings.get(place) {
            return Ok(known);
        }
        self.budget.spend(64)?;
        let mut found = false;
        for byte in self.ways(place)? {
            let mut next = place.clone();
            if self.follow(&mut next, byte)? {
                next.memory.iter_mut().for_each(Memory::narrow);
                if deep(|| self.can_end(&next))? {
                    found = true;
                    break;
                }
            }
        }
        self.endings.insert(place.clone(), found);
        Ok(found)
    }

    /// The bytes to try from here: those that close something first, and blanks only where nothing else is allowed.
    fn ways(&mut self, place: &Place) -> Result<Vec<u8>> {
        let first: ByteSet = self.machine.first(place.spot, &mut self.budget)?;
        let mut bytes: Vec<u8> = first.iter().collect();
        if !place.memory.as_ref().is_some_and(Memory::in_string) && !bytes.iter().all(|&b| is_blank(b)) {
            bytes.retain(|&b| !is_blank(b));
        }
        bytes.sort_by_key(|b| !matches!(b, b']' | b'}'));
        Ok(bytes)
    }

    /// Whether the text leads on from the place, which is then behind it.
    pub(super) fn follow_text(&mut self, place: &mut Place, text: &[u8]) -> Result<bool> {
        for &byte in text {
            if !self.follow(place, byte)? {
                return Ok(false);
            }
        }
        if let Some(memory) = &mut place.memory {
            memory.narrow();
        }
        Ok(!text.is_empty() && self.can_end(place)?)
    }

    /// The row of the machine without the tokens that lead to where everything is refused, if there are any.
    pub(super) fn without_repetitions(&mut self, place: &Place, row: &Row) -> Result<Option<Row>> {
        let vocab = self.vocab.clone();
        let mut refused = Vec::new();
        // what may end otherwise than refused, of strings that are open
        let quick = place.memory.as_ref().filter(|memory| !memory.has_few());
        let dangers: FxHashSet<Vec<u8>> = quick.map_or_else(Vec::new, Memory::dangers).into_iter().collect();
        for token in self.candidates(place, row) {
            let text = vocab.token(token);
            if quick.is_some_and(|memory| ends_nothing_else(memory, text, &dangers)) {
                continue;
            }
            if is_risky(place.memory.as_ref(), text) && !self.follow_text(&mut place.clone(), text)? {
                refused.push(token);
            }
        }
        Ok(if refused.is_empty() { None } else { Some(row.without(&refused, vocab.words())) })
    }

    /// The tokens of a row that may end something, or begin as what is refused.
    fn candidates(&self, place: &Place, row: &Row) -> Vec<u32> {
        if let Some(tokens) = row.listed() {
            return tokens.to_vec();
        }
        let vocab = &self.vocab;
        let mut bits = vec![0u32; vocab.words()];
        row.write(&mut bits);
        let mut out: Vec<u32> = match &place.memory {
            None => [b'[', b'{'].iter().flat_map(|&b| vocab.holders(b)).copied().collect(),
            Some(memory) if memory.in_string() => {
                let mut out = vocab.holders(b'"').to_vec();
                if memory.has_few() {
                    for rest in memory.dangers() {
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
    pub(super) fn next_new_bytes(&mut self, id: StateId, after: &[u8]) -> Result<(Vec<u8>, bool)> {
        let mut place = self.place(id)?;
        for &byte in after {
            place.spot = self.in_bounds(place.spot)?;
            if !self.follow(&mut place, byte)? {
                return Ok((Vec::new(), false));
            }
        }
        place.spot = self.in_bounds(place.spot)?;
        let mut bytes = Vec::new();
        for byte in self.machine.first(place.spot, &mut self.budget)?.iter() {
            if self.follow_text(&mut place.clone(), &[byte])? {
                bytes.push(byte);
            }
        }
        Ok((bytes, self.machine.accepts(place.spot, &mut self.budget)?))
    }

    /// A short accepted ending in bytes: the machine's, but where it repeats something.
    pub(super) fn shortest_new(&mut self, mut place: Place) -> Result<Vec<u8>> {
        let mut out = Vec::new();
        while out.len() < LONGEST {
            let kernel = self.machine.kernel_of(place.spot);
            let rest = self.machine.shortest_ending(&kernel, &mut self.budget)?;
            let mut end = place.clone();
            let mut at = 0;
            while at < rest.len() && self.follow(&mut end, rest[at])? {
                at += 1;
            }
            if at == rest.len() {
                out.extend(rest);
                return Ok(out);
            }
            let mut best: Option<(usize, u8, Place)> = None;
            for byte in self.ways(&place)? {
                let mut next = place.clone();
                if self.follow(&mut next, byte)? && self.can_end(&next)? {
                    let kernel = self.machine.kernel_of(next.spot);
                    let length = self.machine.shortest_ending(&kernel, &mut self.budget)?.len();
                    if best.as_ref().is_none_or(|b| length < b.0) {
                        best = Some((length, byte, next));
                    }
                }
            }
            let Some((_, byte, next)) = best else { break };
            out.push(byte);
            place = next;
        }
        Err(Error::Limit { which: "length of an ending that repeats nothing (bytes)", limit: LONGEST as u64 })
    }
}

/// Whether a text, of what is open, ends at most a string, and not as one of the dangers, and ends nothing after it.
fn ends_nothing_else(memory: &Memory, text: &[u8], dangers: &FxHashSet<Vec<u8>>) -> bool {
    let mut rest = text;
    if memory.in_string() {
        let mut escaped = memory.is_escaped();
        let end = text.iter().position(|&b| {
            let ends = b == b'"' && !escaped;
            escaped = b == b'\\' && !escaped;
            ends
        });
        let Some(end) = end else { return true };
        if dangers.contains(&text[..=end]) {
            return false;
        }
        rest = &text[end + 1..];
    } else if memory.in_word() {
        return text.iter().all(|&b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'+' | b'-'));
    }
    // closing brackets, one comma or colon, opening brackets, and the beginning of a string
    let mut bytes = rest.iter().copied().filter(|&b| !is_blank(b)).peekable();
    // (what is closed holds the string, so that it is new as well)
    while memory.in_string() && bytes.next_if(|b| matches!(b, b']' | b'}')).is_some() {}
    bytes.next_if(|b| matches!(b, b',' | b':'));
    while bytes.next_if(|b| matches!(b, b'[' | b'{')).is_some() {}
    match bytes.next() {
        Some(b'"') => bytes.all(|b| b != b'"'),
        other => other.is_none(),
    }
}

/// Whether a text that the machine allows may repeat something, as far as the text alone shows.
fn is_risky(memory: Option<&Memory>, text: &[u8]) -> bool {
    let Some(memory) = memory else {
        return text.iter().any(|b| matches!(b, b',' | b':'));
    };
    let mut memory = memory.clone();
    for &byte in text {
        if !memory.in_string() && matches!(byte, b'[' | b'{') {
            return true;
        }
        if memory.ends(byte) && memory.settle(Kinds::ALL) {
            return true;
        }
        memory.push(byte);
        if memory.is_over() {
            return text.iter().any(|b| matches!(b, b'[' | b'{'));
        }
    }
    memory.binds()
}
