//! States: ids are never used twice, collection keeps what is rooted, limits hold.

mod common;

use _compiler::automaton::ENDED;
use _compiler::budget::Limits;
use _compiler::error::Error;
use common::{Builder, EOS, accepts, allowed, compile, walk};

fn nested() -> (Builder, u32) {
    let mut b = Builder::default();
    let r = b.rule();
    let call = b.call(r);
    let (open, close, a) = (b.literal("("), b.literal(")"), b.literal("a"));
    let inner = b.seq(&[open, call, close]);
    let body = b.alt(&[inner, a]);
    b.define(r, body);
    (b, call)
}

#[test]
fn collection_keeps_what_is_rooted() {
    let (b, start) = nested();
    let c = b.constraint(start).unwrap();
    let deep = walk(&c, "(((").unwrap();
    let (id, before) = (deep.id, allowed(&c, deep.id));
    let gone = walk(&c, "((((").unwrap().id;
    assert!(c.lock().collect() >= 3);
    assert_eq!(c.lock().step(gone, 97).err(), Some(Error::Collected(gone)));
    assert_eq!(allowed(&c, id), before);
    let mut at = deep.clone();
    for b in "a)))".bytes() {
        at = c.lock().step(at.id, b.into()).unwrap().unwrap();
        assert!(at.id > gone, "an id was used twice");
    }
    assert!(c.lock().is_accepting(at.id).unwrap());
    assert_eq!(c.lock().step(at.id, EOS).unwrap().unwrap().id, ENDED);
    assert!(allowed(&c, ENDED).is_empty());
}

#[test]
fn limits_are_named() {
    let (b, start) = nested();
    let limits = Limits { max_states: 20, ..Limits::default() };
    let c = compile(b.ir(start).unwrap(), limits).unwrap();
    let mut path = vec![c.start()];
    let error = loop {
        match c.lock().step(path.last().unwrap().id, 40) {
            Ok(next) => path.push(next.unwrap()),
            Err(e) => break e,
        }
    };
    let Error::At(error, place) = error else { panic!("{error} says no place") };
    assert_eq!(*error, Error::Limit { which: "max_states", limit: 20 });
    assert!(place.starts_with("the rule "), "{place}");

    let limits = Limits { max_depth: 1, ..Limits::default() };
    assert!(matches!(compile(b.ir(start).unwrap(), limits), Err(Error::Limit { .. })));
}

#[test]
fn nesting_of_expressions_takes_no_stack() {
    let mut b = Builder::default();
    let mut node = b.literal("a");
    for _ in 0..20_000 {
        let x = b.literal("b");
        let both = b.seq(&[x, node]);
        node = b.repeat(both, 0, Some(1));
    }
    let c = b.constraint(node).unwrap();
    assert!(accepts(&c, "") && accepts(&c, "bb") && !accepts(&c, "a"));
}

#[test]
fn shortest_completion_is_a_completion() {
    let (b, start) = nested();
    let c = b.constraint(start).unwrap();
    let at = walk(&c, "((").unwrap();
    assert_eq!(c.lock().shortest_completion(at.id).unwrap(), [97, 41, 41]);
}

#[test]
fn forced_text_stops_where_a_choice_begins() {
    let mut b = Builder::default();
    let (x, y) = (b.literal("hello x"), b.literal("hello y"));
    let both = b.alt(&[x, y]);
    let c = b.constraint(both).unwrap();
    assert_eq!(c.lock().forced_bytes(c.start().id, b"", 100).unwrap(), b"hello ");
    assert_eq!(c.lock().forced_bytes(c.start().id, b"", 3).unwrap(), b"hel");
    assert_eq!(c.lock().forced_bytes(c.start().id, b"hell", 100).unwrap(), b"o ");
    assert_eq!(c.lock().forced_bytes(c.start().id, b"x", 100).unwrap(), b"");
    assert_eq!(c.lock().next_bytes(c.start().id, b"hel").unwrap(), (b"l".to_vec(), false));
    assert_eq!(c.lock().next_bytes(c.start().id, b"x").unwrap(), (vec![], false));
}

#[test]
fn a_mask_that_hit_a_limit_is_right_when_asked_for_again() {
    // whitespace, then what only its own look-up makes known
    let mut b = Builder::default();
    let (blank, word) = (b.bytes(32, 32), b.bytes(97, 122));
    let (blanks, words) = (b.repeat(blank, 0, None), b.repeat(word, 1, None));
    let (blanks, words) = (b.terminal(blanks), b.terminal(words));
    let start = b.seq(&[blanks, words]);
    let c = b.constraint(start).unwrap();
    let whole = allowed(&c, c.start().id);
    let mut failed = 0;
    for max_steps in 1..400 {
        let Ok(c) = compile(b.ir(start).unwrap(), Limits { max_steps, ..Limits::default() }) else {
            continue;
        };
        let start = c.start();
        // each call has a budget of its own, and goes on from what the last one found
        for _ in 0..50 {
            if c.lock().row(start.id).is_ok() {
                assert_eq!(allowed(&c, start.id), whole, "{max_steps}");
                break;
            }
            failed += 1;
        }
    }
    assert!(failed > 0);
}
