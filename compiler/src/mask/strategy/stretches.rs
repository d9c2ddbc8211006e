//! Heads from which all texts of plain characters lead on for a while, though not for ever: because characters are
//! counted, or because something must still come, for which room must be left.
//!
//! After so many plain characters there may be many residuals, but few after each number of them. So they are looked for
//! level by level, and short plain tokens are allowed, wherever they lead. Others are walked, or tried one by one.

use smallvec::SmallVec;

use crate::byteset::ByteSet;
use crate::error::Result;
use crate::mask::maker::{Answer, Attempt, MANY, MaskMaker};
use crate::mask::row::Draft;
use crate::mask::shape::{Lead, MIN_PLAIN, lead_bytes};
use crate::stack::{ByteState, CUT_OFF, DEAD, Head};
use crate::vocabulary::get_bit;

/// Characters that are looked at, at most: few tokens have more.
const LONGEST: u32 = 20;

/// Where fewer characters lead on for sure, a walk ends soon.
const LEAST: u32 = 4;

/// A stretch of so many characters is not made longer by taking fewer characters for plain.
const ENOUGH: u32 = 8;

/// States after so many characters, at most.
const WIDEST: usize = 8;

/// How often the plain characters may turn out to be fewer.
const TURNS: usize = 16;

const ASCII: ByteSet = ByteSet::range(0, 127);

/// Texts of plain characters.
struct Stretch {
    /// The bytes of these characters.
    plain: ByteSet,
    /// Other bytes that may lead on within the stretch.
    changing: ByteSet,
    /// Texts of up to so many plain characters all lead on.
    sure: u32,
    /// None of more does. `None`: some may; the stretch has not been looked at further.
    most: Option<u32>,
    /// How many characters have been looked at.
    seen: u32,
}

/// The characters that are taken for plain.
#[derive(Clone, Copy)]
struct Plain {
    ascii: ByteSet,
    /// Whether those beyond ASCII are.
    beyond: bool,
}

type Level = SmallVec<[ByteState; WIDEST]>;

impl MaskMaker<'_> {
    /// The strategy for heads that a stretch of plain characters follows.
    pub(super) fn by_stretch(&mut self, head: Head) -> Result<Attempt> {
        let start = self.machine.closure_state(&[head], self.budget)?;
        let Some(stretch) = self.stretch(start)? else { return Ok(Attempt::Declined) };
        if stretch.sure < LEAST || self.vocab.holders_of_any(stretch.changing) > MANY {
            return Ok(Attempt::Declined);
        }
        let mut bits = self.vocab.utf8_prefixes().to_vec();
        self.vocab.exclude(ByteSet::ALL.minus(stretch.plain), &mut bits);
        let most = stretch.most.unwrap_or(u32::MAX);
        let is_open = |&(length, token): &(u32, u32)| {
            if get_bit(&bits, token) { length <= most } else { length > stretch.seen && stretch.most.is_none() }
        };
        let left: Vec<u32> = self.vocab.longer(stretch.sure).filter(is_open).map(|(_, token)| token).collect();
        if left.len() > MANY {
            return Ok(Attempt::Declined);
        }
        self.vocab.exclude_longer(stretch.sure, &mut bits);
        self.budget.spend(bits.len() as u64 / 16)?;
        let mut draft = Draft { base: Some(bits.into()), ..Draft::default() };
        for token in left {
            let state = self.try_token(start, token)?;
            if state != DEAD {
                draft.reach(self.machine.is_unsure(state), &[token]);
            }
        }
        let others = self.shared.holders(self.vocab, stretch.changing);
        Ok(self.walk(&others, start, &mut draft)?.map(|()| draft).into())
    }

    /// The stretch that follows a state, if most lowercase letters are plain in it: of other characters few tokens consist
    /// (digits in hexadecimal, say), so that they are walked as soon.
    fn stretch(&mut self, start: ByteState) -> Result<Option<Stretch>> {
        let first = self.machine.first(start, self.budget)?;
        let leads = ByteSet::range(0xC2, 0xF4).and(self.machine.arena.alphabet());
        let mut plain = Plain { ascii: first.and(ASCII), beyond: leads.minus(first).is_empty() && !leads.is_empty() };
        for _ in 0..TURNS {
            if plain.ascii.and(ByteSet::range(b'a', b'z')).len() < MIN_PLAIN {
                break;
            }
            match self.stretch_of(start, plain)? {
                Ok(found) => return Ok(found),
                Err(fewer) => plain = fewer,
            }
        }
        Ok(None)
    }

    /// The stretch of these characters, or the fewer ones that are to be taken for plain instead.
    fn stretch_of(&mut self, start: ByteState, plain: Plain) -> Result<std::result::Result<Option<Stretch>, Plain>> {
        let (mut level, mut changing) = (Level::from_slice(&[start]), ByteSet::NONE);
        let (mut seen, mut sure) = (0, None);
        let most = loop {
            let mut next = Level::new();
            for &state in &level {
                let first = self.machine.first(state, self.budget)?;
                changing = changing.or(first);
                if !plain.ascii.minus(first).is_empty() {
                    sure = sure.or(Some(seen));
                }
            }
            for &state in &level {
                let mut left = plain.ascii;
                while let Some(byte) = left.first() {
                    let (same, to) = self.machine.go_class(state, byte, self.budget)?;
                    let same = same.and(left);
                    left = left.minus(same);
                    if to == DEAD {
                        continue;
                    } else if to == CUT_OFF || self.machine.is_unsure(to) {
                        return Ok(Ok(None));
                    }
                    let missing = plain.ascii.minus(self.machine.first(to, self.budget)?);
                    let few = |bytes: ByteSet| bytes.len() * 2 <= plain.ascii.len();
                    if sure.is_none() && seen < ENOUGH && !missing.is_empty() {
                        // a character after which others cannot come, or those, are not plain; unless it is most of them:
                        // then the stretch comes to its end
                        let fewer = if same.len() <= missing.len() { same } else { missing };
                        if few(fewer) {
                            return Ok(Err(Plain { ascii: plain.ascii.minus(fewer), ..plain }));
                        }
                    }
                    add(&mut next, to);
                }
            }
            if plain.beyond {
                match self.lead_beyond(&level, &mut next)? {
                    Some(true) => {}
                    Some(false) if sure.is_none() && seen < ENOUGH => {
                        return Ok(Err(Plain { beyond: false, ..plain }));
                    }
                    Some(false) => sure = sure.or(Some(seen)),
                    None => return Ok(Ok(None)),
                }
            }
            if next.is_empty() {
                break Some(seen);
            } else if seen == LONGEST || next.len() > WIDEST {
                break None;
            }
            (level, seen) = (next, seen + 1);
        };
        let beyond = if plain.beyond { ByteSet::range(0x80, 0xF4) } else { ByteSet::NONE };
        let plain = plain.ascii.or(beyond);
        Ok(Ok(Some(Stretch { plain, changing: changing.minus(plain), sure: sure.unwrap_or(seen), most, seen })))
    }

    /// Adds the states that characters beyond ASCII lead to. Returns whether all of them lead on from all of these; `None`
    /// if bytes do that are no UTF-8.
    fn lead_beyond(&mut self, level: &[ByteState], next: &mut Level) -> Answer<bool> {
        let (mut all, alphabet) = (true, self.machine.arena.alphabet());
        for &state in level {
            if !self.machine.first(state, self.budget)?.and(ByteSet::range(0x80, 0xC1)).is_empty() {
                return Ok(None);
            }
            for Lead { byte, more, second } in lead_bytes().filter(|lead| alphabet.contains(lead.byte)) {
                let state = self.machine.go(state, byte, self.budget)?;
                match self.characters_lead_on(state, more, second, next)? {
                    Some(these) => all &= these,
                    None => return Ok(None),
                }
            }
        }
        Ok(Some(all))
    }

    /// Whether all texts of `more` continuation bytes, the first of which is in `second`, lead on; `None` if others do.
    fn characters_lead_on(&mut self, state: ByteState, more: u8, second: ByteSet, next: &mut Level) -> Answer<bool> {
        if state <= CUT_OFF || self.machine.is_unsure(state) {
            return Ok(Some(false));
        } else if more == 0 {
            add(next, state);
            return Ok(Some(true));
        } else if !self.machine.first(state, self.budget)?.minus(second).is_empty() {
            return Ok(None);
        }
        let (mut all, mut left) = (true, second.and(self.machine.arena.alphabet()));
        while let Some(byte) = left.first() {
            let (same, to) = self.machine.go_class(state, byte, self.budget)?;
            left = left.minus(same);
            match self.characters_lead_on(to, more - 1, ByteSet::range(0x80, 0xBF), next)? {
                Some(these) => all &= these,
                None => return Ok(None),
            }
        }
        Ok(Some(all))
    }
}

fn add(level: &mut Level, state: ByteState) {
    if !level.contains(&state) {
        level.push(state);
    }
}
