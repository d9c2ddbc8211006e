//! Walks of a byte state and a trie of tokens, side by side: the strategy that fits every head.
//!
//! A walk enters only the children of a node that some byte leads to from the state, and where it comes upon a state
//! that loops, it takes what is known of the branch instead of entering it.

use rustc_hash::FxHashMap;

use crate::byteset::ByteSet;
use crate::error::Result;
use crate::mask::cache::{Branch, Ends};
use crate::mask::maker::{Answer, BROAD, MANY, MaskMaker};
use crate::mask::row::Draft;
use crate::stack::{ByteState, CUT_OFF, DEAD};
use crate::vocabulary::{NodeIndex, Trie};

/// A walk that has visited more nodes than this looks for whole branches whose tokens are all allowed.
const LONG: usize = 1024;

impl MaskMaker<'_> {
    /// Where one token leads.
    pub(super) fn try_token(&mut self, start: ByteState, token: u32) -> Result<ByteState> {
        let text = self.vocab.token(token);
        self.budget.spend(text.len() as u64)?;
        let mut state = if text.is_empty() { DEAD } else { start };
        for &b in text {
            state = self.machine.go(state, b, self.budget)?;
            if state <= CUT_OFF {
                break;
            }
        }
        Ok(state)
    }

    /// Walks a trie and adds the tokens that survive.
    pub(in crate::mask) fn walk(&mut self, trie: &Trie, start: ByteState, out: &mut Draft) -> Answer<()> {
        let mut todo = Vec::with_capacity(64);
        todo.push((0, start));
        out.set.reserve(64);
        self.walk_on(trie, todo, out)
    }

    /// The tokens below a node that are not plain, given that plain bytes lead from the state `here` to one that loops
    /// on them (mostly the same). Nodes behind a changing byte are added to `todo`.
    pub(super) fn leave(
        &mut self,
        (trie, node): (&Trie, NodeIndex),
        branch: &Branch,
        (here, looping, changing): (ByteState, ByteState, ByteSet),
        (todo, out): (&mut Vec<(NodeIndex, ByteState)>, &mut Draft),
    ) -> Answer<()> {
        for byte in changing.iter() {
            if let Some(child) = trie.child(node, byte) {
                let next = self.machine.go(here, byte, self.budget)?;
                if self.gives_up(next) {
                    return Ok(None);
                } else if next != DEAD {
                    out.reach(self.machine.is_unsure(next), trie.tokens_at(child));
                    todo.push((child, next));
                }
            }
            match branch.ends(trie, byte) {
                Ends::Nodes([]) => {}
                Ends::Nodes(nodes) => {
                    let next = self.machine.go(looping, byte, self.budget)?;
                    if self.gives_up(next) {
                        return Ok(None);
                    } else if next != DEAD {
                        for &node in nodes {
                            out.reach(self.machine.is_unsure(next), trie.tokens_at(node));
                            todo.push((node, next));
                        }
                    }
                }
                Ends::Merged(ends) => {
                    if self.walk(ends, looping, out)?.is_none() {
                        return Ok(None);
                    }
                }
            }
        }
        Ok(Some(()))
    }

    /// Goes on with a walk that has come to these nodes.
    pub(in crate::mask) fn walk_on(
        &mut self,
        trie: &Trie,
        mut todo: Vec<(NodeIndex, ByteState)>,
        out: &mut Draft,
    ) -> Answer<()> {
        let mut plain: FxHashMap<ByteState, ByteSet> = FxHashMap::default();
        let (mut visits, has_lexemes) = (0, self.machine.has_lexemes);
        while let Some((node, state)) = todo.pop() {
            if let Some((bytes, tokens)) = trie.below(node) {
                if state == CUT_OFF {
                    out.unsure.extend_from_slice(tokens);
                    continue;
                }
                if let Some((plain, changing)) = self.state_loop(state)? {
                    if bytes.minus(plain.and(ByteSet::range(0, 127))).is_empty() {
                        out.reach(self.machine.is_unsure(state), tokens);
                        continue;
                    }
                    if let Some(name) = trie.name
                        && self.vocab.later_holders_of_any(changing) <= MANY
                    {
                        let branch = self.shared.branch((name, trie), node, plain);
                        out.reach(self.machine.is_unsure(state), &branch.plain);
                        let states = (state, state, changing);
                        if self.leave((trie, node), &branch, states, (&mut todo, out))?.is_none() {
                            return Ok(None);
                        }
                        continue;
                    }
                }
                if visits > LONG && !self.machine.careful && bytes.minus(self.plain(state, &mut plain)?).is_empty() {
                    out.reach(self.machine.is_unsure(state), tokens);
                    continue;
                }
            }
            if self.leaves_much_open(out.unsure.len()) {
                return Ok(None);
            }
            let first = self.machine.first(state, self.budget)?;
            let surely = self.machine.surely_leads_on(state);
            let from = todo.len();
            for (byte, child) in trie.children(node, first) {
                self.budget.spend(1)?;
                if surely && trie.is_leaf(child) {
                    out.reach(false, trie.tokens_at(child));
                    continue;
                }
                let state = self.machine.go(state, byte, self.budget)?;
                if state <= CUT_OFF {
                    if state == DEAD {
                        continue;
                    } else if self.gives_up(state) {
                        return Ok(None);
                    }
                }
                out.reach(has_lexemes && self.machine.is_unsure(state), trie.tokens_at(child));
                if !trie.is_leaf(child) {
                    todo.push((child, state));
                }
            }
            visits += todo.len() - from;
            todo[from..].reverse(); // what lies first in memory goes first
        }
        Ok(Some(()))
    }

    /// The ASCII bytes that may follow a state in any number and order.
    fn plain(&mut self, state: ByteState, known: &mut FxHashMap<ByteState, ByteSet>) -> Result<ByteSet> {
        if let Some(&plain) = known.get(&state) {
            return Ok(plain);
        }
        let mut plain = ByteSet::NONE;
        if self.machine.first(state, self.budget)?.len() >= BROAD
            && let Some(head) = self.machine.only_head(state, self.budget)?
            && self.knows_region(head.rest)
            && let Some(region) = self.region(head.rest)?
        {
            plain = region.plain.and(ByteSet::range(0, 127));
        }
        known.insert(state, plain);
        Ok(plain)
    }
}
