//! Where a text leads, byte by byte: the byte state of the pushdown automaton and the history beside it.

use crate::distinct::History;
use crate::stack::ByteState;

/// A point in a text, as far as what may follow depends on it.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) struct Configuration {
    pub(super) state: ByteState,
    /// `None` outside arrays and objects whose items or names must be distinct.
    pub(super) history: Option<History>,
}
