//! The mask rows of a constraint, kept by footprint.
//!
//! A mask is a function of the kernel's *footprint*: counts saturated to what a token can tell apart, and stacks cut
//! off below what the walks look at. Footprints are tried from the shallowest, so that depth and counters do not
//! multiply rows.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::cache::{ConstraintCache, VocabularyCache};
use super::maker::{Answer, MaskMaker};
use super::row::Row;
use crate::budget::Budget;
use crate::error::Result;
use crate::ir::UNBOUNDED;
use crate::regular::Counts;
use crate::stack::{Heads, Machine};
use crate::vocabulary::{Vocabulary, get_bit};

/// What is known of a footprint's mask.
enum Known {
    Row(Arc<Row>),
    /// The mask depends on more frames than this footprint shows.
    Deeper,
}

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
    rows: FxHashMap<Heads, Known>,
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

    /// Bytes of everything else, roughly.
    pub fn memory(&self) -> usize {
        self.rows.len() * 96 + self.local.memory()
    }

    /// Drops everything that is known of residuals and stacks, whose numbers lose their meaning.
    pub fn clear(&mut self) {
        *self = Masks::new(self.shared.clone());
    }

    /// The row of the tokens that a kernel allows, EOS tokens included: that of the shallowest footprint that settles
    /// it.
    pub fn row(&mut self, mut sources: Sources, kernel: &Heads) -> Result<Arc<Row>> {
        if sources.machine.careful {
            let row = self.maker(&mut sources).row(kernel)?.expect("no stack is cut off");
            return Ok(self.keep(row));
        }
        for depth in 1.. {
            let (exact, _) = sources.machine.footprint(kernel, depth, Counts::Exact, sources.budget)?;
            if let Some(known) = self.rows.get(&exact) {
                match known {
                    Known::Row(row) => return Ok(row.clone()),
                    Known::Deeper => continue,
                }
            }
            match self.footprint_row(&mut sources, &exact, depth)? {
                Some(row) => {
                    self.rows.insert(exact, Known::Row(row.clone()));
                    return Ok(row);
                }
                None => self.rows.insert(exact, Known::Deeper),
            };
        }
        unreachable!("some depth shows the whole of every stack")
    }

    /// The row of a footprint. Where it counts: the row of the looser footprint without the counts, less the long
    /// tokens that the counts forbid.
    fn footprint_row(&mut self, sources: &mut Sources, exact: &Heads, depth: u32) -> Answer<Arc<Row>> {
        let (loose, dropped) = sources.machine.footprint(exact, depth, Counts::Loose, sources.budget)?;
        if dropped == UNBOUNDED {
            let row = self.maker(sources).row(exact)?;
            return Ok(row.map(|row| self.keep(row)));
        }
        let wide = match self.rows.get(&loose) {
            Some(Known::Row(row)) => row.clone(),
            Some(Known::Deeper) => return Ok(None),
            None => {
                let Some(row) = self.maker(sources).row(&loose)? else {
                    self.rows.insert(loose, Known::Deeper);
                    return Ok(None);
                };
                let row = self.keep(row);
                self.rows.insert(loose, Known::Row(row.clone()));
                row
            }
        };
        let vocab = sources.vocab;
        let candidates: Vec<u32> = match wide.listed() {
            Some(tokens) => tokens.iter().copied().filter(|&t| vocab.token(t).len() as u64 > dropped.into()).collect(),
            None => {
                let mut bits = vec![0u32; vocab.words()];
                wide.write(&mut bits);
                vocab.longer_than(dropped).iter().copied().filter(|&t| get_bit(&bits, t)).collect()
            }
        };
        let Some(refused) = self.maker(sources).refused(exact, &candidates)? else { return Ok(None) };
        if refused.is_empty() {
            return Ok(Some(wide));
        }
        let row = wide.without(&refused, vocab.words());
        Ok(Some(self.keep(row)))
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
