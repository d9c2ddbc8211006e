//! Tabulated transitions of kernels by byte: scratch memory for walks, shared by all walks of a constraint.
//!
//! Numbers are given to kernels as walks meet them and mean nothing outside the table, which is emptied when it
//! has grown; nothing of it is part of a state.

use rustc_hash::FxHashMap;

use super::step::{Head, Heads, Machine};
use crate::budget::Budget;
use crate::error::Result;
use crate::regular::EMPTY;

/// A kernel's number in the table.
pub type Spot = u32;

/// The kernel without heads: no text goes on from here.
pub const DEAD: Spot = 0;
/// The answer lies below the cut of a truncated stack.
pub const CUT_OFF: Spot = 1;

const UNKNOWN: Spot = u32::MAX;

/// More kernels than this, and the table is emptied at the next walk.
const FULL: usize = 8192;

struct Entry {
    kernel: Heads,
    /// What the kernel goes on with, once asked for.
    closure: Option<Heads>,
    next: Box<[Spot; 256]>,
}

#[derive(Default)]
pub struct Table {
    entries: Vec<Entry>,
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
        *self = Table::default();
        for _ in [DEAD, CUT_OFF] {
            self.entries.push(Entry { kernel: Heads::new(), closure: Some(Heads::new()), next: Box::new([DEAD; 256]) });
        }
        self.entries[CUT_OFF as usize].next.fill(CUT_OFF);
    }

    pub fn memory(&self) -> usize {
        self.entries.len() * 1200
    }

    fn add(&mut self, kernel: Heads, closure: Option<Heads>) -> Spot {
        self.entries.push(Entry { kernel, closure, next: Box::new([UNKNOWN; 256]) });
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
        let s = self.add(kernel.clone(), None);
        self.ids.insert(kernel, s);
        s
    }

    /// A spot that goes on with exactly these heads (a closure, or part of one).
    pub fn closure(&mut self, heads: &Heads) -> Spot {
        if heads.is_empty() {
            return DEAD;
        }
        if let Some(&s) = self.closed.get(heads) {
            return s;
        }
        let s = self.add(Heads::new(), Some(heads.clone()));
        self.closed.insert(heads.clone(), s);
        s
    }

    #[inline]
    fn known(&self, spot: Spot, byte: u8) -> Spot {
        self.entries[spot as usize].next[byte as usize]
    }
}

impl Machine {
    /// The spot after one byte.
    #[inline]
    pub fn go(&mut self, spot: Spot, byte: u8, budget: &mut Budget) -> Result<Spot> {
        let next = self.table.known(spot, byte);
        if next != UNKNOWN { Ok(next) } else { self.find(spot, byte, budget) }
    }

    #[cold]
    fn find(&mut self, spot: Spot, byte: u8, budget: &mut Budget) -> Result<Spot> {
        budget.spend(4)?;
        let heads = match &self.table.entries[spot as usize].closure {
            Some(heads) => heads.clone(),
            None => {
                let kernel = self.table.entries[spot as usize].kernel.clone();
                let closure = self.close(&kernel, budget)?;
                if closure.cut_off {
                    self.table.entries[spot as usize].next.fill(CUT_OFF);
                    return Ok(CUT_OFF);
                }
                self.table.entries[spot as usize].closure = Some(closure.heads.clone());
                closure.heads
            }
        };
        if let [head] = heads[..] {
            // one head: the whole row at once, by runs of equal residuals
            let row = *self.arena.row(head.rest, budget)?;
            let mut last = (EMPTY, DEAD);
            let mut next = Box::new([DEAD; 256]);
            for (slot, &rest) in next.iter_mut().zip(&row) {
                if rest != last.0 {
                    let kernel = if rest == EMPTY { Heads::new() } else { Heads::from_slice(&[Head { rest, ..head }]) };
                    last = (rest, self.table.kernel(kernel));
                }
                *slot = last.1;
            }
            let found = next[byte as usize];
            self.table.entries[spot as usize].next = next;
            return Ok(found);
        }
        let kernel = self.step(&heads, byte, budget)?;
        let next = self.table.kernel(kernel);
        self.table.entries[spot as usize].next[byte as usize] = next;
        Ok(next)
    }
}
