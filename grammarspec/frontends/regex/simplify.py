"""Settle anchors and lookarounds from what stands next to them, as far as that decides them.

Most assertions in real patterns are decided by their neighbours: ``^`` at the start, ``$`` at the end, ``\\b`` between
a letter and a space. What is settled here costs nothing later; only the rest becomes zero-width nodes.
"""

from __future__ import annotations

from grammarspec.frontends.regex.charsets import intersect, is_subset, union
from grammarspec.frontends.regex.facts import BORDER, Edge, FactTable, placed
from grammarspec.frontends.regex.tree import (
    ANY_PREFIX,
    ANY_SUFFIX,
    ANY_TEXT,
    EMPTY,
    NOTHING,
    Alternation,
    AnyText,
    Chars,
    End,
    Look,
    Node,
    Repeat,
    Rest,
    Sequence,
    Start,
    Text,
)

__all__ = ["at_border", "inside_repeat", "look_verdict", "pad_left", "pad_right", "simplify"]


def pad_right(node: Node, filler: AnyText = ANY_TEXT) -> Node:
    """The node, then any text: but where it ends in ``End``, that is the end and nothing follows."""
    match node:
        case End():
            return EMPTY
        case Sequence(parts) if parts:
            return Sequence((*parts[:-1], pad_right(parts[-1], filler)))
        case Alternation(branches) if any(_anchored(branch, -1) for branch in branches):
            return Alternation(tuple(pad_right(branch, filler) for branch in branches))
    return Sequence((node, filler))


def pad_left(node: Node, filler: AnyText = ANY_TEXT) -> Node:
    """Any text, then the node: but where it begins with ``Start``, that is the start and nothing precedes."""
    match node:
        case Start():
            return EMPTY
        case Sequence(parts) if parts:
            return Sequence((pad_left(parts[0], filler), *parts[1:]))
        case Alternation(branches) if any(_anchored(branch, 0) for branch in branches):
            return Alternation(tuple(pad_left(branch, filler) for branch in branches))
    return Sequence((filler, node))


def _anchored(node: Node, side: int) -> bool:
    match node:
        case Start():
            return side == 0
        case End():
            return side == -1
        case Sequence(parts) if parts:
            return _anchored(parts[side], side)
        case Alternation(branches):
            return any(_anchored(branch, side) for branch in branches)
    return False


def simplify(node: Node, before: Edge, after: Edge, table: FactTable) -> Node:
    """An equal node, for a place with these edges: no decided assertion is left, and each ``Look`` is a ``Rest``."""
    if not node.asserts:
        return node
    match node:
        case Start():
            return _settled(at_border(before), node)
        case End():
            return _settled(at_border(after), node)
        case Look():
            return _simplify_look(node, before, after, table)
        case Sequence(parts):
            return _simplify_sequence(parts, before, after, table)
        case Alternation(branches):
            kept = [simplify(branch, before, after, table) for branch in branches]
            return _alternation([branch for branch in kept if branch is not NOTHING], table)
        case Repeat(body, least, most):
            body = simplify(body, *inside_repeat(node, before, after, table), table)
            if body is EMPTY or (body is NOTHING and least == 0):
                return EMPTY
            return NOTHING if body is NOTHING else Repeat(body, least, most)
    raise AssertionError(f"{type(node).__name__} holds no assertion")


def at_border(edge: Edge) -> bool | None:
    """Is the position at the border of the text: yes, no, or not known."""
    if not edge.chars:
        return True
    return None if edge.border else False


def inside_repeat(repeat: Repeat, before: Edge, after: Edge, table: FactTable) -> tuple[Edge, Edge]:
    """The edges of a repetition's body: what is outside, or another round."""
    if repeat.most == 1:
        return before, after
    facts = table.of(repeat.body)
    return Edge(union(before.chars, facts.last), before.border), Edge(union(after.chars, facts.first), after.border)


def _settled(verdict: bool | None, node: Node) -> Node:
    return node if verdict is None else EMPTY if verdict else NOTHING


def _alternation(branches: list[Node], table: FactTable) -> Node:
    if not branches:
        return NOTHING
    if any(branch is EMPTY for branch in branches) and all(table.of(branch).zero_width for branch in branches):
        return EMPTY
    return branches[0] if len(branches) == 1 else Alternation(tuple(branches))


def _simplify_sequence(parts: tuple[Node, ...], before: Edge, after: Edge, table: FactTable) -> Node:
    simple: list[Node] = []
    for part, part_before, part_after in placed(parts, before, after, table):
        new = simplify(part, part_before, part_after, table)
        if new is NOTHING:
            return NOTHING
        if isinstance(new, Sequence):
            simple += new.parts
        else:
            simple.append(new)
    return simple[0] if len(simple) == 1 else Sequence(tuple(simple)) if simple else EMPTY


def _simplify_look(look: Look, before: Edge, after: Edge, table: FactTable) -> Node:
    verdict = look_verdict(look, after if look.ahead else before, table)
    if verdict is not None:
        return EMPTY if verdict else NOTHING
    if look.ahead:
        body = simplify(pad_right(look.body, ANY_SUFFIX), before, BORDER, table)
    else:
        body = simplify(pad_left(look.body, ANY_PREFIX), BORDER, after, table)
    if body is NOTHING:
        return EMPTY if look.negative else NOTHING
    return Rest(body, look.ahead, look.negative)


def look_verdict(look: Look, edge: Edge, table: FactTable) -> bool | None:
    """Whether the lookaround holds, if what is next to it decides that."""
    facts = table.of(look.body)
    if facts.nullable:
        return None if look.body.asserts else not look.negative
    if not intersect(facts.first if look.ahead else facts.last, edge.chars):
        return look.negative
    one = isinstance(look.body, Chars) or (isinstance(look.body, Text) and len(look.body.text) == 1)
    sure = one and not edge.border and is_subset(edge.chars, facts.first)
    return not look.negative if sure else None
