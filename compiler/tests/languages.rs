//! Languages: every kind of recursion, ambiguity, Boolean operators.

mod common;

use _compiler::error::Error;
use common::{Builder, EOS, accepts, allowed, walk};

#[test]
fn left_recursion_mutual_and_hidden() {
    let mut b = Builder::default();
    // a: b "x" | "1";  b: sign a "y" | a;  sign: "-"?
    let (ra, rb, rs) = (b.rule(), b.rule(), b.rule());
    let (a, bb, s) = (b.call(ra), b.call(rb), b.call(rs));
    let (x, y, one, minus) = (b.literal("x"), b.literal("y"), b.literal("1"), b.literal("-"));
    let (left, empty) = (b.seq(&[bb, x]), b.seq(&[]));
    let body_a = b.alt(&[left, one]);
    let left = b.seq(&[s, a, y]);
    let body_b = b.alt(&[left, a]);
    let body_s = b.alt(&[minus, empty]);
    b.define(ra, body_a);
    b.define(rb, body_b);
    b.define(rs, body_s);
    let c = b.constraint(a).unwrap();
    for text in ["1", "1x", "1yx", "1xx", "1yxyx", "-1yx", "--1yxyx", "-1yxx"] {
        assert!(accepts(&c, text), "{text}");
    }
    for text in ["", "x", "1y", "-1", "-1x", "1xy", "-1yxy", "1yyx"] {
        assert!(!accepts(&c, text), "{text}");
    }
}

#[test]
fn cyclic_and_nullable_rules_end() {
    let mut b = Builder::default();
    let (r, q) = (b.rule(), b.rule());
    let (cr, cq) = (b.call(r), b.call(q));
    let (a, empty) = (b.literal("a"), b.seq(&[]));
    let twice = b.seq(&[cq, cq]);
    let body = b.alt(&[cq, twice, a]);
    b.define(r, body);
    let body = b.alt(&[cr, empty]);
    b.define(q, body);
    let c = b.constraint(cr).unwrap();
    for n in 0..6 {
        assert!(accepts(&c, &"a".repeat(n)), "{n}");
    }
    assert!(!accepts(&c, "ab"));
}

#[test]
fn repetitions_of_a_nullable_rule_side_by_side_each_count() {
    // word: "a" word "b" | "";  start: word? | word{0,3} | word*, in any order
    let bounds = [Some(1), Some(3), None];
    for order in [[0, 1, 2], [1, 0, 2], [2, 1, 0], [0, 2, 1], [0, 1, 1], [1, 0, 0]] {
        let mut b = Builder::default();
        let rule = b.rule();
        let (word, a, bb, empty) = (b.call(rule), b.literal("a"), b.literal("b"), b.seq(&[]));
        let nested = b.seq(&[a, word, bb]);
        let body = b.alt(&[nested, empty]);
        b.define(rule, body);
        let repeats = order.map(|at| b.repeat(word, 0, bounds[at]));
        let start = b.alt(&repeats);
        let c = b.constraint(start).unwrap();
        for count in 0..6 {
            let most = if order.contains(&2) { 6 } else { 3 };
            assert_eq!(accepts(&c, &"ab".repeat(count)), count <= most, "{order:?} {count}");
        }
    }
}

#[test]
fn long_intersections_are_empty_where_a_byte_is_asked_for_that_one_does_not_have() {
    // [ab]{40,60}c, in which one of some texts must be; and the same where behind each letter a T may be
    for (texts, is_empty) in [(["T", "T"], true), (["T", "ab"], false), (["T", "U"], true), (["bc", "abc"], false)] {
        let mut b = Builder::default();
        let (letter, end, all, t) = (b.bytes(b'a', b'b'), b.literal("c"), b.bytes(0, 255), b.literal("T"));
        let (letters, any) = (b.repeat(letter, 40, Some(60)), b.repeat(all, 0, None));
        let texts = texts.map(|text| b.literal(text));
        let one = b.alt(&texts);
        let (text, search) = (b.seq(&[letters, end]), b.seq(&[any, one, any]));
        let both = b.both(&[text, search]);
        assert_eq!(matches!(b.constraint(both), Err(Error::Unsatisfiable(_))), is_empty);
        let marked = b.repeat(t, 0, Some(1));
        let marked = b.seq(&[letter, marked]);
        let marked = b.repeat(marked, 0, None);
        let (marked, parted) = (b.seq(&[marked, end]), b.seq(&[letters, end]));
        let both = b.both(&[marked, parted]);
        assert!(b.constraint(both).is_ok());
    }
}

#[test]
fn exponentially_many_stacks_stay_small() {
    // thirty nested two-way choices over the same text: 2^30 derivations
    let mut b = Builder::default();
    let mut inner = b.literal("a");
    for _ in 0..30 {
        let (p, q) = (b.rule(), b.rule());
        let (open, close) = (b.literal("("), b.literal(")"));
        let body = b.seq(&[open, inner, close]);
        b.define(p, body);
        b.define(q, body);
        let (cp, cq) = (b.call(p), b.call(q));
        inner = b.alt(&[cp, cq]);
    }
    let c = b.constraint(inner).unwrap();
    let text = format!("{}a{}", "(".repeat(30), ")".repeat(30));
    assert!(accepts(&c, &text));
    assert!(!accepts(&c, &text[1..]));
}

#[test]
fn counts_are_not_expanded() {
    let mut b = Builder::default();
    let (a, aa) = (b.literal("a"), b.literal("aa"));
    let either = b.alt(&[a, aa]);
    let many = b.repeat(either, 3, Some(1_000_000_000));
    let c = b.constraint(many).unwrap();
    assert!(!accepts(&c, "aa"));
    assert!(accepts(&c, "aaa"));
    assert!(accepts(&c, &"a".repeat(3000)));
}

#[test]
fn empty_languages_are_refused() {
    let mut b = Builder::default();
    let r = b.rule();
    let (call, a) = (b.call(r), b.literal("a"));
    let body = b.seq(&[a, call]);
    b.define(r, body);
    assert!(matches!(b.constraint(call), Err(Error::Unsatisfiable(_))));

    let mut b = Builder::default();
    let (ab, abc) = (b.literal("ab"), b.literal("abc"));
    let both = b.both(&[ab, abc]);
    assert!(matches!(b.constraint(both), Err(Error::Unsatisfiable(_))));
}

#[test]
fn dead_branches_are_never_entered() {
    let mut b = Builder::default();
    let (any, not_any) = {
        let byte = b.bytes(0, 255);
        let any = b.repeat(byte, 0, None);
        (any, b.complement(any))
    };
    let (x, y) = (b.literal("x"), b.literal("y"));
    let nothing = b.both(&[any, not_any]);
    let dead = b.seq(&[x, nothing]);
    let both = b.alt(&[dead, y]);
    let c = b.constraint(both).unwrap();
    assert_eq!(allowed(&c, c.start().id), [u32::from(b'y')]);
}

#[test]
fn masks_cross_terminals_and_frames() {
    // e: "(" e ")" | word; word: [a-b]+ as a terminal
    let mut b = Builder::default();
    let r = b.rule();
    let call = b.call(r);
    let letters = b.bytes(b'a', b'b');
    let some = b.repeat(letters, 1, None);
    let word = b.terminal(some);
    let (open, close) = (b.literal("("), b.literal(")"));
    let nested = b.seq(&[open, call, close]);
    let body = b.alt(&[nested, word]);
    b.define(r, body);
    let c = b.constraint(call).unwrap();
    assert_eq!(allowed(&c, c.start().id), [40, 97, 98, 256, 257, 258]);
    let at = walk(&c, "((a").unwrap();
    assert_eq!(allowed(&c, at.id), [41, 97, 98, 256, 258]);
    let at = walk(&c, "((a))").unwrap();
    assert_eq!(allowed(&c, at.id), [EOS]);
}

#[test]
fn boolean_operators_over_recursion_are_refused() {
    let mut b = Builder::default();
    let r = b.rule();
    let (call, a) = (b.call(r), b.literal("a"));
    let nested = b.seq(&[a, call, a]);
    let body = b.alt(&[nested, a]);
    b.define(r, body);
    let not = b.complement(call);
    assert!(matches!(b.constraint(not), Err(Error::Unsupported(_))));
}

/// `object: (key value)*` with each of `n` keys at most once, in any order, the first `required` of them at least once:
/// a rule whose parameter has a bit per key.
fn any_order(b: &mut Builder, n: u32, required: u32) -> u32 {
    let rule = b.rule();
    let all: Vec<u32> = (0..required).collect();
    let done = b.when(&[&[1], &all[..]].concat());
    let mut branches = vec![done];
    for key in 0..n {
        let (unused, text) = (b.when(&[0, key]), b.literal(&format!("k{key};")));
        let rest = b.call_with(rule, &[0, 0, 0, 0, key]);
        branches.push(b.seq(&[unused, text, rest]));
    }
    let body = b.alt(&branches);
    b.define(rule, body);
    b.call(rule)
}

#[test]
fn each_key_once_in_any_order() {
    let mut b = Builder::default();
    let start = any_order(&mut b, 70, 3);
    let c = b.constraint(start).unwrap();
    for text in ["k0;k1;k2;", "k2;k69;k1;k0;", "k68;k2;k0;k67;k1;"] {
        assert!(accepts(&c, text), "{text}");
    }
    for text in ["", "k0;k1;", "k0;k0;", "k0;k1;k2;k2;", "k5;k0;k1;k2;k5;", "k70;"] {
        assert!(!accepts(&c, text), "{text}");
    }
    // no dead end on the way through all of them, and an ending from everywhere
    let mut at = c.start();
    for key in (0..70).rev() {
        for byte in format!("k{key};").bytes() {
            at = c.lock().step(at.id, byte.into()).unwrap().expect("the key is unused");
        }
        let missing = key.min(3) as usize;
        assert_eq!(c.lock().shortest_completion(at.id).unwrap().len(), missing * 3);
    }
    assert_eq!(allowed(&c, at.id), [EOS]);
}

#[test]
fn counters_bound_what_is_listed() {
    let mut b = Builder::default();
    // list: "x" list, counting | "" if 3 to 5 were counted
    let rule = b.rule();
    let enough = b.when(&[2, 0, 3, 3, 5]);
    let (x, more) = (b.literal("x"), b.call_with(rule, &[0, 0, 3, 0]));
    let longer = b.seq(&[x, more]);
    let body = b.alt(&[enough, longer]);
    b.define(rule, body);
    let start = b.call(rule);
    let c = b.constraint(start).unwrap();
    for n in 0..12 {
        assert_eq!(accepts(&c, &"x".repeat(n)), (3..=5).contains(&n), "{n}");
    }
    // the counter stays at 7: a sixth x has no ending
    assert!(walk(&c, "xxxxx").is_some() && walk(&c, "xxxxxx").is_none());
}

#[test]
fn parameters_that_lead_nowhere_are_limited_not_endless() {
    // two of the keys exclude each other and both are required: every order would have to be tried
    let mut b = Builder::default();
    let rule = b.rule();
    let done = b.when(&[1, 0, 1]);
    let mut branches = vec![done];
    for key in 0..40 {
        let free = if key < 2 { b.when(&[0, 0, 1]) } else { b.when(&[0, key]) };
        let (text, rest) = (b.literal(&format!("k{key};")), b.call_with(rule, &[0, 0, 0, 0, key]));
        branches.push(b.seq(&[free, text, rest]));
    }
    let body = b.alt(&branches);
    b.define(rule, body);
    let start = b.call(rule);
    assert!(matches!(b.constraint(start), Err(Error::Limit { which: "max_steps", .. })));
}

#[test]
fn rules_with_parameters_begin_with_text() {
    let mut b = Builder::default();
    let rule = b.rule();
    let (x, again) = (b.literal("x"), b.call_with(rule, &[0, 0, 0, 0, 1]));
    let left = b.seq(&[again, x]);
    let body = b.alt(&[left, x]);
    b.define(rule, body);
    let start = b.call(rule);
    assert!(matches!(b.constraint(start), Err(Error::Unsupported(why)) if why.contains("\"r0\"")));
}
