"""Decide anchors and lookarounds by what may stand next to them, as far as that decides them.

A syntax tree and the neighbours of its position go in; an equal tree comes out, in which no assertion is left that its
neighbours decide: ``^`` at the start, ``$`` at the end, ``\\b`` between a letter and a space. Those are most of the
assertions in real patterns, and they cost nothing later. The others become :class:`Rest` nodes: a lookaround is a
condition on the whole rest of the text.
"""

from __future__ import annotations

from grammarspec.frontends.regex.charsets import intersect, is_subset, union
from grammarspec.frontends.regex.facts import BORDER, FactTable, Neighbour, with_neighbours
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

__all__ = ["at_border", "decided", "inside_repeat", "look_verdict", "pad_left", "pad_right", "simplify"]


def pad_right(node: Node, filler: AnyText = ANY_TEXT) -> Node:
    """The node, then any text (``filler``); where the node ends in ``End``, nothing follows and ``End`` is dropped."""
    match node:
        case End():
            return EMPTY
        case Sequence(parts) if parts:
            return Sequence((*parts[:-1], pad_right(parts[-1], filler)))
        case Alternation(branches) if any(_anchored(branch, -1) for branch in branches):
            return Alternation(tuple(pad_right(branch, filler) for branch in branches))
    return Sequence((node, filler))


def pad_left(node: Node, filler: AnyText = ANY_TEXT) -> Node:
    """Any text (``filler``), then the node; where it begins with ``Start``, nothing precedes and that is dropped."""
    match node:
        case Start():
            return EMPTY
        case Sequence(parts) if parts:
            return Sequence((pad_left(parts[0], filler), *parts[1:]))
        case Alternation(branches) if any(_anchored(branch, 0) for branch in branches):
            return Alternation(tuple(pad_left(branch, filler) for branch in branches))
    return Sequence((filler, node))


def _anchored(node: Node, side: int) -> bool:
    """Whether an alternative of the node begins with ``Start`` (``side`` 0) or ends in ``End`` (``side`` -1)."""
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


def simplify(node: Node, before: Neighbour, after: Neighbour, table: FactTable) -> Node:
    """An equal node between these neighbours, without assertions that they decide; each ``Look`` becomes a ``Rest``."""
    if not node.asserts:
        return node
    match node:
        case Start():
            return decided(at_border(before), node)
        case End():
            return decided(at_border(after), node)
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


def at_border(neighbour: Neighbour) -> bool | None:
    """Whether the border of the whole text stands next to a position; ``None``: it may or may not."""
    if not neighbour.chars:
        return True
    return None if neighbour.border else False


def inside_repeat(repeat: Repeat, before: Neighbour, after: Neighbour, table: FactTable) -> tuple[Neighbour, Neighbour]:
    """The neighbours of a repetition's body: those of the repetition, and another round's texts."""
    if repeat.most == 1:
        return before, after
    facts = table.of(repeat.body)
    return (
        Neighbour(union(before.chars, facts.last), before.border),
        Neighbour(union(after.chars, facts.first), after.border),
    )


def decided(verdict: bool | None, node: Node) -> Node:
    """A zero-width node whose truth is known, or the node itself where it is not."""
    return node if verdict is None else EMPTY if verdict else NOTHING


def _alternation(branches: list[Node], table: FactTable) -> Node:
    """Any of the branches; beside a zero-width one that always holds, the other zero-width ones are dropped."""
    if not branches:
        return NOTHING
    if any(branch is EMPTY for branch in branches) and all(table.of(branch).zero_width for branch in branches):
        return EMPTY
    return branches[0] if len(branches) == 1 else Alternation(tuple(branches))


def _simplify_sequence(parts: tuple[Node, ...], before: Neighbour, after: Neighbour, table: FactTable) -> Node:
    """A sequence, each part of which has the others as its neighbours."""
    simple: list[Node] = []
    for part, part_before, part_after in with_neighbours(parts, before, after, table):
        new = simplify(part, part_before, part_after, table)
        if new is NOTHING:
            return NOTHING
        if isinstance(new, Sequence):
            simple += new.parts
        else:
            simple.append(new)
    return simple[0] if len(simple) == 1 else Sequence(tuple(simple)) if simple else EMPTY


def _simplify_look(look: Look, before: Neighbour, after: Neighbour, table: FactTable) -> Node:
    """A lookaround: decided, or as a condition on all the text on the side that it looks to."""
    verdict = look_verdict(look, after if look.ahead else before, table)
    if verdict is not None:
        return decided(verdict, look)
    if look.ahead:
        body = simplify(pad_right(look.body, ANY_SUFFIX), before, BORDER, table)
    else:
        body = simplify(pad_left(look.body, ANY_PREFIX), BORDER, after, table)
    if body is NOTHING:
        return EMPTY if look.negative else NOTHING
    return Rest(body, look.ahead, look.negative)


def _is_one_character(node: Node) -> bool:
    """Whether the texts are the single characters that they begin with."""
    match node:
        case Text(text):
            return len(text) == 1
        case Alternation(branches):
            return all(_is_one_character(branch) for branch in branches)
    return isinstance(node, Chars)


def look_verdict(look: Look, neighbour: Neighbour, table: FactTable) -> bool | None:
    """Whether a lookaround holds, if its neighbour on the side that it looks to decides that; else ``None``."""
    facts = table.of(look.body)
    if facts.nullable:
        return None if look.body.asserts else not look.negative
    if not intersect(facts.first if look.ahead else facts.last, neighbour.chars):
        return look.negative
    sure = _is_one_character(look.body) and not neighbour.border and is_subset(neighbour.chars, facts.first)
    return not look.negative if sure else None
