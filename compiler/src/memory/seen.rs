//! Sets of texts that only grow, and share what they have in common with the sets they grew from.

use std::hash::{BuildHasher, Hash, Hasher, RandomState};
use std::sync::{Arc, OnceLock};

use smallvec::SmallVec;

type Run = Arc<[Arc<[u8]>]>;

/// Texts in sorted runs, each more than half as long as the one before it is gone: adding one merges runs of one length.
#[derive(Clone, Default, Debug)]
pub struct Seen {
    runs: SmallVec<[Run; 2]>,
    /// Of the texts, in any order, under keys of this process.
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

fn hash_of(text: &[u8]) -> u128 {
    static KEYS: OnceLock<[RandomState; 2]> = OnceLock::new();
    let [a, b] = KEYS.get_or_init(Default::default);
    u128::from(a.hash_one(text)) << 64 | u128::from(b.hash_one(text))
}

impl Seen {
    pub fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    pub fn contains(&self, text: &[u8]) -> bool {
        self.runs.iter().any(|run| run.binary_search_by(|t| t.as_ref().cmp(text)).is_ok())
    }

    /// The texts that begin with this.
    pub fn beginning_with<'a>(&'a self, prefix: &'a [u8]) -> impl Iterator<Item = &'a [u8]> + 'a {
        self.runs.iter().flat_map(move |run| {
            let from = run.partition_point(|t| t.as_ref() < prefix);
            run[from..].iter().map(|t| t.as_ref()).take_while(move |t| t.starts_with(prefix))
        })
    }

    /// Adds a text that is not in the set.
    pub fn insert(&mut self, text: &[u8]) {
        self.hash = self.hash.wrapping_add(hash_of(text));
        let mut run: Vec<Arc<[u8]>> = vec![text.into()];
        while self.runs.last().is_some_and(|last| last.len() <= run.len()) {
            let last = self.runs.pop().expect("there is one");
            run.extend(last.iter().cloned());
            run.sort_unstable();
        }
        self.runs.push(run.into());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_grow_apart() {
        let mut one = Seen::default();
        for i in 0..100 {
            assert!(!one.contains(format!("{i}").as_bytes()));
            one.insert(format!("{i}").as_bytes());
        }
        let (mut other, mut again) = (one.clone(), Seen::default());
        other.insert(b"x");
        (0..100).rev().for_each(|i| again.insert(format!("{i}").as_bytes()));
        assert!(again == one && other != one && !one.contains(b"x") && other.contains(b"x"));
        assert!((0..100).all(|i| other.contains(format!("{i}").as_bytes())));
        let mut nines: Vec<&[u8]> = other.beginning_with(b"9").collect();
        nines.sort_unstable();
        assert_eq!(nines.len(), 11);
        assert_eq!(nines[0], b"9");
        assert!(one.runs.len() < 8);
    }
}
