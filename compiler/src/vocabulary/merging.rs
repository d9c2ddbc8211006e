//! Tries of what the texts of a trie have after certain nodes: the branches of these nodes, merged where several begin
//! alike.
//!
//! Most of such a trie is a copy of single branches. All nodes below a node are stored side by side ([`Trie::new`] sees
//! to that, and so does a copy), so that a branch is copied in one go.

use smallvec::SmallVec;

use super::trie::{BULK, EMPTY_NODE, MANY, NO_SET, NodeIndex, Trie, TrieNode};
use crate::byteset::ByteSet;

/// The nodes of a trie that are to be one node of another.
type Sources = SmallVec<[NodeIndex; 4]>;

/// A trie that is being made of branches of another one.
struct Merging<'a> {
    from: &'a Trie,
    made: Trie,
    /// Nodes whose branches have to be put below them, each with the branches; the last one is next.
    todo: Vec<(NodeIndex, Sources)>,
    /// The nodes that are no copies, with the bytes below them, parents before children.
    merged: Vec<(NodeIndex, ByteSet)>,
}

impl Trie {
    /// A trie of the texts from some nodes on, each of which begins with the byte that leads to the node.
    pub fn texts_of(&self, nodes: impl Iterator<Item = NodeIndex>) -> Trie {
        let made = Trie { nodes: vec![EMPTY_NODE], bytes: vec![0], ..Trie::bare() };
        let mut merging = Merging { from: self, made, todo: Vec::new(), merged: Vec::new() };
        let mut nodes: Vec<NodeIndex> = nodes.collect();
        nodes.sort_unstable();
        nodes.dedup();
        merging.note(0, &nodes, true);
        merging.put_below(0, nodes);
        while let Some((node, sources)) = merging.todo.pop() {
            match sources[..] {
                [source] => merging.copy(node, source),
                _ => merging.merge(node, &sources),
            }
        }
        merging.finish()
    }

    /// All bytes below a node.
    fn bytes_below(&self, node: NodeIndex) -> ByteSet {
        let TrieNode { first_child, below, children, .. } = self.nodes[node as usize];
        if below != NO_SET {
            return self.sets[below as usize];
        }
        let mut all = ByteSet::NONE;
        for child in first_child..first_child + u32::from(children) {
            all = all.or(self.bytes_below(child)); // with few tokens below, the texts are few
            all.insert(self.byte(child));
        }
        all
    }

    /// Past the nodes below a node.
    fn end_of(&self, mut node: NodeIndex) -> NodeIndex {
        loop {
            let TrieNode { first_child, children, .. } = self.nodes[node as usize];
            if children == 0 {
                return first_child; // a leaf has its children, of which there are none, where the next ones come
            }
            node = first_child + u32::from(children) - 1;
        }
    }
}

impl Merging<'_> {
    /// Notes a node that is made of several ones, with the bytes below it, where a trie tells them; `whole`: their own
    /// bytes are below it, too.
    fn note(&mut self, node: NodeIndex, sources: &[NodeIndex], whole: bool) {
        let mut below = ByteSet::NONE;
        if sources.iter().map(|&source| self.from.tokens_from(source).len()).sum::<usize>() >= BULK as usize {
            for &source in sources {
                below = below.or(self.from.bytes_below(source));
                if whole {
                    below.insert(self.from.byte(source));
                }
            }
        }
        self.merged.push((node, below));
    }

    /// Gives a node its children, which are to be made of these branches.
    fn put_below(&mut self, node: NodeIndex, mut branches: Vec<NodeIndex>) {
        let byte = |branch: &NodeIndex| self.from.byte(*branch);
        branches.sort_unstable_by_key(|branch| (byte(branch), *branch));
        let first_child = self.made.nodes.len() as NodeIndex;
        let first_todo = self.todo.len();
        let mut bytes = ByteSet::NONE;
        for (child, group) in (first_child..).zip(branches.chunk_by(|a, b| byte(a) == byte(b))) {
            bytes.insert(byte(&group[0]));
            self.made.nodes.push(EMPTY_NODE);
            self.made.bytes.push(byte(&group[0]));
            self.todo.push((child, group.into()));
        }
        self.todo[first_todo..].reverse();
        let children = (self.todo.len() - first_todo) as u16;
        let mut set = NO_SET;
        if usize::from(children) >= MANY {
            set = self.made.sets.len() as u32;
            self.made.sets.push(bytes);
        }
        let node = &mut self.made.nodes[node as usize];
        (node.first_child, node.children, node.set) = (first_child, children, set);
    }

    /// Makes a node of several ones.
    fn merge(&mut self, node: NodeIndex, sources: &[NodeIndex]) {
        let first = self.made.tokens.len();
        let mut tokens: SmallVec<[u32; 8]> = SmallVec::new();
        let mut branches: Vec<NodeIndex> = Vec::new();
        for &source in sources {
            let TrieNode { first_child, children, .. } = self.from.nodes[source as usize];
            tokens.extend_from_slice(self.from.tokens_at(source));
            branches.extend(first_child..first_child + u32::from(children));
        }
        tokens.sort_unstable();
        tokens.dedup();
        self.made.tokens.extend_from_slice(&tokens);
        let made = &mut self.made.nodes[node as usize];
        (made.first_token, made.tokens) = (first as u32, tokens.len() as u32);
        self.note(node, sources, false);
        self.put_below(node, branches);
    }

    /// Makes a node, and all below it, of one node.
    fn copy(&mut self, node: NodeIndex, source: NodeIndex) {
        let (from, made) = (self.from, &mut self.made);
        let top = from.nodes[source as usize];
        let nodes = top.first_child as usize..from.end_of(source) as usize;
        let by_node = (made.nodes.len() as u32).wrapping_sub(top.first_child);
        let by_token = (made.tokens.len() as u32).wrapping_sub(top.first_token);
        let mut sets = |set: u32| {
            if set == NO_SET {
                return NO_SET;
            }
            made.sets.push(from.sets[set as usize]);
            made.sets.len() as u32 - 1
        };
        let mut moved = |node: &TrieNode| TrieNode {
            first_child: node.first_child.wrapping_add(by_node),
            first_token: node.first_token.wrapping_add(by_token),
            end_token: node.end_token.wrapping_add(by_token),
            set: sets(node.set),
            below: sets(node.below),
            ..*node
        };
        made.nodes.extend(from.nodes[nodes.clone()].iter().map(&mut moved));
        made.nodes[node as usize] = moved(&top);
        made.bytes.extend_from_slice(&from.bytes[nodes]);
        made.tokens.extend_from_slice(from.tokens_from(source));
    }

    /// The trie, once all branches are in it.
    fn finish(mut self) -> Trie {
        let made = &mut self.made;
        for &(node, below) in self.merged.iter().rev() {
            let TrieNode { first_child, first_token, children, tokens, .. } = made.nodes[node as usize];
            let end = match children {
                0 => first_token + tokens,
                _ => made.nodes[(first_child + u32::from(children) - 1) as usize].end_token,
            };
            made.nodes[node as usize].end_token = end;
            if end - first_token >= BULK {
                made.nodes[node as usize].below = made.sets.len() as u32;
                made.sets.push(below);
            }
        }
        self.made
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vocabulary::{get_bit, set_bit};

    /// A text, the tokens that it is, those that begin with it, and what the trie says of what is below.
    type Contents = (Vec<u8>, Vec<u32>, Vec<u32>, Option<(ByteSet, Vec<u32>)>);

    fn contents(trie: &Trie) -> Vec<Contents> {
        let mut found = Vec::new();
        let mut todo = vec![(0, Vec::new())];
        while let Some((node, text)) = todo.pop() {
            assert_eq!(
                trie.child_bytes(node),
                trie.children(node, ByteSet::ALL).fold(ByteSet::NONE, |mut all, child| {
                    all.insert(child.0);
                    all
                })
            );
            for (byte, child) in trie.children(node, ByteSet::ALL) {
                todo.push((child, [&text[..], &[byte]].concat()));
            }
            let below = trie.below(node).map(|(bytes, tokens)| (bytes, tokens.to_vec()));
            found.push((text, trie.tokens_at(node).to_vec(), trie.tokens_from(node).to_vec(), below));
        }
        found.sort();
        found
    }

    /// Draws numbers below others.
    fn draws() -> impl FnMut(u32) -> u32 {
        let mut seed = 1u32;
        move |below| {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (seed >> 16) % below
        }
    }

    fn texts(letters: u32, mut draw: impl FnMut(u32) -> u32) -> Vec<Vec<u8>> {
        (0..400).map(|_| (0..=draw(7)).map(|_| b'a' + draw(letters) as u8).collect()).collect()
    }

    /// The trie of texts, each with its number as its token.
    fn trie_of(texts: &[Vec<u8>], wanted: impl Fn(u32) -> bool) -> Trie {
        let tokens = texts.iter().zip(0..).filter(|(_, token)| wanted(*token));
        Trie::new(tokens.map(|(text, token)| (&text[..], token)).collect())
    }

    #[test]
    fn a_restricted_trie_is_that_of_the_texts_of_its_tokens() {
        let mut draw = draws();
        for letters in [2, 3, 20] {
            let texts = texts(letters, &mut draw);
            for share in [1, 2, 20, 400] {
                let mut row = vec![0; texts.len().div_ceil(32)];
                (0..texts.len() as u32).filter(|_| draw(share) == 0).for_each(|token| set_bit(&mut row, token));
                let restricted = trie_of(&texts, |_| true).restricted(&row);
                let whole = trie_of(&texts, |token| get_bit(&row, token));
                assert_eq!(contents(&restricted), contents(&whole));
                assert_eq!(restricted.tokens(), whole.tokens());
            }
        }
    }

    #[test]
    fn merged_branches_are_the_trie_of_their_texts() {
        let mut draw = draws();
        for letters in [2, 3, 20] {
            let trie = trie_of(&texts(letters, &mut draw), |_| true);
            for _ in 0..20 {
                let nodes: Vec<NodeIndex> = (0..draw(12)).map(|_| 1 + draw(trie.nodes.len() as u32 - 1)).collect();
                let merged = trie.texts_of(nodes.iter().copied());
                let mut items: Vec<(Vec<u8>, u32)> = Vec::new();
                for &node in &nodes {
                    let mut todo = vec![(node, vec![trie.byte(node)])];
                    while let Some((at, text)) = todo.pop() {
                        items.extend(trie.tokens_at(at).iter().map(|&token| (text.clone(), token)));
                        let below = trie.children(at, ByteSet::ALL);
                        todo.extend(below.map(|(byte, child)| (child, [&text[..], &[byte]].concat())));
                    }
                }
                let whole = Trie::new(items.iter().map(|(text, token)| (&text[..], *token)).collect());
                assert_eq!(contents(&merged), contents(&whole));
                assert_eq!(merged.tokens(), whole.tokens());
                // such a trie is the source of further ones
                let again: Vec<NodeIndex> = merged.children(0, ByteSet::ALL).map(|(_, child)| child).collect();
                assert_eq!(contents(&merged.texts_of(again.into_iter())), contents(&whole));
            }
        }
    }
}
