//! Persistent lists: a clone is one pointer, and shares its items with the list it was cloned from.

use std::hash::{BuildHasher, Hash, Hasher, RandomState};
use std::sync::{Arc, OnceLock};

use super::held::Held;

/// A hash of 128 bits under random keys of this process: equal hashes are taken for equal values.
pub(super) fn long_hash(of: impl Hash) -> u128 {
    static KEYS: OnceLock<[RandomState; 2]> = OnceLock::new();
    let [a, b] = KEYS.get_or_init(Default::default);
    u128::from(a.hash_one(&of)) << 64 | u128::from(b.hash_one(&of))
}

/// A linked list from its last item to its first. A hash of the items stands for it in comparisons.
#[derive(Debug)]
pub(super) struct List<T>(Option<Arc<Link<T>>>);

#[derive(Debug)]
struct Link<T> {
    item: T,
    before: List<T>,
    len: usize,
    hash: u128,
}

impl<T> Drop for Link<T> {
    /// Drops link by link: lists are long, and recursion would overflow the stack.
    fn drop(&mut self) {
        let mut next = self.before.0.take();
        while let Some(mut link) = next.and_then(Arc::into_inner) {
            next = link.before.0.take();
        }
    }
}

impl<T> List<T> {
    pub(super) fn len(&self) -> usize {
        self.0.as_ref().map_or(0, |link| link.len)
    }

    fn key(&self) -> u128 {
        self.0.as_ref().map_or(0, |link| link.hash)
    }

    /// From the last one to the first.
    pub(super) fn iter(&self) -> impl Iterator<Item = &T> {
        std::iter::successors(self.0.as_deref(), |link| link.before.0.as_deref()).map(|link| &link.item)
    }

    /// Counts the links that no other list has that was counted before, each with what `inside` counts in its item.
    pub(super) fn count(&self, held: &mut Held, inside: impl Fn(&T, &mut Held)) {
        let mut next = &self.0;
        while let Some(link) = next
            && held.add(link, size_of::<Link<T>>())
        {
            inside(&link.item, held);
            next = &link.before.0;
        }
    }
}

impl<T: Hash> List<T> {
    pub(super) fn push(&mut self, item: T) {
        let hash = long_hash((self.key(), &item));
        let before = std::mem::take(self);
        self.0 = Some(Arc::new(Link { item, len: before.len() + 1, before, hash }));
    }
}

impl<T> Default for List<T> {
    fn default() -> List<T> {
        List(None)
    }
}

impl<T> Clone for List<T> {
    fn clone(&self) -> List<T> {
        List(self.0.clone())
    }
}

impl<T> PartialEq for List<T> {
    fn eq(&self, other: &List<T>) -> bool {
        self.key() == other.key()
    }
}

impl<T> Eq for List<T> {}

impl<T> Hash for List<T> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u128(self.key());
    }
}
