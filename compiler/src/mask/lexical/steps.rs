//! Steps: which tokens end inside a lexeme, and what other tokens have after its end.

use std::ops::Deref;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::masks::Followed;
use super::runs::Exceptions;
use crate::byteset::ByteSet;
use crate::error::Result;
use crate::mask::cache::Branch;
use crate::mask::maker::MaskMaker;
use crate::mask::row::Draft;
use crate::mask::shape::lead_bytes;
use crate::recursion::deep;
use crate::regular::{EMPTY, Id, TOP};
use crate::stack::{Closure, Column, Head};
use crate::vocabulary::{Name, NodeIndex, Trie, Vocabulary};

/// The number of a trie on which steps are computed.
pub(super) type Place = u32;

/// The trie of all tokens.
pub(super) const VOCABULARY: Place = 0;

/// On tries with fewer tokens than this, there is no special treatment of runs.
pub(super) const LARGE: usize = 4096;

/// The step of a residual on a trie: what its texts do within the lexeme and at its ends.
#[derive(Default)]
pub(in crate::mask) struct Step {
    /// The tokens that end inside the lexeme, by the residual that they lead to; in constraints that are not careful,
    /// the residual has no meaning.
    pub(super) reached: Vec<(Id, Draft)>,
    pub(super) ends: Vec<End>,
}

/// One way in which a lexeme ends inside tokens.
pub(super) struct End {
    /// The condition on the rest of the text, and the position after the lexeme.
    pub(super) end: (Id, u32),
    /// The column there, where lexemes end lines of which an indenter counts the blanks.
    pub(super) column: Option<Column>,
    /// What the tokens have after this end.
    pub(super) behind: Behind,
    /// Tokens of that trie in which the lexeme does not end in this way, in order.
    pub(super) except: Box<[u32]>,
}

impl End {
    /// Bytes held, roughly.
    fn memory(&self) -> usize {
        let nodes = if let Behind::From(_, nodes) = &self.behind { nodes.len() } else { 0 };
        64 + (nodes + self.except.len()) * 4
    }
}

/// The rests that tokens have after the end of a lexeme.
pub(super) enum Behind {
    Whole(Place),
    /// The texts from some nodes of a trie on; each node is that of the first byte after the end. The trie of these
    /// texts is made when the next lexeme is known, as that mostly begins with few of these bytes.
    From(Place, Box<[NodeIndex]>),
}

/// The place where a trie is stored.
#[derive(Clone)]
pub(super) enum Source {
    Vocabulary,
    AfterBlanks,
    Shared(Arc<Trie>),
}

/// A reference to a trie, wherever it is stored.
pub(super) enum Held<'a> {
    Vocabulary(&'a Trie),
    Shared(Arc<Trie>),
}

impl Deref for Held<'_> {
    type Target = Trie;

    fn deref(&self) -> &Trie {
        match self {
            Held::Vocabulary(trie) => trie,
            Held::Shared(trie) => trie,
        }
    }
}

/// The steps of a constraint that have been computed, and other results that its masks share.
pub(in crate::mask) struct Steps {
    tries: Vec<Source>,
    by_name: FxHashMap<Name, Place>,
    /// The tries that were made from nodes of other tries, by these.
    by_nodes: FxHashMap<Place, FxHashMap<Box<[NodeIndex]>, Place>>,
    taken: FxHashMap<(Place, Id), Arc<Step>>,
    /// Of lexemes that can end lines, by column; `None`: it cannot be made.
    pub(super) lines: FxHashMap<(Place, Id, Column), Option<Arc<Step>>>,
    ends: FxHashMap<Id, Arc<[(Id, u32)]>>,
    /// For each condition, the bytes that it allows after a lexeme.
    behind: FxHashMap<Id, ByteSet>,
    /// For each residual that is a union, its lexemes, with the bytes that each begins with.
    alternatives: FxHashMap<Id, Arc<[(Id, ByteSet)]>>,
    /// For each end of a lexeme, the closure after it, and the bytes with which its heads begin.
    pub(super) closures: FxHashMap<Head, Arc<(Closure, ByteSet)>>,
    /// What the mask at hand has followed; empty between masks.
    pub(super) followed: Followed,
    /// Bytes of the tries and tokens, roughly.
    held: usize,
}

impl Default for Steps {
    fn default() -> Steps {
        Steps {
            tries: vec![Source::Vocabulary],
            by_name: FxHashMap::from_iter([(Name::Tokens, VOCABULARY)]),
            by_nodes: FxHashMap::default(),
            taken: FxHashMap::default(),
            lines: FxHashMap::default(),
            ends: FxHashMap::default(),
            behind: FxHashMap::default(),
            alternatives: FxHashMap::default(),
            closures: FxHashMap::default(),
            followed: Followed::default(),
            held: 0,
        }
    }
}

impl Steps {
    pub(super) fn named(&mut self, name: Name, source: Source) -> Place {
        let next = self.tries.len() as Place;
        let place = *self.by_name.entry(name).or_insert(next);
        if place == next {
            // others may have it, too, but need not keep it as long
            if let Source::Shared(trie) = &source {
                self.held += trie.memory();
            }
            self.tries.push(source);
        }
        place
    }

    /// The trie of the texts from some nodes of a trie on, if it was made before, or one that serves instead.
    fn known_texts(&self, place: Place, nodes: &[NodeIndex]) -> Option<Place> {
        self.by_nodes.get(&place)?.get(nodes).copied()
    }

    fn keep_texts(&mut self, place: Place, nodes: &[NodeIndex], made: Place) {
        self.held += nodes.len() * 4;
        self.by_nodes.entry(place).or_default().insert(nodes.into(), made);
    }

    /// Counts what a step holds.
    pub(super) fn hold(&mut self, step: &Step) {
        let tokens: usize = step.reached.iter().map(|(_, draft)| draft.memory()).sum();
        let ends: usize = step.ends.iter().map(End::memory).sum();
        self.held += tokens + ends;
    }

    /// Bytes held, roughly.
    pub(in crate::mask) fn memory(&self) -> usize {
        let alternatives: usize = self.alternatives.values().map(|all| 64 + all.len() * 40).sum();
        self.held
            + alternatives
            + (self.taken.len() + self.lines.len()) * 160
            + self.closures.len() * 160
            + self.ends.len() * 64
    }
}

/// A step that is being computed.
pub(super) struct Walk<'a> {
    pub(super) trie: &'a Trie,
    careful: bool,
    /// Nodes to be walked, each with the residual there and the bytes to follow.
    pub(super) todo: Vec<(NodeIndex, Id, ByteSet)>,
    reached: FxHashMap<Id, Draft>,
    /// For each end, the nodes of the bytes after it.
    ends: FxHashMap<(Id, u32), Vec<NodeIndex>>,
}

impl<'a> Walk<'a> {
    pub(super) fn new(trie: &'a Trie, careful: bool) -> Walk<'a> {
        Walk { trie, careful, todo: Vec::new(), reached: FxHashMap::default(), ends: FxHashMap::default() }
    }

    /// A walk of the same trie that has found nothing yet.
    pub(super) fn beside(&self) -> Walk<'a> {
        Walk::new(self.trie, self.careful)
    }

    pub(super) fn reach(&mut self, state: Id, tokens: &[u32]) {
        if !tokens.is_empty() {
            let state = if self.careful { state } else { TOP };
            self.reached.entry(state).or_default().set.extend_from_slice(tokens);
        }
    }
}

impl<'a> MaskMaker<'a> {
    /// The trie of a place.
    pub(super) fn trie(&self, place: Place) -> Held<'a> {
        let vocab: &'a Vocabulary = self.vocab;
        match &self.local.steps.tries[place as usize] {
            Source::Vocabulary => Held::Vocabulary(&vocab.trie),
            Source::AfterBlanks => Held::Vocabulary(vocab.after_blanks()),
            Source::Shared(trie) => Held::Shared(trie.clone()),
        }
    }

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
        let trie = self.trie(place);
        let step = Arc::new(self.take(place, &trie, rest)?);
        self.local.steps.hold(&step);
        self.local.steps.taken.insert((place, rest), step.clone());
        Ok(step)
    }

    fn take(&mut self, place: Place, trie: &Trie, rest: Id) -> Result<Step> {
        let mut walk = Walk::new(trie, self.machine.careful);
        walk.todo.push((0, rest, ByteSet::ALL));
        let mut step = Step::default();
        if let Some(name) = trie.name
            && trie.tokens().len() >= LARGE
            && let Some(run) = self.run(rest)?
        {
            self.by_run(name, (rest, run), &mut walk, &mut step)?;
        }
        while let Some((node, state, bytes)) = walk.todo.pop() {
            let first = self.machine.arena.first(state, self.budget)?.and(bytes);
            for (byte, child) in trie.children(node, first) {
                self.budget.spend(1)?;
                let next = self.machine.arena.next(state, byte, self.budget)?;
                self.enter(&mut walk, child, next)?;
            }
        }
        step.reached.extend(walk.reached);
        for (end, mut nodes) in walk.ends {
            nodes.sort_unstable();
            nodes.dedup();
            let behind = Behind::From(place, nodes.into());
            step.ends.push(End { end, column: None, behind, except: [].into() });
        }
        Ok(step)
    }

    /// The trie of the rests after an end that begin with one of these bytes; `None` if there are none.
    pub(super) fn behind(&mut self, behind: &Behind, first: ByteSet) -> Result<Option<Place>> {
        let (place, nodes) = match behind {
            &Behind::Whole(place) => return Ok(Some(place)),
            Behind::From(place, nodes) => (*place, nodes),
        };
        let trie = self.trie(place);
        let fit = nodes.iter().copied().filter(|&node| first.contains(trie.byte(node)));
        let fit: SmallVec<[NodeIndex; 32]> = fit.collect();
        if fit.is_empty() {
            return Ok(None);
        }
        if let Some(known) = self.local.steps.known_texts(place, &fit) {
            return Ok(Some(known));
        }
        // what may follow often differs in a few bytes: one large trie of all serves better than one for each
        let size = |nodes: &[NodeIndex]| nodes.iter().map(|&node| trie.tokens_from(node).len()).sum::<usize>();
        let large = size(&fit);
        if large < LARGE || size(nodes) > 2 * large {
            return self.texts_of(place, &trie, &fit).map(Some);
        }
        let all = self.texts_of(place, &trie, nodes)?;
        self.local.steps.keep_texts(place, &fit, all);
        Ok(Some(all))
    }

    /// The trie of the texts from some nodes on. Large ones, which other grammars will need as well, are kept for all.
    fn texts_of(&mut self, place: Place, trie: &Trie, nodes: &[NodeIndex]) -> Result<Place> {
        if let Some(known) = self.local.steps.known_texts(place, nodes) {
            return Ok(known);
        }
        let tokens: usize = nodes.iter().map(|&node| trie.tokens_from(node).len()).sum();
        self.budget.spend(tokens as u64)?;
        let texts = match trie.name {
            Some(name) if tokens >= LARGE => self.shared.texts_of((name, trie), nodes),
            _ => Arc::new(trie.texts_of(nodes.iter().copied())),
        };
        let steps = &mut self.local.steps;
        let made = match texts.name {
            Some(name) => steps.named(name, Source::Shared(texts)),
            None => {
                steps.held += texts.memory();
                steps.tries.push(Source::Shared(texts));
                steps.tries.len() as Place - 1
            }
        };
        steps.keep_texts(place, nodes, made);
        Ok(made)
    }

    /// Continues a walk at a node at which the residual is `state`.
    pub(super) fn enter(&mut self, walk: &mut Walk, node: NodeIndex, state: Id) -> Result<()> {
        let trie = walk.trie;
        walk.reach(state, trie.tokens_at(node));
        if trie.is_leaf(node) {
            return Ok(());
        }
        let ends = self.ends_of(state)?;
        let after = self.end_at(walk, node, &ends)?;
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
                for &end in ends.iter() {
                    if self.first_behind(end.0)?.contains(byte) {
                        walk.ends.entry(end).or_default().extend_from_slice(nodes);
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
                walk.ends.entry(end).or_default().extend(children);
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
