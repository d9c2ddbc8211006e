//! Limits on work and memory, and the budget of a call: what is left of them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::error::{Error, Result};

/// Limits that a caller sets for a constraint. The error of a call that exceeds one names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// States alive at one time.
    pub max_states: usize,
    /// Bytes of interned structure and cached mask rows, after unreachable states were collected.
    pub max_memory: usize,
    /// Units of work (derivatives, trie nodes, heads) in one call.
    pub max_steps: u64,
    /// The same for each call after compiling, where it is not `max_steps`.
    pub max_call_steps: Option<u64>,
    /// Nesting of grammar expressions.
    pub max_depth: usize,
    /// Wall-clock time of one call.
    pub timeout: Option<Duration>,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            max_states: 1_000_000,
            max_memory: 256 << 20,
            max_steps: 4_000_000,
            max_call_steps: None,
            max_depth: 50_000,
            timeout: None,
        }
    }
}

/// A flag that cancels work from another thread.
pub type Cancel = Arc<AtomicBool>;

/// What one call may still spend.
#[derive(Debug)]
pub struct Budget {
    left: u64,
    next_check: u64,
    limit: u64,
    /// The name of the limit, as callers have it.
    which: &'static str,
    /// Whether the call is brief: it ends with `Error::Interrupted` after [`BRIEF`] units.
    brief: bool,
    /// `None`: there is no timeout, or it ends later than the clock can tell.
    deadline: Option<Instant>,
    timeout: Option<Duration>,
    cancel: Option<Cancel>,
}

/// Units that a brief call may spend: well below a millisecond of work, for which other threads can wait.
const BRIEF: u64 = 4096;

/// Units between two looks at the clock and the cancel flag.
const CHECK_EVERY: u64 = 4096;

impl Budget {
    pub fn new(limits: &Limits, cancel: Option<Cancel>) -> Self {
        Budget {
            left: limits.max_steps,
            next_check: limits.max_steps.saturating_sub(CHECK_EVERY),
            limit: limits.max_steps,
            which: "max_steps",
            brief: false,
            deadline: limits.timeout.and_then(|t| Instant::now().checked_add(t)),
            timeout: limits.timeout,
            cancel,
        }
    }

    /// Starts the budget of a new call.
    pub fn refill(&mut self) {
        self.left = if self.brief { self.limit.min(BRIEF) } else { self.limit };
        self.next_check = self.left.saturating_sub(CHECK_EVERY);
        if let Some(t) = self.timeout {
            self.deadline = Instant::now().checked_add(t);
        }
    }

    /// Adds units to those of the call that has begun, unless it is brief.
    pub fn add(&mut self, units: u64) {
        if !self.brief {
            self.left = self.left.saturating_add(units);
            self.next_check = self.next_check.saturating_add(units);
        }
    }

    /// Has the calls that follow spend so many units at most.
    pub fn bound_calls(&mut self, steps: u64) {
        (self.limit, self.which) = (steps, "max_call_steps");
    }

    /// Whether the calls that follow are brief.
    pub fn set_brief(&mut self, brief: bool) {
        self.brief = brief;
    }

    /// Fails with `Error::Interrupted` if the call is brief: what follows takes long.
    pub fn take_time(&self) -> Result<()> {
        if self.brief { Err(Error::Interrupted) } else { Ok(()) }
    }

    /// Units that may still be spent.
    pub fn left(&self) -> u64 {
        self.left
    }

    /// The error of a call that has nothing left.
    pub fn exhausted(&self) -> Error {
        if self.brief && self.limit > BRIEF {
            return Error::Interrupted;
        }
        Error::Limit { which: self.which, limit: self.limit }
    }

    /// Takes units of work. Fails with `Error::Limit` if there are not enough, or the time is over, and with
    /// `Error::Cancelled`.
    #[inline]
    pub fn spend(&mut self, units: u64) -> Result<()> {
        if self.left < units {
            return Err(self.exhausted());
        }
        self.left -= units;
        if self.left <= self.next_check { self.check() } else { Ok(()) }
    }

    #[cold]
    fn check(&mut self) -> Result<()> {
        self.next_check = self.left.saturating_sub(CHECK_EVERY);
        if self.cancel.as_ref().is_some_and(|c| c.load(Ordering::Relaxed)) {
            return Err(Error::Cancelled);
        }
        if let (Some(deadline), Some(timeout)) = (self.deadline, self.timeout)
            && Instant::now() > deadline
        {
            return Err(Error::Limit { which: "timeout (ms)", limit: timeout.as_millis() as u64 });
        }
        Ok(())
    }
}
