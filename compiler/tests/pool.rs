//! Equal grammars under equal limits share a constraint, while it is used and for a while after.

mod common;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use _compiler::automaton::{Bounds, Index, Lease};
use _compiler::budget::Limits;
use _compiler::error::Error;
use _compiler::ir::Ir;
use common::{Builder, index, walk};

fn text(text: &str) -> Arc<Ir> {
    let mut b = Builder::default();
    let start = b.literal(text);
    Arc::new(b.ir(start).unwrap())
}

fn compile(index: &Index, grammar: &str) -> Lease {
    index.compile(text(grammar), Limits::default(), None).unwrap()
}

fn same(one: &Lease, other: &Lease) -> bool {
    std::ptr::eq(&**one, &**other)
}

/// Constraints that can be found, those that wait, and the bytes of these.
fn counts(index: &Index) -> (usize, usize, usize) {
    let of = |i: usize| index.stats()[i].1;
    (of(0), of(1), of(2))
}

#[test]
fn equal_grammars_share() {
    let index = index();
    let (one, other) = (compile(&index, "abc"), compile(&index, "abc"));
    assert!(same(&one, &other));
    assert!(!same(&one, &compile(&index, "abd")));
    let limits = Limits { max_steps: 3_999_999, ..Limits::default() };
    assert!(!same(&one, &index.compile(text("abc"), limits, None).unwrap()));
    let cancelled = || index.compile(text("abc"), Limits::default(), Some(Arc::new(AtomicBool::new(false)))).unwrap();
    assert!(!same(&one, &cancelled()) && !same(&cancelled(), &cancelled()));
    let without = index.without_caches();
    assert!(!same(&compile(&without, "abc"), &compile(&without, "abc")));
    assert_eq!(counts(&without), (0, 0, 0));
}

#[test]
fn states_stay_for_whoever_holds_them() {
    let index = index();
    let (one, other) = (compile(&index, "abc"), compile(&index, "abc"));
    let held = walk(&one, "ab").unwrap();
    let start = other.start().id;
    drop(one);
    assert_eq!(other.lock().collect(), 1); // behind "a"
    assert!(other.lock().step(held.id, b'c'.into()).unwrap().is_some());
    drop(other);
    let again = compile(&index, "abc");
    assert_eq!(again.start().id, start);
    assert!(again.anchor(held.id).is_ok());
}

#[test]
fn who_waits_is_found_within_the_bounds() {
    let index = index();
    drop(compile(&index, "a"));
    let each = counts(&index).2;
    assert!(each > 0);
    drop((compile(&index, "b"), compile(&index, "c")));
    assert_eq!(counts(&index), (3, 3, 3 * each));
    drop(compile(&index, "a")); // "b" is the least recently used now
    assert_eq!(counts(&index), (3, 3, 3 * each));
    assert!(index.keep(Bounds { constraints: 2, memory: 3 * each }).unwrap() >= each);
    assert_eq!(counts(&index), (2, 2, 2 * each));
    let used = (compile(&index, "a"), compile(&index, "c"));
    assert_eq!(counts(&index), (2, 0, 0));
    drop(compile(&index, "b"));
    assert_eq!(counts(&index), (3, 1, each));
    drop(used);
    assert_eq!(counts(&index), (2, 2, 2 * each));
    index.keep(Bounds { constraints: 2, memory: each });
    assert_eq!(counts(&index), (1, 1, each));
}

#[test]
fn what_is_too_large_goes_alone() {
    let index = index();
    drop(compile(&index, "a"));
    index.keep(Bounds { constraints: 9, memory: counts(&index).2 + 100 });
    drop(compile(&index, &"b".repeat(1000)));
    assert_eq!(counts(&index).0, 1);
}

#[test]
fn who_has_no_room_is_not_given_away() {
    let index = index();
    let limits = Limits { max_states: 8, ..Limits::default() };
    let compile = || index.compile(text("abcdefgh"), limits.clone(), None).unwrap();
    let one = compile();
    let held: Vec<_> = (1..3).map(|n| walk(&one, &"abcdefgh"[..n]).unwrap()).collect();
    assert!(same(&one, &compile()));
    let last = walk(&one, "abc").unwrap();
    let other = compile();
    assert!(!same(&one, &other));
    assert!(same(&other, &compile()));
    drop((held, last));
}

#[test]
fn threads_share_without_waiting_for_one_that_computes() {
    let index = index();
    let one = compile(&index, "abc");
    let busy = one.lock();
    std::thread::scope(|scope| {
        let others: Vec<_> = (0..4).map(|_| scope.spawn(|| compile(&index, "abc"))).collect();
        for other in others {
            assert!(same(&one, &other.join().unwrap()));
        }
    });
    drop(busy);
    let rounds = |n: usize| {
        for i in 0..300 {
            drop(compile(&index, &"a".repeat(1 + (n + i) % 7)));
        }
    };
    index.keep(Bounds { constraints: 3, memory: 1 << 20 });
    std::thread::scope(|scope| (0..4).for_each(|n| drop(scope.spawn(move || rounds(n)))));
    drop(one);
    let (found, waiting, _) = counts(&index);
    assert_eq!((found, waiting), (3, 3));
}

#[test]
fn one_that_has_panicked_fails_from_then_on_and_is_not_found_again() {
    let index = index();
    let one = compile(&index, "abc");
    let start = one.start().id;
    let broken = one.briefly(|_| -> Result<(), Error> { panic!("a test of {}", "this") }).unwrap();
    assert_eq!(broken, Err(Error::Defect("a test of this".to_owned())));
    let failed = Err(Error::Defect("an earlier call has failed".to_owned()));
    assert_eq!(one.lock().guarded(|engine| engine.row(start)).map(|_| ()), failed);
    assert_eq!(one.briefly(|engine| engine.row(start)).unwrap().map(|_| ()), failed);
    let other = compile(&index, "abc");
    assert!(!same(&one, &other));
    assert!(other.lock().row(other.start().id).is_ok());
}
