//! The context-free level: a pushdown automaton over bytes, whose stacks are graphs.
//!
//! In come a grammar ([`crate::ir`]) and bytes; out comes what can follow. What can follow a text is a *kernel*: a set
//! of heads, each a residual of the terminal at hand ([`crate::regular`]) and a *continuation*, which is a set of
//! stacks of return positions. The stacks share their tails and their tops, as in the graph-structured stacks of
//! Tomita's generalised LR parsing (1985) and of GLL parsing (Scott and Johnstone 2010). The closure of a kernel adds
//! what it predicts and completes, as in Earley's algorithm (1970), but without a chart: nothing is parsed, so
//! positions in the text do not matter.
//!
//! The files, from the bottom up:
//!
//! * `instances` (rules with parameters), `position` (what is left of a rule's body), `continuation` (sets of stacks),
//!   `grammar` (productive, nullable and left-recursive rules).
//! * The [`Machine`], one `impl` over several files: `step` (closures of kernels), `predict` (what a position
//!   predicts), `proofs` (productivity where parameters matter), `parser` (LR parsers) with `moves` (their reductions and
//!   shifts), `columns` (the blanks of lines), `threads` and `table` (byte states, by which texts are followed), `nesting`
//!   (whether stacks have a bound).
//! * Endings: `shortest` (shortest ones, by the rules alone); where lexemes depend on the text after them, or parsers
//!   decide, `combining` with `completing` (whether a search is needed) and `search`, which uses `ways` (to the ends of
//!   lexemes) and `estimates` (of what is still to come).

mod columns;
mod combining;
mod completing;
mod continuation;
mod estimates;
mod grammar;
mod instances;
mod moves;
mod nesting;
mod numbers;
mod parser;
mod position;
mod predict;
mod proofs;
mod reading;
mod search;
mod shortest;
mod step;
mod table;
mod threads;
mod ways;

pub use columns::Column;
pub use continuation::{ANY, Continuations, Frame, NO_CALLEE, Stack, UNSURE};
pub use grammar::Analysis;
pub use nesting::Nesting;
pub use position::{PosId, Positions};
pub use step::{Closure, Head, Heads, Machine};
pub use table::{ByteState, CUT_OFF, DEAD};
