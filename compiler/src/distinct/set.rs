//! Persistent sets of values: a clone costs a few counters, and shares its values with the set it was cloned from.
//!
//! The runs grow as in the logarithmic method of Bentley and Saxe (1980).

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use smallvec::SmallVec;

use super::held::Held;
use super::list::long_hash;
use super::value::Value;

/// A set of values as sorted runs, the longest first. Adding a value merges it with the runs that are no longer than
/// the merged one.
#[derive(Clone, Default, Debug)]
pub(super) struct ValueSet {
    runs: SmallVec<[Arc<[Arc<Value>]>; 2]>,
    /// The sum of the values' hashes, which stands for the set in comparisons.
    hash: u128,
}

impl PartialEq for ValueSet {
    fn eq(&self, other: &ValueSet) -> bool {
        self.hash == other.hash
    }
}

impl Eq for ValueSet {}

impl Hash for ValueSet {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.hash.hash(state);
    }
}

impl ValueSet {
    pub(super) fn contains(&self, value: &Value) -> bool {
        self.runs.iter().any(|run| run.binary_search_by(|known| known.as_ref().cmp(value)).is_ok())
    }

    pub(super) fn len(&self) -> usize {
        self.runs.iter().map(|run| run.len()).sum()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Arc<Value>> {
        self.runs.iter().flat_map(|run| run.iter())
    }

    /// Counts the runs, and the values in those that were not counted before.
    pub(super) fn count(&self, held: &mut Held) {
        for run in &self.runs {
            if held.add(run, size_of_val(&**run)) {
                run.iter().for_each(|value| value.count(held));
            }
        }
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
        let mut one = ValueSet::default();
        for i in 0..100 {
            assert!(!one.contains(&value(i)));
            one.insert(value(i));
        }
        let (mut other, mut again) = (one.clone(), ValueSet::default());
        other.insert(value(100));
        (0..100).rev().for_each(|i| again.insert(value(i)));
        assert!(again == one && other != one && !one.contains(&value(100)) && other.contains(&value(100)));
        assert!((0..100).all(|i| other.contains(&value(i))));
        assert_eq!(other.iter().count(), 101);
        assert!(one.runs.len() < 8);
    }
}
