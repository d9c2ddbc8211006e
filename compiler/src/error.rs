//! The errors of the crate. The Python module has an exception for each variant.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Error {
    /// The builder's arrays do not describe a grammar.
    Malformed(String),
    /// A construct that cannot be enforced.
    Unsupported(String),
    /// The language is empty, or empty in what the vocabulary can spell.
    Unsatisfiable(String),
    /// A limit was hit: which one, and its value.
    Limit { which: &'static str, limit: u64 },
    /// A frozen automaton would have more of something than a bound allows: what, how much it has at least, the bound,
    /// and the parameter that sets it.
    TooLarge { what: &'static str, reached: u64, bound: u64, parameter: &'static str },
    /// A limit that a call hit, and where: how far the call had come, and in which rules of the grammar.
    At(Box<Error>, String),
    /// The caller cancelled the work.
    Cancelled,
    /// The grammar uses bytes that the vocabulary has inside longer tokens only, and is to be compiled over characters;
    /// callers of the crate never see it.
    InnerBytes,
    /// A brief call took too many steps, and is to be made again without haste; callers of the crate never see it.
    Interrupted,
    /// A state id whose state was collected, or that never existed.
    Collected(u32),
    /// The crate has panicked, and said this: a defect. What the call worked on may be in disorder.
    Defect(String),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Malformed(m) | Error::Unsupported(m) | Error::Unsatisfiable(m) => f.write_str(m),
            Error::Limit { which, limit } => write!(f, "limit exceeded: {which} (limit {limit})"),
            Error::TooLarge { what, reached, bound, parameter } => {
                write!(f, "the frozen automaton would have at least {reached} {what}; the bound {parameter} is {bound}")
            }
            Error::At(error, place) => write!(f, "{error}, at {place}"),
            Error::Cancelled => f.write_str("the work was cancelled"),
            Error::InnerBytes => {
                f.write_str("the grammar uses bytes that the vocabulary has inside longer tokens only")
            }
            Error::Interrupted => f.write_str("a brief call took too many steps"),
            Error::Collected(id) => write!(f, "state {id} was collected or never existed"),
            Error::Defect(m) => write!(f, "a defect of grammarspec: {m}"),
        }
    }
}

impl Error {
    /// Whether it ends a call whose work was too much, or was no longer wanted.
    pub fn ends_work(&self) -> bool {
        matches!(self, Error::Limit { .. } | Error::TooLarge { .. } | Error::At(..) | Error::Cancelled)
    }
}

impl std::error::Error for Error {}

/// Makes a call; if it panics, that is its error.
pub fn catching<R>(call: impl FnOnce() -> Result<R>) -> Result<R> {
    catch_unwind(AssertUnwindSafe(call)).unwrap_or_else(|panic| {
        let said = panic.downcast_ref::<&str>().map(ToString::to_string);
        let said = said.or_else(|| panic.downcast_ref::<String>().cloned());
        Err(Error::Defect(said.unwrap_or_else(|| "an unknown one".to_owned())))
    })
}

pub type Result<T, E = Error> = std::result::Result<T, E>;
