//! What tokens do: for each token, the partial function from a state to the state after the token's text.

use std::hash::BuildHasher;

use hashbrown::HashTable;
use rustc_hash::{FxBuildHasher, FxHashMap};

use super::explore::{ByteAutomaton, NONE};
use super::{Bounds, Sources, too_large};
use crate::budget::Budget;
use crate::byteset::ByteSet;
use crate::error::{Error, Result};
use crate::vocabulary::NodeIndex;

/// The number of a function.
pub(super) type Function = u32;

/// The number of the function that is defined for no state.
pub(super) const NOWHERE: Function = 0;

/// The number of trie nodes whose functions are looked up in the time of one step of a budget.
const LOOKED_UP: u64 = 4;

/// The number of states for which a new function is computed in that time.
const FOLLOWED: u64 = 8;

/// Interned partial functions from states to states.
struct Functions {
    /// For all functions, one after the other: the states for which they are defined, ascending, and their values.
    pairs: Vec<(u32, u32)>,
    /// The end of the pairs of each function.
    ends: Vec<usize>,
    ids: HashTable<Function>,
    /// The composition of a function with the step by a class of bytes, for those that were computed.
    followed: FxHashMap<(Function, u32), Function>,
}

fn range(ends: &[usize], f: Function) -> std::ops::Range<usize> {
    let from = if f == 0 { 0 } else { ends[f as usize - 1] };
    from..ends[f as usize]
}

impl Functions {
    fn new() -> Functions {
        let mut made =
            Functions { pairs: Vec::new(), ends: Vec::new(), ids: HashTable::new(), followed: FxHashMap::default() };
        let nowhere = made.intern_from(0);
        debug_assert_eq!(nowhere, NOWHERE);
        made
    }

    fn get(&self, f: Function) -> &[(u32, u32)] {
        &self.pairs[range(&self.ends, f)]
    }

    /// Interns the function whose pairs are those from `at` to the end.
    fn intern_from(&mut self, at: usize) -> Function {
        let (pairs, ends) = (&self.pairs, &self.ends);
        let new = &pairs[at..];
        let hash = |pairs: &[(u32, u32)]| FxBuildHasher.hash_one(pairs);
        if let Some(&known) = self.ids.find(hash(new), |&f| pairs[range(ends, f)] == *new) {
            self.pairs.truncate(at);
            return known;
        }
        let f = self.ends.len() as Function;
        self.ids.insert_unique(hash(new), f, |&f| hash(&pairs[range(ends, f)]));
        self.ends.push(self.pairs.len());
        f
    }

    fn intern(&mut self, pairs: impl Iterator<Item = (u32, u32)>) -> Function {
        let at = self.pairs.len();
        self.pairs.extend(pairs);
        self.intern_from(at)
    }

    /// The composition of a function with the step by a class of bytes.
    #[inline]
    fn then(&mut self, f: Function, class: u32, steps: &Steps, budget: &mut Budget) -> Result<Function> {
        match self.followed.get(&(f, class)) {
            Some(&known) => Ok(known),
            None => self.find(f, class, steps, budget),
        }
    }

    #[cold]
    fn find(&mut self, f: Function, class: u32, steps: &Steps, budget: &mut Budget) -> Result<Function> {
        let (at, of) = (self.pairs.len(), range(&self.ends, f));
        budget.spend(1 + of.len() as u64 / FOLLOWED)?;
        for i in of {
            let (from, to) = self.pairs[i];
            let next = steps.next[to as usize * steps.classes + class as usize];
            if next != NONE {
                self.pairs.push((from, next));
            }
        }
        let found = self.intern_from(at);
        self.followed.insert((f, class), found);
        Ok(found)
    }

    /// Bytes held.
    fn memory(&self) -> usize {
        self.pairs.capacity() * 8 + self.ends.capacity() * 24 + self.followed.capacity() * 16
    }
}

/// The transitions of an automaton over bytes as a table: a row for each state, a column for each class of bytes.
struct Steps {
    next: Vec<u32>,
    classes: usize,
}

/// What each token does.
pub(super) struct Behaviours {
    functions: Functions,
    /// The function of each token; `NOWHERE` for tokens without text.
    pub(super) of: Vec<Function>,
}

impl Behaviours {
    /// The states in which tokens with this function are allowed, each with the state after such a token.
    pub(super) fn pairs(&self, f: Function) -> &[(u32, u32)] {
        self.functions.get(f)
    }

    /// The number of functions, including those that no token has.
    pub(super) fn count(&self) -> usize {
        self.functions.ends.len()
    }
}

/// Finds what each token of the vocabulary does. Fails as soon as it is certain that the table will be too large.
pub(super) fn behaviours(sources: &mut Sources, bytes: &ByteAutomaton, bounds: &Bounds) -> Result<Behaviours> {
    sources.hold(bytes.states * bytes.classes * 4)?;
    let steps = Steps { next: bytes.table(), classes: bytes.classes };
    let mut found = Behaviours { functions: Functions::new(), of: vec![NOWHERE; sources.vocab.size] };
    follow_trie(sources, bytes, &steps, bounds, &mut found)?;
    refuse_cuts(sources, bytes, &steps, &mut found)?;
    Ok(found)
}

/// Walks the trie of the vocabulary, for all states at once.
fn follow_trie(
    sources: &mut Sources,
    bytes: &ByteAutomaton,
    steps: &Steps,
    bounds: &Bounds,
    found: &mut Behaviours,
) -> Result<()> {
    let trie = &sources.vocab.trie;
    let mut leading = ByteSet::NONE;
    (0..=255u8).filter(|&b| bytes.class_of[b as usize] != NONE).for_each(|b| leading.insert(b));
    let functions = &mut found.functions;
    let identity = functions.intern((0..bytes.states as u32).map(|state| (state, state)));
    // two classes are there in any case: tokens that are never allowed, and end-of-text tokens
    let mut of_tokens = Counted { met: Vec::new(), count: 2, states: bytes.states };
    let mut todo: Vec<(NodeIndex, Function)> = vec![(0, identity)];
    let mut looks = 0u64;
    while let Some((node, before)) = todo.pop() {
        for (byte, child) in trie.children(node, leading) {
            looks += 1;
            let f = functions.then(before, bytes.class_of[byte as usize], steps, sources.budget)?;
            if f == NOWHERE {
                continue;
            }
            let tokens = trie.tokens_at(child);
            if !tokens.is_empty() {
                of_tokens.note(f, bounds)?;
                tokens.iter().for_each(|&t| found.of[t as usize] = f);
            }
            if !trie.is_leaf(child) {
                todo.push((child, f));
            }
        }
        if looks >= 1024 {
            sources.budget.spend(looks / LOOKED_UP)?;
            looks = 0;
            let (held, most) = (sources.machine.memory() / 5 * 8 + functions.memory(), sources.max_memory);
            if held > most {
                return Err(Error::Limit { which: "max_memory (bytes, while freezing)", limit: most as u64 });
            }
        }
    }
    Ok(())
}

/// Counts the different functions that tokens have.
struct Counted {
    met: Vec<bool>,
    count: usize,
    states: usize,
}

impl Counted {
    #[inline]
    fn note(&mut self, f: Function, bounds: &Bounds) -> Result<()> {
        let f = f as usize;
        if self.met.len() <= f {
            self.met.resize(f + 1, false);
        }
        if std::mem::replace(&mut self.met[f], true) {
            return Ok(());
        }
        self.count += 1;
        check_size(self.states, self.count, bounds)
    }
}

/// Fails if a table with these numbers of states and classes of tokens is too large.
pub(super) fn check_size(states: usize, classes: usize, bounds: &Bounds) -> Result<()> {
    if classes > bounds.max_classes {
        return Err(too_large("classes of tokens", classes, bounds.max_classes, "max_classes"));
    }
    let table = states.saturating_mul(classes).saturating_mul(4);
    if table > bounds.max_table {
        return Err(too_large("bytes in its table of transitions", table, bounds.max_table, "max_table"));
    }
    Ok(())
}

/// Refuses tokens that end inside a character in the states from which no tokens can complete the character.
fn refuse_cuts(sources: &mut Sources, bytes: &ByteAutomaton, steps: &Steps, found: &mut Behaviours) -> Result<()> {
    let Some(characters) = sources.cuts else { return Ok(()) };
    let continuing: Vec<u32> = (0x80..=0xBF).map(|b: usize| bytes.class_of[b]).filter(|&class| class != NONE).collect();
    let leads = |state: usize, class: u32| steps.next[state * steps.classes + class as usize] != NONE;
    let mut ends: Vec<bool> =
        (0..bytes.states).map(|state| !continuing.iter().any(|&class| leads(state, class))).collect();
    let mut inside: Vec<Function> = characters.inside.iter().map(|&token| found.of[token as usize]).collect();
    inside.sort_unstable();
    inside.dedup();
    // as a character has at most four bytes, a few rounds find all states from which tokens lead to a character's end
    loop {
        let mut changed = false;
        for &f in &inside {
            let pairs = found.functions.get(f);
            sources.budget.spend(1 + pairs.len() as u64 / FOLLOWED)?;
            for &(from, to) in pairs {
                changed |= ends[to as usize] && !std::mem::replace(&mut ends[from as usize], true);
            }
        }
        if !changed {
            break;
        }
    }
    let mut stopping: FxHashMap<Function, Function> = FxHashMap::default();
    for &token in &characters.cut {
        let f = found.of[token as usize];
        let known = match stopping.get(&f) {
            Some(&known) => known,
            None => {
                let pairs = found.functions.get(f).to_vec();
                sources.budget.spend(1 + pairs.len() as u64 / FOLLOWED)?;
                let made = found.functions.intern(pairs.into_iter().filter(|&(_, to)| ends[to as usize]));
                stopping.insert(f, made);
                made
            }
        };
        found.of[token as usize] = known;
    }
    Ok(())
}
