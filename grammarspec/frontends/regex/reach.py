"""Whether the lookarounds and anchors of a lexeme's pattern look past the lexeme's own text.

A terminal of a ``.lark`` grammar is compiled as a language of its own, so that its assertions see its own text only. A
matcher would let them see the text around it. The two agree if no assertion's truth depends on that text, which
:func:`looks_outside` proves from the lengths and the first and last characters of the pattern's parts (:mod:`.facts`).
"""

from __future__ import annotations

from collections.abc import Iterator
from math import inf

from grammarspec.frontends.regex.facts import ANYWHERE, FactTable, Neighbour, with_neighbours
from grammarspec.frontends.regex.simplify import at_border, inside_repeat, look_verdict
from grammarspec.frontends.regex.tree import (
    Alternation,
    Chars,
    End,
    Look,
    Node,
    Repeat,
    Sequence,
    Start,
    Text,
)

__all__ = ["assertions_outside", "looks_outside"]


def looks_outside(
    node: Node, before: Neighbour, after: Neighbour, table: FactTable, room_before: float = 0, room_after: float = 0
) -> str | None:
    """An assertion whose truth may depend on text outside the lexeme, in words; ``None``: there is none.

    The arguments are those of :func:`assertions_outside`.
    """
    for found in assertions_outside(node, before, after, table, room_before, room_after):
        match found:
            case Start():
                return "an anchor at the start of the text (^ or \\A)"
            case End():
                return "an anchor at the end of the text ($ or \\Z)"
            case Look(_, ahead, _):
                return "a lookahead past the end" if ahead else "a lookbehind before the start"
    return None


def assertions_outside(
    node: Node, before: Neighbour, after: Neighbour, table: FactTable, room_before: float = 0, room_after: float = 0
) -> Iterator[Node]:
    """The assertions whose truth may depend on text outside the lexeme.

    The proof that others do not follows the pattern's structure, so it may name an assertion that would do no harm.

    Args:
        node: the lexeme's pattern, or a part of it.
        before: what may stand before the node.
        after: what may stand after it.
        room_before: a lower bound on the number of characters before the node that belong to the lexeme.
        room_after: the same after the node; ``inf``: assertions may look past the lexeme's end.
    """
    if not node.asserts:
        return
    match node:
        case Start():
            if at_border(before) is None:
                yield node
        case End():
            if at_border(after) is None and room_after < inf:
                yield node
        case Look(body, ahead, _):
            if look_verdict(node, after if ahead else before, table) is not None:
                return
            if _width(body, ahead, table) > (room_after if ahead else room_before):
                yield node
            elif ahead:  # what it holds looks back from where it stands
                yield from assertions_outside(body, before, ANYWHERE, table, room_before, inf)
        case Sequence(parts):
            shortest = [table.of(part).shortest for part in parts]
            for k, (part, part_before, part_after) in enumerate(with_neighbours(parts, before, after, table)):
                rooms = room_before + sum(shortest[:k]), room_after + sum(shortest[k + 1 :])
                yield from assertions_outside(part, part_before, part_after, table, *rooms)
        case Alternation(branches):
            for branch in branches:
                yield from assertions_outside(branch, before, after, table, room_before, room_after)
        case Repeat(body):
            neighbours = inside_repeat(node, before, after, table)
            yield from assertions_outside(body, *neighbours, table, room_before, room_after)
        case _:
            raise AssertionError(f"{type(node).__name__} holds no assertion")


def _width(node: Node, forward: bool, table: FactTable) -> float:
    """A number of characters that always suffices to tell whether a text begins (or ends) with a text of this node.

    Args:
        forward: the text's beginning is looked at, not its end.
    """
    facts = table.of(node)
    if node.asserts:
        return inf  # nested lookarounds: not analysed
    if facts.nullable:
        return 0
    match node:
        case Text(text):
            return len(text)
        case Chars():
            return 1
        case Alternation(branches):
            return max(_width(branch, forward, table) for branch in branches)
        case Repeat(body, least, _):
            earlier_rounds = (least - 1) * table.of(body).longest if least > 1 else 0
            return earlier_rounds + _width(body, forward, table)
        case Sequence(parts):
            ordered = parts if forward else parts[::-1]
            final = max(k for k, part in enumerate(ordered) if not table.of(part).nullable)
            return sum(table.of(part).longest for part in ordered[:final]) + _width(ordered[final], forward, table)
    raise AssertionError(f"{type(node).__name__} is nullable")
