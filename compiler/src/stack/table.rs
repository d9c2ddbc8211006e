//! Tabulated transitions of kernels by byte: scratch memory for walks, shared by all walks of a constraint.
//!
//! Numbers are given to kernels as walks meet them and mean nothing outside the table, which is emptied when it
//! has grown; nothing of it is part of a state.

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::step::{Head, Heads, Machine};
use crate::budget::Budget;
use crate::error::Result;
use crate::regular::{ByteSet, EMPTY};

/// A kernel's number in the table.
pub type Spot = u32;

/// The kernel without heads: no text goes on from here.
pub const DEAD: Spot = 0;
/// The answer lies below the cut of a truncated stack.
pub const CUT_OFF: Spot = 1;

const UNKNOWN: Spot = u32::MAX;

const NO_ROW: u32 = u32::MAX;

/// Spots that fewer bytes lead on from have no row.
const MANY: u32 = 12;

/// More kernels than this, and the table is emptied at the next walk.
const FULL: usize = 8192;

struct Entry {
    kernel: Heads,
    /// What the kernel goes on with, and the bytes that lead on, once asked for.
    closure: Option<Heads>,
    first: ByteSet,
    /// Successors, as far as they were asked for: bytes that lead to the same spot.
    classes: SmallVec<[(ByteSet, Spot); 4]>,
    /// The same by byte, a row of the table, where many bytes lead on.
    row: u32,
}

#[derive(Default)]
pub struct Table {
    entries: Vec<Entry>,
    rows: Vec<[Spot; 256]>,
    ids: FxHashMap<Heads, Spot>,
    /// Closures that stand for themselves: kernels whose heads are all taken as they are.
    closed: FxHashMap<Heads, Spot>,
}

impl Table {
    /// To be called before a walk: spots of earlier walks may lose their meaning.
    pub fn refresh(&mut self) {
        if self.entries.len() > FULL || self.entries.is_empty() {
            self.clear();
        }
    }

    pub fn clear(&mut self) {
        *self = Table { rows: Vec::with_capacity(32), entries: Vec::with_capacity(64), ..Table::default() };
        for spot in [DEAD, CUT_OFF] {
            let first = if spot == CUT_OFF { ByteSet::ALL } else { ByteSet::NONE };
            let (kernel, closure) = (Heads::new(), Some(Heads::new()));
            let classes = SmallVec::from_slice(&[(ByteSet::ALL, spot)]);
            self.entries.push(Entry { kernel, closure, first, classes, row: NO_ROW });
        }
    }

    pub fn memory(&self) -> usize {
        self.entries.len() * 240 + self.rows.len() * 1024
    }

    fn add(&mut self, kernel: Heads) -> Spot {
        let first = ByteSet::NONE;
        self.entries.push(Entry { kernel, closure: None, first, classes: SmallVec::new(), row: NO_ROW });
        self.entries.len() as Spot - 1
    }

    /// The spot of a kernel.
    pub fn kernel(&mut self, kernel: Heads) -> Spot {
        if kernel.is_empty() {
            return DEAD;
        }
        if let Some(&s) = self.ids.get(&kernel) {
            return s;
        }
        let s = self.add(kernel.clone());
        self.ids.insert(kernel, s);
        s
    }

    #[inline]
    fn known(&self, spot: Spot, byte: u8) -> Spot {
        let entry = &self.entries[spot as usize];
        if entry.row != NO_ROW {
            return self.rows[entry.row as usize][byte as usize];
        }
        entry.classes.iter().find(|c| c.0.contains(byte)).map_or(UNKNOWN, |c| c.1)
    }

    /// Notes where these bytes lead from a spot.
    fn set_next(&mut self, spot: Spot, bytes: ByteSet, next: Spot) {
        let entry = &mut self.entries[spot as usize];
        entry.classes.push((bytes, next));
        if entry.row != NO_ROW {
            let row = &mut self.rows[entry.row as usize];
            bytes.iter().for_each(|b| row[b as usize] = next);
        }
    }
}

impl Machine {
    /// A spot that goes on with exactly these heads (a closure, or part of one).
    pub fn spot_of_closure(&mut self, heads: &Heads, budget: &mut Budget) -> Result<Spot> {
        if heads.is_empty() {
            return Ok(DEAD);
        }
        if let Some(&s) = self.table.closed.get(heads) {
            return Ok(s);
        }
        let s = self.table.add(Heads::new());
        self.open(s, heads.clone(), budget)?; // known only once it is whole: the budget may end here
        self.table.closed.insert(heads.clone(), s);
        Ok(s)
    }

    /// The bytes that lead on from a spot (all of them, where the answer lies below the cut).
    #[inline]
    pub fn first(&mut self, spot: Spot, budget: &mut Budget) -> Result<ByteSet> {
        let entry = &self.table.entries[spot as usize];
        if entry.closure.is_some() { Ok(entry.first) } else { self.find_first(spot, budget) }
    }

    #[cold]
    fn find_first(&mut self, spot: Spot, budget: &mut Budget) -> Result<ByteSet> {
        budget.spend(4)?;
        let kernel = std::mem::take(&mut self.table.entries[spot as usize].kernel);
        let closure = self.close(&kernel, budget);
        self.table.entries[spot as usize].kernel = kernel;
        let closure = closure?;
        if closure.cut_off {
            let entry = &mut self.table.entries[spot as usize];
            (entry.closure, entry.first) = (Some(Heads::new()), ByteSet::ALL);
            entry.classes.push((ByteSet::ALL, CUT_OFF));
            return Ok(ByteSet::ALL);
        }
        self.open(spot, closure.heads, budget)
    }

    /// Notes what a spot goes on with.
    fn open(&mut self, spot: Spot, closure: Heads, budget: &mut Budget) -> Result<ByteSet> {
        let mut first = ByteSet::NONE;
        for head in &closure {
            first = first.or(self.arena.first(head.rest, budget)?);
        }
        let entry = &mut self.table.entries[spot as usize];
        (entry.closure, entry.first) = (Some(closure), first);
        if first.len() > MANY {
            entry.row = self.table.rows.len() as u32;
            let mut row = [DEAD; 256];
            first.iter().for_each(|b| row[b as usize] = UNKNOWN);
            self.table.rows.push(row);
        }
        Ok(first)
    }

    /// The head that a spot goes on with, if it is one.
    pub fn only_head(&mut self, spot: Spot, budget: &mut Budget) -> Result<Option<Head>> {
        self.first(spot, budget)?;
        Ok(match self.table.entries[spot as usize].closure.as_deref() {
            Some([head]) => Some(*head),
            _ => None,
        })
    }

    /// The spot after one byte, and bytes (this one among them) that lead to the same.
    pub fn go_class(&mut self, spot: Spot, byte: u8, budget: &mut Budget) -> Result<(ByteSet, Spot)> {
        let first = self.first(spot, budget)?;
        if !first.contains(byte) {
            return Ok((ByteSet::ALL.minus(first), DEAD));
        }
        self.go(spot, byte, budget)?;
        let classes = &self.table.entries[spot as usize].classes;
        Ok(*classes.iter().find(|c| c.0.contains(byte)).expect("it was just found"))
    }

    /// The spot after one byte.
    #[inline]
    pub fn go(&mut self, spot: Spot, byte: u8, budget: &mut Budget) -> Result<Spot> {
        let next = self.table.known(spot, byte);
        if next != UNKNOWN { Ok(next) } else { self.find(spot, byte, budget) }
    }

    #[cold]
    fn find(&mut self, spot: Spot, byte: u8, budget: &mut Budget) -> Result<Spot> {
        budget.spend(4)?;
        if !self.first(spot, budget)?.contains(byte) {
            return Ok(DEAD);
        }
        let next = self.table.known(spot, byte);
        if next != UNKNOWN {
            return Ok(next);
        }
        let closure = self.table.entries[spot as usize].closure.take().expect("it was just found");
        let next = self.find_next(spot, &closure, byte, budget);
        self.table.entries[spot as usize].closure = Some(closure);
        next
    }

    fn find_next(&mut self, spot: Spot, closure: &[Head], byte: u8, budget: &mut Budget) -> Result<Spot> {
        // one head: at once for all bytes that lead to the same residual
        let (bytes, kernel) = match closure {
            [head] => {
                let (bytes, rest) = self.arena.edge(head.rest, byte, budget)?;
                (bytes, if rest == EMPTY { Heads::new() } else { Heads::from_slice(&[Head { rest, ..*head }]) })
            }
            _ => (ByteSet::range(byte, byte), self.step(closure, byte, budget)?),
        };
        let next = self.table.kernel(kernel);
        self.table.set_next(spot, bytes, next);
        Ok(next)
    }
}
