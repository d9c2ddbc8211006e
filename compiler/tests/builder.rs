//! The builder's arrays: any input at all gives a grammar or an error, and a grammar survives serialisation.
//!
//! This is the fuzz target of the builder; `FUZZ_ROUNDS=10000000 cargo test --release --test builder` goes on for
//! longer.

mod common;

use _compiler::budget::Limits;
use _compiler::ir::{Ir, Parts};
use common::{Builder, allowed, compile};

/// xorshift64*: reproducible, and enough for choosing inputs.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    fn below(&mut self, n: u64) -> u32 {
        (self.next() % n) as u32
    }
}

fn rounds() -> u64 {
    std::env::var("FUZZ_ROUNDS").ok().and_then(|n| n.parse().ok()).unwrap_or(30_000)
}

/// Arrays that are mostly right, so that most get through to the engine.
fn arrays(r: &mut Random) -> (Vec<u32>, Vec<u32>, u32) {
    let (mut ops, count) = (Vec::new(), 1 + r.below(14));
    let rules = r.below(4);
    for node in 0..count {
        let op = r.below(17);
        let operand = |r: &mut Random| {
            if r.below(200) == 0 { r.next() as u32 } else { r.below(u64::from(node.max(1))) }
        };
        let operands: Vec<u32> = match op {
            0 => vec![],
            1 => vec![r.below(6), r.below(4)],
            2 | 3 => (0..r.below(3))
                .flat_map(|_| {
                    let lo = r.below(100);
                    [lo, lo + r.below(150)]
                })
                .collect(),
            6 => {
                let least = r.below(4);
                vec![operand(r), least, if r.below(3) == 0 { u32::MAX } else { least + r.below(300) }]
            }
            8..=11 => vec![operand(r)],
            14 => match r.below(3) {
                2 => vec![2, r.below(8), r.below(4), r.below(3), r.below(9)],
                kind => [kind].into_iter().chain((0..r.below(3)).map(|_| r.below(70))).collect(),
            },
            15 => {
                let rule = r.below(u64::from(rules.max(1)));
                let bits: Vec<u32> = (0..r.below(3)).map(|_| r.below(70)).collect();
                [&[rule, r.below(2), r.below(8), r.below(3)], &bits[..]].concat()
            }
            12 => vec![r.below(u64::from(rules.max(1)))],
            13 => (0..r.below(3)).flat_map(|_| [r.below(6), r.below(4)]).collect(),
            _ => (0..r.below(4)).map(|_| operand(r)).collect(),
        };
        ops.push(op);
        ops.push(if r.below(300) == 0 { r.next() as u32 } else { operands.len() as u32 });
        ops.extend(operands);
    }
    let bodies = (0..rules).map(|_| r.below(u64::from(count))).collect();
    (ops, bodies, r.below(u64::from(count)))
}

#[test]
fn any_arrays_give_a_grammar_or_an_error() {
    let limits = Limits { max_steps: 20_000, ..Limits::default() };
    let (mut random, mut decoded, mut compiled) = (Random(7), 0u64, 0u64);
    for _ in 0..rounds() {
        let (ops, rules, start) = arrays(&mut random);
        let names = vec![String::from("r"); rules.len()];
        let kinds: Vec<u8> = rules.iter().map(|_| (random.below(60) as u8).saturating_sub(44)).collect();
        let blob = b"abc(+a\xC3\xA9";
        let Ok(ir) = Ir::decode(Parts { ops: &ops, rules: &rules, blob, names, kinds: &kinds, start }) else {
            continue;
        };
        decoded += 1;
        assert_eq!(Ir::from_bytes(&ir.to_bytes()).as_ref(), Ok(&ir));
        let Ok(constraint) = compile(ir, limits.clone()) else {
            continue;
        };
        compiled += 1;
        let mut state = constraint.start();
        for _ in 0..6 {
            let Ok(row) = constraint.lock().row(state.id) else {
                break;
            };
            drop(row);
            let tokens = allowed(&constraint, state.id);
            assert!(!tokens.is_empty(), "a dead end");
            let token = tokens[random.below(tokens.len() as u64) as usize];
            let Ok(next) = constraint.lock().step(state.id, token) else {
                break;
            };
            state = next.expect("the mask allowed it");
            if state.id == _compiler::automaton::ENDED {
                break;
            }
        }
    }
    assert!(decoded > rounds() / 10 && compiled > rounds() / 50, "{decoded} decoded, {compiled} compiled");
}

#[test]
fn damaged_bytes_give_an_error() {
    let mut b = Builder::default();
    let (x, word) = (b.literal("xyz"), b.bytes(97, 122));
    let many = b.repeat(word, 2, None);
    let start = b.seq(&[x, many]);
    let bytes = b.ir(start).unwrap().to_bytes();
    let mut random = Random(11);
    for _ in 0..20_000 {
        let mut damaged = bytes.clone();
        for _ in 0..=random.below(3) {
            let at = random.below(bytes.len() as u64) as usize;
            damaged[at] = random.next() as u8;
        }
        damaged.truncate(damaged.len() - random.below(4) as usize);
        let _ = Ir::from_bytes(&damaged);
    }
}
