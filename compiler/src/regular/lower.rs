//! From regular expressions of a grammar to expressions of the arena.

use regex_syntax::utf8::Utf8Sequences;
use smallvec::SmallVec;

use super::arena::{Arena, EMPTY, EPS, Id, List};
use crate::budget::Budget;
use crate::byteset::ByteSet;
use crate::charset::CharSet;
use crate::error::Result;
use crate::ir::{Ir, Node, NodeId};
use crate::recursion::deep;

/// Lowered expressions by grammar node; `None` until asked for.
pub type Lowered = Vec<Option<Id>>;

impl Arena {
    /// The language of a regular expression of the grammar, in what the alphabet has. Assertions in it are not enclosed
    /// in a scope yet: see [`Arena::scope`] and [`Arena::unit`].
    pub fn lower(&mut self, ir: &Ir, node: NodeId, done: &mut Lowered, budget: &mut Budget) -> Result<Id> {
        let x = self.lower_part(ir, node, done, budget)?;
        Ok(if self.characters.is_some() { self.within_texts(ir, node, x) } else { x })
    }

    /// The same for a part of an expression; over characters, what is no text is not left out yet.
    fn lower_part(&mut self, ir: &Ir, node: NodeId, done: &mut Lowered, budget: &mut Budget) -> Result<Id> {
        if let Some(id) = done[node as usize] {
            return Ok(id);
        }
        budget.spend(1)?;
        let mut go = |arena: &mut Arena, n: NodeId, budget: &mut Budget| deep(|| arena.lower_part(ir, n, done, budget));
        let id = match &ir.nodes[node as usize] {
            Node::Nothing => EMPTY,
            Node::Literal(text) => {
                budget.spend(text.len() as u64)?;
                if self.characters.is_none() || self.spells(text) { self.literal(text) } else { EMPTY }
            }
            Node::Bytes(set) => self.bytes(*set),
            Node::Codepoints(ranges) => {
                budget.spend(ranges.len() as u64)?;
                match self.characters.clone() {
                    Some(characters) => {
                        budget.spend(CharSet::WORDS as u64 / 64)?;
                        self.spelled_codepoints(&characters, ranges)
                    }
                    None => self.codepoints(ranges),
                }
            }
            Node::Seq(os) => {
                let mut parts: List = SmallVec::new();
                for &o in os {
                    parts.push(go(self, o, budget)?);
                }
                parts.into_iter().rev().try_fold(EPS, |rest, x| self.concat_within(x, rest, budget))?
            }
            Node::Alt(os) => {
                let mut parts = Vec::with_capacity(os.len());
                for &o in os {
                    parts.push(go(self, o, budget)?);
                }
                self.alt(&parts)
            }
            Node::Repeat(o, least, most) => {
                let x = go(self, *o, budget)?;
                let x = self.repeat(x, *least, *most);
                if self.holds_counts(x) {
                    self.written.insert(x);
                }
                x
            }
            Node::Both(os) => {
                let mut parts: List = SmallVec::new();
                for &o in os {
                    let x = go(self, o, budget)?;
                    parts.push(self.scope(x));
                }
                self.and(&parts)
            }
            Node::Complement(o) => {
                let x = go(self, *o, budget)?;
                let x = self.scope(x);
                self.not(x)
            }
            Node::Ahead(o) => {
                let x = go(self, *o, budget)?;
                self.ahead(x)
            }
            Node::Behind(o) => {
                let x = go(self, *o, budget)?;
                self.behind(x)
            }
            Node::Terminal(o) => {
                let x = go(self, *o, budget)?;
                self.unit(x)
            }
            Node::Lexeme(o) => go(self, *o, budget)?, // it is closed when its tag is known
            Node::Call(rule) => go(self, ir.body(*rule), budget)?,
            Node::CallWith(..) | Node::When(_) => unreachable!("what depends on a parameter is not regular"),
            Node::Lexemes(_) | Node::Text(_) | Node::Parser(_) => unreachable!("they are not regular"),
            Node::Words(texts) => {
                budget.spend(texts.len() as u64)?;
                if self.characters.is_none() {
                    self.words(texts, 0)
                } else {
                    let texts: Vec<Box<[u8]>> = texts.iter().filter(|text| self.spells(text)).cloned().collect();
                    self.words(&texts, 0)
                }
            }
        };
        done[node as usize] = Some(id);
        Ok(id)
    }

    /// One code point of the ranges, as UTF-8.
    fn codepoints(&mut self, ranges: &[(u32, u32)]) -> Id {
        let mut items: Vec<Id> = Vec::new();
        let mut ascii = ByteSet::NONE;
        for &(lo, hi) in ranges {
            let scalar = |c: u32| char::from_u32(c).expect("no surrogates are left in the ranges");
            for sequence in Utf8Sequences::new(scalar(lo), scalar(hi)) {
                let bytes = sequence.as_slice();
                if let [only] = bytes {
                    ascii = ascii.or(ByteSet::range(only.start, only.end));
                    continue;
                }
                let mut item = EPS;
                for range in bytes.iter().rev() {
                    let class = self.class(ByteSet::range(range.start, range.end));
                    item = self.concat(class, item);
                }
                items.push(item);
            }
        }
        items.push(self.class(ascii));
        self.alt(&items)
    }

    /// Any of the sorted texts, from their byte `at` on, up to which they are equal. Hash-consing gives equal branches
    /// of the trie one id, so that it is the minimal acyclic automaton (as in Daciuk et al. 2000).
    fn words(&mut self, texts: &[Box<[u8]>], at: usize) -> Id {
        // bytes that all of them share
        let (first, last) = match texts {
            [] => return EMPTY,
            [only] => return self.literal(&only[at..]),
            [first, .., last] => (first, last),
        };
        let common = first[at..].iter().zip(&last[at..]).take_while(|(a, b)| a == b).count();
        let from = at + common;
        let mut branches: SmallVec<[(ByteSet, Id); 8]> = SmallVec::new();
        let mut rest = texts;
        let ends_here = rest[0].len() == from;
        if ends_here {
            rest = &rest[1..];
        }
        while let Some(head) = rest.first() {
            let byte = head[from];
            let n = rest.partition_point(|t| t[from] == byte);
            let below = deep(|| self.words(&rest[..n], from + 1));
            match branches.iter_mut().find(|b| b.1 == below) {
                Some(b) => b.0.insert(byte),
                None => branches.push((ByteSet::only(byte), below)),
            }
            rest = &rest[n..];
        }
        let mut ids: List = SmallVec::new();
        for (set, below) in branches {
            let class = self.class(set);
            let branch = self.concat(class, below);
            if branch != EMPTY {
                ids.push(branch);
            }
        }
        if ends_here {
            ids.push(EPS);
        }
        let trie = self.alt_of_branches(ids);
        let prefix = &texts[0][at..from];
        self.literal_then(prefix, trie)
    }
}
