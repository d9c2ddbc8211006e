//! Steps: which tokens end inside a lexeme, and what the others have behind its end.

use std::ops::Deref;
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::byteset::ByteSet;
use crate::error::Result;
use crate::mask::cache::Branch;
use crate::mask::maker::MaskMaker;
use crate::mask::row::Draft;
use crate::mask::shape::lead_bytes;
use crate::recursion::deep;
use crate::regular::{EMPTY, Id, TOP};
use crate::stack::{Closure, Head};
use crate::vocabulary::{Name, NodeIndex, Trie, Vocabulary, blank_bytes, clear_bit, set_bit};

/// A trie that steps are taken on, by its number.
pub(super) type Place = u32;

/// The trie of all tokens.
pub(super) const VOCABULARY: Place = 0;

/// On tries of fewer tokens than this, runs are walked like everything else.
const LARGE: usize = 4096;

/// What follows a residual on a trie, as long as its lexeme goes on.
#[derive(Default)]
pub(in crate::mask) struct Step {
    /// The tokens that end inside the lexeme, by the residual that they lead to; in constraints that are not careful, by
    /// any of these.
    pub(super) reached: Vec<(Id, Draft)>,
    pub(super) ends: Vec<End>,
}

/// One way in which a lexeme ends inside tokens.
pub(super) struct End {
    /// What the whole rest must be in, and the position behind the lexeme.
    pub(super) end: (Id, u32),
    /// What the tokens have behind it.
    pub(super) behind: Behind,
    /// Tokens of that trie that the lexeme does not end in, in order.
    pub(super) except: Box<[u32]>,
}

impl End {
    /// Bytes held, roughly.
    fn memory(&self) -> usize {
        let nodes = if let Behind::From(_, nodes) = &self.behind { nodes.len() } else { 0 };
        64 + (nodes + self.except.len()) * 4
    }
}

/// What tokens have behind the end of a lexeme.
pub(super) enum Behind {
    Whole(Place),
    /// The texts from some nodes on, each of which the byte behind the end leads to. They are no trie yet: what follows
    /// the lexeme mostly begins with few of these bytes.
    From(Place, Box<[NodeIndex]>),
}

/// Where a trie is.
#[derive(Clone)]
enum Source {
    Vocabulary,
    AfterBlanks,
    Shared(Arc<Trie>),
}

/// A trie, wherever it is.
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

/// The steps of a constraint, and what its masks find out besides.
pub(in crate::mask) struct Steps {
    tries: Vec<Source>,
    by_name: FxHashMap<Name, Place>,
    /// By the trie that it was made from, and the nodes there.
    by_nodes: FxHashMap<(Place, Box<[NodeIndex]>), Place>,
    taken: FxHashMap<(Place, Id), Arc<Step>>,
    ends: FxHashMap<Id, Arc<[(Id, u32)]>>,
    /// The bytes that conditions admit behind a lexeme.
    behind: FxHashMap<Id, ByteSet>,
    /// The lexemes of a union, with the bytes that each begins with.
    alternatives: FxHashMap<Id, Arc<[(Id, ByteSet)]>>,
    /// What follows the ends of lexemes, and the bytes that it begins with.
    pub(super) closures: FxHashMap<Head, Arc<(Closure, ByteSet)>>,
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
            ends: FxHashMap::default(),
            behind: FxHashMap::default(),
            alternatives: FxHashMap::default(),
            closures: FxHashMap::default(),
            held: 0,
        }
    }
}

impl Steps {
    fn named(&mut self, name: Name, source: Source) -> Place {
        let next = self.tries.len() as Place;
        let place = *self.by_name.entry(name).or_insert(next);
        if place == next {
            self.tries.push(source);
        }
        place
    }

    /// Bytes held, roughly.
    pub(in crate::mask) fn memory(&self) -> usize {
        let alternatives: usize = self.alternatives.values().map(|all| 64 + all.len() * 40).sum();
        self.held + alternatives + self.taken.len() * 160 + self.closures.len() * 160 + self.ends.len() * 64
    }
}

/// A step under way.
struct Walk<'a> {
    trie: &'a Trie,
    careful: bool,
    /// Nodes with the residuals that lead there, and the bytes to go on with.
    todo: Vec<(NodeIndex, Id, ByteSet)>,
    reached: FxHashMap<Id, Draft>,
    /// By end: the nodes that the bytes behind it lead to.
    ends: FxHashMap<(Id, u32), Vec<NodeIndex>>,
}

impl Walk<'_> {
    fn reach(&mut self, state: Id, tokens: &[u32]) {
        if !tokens.is_empty() {
            let state = if self.careful { state } else { TOP };
            self.reached.entry(state).or_default().set.extend_from_slice(tokens);
        }
    }
}

/// A run of characters that a residual begins with: an identifier, blanks, digits.
#[derive(Clone, Copy)]
struct Run {
    /// The residual behind any number of them, for most texts.
    within: Id,
    /// The bytes of the characters.
    plain: ByteSet,
}

/// Where a residual and the one inside of the run that it begins with differ.
#[derive(Default)]
struct Exceptions {
    /// Tokens that the residual refuses, or that lead it elsewhere.
    tokens: FxHashSet<u32>,
    /// Nodes behind the first byte that is not plain, which the residual leads to in another way, if at all.
    nodes: FxHashSet<NodeIndex>,
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

    /// The lexemes of a union, each under the conditions that it is under, with the bytes that it begins with.
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
        let tokens: usize = step.reached.iter().map(|(_, draft)| draft.memory()).sum();
        let ends: usize = step.ends.iter().map(End::memory).sum();
        self.local.steps.held += tokens + ends;
        self.local.steps.taken.insert((place, rest), step.clone());
        Ok(step)
    }

    fn take(&mut self, place: Place, trie: &Trie, rest: Id) -> Result<Step> {
        let careful = self.machine.careful;
        let (reached, ends) = Default::default();
        let mut walk = Walk { trie, careful, todo: vec![(0, rest, ByteSet::ALL)], reached, ends };
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
            step.ends.push(End { end, behind: Behind::From(place, nodes.into()), except: [].into() });
        }
        Ok(step)
    }

    /// The trie of what tokens have behind an end that begins with one of these bytes; `None`: there is nothing.
    pub(super) fn behind(&mut self, behind: &Behind, first: ByteSet) -> Result<Option<Place>> {
        let (place, nodes) = match behind {
            &Behind::Whole(place) => return Ok(Some(place)),
            Behind::From(place, nodes) => (*place, nodes),
        };
        let trie = self.trie(place);
        let nodes: Vec<NodeIndex> = nodes.iter().copied().filter(|&node| first.contains(trie.byte(node))).collect();
        if nodes.is_empty() { Ok(None) } else { self.texts_of(place, &trie, nodes).map(Some) }
    }

    /// The trie of the texts from some nodes on.
    fn texts_of(&mut self, place: Place, trie: &Trie, nodes: Vec<NodeIndex>) -> Result<Place> {
        let steps = &mut self.local.steps;
        let key = (place, nodes.into_boxed_slice());
        if let Some(&known) = steps.by_nodes.get(&key) {
            return Ok(known);
        }
        let texts = trie.texts_of(key.1.iter().copied());
        self.budget.spend(texts.tokens().len() as u64)?;
        steps.held += texts.memory() + key.1.len() * 4;
        steps.tries.push(Source::Shared(Arc::new(texts)));
        let made = steps.tries.len() as Place - 1;
        steps.by_nodes.insert(key, made);
        Ok(made)
    }

    /// Goes on with a walk at a node that a residual leads to.
    fn enter(&mut self, walk: &mut Walk, node: NodeIndex, state: Id) -> Result<()> {
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

    /// Notes what is behind the ends at a node. Returns the bytes that may stand behind one.
    fn end_at(&mut self, walk: &mut Walk, node: NodeIndex, ends: &[(Id, u32)]) -> Result<ByteSet> {
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

    /// Goes on inside the lexeme behind the runs of a branch, which lead to `state`.
    fn leave_run(&mut self, walk: &mut Walk, branch: &Branch, state: Id, except: &Exceptions) -> Result<()> {
        for (byte, nodes) in branch.exits() {
            let next = self.machine.arena.next(state, byte, self.budget)?;
            if next == EMPTY {
                continue;
            }
            self.budget.spend(nodes.len() as u64)?;
            for &node in nodes {
                let refused = |node| walk.trie.first_token(node).is_some_and(|token| except.tokens.contains(&token));
                if !except.nodes.contains(&node) && !refused(node) {
                    deep(|| self.enter(walk, node, next))?;
                }
            }
        }
        Ok(())
    }

    /// The ends of a residual.
    fn ends_of(&mut self, state: Id) -> Result<Arc<[(Id, u32)]>> {
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

    /// The bytes that characters begin with which a condition on what follows admits. Lexemes do not end inside of a
    /// character, and complements also hold what is none.
    fn first_behind(&mut self, condition: Id) -> Result<ByteSet> {
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
        // marks of special tokens begin with a byte that no character has
        found = found.or(first.and(ByteSet::range(0xF5, 0xFF)));
        self.local.steps.behind.insert(condition, found);
        Ok(found)
    }

    /// Whether some `more` continuation bytes, the first of a set, lead to something alive.
    fn ends_a_character(&mut self, state: Id, more: u8, second: ByteSet) -> Result<bool> {
        let edges = self.machine.arena.edges(state, self.budget)?.to_vec();
        for (bytes, next) in edges {
            if !bytes.and(second).is_empty()
                && (more == 1 || self.ends_a_character(next, more - 1, ByteSet::range(0x80, 0xBF))?)
            {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The run that a residual begins with, if its end can be told by the next character.
    fn run(&mut self, rest: Id) -> Result<Option<Run>> {
        let mut found: Option<Run> = None;
        for (bytes, within) in self.machine.arena.edges(rest, self.budget)?.to_vec() {
            let plain = match self.self_loop(within)? {
                Some(plain) => plain,
                None => {
                    let edges = self.machine.arena.edges(within, self.budget)?;
                    let back = edges.iter().filter(|edge| edge.1 == within).fold(ByteSet::NONE, |all, e| all.or(e.0));
                    back.and(ByteSet::range(0, 127))
                }
            };
            let mut after = ByteSet::NONE;
            for &(condition, _) in self.ends_of(within)?.iter() {
                after = after.or(self.first_behind(condition)?);
            }
            let is_longer = |other: Run| plain.len() > other.plain.len();
            if !bytes.and(plain).is_empty() && after.and(plain).is_empty() && found.is_none_or(is_longer) {
                found = Some(Run { within, plain });
            }
        }
        Ok(found)
    }

    /// Takes the tokens that begin with a run from what is known of the vocabulary, if few of them are exceptions. The
    /// walk is left what else there is.
    fn by_run(&mut self, name: Name, (rest, run): (Id, Run), walk: &mut Walk, step: &mut Step) -> Result<()> {
        let (trie, Run { within, plain }) = (walk.trie, run);
        let ends = self.ends_of(within)?;
        let mut others = Walk { todo: Vec::new(), reached: FxHashMap::default(), ends: FxHashMap::default(), ..*walk };
        let Some(except) = self.exceptions((rest, run), &ends, &mut others)? else { return Ok(()) };
        others.todo.push((0, rest, ByteSet::ALL.minus(plain)));
        *walk = others;
        let leads_on = !self.machine.arena.first(within, self.budget)?.minus(plain).is_empty();
        let is_blank = plain == blank_bytes() && name == Name::Tokens;
        let mut row: Arc<[u32]> = if is_blank && !leads_on {
            self.blank_row().into()
        } else {
            let branch = self.shared.branch((name, trie), 0, plain);
            self.leave_run(walk, &branch, within, &except)?;
            branch.row(self.vocab.words())
        };
        self.budget.spend(row.len() as u64 / 16)?;
        let mut except: Vec<u32> = except.tokens.into_iter().collect();
        except.sort_unstable();
        let except: Box<[u32]> = except.into();
        if !except.is_empty() {
            let mut bits = row.to_vec();
            except.iter().for_each(|&token| clear_bit(&mut bits, token));
            row = bits.into();
        }
        step.reached.push((within, Draft { base: Some(row), ..Draft::default() }));
        for &end in ends.iter() {
            let behind = if is_blank {
                self.local.steps.named(Name::AfterBlanks, Source::AfterBlanks)
            } else {
                let behind = self.shared.runs((name, trie), plain).behind.clone();
                self.local.steps.named(behind.name.expect("it has one"), Source::Shared(behind))
            };
            step.ends.push(End { end, behind: Behind::Whole(behind), except: except.clone() });
        }
        Ok(())
    }

    /// The tokens that are blanks and nothing else.
    fn blank_row(&self) -> Vec<u32> {
        let mut bits = vec![0; self.vocab.words()];
        self.vocab.blank_runs().iter().flat_map(|run| &run.tokens).for_each(|&token| set_bit(&mut bits, token));
        bits
    }

    /// Follows a residual and the one inside of a run in lockstep, where plain bytes do not lead both to the same. What
    /// the residual does there is noted in `walk`. `None` if the exceptions are too many.
    fn exceptions(
        &mut self,
        (rest, run): (Id, Run),
        ends: &[(Id, u32)],
        walk: &mut Walk,
    ) -> Result<Option<Exceptions>> {
        let (trie, others) = (walk.trie, ByteSet::ALL.minus(run.plain));
        let mut except = Exceptions::default();
        let mut todo = vec![(0, rest, run.within)];
        while let Some((node, ours, theirs)) = todo.pop() {
            let mut left = trie.child_bytes(node).and(run.plain);
            while let Some(byte) = left.first() {
                self.budget.spend(1)?;
                let (our_bytes, ours) = self.class(ours, byte)?;
                let (their_bytes, theirs) = self.class(theirs, byte)?;
                let class = our_bytes.and(their_bytes).and(left);
                left = left.minus(class);
                if ours == theirs {
                    continue;
                } else if except.tokens.len() > LARGE {
                    return Ok(None);
                }
                for (_, child) in trie.children(node, class) {
                    if ours == EMPTY {
                        trie.texts_from(child, &mut |_, token| except.tokens.extend([token]));
                    } else if theirs == EMPTY {
                        self.enter(walk, child, ours)?;
                    } else {
                        except.tokens.extend(trie.tokens_at(child));
                        walk.reach(ours, trie.tokens_at(child));
                        let found = self.ends_of(ours)?;
                        let is_whole = theirs == run.within;
                        for (_, after) in trie.children(child, others) {
                            except.nodes.insert(after);
                            if is_whole && found[..] != *ends {
                                trie.texts_from(after, &mut |_, token| except.tokens.extend([token]));
                            }
                        }
                        if !is_whole || found[..] != *ends {
                            self.end_at(walk, child, &found)?;
                        }
                        walk.todo.push((child, ours, others));
                        todo.push((child, ours, theirs));
                    }
                }
            }
        }
        Ok(Some(except))
    }

    /// The residual after a byte, and the bytes that lead there.
    fn class(&mut self, state: Id, byte: u8) -> Result<(ByteSet, Id)> {
        let (bytes, next) = self.machine.arena.edge(state, byte, self.budget)?;
        if next != EMPTY {
            return Ok((bytes, next));
        }
        Ok((ByteSet::ALL.minus(self.machine.arena.first(state, self.budget)?), EMPTY))
    }
}
