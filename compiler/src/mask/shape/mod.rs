//! What heads look like: which strategy fits depends on it. Tokens are not looked at here.

mod looping;
mod region;

pub(super) use looping::{Lead, Looping, MIN_PLAIN, find_self_loop, lead_bytes};

use super::maker::{BROAD, MaskMaker};
use crate::byteset::ByteSet;
use crate::error::Result;
use crate::regular::{EMPTY, Id};
use crate::stack::Head;

/// If half of the printable bytes lead to the same residual, one of these does, unless a grammar is made to avoid them.
const PROBES: [u8; 6] = *b"z~Q7k!";

/// A quarter of the printable bytes, which is more than the digits of numbers in base 16: behind these, a walk is short.
const BEYOND_DIGITS: u32 = 24;

impl MaskMaker<'_> {
    /// A residual without its tag, which says where it was met.
    fn untagged(&mut self, x: Id) -> Id {
        self.machine.arena.untag(x).map_or(x, |(untagged, _)| untagged)
    }

    /// Whether many bytes can follow the first one; not so where keys begin that are all known.
    pub(super) fn stays_broad(&mut self, head: Head) -> Result<bool> {
        for probe in PROBES {
            let (_, rest) = self.machine.arena.edge(head.rest, probe, self.budget)?;
            if rest != EMPTY && self.machine.arena.first(rest, self.budget)?.len() >= BROAD {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The head that most of the printable bytes that may follow lead to from this one, if they are many and it is another;
    /// with one of these bytes.
    pub(super) fn after_most(&mut self, head: Head) -> Result<Option<(Head, u8)>> {
        let printable = self.machine.arena.first(head.rest, self.budget)?.and(ByteSet::range(0x20, 0x7E));
        for probe in PROBES {
            let (set, rest) = self.machine.arena.edge(head.rest, probe, self.budget)?;
            let to = set.and(printable).len();
            if to >= BEYOND_DIGITS && to * 2 >= printable.len() {
                let after = Head { rest, ..head };
                return Ok((after != head).then_some((after, probe)));
            }
        }
        Ok(None)
    }
}
