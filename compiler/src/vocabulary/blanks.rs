//! The tokens that begin with whitespace: by which whitespace, and what they go on with.

use rustc_hash::FxHashMap;

use super::{Name, Trie};
use crate::byteset::ByteSet;

/// JSON's whitespace (RFC 8259, section 2).
const BLANK: [u8; 4] = *b" \t\n\r";

/// The bytes of JSON's whitespace.
pub fn blank_bytes() -> ByteSet {
    BLANK.iter().fold(ByteSet::NONE, |mut set, &b| {
        set.insert(b);
        set
    })
}

/// A run of whitespace that some tokens begin with.
pub struct BlankRun {
    pub text: Box<[u8]>,
    /// The tokens that are this run and nothing else.
    pub tokens: Vec<u32>,
}

/// Runs, and what tokens have after them.
pub(super) struct Blanks {
    pub(super) runs: Vec<BlankRun>,
    /// The run that each token begins with, where it does.
    pub(super) run_of: Vec<u32>,
    /// The tokens that begin with a run and go on, by what follows it.
    pub(super) ends: Trie,
}

impl Blanks {
    pub(super) fn new<'a>(items: impl Iterator<Item = (&'a [u8], u32)>, size: usize) -> Blanks {
        let mut ids: FxHashMap<&[u8], u32> = FxHashMap::default();
        let mut runs: Vec<BlankRun> = Vec::new();
        let mut run_of = vec![0u32; size];
        let mut ends: Vec<(&[u8], u32)> = Vec::new();
        for (text, token) in items {
            let (run, end) = text.split_at(text.iter().take_while(|b| BLANK.contains(b)).count());
            if run.is_empty() {
                continue;
            }
            let id = *ids.entry(run).or_insert_with(|| {
                runs.push(BlankRun { text: run.into(), tokens: Vec::new() });
                runs.len() as u32 - 1
            });
            run_of[token as usize] = id;
            if end.is_empty() { runs[id as usize].tokens.push(token) } else { ends.push((end, token)) }
        }
        Blanks { runs, run_of, ends: Trie::new(ends).named(Name::AfterBlanks) }
    }

    pub(super) fn memory(&self) -> usize {
        self.run_of.len() * 4 + self.ends.memory()
    }
}
