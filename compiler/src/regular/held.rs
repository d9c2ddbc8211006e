//! Which bytes the texts of an expression hold: a quick proof that an intersection is empty.
//!
//! Where one operand asks for a byte that another one has in no text (a format of dates after a `t`, and a pattern with a
//! `T`), a search of the product would visit all pairs of residuals only to find no end.

use super::arena::{Arena, Id, List, Node};
use crate::byteset::ByteSet;
use crate::recursion::deep;

/// Bytes that texts hold.
#[derive(Clone, Copy)]
pub(super) struct Held {
    /// By all texts of a language, as far as its form shows.
    all: ByteSet,
    /// By any of them, and perhaps others.
    any: ByteSet,
}

impl Arena {
    /// Whether an intersection is empty, since one operand asks for a byte that another one does not have.
    pub(super) fn contradicts_itself(&mut self, id: Id) -> bool {
        let Held { all, any } = self.held(id);
        matches!(self.nodes[id as usize], Node::And(_)) && !all.minus(any).is_empty()
    }

    fn held(&mut self, id: Id) -> Held {
        const UNKNOWN: Held = Held { all: ByteSet::NONE, any: ByteSet::ALL };
        match self.nodes[id as usize] {
            Node::Empty => return Held { all: ByteSet::ALL, any: ByteSet::NONE },
            Node::Eps => return Held { all: ByteSet::NONE, any: ByteSet::NONE },
            Node::Class(s) => {
                let set = self.sets[s as usize];
                return Held { all: if set.len() == 1 { set } else { ByteSet::NONE }, any: set };
            }
            Node::Concat(..) | Node::Alt(_) | Node::And(_) | Node::Repeat(..) => {}
            _ => return UNKNOWN,
        }
        if let Some(&known) = self.dfa.held.get(&id) {
            return known;
        }
        let found = match self.nodes[id as usize] {
            Node::Concat(a, b) => {
                let (a, b) = (deep(|| self.held(a)), deep(|| self.held(b)));
                Held { all: a.all.or(b.all), any: a.any.or(b.any) }
            }
            Node::Repeat(x, least, _) => {
                let x = deep(|| self.held(x));
                Held { all: if least > 0 { x.all } else { ByteSet::NONE }, ..x }
            }
            Node::Alt(k) => {
                let kids: List = self.list(k).into();
                let none = Held { all: ByteSet::ALL, any: ByteSet::NONE };
                kids.into_iter().fold(none, |held, kid| {
                    let kid = deep(|| self.held(kid));
                    Held { all: held.all.and(kid.all), any: held.any.or(kid.any) }
                })
            }
            Node::And(k) => {
                let kids: List = self.list(k).into();
                kids.into_iter().fold(UNKNOWN, |held, kid| {
                    let kid = deep(|| self.held(kid));
                    Held { all: held.all.or(kid.all), any: held.any.and(kid.any) }
                })
            }
            _ => unreachable!("the others were answered above"),
        };
        self.dfa.held.insert(id, found);
        found
    }
}
