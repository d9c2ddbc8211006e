//! Replays recorded texts token by token, each step a mask and an accept, on constraints compiled anew: a fixed amount
//! of work for profilers and instruction counts, without Python. `benchmarks/instructions.py` writes the file.
//!
//! Little-endian u32 throughout: number of tokens, per token its length and bytes; the size, the number of EOS tokens
//! and these; per grammar its length and portable bytes, the number of texts, per text its length and tokens.

use std::sync::Arc;
use std::time::Instant;

use _compiler::automaton::{Constraint, Index};
use _compiler::budget::Limits;
use _compiler::error::Error;
use _compiler::ir::Ir;
use _compiler::vocabulary::Vocabulary;

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn number(&mut self) -> u32 {
        u32::from_le_bytes(self.bytes(4).try_into().expect("four bytes"))
    }

    fn numbers(&mut self) -> Vec<u32> {
        let n = self.number();
        (0..n).map(|_| self.number()).collect()
    }

    fn bytes(&mut self, n: usize) -> &'a [u8] {
        let (head, rest) = self.0.split_at(n);
        self.0 = rest;
        head
    }

    fn text(&mut self) -> &'a [u8] {
        let n = self.number() as usize;
        self.bytes(n)
    }
}

struct Case {
    grammar: Arc<Ir>,
    texts: Vec<Vec<u32>>,
}

/// What a user would have to wait for: compile and first mask, then mask and accept for each token.
#[inline(never)]
fn replay(index: &Index, case: &Case, row: &mut [u32]) -> Result<usize, Error> {
    let constraint = Constraint::new(case.grammar.clone(), index, Limits::default(), None)?;
    let mut steps = 0;
    for text in &case.texts {
        let mut state = constraint.start();
        constraint.lock().row(state.id)?.write(row);
        for &token in text {
            constraint.lock().row(state.id)?.write(row);
            steps += 1;
            match constraint.lock().step(state.id, token)? {
                Some(next) => state = next,
                None => break,
            }
        }
    }
    Ok(steps)
}

fn main() {
    let mut args = std::env::args().skip(1);
    let data = std::fs::read(args.next().expect("replay FILE [ROUNDS]")).expect("a file");
    let rounds: usize = args.next().map_or(1, |n| n.parse().expect("a number of rounds"));
    let mut input = Reader(&data);
    let n = input.number();
    let tokens: Vec<&[u8]> = (0..n).map(|_| input.text()).collect();
    let size = input.number() as usize;
    let eos = input.numbers();
    let vocabulary = Vocabulary::new(tokens.iter().map(|t| (!t.is_empty()).then_some(*t)), eos, Vec::new(), size);
    let mut row = vec![0u32; vocabulary.words()];
    let index = Index::new(vocabulary);
    let mut cases = Vec::new();
    while !input.0.is_empty() {
        let grammar = Arc::new(Ir::from_bytes(input.text()).expect("a grammar"));
        let texts = (0..input.number()).map(|_| input.numbers()).collect();
        cases.push(Case { grammar, texts });
    }
    for _ in 0..rounds {
        let start = Instant::now();
        let mut steps = 0;
        for case in &cases {
            steps += replay(&index, case, &mut row).unwrap_or_else(|e| panic!("{e}"));
        }
        let took = start.elapsed();
        println!("{} grammars, {steps} steps, {:.1} ms", cases.len(), took.as_secs_f64() * 1e3);
    }
}
