//! Tags: the positions behind the terminals of an expression, at which its texts end.

use smallvec::SmallVec;

use super::arena::{Arena, EMPTY, EPS, Flags, Id, List, Node, TOP};
use crate::budget::Budget;
use crate::byteset::ByteSet;
use crate::error::Result;
use crate::ir::UNBOUNDED;
use crate::recursion::deep;

/// Forms of more operands, or of more parts in a row, are not looked for.
const FEW: usize = 8;

/// Ends of terminals: conditions on the whole rest, and positions.
pub type Ends = SmallVec<[(Id, u32); 4]>;

impl Arena {
    /// The end of a terminal. `counts`: whether the position holds counts that saturation may change.
    pub fn accept(&mut self, position: u32, counts: bool) -> Id {
        let counts = if counts { Flags::COUNTS } else { 0 };
        self.intern(Node::Accept(position), &[], Flags(Flags::NULLABLE | Flags::TAGGED | counts))
    }

    pub fn is_accept(&self, id: Id) -> bool {
        matches!(self.nodes[id as usize], Node::Accept(_))
    }

    /// The part and the rest of an expression that is a part which may be empty and holds no tag, then the rest: `p t`, or
    /// `q t | t` as `(q | ) t`.
    pub fn optional_part(&mut self, id: Id, budget: &mut Budget) -> Result<Option<(Id, Id)>> {
        if self.open(id) {
            return Ok(None);
        }
        let operands: List = match self.nodes[id as usize] {
            Node::Concat(part, rest) => {
                return Ok((self.nullable(part) && !self.flag(part, Flags::TAGGED)).then_some((part, rest)));
            }
            Node::Alt(k) if self.list(k).len() <= FEW => self.list(k).into(),
            _ => return Ok(None),
        };
        self.metered(budget, |arena| {
            operands.iter().find_map(|&rest| {
                let parts: Option<List> = operands.iter().map(|&x| arena.part_before(rest, x)).collect();
                Some((arena.alt(&parts?), rest))
            })
        })
    }

    /// The `p` of an expression `p rest`, if it holds no tag.
    fn part_before(&mut self, rest: Id, id: Id) -> Option<Id> {
        let (mut parts, mut at) = (List::new(), id);
        while at != rest {
            let Node::Concat(part, after) = self.nodes[at as usize] else { return None };
            if parts.len() == FEW || self.flag(part, Flags::TAGGED) {
                return None;
            }
            parts.push(part);
            at = after;
        }
        Some(parts.into_iter().rev().fold(EPS, |rest, part| self.concat(part, rest)))
    }

    /// One byte, nothing, or one part after the other.
    pub fn is_sequence(&self, id: Id) -> bool {
        matches!(self.nodes[id as usize], Node::Eps | Node::Class(_) | Node::Concat(..))
    }

    /// Where the expression's terminal can end without another byte: the conditions on the whole rest under which it
    /// does (`TOP`: none), each with the position behind it, in order.
    pub fn ends(&mut self, id: Id) -> Ends {
        let mut found = Ends::new();
        self.collect_ends(id, TOP, &mut found);
        if found.len() < 2 {
            return found;
        }
        found.sort_unstable();
        found.dedup();
        let free: SmallVec<[u32; 4]> = found.iter().filter(|end| end.0 == TOP).map(|end| end.1).collect();
        found.retain(|end| end.0 == TOP || !free.contains(&end.1));
        found
    }

    /// Whether the expression may have [ends](Arena::ends): not within a character, for one.
    #[inline]
    pub fn may_end_here(&self, id: Id) -> bool {
        self.flag(id, Flags::TAGGED) && (self.nullable(id) || self.open(id))
    }

    fn collect_ends(&mut self, id: Id, condition: Id, out: &mut Ends) {
        if !self.may_end_here(id) || condition == EMPTY {
            return;
        }
        match self.nodes[id as usize] {
            Node::Accept(p) => out.push((condition, p)),
            Node::Concat(h, t) if self.nullable(h) && !self.flag(h, Flags::LOOKS) => {
                deep(|| self.collect_ends(t, condition, out));
            }
            Node::Concat(h, t) => {
                for ahead in self.empty_under(h) {
                    let both = self.both_hold(condition, ahead);
                    deep(|| self.collect_ends(t, both, out));
                }
            }
            Node::Alt(k) => {
                let kids: List = self.list(k).into();
                kids.into_iter().for_each(|i| deep(|| self.collect_ends(i, condition, out)));
            }
            Node::Lexeme(x) => deep(|| self.collect_ends(x, condition, out)),
            Node::Under(other, x) => {
                let both = self.both_hold(condition, other);
                deep(|| self.collect_ends(x, both, out));
            }
            _ => {}
        }
    }

    /// The condition that two conditions on the whole rest hold.
    pub fn both_hold(&mut self, a: Id, b: Id) -> Id {
        if (a, b) == (TOP, TOP) {
            return TOP;
        }
        let (a, b) = (self.unit(a), self.unit(b));
        self.and(&[a, b])
    }

    /// The positions whose `Accept` can be reached without another byte, whatever the conditions, in order.
    pub fn tags(&mut self, id: Id) -> SmallVec<[u32; 4]> {
        let mut found: SmallVec<[u32; 4]> = self.ends(id).into_iter().map(|end| end.1).collect();
        found.sort_unstable();
        found.dedup();
        found
    }

    /// The condition on the whole rest that an expression is under, and the expression without it.
    pub fn under_condition(&self, id: Id) -> (Id, Id) {
        match self.nodes[id as usize] {
            Node::Under(condition, x) => (condition, x),
            _ => (TOP, id),
        }
    }

    /// The operands of a union, and of unions in it that are under a condition, each under it.
    pub fn alternatives(&mut self, id: Id) -> List {
        let mut all = List::new();
        for branch in self.branches(id) {
            let (condition, x) = self.under_condition(branch);
            let operands = self.branches(x);
            if condition == TOP || operands.len() == 1 {
                all.push(branch);
            } else {
                operands.into_iter().for_each(|operand| all.push(self.under(condition, operand)));
            }
        }
        all
    }

    /// What of a lexeme stands behind its first parts that have no assertions, as a lexeme.
    pub fn open_tail(&mut self, id: Id) -> Id {
        let mut at = id;
        loop {
            at = match self.nodes[at as usize] {
                Node::Lexeme(x) => x,
                Node::Concat(head, tail) if !self.open(head) => tail,
                _ => return self.lexeme(at),
            };
        }
    }

    /// Whether a condition on the whole rest is met, or not, by its first byte.
    pub fn is_brief(&mut self, condition: Id) -> bool {
        self.parts(condition).iter().all(|part| part.1 == TOP)
    }

    /// Whether nothing is left of the expression's terminal: it is an `Accept`, perhaps under a condition.
    pub fn is_end(&self, id: Id) -> bool {
        match self.nodes[id as usize] {
            Node::Under(_, x) => self.is_accept(x),
            _ => self.is_accept(id),
        }
    }

    /// Calls `found` with the positions of all `Accept`s until it returns `false`. Returns whether it never did.
    pub fn every_tag(&self, id: Id, found: &mut dyn FnMut(u32) -> bool) -> bool {
        if !self.flag(id, Flags::TAGGED) {
            return true;
        }
        match self.nodes[id as usize] {
            Node::Accept(p) => found(p),
            Node::Concat(_, t) => deep(|| self.every_tag(t, found)),
            Node::Alt(k) => self.list(k).iter().all(|&i| deep(|| self.every_tag(i, found))),
            Node::Lexeme(x) | Node::Under(_, x) | Node::After(_, x) => deep(|| self.every_tag(x, found)),
            _ => true,
        }
    }

    /// The expression without the texts that end in an `Accept` that `of` holds for.
    pub fn without_tags(&mut self, id: Id, of: &mut dyn FnMut(u32) -> bool) -> Id {
        if !self.flag(id, Flags::TAGGED) {
            return id;
        }
        match self.nodes[id as usize] {
            Node::Accept(p) if of(p) => EMPTY,
            Node::Concat(h, t) => {
                let rest = deep(|| self.without_tags(t, of));
                self.concat(h, rest)
            }
            Node::Alt(k) => {
                let kids: List = self.list(k).into();
                let kept: List = kids.into_iter().map(|i| deep(|| self.without_tags(i, of))).collect();
                self.alt(&kept)
            }
            Node::Lexeme(x) => {
                let kept = deep(|| self.without_tags(x, of));
                self.lexeme(kept)
            }
            Node::After(class, x) => {
                let kept = deep(|| self.without_tags(x, of));
                self.after(class, kept)
            }
            Node::Under(condition, x) => {
                let kept = deep(|| self.without_tags(x, of));
                self.under(condition, kept)
            }
            _ => id,
        }
    }

    /// The expression with another `Accept` in the place of each of its own.
    pub fn retagged(&mut self, id: Id, end: Id) -> Id {
        if !self.flag(id, Flags::TAGGED) {
            return id;
        }
        match self.nodes[id as usize] {
            Node::Accept(_) => end,
            Node::Concat(h, t) => {
                let rest = deep(|| self.retagged(t, end));
                self.concat(h, rest)
            }
            Node::Alt(k) => {
                let kids: List = self.list(k).into();
                let kids: List = kids.into_iter().map(|i| deep(|| self.retagged(i, end))).collect();
                self.alt(&kids)
            }
            Node::Lexeme(x) => {
                let x = deep(|| self.retagged(x, end));
                self.lexeme(x)
            }
            Node::Under(condition, x) => {
                let x = deep(|| self.retagged(x, end));
                self.under(condition, x)
            }
            _ => id,
        }
    }

    /// The one position that all of the expression's `Accept`s name, and the expression without them.
    /// `None` if it names several.
    pub fn untag(&mut self, id: Id) -> Option<(Id, u32)> {
        match self.nodes[id as usize] {
            Node::Accept(p) => Some((EPS, p)),
            Node::Concat(h, t) => {
                let (rest, p) = deep(|| self.untag(t))?;
                Some((self.concat(h, rest), p))
            }
            Node::Alt(k) => {
                let kids: List = self.list(k).into();
                let mut only = None;
                let mut out: List = SmallVec::new();
                for i in kids {
                    let (x, p) = deep(|| self.untag(i))?;
                    if only.is_some_and(|o| o != p) {
                        return None;
                    }
                    only = Some(p);
                    out.push(x);
                }
                Some((self.alt(&out), only?))
            }
            _ => None,
        }
    }

    /// A repetition at the head: its body, its bounds, and what comes after it.
    pub fn counted(&self, id: Id) -> Option<(Id, (u32, u32), Id)> {
        let (head, rest) = match self.nodes[id as usize] {
            Node::Concat(head, rest) => (head, rest),
            _ => (id, EPS),
        };
        match self.nodes[head as usize] {
            Node::Repeat(body, least, most) => Some((body, (least, most), rest)),
            _ => None,
        }
    }

    /// Whether the expression begins with a repetition that can be counted down more often than `many` times.
    pub fn counts_down(&self, id: Id, many: u32) -> bool {
        match self.nodes[id as usize] {
            Node::Concat(head, _) => deep(|| self.counts_down(head, many)),
            Node::Repeat(_, _, most) => most != UNBOUNDED && most > many,
            Node::Alt(k) | Node::And(k) => self.list(k).iter().any(|&i| deep(|| self.counts_down(i, many))),
            Node::Scope(x) | Node::Unit(x) | Node::Lexeme(x) | Node::After(_, x) => deep(|| self.counts_down(x, many)),
            Node::Under(condition, x) => {
                deep(|| self.counts_down(condition, many)) || deep(|| self.counts_down(x, many))
            }
            _ => false,
        }
    }

    /// The part that an expression begins with, if that is nullable and of these bytes alone, and what follows it.
    pub fn led_by(&self, id: Id, bytes: ByteSet) -> Option<(Id, Id)> {
        let Node::Concat(head, tail) = self.nodes[id as usize] else { return None };
        (self.nullable(head) && !self.open(head) && self.consists_of(head, bytes)).then_some((head, tail))
    }

    fn consists_of(&self, id: Id, bytes: ByteSet) -> bool {
        match self.nodes[id as usize] {
            Node::Eps => true,
            Node::Class(s) => self.sets[s as usize].minus(bytes).is_empty(),
            Node::Concat(a, b) => deep(|| self.consists_of(a, bytes)) && deep(|| self.consists_of(b, bytes)),
            Node::Alt(k) => self.list(k).iter().all(|&i| deep(|| self.consists_of(i, bytes))),
            Node::Repeat(x, ..) => deep(|| self.consists_of(x, bytes)),
            _ => false,
        }
    }
}
