//! What upper bounds of counts ask of a token: how many bytes it may have, or how many of some of its bytes, before it
//! can tell whether there is a bound. Words are counted by the blanks between them, and few tokens have many blanks.

use rustc_hash::FxHashSet;
use smallvec::SmallVec;

use super::arena::{Arena, Flags, Id, List, Node};
use super::saturate::{Counts, SMALL, Saturated, saturated_bounds};
use crate::budget::Budget;
use crate::byteset::ByteSet;
use crate::error::Result;
use crate::ir::UNBOUNDED;
use crate::recursion::deep;

/// So many different bytes are in many tokens several times: all bytes are counted then.
const MANY_MARKS: u32 = 16;

/// Upper bounds of iterations with marks that are never dropped.
pub(super) const FEW: u32 = 1;

/// Two sets of bytes of which every iteration has at least one each: the blank behind a word, and a byte of the word.
/// [`Marks::NONE`]: any bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Marks(pub ByteSet, pub ByteSet);

impl Marks {
    pub const NONE: Marks = Marks(ByteSet::ALL, ByteSet::ALL);

    /// The most iterations that a text can hold.
    pub fn count(self, text: &[u8]) -> u32 {
        let of = |set: ByteSet| text.iter().filter(|&&byte| set.contains(byte)).count() as u32;
        of(self.0).min(of(self.1))
    }

    /// Those of two parts in sequence: the fewest bytes, and the fewest of the others that say more.
    fn and(self, other: Marks) -> Marks {
        let mut all = [self.0, self.1, other.0, other.1];
        all.sort_by_key(|set| set.len());
        let [fewest, others @ ..] = all;
        let second = others.into_iter().find(|set| !fewest.minus(*set).is_empty());
        Marks(fewest, second.unwrap_or(ByteSet::ALL))
    }

    fn or(self, other: Marks) -> Marks {
        Marks(self.0.or(other.0), self.1.or(other.1))
    }

    /// Whether few tokens hold many. Not so where one byte is a whole iteration: many tokens are nothing but digits.
    fn are_few(self) -> bool {
        self.0.len() <= MANY_MARKS && self.1 != ByteSet::ALL
    }
}

/// A token with at most `most` marks cannot tell whether there is an upper bound. Others have to be tried.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limit {
    pub marks: Marks,
    pub most: u32,
}

impl Limit {
    /// The limit of an upper bound that tokens of at most `most` bytes cannot tell; `UNBOUNDED`: that none can.
    pub fn of_bytes(most: u32) -> Option<Limit> {
        (most != UNBOUNDED).then_some(Limit { marks: Marks::NONE, most })
    }

    /// The least `most` with which few tokens have to be tried.
    pub(super) fn far(self) -> u32 {
        if self.marks == Marks::NONE { SMALL + 1 } else { 1 }
    }

    /// Whether a token has to be tried.
    pub fn is_exceeded_by(self, token: &[u8]) -> bool {
        token.len() > self.most as usize && self.marks.count(token) > self.most
    }

    /// The iterations that may have begun behind the last marks of a token.
    pub(super) fn begun(self) -> u32 {
        u32::from(self.marks != Marks::NONE)
    }
}

pub type Limits = SmallVec<[Limit; 2]>;

/// A repetition without its upper bound, as [`saturated_bounds`] drops it, or because of its marks.
pub(super) struct Loosened {
    pub(super) bounds: (u32, u32),
    /// The bytes up to which tokens cannot tell that it was dropped; `UNBOUNDED`: it was not, or none can.
    pub(super) visible: u32,
    pub(super) limit: Option<Limit>,
}

impl Arena {
    /// The marks of an expression, if they are few.
    pub(super) fn marks(&mut self, x: Id) -> Marks {
        let marks = self.all_marks(x);
        if marks.are_few() { marks } else { Marks::NONE }
    }

    fn all_marks(&mut self, x: Id) -> Marks {
        if let Some(&known) = self.marks.get(&x) {
            return known;
        }
        let found = match self.nodes[x as usize] {
            Node::Class(set) => Marks(self.sets[set as usize], ByteSet::ALL),
            Node::Concat(a, b) => deep(|| self.all_marks(a)).and(deep(|| self.all_marks(b))),
            Node::Alt(kids) => {
                let kids: List = self.list(kids).into();
                let none = Marks(ByteSet::NONE, ByteSet::NONE);
                kids.into_iter().fold(none, |all, kid| all.or(deep(|| self.all_marks(kid))))
            }
            Node::Repeat(body, least, _) if least > 0 => deep(|| self.all_marks(body)),
            _ => Marks::NONE,
        };
        self.marks.insert(x, found);
        found
    }

    /// The bounds of `x{least,most}` in saturated form.
    pub(super) fn loosened_bounds(&mut self, x: Id, (least, most): (u32, u32), counts: Counts) -> Loosened {
        let size = self.least_length(x).max(1);
        let (least, kept, visible) = saturated_bounds((least, most), size, self.cap, counts);
        if most == UNBOUNDED || counts != Counts::Loose || kept == UNBOUNDED && visible == UNBOUNDED {
            return Loosened { bounds: (least, kept), visible, limit: None };
        }
        let marks = self.marks(x);
        if marks != Marks::NONE && most > FEW {
            let limit = Some(Limit { marks, most: most - 1 });
            return Loosened { bounds: (least, UNBOUNDED), visible: most.saturating_mul(size), limit };
        }
        Loosened { bounds: (least, kept), visible, limit: Limit::of_bytes(visible) }
    }

    /// What the upper bounds ask of tokens that [`Arena::saturate`] drops. `None`: it is not known.
    pub fn limits(
        &mut self,
        id: Id,
        counts: Counts,
        position: &mut dyn FnMut(u32) -> Saturated,
        budget: &mut Budget,
    ) -> Result<Option<Limits>> {
        let mut search = Search { counts, limits: Limits::new(), behind: FxHashSet::default() };
        Ok(if search.add(self, (id, true), position, budget)? { Some(search.limits) } else { None })
    }
}

struct Search {
    counts: Counts,
    limits: Limits,
    /// What was looked at already.
    behind: FxHashSet<(Id, bool)>,
}

impl Search {
    /// Goes where [`Arena::saturate`] goes. Returns whether all is known.
    fn add(
        &mut self,
        arena: &mut Arena,
        (id, front): (Id, bool),
        position: &mut dyn FnMut(u32) -> Saturated,
        budget: &mut Budget,
    ) -> Result<bool> {
        if !arena.flag(id, Flags::COUNTS) || !self.behind.insert((id, front)) {
            return Ok(true);
        }
        budget.spend(1)?;
        match arena.nodes[id as usize] {
            Node::Concat(a, b) => Ok(deep(|| self.add(arena, (a, front), position, budget))?
                && deep(|| self.add(arena, (b, front && arena.nullable(a)), position, budget))?),
            Node::Alt(kids) => {
                let kids: List = arena.list(kids).into();
                for kid in kids {
                    if !deep(|| self.add(arena, (kid, front), position, budget))? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            Node::Repeat(..) if !front && arena.written.contains(&id) => Ok(true),
            Node::And(_) | Node::Scope(_) | Node::Unit(_) if front => {
                if let Some((_, limits)) = arena.loosened(id, self.counts, budget)? {
                    self.limits.extend(limits);
                }
                Ok(true)
            }
            Node::Repeat(x, least, most) if !arena.nullable(x) => {
                self.limits.extend(arena.loosened_bounds(x, (least, most), self.counts).limit);
                deep(|| self.add(arena, (x, front), position, budget))
            }
            Node::After(..) | Node::Under(..) => Ok(false),
            Node::Accept(p) => {
                self.limits.extend(Limit::of_bytes(position(p).1));
                Ok(true)
            }
            _ => Ok(true),
        }
    }
}
