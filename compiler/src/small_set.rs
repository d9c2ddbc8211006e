//! Sets that mostly have few members: with these they allocate nothing.

use std::hash::Hash;

use rustc_hash::FxHashSet;
use smallvec::SmallVec;

const FEW: usize = 8;

/// A set that only grows.
pub(crate) struct SmallSet<T> {
    few: SmallVec<[T; FEW]>,
    /// All members, once there are more.
    many: FxHashSet<T>,
}

impl<T> Default for SmallSet<T> {
    fn default() -> Self {
        SmallSet { few: SmallVec::new(), many: FxHashSet::default() }
    }
}

impl<T: Eq + Hash> SmallSet<T> {
    /// Adds a member. Returns whether it is new.
    pub(crate) fn insert(&mut self, member: T) -> bool {
        if !self.many.is_empty() {
            return self.many.insert(member);
        }
        if self.few.contains(&member) {
            return false;
        }
        if self.few.len() == FEW {
            self.many.extend(self.few.drain(..));
            return self.many.insert(member);
        }
        self.few.push(member);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_new_once() {
        for count in [1, FEW, FEW + 1, 5 * FEW] {
            let mut set = SmallSet::default();
            assert!((0..count).all(|member| set.insert(member)));
            assert!((0..count).all(|member| !set.insert(member)));
            assert!(set.insert(count) && !set.insert(count));
        }
    }
}
