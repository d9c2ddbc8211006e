//! What a constraint's lock protects: the machine, its states, and the rows found so far.

use std::sync::{Arc, OnceLock};

use rustc_hash::FxHashMap;

use super::remember::Place;
use super::states::{Anchor, ENDED, StateId, States};
use crate::budget::{Budget, Limits};
use crate::error::{Error, Result};
use crate::ir::{Ir, UNBOUNDED};
use crate::mask::{ClassCache, Draft, MaskMaker, Row};
use crate::memory::Memory;
use crate::regular::{Arena, Counts};
use crate::stack::{DEAD, Head, Heads, Machine, Spot};
use crate::vocabulary::{Vocabulary, get_bit};

/// What is known of a footprint's mask.
enum Known {
    Row(Arc<Row>),
    /// The mask depends on more frames than this footprint shows.
    Deeper,
}

pub(super) struct Engine {
    pub(super) machine: Machine,
    pub(super) vocab: Arc<Vocabulary>,
    pub(super) states: States,
    pub(super) budget: Budget,
    classes: Arc<ClassCache>,
    limits: Limits,
    /// Rows by footprint: the kernel with counts saturated and stacks cut off where the walk did not look.
    masks: FxHashMap<Heads, Known>,
    /// Masks of single heads that those of others are patches of.
    bases: FxHashMap<Head, Draft>,
    row_bytes: usize,
    /// Places from which something new can be said, or not, as far as they were asked for by the call that goes on.
    pub(super) endings: FxHashMap<Place, bool>,
}

/// Hash keys of this process: structural hashes cannot be collided by who does not know them.
fn hash_keys() -> (u128, u128) {
    use std::hash::{BuildHasher, RandomState};
    static KEYS: OnceLock<(u128, u128)> = OnceLock::new();
    *KEYS.get_or_init(|| {
        let state = RandomState::new();
        let key = |i: u64| u128::from(state.hash_one(i)) << 64 | u128::from(state.hash_one(i + 1));
        (key(0), key(2))
    })
}

impl Engine {
    pub(super) fn new(
        ir: Arc<Ir>,
        vocab: Arc<Vocabulary>,
        classes: Arc<ClassCache>,
        limits: Limits,
        mut budget: Budget,
    ) -> Result<Engine> {
        if ir.depth > limits.max_depth {
            return Err(Error::Limit { which: "max_depth (nesting of expressions)", limit: limits.max_depth as u64 });
        }
        let arena = Arena::new(vocab.alphabet, vocab.inner, vocab.longest as u32, hash_keys());
        let machine = Machine::new(ir, arena, &mut budget)?;
        Ok(Engine {
            machine,
            vocab,
            states: States::new(),
            budget,
            classes,
            limits,
            masks: FxHashMap::default(),
            bases: FxHashMap::default(),
            row_bytes: 0,
            endings: FxHashMap::default(),
        })
    }

    pub(super) fn start(&mut self) -> Result<Arc<Anchor>> {
        let kernel = self.machine.start();
        self.intern(kernel, None)
    }

    fn intern(&mut self, kernel: Heads, memory: Option<Memory>) -> Result<Arc<Anchor>> {
        let anchor = self.states.intern(kernel, memory.map(Arc::new));
        if self.states.len() > self.limits.max_states || self.memory() > self.limits.max_memory {
            self.collect();
            if self.states.len() > self.limits.max_states {
                return Err(Error::Limit { which: "max_states", limit: self.limits.max_states as u64 });
            }
            if self.memory() > self.limits.max_memory {
                return Err(Error::Limit { which: "max_memory (bytes)", limit: self.limits.max_memory as u64 });
            }
        }
        Ok(anchor)
    }

    /// Bytes held, with the room that vectors and tables have to grow.
    pub(super) fn memory(&self) -> usize {
        let used = self.machine.memory() + self.states.memory() + self.masks.len() * 96 + self.bases.len() * 2048;
        used / 5 * 8 + self.row_bytes
    }

    /// The spot after the bytes; `DEAD` if they lead nowhere.
    fn advance(&mut self, mut spot: Spot, text: &[u8]) -> Result<Spot> {
        for &b in text {
            spot = self.machine.go(spot, b, &mut self.budget)?;
            if spot == DEAD {
                break;
            }
        }
        Ok(spot)
    }

    /// The spot of a state.
    fn spot(&mut self, id: StateId) -> Result<Spot> {
        self.machine.table.refresh();
        self.endings.clear();
        let state = self.states.get_mut(id)?;
        let epoch = self.machine.table.epoch;
        if let Some((of, spot)) = state.spot
            && of == epoch
        {
            return Ok(spot);
        }
        let spot = self.machine.spot(&state.kernel, &mut self.budget)?;
        state.spot = Some((epoch, spot));
        Ok(spot)
    }

    /// The same spot, in a table that was emptied if it was full: for texts of any length.
    pub(super) fn in_bounds(&mut self, spot: Spot) -> Result<Spot> {
        if !self.machine.table.is_full() {
            return Ok(spot);
        }
        let kernel = self.machine.kernel_of(spot);
        self.machine.table.clear();
        self.endings.clear();
        self.machine.spot(&kernel, &mut self.budget)
    }

    /// The place of a state.
    pub(super) fn place(&mut self, id: StateId) -> Result<Place> {
        let spot = self.spot(id)?;
        Ok(Place { spot, memory: self.states.get(id)?.memory.as_deref().cloned() })
    }

    /// The state at a place.
    fn state_at(&mut self, place: Place) -> Result<Arc<Anchor>> {
        let spot = place.spot;
        if place.memory.is_some() {
            let kernel = self.machine.kernel_of(spot);
            return self.intern(kernel, place.memory);
        }
        if let Some(id) = self.machine.table.label(spot)
            && let Ok(anchor) = self.states.anchor(id)
        {
            return Ok(anchor);
        }
        let kernel = self.machine.kernel_of(spot);
        let (epoch, anchor) = (self.machine.table.epoch, self.intern(kernel, None)?);
        if self.machine.table.epoch == epoch {
            self.machine.table.set_label(spot, anchor.id);
        }
        Ok(anchor)
    }

    pub(super) fn step(&mut self, id: StateId, token: u32) -> Result<Option<Arc<Anchor>>> {
        self.budget.refill();
        if self.vocab.is_eos(token) {
            return Ok(if self.accepting(id)? { Some(self.states.anchor(ENDED)?) } else { None });
        }
        let vocab = self.vocab.clone();
        let text = vocab.token(token);
        if self.machine.remembers() {
            let mut place = self.place(id)?;
            return if self.follow_text(&mut place, text)? { self.state_at(place).map(Some) } else { Ok(None) };
        }
        let spot = self.spot(id)?;
        let spot = if text.is_empty() { DEAD } else { self.advance(spot, text)? };
        if spot == DEAD { Ok(None) } else { self.state_at(Place { spot, memory: None }).map(Some) }
    }

    /// The rows before each token of a draft and after the last; those behind a token that is not allowed are the one
    /// before it again. How many of the tokens are allowed.
    pub(super) fn draft_rows(&mut self, id: StateId, tokens: &[u32]) -> Result<(Vec<Arc<Row>>, usize)> {
        let mut rows = Vec::with_capacity(tokens.len() + 1);
        rows.push(self.row(id)?);
        let mut path = vec![self.states.anchor(id)?];
        for &token in tokens {
            let Some(next) = self.step(path.last().expect("never empty").id, token)? else { break };
            rows.push(self.row(next.id)?);
            path.push(next);
        }
        let accepted = path.len() - 1;
        let last = rows[accepted].clone();
        rows.resize(tokens.len() + 1, last);
        Ok((rows, accepted))
    }

    pub(super) fn validate(&mut self, id: StateId, tokens: &[u32]) -> Result<usize> {
        self.budget.refill();
        let vocab = self.vocab.clone();
        let mut place = self.place(id)?;
        let mut ended = id == ENDED;
        for (i, &t) in tokens.iter().enumerate() {
            let text = vocab.token(t);
            if ended {
                return Ok(i);
            } else if vocab.is_eos(t) {
                ended = self.machine.accepts(place.spot, &mut self.budget)?;
                if !ended {
                    return Ok(i);
                }
                continue;
            }
            if self.machine.remembers() {
                if !self.follow_text(&mut place, text)? {
                    return Ok(i);
                }
            } else {
                place.spot = if text.is_empty() { DEAD } else { self.advance(place.spot, text)? };
                if place.spot == DEAD {
                    return Ok(i);
                }
            }
            place.spot = self.in_bounds(place.spot)?;
        }
        Ok(tokens.len())
    }

    fn accepting(&mut self, id: StateId) -> Result<bool> {
        if let Some(known) = self.states.get(id)?.accepting {
            return Ok(known);
        }
        let kernel = self.states.get(id)?.kernel.clone();
        let answer = self.machine.close(&kernel, &mut self.budget)?.accepting;
        self.states.get_mut(id)?.accepting = Some(answer);
        Ok(answer)
    }

    pub(super) fn is_accepting(&mut self, id: StateId) -> Result<bool> {
        self.budget.refill();
        Ok(id == ENDED || self.accepting(id)?)
    }

    pub(super) fn row(&mut self, id: StateId) -> Result<Arc<Row>> {
        if let Some(row) = &self.states.get(id)?.row {
            return Ok(row.clone());
        }
        self.budget.refill();
        let kernel = self.states.get(id)?.kernel.clone();
        let mut row = self.find_row(&kernel)?;
        if self.machine.remembers() {
            let place = self.place(id)?;
            if let Some(less) = self.without_repetitions(&place, &row)? {
                row = self.keep(less);
            }
        }
        self.states.get_mut(id)?.row = Some(row.clone());
        Ok(row)
    }

    /// The row of the shallowest footprint that settles it.
    fn find_row(&mut self, kernel: &Heads) -> Result<Arc<Row>> {
        if self.row_bytes > self.limits.max_memory / 2 {
            self.collect();
        }
        for depth in 1.. {
            let (exact, _) = self.machine.footprint(kernel, depth, Counts::Exact, &mut self.budget)?;
            if let Some(known) = self.masks.get(&exact) {
                match known {
                    Known::Row(row) => return Ok(row.clone()),
                    Known::Deeper => continue,
                }
            }
            match self.footprint_row(&exact, depth)? {
                Some(row) => {
                    self.masks.insert(exact, Known::Row(row.clone()));
                    return Ok(row);
                }
                None => self.masks.insert(exact, Known::Deeper),
            };
        }
        unreachable!("some depth shows the whole of every stack")
    }

    /// The row of a footprint; where it counts, that of the looser one without the counts, less the long tokens
    /// that the counts forbid. `None`: it depends on more of the stacks.
    fn footprint_row(&mut self, exact: &Heads, depth: u32) -> Result<Option<Arc<Row>>> {
        let (loose, dropped) = self.machine.footprint(exact, depth, Counts::Loose, &mut self.budget)?;
        if dropped == UNBOUNDED {
            let row = self.maker().row(exact)?;
            return Ok(row.map(|row| self.keep(row)));
        }
        let wide = match self.masks.get(&loose) {
            Some(Known::Row(row)) => row.clone(),
            Some(Known::Deeper) => return Ok(None),
            None => {
                let Some(row) = self.maker().row(&loose)? else {
                    self.masks.insert(loose, Known::Deeper);
                    return Ok(None);
                };
                let row = self.keep(row);
                self.masks.insert(loose, Known::Row(row.clone()));
                row
            }
        };
        let vocab = self.vocab.clone();
        let candidates: Vec<u32> = match wide.listed() {
            Some(tokens) => tokens.iter().copied().filter(|&t| vocab.token(t).len() as u64 > dropped.into()).collect(),
            None => {
                let mut bits = vec![0u32; vocab.words()];
                wide.write(&mut bits);
                vocab.longer_than(dropped).iter().copied().filter(|&t| get_bit(&bits, t)).collect()
            }
        };
        let refused = self.maker().refused(exact, &candidates)?;
        let Some(refused) = refused else { return Ok(None) };
        if refused.is_empty() {
            return Ok(Some(wide));
        }
        let row = wide.without(&refused, vocab.words());
        Ok(Some(self.keep(row)))
    }

    fn maker(&mut self) -> MaskMaker<'_> {
        MaskMaker {
            machine: &mut self.machine,
            vocab: &self.vocab,
            classes: &self.classes,
            bases: &mut self.bases,
            budget: &mut self.budget,
        }
    }

    fn keep(&mut self, row: Row) -> Arc<Row> {
        self.row_bytes += row.memory();
        if let Some(base) = row.base()
            && Arc::strong_count(base) == 1
        {
            self.row_bytes += base.len() * 4;
        }
        Arc::new(row)
    }

    /// Where a text leads from a state.
    fn spot_behind(&mut self, id: StateId, text: &[u8]) -> Result<Spot> {
        let mut spot = self.spot(id)?;
        for &byte in text {
            spot = self.in_bounds(spot)?;
            spot = self.machine.go(spot, byte, &mut self.budget)?;
        }
        self.in_bounds(spot)
    }

    /// What every completion that begins with `after` goes on with, at most `most` bytes of it.
    pub(super) fn forced_bytes(&mut self, id: StateId, after: &[u8], most: usize) -> Result<Vec<u8>> {
        self.budget.refill();
        let mut spot = self.spot_behind(id, after)?;
        let mut text = Vec::new();
        while text.len() < most {
            spot = self.in_bounds(spot)?;
            let first = self.machine.first(spot, &mut self.budget)?;
            if first.len() != 1 || self.machine.accepts(spot, &mut self.budget)? {
                break;
            }
            let byte = first.iter().next().expect("one byte");
            text.push(byte);
            spot = self.machine.go(spot, byte, &mut self.budget)?;
        }
        Ok(text)
    }

    /// The bytes that may stand behind a text, and whether it may end there.
    pub(super) fn next_bytes(&mut self, id: StateId, after: &[u8]) -> Result<(Vec<u8>, bool)> {
        self.budget.refill();
        if self.machine.remembers() {
            return self.next_new_bytes(id, after);
        }
        let spot = self.spot_behind(id, after)?;
        let first = self.machine.first(spot, &mut self.budget)?;
        Ok((first.iter().collect(), self.machine.accepts(spot, &mut self.budget)?))
    }

    /// Copies what the anchored states need into a fresh machine and drops the rest.
    pub(super) fn collect(&mut self) -> usize {
        let dropped = self.states.drop_unanchored();
        self.machine.collect(self.states.kernels());
        self.states.reindex();
        self.masks = FxHashMap::default();
        self.bases = FxHashMap::default();
        self.row_bytes = 0;
        dropped
    }

    pub(super) fn stats(&self) -> Vec<(&'static str, usize)> {
        vec![
            ("states", self.states.len()),
            ("masks", self.masks.len()),
            ("row_bytes", self.row_bytes),
            ("expressions", self.machine.arena.len()),
            ("memory", self.memory()),
        ]
    }
}
