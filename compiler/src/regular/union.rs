//! Unions in normal form.
//!
//! They are flat, sorted, without repetition, with common heads factored out (which turns enumerations into tries) and
//! touching repetition ranges merged (which keeps `(a|aa){0,500}` from remembering every count).

use smallvec::SmallVec;

use super::arena::{Arena, EMPTY, EPS, Flags, Id, Kids, List, Node, TOP};
use super::byteset::ByteSet;
use crate::deep;

impl Arena {
    pub fn alt2(&mut self, a: Id, b: Id) -> Id {
        if a == b || b == EMPTY {
            return a;
        }
        if a == EMPTY {
            return b;
        }
        self.alt(&[a, b])
    }

    /// Union.
    pub fn alt(&mut self, items: &[Id]) -> Id {
        let mut flat: List = SmallVec::new();
        for &i in items {
            match self.nodes[i as usize] {
                Node::Empty => {}
                Node::Not(EMPTY) => return TOP,
                Node::Alt(k) => flat.extend_from_slice(self.list(k)),
                _ => flat.push(i),
            }
        }
        flat.sort_unstable();
        flat.dedup();
        self.merge_classes(&mut flat);
        self.merge_heads(&mut flat);
        if flat.len() > 1
            && flat[0] == EPS
            && flat[1..].iter().any(|&i| self.ever_nullable(i) && !self.flag(i, Flags::TAGGED))
        {
            flat.remove(0);
        }
        match flat.len() {
            0 => EMPTY,
            1 => flat[0],
            _ => {
                let flags = self.union_flags(&flat);
                self.intern(Node::Alt(Kids::NONE), &flat, flags)
            }
        }
    }

    fn merge_classes(&mut self, flat: &mut List) {
        let is_class = |arena: &Arena, i: &Id| matches!(arena.nodes[*i as usize], Node::Class(_));
        if flat.iter().filter(|i| is_class(self, i)).count() < 2 {
            return;
        }
        let mut all = ByteSet::NONE;
        for &i in flat.iter() {
            if let Node::Class(s) = self.nodes[i as usize] {
                all = all.or(self.sets[s as usize]);
            }
        }
        flat.retain(|i| !is_class(self, i));
        flat.push(self.class(all));
        flat.sort_unstable();
    }

    /// `h t | h u` becomes `h (t|u)`, and `x{a,b} t | x{c,d} t` one range where the ranges touch.
    fn merge_heads(&mut self, flat: &mut List) {
        if flat.len() < 2 {
            return;
        }
        let split = |arena: &Arena, i: Id| match arena.nodes[i as usize] {
            Node::Concat(h, t) => (h, t),
            _ => (i, EPS),
        };
        // (class of heads that may merge, head, tail): repetitions of one body count as one class
        let mut parts: SmallVec<[(Id, Id, Id); 8]> = flat
            .iter()
            .map(|&i| {
                let (h, t) = split(self, i);
                match self.nodes[h as usize] {
                    Node::Repeat(x, ..) if !self.flag(x, Flags::LOOKS) => (x, h, t),
                    _ => (h, h, t),
                }
            })
            .collect();
        parts.sort_unstable();
        if parts.windows(2).all(|w| w[0].0 != w[1].0) {
            return;
        }
        let mut out: List = SmallVec::new();
        let mut from = 0;
        while from < parts.len() {
            let mut to = from + 1;
            while to < parts.len() && parts[to].0 == parts[from].0 {
                to += 1;
            }
            if to - from == 1 {
                let (_, h, t) = parts[from];
                out.push(self.concat(h, t));
            } else {
                let group: SmallVec<[(Id, Id, Id); 8]> = parts[from..to].into();
                self.merge_group(&group, &mut out);
            }
            from = to;
        }
        out.sort_unstable();
        out.dedup();
        *flat = out;
    }

    fn merge_group(&mut self, group: &[(Id, Id, Id)], out: &mut List) {
        // first equal heads, then touching ranges with equal tails
        let mut by_head: SmallVec<[(Id, Id); 8]> = SmallVec::new();
        let mut at = 0;
        while at < group.len() {
            let head = group[at].1;
            let mut tails: List = SmallVec::new();
            while at < group.len() && group[at].1 == head {
                tails.push(group[at].2);
                at += 1;
            }
            let tail = if tails.len() == 1 { tails[0] } else { deep(|| self.alt(&tails)) };
            by_head.push((head, tail));
        }
        let mut ranges: SmallVec<[(Id, Id, u32, u32); 8]> = SmallVec::new();
        for (head, tail) in by_head {
            match self.nodes[head as usize] {
                Node::Repeat(x, a, b) => ranges.push((tail, x, a, b)),
                _ => {
                    let joined = self.concat(head, tail);
                    out.push(joined);
                }
            }
        }
        ranges.sort_unstable();
        let mut merged: SmallVec<[(Id, Id, u32, u32); 8]> = SmallVec::new();
        for (tail, x, a, b) in ranges {
            match merged.last_mut() {
                Some(m) if m.0 == tail && m.1 == x && a <= m.3.saturating_add(1) => m.3 = m.3.max(b),
                _ => merged.push((tail, x, a, b)),
            }
        }
        for (tail, x, a, b) in merged {
            let head = self.repeat(x, a, b);
            let joined = self.concat(head, tail);
            out.push(joined);
        }
    }

    /// A union that the caller knows to be in normal form but for order (the branches of a trie).
    pub(super) fn alt_of_branches(&mut self, mut branches: List) -> Id {
        branches.sort_unstable();
        match branches.len() {
            0 => EMPTY,
            1 => branches[0],
            _ => {
                let flags = self.union_flags(&branches);
                self.intern(Node::Alt(Kids::NONE), &branches, flags)
            }
        }
    }

    /// Flags of a union.
    fn union_flags(&self, ids: &[Id]) -> Flags {
        Flags((self.any_of(ids) & !Flags::FINITE) | (self.all_of(ids) & Flags::FINITE))
    }
}
