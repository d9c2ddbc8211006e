//! Languages over the characters that a vocabulary spells, where it has some bytes of them inside longer tokens only.
//!
//! Then the bytes that are tokens are too few to say what can be spelled. So the language is restricted to texts of the
//! characters that tokens spell: classes lose the others, literals that hold one are nothing, and what is no text by
//! its form (a complement that nothing is intersected with) is intersected with such texts.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::arena::{Arena, EMPTY, Id, List};
use crate::byteset::ByteSet;
use crate::charset::CharSet;
use crate::error::Error;
use crate::ir::{Ir, Node, NodeId, UNBOUNDED};
use crate::recursion::deep;
use crate::vocabulary::{Characters, Vocabulary};

/// A class of no more characters than this means each of them: it is refused where one cannot be spelled alone.
const FEW: usize = 128;

/// Characters that an error names, at most.
const NAMED: usize = 20;

/// What texts are made of, so that every one of them can be spelled.
#[derive(Clone)]
pub struct Alphabet {
    /// The bytes of texts.
    pub(super) bytes: ByteSet,
    /// Bytes that the vocabulary has inside longer tokens only, where texts are made of bytes.
    pub(super) inner: ByteSet,
    /// The characters that texts are made of; `None`: of bytes.
    pub(super) characters: Option<Arc<Characters>>,
}

impl Alphabet {
    /// The bytes that are tokens on their own.
    pub fn of_bytes(vocab: &Vocabulary) -> Alphabet {
        Alphabet { bytes: vocab.alphabet, inner: vocab.inner, characters: None }
    }

    /// The characters that tokens spell.
    pub fn of_characters(vocab: &Vocabulary) -> Alphabet {
        let characters = vocab.characters().clone();
        Alphabet { bytes: characters.bytes, inner: ByteSet::NONE, characters: Some(characters) }
    }
}

/// Whether an expression is of whole characters (and marks), as far as its form shows.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Content {
    Text,
    /// It may hold others, by way of a complement.
    Any,
    /// It spells bytes that are no text.
    Bytes,
}

/// What lowering for an alphabet of characters finds out.
#[derive(Default)]
pub(super) struct Findings {
    /// All texts of these characters and marks.
    texts: Option<Id>,
    contents: FxHashMap<NodeId, Content>,
    /// Characters that the grammar names although only longer tokens have them.
    hidden: Vec<char>,
    /// The grammar has bytes that are no text.
    no_text: bool,
}

impl Arena {
    /// Why the grammar is refused on this vocabulary, as far as it was lowered; [`Error::InnerBytes`] where it may not
    /// be on the vocabulary's characters.
    pub fn refusal(&self) -> Option<Error> {
        let found = &self.findings;
        if !self.missed.is_empty() {
            return Some(Error::InnerBytes);
        } else if found.no_text {
            let why =
                "the grammar has bytes that are no UTF-8, and not all bytes of the vocabulary are tokens of their own";
            return Some(Error::Unsupported(why.into()));
        } else if found.hidden.is_empty() {
            return None;
        }
        let mut hidden = found.hidden.clone();
        hidden.sort_unstable();
        hidden.dedup();
        let name = |c: &char| {
            let mut bytes = [0; 4];
            let bytes: Vec<String> = c.encode_utf8(&mut bytes).bytes().map(|b| format!("{b:02X}")).collect();
            format!("{c:?} ({})", bytes.join(" "))
        };
        let named: Vec<String> = hidden.iter().take(NAMED).map(name).collect();
        Some(Error::Unsupported(format!(
            "the grammar uses characters that the vocabulary has inside longer tokens only, so that what is left of a \
             text may be impossible to spell: {}",
            named.join(", ")
        )))
    }

    /// Whether the vocabulary can spell the text, whatever stands around it. Notes what only longer tokens have.
    pub fn spells(&mut self, text: &[u8]) -> bool {
        let Some(characters) = &self.characters else {
            text.iter().filter(|b| self.inner.contains(**b)).for_each(|&b| self.missed.insert(b));
            return text.iter().all(|&b| self.alphabet.contains(b));
        };
        let mut spelled = true;
        for part in text.utf8_chunks() {
            for c in part.valid().chars().filter(|&c| !characters.spelled.contains(c.into())) {
                spelled = false;
                if characters.hidden.contains(c.into()) {
                    self.findings.hidden.push(c);
                }
            }
            spelled &= part.invalid().iter().all(|&b| self.alphabet.contains(b));
        }
        spelled
    }

    /// The class of a set of bytes of the grammar. Notes the characters that only longer tokens have.
    pub fn bytes(&mut self, set: ByteSet) -> Id {
        if let Some(characters) = &self.characters
            && (set.len() as usize) < FEW
        {
            let hidden = set.and(characters.hidden.ascii());
            self.findings.hidden.extend(hidden.iter().map(char::from));
        }
        self.class(set)
    }

    /// One of the characters of the ranges that the vocabulary spells.
    pub(super) fn spelled_codepoints(&mut self, characters: &Characters, ranges: &[(u32, u32)]) -> Id {
        let mut set = CharSet::default();
        ranges.iter().for_each(|&(first, last)| set.insert_range(first, last));
        let mut hidden = set.clone();
        let few = set.len() <= FEW;
        set.intersect(&characters.spelled);
        if few || set.is_empty() {
            hidden.intersect(&characters.hidden);
            self.findings.hidden.extend(hidden.iter().take(NAMED).filter_map(char::from_u32));
        }
        self.characters_of(&set)
    }

    /// One of the characters, as UTF-8.
    fn characters_of(&mut self, set: &CharSet) -> Id {
        let mut branches = Branches::new();
        for lead in 0xC2..=0xF4u8 {
            // the words of the characters that begin so, without those of shorter spellings
            let (from, words, levels) = match lead {
                0xC2..=0xDF => (lead & 0x1F, 1, 0),
                0xE0..=0xEF => (lead & 0x0F, 64, 1),
                _ => (lead & 0x07, 64 * 64, 2),
            };
            let from = usize::from(from) * words;
            let below = self.character_ends(set, from, levels, [0, 32, 1024][levels]);
            branches.add(lead, below);
        }
        let ascii = self.class(set.ascii());
        branches.close(self, &[ascii])
    }

    /// What characters have behind their first bytes: those from a word on, which take so many bytes before the last
    /// one. Words before `least` are left out.
    fn character_ends(&mut self, set: &CharSet, from: usize, levels: usize, least: usize) -> Id {
        let Some(deeper) = levels.checked_sub(1) else { return self.class(set.last_bytes(from)) };
        let words = 64usize.pow(deeper as u32);
        let mut branches = Branches::new();
        for byte in 0..64u8 {
            let at = from + usize::from(byte) * words;
            if at >= least && at + words <= CharSet::WORDS && set.has_any(at, words) {
                let below = self.character_ends(set, at, deeper, least);
                branches.add(0x80 | byte, below);
            }
        }
        branches.close(self, &[])
    }

    /// Notes whether an expression that stands by itself spells what is no text.
    pub fn note_content(&mut self, ir: &Ir, node: NodeId) {
        if self.characters.is_some() {
            self.findings.no_text |= self.content(ir, node) == Content::Bytes;
        }
    }

    /// An expression of the grammar, of which the lowered form is given, without what is no text of the vocabulary's
    /// characters.
    pub(super) fn within_texts(&mut self, ir: &Ir, node: NodeId, x: Id) -> Id {
        match self.content(ir, node) {
            Content::Text => x,
            Content::Any => {
                let (x, texts) = (self.scope(x), self.texts());
                self.and(&[x, texts])
            }
            Content::Bytes => {
                self.findings.no_text = true;
                x
            }
        }
    }

    /// All texts of the vocabulary's characters and marks.
    fn texts(&mut self) -> Id {
        if let Some(known) = self.findings.texts {
            return known;
        }
        let characters = self.characters.clone().expect("the alphabet is of characters");
        let one = self.characters_of(&characters.spelled);
        let mark = self.class(ByteSet::range(0xF5, 0xFF));
        let one = self.alt(&[one, mark]);
        let all = self.repeat(one, 0, UNBOUNDED);
        self.findings.texts = Some(all);
        all
    }

    fn content(&mut self, ir: &Ir, node: NodeId) -> Content {
        if let Some(&known) = self.findings.contents.get(&node) {
            return known;
        }
        let mut go = |n: NodeId| deep(|| self.content(ir, n));
        let content = match &ir.nodes[node as usize] {
            Node::Nothing | Node::Codepoints(_) | Node::Ahead(_) | Node::Behind(_) => Content::Text,
            Node::Literal(text) => of_literal(text),
            Node::Words(texts) => texts.iter().map(|text| of_literal(text)).max().unwrap_or(Content::Text),
            Node::Bytes(set) if set.and(ByteSet::range(0x80, 0xF4)).is_empty() => Content::Text,
            Node::Bytes(_) => Content::Bytes,
            Node::Seq(os) | Node::Alt(os) => os.iter().map(|&o| go(o)).max().unwrap_or(Content::Text),
            Node::Both(os) => os.iter().map(|&o| go(o)).min().unwrap_or(Content::Any),
            Node::Complement(_) => Content::Any,
            Node::Repeat(o, ..) | Node::Terminal(o) | Node::Lexeme(o) => go(*o),
            Node::Call(rule) => go(ir.body(*rule)),
            Node::CallWith(..) | Node::When(_) => unreachable!("what depends on a parameter is not regular"),
            Node::Lexemes(_) | Node::Text(_) | Node::Parser(_) => unreachable!("they are not regular"),
        };
        self.findings.contents.insert(node, content);
        content
    }
}

/// Marks stand between characters.
fn of_literal(text: &[u8]) -> Content {
    let is_text = text.utf8_chunks().all(|part| part.invalid().iter().all(|&b| b >= 0xF5));
    if is_text { Content::Text } else { Content::Bytes }
}

/// Bytes, by what follows them.
struct Branches(SmallVec<[(ByteSet, Id); 8]>);

impl Branches {
    fn new() -> Branches {
        Branches(SmallVec::new())
    }

    fn add(&mut self, byte: u8, below: Id) {
        match self.0.iter_mut().find(|branch| branch.1 == below) {
            _ if below == EMPTY => {}
            Some(branch) => branch.0.insert(byte),
            None => self.0.push((ByteSet::only(byte), below)),
        }
    }

    /// Any of the branches, or of the others.
    fn close(self, arena: &mut Arena, others: &[Id]) -> Id {
        let mut all = List::from_slice(others);
        for (set, below) in self.0 {
            let class = arena.class(set);
            all.push(arena.concat(class, below));
        }
        arena.alt(&all)
    }
}
