//! Steps: which tokens end inside a lexeme, and what other tokens have after its end.

use std::hash::Hash;
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use super::masks::After;
use super::repeated::Single;
use super::runs::Exceptions;
use super::texts::{Found, LARGE, Place, Places, Rests};
use super::union::Followed;
use crate::byteset::ByteSet;
use crate::error::Result;
use crate::mask::cache::Branch;
use crate::mask::maker::MaskMaker;
use crate::mask::row::Draft;
use crate::mask::shape::lead_bytes;
use crate::recursion::deep;
use crate::regular::{EMPTY, Id, TOP};
use crate::stack::{Column, Head, Stack};
use crate::vocabulary::{NodeIndex, Trie};

/// Of how many entries a map has an index.
const MANY: usize = 8;

/// The step of a residual on texts: what these do within the lexeme and at its ends.
#[derive(Default)]
pub(in crate::mask) struct Step {
    /// The tokens that end inside the lexeme, by the residual that they lead to; in constraints that are not careful,
    /// the residual has no meaning.
    pub(super) reached: Vec<(Id, Arc<Draft>)>,
    pub(super) ends: Vec<End>,
    /// Ends of lines whose column is not known.
    pub(super) lost: Vec<End>,
    /// The column at the beginning, where lexemes end lines, if the ends depend on it.
    pub(super) column: Option<Column>,
}

/// One way in which a lexeme ends inside tokens.
pub(super) struct End {
    /// The condition on the rest of the text, and the position after the lexeme.
    pub(super) end: (Id, u32),
    /// The column there, where lexemes end lines of which an indenter counts the blanks.
    pub(super) column: Option<Column>,
    /// What tokens have after this end.
    pub(super) rests: Rests,
    /// Tokens of these in which the lexeme does not end in this way, in order.
    pub(super) except: Arc<[u32]>,
}

impl End {
    /// Bytes held, roughly.
    fn memory(&self) -> usize {
        64 + self.rests.memory() + self.except.len() * 4
    }
}

/// The steps of a constraint that have been computed, and other results that its masks share.
#[derive(Default)]
pub(in crate::mask) struct Steps {
    pub(super) places: Places,
    taken: FxHashMap<(Place, Id), Arc<Step>>,
    /// Of lexemes that can end lines, by column, if that matters.
    pub(super) lines: FxHashMap<(Place, Id, Option<Column>), Arc<Step>>,
    ends: FxHashMap<Id, Arc<[(Id, u32)]>>,
    /// For each condition, the bytes that it allows after a lexeme.
    behind: FxHashMap<Id, ByteSet>,
    /// For each residual that is a union, its lexemes, with the bytes that each begins with.
    alternatives: FxHashMap<Id, Arc<[(Id, ByteSet)]>>,
    /// For each end of a lexeme, what may stand behind it.
    pub(super) after: FxHashMap<Head, Arc<After>>,
    /// For what may stand behind an end, and a character, the lexeme that it is.
    pub(super) singles: FxHashMap<(u32, u8), Option<Single>>,
    /// By trie, residual and cut stack.
    pub(super) parts: FxHashMap<(Place, Head), Arc<Part>>,
    /// Steps on cut stacks that leave something open.
    pub(super) unsettled: FxHashSet<(Place, Id, Stack)>,
    /// What the mask at hand has followed; empty between masks.
    pub(super) followed: Followed,
    /// Bytes of the tokens and ends, roughly.
    held: usize,
}

impl Steps {
    pub(super) fn keep_part(&mut self, key: (Place, Head), part: Arc<Part>) {
        self.held += (part.tokens.len() + part.open.len()) * 4 + 96;
        self.parts.insert(key, part);
    }

    /// Counts what a step holds.
    pub(super) fn hold(&mut self, step: &Step) {
        let row = |draft: &Arc<Draft>| draft.base.as_ref().map_or(0, |bits| bits.len() * 4); // few are shared
        let tokens: usize = step.reached.iter().map(|(_, draft)| draft.memory() + row(draft)).sum();
        let ends: usize = step.ends.iter().chain(&step.lost).map(End::memory).sum();
        self.held += tokens + ends;
    }

    /// Drops all of it, a little with each item.
    pub(in crate::mask) fn into_drops(mut self) -> impl Iterator<Item = ()> + Send {
        fn drops<K: Send, V: Send>(map: &mut FxHashMap<K, V>) -> impl Iterator<Item = ()> + Send + use<K, V> {
            std::mem::take(map).into_iter().map(drop)
        }
        let many = drops(&mut self.after).chain(drops(&mut self.parts)).chain(drops(&mut self.singles));
        many.chain(drops(&mut self.taken)).chain(std::iter::once(self).map(drop))
    }

    /// Bytes of what has no room to grow, where that is much.
    pub(in crate::mask) fn exact_bytes(&self) -> usize {
        self.places.exact_bytes()
    }

    /// Bytes of everything else, roughly.
    pub(in crate::mask) fn memory(&self) -> usize {
        let alternatives: usize = self.alternatives.values().map(|all| 64 + all.len() * 40).sum();
        self.held
            + self.places.memory()
            + alternatives
            + (self.taken.len() + self.lines.len()) * 160
            + self.after.len() * 160
            + self.singles.len() * 48
            + self.unsettled.len() * 16
            + self.ends.len() * 64
    }
}

/// What the ends of a step lead to, over a stack that is cut off some frames down.
#[derive(Default)]
pub(super) struct Part {
    /// The tokens that the ends allow, whatever is below.
    pub(super) tokens: Vec<u32>,
    /// The ends behind which that depends on what is below, or which allow very many tokens.
    pub(super) open: Vec<u32>,
}

/// A map of mostly one or two entries, in the order in which they came.
struct Few<K, V> {
    all: Vec<(K, V)>,
    /// Where each is, if there are many.
    index: FxHashMap<K, usize>,
}

impl<K, V> Default for Few<K, V> {
    fn default() -> Few<K, V> {
        Few { all: Vec::new(), index: FxHashMap::default() }
    }
}

impl<K: Copy + Eq + Hash, V: Default> Few<K, V> {
    /// The value of a key, which is new if the key is.
    fn entry(&mut self, key: K) -> &mut V {
        let known = match self.index.is_empty() {
            true => self.all.iter().position(|entry| entry.0 == key),
            false => self.index.get(&key).copied(),
        };
        let at = known.unwrap_or(self.all.len());
        if known.is_none() {
            self.all.push((key, V::default()));
            if self.all.len() == MANY {
                self.index = self.all.iter().enumerate().map(|(at, entry)| (entry.0, at)).collect();
            } else if self.all.len() > MANY {
                self.index.insert(key, at);
            }
        }
        &mut self.all[at].1
    }
}

/// A step that is being computed.
pub(super) struct Walk<'a> {
    pub(super) trie: &'a Trie,
    careful: bool,
    /// Nodes to be walked, each with the residual there and the bytes to follow.
    pub(super) todo: Vec<(NodeIndex, Id, ByteSet)>,
    reached: Few<Id, Draft>,
    /// For each end, the nodes of the bytes after it.
    ends: Few<(Id, u32), Found>,
}

impl<'a> Walk<'a> {
    pub(super) fn new(trie: &'a Trie, careful: bool) -> Walk<'a> {
        Walk { trie, careful, todo: Vec::new(), reached: Few::default(), ends: Few::default() }
    }

    /// A walk of the same trie that has found nothing yet.
    pub(super) fn beside(&self) -> Walk<'a> {
        Walk::new(self.trie, self.careful)
    }

    pub(super) fn reach(&mut self, state: Id, tokens: &[u32]) {
        if !tokens.is_empty() {
            let state = if self.careful { state } else { TOP };
            self.reached.entry(state).set.extend_from_slice(tokens);
        }
    }
}

impl<'a> MaskMaker<'a> {
    /// The lexemes of a union, each with its conditions, and the bytes that it begins with.
    pub(super) fn alternatives(&mut self, rest: Id) -> Result<Arc<[(Id, ByteSet)]>> {
        if let Some(known) = self.local.steps.alternatives.get(&rest) {
            return Ok(known.clone());
        }
        let mut found = Vec::new();
        for x in self.machine.arena.alternatives(rest) {
            found.push((x, self.machine.arena.first(x, self.budget)?));
        }
        let found: Arc<[(Id, ByteSet)]> = found.into();
        self.local.steps.alternatives.insert(rest, found.clone());
        Ok(found)
    }

    /// The step of a residual on a trie.
    pub(super) fn step(&mut self, place: Place, rest: Id) -> Result<Arc<Step>> {
        if let Some(known) = self.local.steps.taken.get(&(place, rest)) {
            return Ok(known.clone());
        }
        let key = self.shared_key(place, rest);
        let shared = key.map_or(Ok(None), |key| self.shared_step(key, rest))?;
        let step = match shared {
            Some(step) => step,
            None => {
                let step = self.take(place, &self.trie(place), rest)?;
                key.map_or(Ok(()), |key| self.share_step(key, rest, &step))?;
                step
            }
        };
        let step = Arc::new(step);
        self.local.steps.hold(&step);
        self.local.steps.taken.insert((place, rest), step.clone());
        Ok(step)
    }

    fn take(&mut self, place: Place, trie: &Trie, rest: Id) -> Result<Step> {
        let mut walk = Walk::new(trie, self.machine.careful);
        let mut step = Step::default();
        if let Some(nodes) = self.nodes(place).list() {
            let first = self.machine.arena.first(rest, self.budget)?;
            for &node in nodes.iter().filter(|&&node| first.contains(trie.byte(node))) {
                self.budget.spend(1)?;
                let next = self.machine.arena.next(rest, trie.byte(node), self.budget)?;
                self.enter(&mut walk, node, next)?;
            }
        } else {
            walk.todo.push((0, rest, ByteSet::ALL));
            if let Some(name) = trie.name
                && trie.tokens().len() >= LARGE
                && let Some(run) = self.run(rest)?
            {
                self.by_run(name, (rest, run), &mut walk, &mut step)?;
            }
        }
        while let Some((node, state, bytes)) = walk.todo.pop() {
            let first = self.machine.arena.first(state, self.budget)?.and(bytes);
            for (byte, child) in trie.children(node, first) {
                self.budget.spend(1)?;
                let next = self.machine.arena.next(state, byte, self.budget)?;
                self.enter(&mut walk, child, next)?;
            }
        }
        let words = self.vocab.words();
        let reached = walk.reached.all.into_iter();
        step.reached.extend(reached.map(|(state, draft)| (state, Arc::new(draft.with_base_if_many(words)))));
        for (end, nodes) in walk.ends.all {
            let rests = self.rests_from((place, trie), nodes);
            step.ends.push(End { end, column: None, rests, except: Arc::default() });
        }
        Ok(step)
    }

    /// Continues a walk at a node at which the residual is `state`.
    pub(super) fn enter(&mut self, walk: &mut Walk, node: NodeIndex, state: Id) -> Result<()> {
        let trie = walk.trie;
        walk.reach(state, trie.tokens_at(node));
        if trie.is_leaf(node) {
            return Ok(());
        }
        let ends = if self.machine.arena.may_end_here(state) { Some(self.ends_of(state)?) } else { None };
        let ends = ends.as_deref().unwrap_or_default();
        let after = self.end_at(walk, node, ends)?;
        if let Some((below, tokens)) = trie.below(node)
            && let Some(plain) = self.self_loop(state)?
            && after.and(plain).is_empty()
        {
            if below.minus(plain.and(ByteSet::range(0, 127))).is_empty() {
                walk.reach(state, tokens);
                return Ok(());
            }
            let branch = match trie.name {
                Some(name) => self.shared.branch((name, trie), node, plain),
                None => {
                    self.budget.spend(tokens.len() as u64)?;
                    Arc::new(Branch::new(trie, node, plain))
                }
            };
            walk.reach(state, &branch.plain);
            walk.todo.push((node, state, ByteSet::ALL.minus(plain)));
            for (byte, nodes) in branch.exits() {
                self.budget.spend(1)?;
                for &end in ends {
                    if self.first_behind(end.0)?.contains(byte) {
                        walk.ends.entry(end).extend_from_slice(nodes);
                    }
                }
            }
            return self.leave_run(walk, &branch, state, &Exceptions::default());
        }
        walk.todo.push((node, state, ByteSet::ALL));
        Ok(())
    }

    /// Notes the rests after the ends at a node. Returns the bytes that may follow one of the ends.
    pub(super) fn end_at(&mut self, walk: &mut Walk, node: NodeIndex, ends: &[(Id, u32)]) -> Result<ByteSet> {
        let mut after = ByteSet::NONE;
        for &end in ends {
            let first = self.first_behind(end.0)?;
            after = after.or(first);
            let mut children = walk.trie.children(node, first).map(|(_, child)| child).peekable();
            if children.peek().is_some() {
                walk.ends.entry(end).extend(children);
            }
        }
        Ok(after)
    }

    /// Continues inside the lexeme after the runs of a branch; the residual after these is `state`.
    pub(super) fn leave_run(&mut self, walk: &mut Walk, branch: &Branch, state: Id, except: &Exceptions) -> Result<()> {
        for (byte, nodes) in branch.exits() {
            let next = self.machine.arena.next(state, byte, self.budget)?;
            if next == EMPTY {
                continue;
            }
            self.budget.spend(nodes.len() as u64)?;
            for &node in nodes {
                let refused =
                    |node| walk.trie.first_token(node).is_some_and(|token| except.tokens.binary_search(&token).is_ok());
                if !except.nodes.contains(&node) && !refused(node) {
                    deep(|| self.enter(walk, node, next))?;
                }
            }
        }
        Ok(())
    }

    /// The ends of a residual: for each, the condition on the rest of the text, and the position after the lexeme.
    pub(super) fn ends_of(&mut self, state: Id) -> Result<Arc<[(Id, u32)]>> {
        if let Some(known) = self.local.steps.ends.get(&state) {
            return Ok(known.clone());
        }
        let mut found = Vec::new();
        for (condition, position) in self.machine.arena.ends(state) {
            if self.machine.arena.alive(condition, self.budget)? {
                found.push((condition, position));
            }
        }
        let found: Arc<[(Id, u32)]> = found.into();
        self.local.steps.ends.insert(state, found.clone());
        Ok(found)
    }

    /// The first bytes of the characters that a condition allows after a lexeme. Whole characters are looked at, since
    /// lexemes do not end inside a character, and complements also contain byte sequences that are not UTF-8.
    pub(super) fn first_behind(&mut self, condition: Id) -> Result<ByteSet> {
        if let Some(&known) = self.local.steps.behind.get(&condition) {
            return Ok(known);
        }
        let first = if condition == TOP { ByteSet::ALL } else { self.machine.arena.first(condition, self.budget)? };
        let mut found = first.and(ByteSet::range(0, 127));
        for lead in lead_bytes() {
            if first.contains(lead.byte) {
                let next = self.machine.arena.next(condition, lead.byte, self.budget)?;
                if self.ends_a_character(next, lead.more, lead.second)? {
                    found.insert(lead.byte);
                }
            }
        }
        // marks of special tokens begin with a byte that is in no character
        found = found.or(first.and(ByteSet::range(0xF5, 0xFF)));
        self.local.steps.behind.insert(condition, found);
        Ok(found)
    }

    /// Whether some text of `more` continuation bytes, the first of which is in `second`, is allowed.
    fn ends_a_character(&mut self, state: Id, more: u8, second: ByteSet) -> Result<bool> {
        let edges: Vec<(ByteSet, Id)> = self.machine.arena.edges(state, self.budget)?.collect();
        for (bytes, next) in edges {
            if !bytes.and(second).is_empty()
                && (more == 1 || self.ends_a_character(next, more - 1, ByteSet::range(0x80, 0xBF))?)
            {
                return Ok(true);
            }
        }
        Ok(false)
    }
}
