//! Residuals that most characters lead back to, or only count down: string interiors, `.{0,1000}`.

use crate::budget::Budget;
use crate::error::Result;
use crate::ir::UNBOUNDED;
use crate::regular::{Arena, ByteSet, EMPTY, Id};

/// Fewer plain ASCII bytes than this: a walk is as good.
const MIN_PLAIN: u32 = 20;

/// How a residual treats single characters. If it is nullable, so it stays, and the terminal may end after each.
pub(super) struct Looping {
    /// Bytes of the characters that change nothing but the count. A token of these alone is allowed if it has no
    /// more than `most` characters, and no terminal ends within it.
    pub(super) plain: ByteSet,
    /// Other bytes that lead, or may lead within a token, to something alive.
    pub(super) changing: ByteSet,
    pub(super) most: Option<u32>,
}

impl Looping {
    /// `None` if the residual is not of this kind.
    pub(super) fn of(arena: &mut Arena, x: Id, budget: &mut Budget) -> Result<Option<Looping>> {
        let alive = arena.first(x, budget)?;
        if let Some(plain) = self_loop(arena, x, budget)? {
            return Ok(Some(Looping {
                plain,
                changing: alive.minus(plain),
                most: None,
            }));
        }
        let Some((body, least, most, rest)) = arena.counted(x) else {
            return Ok(None);
        };
        if arena.nullable(rest) && least > 0 {
            return Ok(None); // whether the terminal may end depends on the count
        }
        let star = arena.repeat(body, 0, UNBOUNDED);
        let Some(plain) = self_loop(arena, star, budget)? else {
            return Ok(None);
        };
        // what comes after the repetition can begin within a token, whatever the counts say here; where it
        // begins like a character of the repetition, both may go on
        let after = arena.first(rest, budget)?;
        let plain = plain.minus(after);
        if plain.and(ByteSet::range(0, 127)).len() < MIN_PLAIN {
            return Ok(None);
        }
        let most = if most == UNBOUNDED { None } else { Some(most) };
        Ok(Some(Looping {
            plain,
            changing: alive.or(after).minus(plain),
            most,
        }))
    }
}

/// The bytes of the characters that lead from `x` back to `x`, if many ASCII characters do.
fn self_loop(arena: &mut Arena, x: Id, budget: &mut Budget) -> Result<Option<ByteSet>> {
    let row = *arena.row(x, budget)?;
    let mut plain = ByteSet::NONE;
    (0..128u8)
        .filter(|&b| row[b as usize] == x)
        .for_each(|b| plain.insert(b));
    if plain.len() < MIN_PLAIN {
        return Ok(None);
    }
    let mut beyond = false;
    for lead in 0xC2..=0xF4u8 {
        // continuation bytes to come, and the range of the first of them (Unicode, table 3-7)
        let (count, lo, hi) = match lead {
            0xC2..=0xDF => (1, 0x80, 0xBF),
            0xE0 => (2, 0xA0, 0xBF),
            0xED => (2, 0x80, 0x9F),
            0xE1..=0xEF => (2, 0x80, 0xBF),
            0xF0 => (3, 0x90, 0xBF),
            0xF4 => (3, 0x80, 0x8F),
            _ => (3, 0x80, 0xBF),
        };
        if returns(arena, row[lead as usize], x, count, lo, hi, budget)? {
            plain.insert(lead);
            beyond = true;
        }
    }
    if beyond {
        (0x80..=0xBFu8)
            .filter(|&b| arena.spells(b) && row[b as usize] == EMPTY)
            .for_each(|b| plain.insert(b));
    }
    Ok(Some(plain))
}

/// Whether from `q` any `count` continuation bytes (the first in `lo..=hi`), and nothing else, lead to `home`.
fn returns(
    arena: &mut Arena,
    q: Id,
    home: Id,
    count: u8,
    lo: u8,
    hi: u8,
    budget: &mut Budget,
) -> Result<bool> {
    if q == EMPTY {
        return Ok(false);
    }
    let row = *arena.row(q, budget)?;
    let next = row[lo as usize];
    for b in 0..=255u8 {
        let expected = if (lo..=hi).contains(&b) && arena.spells(b) {
            next
        } else {
            EMPTY
        };
        if row[b as usize] != expected {
            return Ok(false);
        }
    }
    if count == 1 {
        Ok(next == home)
    } else {
        returns(arena, next, home, count - 1, 0x80, 0xBF, budget)
    }
}
