//! The mask rows of a constraint, kept by footprint.
//!
//! A mask depends on the kernel's *footprint* only: the kernel with its counts saturated to what a token can tell apart
//! (`regular/saturate.rs`), and with its stacks cut off below the frames that tokens return to. How many frames these
//! are shows when the mask is made, so footprints of few frames are tried first. Kernels that differ only in the depth
//! of their stacks or in counts that no token tells apart thus share a row.
//!
//! Where heads are searched for an ending (`Machine::careful`), that depends on whole stacks: rows are then made from
//! kernels as they are, and not kept here.

use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use super::cache::{ConstraintCache, VocabularyCache};
use super::maker::{Answer, MaskMaker};
use super::row::Row;
use crate::budget::Budget;
use crate::error::Result;
use crate::ir::UNBOUNDED;
use crate::regular::{Counts, Limit, Marks};
use crate::stack::{Heads, Machine};
use crate::vocabulary::{Vocabulary, get_bit};

/// The mask of a footprint: the tokens that it allows whatever the rest of the stacks is, and those of which that depends
/// on the rest.
#[derive(Clone)]
struct Partial {
    row: Arc<Row>,
    /// `None`: of none.
    unsure: Option<Arc<[u32]>>,
}

impl Partial {
    fn new(row: Arc<Row>, unsure: Vec<u32>) -> Partial {
        Partial { row, unsure: if unsure.is_empty() { None } else { Some(unsure.into()) } }
    }
}

/// How many frames footprints show, from the shallowest; then twice as many each time.
const DEPTHS: [u32; 4] = [1, 2, 3, 4];

/// The same of grammars with lexers. Parsers reduce before they read, most of all behind names and numbers, where many
/// tokens may go on: to try one by one those that few frames leave open takes longer than the mask of more frames.
const LEXICAL_DEPTHS: [u32; 1] = [8];

/// To try more tokens than this one by one on a whole stack takes longer than the mask of that.
const FEW_UNSURE: usize = 128;

/// To try so many long tokens one by one takes longer than to make the mask from the counts.
const MANY_LONG: usize = 2048;

/// What masks are made from: the grammar's automaton over bytes and the vocabulary.
pub struct Sources<'a> {
    pub machine: &'a mut Machine,
    pub vocab: &'a Vocabulary,
    pub budget: &'a mut Budget,
}

/// The rows found so far, and what was found out on the way.
pub struct Masks {
    shared: Arc<VocabularyCache>,
    local: ConstraintCache,
    /// `None`: the mask depends on more frames than the footprint shows.
    rows: FxHashMap<Heads, Option<Partial>>,
    row_bytes: usize,
}

impl Masks {
    pub fn new(shared: Arc<VocabularyCache>) -> Masks {
        Masks { shared, local: ConstraintCache::default(), rows: FxHashMap::default(), row_bytes: 0 }
    }

    /// Number of footprints.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Bytes of the rows.
    pub fn row_bytes(&self) -> usize {
        self.row_bytes
    }

    /// Bytes of rows and tries, which have no room to grow.
    pub fn exact_bytes(&self) -> usize {
        self.row_bytes + self.local.steps.exact_bytes()
    }

    /// Bytes of everything else, roughly.
    pub fn memory(&self) -> usize {
        self.rows.len() * 96 + self.local.memory()
    }

    /// Of these, what only new rows need: bytes of tables, and of tries.
    pub fn ways(&self) -> (usize, usize) {
        (self.local.memory(), self.local.steps.exact_bytes())
    }

    /// Drops everything that is known of residuals and stacks, whose numbers lose their meaning.
    pub fn clear(&mut self) {
        *self = Masks::new(self.shared.clone());
    }

    /// Forgets what was found out on the way to the rows, which stay. Returns what drops it, a little with each item.
    pub fn forget_ways(&mut self) -> impl Iterator<Item = ()> + Send + use<> {
        let mut ways = std::mem::take(&mut self.local);
        self.local.kin_bits = ways.kin_bits; // the rows may still share them
        std::mem::take(&mut ways.steps).into_drops().chain(std::iter::once(ways).map(drop))
    }

    /// The row of the tokens that a kernel allows, EOS tokens included: that of the shallowest footprint that settles
    /// it.
    pub fn row(&mut self, mut sources: Sources, kernel: &Heads) -> Result<Arc<Row>> {
        if sources.machine.careful {
            return self.careful_row(&mut sources, kernel);
        }
        let mut before: Option<Partial> = None;
        let depths: &[u32] = if sources.machine.has_lexemes { &LEXICAL_DEPTHS } else { &DEPTHS };
        for depth in depths.iter().copied().chain((1..).map(|more| depths[depths.len() - 1] << more)) {
            let (exact, _) = sources.machine.footprint(kernel, depth, Counts::Exact, sources.budget)?;
            let found = match self.rows.get(&exact) {
                Some(known) => known.clone(),
                None => {
                    let found = match &before {
                        Some(partial) => Some(self.decide(&mut sources, &exact, partial)?),
                        None => self.footprint_row(&mut sources, &exact, depth)?,
                    };
                    self.rows.insert(exact, found.clone());
                    found
                }
            };
            match found {
                Some(Partial { row, unsure: None }) => return Ok(row),
                Some(partial) => before = Some(partial),
                None => {}
            }
        }
        unreachable!("some depth shows the whole of every stack")
    }

    /// The row of a kernel whose heads are searched for an ending.
    fn careful_row(&mut self, sources: &mut Sources, kernel: &Heads) -> Result<Arc<Row>> {
        if sources.machine.settles_truncated() {
            let cut = sources.machine.truncated(kernel, LEXICAL_DEPTHS[0], sources.budget)?;
            match self.kept_row(sources, &cut)? {
                Some(Partial { row, unsure: None }) => return Ok(row),
                Some(partial) if partial.unsure.as_ref().is_some_and(|tokens| tokens.len() <= FEW_UNSURE) => {
                    return Ok(self.decide(sources, kernel, &partial)?.row);
                }
                _ => {}
            }
        }
        let (row, _) = self.maker(sources).row(kernel)?.expect("no stack is cut off");
        Ok(self.keep(row))
    }

    /// The mask of a footprint, given that of a shallower one.
    fn decide(&mut self, sources: &mut Sources, exact: &Heads, before: &Partial) -> Result<Partial> {
        let words = sources.vocab.words();
        let (allowed, unsure) = self.maker(sources).decided(exact, before.unsure.as_deref().unwrap_or_default())?;
        let row = if allowed.is_empty() { before.row.clone() } else { self.keep(before.row.with(&allowed, words)) };
        Ok(Partial::new(row, unsure))
    }

    /// The mask of a footprint. Where it counts: that of a looser footprint without the counts, less the long tokens that
    /// the counts forbid. If too many are long, without the highest count alone.
    fn footprint_row(&mut self, sources: &mut Sources, exact: &Heads, depth: u32) -> Answer<Partial> {
        let mut counts = Counts::Loose;
        loop {
            let (loose, dropped) = sources.machine.footprint(exact, depth, counts, sources.budget)?;
            if dropped == UNBOUNDED {
                return self.new_row(sources, exact);
            }
            let Some(Partial { row: wide, unsure }) = self.kept_row(sources, &loose)? else { return Ok(None) };
            let shortened = match counts {
                Counts::Loose => self.maker(sources).shortened(exact, &wide, dropped)?,
                _ => None,
            };
            let (row, more) = if let Some((row, more)) = shortened {
                (row.map(|row| self.keep(row)), more)
            } else {
                let limits = sources.machine.limits(exact, depth, counts, sources.budget)?;
                let candidates = match &limits {
                    Some(limits) => self.beyond(limits, &wide, sources.vocab),
                    None => longer(&wide, dropped, sources.vocab),
                };
                let highest = limits.as_deref().filter(|_| counts == Counts::Loose).and_then(highest_of_several);
                if candidates.len() >= MANY_LONG {
                    let Some(highest) = highest else { return self.new_row(sources, exact) };
                    counts = Counts::Below(highest);
                    continue;
                }
                let (mut refused, more) = self.refused(&mut *sources, (exact, depth), &candidates, highest)?;
                refused.extend_from_slice(&more);
                let words = sources.vocab.words();
                ((!refused.is_empty()).then(|| self.keep(wide.without(&refused, words))), more)
            };
            let unsure = unsure.iter().flat_map(|tokens| tokens.iter().copied()).chain(more).collect();
            return Ok(Some(Partial::new(row.unwrap_or(wide), unsure)));
        }
    }

    /// Of some tokens those that a footprint forbids, and those of which that depends on more of a truncated stack. They are
    /// tried without the `highest` of several limits first: counts make many more residuals together.
    fn refused(
        &mut self,
        sources: &mut Sources,
        (exact, depth): (&Heads, u32),
        tokens: &[u32],
        highest: Option<u32>,
    ) -> Result<(Vec<u32>, Vec<u32>)> {
        if let Some(counts) = highest.map(Counts::Below)
            && let Some(limits) = sources.machine.limits(exact, depth, counts, sources.budget)?
        {
            let (looser, _) = sources.machine.footprint(exact, depth, counts, sources.budget)?;
            let (mut refused, mut unsure) = self.maker(sources).refused(&looser, tokens)?;
            let decided: FxHashSet<u32> = refused.iter().chain(&unsure).copied().collect();
            let beyond = |t: &u32| limits.iter().any(|limit| limit.is_exceeded_by(sources.vocab.token(*t)));
            let left: Vec<u32> = tokens.iter().copied().filter(|t| !decided.contains(t) && beyond(t)).collect();
            let (more_refused, more_unsure) = self.maker(sources).refused(exact, &left)?;
            refused.extend(more_refused);
            unsure.extend(more_unsure);
            return Ok((refused, unsure));
        }
        self.maker(sources).refused(exact, tokens)
    }

    /// The tokens of a row that are beyond any of these limits, but for EOS tokens, whose bytes are no text.
    fn beyond(&self, limits: &[Limit], row: &Row, vocab: &Vocabulary) -> Vec<u32> {
        let mut bits = vec![0u32; vocab.words()];
        row.write(&mut bits);
        let mut found = Vec::new();
        for limit in limits {
            let tokens = self.shared.beyond(vocab, *limit);
            found.extend(tokens.into_iter().filter(|&t| get_bit(&bits, t) && !vocab.is_eos(t)));
        }
        found.sort_unstable();
        found.dedup();
        found
    }

    /// The mask of a footprint, kept for others with the same.
    fn kept_row(&mut self, sources: &mut Sources, footprint: &Heads) -> Answer<Partial> {
        if let Some(known) = self.rows.get(footprint) {
            return Ok(known.clone());
        }
        let found = self.new_row(sources, footprint)?;
        self.rows.insert(footprint.clone(), found.clone());
        Ok(found)
    }

    fn new_row(&mut self, sources: &mut Sources, kernel: &Heads) -> Answer<Partial> {
        let made = self.maker(sources).row(kernel)?;
        Ok(made.map(|(row, unsure)| Partial::new(self.keep(row), unsure)))
    }

    fn maker<'a>(&'a mut self, sources: &'a mut Sources) -> MaskMaker<'a> {
        MaskMaker {
            machine: sources.machine,
            vocab: sources.vocab,
            shared: &self.shared,
            local: &mut self.local,
            budget: sources.budget,
        }
    }

    /// A row whose bytes are counted as held here.
    pub fn keep(&mut self, row: Row) -> Arc<Row> {
        self.row_bytes += row.memory();
        if let Some(base) = row.base()
            && Arc::strong_count(base) == 1
        {
            self.row_bytes += base.len() * 4;
        }
        Arc::new(row)
    }
}

/// Of several limits the highest one of bytes.
fn highest_of_several(limits: &[Limit]) -> Option<u32> {
    let of_bytes = limits.iter().filter(|limit| limit.marks == Marks::NONE).map(|limit| limit.most);
    of_bytes.max().filter(|_| limits.len() > 1)
}

/// The tokens of a row that have more than so many bytes, but for EOS tokens, whose bytes are no text.
fn longer(row: &Row, length: u32, vocab: &Vocabulary) -> Vec<u32> {
    match row.listed() {
        Some(tokens) => {
            let is_longer = |&t: &u32| vocab.token(t).len() as u64 > length.into() && !vocab.is_eos(t);
            tokens.iter().copied().filter(is_longer).collect()
        }
        None => {
            let mut bits = vec![0u32; vocab.words()];
            row.write(&mut bits);
            vocab.longer_than(length).iter().copied().filter(|&t| get_bit(&bits, t)).collect()
        }
    }
}
