//! Tabulated transitions by byte of sets of threads: scratch memory for all that follow texts, shared by a constraint's walks.
//!
//! Numbers are given to sets as they are met and mean nothing outside the table, which is emptied when it has grown;
//! nothing of it is part of a state.

use std::hash::BuildHasher;

use hashbrown::{HashTable, hash_table};
use rustc_hash::{FxBuildHasher, FxHashMap};
use smallvec::SmallVec;

use super::step::{Head, Heads, Machine};
use super::threads::Threads;
use crate::budget::Budget;
use crate::error::Result;
use crate::regular::{ByteSet, EPS, Id};

/// A set of threads, by its number in the table.
pub type Spot = u32;

/// No threads: no text goes on from here.
pub const DEAD: Spot = 0;
/// The answer lies below the cut of a truncated stack.
pub const CUT_OFF: Spot = 1;

const UNKNOWN: Spot = u32::MAX;

const NO_ROW: u32 = u32::MAX;

/// Spots with more classes of bytes than this have a row.
const FEW: usize = 6;

/// More spots than this, and the table is emptied at the next opportunity.
const FULL: usize = 8192;

struct Entry {
    /// The threads after the last byte.
    kernel: Threads,
    /// What they go on with, and the bytes that lead on, once asked for. `None` in it: the kernel itself.
    open: Option<Option<Threads>>,
    first: ByteSet,
    /// The text may end here (known once open).
    accepting: bool,
    /// Successors, as far as they were asked for: bytes that lead to the same spot.
    classes: SmallVec<[(ByteSet, Spot); 2]>,
    /// The same by byte, a row of the table, where there are many classes.
    row: u32,
    /// The number that the table's user has for the kernel, once told.
    label: Option<u32>,
}

impl Entry {
    fn new(kernel: Threads) -> Entry {
        let classes = SmallVec::new();
        Entry { kernel, open: None, first: ByteSet::NONE, accepting: false, classes, row: NO_ROW, label: None }
    }

    /// What an open entry goes on with.
    fn ways(&self) -> &Threads {
        self.open.as_ref().and_then(Option::as_ref).unwrap_or(&self.kernel)
    }
}

/// What follows where a terminal has ended.
#[derive(Clone, Default)]
struct Closing {
    threads: Threads,
    accepting: bool,
    cut_off: bool,
}

#[derive(Default)]
pub struct Table {
    /// Spots of another epoch mean nothing.
    pub epoch: u32,
    entries: Vec<Entry>,
    rows: Vec<[Spot; 256]>,
    /// Spots by their kernels.
    ids: HashTable<Spot>,
    /// Spots of closures: their threads are taken as they are, whether nullable or not.
    closed: FxHashMap<Threads, Spot>,
    /// By the end of a terminal and its stack.
    closings: FxHashMap<Head, Closing>,
    /// For masks: bytes on which spots loop and others that lead on, where asked for.
    pub(crate) loops: FxHashMap<Spot, Option<(ByteSet, ByteSet)>>,
}

impl Table {
    /// To be called before a walk: spots of earlier walks may lose their meaning.
    pub fn refresh(&mut self) {
        if self.is_full() || self.entries.is_empty() {
            self.clear();
        }
    }

    pub fn is_full(&self) -> bool {
        self.entries.len() > FULL
    }

    pub fn clear(&mut self) {
        *self = Table { epoch: self.epoch + 1, entries: Vec::with_capacity(64), ..Table::default() };
        for spot in [DEAD, CUT_OFF] {
            let first = if spot == CUT_OFF { ByteSet::ALL } else { ByteSet::NONE };
            let classes = SmallVec::from_slice(&[(ByteSet::ALL, spot)]);
            self.entries.push(Entry { open: Some(None), first, classes, ..Entry::new(Threads::new()) });
        }
    }

    pub fn memory(&self) -> usize {
        self.entries.len() * 320 + self.rows.len() * 1024 + self.closings.len() * 80
    }

    fn spot(&mut self, threads: Threads) -> Spot {
        if threads.is_empty() {
            return DEAD;
        }
        let hash = |threads: &Threads| FxBuildHasher.hash_one(threads);
        let entries = &mut self.entries;
        match self.ids.entry(
            hash(&threads),
            |&s| entries[s as usize].kernel == threads,
            |&s| hash(&entries[s as usize].kernel),
        ) {
            hash_table::Entry::Occupied(known) => *known.get(),
            hash_table::Entry::Vacant(new) => {
                let spot = entries.len() as Spot;
                new.insert(spot);
                entries.push(Entry::new(threads));
                spot
            }
        }
    }

    pub fn label(&self, spot: Spot) -> Option<u32> {
        self.entries[spot as usize].label
    }

    pub fn set_label(&mut self, spot: Spot, label: u32) {
        self.entries[spot as usize].label = Some(label);
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
        if entry.row == NO_ROW && entry.classes.len() > FEW {
            entry.row = self.rows.len() as u32;
            self.rows.push([UNKNOWN; 256]);
            let row = self.rows.last_mut().expect("it was just added");
            entry.classes.iter().for_each(|c| c.0.iter().for_each(|b| row[b as usize] = c.1));
        } else if entry.row != NO_ROW {
            let row = &mut self.rows[entry.row as usize];
            bytes.iter().for_each(|b| row[b as usize] = next);
        }
    }
}

impl Machine {
    /// The spot of a kernel.
    pub fn spot(&mut self, kernel: &[Head], budget: &mut Budget) -> Result<Spot> {
        let threads = self.threads(kernel, budget)?;
        Ok(self.table.spot(threads))
    }

    /// A spot that goes on with exactly these heads (a closure, or part of one).
    pub fn spot_of_closure(&mut self, heads: &[Head], budget: &mut Budget) -> Result<Spot> {
        let threads = self.threads(heads, budget)?;
        if threads.iter().all(|&t| self.ending_of(t).rest == EPS) {
            return Ok(self.table.spot(threads));
        }
        if let Some(&spot) = self.table.closed.get(&threads) {
            return Ok(spot);
        }
        // known only once it is whole: the budget may end here
        let mut first = ByteSet::NONE;
        for &t in &threads {
            first = first.or(self.first_of(t, budget)?);
        }
        let spot = self.table.entries.len() as Spot;
        self.table.entries.push(Entry { open: Some(None), first, ..Entry::new(threads.clone()) });
        self.table.closed.insert(threads, spot);
        Ok(spot)
    }

    /// The kernel that a spot stands for.
    pub fn kernel_of(&mut self, spot: Spot) -> Heads {
        let threads = self.table.entries[spot as usize].kernel.clone();
        self.join(&threads)
    }

    /// The bytes that lead on from a spot (all of them, where the answer lies below the cut).
    #[inline]
    pub fn first(&mut self, spot: Spot, budget: &mut Budget) -> Result<ByteSet> {
        let entry = &self.table.entries[spot as usize];
        if entry.open.is_some() { Ok(entry.first) } else { self.open(spot, budget) }
    }

    /// Whether the text may end at a spot.
    pub fn accepts(&mut self, spot: Spot, budget: &mut Budget) -> Result<bool> {
        self.first(spot, budget)?;
        Ok(self.table.entries[spot as usize].accepting)
    }

    /// Finds what a spot goes on with.
    #[cold]
    fn open(&mut self, spot: Spot, budget: &mut Budget) -> Result<ByteSet> {
        budget.spend(4)?;
        let kernel = self.table.entries[spot as usize].kernel.clone();
        let mut ways = Threads::new();
        let (mut accepting, mut ends) = (false, false);
        for &t in &kernel {
            let end = self.ending_of(t);
            if end.rest == EPS {
                ways.push(t);
                continue;
            }
            ends = true;
            let mut tags = SmallVec::new();
            self.arena.tags(end.rest, &mut tags);
            for tag in tags {
                let tag = Head { rest: self.accept(tag), ..end };
                let closing = self.closing(tag, budget)?;
                if closing.cut_off {
                    let entry = &mut self.table.entries[spot as usize];
                    (entry.open, entry.first) = (Some(None), ByteSet::ALL);
                    entry.classes.push((ByteSet::ALL, CUT_OFF));
                    return Ok(ByteSet::ALL);
                }
                accepting |= closing.accepting;
                ways.extend(closing.threads);
            }
            if !self.is_tag(t) {
                ways.push(t);
            }
        }
        if ends {
            self.settle(&mut ways);
            ways.dedup();
        }
        let mut first = ByteSet::NONE;
        for &t in &ways {
            first = first.or(self.first_of(t, budget)?);
        }
        let entry = &mut self.table.entries[spot as usize];
        (entry.open, entry.first, entry.accepting) = (Some(ends.then_some(ways)), first, accepting);
        Ok(first)
    }

    /// What follows where a terminal has ended.
    fn closing(&mut self, tag: Head, budget: &mut Budget) -> Result<Closing> {
        if let Some(known) = self.table.closings.get(&tag) {
            return Ok(known.clone());
        }
        let closure = self.close(&[tag], budget)?;
        let threads = self.threads(&closure.heads, budget)?;
        let closing = Closing { threads, accepting: closure.accepting, cut_off: closure.cut_off };
        self.table.closings.insert(tag, closing.clone());
        Ok(closing)
    }

    /// The head that a spot goes on with, if it is one.
    pub fn only_head(&mut self, spot: Spot, budget: &mut Budget) -> Result<Option<Head>> {
        self.first(spot, budget)?;
        Ok(match &self.table.entries[spot as usize].ways()[..] {
            &[only] => self.join(&[only]).first().copied(),
            _ => None,
        })
    }

    /// If the kernel of a spot is one thread with part of a terminal apart: that, and the bytes that lead on otherwise.
    pub fn lone_part(&mut self, spot: Spot, budget: &mut Budget) -> Result<Option<(Id, ByteSet)>> {
        self.first(spot, budget)?;
        let entry = &self.table.entries[spot as usize];
        let &[thread] = &entry.kernel[..] else { return Ok(None) };
        if matches!(entry.open, Some(None)) && self.ending_of(thread).rest != EPS {
            return Ok(None); // the spot of a closure, unlike that of the kernel with this thread, or cut off
        }
        let ways = entry.ways().clone();
        let Some((part, mut others)) = self.apart(thread, budget)? else { return Ok(None) };
        for other in ways {
            if other != thread {
                others = others.or(self.first_of(other, budget)?);
            }
        }
        Ok(Some((part, others)))
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
            return Ok(next); // the answer lies below the cut
        }
        let ways = self.table.entries[spot as usize].ways().clone();
        let (mut same, mut after) = (ByteSet::ALL, Threads::new());
        for t in ways {
            same = same.and(self.follow(t, byte, &mut after, budget)?);
        }
        self.settle(&mut after);
        let next = self.table.spot(after);
        self.table.set_next(spot, same, next);
        Ok(next)
    }
}
