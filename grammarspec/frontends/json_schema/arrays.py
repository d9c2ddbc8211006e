"""Arrays: from a conjunction to the spellings of the arrays that satisfy it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from grammarspec.errors import UnsupportedFeature
from grammarspec.frontends.json_schema.conjunction import Conjunction, canonical
from grammarspec.frontends.json_schema.constants import check_excluded, constant_node
from grammarspec.frontends.json_schema.evaluation import holds_facts, item_schemas
from grammarspec.frontends.json_schema.item_counts import counted_items
from grammarspec.frontends.json_schema.prelude import CHAIN
from grammarspec.frontends.json_schema.strings import clamp

if TYPE_CHECKING:
    from grammarspec.frontends.json_schema.lowering import Lowering

__all__ = ["array_node"]

_MAX_UNIQUE = 8  # values whose every order is spelled out: n * 2**n states


def array_node(lowering: Lowering, facts: Conjunction) -> int:
    """The arrays that a conjunction allows."""
    b, text = lowering.builder, lowering.text
    least, most = facts.min_items, facts.max_items
    if most is not None and least > most:
        return b.nothing
    check_excluded(lowering, facts, list)
    if facts.unique is not None and (most is None or most > 1):
        return _unique(lowering, facts)
    if facts.counts:
        return counted_items(lowering, facts)
    if not facts.arrays and least == 0 and most is None:
        return text.array
    prefix = max((len(first) for first, _ in facts.arrays), default=0)
    if most is not None:
        prefix = min(prefix, most)
    items: list[int] = []
    for index in range(prefix):
        node = lowering.lower(item_schemas(facts, index))
        if node == b.nothing:
            most = index
            break
        items.append(node)
    if most is None or most > len(items):
        rest = lowering.lower([rest for _, rest in facts.arrays])
        if rest == b.nothing:
            most = len(items)
    if most is not None and least > most:
        return b.nothing
    if most == 0:
        return text.empty_array
    least, most = clamp(least, most)
    parts = _items(lowering, items, rest if most is None or most > len(items) else None, least, most)
    full = b.seq(parts, text.close_array)
    return b.seq(text.open_array, full if least > 0 else b.alt(full, b.literal(b"]")))


def _items(lowering: Lowering, items: list[int], rest: int | None, least: int, most: int | None) -> int:
    """At least one item (and ``least``), at most ``most``; from the end to the start, each with what follows it."""
    b, comma = lowering.builder, lowering.text.comma
    count = len(items)
    after = b.empty
    if rest is not None:
        if count == 0:
            more = b.repeat(b.seq(comma, rest), max(least - 1, 0), None if most is None else most - 1)
            return b.seq(rest, more)
        after = b.repeat(b.seq(comma, rest), max(least - count, 0), None if most is None else most - count)
    for index in range(count - 1, 0, -1):
        following = b.seq(comma, items[index], after)
        after = following if index < least else b.optional(following)
        if index % CHAIN == 0:
            after = b.cut(after)
    lowering.height += 3 * min(count, CHAIN)
    return b.seq(items[0], after)


def _unique(lowering: Lowering, facts: Conjunction) -> int:
    """Unique items, if there are few values to choose from: a state for every set of values already written."""
    b, text = lowering.builder, lowering.text
    values: dict[Any, Any] | None = None
    if not facts.counts and len({len(first) for first, _ in facts.arrays} | {0}) == 1 and facts.arrays:
        item = lowering.analysis.gather([rest for _, rest in facts.arrays])
        if item.enum is not None:
            allowed = [holds_facts(lowering.analysis, item, constant) for constant in item.enum]
            if None not in allowed:
                kept = [constant for constant, holds in zip(item.enum, allowed, strict=True) if holds]
                values = {canonical(constant): constant for constant in kept}
    if values is None or len(values) > _MAX_UNIQUE:
        where = lowering.analysis.document.where(facts.unique, "uniqueItems")
        hint = f"unique items are enforced for items of an enum of at most {_MAX_UNIQUE} values"
        raise UnsupportedFeature("uniqueItems", where=where, hint=hint)
    nodes = [constant_node(lowering, constant) for constant in values.values()]
    least, most = facts.min_items, min(facts.max_items or len(nodes), len(nodes))
    if least > most:
        return b.nothing
    full = (1 << len(nodes)) - 1
    tails: dict[int, int] = {}
    for written in sorted(range(full + 1), key=lambda mask: -mask.bit_count()):
        size = written.bit_count()
        if size > most:
            continue
        parts = [text.close_array] if size >= least else []
        if size < most:
            for i, node in enumerate(nodes):
                if not written >> i & 1:
                    parts.append(b.seq(text.comma, node, tails[written | 1 << i]))
        tails[written] = b.alt(*parts)
    first = [b.seq(node, tails[1 << i]) for i, node in enumerate(nodes)] if most > 0 else []
    return b.seq(text.open_array, b.alt(*first, *([b.literal(b"]")] if least == 0 else [])))
