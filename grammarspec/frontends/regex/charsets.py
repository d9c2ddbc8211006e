"""Sets of code points as sorted, disjoint, inclusive ranges that do not touch."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain

__all__ = ["ALL", "LAST", "Ranges", "complement", "intersect", "is_subset", "normalise", "single", "subtract", "union"]

Ranges = tuple[tuple[int, int], ...]

LAST = 0x10FFFF
ALL: Ranges = ((0, LAST),)
"""Every code point. Surrogates are among them; no UTF-8 text has one, so they make no difference."""


def single(codepoint: int) -> Ranges:
    return ((codepoint, codepoint),)


def normalise(ranges: Iterable[tuple[int, int]]) -> Ranges:
    """The union of ranges in any order."""
    merged: list[tuple[int, int]] = []
    for low, high in sorted(ranges):
        if merged and low <= merged[-1][1] + 1:
            if high > merged[-1][1]:
                merged[-1] = (merged[-1][0], high)
        else:
            merged.append((low, high))
    return tuple(merged)


def union(*sets: Ranges) -> Ranges:
    present = [ranges for ranges in sets if ranges]
    if len(present) == 1:
        return present[0]
    return normalise(chain.from_iterable(present))


def complement(ranges: Ranges) -> Ranges:
    gaps, next_free = [], 0
    for low, high in ranges:
        if low > next_free:
            gaps.append((next_free, low - 1))
        next_free = high + 1
    if next_free <= LAST:
        gaps.append((next_free, LAST))
    return tuple(gaps)


def intersect(a: Ranges, b: Ranges) -> Ranges:
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
    return intersect(a, complement(b))


def is_subset(a: Ranges, b: Ranges) -> bool:
    return not subtract(a, b)
