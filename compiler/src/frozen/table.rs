//! The table of an automaton over tokens: a row for each state, a column for each class of tokens.
//!
//! The numbers depend on the language and the vocabulary only: classes are numbered in the order of their lowest
//! tokens, and states in the order of a breadth-first search from the start, which takes classes in their order.

use rustc_hash::FxHashMap;

use super::behaviour::{Behaviours, check_size};
use super::explore::{ByteAutomaton, NONE};
use super::minimal::{Move, minimal};
use super::{Bounds, Frozen, REFUSED, Sources};
use crate::error::Result;

pub(super) struct Table {
    /// The class of each token.
    pub(super) class_of: Vec<u32>,
    pub(super) classes: usize,
    pub(super) states: usize,
    /// For each state and class the next state, or `NONE`; one row for each state.
    pub(super) next: Vec<u32>,
    accepting: Vec<bool>,
    start: u32,
    /// The state after end-of-text tokens; `NONE` if it cannot be reached.
    terminated: u32,
}

impl Table {
    pub(super) fn new(
        sources: &mut Sources,
        bytes: &ByteAutomaton,
        behaviours: &Behaviours,
        bounds: &Bounds,
    ) -> Result<Table> {
        let (class_of, of_class) = classes(sources, behaviours);
        let (states, classes) = (bytes.states + 1, of_class.len());
        check_size(states, classes, bounds)?;
        let ended = bytes.states as u32;
        let mut next = vec![NONE; states * classes];
        for (class, f) in of_class.iter().enumerate() {
            match f {
                Some(f) => {
                    let pairs = behaviours.pairs(*f);
                    pairs.iter().for_each(|&(from, to)| next[from as usize * classes + class] = to);
                }
                None => {
                    let ends = (0..bytes.states).filter(|&state| bytes.accepting[state]);
                    ends.for_each(|state| next[state * classes + class] = ended);
                }
            }
        }
        sources.budget.spend(next.len() as u64 / 256)?;
        let mut accepting = bytes.accepting.clone();
        accepting.push(true); // a matcher whose text has ended is accepting, too
        let table = Table { class_of, classes, states, next, accepting, start: bytes.start, terminated: ended };
        let table = table.ordered();
        if sources.cuts.is_none() {
            return Ok(table); // tokens spell every text that completes a state, so that the automaton stays minimal
        }
        Ok(table.minimal(sources)?.merged().ordered())
    }

    /// Keeps the states that tokens lead to, numbers them, and merges classes that do the same in all of them.
    fn ordered(self) -> Table {
        let mut number = vec![NONE; self.states];
        let mut order = vec![self.start];
        number[self.start as usize] = 0;
        let mut at = 0;
        while let Some(&state) = order.get(at) {
            at += 1;
            for &to in self.row(state) {
                if to != NONE && number[to as usize] == NONE {
                    number[to as usize] = order.len() as u32;
                    order.push(to);
                }
            }
        }
        let renumbered = |&to: &u32| if to == NONE { NONE } else { number[to as usize] };
        let is_whole = order.len() == self.states;
        let mut next = Vec::with_capacity(order.len() * self.classes);
        order.iter().for_each(|&state| next.extend(self.row(state).iter().map(renumbered)));
        let made = Table {
            states: order.len(),
            next,
            accepting: order.iter().map(|&state| self.accepting[state as usize]).collect(),
            start: 0,
            terminated: if self.terminated == NONE { NONE } else { number[self.terminated as usize] },
            ..self
        };
        if is_whole { made } else { made.merged() }
    }

    /// Merges classes that do the same in all states. Their order stays that of their lowest tokens.
    fn merged(self) -> Table {
        let mut known: FxHashMap<Vec<u32>, u32> = FxHashMap::default();
        let mut kept = Vec::new();
        let merged: Vec<u32> = (0..self.classes)
            .map(|class| {
                let column = (0..self.states).map(|state| self.next[state * self.classes + class]).collect();
                *known.entry(column).or_insert_with(|| {
                    kept.push(class);
                    kept.len() as u32 - 1
                })
            })
            .collect();
        if kept.len() == self.classes {
            return self;
        }
        let row = |state: usize| kept.iter().map(move |class| (state, *class));
        let next = (0..self.states).flat_map(row).map(|(state, class)| self.next[state * self.classes + class]);
        Table {
            next: next.collect(),
            class_of: self.class_of.iter().map(|&class| merged[class as usize]).collect(),
            classes: kept.len(),
            ..self
        }
    }

    /// Merges states that the same sequences of tokens complete.
    fn minimal(self, sources: &mut Sources) -> Result<Table> {
        let moves = self.next.iter().enumerate().filter(|&(_, &to)| to != NONE).map(|(i, &to)| Move {
            from: (i / self.classes) as u32,
            label: (i % self.classes) as u32,
            to,
        });
        let moves: Vec<Move> = moves.collect();
        sources.hold(moves.len() * super::minimal::BYTES_PER_MOVE)?;
        // the state after the end of a text is accepting, but has no transitions, which tells it apart from others
        let (of, states) = minimal(&self.accepting, &moves, sources.budget)?;
        let mut next = vec![NONE; states * self.classes];
        let mut accepting = vec![false; states];
        for state in 0..self.states {
            let block = of[state] as usize;
            accepting[block] = self.accepting[state];
            for (class, &to) in self.row(state as u32).iter().enumerate() {
                next[block * self.classes + class] = if to == NONE { NONE } else { of[to as usize] };
            }
        }
        let block = |state: u32| if state == NONE { NONE } else { of[state as usize] };
        Ok(Table { states, next, accepting, start: block(self.start), terminated: block(self.terminated), ..self })
    }

    pub(super) fn row(&self, state: u32) -> &[u32] {
        &self.next[state as usize * self.classes..(state as usize + 1) * self.classes]
    }

    /// The frozen automaton, from this table and its mask rows.
    pub(super) fn frozen(self, mask_row: Vec<i32>, pool: Vec<u32>) -> Frozen {
        let number = |n: u32| if n == NONE { REFUSED } else { n as i32 };
        Frozen {
            class_of: self.class_of.into_iter().map(|class| class as i16).collect(),
            classes: self.classes,
            states: self.states,
            next: self.next.into_iter().map(number).collect(),
            mask_row,
            pool,
            accepting: self.accepting.into_iter().map(u8::from).collect(),
            terminated: number(self.terminated),
        }
    }
}

/// The class of each token, and the function of each class; `None` for the class of end-of-text tokens.
fn classes(sources: &Sources, behaviours: &Behaviours) -> (Vec<u32>, Vec<Option<u32>>) {
    let mut class_of_function = vec![NONE; behaviours.count()];
    let (mut of_ends, mut of_class) = (NONE, Vec::new());
    let mut class_of = Vec::with_capacity(behaviours.of.len());
    let mut is_end = vec![false; behaviours.of.len()];
    sources.vocab.eos.iter().for_each(|&token| is_end[token as usize] = true);
    for (&f, is_end) in behaviours.of.iter().zip(is_end) {
        let (class, of) = if is_end { (&mut of_ends, None) } else { (&mut class_of_function[f as usize], Some(f)) };
        if *class == NONE {
            *class = of_class.len() as u32;
            of_class.push(of);
        }
        class_of.push(*class);
    }
    (class_of, of_class)
}
