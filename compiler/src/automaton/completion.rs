//! Texts as tokens: short accepted endings, and forced text.

use super::engine::Engine;
use super::states::{ENDED, StateId};
use crate::error::Result;
use crate::vocabulary::Vocabulary;

impl Engine {
    /// The shortest accepted ending in bytes, spelled with the fewest tokens that spell it.
    pub fn shortest_completion(&mut self, id: StateId) -> Result<Vec<u32>> {
        self.begin()?;
        if id == ENDED {
            return Ok(Vec::new());
        }
        let start = self.states.get(id)?.kernel.clone();
        let text = if self.machine.needs_history() {
            let at = self.configuration(id)?;
            self.follower().shortest_ending(at)?
        } else {
            self.machine.shortest_ending(&start, &mut self.budget)?
        };
        Ok(fewest_tokens(&self.vocab, &text))
    }
}

/// The text as a shortest sequence of tokens, by dynamic programming from the end. Every byte of it is a token on its
/// own.
pub(super) fn fewest_tokens(vocab: &Vocabulary, text: &[u8]) -> Vec<u32> {
    let mut best: Vec<(u32, u32)> = vec![(u32::MAX, 0); text.len() + 1];
    best[text.len()] = (0, 0);
    for from in (0..text.len()).rev() {
        for (len, tokens) in vocab.trie.prefixes(&text[from..]) {
            let cost = best[from + len].0.saturating_add(1);
            if cost < best[from].0 {
                best[from] = (cost, tokens[0]);
            }
        }
    }
    let mut out = Vec::new();
    let mut at = 0;
    while at < text.len() && best[at].0 != u32::MAX {
        let token = best[at].1;
        out.push(token);
        at += vocab.token(token).len();
    }
    out
}

/// A text as tokens, longest match first. Unless the text is `whole`, the last token is left out where a longer one
/// could cover its bytes once more of the text is known.
pub fn spell(vocab: &Vocabulary, text: &[u8], whole: bool) -> Vec<u32> {
    let mut out = Vec::new();
    let mut at = 0;
    while at < text.len() {
        let rest = &text[at..];
        if !whole && vocab.trie.extends(rest) {
            break;
        }
        let Some((len, tokens)) = vocab.trie.prefixes(rest).last() else {
            break;
        };
        out.push(tokens[0]);
        at += len;
    }
    out
}
