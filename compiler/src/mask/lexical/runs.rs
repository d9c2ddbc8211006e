//! What tokens have behind a run of plain characters that they begin with: an identifier, blanks, digits.
//!
//! It depends on the vocabulary alone, so that it is found once for all grammars, and followed once for all lexemes that
//! end in such a run.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::mask::cache::Branch;
use crate::vocabulary::{Name, Trie};

/// What the tokens of a trie that begin with plain characters, and have something else, have behind these. It begins with
/// a byte that is not plain.
pub(in crate::mask) struct Runs {
    pub(in crate::mask) behind: Arc<Trie>,
}

/// Names of tries are never used twice in a process: what is cached by a name that was dropped is never found.
static NAMES: AtomicU32 = AtomicU32::new(0);

impl Runs {
    /// `branch`: the tokens of the trie, sorted for these characters.
    pub(in crate::mask) fn new(trie: &Trie, branch: &Branch) -> Runs {
        let nodes = branch.exits().flat_map(|(_, nodes)| nodes.iter().copied());
        let name = Name::Behind(NAMES.fetch_add(1, Ordering::Relaxed));
        Runs { behind: Arc::new(trie.texts_of(nodes).named(name)) }
    }

    /// Bytes held.
    pub(in crate::mask) fn memory(&self) -> usize {
        self.behind.memory()
    }
}
