"""How far the lookarounds and anchors of a lexeme's pattern look: past its own text or not."""

from __future__ import annotations

from math import inf

from grammarspec.frontends.regex.facts import Edge, FactTable, placed
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

__all__ = ["looks_outside"]


def looks_outside(
    node: Node, before: Edge, after: Edge, table: FactTable, room_before: int = 0, room_after: int = 0
) -> str | None:
    """Name an assertion whose truth may depend on text outside the node's own, or ``None`` if there is none.

    The edges say what may stand around the node; ``room_before`` and ``room_after`` how many characters there at least
    belong to the text that may be looked at. A structural proof: it may name an assertion that would do no harm.
    """
    if not node.asserts:
        return None
    match node:
        case Start():
            return None if at_border(before) is not None else "an anchor at the start of the text (^ or \\A)"
        case End():
            return None if at_border(after) is not None else "an anchor at the end of the text ($ or \\Z)"
        case Look(body, ahead, _):
            if look_verdict(node, after if ahead else before, table) is not None:
                return None
            if _width(body, ahead, table) <= (room_after if ahead else room_before):
                return None
            return "a lookahead past the end" if ahead else "a lookbehind before the start"
        case Sequence(parts):
            shortest = [table.of(part).shortest for part in parts]
            for k, (part, *edges) in enumerate(placed(parts, before, after, table)):
                rooms = room_before + sum(shortest[:k]), room_after + sum(shortest[k + 1 :])
                found = looks_outside(part, edges[0], edges[1], table, *rooms)
                if found:
                    return found
            return None
        case Alternation(branches):
            found_in = (looks_outside(branch, before, after, table, room_before, room_after) for branch in branches)
            return next((found for found in found_in if found), None)
        case Repeat(body):
            edges_inside = inside_repeat(node, before, after, table)
            return looks_outside(body, *edges_inside, table, room_before, room_after)
    raise AssertionError(f"{type(node).__name__} holds no assertion")


def _width(node: Node, forward: bool, table: FactTable) -> float:
    """How many characters always suffice to tell whether the text from here on begins (ends) with this node."""
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
