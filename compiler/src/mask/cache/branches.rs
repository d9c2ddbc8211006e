//! Branches of a vocabulary's trie, for a residual that loops on most characters and has been followed to the branch.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};

use smallvec::SmallVec;

use crate::byteset::ByteSet;
use crate::vocabulary::{NodeIndex, Trie, set_bit};

/// The tokens of a branch of a trie, sorted for a residual that loops on plain bytes and was followed to the branch.
pub(in crate::mask) struct Branch {
    /// Tokens that are well-formed (but for a cut last character) and of plain bytes alone, from the node on.
    pub(in crate::mask) plain: Vec<u32>,
    /// The plain tokens as a row, once asked for.
    row: OnceLock<Arc<[u32]>>,
    /// By byte that is not plain, ascending: the nodes that it leads to after one or more plain bytes.
    exits: Vec<(u8, Exits)>,
}

/// The bytes of a character that is not whole.
type Character = SmallVec<[u8; 4]>;

/// The character after one more byte, empty where it is whole. `None`: no character goes on so.
fn go_on(last: &Character, byte: u8) -> Option<Character> {
    if last.is_empty() && byte < 128 {
        return Some(Character::new());
    }
    let mut next = last.clone();
    next.push(byte);
    match std::str::from_utf8(&next) {
        Ok(_) => Some(Character::new()),
        Err(e) => e.error_len().is_none().then_some(next),
    }
}

#[derive(Default)]
struct Exits {
    nodes: Vec<NodeIndex>,
    /// The ends of tokens from the byte on, equal ones merged: made for exits that are used often.
    ends: OnceLock<Trie>,
    uses: AtomicU32,
}

/// Where a walk goes on after plain bytes.
pub(in crate::mask) enum Ends<'a> {
    /// At the root of a trie of ends, before the byte that is not plain.
    Merged(&'a Trie),
    /// At these nodes, behind that byte.
    Nodes(&'a [NodeIndex]),
}

/// Ends that were used so often are merged at their next use. Merging costs as much as a few walks over them.
const OFTEN: u32 = 2;

impl Branch {
    pub(in crate::mask) fn new(trie: &Trie, from: NodeIndex, plain: ByteSet) -> Branch {
        let ascii = plain.and(ByteSet::range(0, 127));
        let mut branch = Branch { plain: Vec::new(), row: OnceLock::new(), exits: Vec::new() };
        let mut exits: Vec<Vec<NodeIndex>> = vec![Vec::new(); 256];
        // nodes with the last character so far, as far as it goes: whole or ASCII characters are not kept
        let mut todo: Vec<(NodeIndex, Character)> = vec![(from, Character::new())];
        while let Some((node, last)) = todo.pop() {
            if last.is_empty()
                && let Some((bytes, tokens)) = trie.below(node)
                && bytes.minus(plain).is_empty()
                && (trie.is_utf8_below(node) || bytes.minus(ascii).is_empty())
            {
                branch.plain.extend_from_slice(tokens);
                continue;
            }
            for (byte, child) in trie.children(node, ByteSet::ALL) {
                if !plain.contains(byte) {
                    if last.is_empty() && node != from {
                        exits[byte as usize].push(child);
                    }
                } else if let Some(last) = go_on(&last, byte) {
                    branch.plain.extend_from_slice(trie.tokens_at(child));
                    todo.push((child, last));
                }
            }
        }
        let used = exits.into_iter().enumerate().filter(|(_, nodes)| !nodes.is_empty());
        branch.exits = used.map(|(byte, nodes)| (byte as u8, Exits { nodes, ..Exits::default() })).collect();
        branch
    }

    /// By byte that is not plain, ascending: the nodes that it leads to after one or more plain bytes.
    pub(in crate::mask) fn exits(&self) -> impl Iterator<Item = (u8, &[NodeIndex])> {
        self.exits.iter().map(|(byte, exits)| (*byte, &exits.nodes[..]))
    }

    pub(in crate::mask) fn row(&self, words: usize) -> Arc<[u32]> {
        let make = || {
            let mut bits = vec![0u32; words];
            self.plain.iter().for_each(|&t| set_bit(&mut bits, t));
            bits.into()
        };
        self.row.get_or_init(make).clone()
    }

    /// Where tokens go on that have one or more plain bytes and then this byte, which is not plain.
    pub(in crate::mask) fn ends(&self, trie: &Trie, byte: u8) -> Ends<'_> {
        let Ok(i) = self.exits.binary_search_by_key(&byte, |e| e.0) else { return Ends::Nodes(&[]) };
        let Exits { nodes, ends, uses } = &self.exits[i].1;
        if uses.fetch_add(1, Ordering::Relaxed) < OFTEN {
            return Ends::Nodes(nodes);
        }
        Ends::Merged(ends.get_or_init(|| trie.texts_of(nodes.iter().copied())))
    }

    /// Bytes held, with what may be made later.
    pub(super) fn memory(&self) -> usize {
        let exits: usize = self.exits.iter().map(|e| e.1.nodes.len() * 100).sum();
        self.plain.len() * 8 + exits + 128
    }
}
