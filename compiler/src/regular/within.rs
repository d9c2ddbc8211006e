//! What may stand in the texts of an expression behind some plain bytes, seen from its form: none of its residuals is
//! made, so that counts cost nothing.

use rustc_hash::FxHashMap;

use super::arena::{Arena, Id, Node};
use crate::byteset::ByteSet;
use crate::recursion::deep;

/// Expressions with more parts in front of what plain bytes cannot pass are not looked at.
const MOST: usize = 4096;

/// What may stand behind plain bytes.
#[derive(Clone, Copy)]
struct Within {
    /// The bytes that may come next, behind any plain ones.
    bytes: ByteSet,
    /// Whether plain bytes alone may be a whole text.
    passes: bool,
}

impl Arena {
    /// The bytes that may follow in texts of `x` behind bytes of `plain` alone, if there are any; perhaps more than
    /// really may. `None`: such bytes may be a whole text of `x`, or its form does not show it.
    pub fn within(&self, x: Id, plain: ByteSet) -> Option<ByteSet> {
        let found = Search { arena: self, plain, known: FxHashMap::default() }.within(x)?;
        if found.passes { None } else { Some(found.bytes) }
    }
}

struct Search<'a> {
    arena: &'a Arena,
    plain: ByteSet,
    known: FxHashMap<Id, Within>,
}

impl Search<'_> {
    fn within(&mut self, x: Id) -> Option<Within> {
        if let Some(&known) = self.known.get(&x) {
            return Some(known);
        }
        let arena = self.arena;
        let found = match arena.nodes[x as usize] {
            Node::Empty => Within { bytes: ByteSet::NONE, passes: false },
            Node::Eps => Within { bytes: ByteSet::NONE, passes: true },
            Node::Class(set) => {
                let bytes = arena.sets[set as usize];
                Within { bytes, passes: !bytes.and(self.plain).is_empty() }
            }
            Node::Concat(head, tail) => {
                let head = deep(|| self.within(head))?;
                if head.passes {
                    let tail = deep(|| self.within(tail))?;
                    Within { bytes: head.bytes.or(tail.bytes), passes: tail.passes }
                } else {
                    head
                }
            }
            Node::Repeat(body, least, _) => {
                let body = deep(|| self.within(body))?;
                Within { passes: body.passes || least == 0, ..body }
            }
            Node::Alt(kids) => {
                let mut all = Within { bytes: ByteSet::NONE, passes: false };
                for &kid in arena.list(kids) {
                    let kid = deep(|| self.within(kid))?;
                    all = Within { bytes: all.bytes.or(kid.bytes), passes: all.passes || kid.passes };
                }
                all
            }
            Node::And(kids) => {
                let mut all = Within { bytes: ByteSet::ALL, passes: true };
                for &kid in arena.list(kids) {
                    let kid = deep(|| self.within(kid))?;
                    all = Within { bytes: all.bytes.and(kid.bytes), passes: all.passes && kid.passes };
                }
                all
            }
            Node::Not(_) => Within { bytes: ByteSet::ALL, passes: true },
            _ => return None,
        };
        if self.known.len() == MOST {
            return None;
        }
        self.known.insert(x, found);
        Some(found)
    }
}
