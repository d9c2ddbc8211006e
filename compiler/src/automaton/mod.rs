//! The automaton over tokens: a grammar on a vocabulary, as callers use it.
//!
//! In come state ids and tokens; out come the ids of the states after them, mask rows, forced text and endings. A
//! [`Constraint`] is an [`Engine`] behind a lock. The engine interns states (`states.rs`), follows texts on the pushdown
//! automaton (`crate::stack`), keeps histories beside it where parts of a text must be distinct (`distinct.rs`), has
//! `crate::mask` make the rows, and looks after tokens that end inside a character that cannot be completed (`cuts.rs`).
//! Where all tokens lead from a state is found at once (`successors.rs`).
//! Equal grammars on one vocabulary share a constraint (`pool.rs`).

mod batch;
mod completion;
mod configuration;
mod cuts;
mod distinct;
mod engine;
mod pool;
mod progress;
mod states;
mod successors;

use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};

use crate::budget::{Budget, Cancel, Limits};
use crate::error::{Error, Result};
use crate::ir::Ir;
use crate::mask::{Row, VocabularyCache};
use crate::vocabulary::Vocabulary;
use pool::Pool;

pub use batch::{Job, Rows, rows};
pub use completion::spell;
pub use engine::Engine;
pub use pool::{Bounds, Lease};
pub use states::{Anchor, ENDED, StateId};
pub use successors::Successors;

/// A vocabulary, the cache that its constraints share, and the constraints themselves.
#[derive(Clone)]
pub struct Index {
    pub vocab: Arc<Vocabulary>,
    /// `None`: every constraint has a cache of its own.
    cache: Option<Arc<VocabularyCache>>,
    /// `None`: every constraint is its user's alone.
    pool: Option<Arc<Pool>>,
}

/// Bytes of the cache that all constraints on a vocabulary share.
const SHARED_CACHE: usize = 64 << 20;
/// Bytes of the cache of a constraint that shares none.
const OWN_CACHE: usize = 16 << 20;

impl Index {
    pub fn new(vocab: Vocabulary) -> Index {
        let cache = Some(Arc::new(VocabularyCache::new(SHARED_CACHE)));
        Index { vocab: Arc::new(vocab), cache, pool: Some(Arc::default()) }
    }

    /// The same index, sharing nothing between constraints.
    pub fn without_caches(&self) -> Index {
        Index { vocab: self.vocab.clone(), cache: None, pool: None }
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
        let cache = index.cache.clone().unwrap_or_else(|| Arc::new(VocabularyCache::new(OWN_CACHE)));
        let budget = Budget::new(&limits, cancel);
        let mut engine = Engine::new(ir, index.vocab.clone(), cache, limits, budget)?;
        let start = engine.start()?;
        engine.bound_calls();
        Ok(Constraint { vocab: index.vocab.clone(), engine: Mutex::new(engine), start })
    }

    /// The state before the first token.
    pub fn start(&self) -> Arc<Anchor> {
        self.start.clone()
    }

    /// The engine, for one call; waits until no other thread has it.
    pub fn lock(&self) -> MutexGuard<'_, Engine> {
        self.engine.lock()
    }

    /// Runs one call if no other thread has the engine and the call takes few steps. `None` if it is to be run on
    /// [`Constraint::lock`], with all the time that it takes; what has been found out so far is kept.
    pub fn briefly<R>(&self, call: impl FnOnce(&mut Engine) -> Result<R>) -> Option<Result<R>> {
        let mut engine = self.engine.try_lock()?;
        engine.budget.set_brief(true);
        let answer = engine.guarded(call);
        engine.budget.set_brief(false);
        if matches!(answer, Err(Error::Interrupted)) { None } else { Some(answer) }
    }

    /// Roots the state with this id.
    pub fn anchor(&self, state: StateId) -> Result<Arc<Anchor>> {
        self.engine.lock().states.anchor(state)
    }

    /// Whether one user more would have room, as far as can be told without waiting for another thread.
    fn has_room(&self) -> bool {
        self.engine.try_lock().is_none_or(|engine| engine.has_room())
    }

    /// Bytes held, if no other thread has the engine.
    pub fn memory(&self) -> Option<usize> {
        self.engine.try_lock().map(|engine| engine.memory())
    }

    /// The mask row, if it is known and no other thread has the engine.
    pub fn cached_row(&self, state: StateId) -> Option<Arc<Row>> {
        self.engine.try_lock()?.states.cached_row(state)
    }
}
