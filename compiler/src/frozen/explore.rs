//! The automaton over bytes: finds all states that texts lead to, and minimises the automaton.

use rustc_hash::{FxHashMap, FxHashSet};

use super::minimal::{Move, minimal};
use super::{Bounds, Sources, too_large};
use crate::byteset::ByteSet;
use crate::error::{Error, Result};
use crate::stack::{ByteState, DEAD, Nesting};

/// Before minimising there may be more states: at most `APART` times `max_states`, or `APART` times `LEAST` if that is
/// more. With small bounds, exploring thus goes on, and the minimal automaton is compared with the bound.
const APART: usize = 4;
const LEAST: usize = 1 << 14;

/// The number of states after which the memory is checked again.
const LOOK_EVERY: usize = 1024;

/// In place of a state or a class: there is none.
pub(super) const NONE: u32 = u32::MAX;

/// A finite automaton over bytes. From every state, some text leads to an accepting state.
pub(super) struct ByteAutomaton {
    pub(super) states: usize,
    pub(super) start: u32,
    pub(super) accepting: Vec<bool>,
    /// The class of each byte; bytes of a class lead to the same states. `NONE` for bytes that are never allowed.
    pub(super) class_of: [u32; 256],
    pub(super) classes: usize,
    moves: Vec<Move>,
}

/// Finds all states that texts lead to. Fails with `Error::Unsupported` if there are infinitely many.
pub(super) fn explore(sources: &mut Sources, start: ByteState, bounds: &Bounds) -> Result<ByteAutomaton> {
    if let Some(rule) = sources.machine.rule_with_history() {
        return Err(Error::Unsupported(format!(
            "the constraint cannot be frozen: its states hold the values that a text has so far, since they must differ \
             (uniqueItems, or names of members), in the rule {rule:?}"
        )));
    }
    let most = bounds.max_states.max(LEAST).saturating_mul(APART);
    let mut ids = FxHashMap::from_iter([(start, 0)]);
    let mut found = vec![start];
    let (mut accepting, mut edges) = (Vec::new(), Vec::new());
    let mut nesting = Nesting::default();
    while let Some(&state) = found.get(accepting.len()) {
        let from = accepting.len() as u32;
        let mut left = sources.machine.first(state, sources.budget)?;
        accepting.push(sources.machine.accepts(state, sources.budget)?);
        while let Some(byte) = left.first() {
            let (same, next) = sources.machine.go_class(state, byte, sources.budget)?;
            let same = same.and(left);
            left = left.minus(same);
            if next != DEAD {
                let to = *ids.entry(next).or_insert_with(|| {
                    found.push(next);
                    found.len() as u32 - 1
                });
                edges.push((from, same, to));
            }
        }
        if let Some(rule) = sources.machine.nested_rule(&mut nesting, sources.budget)? {
            return Err(Error::Unsupported(format!(
                "the constraint cannot be frozen: it has no end of states, since the rule {rule:?} nests in itself as \
                 deep as a text likes"
            )));
        }
        if found.len() > most {
            return Err(too_large("states over bytes, equal ones included", found.len(), most, "4 x max_states"));
        }
        if (from as usize).is_multiple_of(LOOK_EVERY) {
            sources.hold((found.capacity() + ids.capacity()) * 8 + edges.capacity() * 40)?;
        }
    }
    Ok(by_classes(accepting, &edges))
}

/// Makes the automaton, with bytes grouped into classes.
fn by_classes(accepting: Vec<bool>, edges: &[(u32, ByteSet, u32)]) -> ByteAutomaton {
    let sets: FxHashSet<ByteSet> = edges.iter().map(|edge| edge.1).collect();
    let (class_of, classes) = byte_classes(sets.iter().copied());
    let some_byte: Vec<u8> = (0..classes as u32)
        .map(|class| (0..=255).find(|&b| class_of[b as usize] == class).expect("no class is empty"))
        .collect();
    let classes_in = |set: ByteSet| -> Vec<u32> {
        (0..classes as u32).filter(|&class| set.contains(some_byte[class as usize])).collect()
    };
    let members: FxHashMap<ByteSet, Vec<u32>> = sets.into_iter().map(|set| (set, classes_in(set))).collect();
    let moves =
        edges.iter().flat_map(|(from, set, to)| members[set].iter().map(|&label| Move { from: *from, label, to: *to }));
    ByteAutomaton { states: accepting.len(), start: 0, moves: moves.collect(), accepting, class_of, classes }
}

/// The fewest classes of bytes such that each set is a union of classes; `NONE` for bytes in no set.
fn byte_classes(sets: impl Iterator<Item = ByteSet>) -> ([u32; 256], usize) {
    let mut class_of = [0u32; 256];
    let mut met = ByteSet::NONE;
    for set in sets {
        met = met.or(set);
        let mut split: FxHashMap<(u32, bool), u32> = FxHashMap::default();
        for b in 0..=255u8 {
            let next = split.len() as u32;
            let class = &mut class_of[b as usize];
            *class = *split.entry((*class, set.contains(b))).or_insert(next);
        }
    }
    // number the classes of bytes that are in some set, in the order of their lowest bytes
    let mut numbers: FxHashMap<u32, u32> = FxHashMap::default();
    for b in 0..=255u8 {
        let next = numbers.len() as u32;
        let class = &mut class_of[b as usize];
        *class = if met.contains(b) { *numbers.entry(*class).or_insert(next) } else { NONE };
    }
    (class_of, numbers.len())
}

impl ByteAutomaton {
    /// The automaton in which states that the same texts complete are merged.
    pub(super) fn minimal(self, sources: &mut Sources) -> Result<ByteAutomaton> {
        sources.hold(self.moves.len() * super::minimal::BYTES_PER_MOVE)?;
        let (of, states) = minimal(&self.accepting, &self.moves, sources.budget)?;
        let mut accepting = vec![false; states];
        of.iter().zip(&self.accepting).for_each(|(&block, &accepts)| accepting[block as usize] = accepts);
        let edge = |m: &Move| (of[m.from as usize], m.label, of[m.to as usize]);
        let moves: FxHashSet<(u32, u32, u32)> = self.moves.iter().map(edge).collect();
        let moves = moves.into_iter().map(|(from, label, to)| Move { from, label, to }).collect();
        Ok(ByteAutomaton { states, start: of[self.start as usize], accepting, moves, ..self })
    }

    /// For each state and class of bytes the next state, or `NONE`; one row for each state.
    pub(super) fn table(&self) -> Vec<u32> {
        let mut next = vec![NONE; self.states * self.classes];
        for m in &self.moves {
            next[m.from as usize * self.classes + m.label as usize] = m.to;
        }
        next
    }
}
