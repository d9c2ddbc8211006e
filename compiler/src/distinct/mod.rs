//! What a JSON text must not repeat: the items of arrays whose items are unique, and names of members that must differ.
//!
//! No grammar can say that two parts of a text differ. So a grammar marks the rules that are about such an array or
//! object ([`crate::ir::Kinds`]), and while one is open, a [`History`] is kept beside the automaton's state. It is a
//! function of the text alone: bytes go in ([`History::push`]), and it says whether an item or name that ends has been
//! written before ([`History::record`]), and whether one that is open can still become one that has
//! ([`History::may_repeat`]). `crate::automaton` refuses the tokens that would have to repeat something.
//!
//! Values are compared as trees of spellings: without whitespace, members in any order, and `1.0` as `1`. Rules of
//! marked arrays must spell each value in no other way.

mod held;
mod history;
mod list;
mod set;
mod text;
mod value;

pub use held::Held;
pub use history::History;
