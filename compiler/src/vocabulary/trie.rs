//! A trie of token texts (or of their ends), as a flat list in depth-first order.

#[derive(Clone, Copy, Debug)]
pub struct TrieNode {
    /// The next node that is not below this one.
    pub end: u32,
    first_token: u32,
    tokens: u32,
    /// Number of bytes from the root, this node's included.
    pub depth: u16,
    pub byte: u8,
}

/// Texts of at most 65,535 bytes with the tokens that they stand for.
#[derive(Default, Debug)]
pub struct Trie {
    pub nodes: Vec<TrieNode>,
    tokens: Vec<u32>,
}

impl Trie {
    /// Empty texts and texts too long for the index are left out.
    pub fn new(mut items: Vec<(&[u8], u32)>) -> Trie {
        items.retain(|(text, _)| !text.is_empty() && text.len() <= usize::from(u16::MAX));
        items.sort_unstable();
        items.dedup();
        let mut trie = Trie { nodes: Vec::with_capacity(items.len() * 2), tokens: Vec::with_capacity(items.len()) };
        let mut path: Vec<u32> = Vec::new(); // open nodes from the root
        let mut last: &[u8] = &[];
        for (text, token) in items {
            let common = text.iter().zip(last).take_while(|(a, b)| a == b).count();
            trie.close(&mut path, common);
            for (depth, &byte) in text.iter().enumerate().skip(common) {
                path.push(trie.nodes.len() as u32);
                let first_token = trie.tokens.len() as u32;
                trie.nodes.push(TrieNode { end: 0, first_token, tokens: 0, depth: depth as u16 + 1, byte });
            }
            trie.tokens.push(token);
            trie.nodes[*path.last().expect("texts are not empty") as usize].tokens += 1;
            last = text;
        }
        trie.close(&mut path, 0);
        trie
    }

    fn close(&mut self, path: &mut Vec<u32>, keep: usize) {
        let end = self.nodes.len() as u32;
        for node in path.drain(keep..) {
            self.nodes[node as usize].end = end;
        }
    }

    /// Tokens whose text ends at this node.
    #[inline]
    pub fn tokens_at(&self, node: &TrieNode) -> &[u32] {
        &self.tokens[node.first_token as usize..(node.first_token + node.tokens) as usize]
    }

    /// Tokens whose text goes through this node but does not end there: all those of the nodes below it.
    pub fn tokens_below(&self, i: usize) -> &[u32] {
        let node = &self.nodes[i];
        let from = (node.first_token + node.tokens) as usize;
        let to = self.nodes.get(node.end as usize).map_or(self.tokens.len(), |n| n.first_token as usize);
        &self.tokens[from..to]
    }

    pub fn memory(&self) -> usize {
        self.nodes.len() * size_of::<TrieNode>() + self.tokens.len() * 4
    }
}

impl Trie {
    /// The node below `parent` (`None`: the root) with this byte.
    fn child(&self, parent: Option<usize>, byte: u8) -> Option<usize> {
        let (mut i, end) = match parent {
            None => (0, self.nodes.len()),
            Some(p) => (p + 1, self.nodes[p].end as usize),
        };
        while i < end {
            if self.nodes[i].byte == byte {
                return Some(i);
            }
            i = self.nodes[i].end as usize;
        }
        None
    }

    /// The texts that `text` begins with, shortest first: their lengths and one token for each.
    pub fn prefixes<'a>(&'a self, text: &'a [u8]) -> impl Iterator<Item = (usize, u32)> + 'a {
        let mut at = None;
        text.iter()
            .enumerate()
            .map_while(move |(i, &b)| {
                at = Some(self.child(at, b)?);
                Some((i + 1, self.tokens_at(&self.nodes[at?]).first().copied()))
            })
            .filter_map(|(len, token)| Some((len, token?)))
    }

    /// Whether some text is longer than `text` and begins with it.
    pub fn extends(&self, text: &[u8]) -> bool {
        let mut at = None;
        for &b in text {
            match self.child(at, b) {
                Some(i) => at = Some(i),
                None => return false,
            }
        }
        at.is_some_and(|i| self.nodes[i].end as usize > i + 1)
    }
}
