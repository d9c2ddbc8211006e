//! Walks of a residual's language and a trie of tokens, side by side.

use rustc_hash::FxHashMap;

use super::build::{Answer, BROAD, MANY, MaskMaker};
use super::classes::{Branch, Ends};
use super::looping::spot_loop;
use super::region::region;
use crate::error::Result;
use crate::regular::ByteSet;
use crate::stack::{CUT_OFF, DEAD, Spot};
use crate::vocabulary::{NodeIndex, Trie};

/// A walk that has gone below so many nodes looks for whole branches that it may take at once.
const LONG: usize = 1024;

impl MaskMaker<'_> {
    /// Where one token leads.
    pub(super) fn try_token(&mut self, start: Spot, token: u32) -> Result<Spot> {
        let text = self.vocab.token(token);
        self.budget.spend(text.len() as u64)?;
        let mut spot = if text.is_empty() { DEAD } else { start };
        for &b in text {
            spot = self.machine.go(spot, b, self.budget)?;
            if spot <= CUT_OFF {
                break;
            }
        }
        Ok(spot)
    }

    /// Walks a trie and adds the tokens that survive.
    pub(super) fn walk(&mut self, trie: &Trie, start: Spot, out: &mut Vec<u32>) -> Answer<()> {
        let mut todo = Vec::with_capacity(64);
        todo.push((0, start));
        self.walk_on(trie, todo, out)
    }

    /// The tokens below a node that are not plain, given that plain bytes lead from the spot `here` to one that loops on
    /// them (mostly the same). What begins with a changing byte is left to do.
    pub(super) fn leave(
        &mut self,
        (trie, node): (&Trie, NodeIndex),
        branch: &Branch,
        (here, looping, changing): (Spot, Spot, ByteSet),
        (todo, out): (&mut Vec<(NodeIndex, Spot)>, &mut Vec<u32>),
    ) -> Answer<()> {
        for byte in changing.iter() {
            if let Some(child) = trie.child(node, byte) {
                let next = self.machine.go(here, byte, self.budget)?;
                if next == CUT_OFF {
                    return Ok(None);
                } else if next != DEAD {
                    out.extend_from_slice(trie.tokens_at(child));
                    todo.push((child, next));
                }
            }
            match branch.ends(trie, byte) {
                Ends::Nodes([]) => {}
                Ends::Nodes(nodes) => {
                    let next = self.machine.go(looping, byte, self.budget)?;
                    if next == CUT_OFF {
                        return Ok(None);
                    } else if next != DEAD {
                        for &node in nodes {
                            out.extend_from_slice(trie.tokens_at(node));
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
    pub(super) fn walk_on(&mut self, trie: &Trie, mut todo: Vec<(NodeIndex, Spot)>, out: &mut Vec<u32>) -> Answer<()> {
        let mut plain: FxHashMap<Spot, ByteSet> = FxHashMap::default();
        let mut visits = 0;
        while let Some((node, spot)) = todo.pop() {
            if let Some((bytes, tokens)) = trie.below(node) {
                if let Some((plain, changing)) = spot_loop(self.machine, self.classes, spot, self.budget)? {
                    if bytes.minus(plain.and(ByteSet::range(0, 127))).is_empty() {
                        out.extend_from_slice(tokens);
                        continue;
                    }
                    if let Some(name) = trie.name
                        && self.vocab.later_holders_of_any(changing) <= MANY
                    {
                        let branch = self.classes.branch((name, trie), node, plain);
                        out.extend_from_slice(&branch.plain);
                        let spots = (spot, spot, changing);
                        if self.leave((trie, node), &branch, spots, (&mut todo, out))?.is_none() {
                            return Ok(None);
                        }
                        continue;
                    }
                }
                if visits > LONG && bytes.minus(self.plain(spot, &mut plain)?).is_empty() {
                    out.extend_from_slice(tokens);
                    continue;
                }
            }
            let first = self.machine.first(spot, self.budget)?;
            let from = todo.len();
            for (byte, child) in trie.children(node, first) {
                self.budget.spend(1)?;
                let spot = self.machine.go(spot, byte, self.budget)?;
                if spot <= CUT_OFF {
                    if spot == CUT_OFF {
                        return Ok(None);
                    }
                    continue;
                }
                out.extend_from_slice(trie.tokens_at(child));
                if !trie.is_leaf(child) {
                    todo.push((child, spot));
                }
            }
            visits += todo.len() - from;
            todo[from..].reverse(); // what lies first in memory goes first
        }
        Ok(Some(()))
    }

    /// The ASCII bytes that may follow a spot in any number and order.
    fn plain(&mut self, spot: Spot, known: &mut FxHashMap<Spot, ByteSet>) -> Result<ByteSet> {
        if let Some(&plain) = known.get(&spot) {
            return Ok(plain);
        }
        let mut plain = ByteSet::NONE;
        if self.machine.first(spot, self.budget)?.len() >= BROAD
            && let Some(head) = self.machine.only_head(spot, self.budget)?
            && let Some(region) = region(&mut self.machine.arena, head.rest, self.budget)?
        {
            plain = region.plain.and(ByteSet::range(0, 127));
        }
        known.insert(spot, plain);
        Ok(plain)
    }
}
