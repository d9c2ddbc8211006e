"""The shapes of arrays: their items one by one, the items that are counted, and items that must all differ.

Counts come from ``contains``, and from the negation of ``items`` ("at least one item fails"). Each position of an item
has two goals for each count: an item that satisfies the schema of the count ("it counts"), and one that does not. If
the count has no maximum, the second does not forbid that the item satisfies the schema, since more such items do no
harm; if it has one, the second is the negation.

Where all items must differ, the compiler ensures that the item being written can still become one that differs from all
items before it. Here it is ensured that there are enough values for the items that are still required: each position
must have more values than there are items before it.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

from grammarspec.errors import LimitExceeded, UnsupportedFeature
from grammarspec.frontends.json_schema.document.subschema import ANYTHING, Subschema
from grammarspec.frontends.json_schema.json_values import (
    ARRAY,
    FALSE,
    FRACTION,
    NULL,
    NUMBER,
    OBJECT,
    STRING,
    TRUE,
)
from grammarspec.frontends.json_schema.keywords.conjunction import Concern, Conjunction
from grammarspec.frontends.json_schema.keywords.types_and_sizes import MAX_COUNTED
from grammarspec.frontends.json_schema.meaning.analysis import Analysis
from grammarspec.frontends.json_schema.meaning.evaluation import item_schemas
from grammarspec.frontends.json_schema.meaning.few_values import few_values
from grammarspec.frontends.json_schema.meaning.implication import implies
from grammarspec.frontends.json_schema.normal_form.shapes import (
    ANY_ARRAY,
    ArrayShape,
    CountedItems,
    Goal,
    ItemCount,
    both,
)

__all__ = ["array_shape"]

_MAX_PREFIX = 64  # positions with schemas of their own, of which it is looked at whether all items there count
_MAX_WAYS = 5_000  # in which the items at all positions may count


def array_shape(goals: Analysis, facts: Conjunction, *, closed: bool) -> ArrayShape:
    """What a conjunction asks of arrays.

    Args:
        closed: whether an object whose schema says nothing about undeclared members may have none.

    Raises:
        UnsupportedFeature: all items must differ, and a required one has so few values that earlier items may take all
            of them.
        LimitExceeded: too many items are counted in too many ways.
    """
    if not facts.asked & Concern.ITEMS:
        return ANY_ARRAY
    if facts.counts:
        facts = _without_plain_counts(goals, facts)
    least, most = facts.min_items, facts.max_items
    unique = facts.unique is not None and (most is None or most > 1)
    if unique:
        least, most = _enough_values(goals, facts, closed=closed)
    prefix = _prefix(facts)
    return ArrayShape(
        [both(item_schemas(facts, index)) for index in range(prefix if most is None else min(prefix, most))],
        _rest(facts),
        least,
        most,
        _counted(goals, facts, least, most) if facts.counts and (most is None or least <= most) else None,
        unique,
        unique and _is_endless(goals, facts, closed=closed),
        facts.where,
    )


def _prefix(facts: Conjunction) -> int:
    """The number of positions that have schemas of their own."""
    return max([len(facet.first) for facet in facts.arrays], default=0)


def _rest(facts: Conjunction) -> Goal:
    return both([facet.rest for facet in facts.arrays])


# ---------------------------------------------------------------------- counts
def _without_plain_counts(goals: Analysis, facts: Conjunction) -> Conjunction:
    """A conjunction in which counts that all items add to are bounds of the number of items.

    Such are those of negated branches of ``oneOf`` for arrays of different constants, which all allow the empty array.
    """
    prefix = _prefix(facts)
    if prefix > _MAX_PREFIX:
        return facts
    items = [goals.gather(item_schemas(facts, index)) for index in range(prefix + 1)]
    made = facts.copy()
    made.counts = []
    for count in facts.counts:
        counting = items[min(count.start, prefix) :]
        if not all(implies(goals, item, count.schema) for item in counting):
            made.counts = [*made.counts, count]
            continue
        if count.least > 0:
            made.min_items = max(made.min_items, count.start + count.least)
        if count.most is not None:
            most = count.start + count.most
            made.max_items = most if made.max_items is None else min(made.max_items, most)
    return made


def _counted(goals: Analysis, facts: Conjunction, least: int, most: int | None) -> CountedItems:
    """The ways in which items count.

    A maximum that is too large for one state per position is divided equally among the runs of items between those that
    count (a narrowing).

    Raises:
        LimitExceeded: there are too many ways.
        UnsupportedFeature: the schema of a count cannot be negated.
    """
    positions = 1 + max(_prefix(facts), *(count.start for count in facts.counts))
    if positions << len(facts.counts) > _MAX_WAYS:
        raise LimitExceeded("contains counted up to these bounds", where=facts.first.pointer)
    ways = [_ways(goals, facts, at) for at in range(positions if most is None else min(positions, most))]
    at_a_time = None
    if most is not None:
        tops = sum(count.least if count.most is None else count.most for count in facts.counts)
        room = most - max(positions - 1, least) - tops - 1
        if room > MAX_COUNTED:
            at_a_time = room // (tops + 1)
    return CountedItems([ItemCount(count.least, count.most) for count in facts.counts], ways, at_a_time)


def _ways(goals: Analysis, facts: Conjunction, position: int) -> list[tuple[tuple[bool, ...], Goal]]:
    """The ways in which the item at a position may count: for each count whether it adds to it, and the goal."""
    found = []
    for counted in product((True, False), repeat=len(facts.counts)):
        goal = item_schemas(facts, position)
        for count, counts in zip(facts.counts, counted, strict=True):
            if counts and position < count.start:
                break
            if counts:
                goal.append(count.schema)
            elif count.most is not None and position >= count.start:
                goal.append(goals.negate(count.schema))
        else:
            found.append((counted, both(goal)))
    return found


# ---------------------------------------------------------------------- items that differ
def _enough_values(goals: Analysis, facts: Conjunction, *, closed: bool) -> tuple[int, int | None]:
    """The bounds of the number of items, of which there are at most as many as there are values for them.

    Raises:
        UnsupportedFeature: a required item has so few values that earlier items may take all of them.
    """
    least, most = facts.min_items, facts.max_items
    prefix = _prefix(facts)
    rest = _how_many(goals, [facet.rest for facet in facts.arrays], closed=closed)
    if prefix == 0 and rest is not None:
        most = rest if most is None else min(rest, most)
    else:
        needed = prefix if any(count.least > 0 for count in facts.counts) else min(prefix, least)
        for index in range(needed):
            values = _how_many(goals, item_schemas(facts, index), closed=closed)
            if values is not None and values <= index:
                raise _too_few(facts)
        if prefix and rest is not None and least > prefix and rest < least:
            raise _too_few(facts)
    for count in facts.counts:
        if count.least > 0:
            values = _how_many(goals, [*item_schemas(facts, prefix), count.schema], closed=closed)
            if values is not None and prefix:
                raise _too_few(facts)
            if values is not None and values < count.least:
                return 1, 0  # so few values cannot make so many different items: there is no such array
    return least, most


def _how_many(goals: Analysis, goal: Sequence[Subschema], *, closed: bool) -> int | None:
    """The number of values of a goal, if they are provably few; otherwise ``None``."""
    values = few_values(goals, goal, closed=closed)
    return None if values is None else len(values)


def _too_few(facts: Conjunction) -> UnsupportedFeature:
    assert facts.unique is not None
    where = facts.unique.where("uniqueItems")
    hint = "items that must be there have few values, which others may take: ask for fewer, or for other values"
    return UnsupportedFeature("uniqueItems with so few values for some items", where=where, hint=hint)


def _is_endless(goals: Analysis, facts: Conjunction, *, closed: bool) -> bool:
    """Whether an item can become any of infinitely many values until it ends, as far as a simple criterion shows."""
    if facts.counts or any(facet.first for facet in facts.arrays):
        return False
    item = goals.gather([facet.rest for facet in facts.arrays])
    if item.enum is not None or item.choices or item.excluded or item.types & (TRUE | FALSE | NULL | ARRAY):
        return False
    if item.types & STRING and (item.texts or item.max_length is not None):
        return False
    if item.types & NUMBER and (
        not item.types & FRACTION  # 1.0 can only end as 1
        or item.low is not None
        or item.high is not None
        or item.multiples
    ):
        return False
    if item.types & OBJECT:
        restricted = any(facet.rest is not ANYTHING or facet.patterns for facet in item.objects)
        return not (restricted or closed or item.names or item.some or item.max_properties is not None)
    return True
