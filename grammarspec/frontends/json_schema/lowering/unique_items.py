"""``uniqueItems``: makes the node of arrays whose items are compared with each other while they are written.

Array rules that are marked for it keep a history of their items (see :meth:`.GrammarBuilder.rule`). The compiler
ensures that the item being written can still become one that differs from all items before it. This module ensures that
there are enough values for the items that are still required: each position must have more values than there are items
before it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from grammarspec.errors import UnsupportedFeature
from grammarspec.frontends.json_schema.document.subschema import ANYTHING, Subschema
from grammarspec.frontends.json_schema.keywords.conjunction import Conjunction
from grammarspec.frontends.json_schema.keywords.json_values import (
    ARRAY,
    FALSE,
    FRACTION,
    NULL,
    NUMBER,
    OBJECT,
    STRING,
    TRUE,
)
from grammarspec.frontends.json_schema.lowering.context import Lowering
from grammarspec.frontends.json_schema.meaning.evaluation import few_values, item_schemas
from grammarspec.grammars.builder import FEW, ITEMS, OPENS

__all__ = ["unique_items"]


def unique_items(
    lowering: Lowering, facts: Conjunction, plain_array: Callable[[Lowering, Conjunction, int], int]
) -> int:
    """The node of the arrays of a conjunction whose items all differ.

    Args:
        plain_array: makes the arrays whose items may repeat; its last argument is the kinds of the rule around them
            (see :func:`.plain_array`).

    Raises:
        UnsupportedFeature: a required item has so few values that earlier items may take all of them.
    """
    b = lowering.builder
    facts = _bounded(lowering, facts)
    if facts.max_items is not None and facts.min_items > facts.max_items:
        return b.nothing
    array = lowering.telling_apart(lambda: plain_array(lowering, _with_repeats(facts), OPENS | ITEMS))
    if array == b.nothing:
        return array
    rule = b.rule("unique", OPENS | ITEMS | (0 if _is_endless(lowering, facts) else FEW))
    b.define(rule, array)
    return b.call(rule)


def _with_repeats(facts: Conjunction) -> Conjunction:
    """The same conjunction without ``uniqueItems``."""
    copy = facts.copy()
    copy.unique = None
    return copy


def _bounded(lowering: Lowering, facts: Conjunction) -> Conjunction:
    """The same conjunction, with at most as many items as there are values for them.

    Raises:
        UnsupportedFeature: a required item has so few values that earlier items may take all of them.
    """
    prefix = max((len(facet.first) for facet in facts.arrays), default=0)
    rest = _how_many(lowering, [facet.rest for facet in facts.arrays])
    if prefix == 0 and rest is not None:
        facts = facts.copy()
        facts.max_items = rest if facts.max_items is None else min(rest, facts.max_items)
    else:
        needed = prefix if any(count.least > 0 for count in facts.counts) else min(prefix, facts.min_items)
        for place in range(needed):
            values = _how_many(lowering, item_schemas(facts, place))
            if values is not None and values <= place:
                raise _too_few(lowering, facts)
        if prefix and rest is not None and facts.min_items > prefix and rest < facts.min_items:
            raise _too_few(lowering, facts)
    for count in facts.counts:
        if count.least > 0:
            values = _how_many(lowering, [*item_schemas(facts, prefix), count.schema])
            if values is not None and prefix:
                raise _too_few(lowering, facts)
            if values is not None and values < count.least:
                facts = facts.copy()
                # so few values cannot make so many different items: the array is impossible
                facts.max_items, facts.min_items = 0, 1
    return facts


def _is_endless(lowering: Lowering, facts: Conjunction) -> bool:
    """Whether an item can become any of infinitely many values until it ends, as far as a simple criterion shows."""
    if facts.counts or any(facet.first for facet in facts.arrays):
        return False
    item = lowering.goals.gather([facet.rest for facet in facts.arrays])
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
        closed = any(facet.rest is not ANYTHING or facet.patterns for facet in item.objects)
        return not (closed or lowering.closed or item.names or item.some or item.max_properties is not None)
    return True


def _how_many(lowering: Lowering, goal: Sequence[Subschema]) -> int | None:
    """The number of values of a goal, if they are provably few; otherwise ``None``."""
    values = few_values(lowering.goals, goal)
    return None if values is None else len(values)


def _too_few(lowering: Lowering, facts: Conjunction) -> UnsupportedFeature:
    assert facts.unique is not None
    where = facts.unique.where("uniqueItems")
    hint = "items that must be there have few values, which others may take: ask for fewer, or for other values"
    return UnsupportedFeature("uniqueItems with so few values for some items", where=where, hint=hint)
