//! Byte states: the lazy subset construction over threads.
//!
//! A *byte state* is a set of threads (`threads.rs`): everything that can follow a text. The table gives each set that is
//! met a number and keeps its transitions by byte, so that steps, walks over tries, drafts and forced text follow a byte by
//! a look-up. It is scratch memory: it is emptied when it has grown, after which its numbers mean nothing, and no state of
//! the automaton depends on it.

use std::hash::BuildHasher;

use hashbrown::{HashTable, hash_table};
use rustc_hash::{FxBuildHasher, FxHashMap};
use smallvec::SmallVec;

use super::step::{Head, Heads, Machine};
use super::threads::Threads;
use crate::budget::Budget;
use crate::byteset::ByteSet;
use crate::error::Result;
use crate::growth::push;
use crate::regular::{EPS, Id};

/// A byte state, by its number in the table.
pub type ByteState = u32;

/// The state without threads: no text goes on from here.
pub const DEAD: ByteState = 0;

/// A truncated stack was popped below its cut: nothing is known of what follows.
pub const CUT_OFF: ByteState = 1;

/// In the place of an index: there is nothing.
const NONE: u32 = u32::MAX;

/// In the place of the index of a closure: it is the kernel itself.
const KERNEL: u32 = u32::MAX - 1;

/// States with more classes of bytes than this have a row of their own in the table.
const FEW: u16 = 6;

/// States of more threads than this are not looked at thread by thread.
const FEW_THREADS: usize = 4;

/// A table of more states than this is emptied at the next opportunity.
const FULL: usize = 8192;

/// A byte state. There are many, each looked at a few times: so entries are small, and what only some states have lies
/// elsewhere in the table.
struct Entry {
    /// The threads after the last byte.
    kernel: Threads,
    /// The bytes that lead on, and perhaps others (known once the closure is).
    first: ByteSet,
    /// Whether all of these bytes lead on.
    all_lead_on: bool,
    /// Where the threads of the closure are, once it is made: an index, or `KERNEL`.
    closure: u32,
    /// The index of the transition that was found last.
    classes: u32,
    /// How many transitions were found.
    count: u16,
    /// The text may end here (known once the closure is).
    accepting: bool,
    /// Whether it depends on more of a truncated stack if the text may end here (known once the closure is).
    may_accept: bool,
    /// Whether it depends on more of a truncated stack if any text goes on from here.
    unsure: bool,
    /// Whether some bytes may lead to `CUT_OFF` (known once the closure is).
    may_be_cut_off: bool,
    /// Where the table has the indices of the transitions by byte, if there are many.
    row: u32,
    /// The number by which the table's user knows the kernel, if it has set one.
    label: u32,
}

impl Entry {
    fn new(kernel: Threads) -> Entry {
        Entry {
            kernel,
            first: ByteSet::NONE,
            all_lead_on: false,
            closure: NONE,
            classes: NONE,
            count: 0,
            accepting: false,
            may_accept: false,
            unsure: false,
            may_be_cut_off: false,
            row: NONE,
            label: NONE,
        }
    }
}

/// A transition: a set of bytes that lead to the same state.
struct Class {
    bytes: ByteSet,
    next: ByteState,
    /// The index of the transition of the same state that was found before.
    before: u32,
}

/// What follows where a terminal has ended.
#[derive(Clone, Default)]
struct Closing {
    threads: Threads,
    accepting: bool,
    may_accept: bool,
}

#[derive(Default)]
pub struct Table {
    /// Counts how often the table was emptied: numbers of states of an earlier epoch mean nothing.
    pub epoch: u32,
    entries: Vec<Entry>,
    /// The closures that are not the kernels of their states.
    closures: Vec<Threads>,
    classes: Vec<Class>,
    #[allow(clippy::vec_box)] // a kilobyte each, which is not to be copied when the list grows
    rows: Vec<Box<[u32; 256]>>,
    /// The states by their kernels, with the hashes of these: to compute them again would be to read all entries.
    ids: HashTable<(u32, ByteState)>,
    /// States that were made of a closure: their threads are taken as they are, nullable or not.
    closed: FxHashMap<Threads, ByteState>,
    /// What follows the end of a terminal, by that end and its stack.
    closings: FxHashMap<Head, Closing>,
}

/// A hash of 64 bits, as a hash table asks for, of one of 32.
#[inline]
fn spread(hash: u32) -> u64 {
    u64::from(hash).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

impl Table {
    /// Empties the table if it is full. To be called before a walk: states of earlier walks may lose their meaning.
    pub fn refresh(&mut self) {
        if self.is_full() || self.entries.is_empty() {
            self.clear();
        }
    }

    pub fn is_full(&self) -> bool {
        self.entries.len() > FULL
    }

    /// Empties the table. Its memory is kept, but for that of rows, which are large: it will grow again.
    pub fn clear(&mut self) {
        self.epoch += 1;
        self.entries.clear();
        self.closures.clear();
        self.classes.clear();
        self.rows = Vec::new();
        self.ids.clear();
        self.closed.clear();
        self.closings.clear();
        for state in [DEAD, CUT_OFF] {
            let mut entry = Entry { closure: KERNEL, all_lead_on: true, ..Entry::new(Threads::new()) };
            if state == CUT_OFF {
                entry.first = ByteSet::ALL;
                (entry.may_accept, entry.unsure, entry.may_be_cut_off) = (true, true, true);
            }
            push(&mut self.entries, entry);
            self.set_next(state, ByteSet::ALL, state);
        }
    }

    pub fn memory(&self) -> usize {
        self.entries.capacity() * size_of::<Entry>()
            + self.classes.capacity() * size_of::<Class>()
            + self.rows.len() * 1024
            + (self.ids.capacity() + self.closings.capacity() * 10) * 8
    }

    /// The threads of the closure of a state, once it is made.
    fn closure(&self, state: ByteState) -> &Threads {
        let entry = &self.entries[state as usize];
        self.closures.get(entry.closure as usize).unwrap_or(&entry.kernel)
    }

    /// The state of a set of threads.
    fn intern(&mut self, mut threads: Threads) -> ByteState {
        if threads.is_empty() {
            return DEAD;
        }
        let mut unsure = false;
        if threads.iter().any(|t| t.is_unsure()) {
            if threads.iter().any(|t| t.is_anything()) {
                threads.retain(|t| !t.is_unsure() || t.is_anything());
                if threads.len() == 1 {
                    return CUT_OFF;
                }
            }
            unsure = threads.iter().all(|t| t.is_unsure());
        }
        let hash = FxBuildHasher.hash_one(&threads) as u32;
        let entries = &mut self.entries;
        let same = |&(of, state): &(u32, ByteState)| of == hash && entries[state as usize].kernel == threads;
        match self.ids.entry(spread(hash), same, |&(of, _)| spread(of)) {
            hash_table::Entry::Occupied(known) => known.get().1,
            hash_table::Entry::Vacant(new) => {
                let state = entries.len() as ByteState;
                new.insert((hash, state));
                push(entries, Entry { unsure, ..Entry::new(threads) });
                state
            }
        }
    }

    pub fn label(&self, state: ByteState) -> Option<u32> {
        Some(self.entries[state as usize].label).filter(|&label| label != NONE)
    }

    pub fn set_label(&mut self, state: ByteState, label: u32) {
        self.entries[state as usize].label = label;
    }

    /// The transition of a state by a byte, if it was found before.
    #[inline]
    fn transition(&self, state: ByteState, byte: u8) -> Option<&Class> {
        let entry = &self.entries[state as usize];
        if entry.row != NONE {
            return self.classes.get(self.rows[entry.row as usize][byte as usize] as usize);
        }
        let mut last = entry.classes;
        while let Some(class) = self.classes.get(last as usize) {
            if class.bytes.contains(byte) {
                return Some(class);
            }
            last = class.before;
        }
        None
    }

    /// Notes where these bytes lead from a state.
    fn set_next(&mut self, state: ByteState, bytes: ByteSet, next: ByteState) {
        let entry = &mut self.entries[state as usize];
        let new = self.classes.len() as u32;
        push(&mut self.classes, Class { bytes, next, before: entry.classes });
        entry.classes = new;
        entry.count += 1;
        if entry.row != NONE {
            let row = &mut self.rows[entry.row as usize];
            bytes.iter().for_each(|b| row[b as usize] = new);
        } else if entry.count > FEW {
            entry.row = self.rows.len() as u32;
            let mut row = Box::new([NONE; 256]);
            let mut last = new;
            while let Some(class) = self.classes.get(last as usize) {
                class.bytes.iter().for_each(|b| row[b as usize] = last);
                last = class.before;
            }
            self.rows.push(row);
        }
    }
}

impl Machine {
    /// The byte state of a kernel.
    pub fn byte_state(&mut self, kernel: &[Head], budget: &mut Budget) -> Result<ByteState> {
        let threads = self.threads(kernel, budget)?;
        Ok(self.table.intern(threads))
    }

    /// The byte state whose closure is exactly these heads (a closure, or part of one).
    pub fn closure_state(&mut self, heads: &[Head], budget: &mut Budget) -> Result<ByteState> {
        let threads = self.threads(heads, budget)?;
        if threads.iter().all(|&t| self.ending_of(t).rest == EPS) {
            return Ok(self.table.intern(threads));
        }
        if let Some(&state) = self.table.closed.get(&threads) {
            return Ok(state);
        }
        let first = self.first_of_all(&threads, budget)?;
        let unsure = threads.iter().all(|t| t.is_unsure());
        let state = self.table.entries.len() as ByteState;
        let may_be_cut_off = threads.iter().any(|t| t.is_anything());
        let all_lead_on = !self.careful;
        let entry =
            Entry { unsure, closure: KERNEL, first, all_lead_on, may_be_cut_off, ..Entry::new(threads.clone()) };
        push(&mut self.table.entries, entry);
        self.table.closed.insert(threads, state);
        Ok(state)
    }

    /// The same state in a table that is emptied first if it is full: for texts of any length.
    pub fn in_bounds(&mut self, state: ByteState, budget: &mut Budget) -> Result<ByteState> {
        if !self.table.is_full() {
            return Ok(state);
        }
        let kernel = self.kernel_of(state, budget)?;
        self.table.clear();
        self.byte_state(&kernel, budget)
    }

    /// The kernel that a state stands for.
    pub fn kernel_of(&mut self, state: ByteState, budget: &mut Budget) -> Result<Heads> {
        let threads = self.table.entries[state as usize].kernel.clone();
        self.join(&threads, budget)
    }

    /// The bytes that lead on from a state, or may.
    #[inline]
    pub fn first(&mut self, state: ByteState, budget: &mut Budget) -> Result<ByteSet> {
        let entry = &self.table.entries[state as usize];
        if entry.all_lead_on { Ok(entry.first) } else { self.leading(state, budget) }
    }

    /// Finds the bytes that lead on from a state.
    #[cold]
    fn leading(&mut self, state: ByteState, budget: &mut Budget) -> Result<ByteSet> {
        let mut first = self.opened(state, budget)?;
        if self.careful {
            let mut left = first;
            while let Some(byte) = left.first() {
                let (same, next) = self.go_class(state, byte, budget)?;
                first = if next == DEAD { first.minus(same) } else { first };
                left = left.minus(same);
            }
        }
        let entry = &mut self.table.entries[state as usize];
        (entry.first, entry.all_lead_on) = (first, true);
        Ok(first)
    }

    /// The bytes that may lead on from a state, whose closure is then made: to follow one byte, it need not be known
    /// where the others lead.
    #[inline]
    fn opened(&mut self, state: ByteState, budget: &mut Budget) -> Result<ByteSet> {
        let entry = &self.table.entries[state as usize];
        if entry.closure != NONE { Ok(entry.first) } else { self.open(state, budget) }
    }

    /// Whether each of the bytes that lead on from a state does so whatever the rest of a truncated stack is, so that
    /// these bytes are known to be allowed without a look at where they lead. To be asked after [`Machine::first`].
    #[inline]
    pub fn surely_leads_on(&self, state: ByteState) -> bool {
        !self.has_lexemes && !self.table.entries[state as usize].may_be_cut_off
    }

    /// Whether the text may end at a state.
    pub fn accepts(&mut self, state: ByteState, budget: &mut Budget) -> Result<bool> {
        self.opened(state, budget)?;
        Ok(self.table.entries[state as usize].accepting)
    }

    /// Whether it depends on more of a truncated stack if any text goes on from a state.
    #[inline]
    pub fn is_unsure(&self, state: ByteState) -> bool {
        state == CUT_OFF || self.has_lexemes && self.table.entries[state as usize].unsure
    }

    /// Whether the text may end at a state; `None`: it depends on more of a truncated stack.
    pub fn may_end(&mut self, state: ByteState, budget: &mut Budget) -> Result<Option<bool>> {
        let accepting = self.accepts(state, budget)?;
        let open = self.table.entries[state as usize].may_accept;
        Ok(if open && !accepting { None } else { Some(accepting) })
    }

    /// Makes the closure of a state. Returns the bytes that may lead on.
    #[cold]
    fn open(&mut self, state: ByteState, budget: &mut Budget) -> Result<ByteSet> {
        budget.spend(4)?;
        let kernel = self.table.entries[state as usize].kernel.clone();
        let mut closure = Threads::new();
        let (mut accepting, mut may_accept, mut ends) = (false, false, false);
        for &t in &kernel {
            let end = self.ending_of(t);
            if end.rest == EPS {
                closure.push(t);
                continue;
            }
            ends = true;
            for (condition, tag) in self.arena.ends(end.rest) {
                let tag = self.accept(tag);
                let tag = Head { rest: self.arena.under(condition, tag), ..end };
                let closing = self.closing(tag, budget)?;
                accepting |= closing.accepting;
                may_accept |= closing.may_accept;
                budget.spend(1 + closing.threads.len() as u64)?;
                closure.extend(closing.threads);
            }
            if !self.is_tag(t) {
                closure.push(t);
            }
        }
        if ends {
            self.settle(&mut closure, budget)?;
            closure.dedup();
        }
        let first = self.first_of_all(&closure, budget)?;
        let all_lead_on = !self.careful;
        let entry = &mut self.table.entries[state as usize];
        (entry.closure, entry.first, entry.all_lead_on) = (KERNEL, first, all_lead_on);
        entry.may_be_cut_off = closure.iter().any(|t| t.is_anything());
        if ends {
            entry.closure = self.table.closures.len() as u32;
            self.table.closures.push(closure);
        }
        (entry.accepting, entry.may_accept) = (accepting, may_accept);
        Ok(first)
    }

    /// The bytes that may lead on from any of some threads.
    fn first_of_all(&mut self, threads: &Threads, budget: &mut Budget) -> Result<ByteSet> {
        let mut first = ByteSet::NONE;
        for &t in threads {
            first = first.or(self.first_of(t, budget)?);
        }
        Ok(first)
    }

    /// The threads that follow where a terminal has ended.
    fn closing(&mut self, tag: Head, budget: &mut Budget) -> Result<Closing> {
        if let Some(known) = self.table.closings.get(&tag) {
            return Ok(known.clone());
        }
        let closure = self.close(&[tag], budget)?;
        let threads = self.threads(&closure.heads, budget)?;
        let closing = Closing { threads, accepting: closure.accepting, may_accept: closure.may_accept };
        self.table.closings.insert(tag, closing.clone());
        Ok(closing)
    }

    /// The only head of a state's closure; `None` if it has several or none.
    pub fn only_head(&mut self, state: ByteState, budget: &mut Budget) -> Result<Option<Head>> {
        self.opened(state, budget)?;
        Ok(match &self.table.closure(state)[..] {
            &[only] => self.join(&[only], budget)?.first().copied(),
            _ => None,
        })
    }

    /// Whether nothing is left of the lexemes that the last byte before a state belongs to.
    pub fn is_between_lexemes(&self, state: ByteState) -> bool {
        self.table.entries[state as usize].kernel.iter().all(|&thread| self.is_tag(thread))
    }

    /// If of each thread in the kernel of a state, which has few, the front part of a terminal is kept apart: these parts,
    /// and the bytes that lead on from the state in other ways.
    pub fn parts(&mut self, state: ByteState, budget: &mut Budget) -> Result<Option<(SmallVec<[Id; 2]>, ByteSet)>> {
        self.opened(state, budget)?;
        let entry = &self.table.entries[state as usize];
        let kernel = entry.kernel.clone();
        if kernel.len() > FEW_THREADS {
            return Ok(None);
        }
        if entry.closure == KERNEL && kernel.iter().any(|&thread| self.ending_of(thread).rest != EPS) {
            return Ok(None); // the state of a closure, unlike that of the kernel with these threads
        }
        let (mut parts, mut others) = (SmallVec::new(), ByteSet::NONE);
        for &thread in &kernel {
            let Some((part, after)) = self.apart(thread, budget)? else { return Ok(None) };
            parts.push(part);
            others = others.or(after);
        }
        for other in self.table.closure(state).clone() {
            if !kernel.contains(&other) {
                others = others.or(self.first_of(other, budget)?);
            }
        }
        Ok(Some((parts, others)))
    }

    /// The state after one byte, and a set of bytes, this one among them, that lead to the same state.
    pub fn go_class(&mut self, state: ByteState, byte: u8, budget: &mut Budget) -> Result<(ByteSet, ByteState)> {
        match self.table.transition(state, byte) {
            Some(class) => Ok((class.bytes, class.next)),
            None => self.find(state, byte, budget),
        }
    }

    /// The state after one byte, `DEAD` if it does not lead on.
    #[inline]
    pub fn go(&mut self, state: ByteState, byte: u8, budget: &mut Budget) -> Result<ByteState> {
        match self.table.transition(state, byte) {
            Some(class) => Ok(class.next),
            None => Ok(self.find(state, byte, budget)?.1),
        }
    }

    /// Finds a transition that the table does not have yet.
    #[cold]
    fn find(&mut self, state: ByteState, byte: u8, budget: &mut Budget) -> Result<(ByteSet, ByteState)> {
        budget.spend(4)?;
        let first = self.opened(state, budget)?;
        if !first.contains(byte) {
            return Ok((ByteSet::ALL.minus(first), DEAD));
        }
        let closure = self.table.closure(state).clone();
        let (mut same, mut after) = (ByteSet::ALL, Threads::new());
        for t in closure {
            same = same.and(self.follow(t, byte, &mut after, budget)?);
            budget.spend(after.len() as u64 / 8)?; // each new thread is compared with all
        }
        self.settle(&mut after, budget)?;
        let next = self.table.intern(after);
        self.table.set_next(state, same, next);
        Ok((same, next))
    }
}
