//! Heads that begin with whitespace: `W x`, where the whitespace `W` may be empty and `x` begins with something else.
//!
//! A token that begins with whitespace has nothing else, or goes on with an *end* that `x` alone decides. So the ends
//! are walked from `x`, once for all the whitespace that tokens have before them. Which whitespace `W` admits is cached
//! by its expression, for all grammars on the vocabulary.

use crate::mask::maker::{Answer, MaskMaker};
use crate::mask::row::Draft;
use crate::regular::Id;
use crate::stack::ByteState;

impl MaskMaker<'_> {
    /// The tokens that begin with whitespace of `w`, and go on from `start` if at all.
    pub(super) fn whitespace_then(&mut self, w: Id, start: ByteState) -> Answer<Draft> {
        let admitted = self.shared.whitespace(self.vocab, &mut self.machine.arena, w, self.budget)?;
        let mut found = Draft::default();
        if self.walk(self.vocab.after_blanks(), start, &mut found)?.is_none() {
            return Ok(None);
        }
        let stops = |t: &u32| admitted.stops[self.vocab.blank_run(*t)];
        found.set.retain(stops);
        found.unsure.retain(stops);
        found.set.extend_from_slice(&admitted.only);
        Ok(Some(found))
    }
}
