//! Residuals that most characters lead back to, or only count down: string interiors, identifiers, `.{0,5}`.

use crate::budget::Budget;
use crate::byteset::ByteSet;
use crate::error::Result;
use crate::ir::UNBOUNDED;
use crate::mask::maker::MaskMaker;
use crate::regular::{Arena, EMPTY, Id};
use crate::stack::{ByteState, Head, Heads};

/// Loops on fewer ASCII bytes than this are not looked for.
const MIN_LOOP: u32 = 8;

/// Fewer plain ASCII bytes than this: a walk is as good.
pub(in crate::mask) const MIN_PLAIN: u32 = 20;

/// The first byte of a character beyond ASCII in UTF-8.
#[derive(Clone, Copy)]
pub(in crate::mask) struct Lead {
    pub(in crate::mask) byte: u8,
    /// Bytes to come.
    pub(in crate::mask) more: u8,
    /// What the next of them may be (Unicode, table 3-7).
    pub(in crate::mask) second: ByteSet,
}

pub(in crate::mask) fn lead_bytes() -> impl Iterator<Item = Lead> {
    (0xC2..=0xF4u8).map(|byte| {
        let (more, lo, hi) = match byte {
            0xC2..=0xDF => (1, 0x80, 0xBF),
            0xE0 => (2, 0xA0, 0xBF),
            0xED => (2, 0x80, 0x9F),
            0xE1..=0xEF => (2, 0x80, 0xBF),
            0xF0 => (3, 0x90, 0xBF),
            0xF4 => (3, 0x80, 0x8F),
            _ => (3, 0x80, 0xBF),
        };
        Lead { byte, more, second: ByteSet::range(lo, hi) }
    })
}

/// How a head treats single characters.
pub(in crate::mask) struct Looping {
    /// Bytes of the characters that change nothing but the count.
    pub(in crate::mask) plain: ByteSet,
    /// Other bytes that lead, or may lead after some characters, to something alive.
    pub(in crate::mask) changing: ByteSet,
    /// Characters at most, where they are counted. If so, what follows depends on the count.
    pub(in crate::mask) most: Option<u32>,
}

impl MaskMaker<'_> {
    /// How a head treats single characters; `None` if most of them change its residual. The residual may be nullable:
    /// then what follows counts as changing.
    pub(in crate::mask) fn looping(&mut self, head: Head) -> Result<Option<Looping>> {
        let x = head.rest;
        let (mut plain, rest, most) = match self.self_loop(x)? {
            Some(plain) => (plain, None, None),
            None => {
                let Some((body, (_, most), rest)) = self.machine.arena.counted(x) else { return Ok(None) };
                if most == UNBOUNDED {
                    return Ok(None);
                }
                let star = self.machine.arena.repeat(body, 0, UNBOUNDED);
                let Some(plain) = self.self_loop(star)? else { return Ok(None) };
                (plain, Some(Head { rest, ..head }), Some(most))
            }
        };
        // what can follow the loop; bytes that it begins with are not plain, as after them both may go on
        let end = rest.unwrap_or(head);
        let mut after: Heads = Heads::new();
        if self.machine.arena.nullable(end.rest) {
            after.extend(self.machine.close(&[end], self.budget)?.heads);
        } else if rest.is_some() {
            after.push(end);
        }
        if rest.is_none() {
            after.retain(|h| *h != head); // to go on as before is no change
        }
        let mut changing = self.machine.arena.first(x, self.budget)?;
        for h in after {
            let first = self.machine.arena.first(h.rest, self.budget)?;
            plain = plain.minus(first);
            changing = changing.or(first);
        }
        if plain.and(ByteSet::range(0, 127)).len() < MIN_PLAIN {
            return Ok(None);
        }
        Ok(Some(Looping { plain, changing: changing.minus(plain), most }))
    }

    /// The bytes of the characters that lead from a byte state back to it, and the other bytes that lead on; `None` if
    /// it loops on few.
    pub(in crate::mask) fn state_loop(&mut self, state: ByteState) -> Result<Option<(ByteSet, ByteSet)>> {
        if self.machine.first(state, self.budget)?.and(ByteSet::range(0, 127)).len() < MIN_LOOP {
            return Ok(None);
        }
        if let Some(&known) = self.local.state_loops.get(&state) {
            return Ok(known);
        }
        let mut found = None;
        if let Some((parts, others)) = self.machine.parts(state, self.budget)?
            && let Some(plain) = self.common_loop(&parts)?
        {
            // a byte that can also begin what follows the loop may still lead back to the same state: a word after a
            // word
            let mut shared = plain.and(others).and(ByteSet::range(0, 127));
            let mut plain = plain.minus(others);
            while let Some(byte) = shared.first() {
                let (same, next) = self.machine.go_class(state, byte, self.budget)?;
                if next == state {
                    plain = plain.or(same.and(shared));
                }
                shared = shared.minus(same);
            }
            found = Some((plain, self.machine.first(state, self.budget)?.minus(plain)));
        } else if self.machine.has_lexemes && self.machine.is_between_lexemes(state) {
            found = self.lexeme_loop(state)?;
        }
        self.local.state_loops.insert(state, found);
        Ok(found)
    }

    /// The bytes of the characters that lead from each of these back to it, if many do.
    fn common_loop(&mut self, parts: &[Id]) -> Result<Option<ByteSet>> {
        let mut plain = ByteSet::ALL;
        for &part in parts {
            let Some(own) = self.self_loop(part)? else { return Ok(None) };
            plain = plain.and(own);
        }
        Ok((plain.len() >= MIN_LOOP && !parts.is_empty()).then_some(plain))
    }

    /// The same where each of these characters is a whole lexeme.
    fn lexeme_loop(&mut self, state: ByteState) -> Result<Option<(ByteSet, ByteSet)>> {
        let first = self.machine.first(state, self.budget)?;
        let (mut plain, mut left) = (ByteSet::NONE, first.and(ByteSet::range(0, 127)));
        // letters tell: where they do not lead back, little does
        while let Some(byte) = left.and(ByteSet::range(b'a', b'z')).first().or(left.first()) {
            let (same, next) = self.machine.go_class(state, byte, self.budget)?;
            if next == state {
                plain = plain.or(same.and(left));
            } else if plain.is_empty() {
                return Ok(None);
            }
            left = left.minus(same);
        }
        Ok((plain.len() >= MIN_PLAIN).then_some((plain, first.minus(plain))))
    }

    /// The bytes of the characters that lead from `x` back to `x`, if many ASCII characters do. Kept by what `x` is
    /// without its tag: strings are met at many positions, and in many grammars.
    pub(in crate::mask) fn self_loop(&mut self, x: Id) -> Result<Option<ByteSet>> {
        let x = self.untagged(x);
        if let Some(&known) = self.local.self_loops.get(&x) {
            return Ok(known);
        }
        let hash = self.machine.arena.hash(x);
        let found = match self.shared.self_loop(hash) {
            Some(known) => known,
            None => {
                let found = find_self_loop(&mut self.machine.arena, x, self.budget)?;
                self.shared.put_self_loop(hash, found);
                found
            }
        };
        self.local.self_loops.insert(x, found);
        Ok(found)
    }
}

/// The bytes of the characters that lead from `x` back to `x`, if many ASCII characters do.
pub(in crate::mask) fn find_self_loop(arena: &mut Arena, x: Id, budget: &mut Budget) -> Result<Option<ByteSet>> {
    let ascii = ByteSet::range(0, 127);
    let back = arena.edges(x, budget)?.filter(|e| e.1 == x);
    let mut plain = back.fold(ByteSet::NONE, |all, e| all.or(e.0.and(ascii)));
    if plain.len() < MIN_LOOP {
        return Ok(None);
    }
    let mut beyond = false;
    for lead in lead_bytes() {
        let q = arena.next(x, lead.byte, budget)?;
        if returns(arena, q, x, lead.more, lead.second, budget)? {
            plain.insert(lead.byte);
            beyond = true;
        }
    }
    if beyond {
        let first = arena.first(x, budget)?;
        plain = plain.or(arena.alphabet().and(ByteSet::range(0x80, 0xBF)).minus(first));
    }
    Ok(Some(plain))
}

/// Whether from `q` any `count` continuation bytes (the first one of `set`), and nothing else, lead to `home`.
fn returns(arena: &mut Arena, q: Id, home: Id, count: u8, set: ByteSet, budget: &mut Budget) -> Result<bool> {
    if q == EMPTY {
        return Ok(false);
    }
    let set = set.and(arena.alphabet());
    let Some(byte) = set.first() else { return Ok(false) };
    let (bytes, next) = arena.edge(q, byte, budget)?;
    if bytes != set || arena.first(q, budget)? != set {
        return Ok(false);
    }
    if count == 1 {
        Ok(next == home)
    } else {
        returns(arena, next, home, count - 1, ByteSet::range(0x80, 0xBF), budget)
    }
}
