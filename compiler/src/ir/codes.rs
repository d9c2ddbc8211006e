//! The numbers by which builders call operations, conditions and marks.
//!
//! This is their one source. The Python module exports them under the names that [`numbers`] gives.

use super::{Kinds, UNBOUNDED};

/// Declares a module of consecutive numbers, and the list of them with their names.
macro_rules! numbered {
    ($(#[$doc:meta])* $module:ident, $prefix:literal: $($name:ident = $number:literal,)*) => {
        $(#[$doc])*
        pub mod $module {
            $(pub const $name: u32 = $number;)*
            pub(super) const ALL: &[(&str, u32)] = &[$((concat!($prefix, stringify!($name)), $name)),*];
        }
    };
}

numbered! {
    /// Operations: the first number of a node. The number of its operands and these follow.
    op, "OP_":
    NOTHING = 0,
    LITERAL = 1,
    BYTES = 2,
    CODEPOINTS = 3,
    SEQ = 4,
    ALT = 5,
    REPEAT = 6,
    BOTH = 7,
    COMPLEMENT = 8,
    AHEAD = 9,
    BEHIND = 10,
    TERMINAL = 11,
    CALL = 12,
    WORDS = 13,
    WHEN = 14,
    CALL_WITH = 15,
    LEXEME = 16,
    TEXT = 17,
    PARSER = 18,
    LEXEMES = 19,
}

numbered! {
    /// Conditions on a parameter: the first operand of `op::WHEN`.
    condition, "WHEN_":
    CLEAR = 0,
    ALL_SET = 1,
    WITHIN = 2,
}

/// All numbers that a builder needs, with their names in the Python module.
pub fn numbers() -> impl Iterator<Item = (&'static str, u32)> {
    let kinds = [
        ("OPENS", Kinds::OPENS),
        ("ITEMS", Kinds::ITEMS),
        ("NAMES", Kinds::NAMES),
        ("PART", Kinds::PART),
        ("FEW", Kinds::FEW),
    ];
    let kinds = kinds.map(|(name, kind)| (name, kind.0.into()));
    op::ALL.iter().chain(condition::ALL).copied().chain(kinds).chain([("UNBOUNDED", UNBOUNDED)])
}
