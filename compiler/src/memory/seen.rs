//! Sets of values that only grow, and share what they have in common with the sets they grew from.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use smallvec::SmallVec;

use super::value::{Value, long_hash};

/// Values in sorted runs, the longest first: adding one merges runs that are no longer than what is merged.
#[derive(Clone, Default, Debug)]
pub(super) struct Seen {
    runs: SmallVec<[Arc<[Arc<Value>]>; 2]>,
    /// Of the values, in any order.
    hash: u128,
}

impl PartialEq for Seen {
    fn eq(&self, other: &Seen) -> bool {
        self.hash == other.hash
    }
}

impl Eq for Seen {}

impl Hash for Seen {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.hash.hash(state);
    }
}

impl Seen {
    pub(super) fn contains(&self, value: &Value) -> bool {
        self.runs.iter().any(|run| run.binary_search_by(|known| known.as_ref().cmp(value)).is_ok())
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Arc<Value>> {
        self.runs.iter().flat_map(|run| run.iter())
    }

    /// Adds a value that is not in the set.
    pub(super) fn insert(&mut self, value: Arc<Value>) {
        self.hash = self.hash.wrapping_add(long_hash(&value));
        let mut run = vec![value];
        while self.runs.last().is_some_and(|last| last.len() <= run.len()) {
            let last = self.runs.pop().expect("there is one");
            run.extend(last.iter().cloned());
        }
        run.sort_unstable();
        self.runs.push(run.into());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(i: u32) -> Arc<Value> {
        Arc::new(Value::Scalar(i.to_string().into_bytes().into()))
    }

    #[test]
    fn sets_grow_apart() {
        let mut one = Seen::default();
        for i in 0..100 {
            assert!(!one.contains(&value(i)));
            one.insert(value(i));
        }
        let (mut other, mut again) = (one.clone(), Seen::default());
        other.insert(value(100));
        (0..100).rev().for_each(|i| again.insert(value(i)));
        assert!(again == one && other != one && !one.contains(&value(100)) && other.contains(&value(100)));
        assert!((0..100).all(|i| other.contains(&value(i))));
        assert_eq!(other.iter().count(), 101);
        assert!(one.runs.len() < 8);
    }
}
