//! Steps on all tokens, which the constraints on a vocabulary share.
//!
//! What tokens do inside a lexeme depends on its residual, not on the grammar: strings, numbers and names are the same in
//! many. So the step of a residual on the vocabulary is kept by the structure of the residual, without its tag. The
//! residuals to which tokens lead, and those at which it ends, are numbers of one constraint: for others, texts that lead
//! there stand for them.

use std::sync::Arc;

use super::steps::{End, Step};
use super::texts::{NamedRests, Place, VOCABULARY};
use crate::error::Result;
use crate::mask::maker::MaskMaker;
use crate::mask::row::Draft;
use crate::regular::{Id, TOP};
use crate::vocabulary::{NodeIndex, Vocabulary};

/// A step without numbers of a constraint.
pub(in crate::mask) struct SharedStep {
    /// The tokens that end inside the lexeme, by the residual that they lead to: one of them that is whole characters.
    /// `None`: the residual has no meaning.
    reached: Box<[(Option<u32>, Arc<Draft>)]>,
    ends: Box<[SharedEnd]>,
}

struct SharedEnd {
    /// A text that leads to the end.
    text: Box<[u8]>,
    /// The hash of the condition on what follows.
    condition: u128,
    rests: NamedRests,
    except: Arc<[u32]>,
}

impl SharedStep {
    /// Bytes held, roughly.
    pub(in crate::mask) fn memory(&self) -> usize {
        let row = |draft: &Draft| draft.base.as_ref().map_or(0, |bits| bits.len() * 4);
        let tokens: usize = self.reached.iter().map(|(_, draft)| draft.memory() + row(draft)).sum();
        let ends = self.ends.iter().map(|end| 128 + end.text.len() + end.rests.memory() + end.except.len() * 4);
        tokens + ends.sum::<usize>() + 128
    }
}

impl<'a> MaskMaker<'a> {
    /// By what the step of a residual is known to all constraints. Also of whether residuals behind tokens have a meaning.
    pub(super) fn shared_key(&mut self, place: Place, rest: Id) -> Option<(u128, bool)> {
        let (untagged, tag) = if place == VOCABULARY { self.machine.untagged(rest) } else { (rest, None) };
        tag.map(|_| (self.machine.arena.hash(untagged), self.machine.careful))
    }

    /// The step of a residual on the vocabulary, if another constraint has taken it.
    pub(super) fn shared_step(&mut self, key: (u128, bool), rest: Id) -> Result<Option<Step>> {
        let Some(shared) = self.shared.step(key) else { return Ok(None) };
        self.budget.spend(1 + (shared.reached.len() + shared.ends.len()) as u64)?;
        let mut step = Step::default();
        for (token, draft) in &shared.reached {
            step.reached.push((self.residual_of(rest, *token)?, draft.clone()));
        }
        for SharedEnd { text, condition, rests, except } in &shared.ends {
            let residual = self.residual_behind(rest, text)?;
            let ends = self.ends_of(residual)?;
            let Some(&end) = ends.iter().find(|end| self.machine.arena.hash(end.0) == *condition) else {
                return Ok(None);
            };
            let Some(rests) = self.shared_rests(rests) else { return Ok(None) };
            step.ends.push(End { end, column: None, rests, except: except.clone() });
        }
        Ok(Some(step))
    }

    /// Keeps a step on the vocabulary for other constraints, if texts say what its residuals are.
    pub(super) fn share_step(&mut self, key: (u128, bool), rest: Id, step: &Step) -> Result<()> {
        let mut reached = Vec::new();
        for (residual, draft) in &step.reached {
            let token = if *residual == TOP { None } else { draft.first_whole(self.vocab) };
            if self.residual_of(rest, token)? != *residual {
                return Ok(());
            }
            reached.push((token, draft.clone()));
        }
        let mut ends = Vec::new();
        for End { end, rests, except, .. } in &step.ends {
            let text = match rests.nodes.list() {
                Some(nodes) => self.text_before(nodes[0]),
                // the rests behind a run, which leads to what is reached first
                None => reached.first().and_then(|&(token, _)| token).map(|token| self.vocab.token(token)),
            };
            let Some((text, rests)) = text.zip(self.share_rests(rests)) else { return Ok(()) };
            let residual = self.residual_behind(rest, text)?;
            if !self.ends_of(residual)?.contains(end) {
                return Ok(());
            }
            let condition = self.machine.arena.hash(end.0);
            ends.push(SharedEnd { text: text.into(), condition, rests, except: except.clone() });
        }
        self.shared.put_step(key, SharedStep { reached: reached.into(), ends: ends.into() });
        Ok(())
    }

    /// The text that leads to the node before this one of the vocabulary's trie.
    fn text_before(&self, node: NodeIndex) -> Option<&'a [u8]> {
        let vocab: &'a Vocabulary = self.vocab;
        let trie = &vocab.trie;
        let text = vocab.token(trie.first_token(node)?);
        let mut at = 0;
        for (length, &byte) in text.iter().enumerate() {
            at = trie.child(at, byte)?;
            if at == node {
                return Some(&text[..length]);
            }
        }
        None
    }

    /// The residual to which a token leads, if residuals have a meaning.
    fn residual_of(&mut self, rest: Id, token: Option<u32>) -> Result<Id> {
        token.map_or(Ok(TOP), |token| self.residual_behind(rest, self.vocab.token(token)))
    }

    fn residual_behind(&mut self, mut rest: Id, text: &[u8]) -> Result<Id> {
        for &byte in text {
            rest = self.machine.arena.next(rest, byte, self.budget)?;
        }
        Ok(rest)
    }
}
