//! A trie of token texts (or of their ends).
//!
//! The children of a node lie side by side, so that a walk reads their bytes from one cache line and never visits those
//! that it cannot enter. Where there are many, a set of their bytes says which these are.

use super::get_bit;
use crate::byteset::ByteSet;

/// Nodes with fewer children than this have no set of their bytes: the children are tried one by one.
pub(super) const MANY: usize = 12;
pub(super) const NO_SET: u32 = u32::MAX;
/// Nodes with fewer tokens below have no set of all bytes below.
pub(super) const BULK: u32 = 16;

/// A node's number; the root's is 0.
pub type NodeIndex = u32;

/// A vocabulary's own tries.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Name {
    /// Of all tokens.
    Tokens,
    /// Of the rest of each token that begins with whitespace, behind that whitespace.
    AfterBlanks,
    /// Of the rest of each token that begins with certain characters, behind these; by a number.
    Behind(u32),
}

#[derive(Clone, Copy, Debug)]
pub(super) struct TrieNode {
    pub(super) first_child: NodeIndex,
    pub(super) first_token: u32,
    /// Past the tokens of this node and of all below it.
    pub(super) end_token: u32,
    /// Where the set of the children's bytes is, if there are many.
    pub(super) set: u32,
    /// Where the set of all bytes below is, if there are many tokens.
    pub(super) below: u32,
    pub(super) children: u16,
    /// Whether all texts below are UTF-8, if a character ends before them; the last one of each may be cut off. `false` in
    /// tries without a name.
    pub(super) utf8: bool,
    /// Tokens whose text ends here.
    pub(super) tokens: u32,
}

pub(super) const EMPTY_NODE: TrieNode = TrieNode {
    first_child: 0,
    first_token: 0,
    end_token: 0,
    set: NO_SET,
    below: NO_SET,
    children: 0,
    utf8: false,
    tokens: 0,
};

/// Texts in order, with what belongs to them. Most differ in their first bytes, which are compared as one number: a look
/// at the texts themselves is mostly a cache miss.
pub(super) fn sorted<T: Ord>(items: Vec<(&[u8], T)>) -> Vec<(&[u8], T)> {
    let beginning = |text: &[u8]| {
        let mut bytes = [0; 8];
        bytes.iter_mut().zip(text).for_each(|(to, from)| *to = *from);
        u64::from_be_bytes(bytes)
    };
    let mut keyed: Vec<_> = items.into_iter().map(|item| (beginning(item.0), item)).collect();
    keyed.sort_unstable();
    keyed.into_iter().map(|(_, item)| item).collect()
}

/// Which places of a list are kept, and how many before each.
struct Places {
    /// 64 places each, and how many are kept before them.
    words: Vec<(u64, u32)>,
}

impl Places {
    /// Where tokens are that are in a row of bits.
    fn of(tokens: &[u32], row: &[u32]) -> Places {
        let mut before = 0;
        let mut words = Vec::with_capacity(tokens.len() / 64 + 2);
        for some in tokens.chunks(64) {
            let word = some.iter().rev().fold(0, |word, &token| word << 1 | u64::from(get_bit(row, token)));
            words.push((word, before));
            before += word.count_ones();
        }
        words.push((0, before));
        Places { words }
    }

    /// What is at the places.
    fn items<'a>(&'a self, all: &'a [u32]) -> impl Iterator<Item = u32> + 'a {
        self.words.iter().zip(all.chunks(64)).flat_map(|(&(word, _), some)| {
            let mut left = word;
            std::iter::from_fn(move || {
                let at = left.trailing_zeros();
                left &= left.wrapping_sub(1);
                some.get(at as usize).copied()
            })
        })
    }

    /// How many places before this one are kept.
    fn before(&self, at: u32) -> u32 {
        let (word, before) = self.words[at as usize / 64];
        before + (word & !(u64::MAX << (at % 64))).count_ones()
    }
}

/// Texts with the tokens that they stand for.
#[derive(Debug)]
pub struct Trie {
    /// The name of a trie that lives as long as its vocabulary: facts about its branches are cached under it.
    pub name: Option<Name>,
    /// What is below a node lies side by side.
    pub(super) nodes: Vec<TrieNode>,
    /// The byte that leads to each node.
    pub(super) bytes: Vec<u8>,
    pub(super) sets: Vec<ByteSet>,
    /// In the order of their texts.
    pub(super) tokens: Vec<u32>,
}

impl Trie {
    /// Without any nodes.
    pub(super) fn bare() -> Trie {
        Trie { name: None, nodes: Vec::new(), bytes: Vec::new(), sets: Vec::new(), tokens: Vec::new() }
    }

    /// Empty texts are left out.
    pub fn new(mut items: Vec<(&[u8], u32)>) -> Trie {
        items.retain(|(text, _)| !text.is_empty());
        let mut items = sorted(items);
        items.dedup();
        Trie::of_sorted(&items)
    }

    /// Of texts that are not empty, in order, each with another token.
    pub fn of_sorted(items: &[(&[u8], u32)]) -> Trie {
        debug_assert!(items.windows(2).all(|pair| pair[0] < pair[1]) && items.iter().all(|item| !item.0.is_empty()));
        let mut trie = Trie {
            name: None,
            nodes: Vec::with_capacity(items.len() * 2),
            bytes: Vec::with_capacity(items.len() * 2),
            sets: Vec::new(),
            tokens: items.iter().map(|i| i.1).collect(),
        };
        trie.add(0);
        // nodes to be given their children: the items below and how many bytes lead there; last in, first out, so that
        // what lies below a node lies near it
        let mut todo: Vec<(NodeIndex, u32, u32, usize)> = vec![(0, 0, items.len() as u32, 0)];
        let mut groups: Vec<(u8, u32, u32)> = Vec::new();
        while let Some((node, from, to, depth)) = todo.pop() {
            let here = items[from as usize..to as usize].iter().take_while(|i| i.0.len() == depth).count() as u32;
            groups.clear();
            for i in from + here..to {
                let byte = items[i as usize].0[depth];
                match groups.last_mut() {
                    Some(group) if group.0 == byte => group.2 = i + 1,
                    _ => groups.push((byte, i, i + 1)),
                }
            }
            let first_child = trie.nodes.len() as NodeIndex;
            groups.iter().for_each(|g| trie.add(g.0));
            let set = if groups.len() < MANY {
                NO_SET
            } else {
                let mut set = ByteSet::NONE;
                groups.iter().for_each(|g| set.insert(g.0));
                trie.sets.push(set);
                trie.sets.len() as u32 - 1
            };
            let children = groups.len() as u16;
            trie.nodes[node as usize] =
                TrieNode { first_child, first_token: from, end_token: to, set, children, tokens: here, ..EMPTY_NODE };
            let children = groups.iter().enumerate().rev();
            todo.extend(children.map(|(k, &(_, from, to))| (first_child + k as u32, from, to, depth + 1)));
        }
        trie.find_bytes_below();
        trie
    }

    /// The trie of those of its tokens that are in a row of bits. What belongs to the others is not looked at.
    pub fn restricted(&self, row: &[u32]) -> Trie {
        let kept = Places::of(&self.tokens, row);
        let tokens = kept.items(&self.tokens).collect();
        let mut made = Trie { tokens, ..Trie::bare() };
        made.add(0);
        // nodes to be given their children, each with its source and how many tokens are kept before and in it
        let mut todo: Vec<(NodeIndex, NodeIndex, u32, u32)> = vec![(0, 0, 0, made.tokens.len() as u32)];
        while let Some((node, source, first_token, end_token)) = todo.pop() {
            let source = self.nodes[source as usize];
            let own = kept.before(source.first_token + source.tokens);
            let (first_child, pending, mut bytes) = (made.nodes.len() as NodeIndex, todo.len(), ByteSet::NONE);
            let mut before = own; // what is below a child comes behind what is below the child before it
            for child in source.first_child..source.first_child + NodeIndex::from(source.children) {
                if before == end_token {
                    break;
                }
                let end = kept.before(self.nodes[child as usize].end_token);
                if before < end {
                    todo.push((made.nodes.len() as NodeIndex, child, before, end));
                    made.add(self.byte(child));
                    bytes.insert(self.byte(child));
                    before = end;
                }
            }
            todo[pending..].reverse(); // so that what lies below a node lies near it
            let children = (todo.len() - pending) as u16;
            let mut set = NO_SET;
            if usize::from(children) >= MANY {
                made.sets.push(bytes);
                set = made.sets.len() as u32 - 1;
            }
            let tokens = own - first_token;
            made.nodes[node as usize] =
                TrieNode { first_child, first_token, end_token, set, children, tokens, ..EMPTY_NODE };
        }
        made.find_bytes_below();
        made
    }

    /// Children come after their parents.
    fn find_bytes_below(&mut self) {
        if self.tokens.len() < BULK as usize {
            return;
        }
        let mut below = vec![ByteSet::NONE; self.nodes.len()];
        for i in (0..self.nodes.len()).rev() {
            let node = self.nodes[i];
            let mut all = ByteSet::NONE;
            let children = node.first_child as usize..node.first_child as usize + node.children as usize;
            for (bytes, &byte) in below[children.clone()].iter().zip(&self.bytes[children]) {
                all = all.or(*bytes);
                all.insert(byte);
            }
            below[i] = all;
            if node.end_token - node.first_token >= BULK {
                self.sets.push(all);
                self.nodes[i].below = self.sets.len() as u32 - 1;
            }
        }
    }

    fn add(&mut self, byte: u8) {
        self.nodes.push(EMPTY_NODE);
        self.bytes.push(byte);
    }

    /// The same trie under a name.
    pub fn named(mut self, name: Name) -> Trie {
        self.find_utf8_below();
        Trie { name: Some(name), ..self }
    }

    fn find_utf8_below(&mut self) {
        // by node: the states of UTF-8 from which all texts below go on
        let mut states = vec![u8::MAX; self.nodes.len()];
        for (i, node) in self.nodes.iter_mut().enumerate().rev() {
            let children = node.first_child as usize..node.first_child as usize + node.children as usize;
            let found = states[children.clone()].iter().zip(&self.bytes[children]);
            states[i] = found.fold(u8::MAX, |all, (&states, &byte)| all & utf8::before(byte, states));
            node.utf8 = states[i] & utf8::BETWEEN != 0;
        }
    }

    /// All tokens, in the order of their texts.
    pub fn tokens(&self) -> &[u32] {
        &self.tokens
    }

    /// Tokens whose text ends at this node.
    #[inline]
    pub fn tokens_at(&self, node: NodeIndex) -> &[u32] {
        let node = &self.nodes[node as usize];
        &self.tokens[node.first_token as usize..node.first_token as usize + node.tokens as usize]
    }

    /// The byte that leads to a node.
    #[inline]
    pub fn byte(&self, node: NodeIndex) -> u8 {
        self.bytes[node as usize]
    }

    /// A token whose text begins with that of the node, if there is one.
    pub fn first_token(&self, node: NodeIndex) -> Option<u32> {
        let TrieNode { first_token, end_token, .. } = self.nodes[node as usize];
        self.tokens.get(first_token as usize..end_token as usize)?.first().copied()
    }

    /// If many tokens have texts that go on from this node: the bytes that they go on with, and the tokens.
    #[inline]
    pub fn below(&self, node: NodeIndex) -> Option<(ByteSet, &[u32])> {
        let node = &self.nodes[node as usize];
        if node.below == NO_SET {
            return None;
        }
        let from = node.first_token as usize + node.tokens as usize;
        Some((self.sets[node.below as usize], &self.tokens[from..node.end_token as usize]))
    }

    /// Whether it is known that all texts below a node are UTF-8, but for a last character that may be cut off.
    #[inline]
    pub fn is_utf8_below(&self, node: NodeIndex) -> bool {
        self.nodes[node as usize].utf8
    }

    #[inline]
    pub fn is_leaf(&self, node: NodeIndex) -> bool {
        self.nodes[node as usize].children == 0
    }

    /// The children that a byte of the set leads to.
    #[inline]
    pub fn children(&self, node: NodeIndex, wanted: ByteSet) -> Children<'_> {
        let node = &self.nodes[node as usize];
        let first = node.first_child;
        if node.set != NO_SET {
            let set = self.sets[node.set as usize];
            return Children { first, bytes: &[], set, wanted: wanted.and(set), at: 0 };
        }
        let bytes = &self.bytes[first as usize..first as usize + node.children as usize];
        Children { first, bytes, set: ByteSet::NONE, wanted, at: 0 }
    }

    /// The bytes that lead to children of the node.
    #[inline]
    pub fn child_bytes(&self, node: NodeIndex) -> ByteSet {
        let node = &self.nodes[node as usize];
        if node.set != NO_SET {
            return self.sets[node.set as usize];
        }
        let mut set = ByteSet::NONE;
        let first = node.first_child as usize;
        self.bytes[first..first + node.children as usize].iter().for_each(|&b| set.insert(b));
        set
    }

    /// The tokens whose texts begin with that of the node, its own among them.
    #[inline]
    pub fn tokens_from(&self, node: NodeIndex) -> &[u32] {
        let node = &self.nodes[node as usize];
        &self.tokens[node.first_token as usize..node.end_token as usize]
    }

    pub fn child(&self, node: NodeIndex, byte: u8) -> Option<NodeIndex> {
        self.children(node, ByteSet::only(byte)).next().map(|(_, child)| child)
    }

    /// The texts that `text` begins with, shortest first: their lengths and the tokens of each.
    pub fn prefixes<'a>(&'a self, text: &'a [u8]) -> impl Iterator<Item = (usize, &'a [u32])> + 'a {
        let mut at = 0;
        text.iter()
            .enumerate()
            .map_while(move |(i, &b)| {
                at = self.child(at, b)?;
                Some((i + 1, self.tokens_at(at)))
            })
            .filter(|(_, tokens)| !tokens.is_empty())
    }

    /// Whether some text is longer than `text` and begins with it.
    pub fn extends(&self, text: &[u8]) -> bool {
        let end = text.iter().try_fold(0, |at, &b| self.child(at, b));
        end.is_some_and(|node| !self.is_leaf(node))
    }

    pub fn memory(&self) -> usize {
        self.nodes.len() * (size_of::<TrieNode>() + 1) + self.sets.len() * 32 + self.tokens.len() * 4
    }
}

impl Default for Trie {
    fn default() -> Trie {
        Trie::new(Vec::new())
    }
}

/// Children of a node with the bytes that lead to them.
pub struct Children<'a> {
    first: NodeIndex,
    /// Of few children, the bytes.
    bytes: &'a [u8],
    /// Of many, the set of their bytes.
    set: ByteSet,
    /// Bytes to go on with.
    wanted: ByteSet,
    at: usize,
}

impl Iterator for Children<'_> {
    type Item = (u8, NodeIndex);

    #[inline]
    fn next(&mut self) -> Option<(u8, NodeIndex)> {
        while let Some(&byte) = self.bytes.get(self.at) {
            self.at += 1;
            if self.wanted.contains(byte) {
                return Some((byte, self.first + self.at as u32 - 1));
            }
        }
        if self.set.is_empty() {
            return None;
        }
        let byte = self.wanted.take_first()?;
        Some((byte, self.first + self.set.rank(byte)))
    }
}

/// The automaton of UTF-8 (Unicode Standard, table 3-7), sets of whose states are bits of a byte.
mod utf8 {
    use std::ops::RangeInclusive;

    /// Between two characters.
    pub(super) const BETWEEN: u8 = 1;
    /// Before one, two, or three bytes of any character.
    const ONE: u8 = 1 << 1;
    const TWO: u8 = 1 << 2;
    const THREE: u8 = 1 << 3;
    /// Before the second byte of characters for which it is restricted.
    const AFTER_E0: u8 = 1 << 4;
    const AFTER_ED: u8 = 1 << 5;
    const AFTER_F0: u8 = 1 << 6;
    const AFTER_F4: u8 = 1 << 7;

    /// From a state, by bytes, to another one.
    const STEPS: [(u8, RangeInclusive<u8>, u8); 16] = [
        (BETWEEN, 0x00..=0x7F, BETWEEN),
        (BETWEEN, 0xC2..=0xDF, ONE),
        (BETWEEN, 0xE0..=0xE0, AFTER_E0),
        (BETWEEN, 0xE1..=0xEC, TWO),
        (BETWEEN, 0xED..=0xED, AFTER_ED),
        (BETWEEN, 0xEE..=0xEF, TWO),
        (BETWEEN, 0xF0..=0xF0, AFTER_F0),
        (BETWEEN, 0xF1..=0xF3, THREE),
        (BETWEEN, 0xF4..=0xF4, AFTER_F4),
        (ONE, 0x80..=0xBF, BETWEEN),
        (TWO, 0x80..=0xBF, ONE),
        (THREE, 0x80..=0xBF, TWO),
        (AFTER_E0, 0xA0..=0xBF, ONE),
        (AFTER_ED, 0x80..=0x9F, ONE),
        (AFTER_F0, 0x90..=0xBF, TWO),
        (AFTER_F4, 0x80..=0x8F, TWO),
    ];

    /// The states from which a byte leads to one of these states.
    pub(super) fn before(byte: u8, states: u8) -> u8 {
        if byte.is_ascii() {
            return states & BETWEEN;
        }
        let steps = STEPS.iter().filter(|(_, bytes, to)| bytes.contains(&byte) && states & to != 0);
        steps.fold(0, |before, step| before | step.0)
    }

    #[test]
    fn leads_where_the_standard_library_does() {
        let begins = |text: &[u8]| match std::str::from_utf8(text) {
            Ok(_) => true,
            Err(error) => error.error_len().is_none(),
        };
        for first in 0..=255u8 {
            for second in 0..=255u8 {
                for third in [0x00, 0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC0, 0xFF] {
                    let text = [first, second, third];
                    let states = text.iter().rev().fold(u8::MAX, |states, &byte| before(byte, states));
                    assert_eq!(states & BETWEEN != 0, begins(&text), "{text:?}");
                }
            }
        }
    }
}
