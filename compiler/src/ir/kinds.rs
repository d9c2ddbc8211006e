//! Marks on rules that say which parts of a JSON text must be distinct: the items of an array, the names in an object.
//!
//! A grammar cannot say that two parts of a text differ. So its rules only carry these marks; `distinct` keeps
//! the items and names that a text has so far, and `automaton` refuses to repeat them.

/// The marks of one rule, as bits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Kinds(pub u8);

impl Kinds {
    /// The first byte of the rule opens an array or object whose items or names must be distinct.
    pub const OPENS: Kinds = Kinds(1);
    /// The commas and the closing bracket in the rule's own body end items that must be distinct.
    pub const ITEMS: Kinds = Kinds(2);
    /// The colons in the rule's own body end names that must be distinct.
    pub const NAMES: Kinds = Kinds(4);
    /// The rule has none of these roles, but is kept apart from the rules around it, so that no part of it is taken
    /// for a part of theirs.
    pub const PART: Kinds = Kinds(8);
    /// An item or name that is being written may be left with few values that it can become. Without this mark, each
    /// of them can become a new value until it ends.
    pub const FEW: Kinds = Kinds(16);
    pub const ALL: Kinds = Kinds(31);

    /// Whether the two have a mark in common.
    pub fn has(self, other: Kinds) -> bool {
        self.0 & other.0 != 0
    }

    /// The marks of both.
    pub fn or(self, other: Kinds) -> Kinds {
        Kinds(self.0 | other.0)
    }
}
