//! What a JSON text has said that may not be said again: the items of arrays whose items are unique, and the names of
//! members that must differ.
//!
//! A grammar marks the rules that are about it (see [`Kinds`]); what they must not repeat is a function of the text alone,
//! kept beside the automaton's state while such an array or object is open. Values are compared as they are spelled, but
//! for whitespace and the order of members, and `1.0` is 1: the rules of marked arrays spell each value in no other ways.

mod seen;
mod value;

use std::sync::Arc;

use smallvec::SmallVec;

use seen::Seen;
use value::{Finished, Value};

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
    /// Kept apart from what is around it, so that none of it is taken for a part of that.
    pub const PART: Kinds = Kinds(8);
    /// An open item or name of it may have few values left to become. In others each can become a new one until it ends.
    pub const FEW: Kinds = Kinds(16);
    pub const ALL: Kinds = Kinds(31);

    pub fn has(self, other: Kinds) -> bool {
        self.0 & other.0 != 0
    }

    pub fn or(self, other: Kinds) -> Kinds {
        Kinds(self.0 | other.0)
    }
}

/// The value (or name) that is being written where the text is.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
enum Slot {
    Empty,
    /// Not ended yet, as far as it goes.
    Scalar(SmallVec<[u8; 24]>),
    Whole(Arc<Value>),
}

/// What the items of an array, or the names in an object, must not be.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
struct Tracked {
    /// See [`Kinds::FEW`].
    few: bool,
    seen: Seen,
    /// Those that the open item may still become, once found.
    left: Option<Arc<[Arc<Value>]>>,
}

/// An open array or object, from the outermost remembered one on.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Frame {
    array: bool,
    /// Whether it is part of an item that is remembered.
    kept: bool,
    finished: Finished,
    /// The name of the member whose value is being written.
    name: Option<Arc<[u8]>>,
    tracked: Option<Tracked>,
}

/// The open arrays and objects around a place, from the outermost remembered one on.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Memory {
    frames: SmallVec<[Frame; 2]>,
    slot: Slot,
    /// In a string: whether the last byte was a backslash that escapes the next one.
    string: Option<bool>,
}

impl Memory {
    /// Right after the bracket of the outermost array or object that is remembered.
    pub fn new(bracket: u8, few: bool) -> Memory {
        let mut memory = Memory { frames: SmallVec::new(), slot: Slot::Empty, string: None };
        memory.enter(bracket);
        memory.open(few);
        memory
    }

    /// Remembers the array or object whose bracket was the last byte.
    pub fn open(&mut self, few: bool) {
        self.frames.last_mut().expect("a bracket is open").tracked = Some(Tracked { few, ..Tracked::default() });
    }

    pub fn in_string(&self) -> bool {
        self.string.is_some()
    }

    /// Whether the text is in a number or in a name like `null`.
    pub fn in_word(&self) -> bool {
        !self.in_string() && matches!(self.slot, Slot::Scalar(_))
    }

    /// In a string: whether the next byte is escaped.
    pub fn is_escaped(&self) -> bool {
        self.string == Some(true)
    }

    /// Whether an open item or name may have few values left to become.
    pub fn has_few(&self) -> bool {
        self.frames.iter().any(|frame| frame.tracked.as_ref().is_some_and(|tracked| tracked.few))
    }

    /// Whether no array or object is remembered any more.
    pub fn is_over(&self) -> bool {
        self.frames.is_empty()
    }

    /// Bytes held, roughly, without what other memories share.
    pub fn size(&self) -> usize {
        let left = |frame: &Frame| frame.tracked.as_ref().and_then(|t| t.left.as_ref()).map_or(0, |left| left.len());
        self.frames.iter().map(|frame| 256 + left(frame) * 8).sum()
    }

    fn enter(&mut self, bracket: u8) {
        let kept = self.frames.iter().any(|frame| frame.array && frame.tracked.is_some());
        let (finished, array) = (Finished::default(), bracket == b'[');
        self.frames.push(Frame { array, kept, finished, name: None, tracked: None });
        self.slot = Slot::Empty;
    }

    /// Whether this byte, next, ends an item or a name that is remembered: [`Memory::settle`] must be told before it.
    pub fn ends(&self, byte: u8) -> bool {
        let Some(inner) = self.frames.last() else { return false };
        let ending = if inner.array { matches!(byte, b',' | b']') } else { byte == b':' };
        ending && inner.tracked.is_some() && !self.in_string() && self.slot != Slot::Empty
    }

    /// Notes what has ended for rules of these kinds. Whether it was there before, so that no rule of theirs may go on.
    pub fn settle(&mut self, kinds: Kinds) -> bool {
        self.end_scalar();
        let Some(Frame { tracked: Some(tracked), .. }) = self.frames.last_mut() else { return false };
        let Slot::Whole(said) = &self.slot else { return false };
        if !kinds.has(Kinds::ITEMS.or(Kinds::NAMES)) {
            return false;
        }
        if tracked.seen.contains(said) {
            return true;
        }
        tracked.seen.insert(said.clone());
        tracked.left = None;
        false
    }

    /// Takes one byte of a text that the grammar allows, but for what it must not repeat.
    pub fn push(&mut self, byte: u8) {
        if let Some(escaped) = self.string {
            self.scalar().push(byte);
            self.string = Some(byte == b'\\' && !escaped);
            if byte == b'"' && !escaped {
                self.string = None;
                self.end_scalar();
            }
            return;
        }
        match byte {
            b' ' | b'\t' | b'\n' | b'\r' => self.end_scalar(),
            b'"' => {
                self.scalar().push(byte);
                self.string = Some(false);
            }
            b'[' | b'{' => self.enter(byte),
            b']' | b'}' => self.leave(),
            b',' => self.finish(),
            b':' => {
                if let (Slot::Whole(name), Some(inner)) = (&self.slot, self.frames.last_mut())
                    && let Value::Scalar(text) = &**name
                {
                    inner.name = Some(text.as_ref().into());
                }
                self.slot = Slot::Empty;
            }
            _ => self.scalar().push(byte),
        }
    }

    fn scalar(&mut self) -> &mut SmallVec<[u8; 24]> {
        if !matches!(self.slot, Slot::Scalar(_)) {
            self.slot = Slot::Scalar(SmallVec::new());
        }
        let Slot::Scalar(text) = &mut self.slot else { unreachable!("it was just made one") };
        text
    }

    fn end_scalar(&mut self) {
        if let Slot::Scalar(text) = &self.slot {
            let whole = if text[0] == b'"' { &text[..] } else { text.strip_suffix(b".0").unwrap_or(text) };
            self.slot = Slot::Whole(Arc::new(Value::Scalar(whole.into())));
        }
    }

    /// The end of an item or member.
    fn finish(&mut self) {
        self.end_scalar();
        let Some(inner) = self.frames.last_mut() else { return };
        let name = inner.name.take();
        if let (Slot::Whole(value), true) = (std::mem::replace(&mut self.slot, Slot::Empty), inner.kept) {
            inner.finished.push(name, value);
        }
        if let (Some(tracked), true) = (&mut inner.tracked, inner.array) {
            tracked.left = None;
        }
    }

    /// The end of an array or object.
    fn leave(&mut self) {
        self.finish();
        let Some(frame) = self.frames.pop() else { return };
        // What is not part of an item is never looked at.
        let value = if frame.kept { frame.finished.value(frame.array) } else { Value::Array([].into()) };
        self.slot = Slot::Whole(Arc::new(value));
    }

    /// Whether an item or name that is open can still become one that is refused, as far as the text shows; or has become.
    pub fn binds(&self) -> bool {
        self.tracked().any(|(level, tracked)| match &tracked.left {
            _ if !tracked.few => match &self.slot {
                Slot::Whole(said) if level == self.frames.len() => tracked.seen.contains(said),
                _ => false,
            },
            Some(left) => left.iter().any(|value| self.fits(value, level, &mut |_| ())),
            None => tracked.seen.iter().any(|value| self.fits(value, level, &mut |_| ())),
        })
    }

    /// Finds which refused items the open ones may still become, so that it need not be found again.
    pub fn narrow(&mut self) {
        for i in 0..self.frames.len() {
            let Some(tracked) = &self.frames[i].tracked else { continue };
            if !self.frames[i].array || (self.slot == Slot::Empty && i + 1 == self.frames.len()) {
                continue;
            }
            let fits = |value: &&Arc<Value>| self.fits(value, i + 1, &mut |_| ());
            let left: Arc<[_]> = match &tracked.left {
                Some(left) => left.iter().filter(fits).cloned().collect(),
                None => tracked.seen.iter().filter(fits).cloned().collect(),
            };
            self.frames[i].tracked.as_mut().expect("it is tracked").left = Some(left);
        }
    }

    /// What open strings could go on with to become, or become part of, what is refused.
    pub fn dangers(&self) -> Vec<Vec<u8>> {
        let Slot::Scalar(said) = &self.slot else { return Vec::new() };
        let mut out = Vec::new();
        let mut tell = |text: &[u8]| out.push(text[said.len().min(text.len())..].to_vec());
        for (level, tracked) in self.tracked() {
            match &tracked.left {
                Some(left) => left.iter().for_each(|value| _ = self.fits(value, level, &mut tell)),
                None => tracked.seen.iter().for_each(|value| _ = self.fits(value, level, &mut tell)),
            }
        }
        out
    }

    /// What is tracked and open, with the level from which on its open part is.
    fn tracked(&self) -> impl Iterator<Item = (usize, &Tracked)> {
        self.frames.iter().enumerate().filter_map(|(i, frame)| {
            let writing = frame.array || (frame.name.is_none() && i + 1 == self.frames.len());
            Some((i + 1, frame.tracked.as_ref()?)).filter(|_| writing)
        })
    }

    /// Whether what is open from this level on may become the value, as far as it goes. Tells the texts of that value's
    /// scalars that the open scalar may become.
    fn fits(&self, value: &Value, level: usize, tell: &mut dyn FnMut(&[u8])) -> bool {
        let Some(frame) = self.frames.get(level) else { return self.slot_fits(value, tell) };
        let is_last = level + 1 == self.frames.len();
        match value {
            Value::Array(items) if frame.array => {
                let n = frame.finished.len();
                let same = |(i, (_, item)): (usize, (_, &Arc<Value>))| items[n - 1 - i] == *item;
                if items.len() < n || !frame.finished.iter().enumerate().all(same) {
                    return false;
                }
                match items.get(n) {
                    Some(item) => self.fits(item, level + 1, tell),
                    None => is_last && self.slot == Slot::Empty,
                }
            }
            Value::Object(members) if !frame.array => {
                let of = |name: &[u8]| members.iter().find(|member| *member.0 == *name);
                let same = |(name, member): (Option<&Arc<[u8]>>, &Arc<Value>)| {
                    name.and_then(|name| of(name)).is_some_and(|known| known.1 == *member)
                };
                if !frame.finished.iter().all(same) {
                    return false;
                }
                match &frame.name {
                    Some(name) => of(name).is_some_and(|known| self.fits(&known.1, level + 1, tell)),
                    None if !is_last => false,
                    None => {
                        let mut fits = self.slot == Slot::Empty;
                        for (name, _) in members {
                            fits |= self.slot_fits(&Value::Scalar((**name).into()), tell);
                        }
                        fits
                    }
                }
            }
            _ => false,
        }
    }

    fn slot_fits(&self, value: &Value, tell: &mut dyn FnMut(&[u8])) -> bool {
        match (&self.slot, value) {
            (Slot::Empty, _) => true,
            (Slot::Whole(said), _) => **said == *value,
            (Slot::Scalar(said), Value::Scalar(text)) => {
                if text.starts_with(said) {
                    tell(text);
                    return true;
                }
                // "1." and "1.0" may yet end as 1
                [&b"."[..], b".0"].iter().any(|end| said[0] != b'"' && said.strip_suffix(*end) == Some(text))
            }
            (Slot::Scalar(_), _) => false,
        }
    }
}
