//! Lists that mostly become long: to be copied less often, they grow to four times their size while they are short.

/// Items from which on lists grow to twice their size.
const LONG: usize = 1 << 14;

/// Adds an item.
#[inline]
pub(crate) fn push<T>(list: &mut Vec<T>, item: T) {
    make_room(list, 1);
    list.push(item);
}

/// Makes room for so many items more.
#[inline]
pub(crate) fn make_room<T>(list: &mut Vec<T>, more: usize) {
    if list.capacity() - list.len() < more {
        let len = list.len().max(16);
        list.reserve_exact(more.max(if len < LONG { 3 * len } else { len }));
    }
}
