//! Intersection, complement and zero-width assertions.

use smallvec::SmallVec;

use super::arena::{Arena, EMPTY, EPS, Flags, Id, Kids, List, Node, TOP};
use crate::byteset::ByteSet;
use crate::recursion::deep;

impl Arena {
    /// Intersection. Operands carry no tags.
    pub fn and(&mut self, items: &[Id]) -> Id {
        let mut flat: List = SmallVec::new();
        for &i in items {
            match self.nodes[i as usize] {
                Node::Empty => return EMPTY,
                Node::Not(EMPTY) => {}
                Node::And(k) => flat.extend_from_slice(self.list(k)),
                _ => flat.push(i),
            }
        }
        self.pay_for(flat.len());
        flat.sort_unstable();
        flat.dedup();
        let opposite = |arena: &Arena, i: Id| match arena.nodes[i as usize] {
            Node::Not(x) => flat.binary_search(&x).is_ok(),
            _ => false,
        };
        if flat.iter().any(|&i| opposite(self, i)) {
            return EMPTY;
        }
        match flat.len() {
            0 => TOP,
            1 => flat[0],
            _ if flat[0] == EPS && self.any_of(&flat) & Flags::BEHIND == 0 => {
                if flat.iter().all(|&i| self.nullable(i)) { EPS } else { EMPTY }
            }
            _ => {
                let nullable = flat.iter().all(|&i| self.nullable(i));
                let search =
                    if self.infinite_but_for_finitely_many(&flat).is_some() { Flags::INFINITE } else { Flags::SEARCH };
                let flags = (self.any_of(&flat) & (Flags::BEHIND | Flags::COUNTS)) | search | u8::from(nullable);
                self.intern(Node::And(Kids::NONE), &flat, Flags(flags))
            }
        }
    }

    /// Complement. The operand carries no tag.
    pub fn not(&mut self, x: Id) -> Id {
        if let Node::Not(y) = self.nodes[x as usize] {
            return y;
        }
        let f = self.flags[x as usize];
        let flags = (f.0 & Flags::BEHIND) | Flags::SEARCH | u8::from(!f.has(Flags::NULLABLE));
        self.intern(Node::Not(x), &[], Flags(flags))
    }

    pub fn ahead(&mut self, x: Id) -> Id {
        if x == EMPTY || x == TOP {
            return if x == TOP { EPS } else { EMPTY };
        }
        let flags = (self.flags[x as usize].0 & (Flags::NULLABLE | Flags::BEHIND)) | Flags::LOOKS | Flags::SEARCH;
        self.intern(Node::Ahead(x), &[], Flags(flags))
    }

    pub fn behind(&mut self, x: Id) -> Id {
        if x == EMPTY || x == TOP {
            return if x == TOP { EPS } else { EMPTY };
        }
        let flags = (self.flags[x as usize].0 & Flags::NULLABLE) | Flags::BEHIND | Flags::LOOKS | Flags::SEARCH;
        self.intern(Node::Behind(x), &[], Flags(flags))
    }

    /// An operand of a Boolean operator: its assertions see its own text only.
    pub fn scope(&mut self, x: Id) -> Id {
        let x = self.without_scopes(x);
        match self.nodes[x as usize] {
            Node::And(_) | Node::Not(_) => x, // their operands are scopes
            _ => self.closed_over(x, Node::Scope(x), Flags::NULLABLE | Flags::BEHIND | Flags::COUNTS),
        }
    }

    /// A whole terminal: assertions inside it see no further.
    pub fn unit(&mut self, x: Id) -> Id {
        let x = self.without_scopes(x);
        self.closed_over(x, Node::Unit(x), Flags::NULLABLE | Flags::COUNTS)
    }

    /// A terminal with its tags: assertions inside it see what follows the tags, too. The branches of a union are
    /// lexemes of their own.
    pub fn lexeme(&mut self, x: Id) -> Id {
        if !self.open(x) {
            return x;
        }
        if let Node::Alt(k) = self.nodes[x as usize] {
            let kids: List = self.list(k).into();
            let kids: List = kids.into_iter().map(|i| deep(|| self.lexeme(i))).collect();
            return self.alt(&kids);
        }
        let ends = !self.ends(x).is_empty();
        let flags = (self.flags[x as usize].0 & Flags::COUNTS) | Flags::SEARCH | Flags::TAGGED | u8::from(ends);
        self.intern(Node::Lexeme(x), &[], Flags(flags))
    }

    /// The condition that the character before is of a class.
    pub fn past(&mut self, class: u32) -> Id {
        if class == 0 {
            return TOP;
        }
        self.intern(Node::Past(class), &[], Flags(Flags::NULLABLE | Flags::INFINITE))
    }

    /// The condition that the character before is of a class, and that the whole rest is in `condition`.
    pub fn past_and(&mut self, class: u32, condition: Id) -> Id {
        let past = self.past(class);
        self.both_hold(past, condition)
    }

    /// The texts of a lexeme, if the character before them is of a class.
    pub fn after(&mut self, class: u32, x: Id) -> Id {
        if x == EMPTY {
            return x;
        }
        self.has_classes = true;
        let flags = self.flags[x as usize].0 & (Flags::COUNTS | Flags::TAGGED) | Flags::SEARCH;
        self.intern(Node::After(class, x), &[], Flags(flags))
    }

    /// The texts of `x`, which has tags, where the whole rest is in `condition`. Lexemes that have not begun are those
    /// that stand behind a character of the class that the condition names; if it names none, of class 0.
    pub fn under(&mut self, condition: Id, x: Id) -> Id {
        if !self.has_classes {
            return self.limited(condition, x);
        }
        if let Some(&known) = self.begun.get(&(condition, x)) {
            return known;
        }
        let (class, other) = self.class_of(condition);
        let found = match self.nodes[x as usize] {
            Node::After(of, y) if of == class => self.limited(other, y),
            Node::After(..) => EMPTY,
            Node::Alt(k) => {
                let kids: List = self.list(k).into();
                let kids: List = kids.into_iter().map(|i| deep(|| self.under(condition, i))).collect();
                self.alt(&kids)
            }
            _ if self.is_end(x) => self.limited(condition, x),
            _ => self.limited(other, x),
        };
        self.begun.insert((condition, x), found);
        found
    }

    /// The class of the character before that a condition names, and the condition without it.
    fn class_of(&mut self, condition: Id) -> (u32, Id) {
        match self.nodes[condition as usize] {
            Node::Past(class) => (class, TOP),
            Node::And(k) => {
                let mut kids: List = self.list(k).into();
                let mut class = 0;
                kids.retain(|i| match self.nodes[*i as usize] {
                    Node::Past(of) => {
                        class = of;
                        false
                    }
                    _ => true,
                });
                if class == 0 { (0, condition) } else { (class, self.and(&kids)) }
            }
            _ => (0, condition),
        }
    }

    /// The texts of `x` where the whole rest is in `condition`. The branches of a union are each under the condition, so
    /// that what is under weaker ones can absorb them.
    fn limited(&mut self, condition: Id, x: Id) -> Id {
        if condition == TOP {
            return x;
        }
        let condition = self.unit(condition);
        match (condition, self.nodes[x as usize]) {
            (EMPTY, _) | (_, Node::Empty) => EMPTY,
            (TOP, _) => x,
            (_, Node::Under(other, y)) => {
                let both = self.and(&[condition, other]);
                self.limited(both, y)
            }
            (_, Node::Alt(k)) if self.has_conditions(k) => {
                let kids: List = self.list(k).into();
                let kids: List = kids.into_iter().map(|i| deep(|| self.limited(condition, i))).collect();
                self.alt(&kids)
            }
            _ => {
                let flags =
                    (self.flags[x as usize].0 & (Flags::NULLABLE | Flags::COUNTS)) | Flags::SEARCH | Flags::TAGGED;
                self.intern(Node::Under(condition, x), &[], Flags(flags))
            }
        }
    }

    fn has_conditions(&self, k: Kids) -> bool {
        self.list(k).iter().any(|&i| matches!(self.nodes[i as usize], Node::Under(..)))
    }

    /// Of the operands of a union, those that others do not absorb: `x | x under c` is `x`, and `x under c | x under c
    /// and d` is `x under c`.
    pub(super) fn absorb_conditions(&mut self, flat: &mut List) {
        if !flat.iter().any(|&i| matches!(self.nodes[i as usize], Node::Under(..))) {
            return;
        }
        let parts = |arena: &Arena, i: Id| match arena.nodes[i as usize] {
            Node::Under(condition, x) => (Some(condition), x),
            _ => (None, i),
        };
        let all = flat.clone();
        self.pay_for(all.len() * all.len());
        flat.retain(|i| {
            let (Some(condition), x) = parts(self, *i) else { return true };
            !all.iter().any(|&other| {
                let (weaker, y) = parts(self, other);
                other != *i && x == y && weaker.is_none_or(|weaker| self.is_part_of(weaker, condition))
            })
        });
    }

    /// Whether an intersection has all operands of another one.
    fn is_part_of(&self, weaker: Id, stronger: Id) -> bool {
        let operands = |x: Id| match self.nodes[x as usize] {
            Node::And(k) => List::from_slice(self.list(k)),
            _ => List::from_slice(&[x]),
        };
        let all = operands(stronger);
        operands(weaker).iter().all(|i| all.contains(i))
    }

    fn closed_over(&mut self, x: Id, node: Node, kept: u8) -> Id {
        if !self.open(x) {
            return x;
        }
        let flags = (self.flags[x as usize].0 & kept) | Flags::SEARCH;
        self.intern(node, &[], Flags(flags))
    }

    /// The same language without the scopes that would be as wide as the one that is put around it. It also applies
    /// `x | x & y = x`: otherwise every byte that assertions look at would add one more branch.
    fn without_scopes(&mut self, x: Id) -> Id {
        match self.nodes[x as usize] {
            Node::Scope(y) => y,
            Node::Alt(k) if self.open(x) => {
                let opened = |arena: &Arena, i: Id| match arena.nodes[i as usize] {
                    Node::Scope(y) => y,
                    _ => i,
                };
                let kids: List = self.list(k).iter().map(|&i| opened(self, i)).collect();
                let narrower = |arena: &Arena, i: Id| match arena.nodes[i as usize] {
                    Node::And(k) => {
                        arena.list(k).iter().any(|&c| kids.contains(&c) || kids.contains(&opened(arena, c)))
                    }
                    _ => false,
                };
                let kept: List = kids.iter().copied().filter(|&i| !narrower(self, i)).collect();
                if kept[..] == *self.list(k) {
                    return x;
                }
                let next = self.alt(&kept);
                deep(|| self.without_scopes(next))
            }
            _ => x,
        }
    }

    /// The infinite language of an intersection "this language but for finitely many texts", like any key but the
    /// declared ones. Such an intersection is infinite, so that no search is needed to know that it is not empty.
    fn infinite_but_for_finitely_many(&self, ids: &[Id]) -> Option<Id> {
        let mut kept = ids.iter().copied().filter(|&i| self.few_excluded(i).is_none());
        match (kept.next(), kept.next()) {
            (Some(only), None) if self.flag(only, Flags::INFINITE) && !self.open(only) => Some(only),
            _ => None,
        }
    }

    /// What the expression excludes, if it excludes finitely many texts and nothing else.
    fn few_excluded(&self, id: Id) -> Option<Id> {
        match self.nodes[id as usize] {
            Node::Not(x) if self.flag(x, Flags::FINITE) => Some(x),
            _ => None,
        }
    }

    /// The infinite language that `x` is but for finitely many texts, and these, where its form shows that.
    pub fn but_for_few(&self, x: Id) -> Option<(Id, Vec<Id>)> {
        let Node::And(k) = self.nodes[x as usize] else { return None };
        let all = self.infinite_but_for_finitely_many(self.list(k))?;
        Some((all, self.list(k).iter().filter_map(|&i| self.few_excluded(i)).collect()))
    }

    /// Whether every text of `x` begins with bytes of `plain`, if any, and then one of `ending`, as far as its form
    /// shows.
    pub fn runs_into(&self, x: Id, plain: ByteSet, ending: ByteSet) -> bool {
        match self.nodes[x as usize] {
            Node::Concat(head, tail) => match self.nodes[head as usize] {
                Node::Class(s) if self.sets[s as usize].minus(ending).is_empty() => true,
                Node::Class(s) if self.sets[s as usize].minus(plain).is_empty() => {
                    deep(|| self.runs_into(tail, plain, ending))
                }
                _ => false,
            },
            Node::Alt(k) => self.list(k).iter().all(|&i| deep(|| self.runs_into(i, plain, ending))),
            _ => false,
        }
    }
}
