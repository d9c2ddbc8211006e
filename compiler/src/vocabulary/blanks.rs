//! The tokens that begin with whitespace: by which whitespace, and what they go on with.

use std::collections::BTreeSet;

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
    /// In the order of their bytes.
    pub(super) runs: Vec<BlankRun>,
    /// The run that each token begins with, where it does.
    pub(super) run_of: Vec<u32>,
    /// The tokens that begin with a run and go on, by what follows it.
    pub(super) ends: Trie,
}

/// The whitespace that a text begins with.
fn blank_run(text: &[u8]) -> &[u8] {
    &text[..text.iter().take_while(|b| BLANK.contains(b)).count()]
}

impl Blanks {
    pub(super) fn new<'a>(items: impl Iterator<Item = (&'a [u8], u32)> + Clone, size: usize) -> Blanks {
        let found: BTreeSet<&[u8]> =
            items.clone().map(|(text, _)| blank_run(text)).filter(|run| !run.is_empty()).collect();
        let mut runs: Vec<BlankRun> =
            found.iter().map(|&run| BlankRun { text: run.into(), tokens: Vec::new() }).collect();
        let ids: FxHashMap<&[u8], u32> = found.into_iter().zip(0..).collect();
        let mut run_of = vec![0u32; size];
        let mut ends: Vec<(&[u8], u32)> = Vec::new();
        for (text, token) in items {
            let Some(&id) = ids.get(blank_run(text)) else { continue };
            let end = &text[runs[id as usize].text.len()..];
            run_of[token as usize] = id;
            if end.is_empty() { runs[id as usize].tokens.push(token) } else { ends.push((end, token)) }
        }
        Blanks { runs, run_of, ends: Trie::new(ends).named(Name::AfterBlanks) }
    }
}
