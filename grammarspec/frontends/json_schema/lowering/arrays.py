"""Arrays: makes the node of the arrays that satisfy a conjunction.

Item counts (``contains``) are made in ``item_counts.py``, and ``uniqueItems`` in ``unique_items.py``.
"""

from __future__ import annotations

from grammarspec.frontends.json_schema.keywords.conjunction import Conjunction
from grammarspec.frontends.json_schema.lowering.context import Lowering
from grammarspec.frontends.json_schema.lowering.item_counts import counted_items
from grammarspec.frontends.json_schema.lowering.strings import clamp
from grammarspec.frontends.json_schema.lowering.unique_items import unique_items
from grammarspec.frontends.json_schema.meaning.evaluation import item_schemas
from grammarspec.frontends.json_schema.spelling.builder import CHAIN

__all__ = ["array_node", "plain_array"]


def array_node(lowering: Lowering, facts: Conjunction) -> int:
    """The node of the arrays that a conjunction allows."""
    least, most = facts.min_items, facts.max_items
    if most is not None and least > most:
        return lowering.builder.nothing
    if facts.unique is not None and (most is None or most > 1):
        return unique_items(lowering, facts, plain_array)
    return plain_array(lowering, facts)


def plain_array(lowering: Lowering, facts: Conjunction, kinds: int = 0) -> int:
    """The node of the arrays that a conjunction allows, ``uniqueItems`` apart.

    Args:
        kinds: the kinds of the rule that the node becomes the body of (see :meth:`.GrammarBuilder.rule`); 0 if items
            may repeat. If it is not 0, each item is a rule of its own, so that the compiler can compare items.

    Raises:
        LimitExceeded: a minimum is beyond what can be counted.
    """
    b, text = lowering.builder, lowering.text
    least, most = facts.min_items, facts.max_items
    if facts.counts:
        return counted_items(lowering, facts, kinds)
    if not facts.arrays and least == 0 and most is None and not kinds:
        return text.array
    prefix = max((len(facet.first) for facet in facts.arrays), default=0)
    if most is not None:
        prefix = min(prefix, most)
    items: list[int] = []
    for index in range(prefix):
        node = lowering.lower(item_schemas(facts, index))
        if node == b.nothing:
            most = index
            break
        items.append(lowering.part(node) if kinds else node)
    rest = b.nothing
    if most is None or most > len(items):
        rest = lowering.lower([facet.rest for facet in facts.arrays])
        if rest == b.nothing:
            most = len(items)
        elif kinds:
            rest = lowering.part(rest)
    if most is not None and least > most:
        return b.nothing
    if most == 0:
        return text.empty_array
    least, most = clamp(least, most)
    parts = _items(lowering, items, rest if most is None or most > len(items) else None, (least, most), kinds)
    full = b.seq(parts, text.close_array)
    return b.seq(text.open_array, full if least > 0 else b.alt(full, b.literal(b"]")))


def _items(lowering: Lowering, items: list[int], rest: int | None, bounds: tuple[int, int | None], kinds: int) -> int:
    """The items of a nonempty array with the commas between them, built from the last item to the first.

    Args:
        items: the nodes of the first items, one per position.
        rest: the node of each further item; ``None`` if there are none.
        bounds: the least and the greatest number of items.
        kinds: those of the rule around.
    """
    b, comma = lowering.builder, lowering.text.comma
    least, most = bounds
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
            after = b.cut(after, kinds)
    lowering.height += 3 * min(count, CHAIN)
    return b.seq(items[0], after)
