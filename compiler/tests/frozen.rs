//! Frozen automata beside the engine that they are frozen from.

mod common;

use _compiler::automaton::Constraint;
use _compiler::error::Error;
use _compiler::frozen::{Bounds, Frozen, REFUSED};
use common::{Builder, EOS, allowed};

fn freeze(constraint: &Constraint, bounds: &Bounds) -> Result<Frozen, Error> {
    let start = constraint.start().id;
    constraint.lock().freeze(start, bounds)
}

fn step(frozen: &Frozen, state: i32, token: u32) -> i32 {
    frozen.next[state as usize * frozen.classes + frozen.class_of[token as usize] as usize]
}

/// Follows a text in both, and compares the masks on the way.
fn compare(constraint: &Constraint, frozen: &Frozen, text: &str) -> bool {
    let (mut lazy, mut state) = (constraint.start(), 0);
    for token in text.bytes().map(u32::from).chain([EOS]) {
        let words = constraint.vocab.words();
        let row = frozen.mask_row[state as usize] as usize * words;
        let bits = &frozen.pool[row..row + words];
        let of_row: Vec<u32> = (0..words as u32 * 32).filter(|t| bits[*t as usize / 32] >> (t % 32) & 1 != 0).collect();
        assert_eq!(of_row, allowed(constraint, lazy.id));
        let next = constraint.lock().step(lazy.id, token).unwrap();
        state = step(frozen, state, token);
        assert_eq!(next.is_none(), state == REFUSED);
        let Some(next) = next else { return false };
        lazy = next;
    }
    assert_eq!(state, frozen.terminated);
    true
}

#[test]
fn steps_and_masks_are_those_of_the_engine() {
    let mut b = Builder::default();
    let (a, comma) = (b.bytes(b'a', b'c'), b.literal(","));
    let word = b.repeat(a, 1, Some(3));
    let more = b.seq(&[comma, word]);
    let more = b.repeat(more, 0, None);
    let start = b.seq(&[word, more]);
    let c = b.constraint(start).unwrap();
    let frozen = freeze(&c, &Bounds::default()).unwrap();
    assert_eq!((frozen.states, frozen.terminated), (5, 4));
    for (text, accepted) in [("abc,a", true), ("abca", false), ("a,", false), ("", false), ("c", true)] {
        assert_eq!(compare(&c, &frozen, text), accepted, "{text:?}");
    }
    assert_eq!(freeze(&c, &Bounds::default()).unwrap(), frozen);
}

#[test]
fn rules_that_call_themselves_last_or_first_are_finite() {
    for last in [true, false] {
        let mut b = Builder::default();
        let r = b.rule();
        let (call, a, x) = (b.call(r), b.literal("a"), b.literal("x"));
        let again = if last { b.seq(&[a, call]) } else { b.seq(&[call, a]) };
        let body = b.alt(&[again, x]);
        b.define(r, body);
        let c = b.constraint(call).unwrap();
        let frozen = freeze(&c, &Bounds::default()).unwrap();
        assert!(compare(&c, &frozen, if last { "aaax" } else { "xaaa" }));
    }
}

#[test]
fn rules_that_nest_and_bounds_are_refused() {
    let mut b = Builder::default();
    let r = b.rule();
    let (call, open, close) = (b.call(r), b.literal("("), b.literal(")"));
    let inner = b.seq(&[open, call, close]);
    let nothing = b.seq(&[]);
    let body = b.alt(&[inner, nothing]);
    b.define(r, body);
    let c = b.constraint(call).unwrap();
    assert!(matches!(freeze(&c, &Bounds::default()), Err(Error::Unsupported(said)) if said.contains("nests")));

    let mut b = Builder::default();
    let a = b.literal("a");
    let start = b.repeat(a, 9, Some(9));
    let c = b.constraint(start).unwrap();
    let tight = Bounds { max_states: 10, ..Bounds::default() };
    let error = Error::TooLarge { what: "states", reached: 11, bound: 10, parameter: "max_states" };
    assert_eq!(freeze(&c, &tight).err(), Some(error));
}
