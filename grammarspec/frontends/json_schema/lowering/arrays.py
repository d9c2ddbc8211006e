"""Arrays: makes the node of the arrays of a shape. Arrays whose items are counted are made in ``item_counts.py``."""

from __future__ import annotations

from grammarspec.frontends.json_schema.lowering.context import Lowering
from grammarspec.frontends.json_schema.lowering.item_counts import counted_items
from grammarspec.frontends.json_schema.lowering.strings import clamp
from grammarspec.frontends.json_schema.normal_form.shapes import ANY, ArrayShape
from grammarspec.frontends.json_schema.spelling.builder import CHAIN
from grammarspec.grammars.builder import FEW, ITEMS, OPENS

__all__ = ["array_node"]


def array_node(lowering: Lowering, shape: ArrayShape) -> int:
    """The node of the arrays of a shape.

    If all items must differ, the array is a rule that is marked for it: it keeps a history of its items (see
    :meth:`.GrammarBuilder.rule`), which are compared with each other while they are written.

    Raises:
        LimitExceeded: a minimum is beyond what can be counted.
    """
    b = lowering.builder
    if shape.most is not None and shape.least > shape.most:
        return b.nothing
    if not shape.unique:
        return _array(lowering, shape)
    array = lowering.telling_apart(lambda: _array(lowering, shape, OPENS | ITEMS))
    if array == b.nothing:
        return array
    rule = b.rule("unique", OPENS | ITEMS | (0 if shape.endless else FEW))
    b.define(rule, array)
    return b.call(rule)


def _array(lowering: Lowering, shape: ArrayShape, kinds: int = 0) -> int:
    """The arrays of a shape whose items may repeat.

    Args:
        kinds: the kinds of the rule that the node becomes the body of (see :meth:`.GrammarBuilder.rule`); 0 if items
            may repeat. If it is not 0, each item is a rule of its own, so that the compiler can compare items.
    """
    b, text = lowering.builder, lowering.text
    least, most = shape.least, shape.most
    if shape.counted is not None:
        return counted_items(lowering, shape, kinds)
    if not (shape.first or shape.rest != ANY or least or most is not None or kinds or lowering.in_elements):
        return text.array
    items: list[int] = []
    for goal in shape.first:
        node = lowering.item(goal)
        if node == b.nothing:
            most = len(items)
            break
        items.append(lowering.part(node) if kinds else node)
    rest = b.nothing
    if most is None or most > len(items):
        rest = lowering.item(shape.rest)
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
    return b.seq(text.open_array, full if least > 0 else b.alt(full, text.no_items))


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
