//! Texts as tokens: short accepted endings, and forced text.

use super::configuration::Configuration;
use super::engine::Engine;
use super::states::{ENDED, StateId};
use crate::error::Result;
use crate::vocabulary::Vocabulary;

impl Engine {
    /// The shortest accepted ending in bytes, spelled with the fewest tokens that spell it. Inside a character that some
    /// bytes cannot complete, it is short rather than shortest.
    pub fn shortest_completion(&mut self, id: StateId) -> Result<Vec<u32>> {
        self.call(id, |engine| engine.find_completion(id))
    }

    fn find_completion(&mut self, id: StateId) -> Result<Vec<u32>> {
        if id == ENDED {
            return Ok(Vec::new());
        }
        let mut text = Vec::new();
        let ending = if self.machine.needs_history() {
            let at = self.configuration(id)?;
            let at = self.completed_character(at, &mut text)?;
            self.follower().shortest_ending(at)?
        } else {
            let mut start = self.states.get(id)?.kernel.clone();
            if self.cuts.is_some() {
                let at = self.configuration(id)?;
                let at = self.completed_character(at, &mut text)?;
                start = self.machine.kernel_of(at.state, &mut self.budget)?;
            }
            self.machine.shortest_ending(&start, &mut self.budget)?
        };
        text.extend(ending);
        Ok(fewest_tokens(&self.vocab, &text))
    }

    /// The text that every completion goes on with, at most `most` bytes of it, as tokens.
    pub fn forced_tokens(&mut self, id: StateId, most: usize) -> Result<Vec<u32>> {
        self.call(id, |engine| {
            let text = engine.find_forced(id, &[], most)?;
            let mut tokens = spell(&engine.vocab, &text, false);
            if engine.cuts.is_some() {
                // the text may end inside a character that the last of them begins in vain
                tokens.truncate(engine.count_allowed(id, &tokens)?);
            }
            Ok(tokens)
        })
    }

    /// Adds the text of tokens that complete the character in which a text has ended, and returns where it leads.
    fn completed_character(&mut self, at: Configuration, text: &mut Vec<u8>) -> Result<Configuration> {
        if self.cuts.is_none() {
            return Ok(at);
        }
        let Some((tokens, behind)) = self.rest_of_character(&at)? else { return Ok(at) };
        tokens.into_iter().for_each(|token| text.extend_from_slice(self.vocab.token(token)));
        Ok(behind)
    }
}

/// The text as a shortest sequence of tokens, by dynamic programming from the end. Tokens can spell it.
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

/// How much of a text tokens spell, from its beginning on.
fn spelled_length(vocab: &Vocabulary, text: &[u8]) -> usize {
    let mut reached = vec![false; text.len() + 1];
    reached[0] = true;
    for from in 0..text.len() {
        if reached[from] {
            vocab.trie.prefixes(&text[from..]).for_each(|(len, _)| reached[from + len] = true);
        }
    }
    reached.iter().rposition(|&reached| reached).unwrap_or(0)
}

/// The first `most` bytes of a text as few tokens; unless it is whole, up to where a longer token could go on.
fn by_fewest(vocab: &Vocabulary, text: &[u8], most: usize, whole: bool) -> Vec<u32> {
    let mut at = 0;
    let certain = |&token: &u32| {
        let from = at;
        at += vocab.token(token).len();
        whole || !vocab.trie.extends(&text[from..])
    };
    fewest_tokens(vocab, &text[..most]).into_iter().take_while(certain).collect()
}

/// A text as tokens, longest match first; as few tokens as possible where that would leave out what others spell.
/// Unless the text is `whole`, the last token is left out where a longer one could cover its bytes once more of the text
/// is known.
pub fn spell(vocab: &Vocabulary, text: &[u8], whole: bool) -> Vec<u32> {
    let mut out = Vec::new();
    let mut at = 0;
    while at < text.len() {
        let rest = &text[at..];
        if !whole && vocab.trie.extends(rest) {
            break;
        }
        let Some((len, tokens)) = vocab.trie.prefixes(rest).last() else {
            let most = spelled_length(vocab, text);
            return if most > at { by_fewest(vocab, text, most, whole) } else { out };
        };
        out.push(tokens[0]);
        at += len;
    }
    out
}
