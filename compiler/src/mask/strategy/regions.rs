//! Heads whose residual belongs to a region: a shared row of the tokens of plain characters, and a walk over the
//! others.

use crate::error::Result;
use crate::mask::cache::Region;
use crate::mask::maker::{Answer, Attempt, MANY, MaskMaker};
use crate::mask::row::Draft;
use crate::stack::Head;

impl MaskMaker<'_> {
    /// The strategy for heads in a region that was found before: to find one may take longer than other strategies.
    pub(super) fn by_known_region(&mut self, head: Head) -> Result<Attempt> {
        if self.knows_region(head.rest) { self.by_region(head) } else { Ok(Attempt::Declined) }
    }

    /// The strategy for heads in a region: plain tokens are allowed, wherever they lead; the others are walked.
    pub(super) fn by_region(&mut self, head: Head) -> Result<Attempt> {
        if !self.stays_broad(head)? {
            return Ok(Attempt::Declined);
        }
        let region = self.region(head.rest)?;
        let Some(region) = region.filter(|r| self.vocab.holders_of_any(r.changing) <= MANY) else {
            return Ok(Attempt::Declined);
        };
        Ok(self.region_mask(head, region)?.into())
    }

    /// The mask of a head in this region.
    pub(super) fn region_mask(&mut self, head: Head, region: Region) -> Answer<Draft> {
        let class = self.shared.class(self.vocab, region.plain, region.changing);
        let others = self.shared.holders(self.vocab, region.changing);
        let start = self.machine.closure_state(&[head], self.budget)?;
        let mut draft = Draft { base: Some(class.plain.clone()), ..Draft::default() };
        Ok(self.walk(&others, start, &mut draft)?.map(|()| draft))
    }
}
