//! Copying expressions from one arena to another: so a collection keeps what is still needed.

use rustc_hash::FxHashMap;

use super::arena::{Arena, Id, List, Node};
use crate::recursion::deep;

impl Arena {
    /// An arena for the same vocabulary, with nothing in it.
    pub fn emptied(&self) -> Arena {
        Arena::new(self.spelling(), self.cap, self.keys())
    }

    /// The expression `id` of `from`, in this arena, with `position` in place of each position.
    pub fn import(
        &mut self,
        from: &Arena,
        id: Id,
        position: &mut dyn FnMut(u32) -> u32,
        done: &mut FxHashMap<Id, Id>,
    ) -> Id {
        if let Some(&here) = done.get(&id) {
            return here;
        }
        let mut go = |arena: &mut Arena, i: Id| deep(|| arena.import(from, i, position, done));
        let here = match from.nodes[id as usize] {
            Node::Empty => super::EMPTY,
            Node::Eps => super::EPS,
            Node::Class(s) => self.class(from.sets[s as usize]),
            Node::Concat(..) => {
                // sequences are as long as the texts of grammars are: down to what is known, then up again
                let (mut path, mut at) = (Vec::new(), id);
                while let Node::Concat(a, b) = from.nodes[at as usize]
                    && !done.contains_key(&at)
                {
                    path.push((at, a));
                    at = b;
                }
                let mut tail = deep(|| self.import(from, at, position, done));
                for (whole, a) in path.into_iter().rev() {
                    let head = deep(|| self.import(from, a, position, done));
                    tail = self.concat(head, tail);
                    done.insert(whole, tail);
                }
                return tail;
            }
            Node::Alt(k) => {
                let kids: List = from.list(k).iter().map(|&i| go(self, i)).collect();
                self.alt(&kids)
            }
            Node::And(k) => {
                let kids: List = from.list(k).iter().map(|&i| go(self, i)).collect();
                self.and(&kids)
            }
            Node::Not(a) => {
                let a = go(self, a);
                self.not(a)
            }
            Node::Repeat(a, least, most) => {
                let a = go(self, a);
                self.repeat(a, least, most)
            }
            Node::Accept(p) => self.accept(position(p), from.holds_counts(id)),
            Node::Ahead(a) => {
                let a = go(self, a);
                self.ahead(a)
            }
            Node::Behind(a) => {
                let a = go(self, a);
                self.behind(a)
            }
            Node::Scope(a) => {
                let a = go(self, a);
                self.scope(a)
            }
            Node::Unit(a) => {
                let a = go(self, a);
                self.unit(a)
            }
            Node::Lexeme(a) => {
                let a = go(self, a);
                self.lexeme(a)
            }
            Node::Past(class) => self.past(class),
            Node::After(class, a) => {
                let a = go(self, a);
                self.after(class, a)
            }
            Node::Under(a, b) => {
                let (a, b) = (go(self, a), go(self, b));
                self.under(a, b)
            }
        };
        done.insert(id, here);
        here
    }
}
