//! Frozen automata: a constraint with finitely many states, as flat tables over tokens.
//!
//! In come the machine of a grammar and a vocabulary; out comes a [`Frozen`]: states, classes of tokens that behave
//! alike, a table of transitions, and mask rows, so that a kernel on a device can step and mask without the host. What
//! is not finite (rules that nest without bound, values that must differ) or larger than [`Bounds`] allow is refused.
//!
//! The way there, one file for each step:
//!
//! 1. `explore`: all byte states that texts lead to, and classes of bytes;
//! 2. `minimal`: states that the same texts complete become one (by the algorithm of Valmari and Lehtinen);
//! 3. `behaviour`: what each token does, as a partial function from states to states. Tokens are followed along the
//!    vocabulary's trie for all states at once: a node has a function, that of a child follows from it by one byte, and
//!    equal functions are one. So what a token does is looked up, mostly, and a class of tokens is a function;
//! 4. `table`: the functions as columns of a table, with states and classes numbered by rules that depend on the
//!    language and the vocabulary alone, so that equal grammars give equal bytes on every machine;
//! 5. `rows`: the distinct mask rows.

mod behaviour;
mod explore;
mod minimal;
mod rows;
mod table;

use crate::budget::Budget;
use crate::error::{Error, Result};
use crate::stack::{ByteState, Machine};
use crate::vocabulary::{Characters, Vocabulary};

/// What a frozen automaton may take.
#[derive(Debug, Clone)]
pub struct Bounds {
    pub max_states: usize,
    /// At most [`MOST_CLASSES`].
    pub max_classes: usize,
    /// Bytes of the table of transitions.
    pub max_table: usize,
    /// Bytes of the mask rows.
    pub max_pool: usize,
}

/// Classes that numbers of 16 bits with a sign can tell apart.
pub const MOST_CLASSES: usize = 1 << 15;

impl Default for Bounds {
    fn default() -> Bounds {
        Bounds { max_states: 1 << 16, max_classes: MOST_CLASSES, max_table: 64 << 20, max_pool: 256 << 20 }
    }
}

/// No state: the token is refused.
pub const REFUSED: i32 = -1;

/// An automaton over tokens. State 0 is the start; states and classes are numbered by where they are first met.
#[derive(Debug, PartialEq, Eq)]
pub struct Frozen {
    /// The class of each token: those of a class do the same in every state.
    pub class_of: Vec<i16>,
    pub classes: usize,
    pub states: usize,
    /// The state after a state and a class of tokens, or [`REFUSED`]; row by row.
    pub next: Vec<i32>,
    /// The mask row of each state.
    pub mask_row: Vec<i32>,
    /// Distinct mask rows.
    pub pool: Vec<u32>,
    /// Whether the text may end in each state.
    pub accepting: Vec<u8>,
    /// The state after a token that ends the text; [`REFUSED`] if there is no such token.
    pub terminated: i32,
}

/// What an automaton is frozen from.
pub struct Sources<'a> {
    pub machine: &'a mut Machine,
    pub vocab: &'a Vocabulary,
    /// Where some tokens end inside a character that others must complete: which.
    pub cuts: Option<&'a Characters>,
    pub budget: &'a mut Budget,
    /// Bytes that the machine and all that is built here may hold together.
    pub max_memory: usize,
}

impl Sources<'_> {
    /// Fails if so many bytes more than what the machine holds are too many.
    fn hold(&self, bytes: usize) -> Result<()> {
        let held = self.machine.memory() / 5 * 8 + bytes; // with the room to grow that tables have
        if held <= self.max_memory {
            return Ok(());
        }
        Err(Error::Limit { which: "max_memory (bytes, while freezing)", limit: self.max_memory as u64 })
    }
}

/// The error of an automaton that has at least `reached` of something.
fn too_large(what: &'static str, reached: usize, bound: usize, parameter: &'static str) -> Error {
    Error::TooLarge { what, reached: reached as u64, bound: bound as u64, parameter }
}

/// The automaton of all that can follow a byte state.
pub fn freeze(mut sources: Sources, start: ByteState, bounds: &Bounds) -> Result<Frozen> {
    let bytes = explore::explore(&mut sources, start, bounds)?.minimal(&mut sources)?;
    if bytes.states > bounds.max_states {
        return Err(too_large("states", bytes.states, bounds.max_states, "max_states"));
    }
    let behaviours = behaviour::behaviours(&mut sources, &bytes, bounds)?;
    let table = table::Table::new(&mut sources, &bytes, &behaviours, bounds)?;
    if table.states > bounds.max_states {
        return Err(too_large("states", table.states, bounds.max_states, "max_states"));
    }
    let (mask_row, pool) = rows::rows(&mut sources, &table, bounds)?;
    Ok(table.frozen(mask_row, pool))
}
