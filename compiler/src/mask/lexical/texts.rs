//! Texts on which steps are computed: those of a trie, or those from some of its nodes on.
//!
//! What tokens have after the end of a lexeme begins at nodes of the trie in which that end was found. Of one branch, or
//! of few tokens, no trie is made: the texts are walked from these nodes. Otherwise, one trie of them all is made, when
//! the next lexeme is known, as that mostly begins with few of the bytes.

use std::ops::Deref;
use std::sync::{Arc, Weak};

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use crate::byteset::ByteSet;
use crate::error::Result;
use crate::mask::maker::MaskMaker;
use crate::vocabulary::{Name, NodeIndex, Trie, Vocabulary};

/// Texts that have a number, or those from one node of their trie on, which need none.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Place {
    number: u32,
    /// 0 is the root, at which all texts of the trie begin.
    branch: NodeIndex,
}

impl Place {
    const fn all(number: u32) -> Place {
        Place { number, branch: 0 }
    }

    fn number(self) -> usize {
        self.number as usize
    }

    /// The node, if it is one.
    pub(super) fn branch(self) -> Option<NodeIndex> {
        (self.branch != 0).then_some(self.branch)
    }

    /// The texts from another node of the same trie on.
    pub(super) fn at(self, branch: NodeIndex) -> Place {
        Place { branch, ..self }
    }
}

/// The texts of all tokens.
pub(super) const VOCABULARY: Place = Place::all(0);

/// Nodes of a trie at which texts begin, each with its byte.
#[derive(Clone)]
pub(super) enum Nodes {
    /// The texts are all of the trie.
    All,
    One(NodeIndex),
    These(Arc<[NodeIndex]>),
}

impl Nodes {
    fn these(nodes: &[NodeIndex]) -> Nodes {
        match *nodes {
            [node] => Nodes::One(node),
            _ => Nodes::These(nodes.into()),
        }
    }

    /// `None`: the texts are all of the trie.
    pub(super) fn list(&self) -> Option<&[NodeIndex]> {
        match self {
            Nodes::All => None,
            Nodes::One(node) => Some(std::slice::from_ref(node)),
            Nodes::These(nodes) => Some(nodes),
        }
    }

    /// Bytes held, roughly.
    fn memory(&self) -> usize {
        if let Nodes::These(nodes) = self { nodes.len() * 4 } else { 0 }
    }
}

/// Of fewer tokens than this, no trie of their texts is made.
const FEW: usize = 64;

/// On tries with fewer tokens than this, there is no special treatment of runs.
pub(super) const LARGE: usize = 4096;

/// Texts on which steps are computed.
struct Texts {
    source: Source,
    /// The place of all texts of the trie.
    whole: Place,
    nodes: Nodes,
    /// The bytes with which they begin, and perhaps others.
    starts: ByteSet,
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

/// What tokens have after an end of a lexeme.
pub(super) struct Rests {
    number: u32,
    pub(super) place: Place,
    pub(super) nodes: Nodes,
    /// The bytes with which they begin, and perhaps others.
    starts: ByteSet,
    pub(super) tokens: usize,
}

/// The same on a trie that has a name, without numbers of a constraint.
pub(super) struct NamedRests {
    name: Name,
    /// The trie, if it is not the vocabulary's: constraints and their cache keep it.
    trie: Weak<Trie>,
    nodes: Nodes,
    starts: ByteSet,
    tokens: usize,
}

impl NamedRests {
    /// Bytes held, roughly.
    pub(super) fn memory(&self) -> usize {
        64 + self.nodes.memory()
    }
}

impl Rests {
    /// Whether some of them begin with one of these bytes, as far as is known.
    pub(super) fn may_begin(&self, bytes: ByteSet) -> bool {
        !self.starts.and(bytes).is_empty()
    }

    /// Bytes held, roughly.
    pub(super) fn memory(&self) -> usize {
        64 + self.nodes.memory()
    }
}

/// The texts that steps have been computed on.
pub(super) struct Places {
    all: Vec<Texts>,
    by_name: FxHashMap<Name, Place>,
    /// The texts from some nodes of tries on, or others that serve instead, by these.
    by_nodes: FxHashMap<Place, FxHashMap<Box<[NodeIndex]>, Place>>,
    /// Those of some rests that begin with certain bytes, by their number.
    by_bytes: FxHashMap<(u32, ByteSet), Place>,
    /// How many rests there are.
    rests: u32,
    /// Bytes of the tries and of lists of nodes.
    exact: usize,
}

impl Default for Places {
    fn default() -> Places {
        let vocabulary =
            Texts { source: Source::Vocabulary, whole: VOCABULARY, nodes: Nodes::All, starts: ByteSet::ALL };
        Places {
            all: vec![vocabulary],
            by_name: FxHashMap::from_iter([(Name::Tokens, VOCABULARY)]),
            by_nodes: FxHashMap::default(),
            by_bytes: FxHashMap::default(),
            rests: 0,
            exact: 0,
        }
    }
}

impl Places {
    /// Those of a trie with a name.
    pub(super) fn named(&mut self, name: Name, source: Source, trie: &Trie) -> Place {
        if let Some(&known) = self.by_name.get(&name) {
            return known;
        }
        let place = self.add(source, trie);
        self.by_name.insert(name, place);
        place
    }

    /// Those of a trie.
    fn add(&mut self, source: Source, trie: &Trie) -> Place {
        if let Source::Shared(_) = source {
            self.exact += trie.memory(); // others may have it, too, but need not keep it as long
        }
        let place = Place::all(self.all.len() as u32);
        self.all.push(Texts { source, whole: place, nodes: Nodes::All, starts: trie.child_bytes(0) });
        place
    }

    /// Those from some nodes of a trie on.
    fn add_from(&mut self, (whole, trie): (Place, &Trie), nodes: &[NodeIndex]) -> Place {
        let source = self.all[whole.number()].source.clone();
        self.all.push(Texts { source, whole, nodes: Nodes::these(nodes), starts: bytes_of(trie, nodes) });
        Place::all(self.all.len() as u32 - 1)
    }

    fn known(&self, whole: Place, nodes: &[NodeIndex]) -> Option<Place> {
        self.by_nodes.get(&whole)?.get(nodes).copied()
    }

    fn keep(&mut self, whole: Place, nodes: &[NodeIndex], place: Place) {
        self.exact += nodes.len() * 4;
        self.by_nodes.entry(whole).or_default().insert(nodes.into(), place);
    }

    fn number(&mut self) -> u32 {
        self.rests += 1;
        self.rests
    }

    /// Bytes of tries and lists, which have no room to grow.
    pub(super) fn exact_bytes(&self) -> usize {
        self.exact
    }

    /// Bytes of everything else, roughly.
    pub(super) fn memory(&self) -> usize {
        (self.all.len() + self.by_bytes.len()) * 64
    }
}

/// Nodes that were found, mostly few.
pub(super) type Found = SmallVec<[NodeIndex; 8]>;

/// The bytes that lead to some nodes.
fn bytes_of(trie: &Trie, nodes: &[NodeIndex]) -> ByteSet {
    let mut bytes = ByteSet::NONE;
    nodes.iter().for_each(|&node| bytes.insert(trie.byte(node)));
    bytes
}

impl<'a> MaskMaker<'a> {
    /// The trie of a place.
    pub(super) fn trie(&self, place: Place) -> Held<'a> {
        self.held(&self.local.steps.places.all[place.number()].source)
    }

    fn held(&self, source: &Source) -> Held<'a> {
        let vocab: &'a Vocabulary = self.vocab;
        match source {
            Source::Vocabulary => Held::Vocabulary(&vocab.trie),
            Source::AfterBlanks => Held::Vocabulary(vocab.after_blanks()),
            Source::Shared(trie) => Held::Shared(trie.clone()),
        }
    }

    /// The nodes of its trie at which the texts of a place begin.
    pub(super) fn nodes(&self, place: Place) -> Nodes {
        match place.branch {
            0 => self.local.steps.places.all[place.number()].nodes.clone(),
            branch => Nodes::One(branch),
        }
    }

    /// The bytes with which the texts of a place begin, and perhaps others.
    pub(super) fn starts(&self, place: Place) -> ByteSet {
        match place.branch {
            0 => self.local.steps.places.all[place.number()].starts,
            branch => bytes_of(&self.trie(place), &[branch]),
        }
    }

    /// The tokens of a place.
    pub(super) fn tokens_of(&self, place: Place) -> Vec<u32> {
        let trie = self.trie(place);
        match self.nodes(place).list() {
            None => trie.tokens().to_vec(),
            Some(nodes) => nodes.iter().flat_map(|&node| trie.tokens_from(node)).copied().collect(),
        }
    }

    /// The rests that begin at some nodes of the trie of a place, each with its byte.
    pub(super) fn rests_from(&mut self, (place, trie): (Place, &Trie), mut nodes: Found) -> Rests {
        nodes.sort_unstable();
        nodes.dedup();
        let places = &mut self.local.steps.places;
        Rests {
            number: places.number(),
            place: places.all[place.number()].whole,
            starts: bytes_of(trie, &nodes),
            tokens: nodes.iter().map(|&node| trie.tokens_from(node).len()).sum(),
            nodes: Nodes::these(&nodes),
        }
    }

    /// The rests that are all texts of the trie of a place.
    pub(super) fn rests_of(&mut self, place: Place) -> Rests {
        let tokens = self.trie(place).tokens().len();
        let places = &mut self.local.steps.places;
        Rests { number: places.number(), place, nodes: Nodes::All, starts: places.all[place.number()].starts, tokens }
    }

    /// Rests without numbers of this constraint, if their trie has a name.
    pub(super) fn share_rests(&self, rests: &Rests) -> Option<NamedRests> {
        let trie = match &self.local.steps.places.all[rests.place.number()].source {
            Source::Vocabulary | Source::AfterBlanks => Weak::new(),
            Source::Shared(trie) => Arc::downgrade(trie),
        };
        let (nodes, starts, tokens) = (rests.nodes.clone(), rests.starts, rests.tokens);
        self.trie(rests.place).name.map(|name| NamedRests { name, trie, nodes, starts, tokens })
    }

    /// The rests that another constraint has found, if their trie is there still.
    pub(super) fn shared_rests(&mut self, named: &NamedRests) -> Option<Rests> {
        let source = match named.name {
            Name::Tokens => Source::Vocabulary,
            Name::AfterBlanks => Source::AfterBlanks,
            Name::Behind(_) => Source::Shared(named.trie.upgrade()?),
        };
        let trie = self.held(&source);
        let places = &mut self.local.steps.places;
        let place = places.named(named.name, source, &trie);
        let (nodes, starts, tokens) = (named.nodes.clone(), named.starts, named.tokens);
        Some(Rests { number: places.number(), place, nodes, starts, tokens })
    }

    /// The place of those rests that begin with one of these bytes, and perhaps others; `None` if there are none.
    pub(super) fn place_of(&mut self, rests: &Rests, first: ByteSet) -> Result<Option<Place>> {
        let bytes = first.and(rests.starts);
        if bytes.is_empty() {
            return Ok(None);
        }
        let nodes = match &rests.nodes {
            Nodes::All => return Ok(Some(rests.place)),
            &Nodes::One(branch) if rests.tokens < LARGE => return Ok(Some(rests.place.at(branch))),
            nodes => nodes.list().expect("they are not all"),
        };
        let key = (rests.number, bytes);
        if let Some(&known) = self.local.steps.places.by_bytes.get(&key) {
            return Ok(Some(known));
        }
        let trie = self.trie(rests.place);
        let fit = nodes.iter().copied().filter(|&node| bytes.contains(trie.byte(node)));
        let fit: Found = fit.collect();
        let place = self.texts_from((rests.place, &trie), &fit, (nodes, rests.tokens))?;
        self.local.steps.places.by_bytes.insert(key, place);
        Ok(Some(place))
    }

    /// The texts from some nodes of the trie of a place on.
    pub(super) fn texts_at(&mut self, (place, trie): (Place, &Trie), nodes: &[NodeIndex]) -> Result<Place> {
        let tokens = nodes.iter().map(|&node| trie.tokens_from(node).len()).sum();
        self.texts_from((Place::all(place.number), trie), nodes, (nodes, tokens))
    }

    /// The texts from some nodes of a trie on, which are among the nodes of rests of so many tokens.
    fn texts_from(
        &mut self,
        (whole, trie): (Place, &Trie),
        fit: &[NodeIndex],
        (all, tokens_of_all): (&[NodeIndex], usize),
    ) -> Result<Place> {
        if let Some(known) = self.local.steps.places.known(whole, fit) {
            return Ok(known);
        }
        let tokens: usize = fit.iter().map(|&node| trie.tokens_from(node).len()).sum();
        if tokens < LARGE
            && let &[branch] = fit
        {
            return Ok(whole.at(branch));
        }
        // what may follow often differs in a few bytes: one large trie of all serves better than one for each
        let place = if tokens >= LARGE && tokens_of_all <= 2 * tokens {
            self.trie_from((whole, trie), all)?
        } else if tokens < FEW {
            self.local.steps.places.add_from((whole, trie), fit)
        } else {
            self.trie_from((whole, trie), fit)?
        };
        self.local.steps.places.keep(whole, fit, place);
        Ok(place)
    }

    /// The trie of the texts from some nodes on. Large ones, which other grammars will need as well, are kept for all.
    fn trie_from(&mut self, (whole, trie): (Place, &Trie), nodes: &[NodeIndex]) -> Result<Place> {
        if let Some(known) = self.local.steps.places.known(whole, nodes) {
            return Ok(known);
        }
        let tokens: usize = nodes.iter().map(|&node| trie.tokens_from(node).len()).sum();
        self.budget.spend(tokens as u64)?;
        let texts = match trie.name {
            Some(name) if tokens >= LARGE => self.shared.texts_of((name, trie), nodes),
            _ => Arc::new(trie.texts_of(nodes.iter().copied())),
        };
        let places = &mut self.local.steps.places;
        let place = match texts.name {
            Some(name) => places.named(name, Source::Shared(texts.clone()), &texts),
            None => places.add(Source::Shared(texts.clone()), &texts),
        };
        places.keep(whole, nodes, place);
        Ok(place)
    }
}
