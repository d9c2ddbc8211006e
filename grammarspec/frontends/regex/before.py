"""What the assertions of lexemes see of the character before them.

A lookbehind, ``^`` or ``\\b`` at the beginning of a terminal looks at the text before its own. Where one character of
that is all that it sees, characters can be sorted into a few classes that the assertions tell apart
(:func:`classes_before`). Behind a character of one class, these assertions are decided (:func:`behind`).
"""

from __future__ import annotations

from collections.abc import Iterable
from math import inf
from typing import Final

from grammarspec.frontends.regex.charsets import ALL, Ranges, intersect, subtract, union
from grammarspec.frontends.regex.facts import ANYWHERE, BORDER, FactTable, Neighbour, with_neighbours
from grammarspec.frontends.regex.reach import assertions_outside
from grammarspec.frontends.regex.simplify import at_border, decided, inside_repeat, look_verdict
from grammarspec.frontends.regex.tree import EMPTY, NOTHING, Alternation, Look, Node, Repeat, Sequence, Start

__all__ = ["behind", "classes_before", "wider_classes"]

_MOST_CLASSES: Final = 16


def classes_before(trees: Iterable[Node], table: FactTable) -> tuple[Neighbour, ...]:
    """The classes of what may stand before lexemes, as far as their assertions tell it apart.

    Returns:
        disjoint classes that hold every character; the first also holds the beginning of the text. Only one that holds
        everything, if no assertion looks there, or if there would be too many classes.
    """
    classes, at_start, seen_at_all = [ALL], False, list[Ranges]()
    for tree in trees:
        for assertion in assertions_outside(tree, ANYWHERE, ANYWHERE, table, room_after=inf):
            if isinstance(assertion, Start):
                at_start = True
            elif isinstance(assertion, Look) and not assertion.ahead:
                seen = table.of(assertion.body).last
                seen_at_all.append(seen)
                parts = [part for chars in classes for part in (subtract(chars, seen), intersect(chars, seen))]
                classes = [part for part in parts if part]
        if len(classes) > _MOST_CLASSES:
            return (ANYWHERE,)
    if len(classes) == 1 and not at_start:
        return (ANYWHERE,)
    characters = [Neighbour(chars, False) for chars in classes]
    if at_start or intersect(classes[0], union(*seen_at_all)):
        return (BORDER, *characters)
    return (Neighbour(classes[0], True), *characters[1:])  # where no assertion holds, like at the beginning


def wider_classes(tree: Node, classes: tuple[Neighbour, ...], table: FactTable) -> list[Neighbour]:
    """For each class of several trees, the widest one that holds it and that this tree does not tell apart."""
    own = classes_before([tree], table)
    if len(own) == 1:
        return [ANYWHERE] * len(classes)
    return [
        own[0] if one.border else next(wider for wider in own if intersect(wider.chars, one.chars)) for one in classes
    ]


def behind(node: Node, before: Neighbour, table: FactTable) -> Node:
    """The node between what may stand before it and anything: without assertions that the former decides.

    Where there are none, the very same node is returned.
    """
    if not node.asserts:
        return node
    match node:
        case Start():
            return decided(at_border(before), node)
        case Look(body, False, _):
            return decided(look_verdict(node, before, table), node)
        case Look(body, True, negative):
            inner = behind(body, before, table)
            return node if inner is body else Look(inner, True, negative)
        case Sequence(parts):
            placed = with_neighbours(parts, before, ANYWHERE, table)
            inners = tuple([behind(part, part_before, table) for part, part_before, _ in placed])
            if any(inner is NOTHING for inner in inners):
                return NOTHING
            return node if _same(inners, parts) else Sequence(inners)
        case Alternation(branches):
            inners = tuple([behind(branch, before, table) for branch in branches])
            if _same(inners, branches):
                return node
            left = tuple([inner for inner in inners if inner is not NOTHING])
            return Alternation(left) if left else NOTHING
        case Repeat() if _sees_its_beginning(node, before, table):
            return _first_round_apart(node, before, table)
        case Repeat(body, least, most, lazy):
            inner = behind(body, inside_repeat(node, before, ANYWHERE, table)[0], table)
            return node if inner is body else Repeat(inner, least, most, lazy)
    return node


def _sees_its_beginning(repeat: Repeat, before: Neighbour, table: FactTable) -> bool:
    """Whether what the first round of a repetition sees before it is not what the others see."""
    if repeat.most in (0, 1) or table.of(repeat.body).nullable:
        return False
    return any(True for _ in assertions_outside(repeat, before, ANYWHERE, table, room_after=inf))


def _first_round_apart(repeat: Repeat, before: Neighbour, table: FactTable) -> Node:
    """The repetition with its first round behind what may stand before it; the others stand behind that round."""
    first = behind(repeat.body, before, table)
    if first is repeat.body:
        return repeat
    others = Repeat(repeat.body, max(repeat.least - 1, 0), repeat.most and repeat.most - 1, repeat.lazy)
    rounds = NOTHING if first is NOTHING else Sequence((first, others))
    if repeat.least:
        return rounds
    if rounds is NOTHING:
        return EMPTY
    return Alternation((EMPTY, rounds) if repeat.lazy else (rounds, EMPTY))


def _same(inners: tuple[Node, ...], parts: tuple[Node, ...]) -> bool:
    """Whether these are the very same nodes."""
    return all(inner is part for inner, part in zip(inners, parts, strict=True))
