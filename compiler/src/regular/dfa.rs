//! The lazy DFA: the transitions of residuals, and which residuals are *alive*, that is, not the empty language.
//!
//! Transitions to the empty language are left out, so that every path can be completed. Only expressions with Boolean
//! operators or assertions need a search for that; the others are empty only if they are `EMPTY`.

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::arena::{Arena, EMPTY, Id, List, Node};
use super::held::Held;
use crate::budget::Budget;
use crate::byteset::ByteSet;
use crate::error::{Error, Result};
use crate::growth::{make_room, push};
use crate::recursion::deep;

const UNKNOWN: u32 = u32::MAX;

/// The number of a set of bytes: there are many edges, and few different sets.
type SetId = u32;

/// The transitions of one residual.
struct State {
    /// The bytes that lead somewhere alive.
    first: SetId,
    /// Where in the table its edges are.
    from: u32,
    to: u32,
}

#[derive(Default)]
pub(super) struct Tables {
    /// Residual -> index in `states`.
    index: Vec<u32>,
    states: Vec<State>,
    edges: Vec<(SetId, Id)>,
    /// What is known of the emptiness of residuals that take a search.
    alive: FxHashMap<Id, bool>,
    /// Lower bounds of the lengths of their texts.
    lengths: FxHashMap<Id, u32>,
    pub(super) held: FxHashMap<Id, Held>,
}

impl Tables {
    /// With room for what most grammars need.
    pub(super) fn new() -> Tables {
        Tables { states: Vec::with_capacity(256), edges: Vec::with_capacity(1024), ..Tables::default() }
    }

    pub(super) fn memory(&self) -> usize {
        self.states.len() * size_of::<State>()
            + self.edges.len() * size_of::<(SetId, Id)>()
            + self.index.len() * 4
            + self.lengths.len() * 16
            + self.held.len() * 96
    }
}

/// A search that has visited so many residuals looks for contradictions.
const LONG: usize = 32;

/// Residuals that one emptiness search may visit.
const SEARCH_LIMIT: usize = 50_000;

impl Arena {
    #[inline]
    fn state(&mut self, id: Id, budget: &mut Budget) -> Result<&State> {
        if self.dfa.index.get(id as usize).is_none_or(|&i| i == UNKNOWN) {
            let state = self.find_state(id, budget)?;
            if self.dfa.index.len() <= id as usize {
                self.dfa.index.resize(self.len().max(id as usize + 1), UNKNOWN);
            }
            self.dfa.index[id as usize] = self.dfa.states.len() as u32;
            push(&mut self.dfa.states, state);
        }
        Ok(&self.dfa.states[self.dfa.index[id as usize] as usize])
    }

    /// The bytes that lead somewhere alive.
    #[inline]
    pub fn first(&mut self, id: Id, budget: &mut Budget) -> Result<ByteSet> {
        let first = self.state(id, budget)?.first;
        Ok(self.sets[first as usize])
    }

    /// The transition by one byte: bytes that lead to the same residual, and that; none to `EMPTY`.
    #[inline]
    pub fn edge(&mut self, id: Id, byte: u8, budget: &mut Budget) -> Result<(ByteSet, Id)> {
        let State { from, to, .. } = *self.state(id, budget)?;
        let edges = &self.dfa.edges[from as usize..to as usize];
        let found = edges.iter().find(|edge| self.sets[edge.0 as usize].contains(byte));
        Ok(found.map_or((ByteSet::NONE, EMPTY), |&(set, target)| (self.sets[set as usize], target)))
    }

    /// The residual after one byte; `EMPTY` if none is alive.
    #[inline]
    pub fn next(&mut self, id: Id, byte: u8, budget: &mut Budget) -> Result<Id> {
        Ok(self.edge(id, byte, budget)?.1)
    }

    /// All transitions of a residual: disjoint sets of bytes, with the residual after any byte of the set; all of them
    /// alive.
    #[inline]
    pub fn edges(&mut self, id: Id, budget: &mut Budget) -> Result<impl Iterator<Item = (ByteSet, Id)> + Clone> {
        let State { from, to, .. } = *self.state(id, budget)?;
        let sets = &self.sets;
        Ok(self.dfa.edges[from as usize..to as usize].iter().map(|&(set, target)| (sets[set as usize], target)))
    }

    #[cold]
    fn find_state(&mut self, id: Id, budget: &mut Budget) -> Result<State> {
        let parts = self.metered(budget, |arena| arena.parts(id))?;
        budget.spend(8 + parts.len() as u64 * 4)?;
        let mut first = ByteSet::NONE;
        let mut alive: SmallVec<[(SetId, Id); 16]> = SmallVec::new();
        for (set, target) in parts {
            if self.alive(target, budget)? {
                first = first.or(set);
                alive.push((self.set_id(set), target));
            }
        }
        let first = if let [(only, _)] = alive[..] { only } else { self.set_id(first) };
        let from = self.dfa.edges.len() as u32;
        make_room(&mut self.dfa.edges, alive.len());
        self.dfa.edges.extend_from_slice(&alive);
        Ok(State { first, from, to: self.dfa.edges.len() as u32 })
    }

    /// Whether the language is not empty.
    pub fn alive(&mut self, id: Id, budget: &mut Budget) -> Result<bool> {
        let conditional = matches!(self.nodes[id as usize], Node::Lexeme(_) | Node::Under(..));
        if !self.needs_search(id) || self.nullable(id) && !self.looks_inside(id) && !conditional {
            return Ok(id != EMPTY);
        }
        if let Some(&known) = self.dfa.alive.get(&id) {
            return Ok(known);
        }
        let answer = match self.nodes[id as usize] {
            Node::Concat(h, t) => deep(|| Ok::<_, Error>(self.alive(h, budget)? && self.alive(t, budget)?))?,
            Node::Repeat(x, least, _) => least == 0 || deep(|| self.alive(x, budget))?,
            Node::Alt(k) => {
                let kids: List = self.list(k).into();
                let mut any = false;
                for i in kids {
                    any = any || deep(|| self.alive(i, budget))?;
                }
                any
            }
            _ => return deep(|| self.search(id, budget)),
        };
        self.dfa.alive.insert(id, answer);
        Ok(answer)
    }

    fn looks_inside(&self, id: Id) -> bool {
        self.flag(id, super::arena::Flags::LOOKS)
    }

    /// Depth-first search for a residual that is known to be alive, by way of those first that seem nearest to an ending.
    /// Then all on the path to it are; if there is none, all that were visited are empty.
    fn search(&mut self, from: Id, budget: &mut Budget) -> Result<bool> {
        let mut path: Vec<(Id, Vec<Id>)> = Vec::new();
        let mut visited: FxHashMap<Id, ()> = FxHashMap::default();
        let mut enter = Some(from);
        loop {
            if let Some(id) = enter.take()
                && visited.insert(id, ()).is_none()
            {
                if visited.len() > SEARCH_LIMIT {
                    let limit = SEARCH_LIMIT as u64;
                    return Err(Error::Limit { which: "residuals in one emptiness search", limit });
                }
                budget.spend(16)?;
                if visited.len() == LONG && self.contradicts_itself(from) {
                    self.dfa.alive.insert(from, false);
                    return Ok(false);
                } else if visited.len() > LONG && self.contradicts_itself(id) {
                    continue;
                }
                // what is alive is mostly walked next, which takes its derivatives again
                let parts = self.metered(budget, |arena| arena.parts_kept(id, true))?;
                let mut targets: Vec<Id> = parts.iter().map(|part| part.1).collect();
                if targets.len() > 1 {
                    targets.sort_by_cached_key(|&t| std::cmp::Reverse(self.least_length(t)));
                }
                let found = self.may_end(id, budget)? || targets.iter().any(|&t| self.known_alive(t));
                path.push((id, targets));
                if found {
                    self.dfa.alive.extend(path.into_iter().map(|(id, _)| (id, true)));
                    return Ok(true);
                }
            }
            let Some((_, targets)) = path.last_mut() else {
                self.dfa.alive.extend(visited.into_keys().map(|id| (id, false)));
                return Ok(false);
            };
            match targets.pop() {
                None => {
                    path.pop();
                }
                Some(t) => match self.nodes[t as usize] {
                    Node::And(_)
                    | Node::Not(_)
                    | Node::Scope(_)
                    | Node::Unit(_)
                    | Node::Lexeme(_)
                    | Node::Under(..) => match self.dfa.alive.get(&t) {
                        Some(false) => {}
                        _ => enter = Some(t),
                    },
                    // branches are visited here, since they may lead back to what is on the path
                    Node::Alt(k) if self.needs_search(t) => {
                        let kids: List = self.list(k).into();
                        targets.extend(kids);
                    }
                    _ => {
                        if self.alive(t, budget)? {
                            self.dfa.alive.extend(path.into_iter().map(|(id, _)| (id, true)));
                            return Ok(true);
                        }
                    }
                },
            }
        }
    }

    /// Whether a text of the language may end here. Of one with tags, the conditions on what follows must not
    /// contradict themselves; whether the grammar can meet them is not looked at.
    fn may_end(&mut self, id: Id, budget: &mut Budget) -> Result<bool> {
        if !matches!(self.nodes[id as usize], Node::Lexeme(_) | Node::Under(..)) {
            return Ok(self.nullable(id));
        }
        for (condition, _) in self.ends(id) {
            if deep(|| self.alive(condition, budget))? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// A lower bound of the bytes of the language's texts, by which a search finds an ending soon.
    pub fn least_length(&mut self, id: Id) -> u32 {
        if self.nullable(id) {
            return 0;
        }
        if let Some(&known) = self.dfa.lengths.get(&id) {
            return known;
        }
        let least = match self.nodes[id as usize] {
            Node::Class(_) => return 1,
            Node::Empty => return u32::MAX,
            Node::Not(_) => return 1,
            Node::Concat(h, t) => deep(|| self.least_length(h).saturating_add(self.least_length(t))),
            Node::Repeat(x, least, _) => deep(|| self.least_length(x)).saturating_mul(least),
            Node::Scope(x) | Node::Unit(x) | Node::Lexeme(x) | Node::After(_, x) => deep(|| self.least_length(x)),
            Node::Under(x, y) => deep(|| self.least_length(x).max(self.least_length(y))),
            Node::Alt(k) => {
                let kids: List = self.list(k).into();
                kids.into_iter().map(|i| deep(|| self.least_length(i))).min().unwrap_or(u32::MAX)
            }
            Node::And(k) => {
                let kids: List = self.list(k).into();
                kids.into_iter().map(|i| deep(|| self.least_length(i))).max().unwrap_or(0)
            }
            Node::Eps | Node::Accept(_) | Node::Ahead(_) | Node::Behind(_) | Node::Past(_) => return 0,
        };
        self.dfa.lengths.insert(id, least);
        least
    }

    fn known_alive(&self, id: Id) -> bool {
        id != EMPTY && (!self.needs_search(id) || self.dfa.alive.get(&id) == Some(&true))
    }

    /// The residuals after one byte, each with a byte that leads there, in the order of those: the lowest one, but of
    /// several digits not 0, so that what needs a number (a date, say) gets one that usual parsers take.
    pub fn successors(&mut self, id: Id, budget: &mut Budget) -> Result<Vec<(u8, Id)>> {
        let chosen = |(mut set, target): (ByteSet, Id)| {
            let lowest = set.take_first().expect("an edge has a byte");
            let next = if lowest == b'0' { set.take_first().filter(u8::is_ascii_digit) } else { None };
            (next.unwrap_or(lowest), target)
        };
        let mut all: Vec<(u8, Id)> = self.edges(id, budget)?.map(chosen).collect();
        all.sort_unstable();
        Ok(all)
    }

    /// A shortest text of the language, found breadth first.
    pub fn shortest(&mut self, id: Id, budget: &mut Budget) -> Result<Vec<u8>> {
        let mut from: FxHashMap<Id, (Id, u8)> = FxHashMap::default();
        let mut queue = std::collections::VecDeque::from([id]);
        from.insert(id, (id, 0));
        while let Some(q) = queue.pop_front() {
            if self.nullable(q) {
                let mut text = Vec::new();
                let mut at = q;
                while at != id {
                    let (before, byte) = from[&at];
                    text.push(byte);
                    at = before;
                }
                text.reverse();
                return Ok(text);
            }
            budget.spend(16)?;
            for (byte, t) in self.successors(q, budget)? {
                from.entry(t).or_insert_with(|| {
                    queue.push_back(t);
                    (q, byte)
                });
            }
        }
        Err(Error::Unsatisfiable("the language is empty".into()))
    }
}
