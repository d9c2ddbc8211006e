//! Unions of heads that other strategies are for: the mask of a union is the union of its branches' masks.
//!
//! The key of an object that satisfies one of several schemas is such a union, of one "any key but these" for each.

use smallvec::SmallVec;

use crate::error::Result;
use crate::mask::maker::{Attempt, MaskMaker};
use crate::mask::row::Draft;
use crate::regular::{Form, Id};
use crate::stack::Head;

impl MaskMaker<'_> {
    /// The strategy for unions with branches that loop, or that are a loop but for a few texts. What is left is made as
    /// a head of its own.
    pub(super) fn by_parts(&mut self, head: Head) -> Result<Attempt> {
        let branches = self.machine.arena.branches(head.rest);
        if branches.len() == 1 {
            return Ok(Attempt::Declined);
        }
        let words = self.vocab.words();
        let (mut all, mut others) = (Draft::default(), SmallVec::<[Id; 8]>::new());
        for &rest in &branches {
            let part = Head { rest, ..head };
            match self.by_itself(part)? {
                Attempt::Made(draft) => all.add(draft, words),
                Attempt::Deeper => return Ok(Attempt::Deeper),
                Attempt::Declined => others.push(rest),
            }
        }
        if others.len() == branches.len() {
            return Ok(Attempt::Declined);
        }
        if !others.is_empty() {
            let rest = self.machine.arena.alt(&others);
            let Some(draft) = self.without_whitespace(Head { rest, ..head })? else { return Ok(Attempt::Deeper) };
            all.add(draft, words);
        }
        Ok(Attempt::Made(all))
    }

    /// The mask of a branch that loops, or that is a loop but for a few texts.
    fn by_itself(&mut self, branch: Head) -> Result<Attempt> {
        match self.machine.arena.form(branch.rest) {
            Form::Byte(..) => Ok(Attempt::Declined), // a text, mostly
            Form::Then(part, _) if self.machine.arena.but_for_few(part).is_some() => self.by_exclusion(branch),
            _ => self.by_loop(branch),
        }
    }
}
