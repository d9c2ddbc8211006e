"""Sets of code points, and their Boolean operations.

A set is a tuple of inclusive ranges that are sorted, disjoint and do not touch, so that equal sets are equal tuples.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from itertools import chain

__all__ = ["ALL", "LAST", "Ranges", "complement", "intersect", "is_subset", "normalise", "single", "subtract", "union"]

Ranges = tuple[tuple[int, int], ...]
"""A set: its ranges, each as its first and last code point."""

LAST = 0x10FFFF
"""The greatest code point."""
ALL: Ranges = ((0, LAST),)
"""Every code point. Surrogates are among them; no UTF-8 text has one, so they make no difference."""

_KEPT = 256
"""Results that are remembered of each operation: a pattern has few different sets, and large ones take long."""


def single(codepoint: int) -> Ranges:
    """The set of one code point."""
    return ((codepoint, codepoint),)


def normalise(ranges: Iterable[tuple[int, int]]) -> Ranges:
    """The union of ranges in any order, which may overlap."""
    merged: list[tuple[int, int]] = []
    for low, high in sorted(ranges):
        if merged and low <= merged[-1][1] + 1:
            if high > merged[-1][1]:
                merged[-1] = (merged[-1][0], high)
        else:
            merged.append((low, high))
    return tuple(merged)


@lru_cache(maxsize=_KEPT)
def union(*sets: Ranges) -> Ranges:
    """The code points that any of the sets has."""
    present = [ranges for ranges in sets if ranges]
    if len(present) == 1:
        return present[0]
    return normalise(chain.from_iterable(present))


@lru_cache(maxsize=_KEPT)
def complement(ranges: Ranges) -> Ranges:
    """The code points that the set does not have."""
    gaps, next_free = [], 0
    for low, high in ranges:
        if low > next_free:
            gaps.append((next_free, low - 1))
        next_free = high + 1
    if next_free <= LAST:
        gaps.append((next_free, LAST))
    return tuple(gaps)


@lru_cache(maxsize=_KEPT)
def intersect(a: Ranges, b: Ranges) -> Ranges:
    """The code points that both sets have."""
    common, i, j = [], 0, 0
    while i < len(a) and j < len(b):
        low, high = max(a[i][0], b[j][0]), min(a[i][1], b[j][1])
        if low <= high:
            common.append((low, high))
        if a[i][1] < b[j][1]:
            i += 1
        else:
            j += 1
    return tuple(common)


def subtract(a: Ranges, b: Ranges) -> Ranges:
    """The code points of ``a`` that ``b`` does not have."""
    return intersect(a, complement(b))


def is_subset(a: Ranges, b: Ranges) -> bool:
    """Whether ``b`` has all code points of ``a``."""
    return not subtract(a, b)
