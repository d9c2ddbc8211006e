//! JSON values as trees of spellings.

use std::sync::Arc;

use super::held::Held;
use super::list::List;
use crate::recursion::deep;

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

/// The finished items or members of an open array or object. Items have no name.
pub(super) type Finished = List<(Option<Arc<[u8]>>, Arc<Value>)>;

impl Value {
    /// All items or members of a list as one value.
    pub(super) fn whole(finished: &Finished, array: bool) -> Value {
        if array {
            let mut items: Vec<_> = finished.iter().map(|(_, value)| value.clone()).collect();
            items.reverse();
            return Value::Array(items.into());
        }
        let mut members: Vec<_> =
            finished.iter().filter_map(|(name, value)| Some((name.clone()?, value.clone()))).collect();
        members.sort();
        Value::Object(members.into())
    }

    /// Counts a value and its parts.
    pub(super) fn count(self: &Arc<Self>, held: &mut Held) {
        let own = match &**self {
            Value::Scalar(text) => text.len(),
            Value::Array(items) => size_of_val(&**items),
            Value::Object(members) => size_of_val(&**members),
        };
        if !held.add(self, size_of::<Value>() + own) {
            return;
        }
        match &**self {
            Value::Scalar(_) => {}
            Value::Array(items) => items.iter().for_each(|item| deep(|| item.count(held))),
            Value::Object(members) => members.iter().for_each(|(name, value)| {
                held.add(name, name.len());
                deep(|| value.count(held));
            }),
        }
    }
}
