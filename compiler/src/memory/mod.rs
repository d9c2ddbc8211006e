//! What a JSON text has said that may not be said again: the items of arrays whose items are unique, and the names of
//! members that must differ, or come in ascending order.
//!
//! A grammar marks the rules that are about it (see [`Kinds`]); what they must not repeat is a function of the text alone,
//! kept beside the automaton's state while such an array or object is open. Values are compared as they are spelled, white
//! space aside and `1.0` taken for `1`: the rules of marked arrays spell each value in one way.

mod seen;

use smallvec::SmallVec;

pub use seen::Seen;

/// What a rule is about, as bits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Kinds(pub u8);

impl Kinds {
    /// Its first byte opens an array or object that is remembered.
    pub const OPENS: Kinds = Kinds(1);
    /// The commas and the bracket in it end items that must differ.
    pub const ITEMS: Kinds = Kinds(2);
    /// The colons in it end names that must differ.
    pub const NAMES: Kinds = Kinds(4);
    /// The colons in it end names that must come in ascending order.
    pub const ASCENDING: Kinds = Kinds(8);
    /// Kept apart from what is around it, so that none of it is taken for a part of that.
    pub const PART: Kinds = Kinds(16);
    pub const ALL: Kinds = Kinds(31);

    pub fn has(self, other: Kinds) -> bool {
        self.0 & other.0 != 0
    }

    pub fn or(self, other: Kinds) -> Kinds {
        Kinds(self.0 | other.0)
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Lex {
    Between,
    Scalar,
    String { escaped: bool },
}

/// An open array or object that is remembered.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Container {
    array: bool,
    /// The number of open brackets around its items or members, from the outermost remembered one on.
    depth: u32,
    /// Whether an item or a name is being written, and where it begins.
    open: bool,
    start: usize,
    seen: Seen,
    /// The greatest name, where they must ascend.
    last: Vec<u8>,
}

/// The open arrays and objects that are remembered, and the text of what is open in them.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Memory {
    containers: SmallVec<[Container; 1]>,
    depth: u32,
    lex: Lex,
    text: Vec<u8>,
    /// The number or name of a value that is being written, not yet part of the text.
    scalar: SmallVec<[u8; 24]>,
}

impl Memory {
    /// Right after the bracket of the outermost array or object that is remembered.
    pub fn new(bracket: u8) -> Memory {
        let mut memory = Memory {
            containers: SmallVec::new(),
            depth: 1,
            lex: Lex::Between,
            text: Vec::new(),
            scalar: SmallVec::new(),
        };
        memory.open(bracket);
        memory
    }

    /// Remembers the array or object whose bracket was the last byte.
    pub fn open(&mut self, bracket: u8) {
        self.containers.push(Container {
            array: bracket == b'[',
            depth: self.depth,
            open: true,
            start: self.text.len(),
            seen: Seen::default(),
            last: Vec::new(),
        });
    }

    pub fn in_string(&self) -> bool {
        matches!(self.lex, Lex::String { .. })
    }

    /// Bytes held, roughly.
    pub fn size(&self) -> usize {
        256 + self.text.len()
    }

    /// Whether the next byte, at this depth, is one that ends an item or a name: to be told by [`Memory::settle`].
    pub fn ends(&self, byte: u8) -> bool {
        let Some(inner) = self.containers.last() else { return false };
        let ending = if inner.array { matches!(byte, b',' | b']') } else { byte == b':' };
        ending && !self.in_string() && inner.open && inner.depth == self.depth && self.length(inner) > 0
    }

    /// Notes what belongs to an open item or name.
    fn record(&mut self, byte: u8) {
        if self.containers.iter().any(|container| container.open) {
            self.text.push(byte);
        }
    }

    fn length(&self, container: &Container) -> usize {
        self.text.len() - container.start + self.scalar.len()
    }

    /// Takes one byte of a text that the grammar allows, but for what it must not repeat.
    pub fn push(&mut self, byte: u8) {
        if let Lex::String { escaped } = self.lex {
            self.record(byte);
            self.lex = match byte {
                _ if escaped => Lex::String { escaped: false },
                b'\\' => Lex::String { escaped: true },
                b'"' => Lex::Between,
                _ => Lex::String { escaped: false },
            };
            return;
        }
        match byte {
            b' ' | b'\t' | b'\n' | b'\r' => self.end_scalar(),
            b'"' => {
                self.record(byte);
                self.lex = Lex::String { escaped: false };
            }
            b'[' | b'{' => {
                self.record(byte);
                self.depth += 1;
            }
            b']' | b'}' => {
                self.end_scalar();
                if self.containers.last().is_some_and(|inner| inner.depth == self.depth) {
                    self.containers.pop();
                }
                self.depth -= 1;
                self.record(byte);
            }
            b',' | b':' => {
                self.end_scalar();
                self.record(byte);
                if let Some(inner) = self.containers.last_mut()
                    && inner.depth == self.depth
                {
                    inner.open = byte == b',';
                    inner.start = self.text.len();
                }
                // what no open item or name needs any more
                if self.containers.iter().all(|c| !c.open || (c.start == self.text.len() && self.containers.len() == 1))
                {
                    self.text.clear();
                    self.containers.iter_mut().for_each(|c| c.start = 0);
                }
            }
            _ => {
                self.lex = Lex::Scalar;
                self.scalar.push(byte);
            }
        }
    }

    fn end_scalar(&mut self) {
        if self.lex == Lex::Scalar {
            self.lex = Lex::Between;
            let scalar = std::mem::take(&mut self.scalar);
            scalar.strip_suffix(b".0").unwrap_or(&scalar).iter().for_each(|&byte| self.record(byte));
        }
    }

    /// What has ended, before the byte that [`Memory::ends`] it is pushed: notes it for rules of these kinds. The kinds of
    /// which no rule may go on, because it is not new, or not greater.
    pub fn settle(&mut self, kinds: Kinds) -> Kinds {
        self.end_scalar();
        let Some(inner) = self.containers.last_mut() else { return Kinds::default() };
        let said = &self.text[inner.start..];
        let mut refused = Kinds::default();
        if kinds.has(Kinds::ITEMS.or(Kinds::NAMES)) {
            if inner.seen.contains(said) {
                refused = Kinds::ITEMS.or(Kinds::NAMES);
            } else {
                inner.seen.insert(said);
            }
        }
        if kinds.has(Kinds::ASCENDING) {
            let name = &said[..said.len() - 1];
            if name <= &inner.last[..] {
                refused = refused.or(Kinds::ASCENDING);
            } else {
                inner.last = name.to_vec();
            }
        }
        refused
    }

    /// Whether an item or name that is open can still become one that is refused, as far as the text shows; or has become.
    pub fn binds(&self) -> bool {
        self.containers.iter().any(|container| {
            if !container.open {
                return false;
            }
            let mut said = self.text[container.start..].to_vec();
            if !container.last.is_empty() && said <= container.last {
                return true;
            }
            if container.seen.is_empty() {
                return false;
            }
            let head = said.len();
            said.extend_from_slice(&self.scalar);
            if container.seen.beginning_with(&said).next().is_some() {
                return true;
            }
            // "1." and "1.0" may yet end as 1
            let point = self.scalar.iter().position(|&b| b == b'.');
            point.is_some_and(|at| {
                matches!(&self.scalar[at..], b"." | b".0") && {
                    said.truncate(head + at);
                    let goes_on = |t: &[u8]| t.get(head + at).is_none_or(|b| b",]}".contains(b));
                    container.seen.beginning_with(&said).any(goes_on)
                }
            })
        })
    }

    /// Whether an open name is surely refused.
    pub fn is_lost(&self) -> bool {
        self.containers.iter().any(|container| {
            let said = &self.text[container.start..];
            let whole = !self.in_string() && said.len() > 1;
            let name = if whole { &said[..said.len() - 1] } else { said };
            let last = &container.last[..];
            container.open && !last.is_empty() && (name < last && !last.starts_with(name) || whole && name <= last)
        })
    }

    /// Texts that are refused and begin with the open item or name, without what is said of it; at most so many.
    pub fn dangers(&self, most: usize) -> Vec<Vec<u8>> {
        let mut out = Vec::new();
        for container in self.containers.iter().filter(|c| c.open) {
            let mut said = self.text[container.start..].to_vec();
            said.extend_from_slice(&self.scalar);
            let room = most - out.len();
            out.extend(container.seen.beginning_with(&said).take(room).map(|t| t[said.len()..].to_vec()));
            if container.last.starts_with(&said) {
                out.push(container.last[said.len()..].to_vec());
            }
        }
        out
    }

    /// Whether no array or object is remembered any more.
    pub fn is_over(&self) -> bool {
        self.containers.is_empty()
    }
}
