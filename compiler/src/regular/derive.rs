//! Derivatives by all bytes at once.
//!
//! Derivatives of regular expressions are due to Brzozowski (1964); sets of bytes with the same derivative, to Owens,
//! Reppy and Turon (2009). A union is derived operand by operand, and the results are overlaid: its operands are the
//! partial derivatives of Antimirov (1996), kept as a set by the normal form of unions.

use smallvec::SmallVec;

use super::arena::{Arena, EMPTY, Flags, Id, List, Node, TOP};
use crate::byteset::ByteSet;
use crate::growth::make_room;
use crate::ir::UNBOUNDED;
use crate::recursion::deep;

/// Disjoint sets of bytes with the residual after any byte of the set; bytes in no set lead nowhere.
pub(super) type Parts = SmallVec<[(ByteSet, Id); 4]>;

/// The derivatives of a union under construction: those of its operands, cut into disjoint sets of bytes.
struct Overlay {
    entries: Entries,
    covered: ByteSet,
}

/// Disjoint sets of bytes, each with the residuals of the operands after any byte of the set.
pub(super) type Entries = Vec<(ByteSet, SmallVec<[Id; 2]>)>;

impl Overlay {
    /// An overlay of nothing, with the room of one before it.
    fn new(arena: &mut Arena) -> Overlay {
        Overlay { entries: arena.spare_entries.pop().unwrap_or_default(), covered: ByteSet::NONE }
    }

    fn add(&mut self, set: ByteSet, target: Id) {
        let mut rest = set;
        if !self.covered.and(set).is_empty() {
            for i in 0..self.entries.len() {
                let common = self.entries[i].0.and(rest);
                if common.is_empty() {
                    continue;
                }
                if common == self.entries[i].0 {
                    self.entries[i].1.push(target);
                } else {
                    let mut both = self.entries[i].1.clone();
                    both.push(target);
                    self.entries[i].0 = self.entries[i].0.minus(common);
                    self.entries.push((common, both));
                }
                rest = rest.minus(common);
                if rest.is_empty() {
                    break;
                }
            }
        }
        if !rest.is_empty() {
            self.entries.push((rest, SmallVec::from_slice(&[target])));
        }
        self.covered = self.covered.or(set);
    }

    fn close(mut self, arena: &mut Arena) -> Parts {
        let mut out = Parts::with_capacity(self.entries.len());
        for (set, targets) in self.entries.drain(..) {
            let target = if targets.len() == 1 { targets[0] } else { arena.alt(&targets) };
            push(&mut out, set, target);
        }
        arena.spare_entries.push(self.entries);
        out
    }
}

/// Adds an entry, joining it with one of the same target.
fn push(parts: &mut Parts, set: ByteSet, target: Id) {
    if target == EMPTY || set.is_empty() {
        return;
    }
    match parts.iter_mut().take(8).find(|p| p.1 == target) {
        Some(p) => p.0 = p.0.or(set),
        None => parts.push((set, target)),
    }
}

/// Entries with the residuals of another operand of an intersection added, in which all of their bytes lead on: each is
/// cut where these differ.
fn refined(entries: &mut Entries, parts: &Parts, out: &mut Entries) {
    for (mut rest, mut targets) in entries.drain(..) {
        for &(set, target) in parts {
            let common = rest.and(set);
            if common.is_empty() {
                continue;
            }
            if common == rest {
                targets.push(target);
                out.push((common, targets));
                break;
            }
            let mut all = targets.clone();
            all.push(target);
            out.push((common, all));
            rest = rest.minus(common);
        }
    }
}

impl Arena {
    /// The derivatives of an expression without `Ahead` or `Behind` outside scopes.
    pub(super) fn parts(&mut self, id: Id) -> Parts {
        // what holds no tag is part of many residuals: a string's interior, at every position where strings may stand
        self.parts_kept(id, !self.flag(id, Flags::TAGGED))
    }

    /// The same; `again`: they are kept, as they will be asked for again.
    pub(super) fn parts_kept(&mut self, id: Id, again: bool) -> Parts {
        let is_large = !matches!(self.nodes[id as usize], Node::Class(_) | Node::Eps);
        if is_large
            && (again || self.needs_search(id)) // searches keep them, too
            && let Some(&(from, to)) = self.derived.get(&id)
        {
            return self.derivatives[from as usize..to as usize].iter().copied().collect();
        }
        if self.is_spent() {
            return Parts::new();
        }
        let parts = self.new_parts(id);
        if again && is_large && !self.is_spent() {
            let from = self.derivatives.len() as u32;
            make_room(&mut self.derivatives, parts.len());
            self.derivatives.extend_from_slice(&parts);
            self.derived.insert(id, (from, self.derivatives.len() as u32));
        }
        parts
    }

    fn new_parts(&mut self, id: Id) -> Parts {
        match self.nodes[id as usize] {
            Node::Empty | Node::Eps | Node::Accept(_) | Node::Ahead(_) | Node::Behind(_) => Parts::new(),
            Node::Class(s) => Parts::from_slice(&[(self.sets[s as usize], super::EPS)]),
            Node::Past(_) => Parts::from_slice(&[(self.alphabet, TOP)]),
            Node::After(_, x) => deep(|| self.parts(x)),
            Node::Concat(h, t) => {
                let mut parts = deep(|| self.parts(h));
                for p in &mut parts {
                    p.1 = self.concat(p.1, t);
                }
                if !self.nullable(h) {
                    return parts;
                }
                let after = deep(|| self.parts(t));
                if parts.is_empty() {
                    return after;
                }
                let mut all = Overlay::new(self);
                parts.into_iter().chain(after).for_each(|(set, target)| all.add(set, target));
                all.close(self)
            }
            Node::Alt(k) => {
                let kids: List = self.list(k).into();
                let mut all = Overlay::new(self);
                for i in kids {
                    if let Some(&(from, to)) = self.derived.get(&i) {
                        self.pay_for(1 + (to - from) as usize * all.entries.len() / 8);
                        let known = &self.derivatives[from as usize..to as usize];
                        known.iter().for_each(|&(set, target)| all.add(set, target));
                        continue;
                    }
                    let parts = match self.nodes[i as usize] {
                        // the branches of a trie, without recursion
                        Node::Concat(h, t) if matches!(self.nodes[h as usize], Node::Class(_)) => {
                            let Node::Class(s) = self.nodes[h as usize] else { unreachable!() };
                            Parts::from_slice(&[(self.sets[s as usize], t)])
                        }
                        _ => deep(|| self.parts(i)),
                    };
                    self.pay_for(1 + parts.len() * all.entries.len() / 8); // most entries are only looked at
                    parts.into_iter().for_each(|(set, target)| all.add(set, target));
                }
                all.close(self)
            }
            Node::And(k) => {
                let kids: List = self.list(k).into();
                let operands: SmallVec<[Parts; 4]> = kids.into_iter().map(|kid| deep(|| self.parts(kid))).collect();
                let all_of = |parts: &Parts| parts.iter().fold(ByteSet::NONE, |all, part| all.or(part.0));
                let common = operands.iter().fold(self.alphabet, |common, parts| common.and(all_of(parts)));
                let mut entries = self.spare_entries.pop().unwrap_or_default();
                let mut next = self.spare_entries.pop().unwrap_or_default();
                if !common.is_empty() {
                    entries.push((common, SmallVec::new()));
                }
                for parts in operands {
                    self.pay_for(entries.len() * parts.len());
                    refined(&mut entries, &parts, &mut next);
                    std::mem::swap(&mut entries, &mut next);
                }
                let mut out = Parts::with_capacity(entries.len());
                for (set, targets) in entries.drain(..) {
                    let target = self.and(&targets);
                    push(&mut out, set, target);
                }
                self.spare_entries.extend([entries, next]);
                out
            }
            Node::Not(x) => {
                let mut rest = self.alphabet;
                let inner = deep(|| self.parts(x));
                let mut out = Parts::with_capacity(inner.len() + 1);
                for (set, target) in inner {
                    rest = rest.minus(set);
                    let target = self.not(target);
                    push(&mut out, set, target);
                }
                push(&mut out, rest, TOP);
                out
            }
            Node::Repeat(x, least, most) => {
                let most = if most == UNBOUNDED { most } else { most - 1 };
                let rest = self.repeat(x, least.saturating_sub(1), most);
                let mut parts = deep(|| self.parts(x));
                for p in &mut parts {
                    p.1 = self.concat(p.1, rest);
                }
                parts
            }
            Node::Scope(x) => self.scope_parts(x, Arena::scope),
            Node::Unit(x) => self.scope_parts(x, Arena::unit),
            Node::Lexeme(x) => self.scope_parts(x, Arena::lexeme),
            Node::Under(condition, x) => {
                let conditions = deep(|| self.parts(condition));
                let texts = deep(|| self.parts(x));
                self.pay_for(conditions.len() * texts.len());
                let mut out = Parts::new();
                for &(s, c) in &conditions {
                    for &(t, x) in &texts {
                        let target = self.under(c, x);
                        push(&mut out, s.and(t), target);
                    }
                }
                out
            }
        }
    }

    /// Whether a search is needed to know that the expression is not the empty language.
    pub(super) fn needs_search(&self, id: Id) -> bool {
        self.flag(id, Flags::SEARCH)
    }
}
