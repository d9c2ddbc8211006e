//! The automaton over tokens: a grammar on a vocabulary, as callers use it.
//!
//! In come state ids and tokens; out come the ids of the states after them, mask rows, forced text and endings. A
//! [`Constraint`] is an `Engine` behind a lock. The engine interns states (`states.rs`), follows texts on the pushdown
//! automaton (`crate::stack`), keeps histories beside it where parts of a text must be distinct (`distinct.rs`), and
//! has `crate::mask` make the rows.

mod batch;
mod completion;
mod configuration;
mod distinct;
mod engine;
mod states;

use std::sync::Arc;

use parking_lot::Mutex;

use crate::budget::{Budget, Cancel, Limits};
use crate::error::Result;
use crate::ir::Ir;
use crate::mask::{Row, VocabularyCache};
use crate::vocabulary::Vocabulary;

pub use batch::rows;
pub use completion::spell;
use engine::Engine;
pub use states::{Anchor, ENDED, StateId};

/// A vocabulary, and the cache that its constraints share.
#[derive(Clone)]
pub struct Index {
    pub vocab: Arc<Vocabulary>,
    /// `None`: every constraint has a cache of its own.
    pub shared: Option<Arc<VocabularyCache>>,
}

/// Bytes of the cache that all constraints on a vocabulary share.
const SHARED_CACHE: usize = 64 << 20;
/// Bytes of the cache of a constraint that shares none.
const OWN_CACHE: usize = 16 << 20;

impl Index {
    pub fn new(vocab: Vocabulary) -> Index {
        Index { vocab: Arc::new(vocab), shared: Some(Arc::new(VocabularyCache::new(SHARED_CACHE))) }
    }

    /// The same index, sharing no cache between grammars.
    pub fn without_caches(&self) -> Index {
        Index { vocab: self.vocab.clone(), shared: None }
    }
}

/// A grammar on a vocabulary. Thread-safe; a state is an integer.
pub struct Constraint {
    pub vocab: Arc<Vocabulary>,
    engine: Mutex<Engine>,
    start: Arc<Anchor>,
}

impl Constraint {
    /// Fails with `Error::Unsatisfiable` if nothing that the vocabulary can spell belongs to the grammar, and with
    /// another error if the grammar has a construct that is refused or exceeds a limit.
    pub fn new(ir: Arc<Ir>, index: &Index, limits: Limits, cancel: Option<Cancel>) -> Result<Constraint> {
        let cache = index.shared.clone().unwrap_or_else(|| Arc::new(VocabularyCache::new(OWN_CACHE)));
        let budget = Budget::new(&limits, cancel);
        let mut engine = Engine::new(ir, index.vocab.clone(), cache, limits, budget)?;
        let start = engine.start()?;
        Ok(Constraint { vocab: index.vocab.clone(), engine: Mutex::new(engine), start })
    }

    /// The state before the first token.
    pub fn start(&self) -> Arc<Anchor> {
        self.start.clone()
    }

    /// Whether a call would get the lock at once.
    pub fn is_free(&self) -> bool {
        !self.engine.is_locked()
    }

    /// Roots the state with this id.
    pub fn anchor(&self, state: StateId) -> Result<Arc<Anchor>> {
        self.engine.lock().states.anchor(state)
    }

    /// The state after a token; `None` if the token is not allowed.
    pub fn step(&self, state: StateId, token: u32) -> Result<Option<Arc<Anchor>>> {
        self.engine.lock().step(state, token)
    }

    /// How many of the tokens, from the first on, would be accepted one after the other. Makes no states.
    pub fn validate(&self, state: StateId, tokens: &[u32]) -> Result<usize> {
        self.engine.lock().validate(state, tokens)
    }

    /// The mask rows before each token of a draft and after the last, and how many of the tokens are allowed.
    /// Rows behind a token that is not allowed repeat the one before it.
    pub fn draft_rows(&self, state: StateId, tokens: &[u32]) -> Result<(Vec<Arc<Row>>, usize)> {
        self.engine.lock().draft_rows(state, tokens)
    }

    /// The mask row, if it is known and no other thread holds the lock.
    pub fn cached_row(&self, state: StateId) -> Option<Arc<Row>> {
        self.engine.try_lock()?.states.cached_row(state)
    }

    /// The mask row of a state.
    pub fn row(&self, state: StateId) -> Result<Arc<Row>> {
        self.engine.lock().row(state)
    }

    /// Whether the text may end in a state.
    pub fn is_accepting(&self, state: StateId) -> Result<bool> {
        self.engine.lock().is_accepting(state)
    }

    /// What every completion that begins with `after` goes on with, at most `most` bytes of it.
    pub fn forced_bytes(&self, state: StateId, after: &[u8], most: usize) -> Result<Vec<u8>> {
        self.engine.lock().forced_bytes(state, after, most)
    }

    /// The bytes that may follow a text, and whether the text may end there.
    pub fn next_bytes(&self, state: StateId, after: &[u8]) -> Result<(Vec<u8>, bool)> {
        self.engine.lock().next_bytes(state, after)
    }

    /// A short accepted ending, as tokens (without EOS).
    pub fn shortest_completion(&self, state: StateId) -> Result<Vec<u32>> {
        self.engine.lock().shortest_completion(state)
    }

    /// Drops the states that nothing roots. Returns how many.
    pub fn collect(&self) -> usize {
        self.engine.lock().collect()
    }

    /// Bytes held, roughly.
    pub fn memory(&self) -> usize {
        self.engine.lock().memory()
    }

    /// Counters by name, for tests and reports.
    pub fn stats(&self) -> Vec<(&'static str, usize)> {
        self.engine.lock().stats()
    }
}
