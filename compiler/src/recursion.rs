//! Recursion over structure that users give, of any depth: the stack grows on the heap where it would overflow.

/// Runs `f` with enough stack for one more level of recursion. What limits the nesting is `Limits::max_depth`.
#[inline]
pub(crate) fn deep<R>(f: impl FnOnce() -> R) -> R {
    stacker::maybe_grow(48 * 1024, 1024 * 1024, f)
}
