//! Minimal deterministic automata, by partition refinement: the algorithm of Valmari ("Fast brief practical DFA
//! minimization", 2012), which needs no transitions to a dead state and takes O(m log m) for m transitions.

use crate::budget::Budget;
use crate::error::Result;

/// A transition.
#[derive(Clone, Copy, Debug)]
pub(super) struct Move {
    pub(super) from: u32,
    pub(super) label: u32,
    pub(super) to: u32,
}

/// The bytes of memory that minimising needs for each transition.
pub(super) const BYTES_PER_MOVE: usize = 40;

/// A partition of numbers into sets, which are split by marking some of their elements.
struct Partition {
    /// The numbers, grouped by set; in each set, the marked ones come first.
    elements: Vec<u32>,
    /// The index of each number in `elements`.
    place: Vec<u32>,
    set_of: Vec<u32>,
    /// The range of each set in `elements`: from `first` to before `past`.
    first: Vec<u32>,
    past: Vec<u32>,
    marked: Vec<u32>,
    /// Sets with marked elements.
    touched: Vec<u32>,
}

impl Partition {
    /// The partition of the numbers below `size` into one set.
    fn whole(size: usize) -> Partition {
        let all: Vec<u32> = (0..size as u32).collect();
        let (first, past, marked) =
            if size == 0 { (vec![], vec![], vec![]) } else { (vec![0], vec![size as u32], vec![0]) };
        Partition { place: all.clone(), elements: all, set_of: vec![0; size], first, past, marked, touched: vec![] }
    }

    /// The partition in which numbers with the same key are in one set.
    fn by_key(size: usize, key: impl Fn(u32) -> u32) -> Partition {
        let mut made = Partition::whole(size);
        made.elements.sort_by_key(|&e| key(e));
        (made.first, made.past, made.marked) = Default::default();
        for place in 0..size {
            let e = made.elements[place];
            if place == 0 || key(e) != key(made.elements[place - 1]) {
                made.past.extend(if place == 0 { None } else { Some(place as u32) });
                made.first.push(place as u32);
                made.marked.push(0);
            }
            made.set_of[e as usize] = made.first.len() as u32 - 1;
            made.place[e as usize] = place as u32;
        }
        made.past.extend(if size == 0 { None } else { Some(size as u32) });
        made
    }

    fn sets(&self) -> usize {
        self.first.len()
    }

    fn set(&self, s: usize) -> std::ops::Range<usize> {
        self.first[s] as usize..self.past[s] as usize
    }

    fn mark(&mut self, e: u32) {
        let s = self.set_of[e as usize] as usize;
        let (from, to) = (self.place[e as usize], self.first[s] + self.marked[s]);
        if from < to {
            return; // already marked
        }
        let other = self.elements[to as usize];
        self.elements[from as usize] = other;
        self.place[other as usize] = from;
        self.elements[to as usize] = e;
        self.place[e as usize] = to;
        if self.marked[s] == 0 {
            self.touched.push(s as u32);
        }
        self.marked[s] += 1;
    }

    /// Splits each set with marked elements into these and the others; the smaller part becomes a new set.
    fn split(&mut self) {
        while let Some(s) = self.touched.pop() {
            let s = s as usize;
            let middle = self.first[s] + self.marked[s];
            let marked = std::mem::take(&mut self.marked[s]);
            if middle == self.past[s] {
                continue;
            }
            let new = self.sets() as u32;
            if marked <= self.past[s] - middle {
                self.first.push(self.first[s]);
                self.past.push(middle);
                self.first[s] = middle;
            } else {
                self.first.push(middle);
                self.past.push(self.past[s]);
                self.past[s] = middle;
            }
            self.marked.push(0);
            for place in self.set(new as usize) {
                self.set_of[self.elements[place] as usize] = new;
            }
        }
    }
}

/// The transitions into each state: `list[from[state]..from[state + 1]]`.
struct Incoming {
    list: Vec<u32>,
    from: Vec<u32>,
}

impl Incoming {
    fn new(states: usize, moves: &[Move]) -> Incoming {
        let mut from = vec![0u32; states + 1];
        moves.iter().for_each(|m| from[m.to as usize + 1] += 1);
        (0..states).for_each(|state| from[state + 1] += from[state]);
        let (mut at, mut list) = (from.clone(), vec![0u32; moves.len()]);
        for (i, m) in moves.iter().enumerate() {
            list[at[m.to as usize] as usize] = i as u32;
            at[m.to as usize] += 1;
        }
        Incoming { list, from }
    }

    fn of(&self, state: u32) -> &[u32] {
        &self.list[self.from[state as usize] as usize..self.from[state as usize + 1] as usize]
    }
}

/// The block of each state, and how many there are: states of a block accept the same texts. Every state must have a
/// path to one that accepts; `accepting` has all states, `moves` at most one transition for a state and a label.
pub(super) fn minimal(accepting: &[bool], moves: &[Move], budget: &mut Budget) -> Result<(Vec<u32>, usize)> {
    let mut blocks = Partition::whole(accepting.len());
    (0..accepting.len() as u32).filter(|&state| accepting[state as usize]).for_each(|state| blocks.mark(state));
    blocks.split();
    budget.spend(moves.len() as u64 / 16)?; // sorting
    let mut cords = Partition::by_key(moves.len(), |i| moves[i as usize].label);
    let incoming = Incoming::new(accepting.len(), moves);
    let (mut block, mut cord) = (1, 0);
    while cord < cords.sets() {
        budget.spend(1 + cords.set(cord).len() as u64 / 32)?;
        for place in cords.set(cord) {
            blocks.mark(moves[cords.elements[place] as usize].from);
        }
        blocks.split();
        cord += 1;
        while block < blocks.sets() {
            for place in blocks.set(block) {
                let into = incoming.of(blocks.elements[place]);
                budget.spend(into.len() as u64 / 32)?;
                into.iter().for_each(|&i| cords.mark(i));
            }
            cords.split();
            block += 1;
        }
    }
    let count = blocks.sets();
    Ok((blocks.set_of, count))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::Limits;

    fn blocks(accepting: &[bool], moves: &[(u32, u32, u32)]) -> (Vec<u32>, usize) {
        let moves: Vec<Move> = moves.iter().map(|&(from, label, to)| Move { from, label, to }).collect();
        minimal(accepting, &moves, &mut Budget::new(&Limits::default(), None)).unwrap()
    }

    #[test]
    fn states_with_equal_futures_are_one() {
        // two copies of "a*b", of which one is entered by "c"
        let (of, count) = blocks(
            &[false, false, true, false, true],
            &[(0, 0, 0), (0, 1, 2), (0, 2, 1), (1, 0, 3), (1, 1, 4), (3, 0, 1), (3, 1, 2)],
        );
        assert_eq!(count, 3);
        assert_eq!((of[1], of[2]), (of[3], of[4]));
        assert_ne!(of[0], of[1]);
    }

    #[test]
    fn a_missing_transition_tells_states_apart() {
        let (of, count) = blocks(&[false, false, true], &[(0, 0, 1), (0, 1, 2), (1, 1, 2)]);
        assert_eq!(count, 3);
        assert_ne!(of[0], of[1]);
        assert_eq!(blocks(&[true], &[]), (vec![0], 1));
    }
}
