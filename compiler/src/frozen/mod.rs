//! Frozen automata: a constraint with finitely many states, as flat tables over tokens.
//!
//! From the machine of a grammar and a vocabulary, [`freeze`] makes a [`Frozen`]: states, classes of tokens that do the
//! same in every state, a table of transitions, and mask rows. With these, a kernel on a device can step and mask
//! without the host. A constraint is refused if it has infinitely many states (rules that nest without bound, values
//! that must differ), or if the automaton exceeds [`Bounds`].
//!
//! The steps, one file for each:
//!
//! 1. `explore`: finds all byte states that texts lead to, and classes of bytes;
//! 2. `minimal`: merges states that the same texts complete (by the algorithm of Valmari);
//! 3. `behaviour`: finds what each token does, as a partial function from states to states. The trie of the vocabulary
//!    is walked once for all states: each node has a function, the function of a child follows from it by one byte, and
//!    equal functions are interned. So most functions are found by a look-up, and a class of tokens is a function;
//! 4. `table`: writes the functions as columns of a table, and numbers states and classes by rules that depend on the
//!    language and the vocabulary only, so that equal grammars give equal bytes on every machine;
//! 5. `rows`: finds the distinct mask rows.

mod behaviour;
mod explore;
mod minimal;
mod rows;
mod table;

use crate::budget::Budget;
use crate::error::{Error, Result};
use crate::stack::{ByteState, Machine};
use crate::vocabulary::{Characters, Vocabulary};

/// The largest sizes that a frozen automaton may have.
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

/// The number of classes that signed numbers of 16 bits can name.
pub const MOST_CLASSES: usize = 1 << 15;

impl Default for Bounds {
    fn default() -> Bounds {
        Bounds { max_states: 1 << 16, max_classes: MOST_CLASSES, max_table: 64 << 20, max_pool: 256 << 20 }
    }
}

/// In place of a state: the token is refused.
pub const REFUSED: i32 = -1;

/// An automaton over tokens. State 0 is the start. States and classes are numbered in the order in which they are found
/// (see `table`).
#[derive(Debug, PartialEq, Eq)]
pub struct Frozen {
    /// The class of each token; the tokens of a class do the same in every state.
    pub class_of: Vec<i16>,
    pub classes: usize,
    pub states: usize,
    /// For each state and class of tokens the next state, or [`REFUSED`]; one row for each state.
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

/// The input of freezing.
pub struct Sources<'a> {
    pub machine: &'a mut Machine,
    pub vocab: &'a Vocabulary,
    /// If some tokens end inside a character that single bytes cannot complete: the characters that tokens spell.
    pub cuts: Option<&'a Characters>,
    pub budget: &'a mut Budget,
    /// The limit of bytes of the machine and of all that is built here together.
    pub max_memory: usize,
}

impl Sources<'_> {
    /// Fails if this number of bytes, in addition to those of the machine, exceeds the limit.
    fn hold(&self, bytes: usize) -> Result<()> {
        let held = self.machine.memory() / 5 * 8 + bytes; // tables may have allocated more than they use
        if held <= self.max_memory {
            return Ok(());
        }
        Err(Error::Limit { which: "max_memory (bytes, while freezing)", limit: self.max_memory as u64 })
    }
}

/// The error for an automaton that is too large: it has at least `reached` of something.
fn too_large(what: &'static str, reached: usize, bound: usize, parameter: &'static str) -> Error {
    Error::TooLarge { what, reached: reached as u64, bound: bound as u64, parameter }
}

/// Freezes the automaton of all texts that can follow a byte state.
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
