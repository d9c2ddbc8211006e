//! Steps of residuals that begin with a run of characters: an identifier, blanks, digits.
//!
//! Which tokens are such runs, and what other tokens have after one, depends on the vocabulary only, and is computed
//! once for it. The trie is only walked where the residual differs from the residual inside the run (key words, or a
//! digit at the beginning of an identifier).

use std::sync::Arc;

use rustc_hash::FxHashSet;

use super::steps::{End, Step, Walk};
use super::texts::{LARGE, Source};
use crate::byteset::ByteSet;
use crate::error::Result;
use crate::mask::maker::MaskMaker;
use crate::mask::row::Draft;
use crate::regular::{EMPTY, Id};
use crate::vocabulary::{Name, NodeIndex, blank_bytes, clear_bit, set_bit};

/// A run of characters that a residual begins with: an identifier, blanks, digits.
#[derive(Clone, Copy)]
pub(super) struct Run {
    /// The residual after any number of these characters, for most texts.
    pub(super) within: Id,
    /// The bytes of these characters.
    plain: ByteSet,
}

/// The places where a residual differs from the residual inside the run that it begins with.
#[derive(Default)]
pub(super) struct Exceptions {
    /// Tokens that the residual refuses, or that lead it to another residual, in order.
    pub(super) tokens: Vec<u32>,
    /// Nodes after the first byte that is not plain, at which the residual is another one, or nothing.
    pub(super) nodes: FxHashSet<NodeIndex>,
}

impl MaskMaker<'_> {
    /// The run that a residual begins with, if the next character decides whether the run has ended.
    pub(super) fn run(&mut self, rest: Id) -> Result<Option<Run>> {
        let mut found: Option<Run> = None;
        let all: Vec<(ByteSet, Id)> = self.machine.arena.edges(rest, self.budget)?.collect();
        for (bytes, within) in all {
            let plain = match self.self_loop(within)? {
                Some(plain) => plain,
                None => {
                    let edges = self.machine.arena.edges(within, self.budget)?;
                    let back = edges.filter(|edge| edge.1 == within).fold(ByteSet::NONE, |all, e| all.or(e.0));
                    back.and(ByteSet::range(0, 127))
                }
            };
            let mut after = ByteSet::NONE;
            for &(condition, _) in self.ends_of(within)?.iter() {
                after = after.or(self.first_behind(condition)?);
            }
            let is_longer = |other: Run| plain.len() > other.plain.len();
            if !bytes.and(plain).is_empty() && after.and(plain).is_empty() && found.is_none_or(is_longer) {
                found = Some(Run { within, plain });
            }
        }
        Ok(found)
    }

    /// Finds the tokens that begin with a run by the tables of the vocabulary, if few of them are exceptions. What is
    /// left to be walked is noted in `walk`.
    pub(super) fn by_run(
        &mut self,
        name: Name,
        (rest, run): (Id, Run),
        walk: &mut Walk,
        step: &mut Step,
    ) -> Result<()> {
        let (trie, Run { within, plain }) = (walk.trie, run);
        let ends = self.ends_of(within)?;
        let mut others = walk.beside();
        let Some(except) = self.exceptions((rest, run), &ends, &mut others)? else { return Ok(()) };
        others.todo.push((0, rest, ByteSet::ALL.minus(plain)));
        *walk = others;
        let leads_on = !self.machine.arena.first(within, self.budget)?.minus(plain).is_empty();
        let is_blank = plain == blank_bytes() && name == Name::Tokens;
        let mut row: Arc<[u32]> = if is_blank && !leads_on {
            self.blank_row().into()
        } else {
            let branch = self.shared.branch((name, trie), 0, plain);
            self.leave_run(walk, &branch, within, &except)?;
            branch.row(self.vocab.words())
        };
        self.budget.spend(row.len() as u64 / 16)?;
        let except: Arc<[u32]> = except.tokens.into();
        if !except.is_empty() {
            let mut bits = row.to_vec();
            except.iter().for_each(|&token| clear_bit(&mut bits, token));
            row = bits.into();
        }
        step.reached.push((within, Arc::new(Draft { base: Some(row), ..Draft::default() })));
        for &end in ends.iter() {
            let behind = if is_blank {
                self.local.steps.places.named(Name::AfterBlanks, Source::AfterBlanks, self.vocab.after_blanks())
            } else {
                if !self.shared.knows_behind(name, plain) {
                    self.budget.spend(trie.tokens().len() as u64)?;
                }
                let behind = self.shared.behind((name, trie), plain);
                let name = behind.name.expect("it has one");
                self.local.steps.places.named(name, Source::Shared(behind.clone()), &behind)
            };
            let rests = self.rests_of(behind);
            step.ends.push(End { end, column: None, rests, except: except.clone() });
        }
        Ok(())
    }

    /// The mask row of the tokens that consist of blanks only.
    fn blank_row(&self) -> Vec<u32> {
        let mut bits = vec![0; self.vocab.words()];
        self.vocab.blank_runs().iter().flat_map(|run| &run.tokens).for_each(|&token| set_bit(&mut bits, token));
        bits
    }

    /// Walks the trie for a residual and for the residual inside a run at once, by plain bytes, as long as the two
    /// differ. What the residual does there is noted in `walk`. Returns `None` if there are too many exceptions.
    fn exceptions(
        &mut self,
        (rest, run): (Id, Run),
        ends: &[(Id, u32)],
        walk: &mut Walk,
    ) -> Result<Option<Exceptions>> {
        let (trie, others) = (walk.trie, ByteSet::ALL.minus(run.plain));
        let mut except = Exceptions::default();
        let mut todo = vec![(0, rest, run.within)];
        while let Some((node, ours, theirs)) = todo.pop() {
            let mut left = trie.child_bytes(node).and(run.plain);
            while let Some(byte) = left.first() {
                self.budget.spend(1)?;
                let (our_bytes, ours) = self.class(ours, byte)?;
                let (their_bytes, theirs) = self.class(theirs, byte)?;
                let class = our_bytes.and(their_bytes).and(left);
                left = left.minus(class);
                if ours == theirs {
                    continue;
                } else if except.tokens.len() > LARGE {
                    return Ok(None);
                }
                for (_, child) in trie.children(node, class) {
                    if ours == EMPTY {
                        let refused = trie.tokens_from(child);
                        if except.tokens.len() + refused.len() > LARGE {
                            return Ok(None);
                        }
                        self.budget.spend(refused.len() as u64)?;
                        except.tokens.extend_from_slice(refused);
                    } else if theirs == EMPTY {
                        self.enter(walk, child, ours)?;
                    } else {
                        except.tokens.extend_from_slice(trie.tokens_at(child));
                        walk.reach(ours, trie.tokens_at(child));
                        let found = self.ends_of(ours)?;
                        let is_whole = theirs == run.within;
                        for (_, after) in trie.children(child, others) {
                            except.nodes.insert(after);
                            if is_whole && found[..] != *ends {
                                except.tokens.extend_from_slice(trie.tokens_from(after));
                            }
                        }
                        if !is_whole || found[..] != *ends {
                            self.end_at(walk, child, &found)?;
                        }
                        walk.todo.push((child, ours, others));
                        todo.push((child, ours, theirs));
                    }
                }
            }
        }
        except.tokens.sort_unstable();
        except.tokens.dedup();
        Ok(Some(except))
    }

    /// The bytes that do the same as `byte`, and the residual after them.
    fn class(&mut self, state: Id, byte: u8) -> Result<(ByteSet, Id)> {
        let (bytes, next) = self.machine.arena.edge(state, byte, self.budget)?;
        if next != EMPTY {
            return Ok((bytes, next));
        }
        Ok((ByteSet::ALL.minus(self.machine.arena.first(state, self.budget)?), EMPTY))
    }
}
