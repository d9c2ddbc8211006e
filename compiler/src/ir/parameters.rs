//! Parameters of rules: sets of small numbers and counters that a caller hands to its callee.
//!
//! They say what the text has so far: the keys of an object, the number of its properties. Values only grow (bits are
//! set, counters go up and stay at their last value), unless a call starts from the empty parameter.

use smallvec::SmallVec;

use super::RuleId;
use super::codes::condition;

/// Bits have lower numbers than this.
pub(super) const MAX_BITS: u32 = 1 << 16;

/// A parameter's value: bits, some of which form counters. No word at the end is zero.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Value(SmallVec<[u64; 2]>);

/// The bits of a counter: the lowest one and how many.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Counter {
    pub at: u32,
    /// 1 to 32.
    pub width: u32,
}

impl Counter {
    /// Counts stop here.
    fn last(self) -> u32 {
        u32::MAX >> (32 - self.width)
    }
}

/// A condition on a rule's parameter.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Guard {
    /// None of the bits is set.
    Clear(Box<[u32]>),
    /// All of the bits are set.
    AllSet(Box<[u32]>),
    Within {
        counter: Counter,
        least: u32,
        most: u32,
    },
}

/// The parameter of a callee, from its caller's.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Update {
    /// Starts from the empty parameter instead of the caller's.
    pub fresh: bool,
    pub set: Box<[u32]>,
    /// A counter to go up by one.
    pub count: Option<Counter>,
    /// A rule that, given the same parameter, can be completed if and only if the callee can.
    pub like: Option<RuleId>,
}

impl Value {
    fn bit(&self, i: u32) -> bool {
        self.0.get(i as usize / 64).is_some_and(|w| w >> (i % 64) & 1 != 0)
    }

    /// How many words it has.
    pub fn words(&self) -> usize {
        self.0.len()
    }

    fn put(&mut self, i: u32, on: bool) {
        let word = i as usize / 64;
        if on {
            self.0.resize(self.0.len().max(word + 1), 0);
            self.0[word] |= 1 << (i % 64);
        } else if let Some(w) = self.0.get_mut(word) {
            *w &= !(1 << (i % 64));
        }
    }

    fn count(&self, counter: Counter) -> u32 {
        (0..counter.width).filter(|&i| self.bit(counter.at + i)).fold(0, |n, i| n | 1 << i)
    }

    /// The value that says how the text that a parser reads is laid out.
    pub fn of_layout(layout: &Layout) -> Value {
        let column = layout.column.map_or(0, |column| u64::from(column) + 1);
        let mut value = Value(SmallVec::from_slice(&[u64::from(layout.depth) | column << 32]));
        layout.indents.iter().for_each(|&indent| value.put(64 + indent, true));
        value.trim();
        value
    }

    /// The layout that the value says.
    pub fn layout(&self) -> Layout {
        let first = self.0.first().copied().unwrap_or(0);
        let indents = (64..self.0.len() as u32 * 64).filter(|&i| self.bit(i)).map(|i| i - 64).collect();
        Layout { depth: first as u32, column: ((first >> 32) as u32).checked_sub(1), indents }
    }

    fn trim(&mut self) {
        while self.0.last() == Some(&0) {
            self.0.pop();
        }
    }

    pub fn holds(&self, guard: &Guard) -> bool {
        match guard {
            Guard::Clear(bits) => !bits.iter().any(|&i| self.bit(i)),
            Guard::AllSet(bits) => bits.iter().all(|&i| self.bit(i)),
            Guard::Within { counter, least, most } => (*least..=*most).contains(&self.count(*counter)),
        }
    }

    pub fn updated(&self, update: &Update) -> Value {
        let mut new = if update.fresh { Value::default() } else { self.clone() };
        update.set.iter().for_each(|&i| new.put(i, true));
        if let Some(counter) = update.count {
            let n = new.count(counter);
            let n = if n == counter.last() { n } else { n + 1 };
            (0..counter.width).for_each(|i| new.put(counter.at + i, n >> i & 1 != 0));
        }
        new.trim();
        new
    }
}

/// How the text is laid out where an indenter reads tokens.
#[derive(Clone, Debug, Default)]
pub struct Layout {
    /// Brackets that are open.
    pub depth: u32,
    /// Blanks since the last line end in the token at hand, if it has one, and they matter.
    pub column: Option<u32>,
    /// The widths of the open blocks, the narrowest first; that of the text itself, 0, is not among them.
    pub indents: SmallVec<[u32; 8]>,
}

impl Layout {
    /// Wider blocks are not kept apart, and so are refused.
    pub const WIDEST: u32 = 1 << 14;

    /// The width of the innermost block.
    pub fn indent(&self) -> u32 {
        self.indents.last().copied().unwrap_or(0)
    }
}

impl Guard {
    pub(super) fn decode(operands: &[u32]) -> Result<Guard, String> {
        match operands {
            [condition::CLEAR, bits @ ..] => Ok(Guard::Clear(checked_bits(bits)?)),
            [condition::ALL_SET, bits @ ..] => Ok(Guard::AllSet(checked_bits(bits)?)),
            [condition::WITHIN, at, width, least, most] => {
                Ok(Guard::Within { counter: checked_counter(*at, *width)?, least: *least, most: *most })
            }
            _ => Err("no such condition on a parameter".into()),
        }
    }

    pub(super) fn encode(&self) -> Vec<u32> {
        match self {
            Guard::Clear(bits) => [&[condition::CLEAR], &bits[..]].concat(),
            Guard::AllSet(bits) => [&[condition::ALL_SET], &bits[..]].concat(),
            Guard::Within { counter, least, most } => vec![condition::WITHIN, counter.at, counter.width, *least, *most],
        }
    }
}

impl Update {
    pub(super) fn decode(operands: &[u32]) -> Result<Update, String> {
        let [fresh @ 0..=1, at, width, like, bits @ ..] = operands else {
            return Err("no such change of a parameter".into());
        };
        let count = if *width == 0 { None } else { Some(checked_counter(*at, *width)?) };
        Ok(Update { fresh: *fresh == 1, set: checked_bits(bits)?, count, like: like.checked_sub(1) })
    }

    pub(super) fn encode(&self) -> Vec<u32> {
        let (at, width) = self.count.map_or((0, 0), |c| (c.at, c.width));
        [&[self.fresh.into(), at, width, self.like.map_or(0, |rule| rule + 1)], &self.set[..]].concat()
    }
}

fn checked_bits(bits: &[u32]) -> Result<Box<[u32]>, String> {
    if bits.iter().any(|&i| i >= MAX_BITS) {
        return Err(format!("a parameter has at most {MAX_BITS} bits"));
    }
    let mut bits = bits.to_vec();
    bits.sort_unstable();
    bits.dedup();
    Ok(bits.into())
}

fn checked_counter(at: u32, width: u32) -> Result<Counter, String> {
    if !(1..=32).contains(&width) || at > MAX_BITS - width {
        return Err(format!("a counter has 1 to 32 of a parameter's {MAX_BITS} bits"));
    }
    Ok(Counter { at, width })
}
