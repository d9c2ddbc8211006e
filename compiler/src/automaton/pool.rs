//! The constraints on a vocabulary: whoever compiles an equal grammar under equal limits is given the one that there is,
//! with its states and masks.
//!
//! A constraint is found while anyone uses it, and for a while after: those that nobody uses wait, bounded by number and
//! by bytes. Where they hold too many, the least recently used give up what only new masks need, if that is a third of
//! what they hold, and keep states and masks; where that is not enough, they go. The lock is held for look-ups only, never
//! while grammars are compared, and never while waiting for a constraint that computes.

use std::collections::VecDeque;
use std::hash::{BuildHasher, RandomState};
use std::ops::Deref;
use std::sync::{Arc, Weak};

use hashbrown::HashTable;
use parking_lot::Mutex;

use super::engine::Gone;
use super::{Constraint, Index};
use crate::budget::{Cancel, Limits};
use crate::error::Result;
use crate::ir::Ir;

/// How many constraints wait for their next user, at most, and how many bytes they hold together.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    pub constraints: usize,
    pub memory: usize,
}

impl Default for Bounds {
    fn default() -> Self {
        Bounds { constraints: 32, memory: 64 << 20 }
    }
}

/// Bytes that each constraint has beyond its grammar and what it counts itself: tables that are empty at first.
const EMPTY: usize = 32 << 10;

#[derive(Default)]
pub(super) struct Pool {
    /// Its keys are drawn at random: nobody can make grammars whose hashes collide.
    hasher: RandomState,
    entries: Mutex<Entries>,
}

struct Entry {
    hash: u64,
    ir: Arc<Ir>,
    limits: Limits,
    constraint: Arc<Constraint>,
    users: usize,
    /// Bytes beside what the constraint counts.
    beside: usize,
}

/// A constraint without users.
struct Waiting {
    hash: u64,
    constraint: Arc<Constraint>,
    bytes: usize,
    /// Of these, what only new masks need.
    ways: usize,
}

impl Waiting {
    /// Gives up what only new masks need.
    fn make_lean(&mut self) -> Gone {
        let ways = self.constraint.lock().forget_ways(); // nobody else can have the engine
        self.bytes -= ways.bytes;
        self.ways = 0;
        ways
    }

    fn gone(self) -> Gone {
        Gone { bytes: self.bytes, rest: Box::new(std::iter::once(self.constraint).map(drop)) }
    }
}

#[derive(Default)]
struct Entries {
    table: HashTable<Entry>,
    /// The least recently used first.
    waiting: VecDeque<Waiting>,
    /// Of those that wait.
    bytes: usize,
    bounds: Bounds,
}

impl Entries {
    fn grammars(&self, hash: u64, limits: &Limits) -> Vec<Arc<Ir>> {
        let same = self.table.iter_hash(hash).filter(|entry| entry.hash == hash && entry.limits == *limits);
        same.map(|entry| entry.ir.clone()).collect()
    }

    /// Adds a user to the constraint of this very grammar, if it is still there.
    fn take(&mut self, hash: u64, ir: &Arc<Ir>, limits: &Limits) -> Option<Arc<Constraint>> {
        let entry = self.table.find_mut(hash, |entry| Arc::ptr_eq(&entry.ir, ir) && entry.limits == *limits)?;
        entry.users += 1;
        let constraint = entry.constraint.clone();
        if let Some(place) = self.waiting.iter().position(|one| Arc::ptr_eq(&one.constraint, &constraint)) {
            self.bytes -= self.waiting.remove(place).expect("it was found there").bytes;
        }
        Some(constraint)
    }

    fn insert(&mut self, entry: Entry) {
        self.table.insert_unique(entry.hash, entry, |entry| entry.hash);
    }

    /// Takes a constraint out: no further user finds it.
    fn remove(&mut self, hash: u64, constraint: &Arc<Constraint>) {
        if let Ok(entry) = self.table.find_entry(hash, |entry| Arc::ptr_eq(&entry.constraint, constraint)) {
            entry.remove();
        }
    }

    /// Takes a user from a constraint; the last one leaves it waiting. Returns what has to go for it.
    fn leave(&mut self, hash: u64, constraint: &Arc<Constraint>) -> Vec<Gone> {
        let found = self.table.find_mut(hash, |entry| Arc::ptr_eq(&entry.constraint, constraint));
        let Some(entry) = found else { return Vec::new() };
        entry.users -= 1;
        if entry.users > 0 {
            return Vec::new();
        }
        let mut new = {
            let engine = constraint.lock(); // nobody else can have it
            let (bytes, ways) = (engine.memory() + entry.beside, engine.ways());
            Waiting { hash, constraint: constraint.clone(), bytes, ways }
        };
        let mut gone = Vec::new();
        if new.bytes > self.bounds.memory {
            gone.push(new.make_lean());
        }
        if new.bytes > self.bounds.memory {
            self.remove(hash, constraint); // and the others need not go for it
            gone.push(new.gone());
        } else {
            self.bytes += new.bytes;
            self.waiting.push_back(new);
            gone.extend(self.shrink());
        }
        gone
    }

    /// Takes out what waits beyond the bounds.
    fn shrink(&mut self) -> Vec<Gone> {
        let mut gone = Vec::new();
        for one in self.waiting.iter_mut().filter(|one| one.ways > one.bytes / 3) {
            if self.bytes <= self.bounds.memory {
                break;
            }
            let ways = one.make_lean();
            self.bytes -= ways.bytes;
            gone.push(ways);
        }
        while self.waiting.len() > self.bounds.constraints || self.bytes > self.bounds.memory {
            let Some(oldest) = self.waiting.pop_front() else { break };
            self.bytes -= oldest.bytes;
            self.remove(oldest.hash, &oldest.constraint);
            gone.push(oldest.gone());
        }
        gone
    }
}

/// Drops what is gone, after the lock was given back. Returns how many bytes that held.
fn drop_all(gone: Vec<Gone>) -> usize {
    gone.into_iter().map(|one| one.bytes).sum()
}

impl Pool {
    fn compile(self: &Arc<Pool>, ir: Arc<Ir>, index: &Index, limits: Limits) -> Result<Lease> {
        let hash = self.hasher.hash_one(&*ir);
        if let Some(known) = self.find(hash, &ir, &limits) {
            return Ok(known);
        }
        let constraint = Arc::new(Constraint::new(ir.clone(), index, limits.clone(), None)?);
        if let Some(known) = self.find(hash, &ir, &limits) {
            return Ok(known); // another thread has compiled it meanwhile
        }
        let beside = ir.memory() + EMPTY;
        self.entries.lock().insert(Entry { hash, ir, limits, constraint: constraint.clone(), users: 1, beside });
        Ok(Lease { constraint, hash, pool: Arc::downgrade(self) })
    }

    fn find(self: &Arc<Pool>, hash: u64, ir: &Arc<Ir>, limits: &Limits) -> Option<Lease> {
        let grammars = self.entries.lock().grammars(hash, limits);
        let equal = grammars.into_iter().find(|known| known == ir)?;
        let constraint = self.entries.lock().take(hash, &equal, limits)?;
        let lease = Lease { constraint, hash, pool: Arc::downgrade(self) };
        if lease.has_room() {
            return Some(lease);
        }
        self.entries.lock().remove(hash, &lease.constraint);
        None
    }
}

impl Index {
    /// The constraint of a grammar: one that is there already, or as [`Constraint::new`] makes it. One that can be
    /// cancelled is its user's alone.
    pub fn compile(&self, ir: Arc<Ir>, limits: Limits, cancel: Option<Cancel>) -> Result<Lease> {
        match &self.pool {
            Some(pool) if cancel.is_none() => pool.compile(ir, self, limits),
            _ => {
                let constraint = Arc::new(Constraint::new(ir, self, limits, cancel)?);
                Ok(Lease { constraint, hash: 0, pool: Weak::new() })
            }
        }
    }

    /// Bounds what waits for its next user from now on; what is beyond goes. Returns how many bytes that held, or `None`
    /// if the index keeps no constraints.
    pub fn keep(&self, bounds: Bounds) -> Option<usize> {
        let gone = {
            let mut entries = self.pool.as_ref()?.entries.lock();
            entries.bounds = bounds;
            entries.shrink()
        };
        Some(drop_all(gone))
    }

    /// Counters by name: constraints that can be found, and those of them that nobody uses, with the bytes they hold.
    pub fn stats(&self) -> Vec<(&'static str, usize)> {
        let [constraints, waiting, memory] = self.pool.as_ref().map_or([0; 3], |pool| {
            let entries = pool.entries.lock();
            [entries.table.len(), entries.waiting.len(), entries.bytes]
        });
        vec![("constraints", constraints), ("waiting", waiting), ("memory", memory)]
    }
}

/// A user's hold of a constraint.
pub struct Lease {
    constraint: Arc<Constraint>,
    hash: u64,
    /// Without one, the constraint is the user's alone.
    pool: Weak<Pool>,
}

impl Deref for Lease {
    type Target = Constraint;

    fn deref(&self) -> &Constraint {
        &self.constraint
    }
}

impl Lease {
    /// Gives the constraint back. Returns how many bytes are freed by that, at the latest when the lease is dropped.
    pub fn end(&mut self) -> usize {
        let pool = std::mem::take(&mut self.pool).upgrade();
        let gone = pool.map_or_else(Vec::new, |pool| pool.entries.lock().leave(self.hash, &self.constraint));
        if !gone.is_empty() {
            return drop_all(gone);
        }
        // without others who hold it, it goes with the lease
        if Arc::strong_count(&self.constraint) == 1 { self.constraint.lock().memory() } else { 0 }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.end();
    }
}
