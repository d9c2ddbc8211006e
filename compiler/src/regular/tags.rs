//! Tags: the positions behind the terminals of an expression, at which its texts end.

use smallvec::SmallVec;

use super::arena::{Arena, EMPTY, EPS, Flags, Id, List, Node};
use crate::byteset::ByteSet;
use crate::ir::UNBOUNDED;
use crate::recursion::deep;

impl Arena {
    /// The end of a terminal. `counts`: whether the position holds counts that saturation may change.
    pub fn accept(&mut self, position: u32, counts: bool) -> Id {
        let counts = if counts { Flags::COUNTS } else { 0 };
        self.intern(Node::Accept(position), &[], Flags(Flags::NULLABLE | Flags::TAGGED | counts))
    }

    pub fn is_accept(&self, id: Id) -> bool {
        matches!(self.nodes[id as usize], Node::Accept(_))
    }

    /// One byte, nothing, or one part after the other.
    pub fn is_sequence(&self, id: Id) -> bool {
        matches!(self.nodes[id as usize], Node::Eps | Node::Class(_) | Node::Concat(..))
    }

    /// The positions whose `Accept` can be reached without another byte, in order.
    pub fn tags(&self, id: Id) -> SmallVec<[u32; 4]> {
        let mut found = SmallVec::new();
        self.collect_tags(id, &mut found);
        found.sort_unstable();
        found.dedup();
        found
    }

    fn collect_tags(&self, id: Id, out: &mut SmallVec<[u32; 4]>) {
        if !self.flag(id, Flags::TAGGED) || !self.nullable(id) {
            return;
        }
        match self.nodes[id as usize] {
            Node::Accept(p) => out.push(p),
            Node::Concat(_, t) => deep(|| self.collect_tags(t, out)), // the head is nullable, too
            Node::Alt(k) => self.list(k).iter().for_each(|&i| deep(|| self.collect_tags(i, out))),
            _ => {}
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

    /// A repetition at the head: its body, its upper bound, and what comes after it.
    pub fn counted(&self, id: Id) -> Option<(Id, u32, Id)> {
        let (head, rest) = match self.nodes[id as usize] {
            Node::Concat(head, rest) => (head, rest),
            _ => (id, EPS),
        };
        match self.nodes[head as usize] {
            Node::Repeat(body, _, most) => Some((body, most, rest)),
            _ => None,
        }
    }

    /// Whether the expression begins with a repetition that can be counted down more often than `many` times.
    pub fn counts_down(&self, id: Id, many: u32) -> bool {
        match self.nodes[id as usize] {
            Node::Concat(head, _) => deep(|| self.counts_down(head, many)),
            Node::Repeat(_, _, most) => most != UNBOUNDED && most > many,
            Node::Alt(k) | Node::And(k) => self.list(k).iter().any(|&i| deep(|| self.counts_down(i, many))),
            Node::Scope(x) | Node::Unit(x) => deep(|| self.counts_down(x, many)),
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
