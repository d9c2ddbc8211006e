//! JSON values as trees of spellings, and lists of them that share their beginnings.

use std::hash::{BuildHasher, Hash, Hasher, RandomState};
use std::sync::{Arc, OnceLock};

/// A JSON value as it was spelled, but for whitespace and the order of members; a number's `.0` is left out.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(super) enum Value {
    /// A string in its quotation marks, a number, `true`, `false`, `null`.
    Scalar(Box<[u8]>),
    Array(Box<[Arc<Value>]>),
    /// By name, in its quotation marks.
    Object(Box<[Member]>),
}

/// A name in its quotation marks, and a value.
pub(super) type Member = (Arc<[u8]>, Arc<Value>);

/// A hash of 128 bits under random keys of this process: equal hashes are taken for equal values.
pub(super) fn long_hash(of: impl Hash) -> u128 {
    static KEYS: OnceLock<[RandomState; 2]> = OnceLock::new();
    let [a, b] = KEYS.get_or_init(Default::default);
    u128::from(a.hash_one(&of)) << 64 | u128::from(b.hash_one(&of))
}

/// The finished items or members of an open array or object: a linked list whose clones share their links.
#[derive(Clone, Default, Debug)]
pub(super) struct Finished(Option<Arc<Link>>);

#[derive(Debug)]
struct Link {
    name: Option<Arc<[u8]>>,
    value: Arc<Value>,
    before: Finished,
    len: usize,
    hash: u128,
}

impl Drop for Link {
    /// Drops link by link: lists are long, and recursion would overflow the stack.
    fn drop(&mut self) {
        let mut next = self.before.0.take();
        while let Some(mut link) = next.and_then(Arc::into_inner) {
            next = link.before.0.take();
        }
    }
}

impl Finished {
    pub(super) fn len(&self) -> usize {
        self.0.as_ref().map_or(0, |link| link.len)
    }

    fn key(&self) -> u128 {
        self.0.as_ref().map_or(0, |link| link.hash)
    }

    pub(super) fn push(&mut self, name: Option<Arc<[u8]>>, value: Arc<Value>) {
        let hash = long_hash((self.key(), &name, &value));
        let before = std::mem::take(self);
        self.0 = Some(Arc::new(Link { name, value, len: before.len() + 1, before, hash }));
    }

    /// From the last one to the first.
    pub(super) fn iter(&self) -> impl Iterator<Item = (Option<&Arc<[u8]>>, &Arc<Value>)> {
        std::iter::successors(self.0.as_deref(), |link| link.before.0.as_deref()).map(|l| (l.name.as_ref(), &l.value))
    }

    /// All of them as one value.
    pub(super) fn value(&self, array: bool) -> Value {
        if array {
            let mut items: Vec<_> = self.iter().map(|(_, value)| value.clone()).collect();
            items.reverse();
            return Value::Array(items.into());
        }
        let member = |(name, value): (Option<&Arc<[u8]>>, &Arc<Value>)| Some((name?.clone(), value.clone()));
        let mut members: Vec<_> = self.iter().filter_map(member).collect();
        members.sort();
        Value::Object(members.into())
    }
}

impl PartialEq for Finished {
    fn eq(&self, other: &Finished) -> bool {
        self.key() == other.key()
    }
}

impl Eq for Finished {}

impl Hash for Finished {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.key().hash(state);
    }
}
