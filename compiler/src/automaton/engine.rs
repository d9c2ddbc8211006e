//! What a constraint's lock protects: the pushdown automaton, the interned states, and their mask rows.

use std::sync::{Arc, OnceLock};

use super::configuration::Configuration;
use super::distinct::{Completable, Follower};
use super::progress::Progress;
use super::states::{Anchor, ENDED, StateId, States};
use crate::budget::{Budget, Limits};
use crate::distinct::History;
use crate::error::{Error, Result, catching};
use crate::frozen::{self, Bounds, Frozen};
use crate::ir::Ir;
use crate::mask::{Masks, Row, Sources, VocabularyCache};
use crate::regular::{Alphabet, Arena};
use crate::stack::{ByteState, DEAD, Heads, Machine};
use crate::vocabulary::{Characters, Vocabulary};

/// What is of no use any more.
pub(super) struct Gone {
    pub(super) bytes: usize,
    /// Drops it, a little with each item: to drop it all at once may take long.
    pub(super) rest: Box<dyn Iterator<Item = ()> + Send>,
}

/// How many parts of what is of no use a call drops, in some milliseconds at most.
const DROPS: usize = 4096;

/// Everything of a constraint but its vocabulary; a call has it for itself.
pub struct Engine {
    pub(super) machine: Machine,
    pub(super) vocab: Arc<Vocabulary>,
    /// Where texts are made of characters, and some tokens end inside one: which.
    pub(super) cuts: Option<Arc<Characters>>,
    pub(super) states: States,
    pub(super) budget: Budget,
    limits: Limits,
    masks: Masks,
    /// Bytes held after the last collection.
    kept: usize,
    /// What calls have still to drop.
    gone: Option<Gone>,
    /// What the current call has found out.
    completable: Completable,
    /// How far it has come.
    pub(super) progress: Progress,
    /// Whether a call has panicked, and may have left the engine in disorder.
    is_broken: bool,
}

/// Keys of structural hashes, drawn once per process: nobody who does not know them can make two expressions collide.
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
        cache: Arc<VocabularyCache>,
        limits: Limits,
        mut budget: Budget,
    ) -> Result<Engine> {
        if ir.depth > limits.max_depth {
            return Err(Error::Limit { which: "max_depth (nesting of expressions)", limit: limits.max_depth as u64 });
        }
        let mut machine = |alphabet, keys| {
            let mut arena = Arena::new(alphabet, vocab.longest as u32, keys);
            arena.max_memory = limits.max_memory;
            arena.most_memory = limits.max_memory / 8 * 5; // with the room to grow that `Engine::memory` counts
            Machine::new(ir.clone(), arena, &mut budget)
        };
        let (keys, mut cuts) = (hash_keys(), None);
        let machine = match machine(Alphabet::of_bytes(&vocab), keys) {
            Err(Error::InnerBytes) => {
                cuts = Some(vocab.characters().clone()).filter(|characters| !characters.cut.is_empty());
                // what is known of an expression over bytes does not hold over characters
                machine(Alphabet::of_characters(&vocab), (keys.0.rotate_left(1), keys.1))
            }
            made => made,
        }?;
        Ok(Engine {
            machine,
            cuts,
            vocab,
            states: States::new(),
            budget,
            limits,
            masks: Masks::new(cache),
            kept: 0,
            gone: None,
            completable: Completable::default(),
            progress: Progress::default(),
            is_broken: false,
        })
    }

    /// Makes a call. After one that panics, which is its error, all others fail.
    pub fn guarded<R>(&mut self, call: impl FnOnce(&mut Engine) -> Result<R>) -> Result<R> {
        if self.is_broken {
            return Err(Error::Defect("an earlier call has failed".to_owned()));
        }
        let answer = catching(|| call(self));
        self.is_broken = matches!(answer, Err(Error::Defect(_)));
        answer
    }

    pub(super) fn start(&mut self) -> Result<Arc<Anchor>> {
        let kernel = self.machine.start();
        self.intern(kernel, None)
    }

    /// Has the calls after compiling keep to their own limit, if there is one.
    pub(super) fn bound_calls(&mut self) {
        if let Some(steps) = self.limits.max_call_steps {
            self.budget.bound_calls(steps);
        }
    }

    /// Where much memory is held, forgets what only new masks need, and if that is not most of it, what no state needs.
    pub(super) fn make_room(&mut self) -> Result<()> {
        self.drop_some();
        let most = (self.limits.max_memory / 2).max(2 * self.kept);
        if self.live() > most {
            self.budget.take_time()?;
            let ways = self.forget_ways();
            if self.live() > most / 2 {
                self.collect();
            }
            self.gone = Some(ways);
        }
        Ok(())
    }

    fn intern(&mut self, kernel: Heads, history: Option<History>) -> Result<Arc<Anchor>> {
        let anchor = self.states.intern(kernel, history.map(Arc::new))?;
        if self.states.len() > self.limits.max_states || self.memory() > self.limits.max_memory {
            self.budget.take_time()?;
            self.collect();
            if self.states.len() > self.limits.max_states {
                return Err(Error::Limit { which: "max_states", limit: self.limits.max_states as u64 });
            }
            // what is left is held by states in use: with little room, the next states would each collect again
            if self.memory() > self.limits.max_memory / 8 * 7 {
                return Err(Error::Limit { which: "max_memory (bytes)", limit: self.limits.max_memory as u64 });
            }
        }
        Ok(anchor)
    }

    /// Bytes held.
    pub fn memory(&self) -> usize {
        self.live() + self.gone.as_ref().map_or(0, |gone| gone.bytes)
    }

    /// Bytes held by what is of use, with the room that vectors and tables have to grow.
    fn live(&self) -> usize {
        let used = self.machine.memory() + self.states.memory() + self.masks.memory();
        used / 5 * 8 + self.masks.exact_bytes()
    }

    /// Whether states in use leave at least half of what the limits allow.
    pub(super) fn has_room(&self) -> bool {
        !self.is_broken
            && self.states.len() <= self.limits.max_states / 2
            && self.kept <= self.limits.max_memory / 2
            && self.states.has_ids()
    }

    /// The byte state after a token's text; `DEAD` if the token is not allowed.
    pub(super) fn advance(&mut self, mut state: ByteState, text: &[u8]) -> Result<ByteState> {
        if text.is_empty() {
            return Ok(DEAD);
        }
        for &b in text {
            state = self.machine.go(state, b, &mut self.budget)?;
            if state == DEAD {
                break;
            }
        }
        Ok(state)
    }

    /// The byte state of a state, at the beginning of a call.
    pub(super) fn byte_state(&mut self, id: StateId) -> Result<ByteState> {
        self.machine.table.refresh();
        self.completable.clear();
        let state = self.states.get_mut(id)?;
        let epoch = self.machine.table.epoch;
        if let Some((of, known)) = state.byte_state
            && of == epoch
        {
            return Ok(known);
        }
        let found = self.machine.byte_state(&state.kernel, &mut self.budget)?;
        state.byte_state = Some((epoch, found));
        Ok(found)
    }

    /// The configuration of a state, at the beginning of a call.
    pub(super) fn configuration(&mut self, id: StateId) -> Result<Configuration> {
        let state = self.byte_state(id)?;
        Ok(Configuration { state, history: self.states.get(id)?.history.as_deref().cloned() })
    }

    /// The state of a configuration.
    pub(super) fn state_of(&mut self, Configuration { state, history }: Configuration) -> Result<Arc<Anchor>> {
        if history.is_some() {
            let kernel = self.machine.kernel_of(state, &mut self.budget)?;
            return self.intern(kernel, history);
        }
        if let Some(id) = self.machine.table.label(state)
            && let Ok(anchor) = self.states.anchor(id)
        {
            return Ok(anchor);
        }
        let kernel = self.machine.kernel_of(state, &mut self.budget)?;
        let (epoch, anchor) = (self.machine.table.epoch, self.intern(kernel, None)?);
        if self.machine.table.epoch == epoch {
            self.machine.table.set_label(state, anchor.id);
        }
        Ok(anchor)
    }

    /// What follows texts where the grammar has marked rules.
    pub(super) fn follower(&mut self) -> Follower<'_> {
        Follower {
            machine: &mut self.machine,
            vocab: &self.vocab,
            completable: &mut self.completable,
            budget: &mut self.budget,
        }
    }

    /// The state after a token; `None` if the token is not allowed.
    pub fn step(&mut self, id: StateId, token: u32) -> Result<Option<Arc<Anchor>>> {
        self.call(id, |engine| engine.follow(id, token))
    }

    /// The states after each of some tokens, as far as they are allowed one after the other.
    pub fn steps(&mut self, id: StateId, tokens: &[u32]) -> Result<Vec<Arc<Anchor>>> {
        self.call(id, |engine| {
            let mut path: Vec<Arc<Anchor>> = Vec::with_capacity(tokens.len());
            for &token in tokens {
                engine.make_room()?;
                let Some(next) = engine.follow(path.last().map_or(id, |last| last.id), token)? else { break };
                engine.passed(token, Some(next.id))?;
                path.push(next);
            }
            Ok(path)
        })
    }

    /// Behind how many of the tokens, from the first on, the text may end.
    pub fn accepting_prefixes(&mut self, id: StateId, tokens: &[u32]) -> Result<Vec<usize>> {
        self.call(id, |engine| {
            let mut found = Vec::new();
            let mut at = engine.states.anchor(id)?;
            for accepted in 0..=tokens.len() {
                if at.id == ENDED || engine.accepting(at.id)? {
                    found.push(accepted);
                }
                let Some(&token) = tokens.get(accepted) else { break };
                engine.make_room()?;
                let Some(next) = engine.follow(at.id, token)? else { break };
                engine.passed(token, Some(next.id))?;
                at = next;
            }
            Ok(found)
        })
    }

    pub(super) fn follow(&mut self, id: StateId, token: u32) -> Result<Option<Arc<Anchor>>> {
        if self.vocab.is_eos(token) {
            return Ok(if self.accepting(id)? { Some(self.states.anchor(ENDED)?) } else { None });
        }
        let vocab = self.vocab.clone();
        let text = vocab.token(token);
        if self.machine.needs_history() {
            let mut at = self.configuration(id)?;
            let allowed = self.follower().follow_text(&mut at, text)?;
            return if allowed && self.may_stop(&at, token)? { self.state_of(at).map(Some) } else { Ok(None) };
        }
        let start = self.byte_state(id)?;
        let at = Configuration { state: self.advance(start, text)?, history: None };
        if at.state == DEAD || !self.may_stop(&at, token)? { Ok(None) } else { self.state_of(at).map(Some) }
    }

    /// The mask rows before each token of a draft and after the last, and how many of the tokens, from the first on, are
    /// allowed. Rows behind a token that is not allowed repeat the one before it.
    pub fn draft_rows(&mut self, id: StateId, tokens: &[u32]) -> Result<(Vec<Arc<Row>>, usize)> {
        self.call(id, |engine| {
            let mut rows = Vec::with_capacity(tokens.len() + 1);
            rows.push(engine.find_row(id)?);
            let mut path = vec![engine.states.anchor(id)?];
            for &token in tokens {
                let Some(next) = engine.follow(path.last().expect("never empty").id, token)? else { break };
                engine.passed(token, Some(next.id))?;
                rows.push(engine.find_row(next.id)?);
                path.push(next);
            }
            let accepted = path.len() - 1;
            let last = rows[accepted].clone();
            rows.resize(tokens.len() + 1, last);
            Ok((rows, accepted))
        })
    }

    /// How many of the tokens, from the first on, are allowed one after the other. Makes no states.
    pub fn validate(&mut self, id: StateId, tokens: &[u32]) -> Result<usize> {
        self.call(id, |engine| engine.count_allowed(id, tokens))
    }

    pub(super) fn count_allowed(&mut self, id: StateId, tokens: &[u32]) -> Result<usize> {
        let vocab = self.vocab.clone();
        let mut at = self.configuration(id)?;
        let mut ended = id == ENDED;
        for (i, &t) in tokens.iter().enumerate() {
            let text = vocab.token(t);
            if ended {
                return Ok(i);
            } else if vocab.is_eos(t) {
                ended = self.machine.accepts(at.state, &mut self.budget)?;
                if !ended {
                    return Ok(i);
                }
                continue;
            }
            if self.machine.needs_history() {
                if !self.follower().follow_text(&mut at, text)? {
                    return Ok(i);
                }
            } else {
                at.state = self.advance(at.state, text)?;
                if at.state == DEAD {
                    return Ok(i);
                }
            }
            if !self.may_stop(&at, t)? {
                return Ok(i);
            }
            at.state = self.machine.in_bounds(at.state, &mut self.budget)?;
            self.passed(t, None)?;
        }
        Ok(tokens.len())
    }

    pub(super) fn accepting(&mut self, id: StateId) -> Result<bool> {
        if let Some(known) = self.states.get(id)?.accepting {
            return Ok(known);
        }
        let kernel = self.states.get(id)?.kernel.clone();
        let answer = self.machine.close(&kernel, &mut self.budget)?.accepting;
        self.states.get_mut(id)?.accepting = Some(answer);
        Ok(answer)
    }

    /// Whether the text may end in a state.
    pub fn is_accepting(&mut self, id: StateId) -> Result<bool> {
        self.call(id, |engine| Ok(id == ENDED || engine.accepting(id)?))
    }

    /// The mask row of a state.
    pub fn row(&mut self, id: StateId) -> Result<Arc<Row>> {
        if let Some(row) = self.states.cached_row(id) {
            return Ok(row);
        }
        self.call(id, |engine| engine.find_row(id))
    }

    pub(super) fn find_row(&mut self, id: StateId) -> Result<Arc<Row>> {
        if let Some(row) = &self.states.get(id)?.row {
            return Ok(row.clone());
        }
        let kernel = self.states.get(id)?.kernel.clone();
        let sources = Sources { machine: &mut self.machine, vocab: &self.vocab, budget: &mut self.budget };
        let mut row = self.masks.row(sources, &kernel)?;
        if self.machine.needs_history() {
            let at = self.configuration(id)?;
            if let Some(less) = self.follower().without_repetitions(&at, &row)? {
                row = self.masks.keep(less);
            }
        }
        if self.cuts.is_some() {
            let at = self.configuration(id)?;
            if let Some(less) = self.without_cuts(&at, &row)? {
                row = self.masks.keep(less);
            }
        }
        self.states.get_mut(id)?.row = Some(row.clone());
        Ok(row)
    }

    /// The byte state behind a text of any length; `DEAD` if the text is not allowed.
    fn state_after(&mut self, id: StateId, text: &[u8]) -> Result<ByteState> {
        let mut state = self.byte_state(id)?;
        for (i, &byte) in text.iter().enumerate() {
            self.progress.bytes = i;
            state = self.machine.in_bounds(state, &mut self.budget)?;
            state = self.machine.go(state, byte, &mut self.budget)?;
        }
        self.machine.in_bounds(state, &mut self.budget)
    }

    /// What every completion that begins with `after` goes on with, at most `most` bytes of it.
    pub fn forced_bytes(&mut self, id: StateId, after: &[u8], most: usize) -> Result<Vec<u8>> {
        self.call(id, |engine| engine.find_forced(id, after, most))
    }

    pub(super) fn find_forced(&mut self, id: StateId, after: &[u8], most: usize) -> Result<Vec<u8>> {
        let mut state = self.state_after(id, after)?;
        let mut text = Vec::new();
        while text.len() < most {
            state = self.machine.in_bounds(state, &mut self.budget)?;
            let first = self.machine.first(state, &mut self.budget)?;
            if first.len() != 1 || self.machine.accepts(state, &mut self.budget)? {
                break;
            }
            let byte = first.iter().next().expect("one byte");
            text.push(byte);
            state = self.machine.go(state, byte, &mut self.budget)?;
        }
        Ok(text)
    }

    /// The bytes that may stand behind a text, and whether it may end there.
    pub fn next_bytes(&mut self, id: StateId, after: &[u8]) -> Result<(Vec<u8>, bool)> {
        self.call(id, |engine| {
            if engine.machine.needs_history() {
                let at = engine.configuration(id)?;
                return engine.follower().next_bytes(at, after);
            }
            let state = engine.state_after(id, after)?;
            let first = engine.machine.first(state, &mut engine.budget)?;
            Ok((first.iter().collect(), engine.machine.accepts(state, &mut engine.budget)?))
        })
    }

    /// The automaton of all that can follow a state, as flat tables.
    pub fn freeze(&mut self, id: StateId, bounds: &Bounds) -> Result<Frozen> {
        self.call(id, |engine| {
            let start = engine.byte_state(id)?;
            let sources = frozen::Sources {
                machine: &mut engine.machine,
                vocab: &engine.vocab,
                cuts: engine.cuts.as_deref(),
                budget: &mut engine.budget,
                max_memory: engine.limits.max_memory,
            };
            let made = frozen::freeze(sources, start, bounds);
            engine.machine.table.refresh(); // it has grown
            made
        })
    }

    /// Drops everything but what the anchored states need. Returns how many states were dropped.
    pub fn collect(&mut self) -> usize {
        let dropped = self.states.drop_unanchored();
        self.machine.collect(self.states.kernels());
        self.states.reindex();
        self.masks.clear();
        self.gone = None;
        self.kept = self.memory();
        dropped
    }

    /// Bytes of what only new masks need.
    pub(super) fn ways(&self) -> usize {
        let (tables, tries) = self.masks.ways();
        tables / 5 * 8 + tries
    }

    /// Forgets what only new masks need; states and masks stay. Returns it, with what calls had still to drop.
    pub(super) fn forget_ways(&mut self) -> Gone {
        let before = self.memory();
        let ways = self.masks.forget_ways();
        let rest: Box<dyn Iterator<Item = ()> + Send> = match self.gone.take() {
            None => Box::new(ways),
            Some(gone) => Box::new(gone.rest.chain(ways)),
        };
        Gone { bytes: before - self.memory(), rest }
    }

    /// Drops a part of what was forgotten, so that no call takes long for it.
    fn drop_some(&mut self) {
        if self.gone.as_mut().is_some_and(|gone| gone.rest.nth(DROPS - 1).is_none()) {
            self.gone = None;
        }
    }

    /// Counters by name, for tests and reports.
    pub fn stats(&self) -> Vec<(&'static str, usize)> {
        vec![
            ("states", self.states.len()),
            ("masks", self.masks.len()),
            ("row_bytes", self.masks.row_bytes()),
            ("expressions", self.machine.arena.len()),
            ("memory", self.memory()),
        ]
    }
}
