//! The history of a JSON text: what its open arrays and objects hold so far, byte by byte.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use smallvec::SmallVec;

use super::held::Held;
use super::set::ValueSet;
use super::text::Text;
use super::value::{Finished, Value};
use crate::ir::Kinds;

/// The value or name at the end of the text.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
enum Current {
    /// None has begun.
    Nothing,
    /// The bytes so far of one that has not ended.
    Scalar(Text),
    /// One that has ended.
    Whole(Arc<Value>),
}

/// The items of an open array, or the names in an open object, that must be distinct.
#[derive(Clone, Debug, Default)]
struct Tracked {
    /// See [`Kinds::FEW`].
    few: bool,
    /// Those that have ended.
    used: ValueSet,
    /// Those of `used` that the open item can still become; `None` until [`History::narrow`] finds them. All else says
    /// which they are: they are neither compared nor hashed.
    reachable: Option<Arc<[Arc<Value>]>>,
}

impl PartialEq for Tracked {
    fn eq(&self, other: &Tracked) -> bool {
        (self.few, &self.used) == (other.few, &other.used)
    }
}

impl Eq for Tracked {}

impl Hash for Tracked {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.few, &self.used).hash(state);
    }
}

/// An open array or object.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Frame {
    array: bool,
    /// It is part of an item that must be distinct, so that its value has to be known when it ends.
    kept: bool,
    /// Its items or members that have ended, if it is kept.
    finished: Finished,
    /// The name of the member whose value is being written.
    name: Option<Arc<[u8]>>,
    /// `None`: neither its items nor its names have to be distinct.
    tracked: Option<Tracked>,
}

/// What a JSON text has written so far in the arrays and objects that are open at its end.
///
/// The frames begin with the outermost array or object whose items or names must be distinct; a text outside any such
/// has no history.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct History {
    frames: SmallVec<[Frame; 2]>,
    current: Current,
    /// In a string: whether the last byte was a backslash that escapes the next one.
    string: Option<bool>,
}

impl History {
    /// The history right after the bracket that opens the outermost array or object to be tracked. `few`: see
    /// [`Kinds::FEW`].
    pub fn new(bracket: u8, few: bool) -> History {
        let mut history = History { frames: SmallVec::new(), current: Current::Nothing, string: None };
        history.enter(bracket);
        history.track(few);
        history
    }

    /// Tracks the array or object whose bracket was the last byte: its items or names must be distinct.
    pub fn track(&mut self, few: bool) {
        self.frames.last_mut().expect("a bracket is open").tracked = Some(Tracked { few, ..Tracked::default() });
    }

    pub fn in_string(&self) -> bool {
        self.string.is_some()
    }

    /// Whether the text ends in a number or in one of `true`, `false` and `null`.
    pub fn in_number_or_literal(&self) -> bool {
        !self.in_string() && matches!(self.current, Current::Scalar(_))
    }

    /// In a string: whether the next byte is escaped.
    pub fn is_escaped(&self) -> bool {
        self.string == Some(true)
    }

    /// Whether an open item or name may have few values left that it can become ([`Kinds::FEW`]).
    pub fn has_few(&self) -> bool {
        self.frames.iter().any(|frame| frame.tracked.as_ref().is_some_and(|tracked| tracked.few))
    }

    /// Whether every tracked array and object has ended.
    pub fn is_closed(&self) -> bool {
        self.frames.is_empty()
    }

    /// Counts the memory that this history holds and no other one that was counted before.
    pub fn count(&self, held: &mut Held) {
        held.add_own(size_of::<History>());
        match &self.current {
            Current::Nothing => {}
            Current::Scalar(text) => text.count(held),
            Current::Whole(value) => value.count(held),
        }
        for frame in &self.frames {
            held.add_own(size_of::<Frame>());
            frame.finished.count(held, |(_, value), held| value.count(held));
            let Some(tracked) = &frame.tracked else { continue };
            tracked.used.count(held);
            if let Some(values) = &tracked.reachable {
                held.add(values, size_of_val(&**values));
            }
        }
    }

    fn enter(&mut self, bracket: u8) {
        let kept = self.frames.iter().any(|frame| frame.array && frame.tracked.is_some());
        let (finished, array) = (Finished::default(), bracket == b'[');
        self.frames.push(Frame { array, kept, finished, name: None, tracked: None });
        self.current = Current::Nothing;
    }

    /// Whether the next byte, if it is this one, ends an item or name that must be distinct. Then [`History::record`]
    /// has to be called before [`History::push`].
    pub fn completes(&self, byte: u8) -> bool {
        let Some(inner) = self.frames.last() else { return false };
        let ending = if inner.array { matches!(byte, b',' | b']') } else { byte == b':' };
        ending && inner.tracked.is_some() && !self.in_string() && self.current != Current::Nothing
    }

    /// Adds the item or name that ends to those that must not come again, if rules of these kinds stand here.
    ///
    /// Returns whether it has been written before, so that texts of these rules end here.
    pub fn record(&mut self, kinds: Kinds) -> bool {
        self.end_scalar();
        let Some(Frame { tracked: Some(tracked), .. }) = self.frames.last_mut() else { return false };
        let Current::Whole(written) = &self.current else { return false };
        if !kinds.has(Kinds::ITEMS.or(Kinds::NAMES)) {
            return false;
        }
        if tracked.used.contains(written) {
            return true;
        }
        tracked.used.insert(written.clone());
        tracked.reachable = None;
        false
    }

    /// Advances by one byte of a text that the grammar allows.
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
                if let (Current::Whole(name), Some(inner)) = (&self.current, self.frames.last_mut())
                    && let Value::Scalar(text) = &**name
                {
                    inner.name = Some(text.as_ref().into());
                }
                self.current = Current::Nothing;
            }
            _ => self.scalar().push(byte),
        }
    }

    /// The bytes of the open scalar, which begins here if none is open.
    fn scalar(&mut self) -> &mut Text {
        if !matches!(self.current, Current::Scalar(_)) {
            self.current = Current::Scalar(Text::default());
        }
        let Current::Scalar(text) = &mut self.current else { unreachable!("it was just made one") };
        text
    }

    fn end_scalar(&mut self) {
        if let Current::Scalar(text) = &self.current {
            let mut whole = text.to_vec();
            if whole[0] != b'"' && whole.ends_with(b".0") {
                whole.truncate(whole.len() - 2);
            }
            self.current = Current::Whole(Arc::new(Value::Scalar(whole.into())));
        }
    }

    /// The end of an item or member.
    fn finish(&mut self) {
        self.end_scalar();
        let Some(inner) = self.frames.last_mut() else { return };
        let name = inner.name.take();
        if let (Current::Whole(value), true) = (std::mem::replace(&mut self.current, Current::Nothing), inner.kept) {
            inner.finished.push((name, value));
        }
        if let (Some(tracked), true) = (&mut inner.tracked, inner.array) {
            tracked.reachable = None;
        }
    }

    /// The end of an array or object.
    fn leave(&mut self) {
        self.finish();
        let Some(frame) = self.frames.pop() else { return };
        // only values that are part of an item are ever compared
        let value = if frame.kept { Value::whole(&frame.finished, frame.array) } else { Value::Array([].into()) };
        self.current = Current::Whole(Arc::new(value));
    }

    /// Whether an open item or name is, or can still become, one that has been written before, as far as the text so
    /// far shows.
    pub fn may_repeat(&self) -> bool {
        self.tracked().any(|(level, tracked)| match &tracked.reachable {
            _ if !tracked.few => match &self.current {
                Current::Whole(written) if level == self.frames.len() => tracked.used.contains(written),
                _ => false,
            },
            Some(reachable) => reachable.iter().any(|value| self.fits(value, level, &mut |_| ())),
            None => tracked.used.iter().any(|value| self.fits(value, level, &mut |_| ())),
        })
    }

    /// The earlier items and names that [`History::narrow`] and [`History::may_repeat`] look at.
    pub fn compared(&self) -> usize {
        let each = |(_, tracked): (_, &Tracked)| tracked.reachable.as_ref().map_or(tracked.used.len(), |of| of.len());
        self.tracked().map(each).sum()
    }

    /// Finds the earlier items that the open ones can still become, so that later questions look at these alone.
    pub fn narrow(&mut self) {
        for i in 0..self.frames.len() {
            let Some(tracked) = &self.frames[i].tracked else { continue };
            if !self.frames[i].array || (self.current == Current::Nothing && i + 1 == self.frames.len()) {
                continue;
            }
            let fits = |value: &&Arc<Value>| self.fits(value, i + 1, &mut |_| ());
            let reachable: Arc<[_]> = match &tracked.reachable {
                Some(reachable) => reachable.iter().filter(fits).cloned().collect(),
                None => tracked.used.iter().filter(fits).cloned().collect(),
            };
            self.frames[i].tracked.as_mut().expect("it is tracked").reachable = Some(reachable);
        }
    }

    /// The continuations of the open scalar, up to its end, with which it repeats an earlier item or name or a part of
    /// one.
    pub fn refused_ends(&self) -> Vec<Vec<u8>> {
        let Current::Scalar(written) = &self.current else { return Vec::new() };
        let mut out = Vec::new();
        let mut tell = |text: &[u8]| out.push(text[written.len().min(text.len())..].to_vec());
        for (level, tracked) in self.tracked() {
            match &tracked.reachable {
                Some(reachable) => reachable.iter().for_each(|value| _ = self.fits(value, level, &mut tell)),
                None => tracked.used.iter().for_each(|value| _ = self.fits(value, level, &mut tell)),
            }
        }
        out
    }

    /// The tracked arrays with an open item and objects with an open name, each with the index of the frame at which
    /// that item or name begins.
    fn tracked(&self) -> impl Iterator<Item = (usize, &Tracked)> {
        self.frames.iter().enumerate().filter_map(|(i, frame)| {
            let writing = frame.array || (frame.name.is_none() && i + 1 == self.frames.len());
            Some((i + 1, frame.tracked.as_ref()?)).filter(|_| writing)
        })
    }

    /// Whether what is open from the frame `level` on can become `value`. Calls `tell` with the whole spelling of each
    /// scalar in `value` that the open scalar can become.
    fn fits(&self, value: &Value, level: usize, tell: &mut dyn FnMut(&[u8])) -> bool {
        let Some(frame) = self.frames.get(level) else { return self.current_fits(value, tell) };
        let is_last = level + 1 == self.frames.len();
        match value {
            Value::Array(items) if frame.array => {
                let n = frame.finished.len();
                let same = |(i, (_, item)): (usize, &(_, Arc<Value>))| items[n - 1 - i] == *item;
                if items.len() < n || !frame.finished.iter().enumerate().all(same) {
                    return false;
                }
                match items.get(n) {
                    Some(item) => self.fits(item, level + 1, tell),
                    None => is_last && self.current == Current::Nothing,
                }
            }
            Value::Object(members) if !frame.array => {
                let of = |name: &[u8]| members.iter().find(|member| *member.0 == *name);
                let same = |(name, member): &(Option<Arc<[u8]>>, Arc<Value>)| {
                    name.as_ref().and_then(|name| of(name)).is_some_and(|known| known.1 == *member)
                };
                if !frame.finished.iter().all(same) {
                    return false;
                }
                match &frame.name {
                    Some(name) => of(name).is_some_and(|known| self.fits(&known.1, level + 1, tell)),
                    None if !is_last => false,
                    None => {
                        let mut fits = self.current == Current::Nothing;
                        for (name, _) in members {
                            fits |= self.current_fits(&Value::Scalar((**name).into()), tell);
                        }
                        fits
                    }
                }
            }
            _ => false,
        }
    }

    /// The same where no frame is left: whether the current value can become `value`.
    fn current_fits(&self, value: &Value, tell: &mut dyn FnMut(&[u8])) -> bool {
        match (&self.current, value) {
            (Current::Nothing, _) => true,
            (Current::Whole(written), _) => **written == *value,
            (Current::Scalar(written), Value::Scalar(text)) => {
                if written.begins(text) {
                    tell(text);
                    return true;
                }
                // "1." and "1.0" may yet end as 1
                let written = if self.in_string() { return false } else { written.to_vec() };
                [&b"."[..], b".0"].iter().any(|end| written.strip_suffix(*end) == Some(text))
            }
            (Current::Scalar(_), _) => false,
        }
    }
}
