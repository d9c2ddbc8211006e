"""What can be known of a pattern's parts without running it: how its texts begin and end, and how short they are.

All answers are upper bounds on what is possible (``shortest`` a lower one): conclusions may be drawn only from what
they exclude.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import accumulate
from math import inf
from typing import Final

from grammarspec.frontends.regex.charsets import ALL, Ranges, single, union
from grammarspec.frontends.regex.tree import (
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

__all__ = ["ANYWHERE", "BORDER", "Edge", "FactTable", "Facts", "placed"]


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known of a node's texts.

    Attributes:
        first, last: all characters that they can begin and end with, and perhaps more.
        shortest, longest: none of them has fewer or more characters.
    """

    first: Ranges
    last: Ranges
    shortest: int
    longest: float

    @property
    def nullable(self) -> bool:
        """Whether the empty text may be among them."""
        return self.shortest == 0

    @property
    def zero_width(self) -> bool:
        """No text but the empty one."""
        return not self.shortest and not self.first


@dataclass(frozen=True, slots=True)
class Edge:
    """What can stand next to a position: any of ``chars``, or (``border``) the end of the whole text."""

    chars: Ranges
    border: bool

    def beyond(self, near: Ranges, passable: bool) -> Edge:
        """What is next to the far side of a node that ends in ``near`` and, if ``passable``, may be empty."""
        if not passable:
            return Edge(near, False)
        return Edge(union(self.chars, near), self.border) if near else self


BORDER: Final = Edge((), True)
ANYWHERE: Final = Edge(ALL, True)
_NO_TEXT: Final = Facts((), (), 0, 0)


@dataclass(slots=True)
class FactTable:
    """Facts by node, computed once each."""

    _known: dict[int, tuple[Node, Facts]] = field(default_factory=dict)  # holds the node, so that its id stays its own

    def of(self, node: Node) -> Facts:
        known = self._known.get(id(node))
        if known is None:
            for part in self._unknown(node):
                if id(part) not in self._known:
                    self._known[id(part)] = (part, self._compute(part))
            known = self._known[id(node)]
        return known[1]

    def _unknown(self, node: Node) -> list[Node]:
        """The node and all below it that is not known yet, parts before wholes. No recursion: nesting may be deep."""
        stack, found = [node], list[Node]()
        while stack:
            node = stack.pop()
            if id(node) in self._known:
                continue
            found.append(node)
            if isinstance(node, Sequence):
                stack += node.parts
            elif isinstance(node, Alternation):
                stack += node.branches
            elif isinstance(node, Repeat):
                stack.append(node.body)
        return found[::-1]

    def _compute(self, node: Node) -> Facts:
        match node:
            case Text(text):
                return Facts(single(ord(text[0])), single(ord(text[-1])), len(text), len(text))
            case Chars(ranges):
                return Facts(ranges, ranges, 1, 1)
            case AnyText():
                return Facts(ALL, ALL, 0, inf)
            case Start() | End() | Look() | Rest():
                return _NO_TEXT
            case Repeat(body, least, most):
                facts = self.of(body)
                longest = facts.longest and facts.longest * (inf if most is None else most)
                return Facts(facts.first, facts.last, least * facts.shortest, longest)
            case Alternation(branches):
                all_facts = [self.of(branch) for branch in branches]
                return Facts(
                    union(*(facts.first for facts in all_facts)),
                    union(*(facts.last for facts in all_facts)),
                    min((facts.shortest for facts in all_facts), default=0),
                    max((facts.longest for facts in all_facts), default=0),
                )
            case Sequence(parts):
                all_facts = [self.of(part) for part in parts]
                first, last = self._begin(all_facts, True), self._begin(all_facts[::-1], False)
                shortest = sum(facts.shortest for facts in all_facts)
                return Facts(first, last, shortest, sum(facts.longest for facts in all_facts))

    @staticmethod
    def _begin(parts: list[Facts], forward: bool) -> Ranges:
        found: list[Ranges] = []
        for facts in parts:
            found.append(facts.first if forward else facts.last)
            if not facts.nullable:
                break
        return union(*found)


def placed(parts: tuple[Node, ...], before: Edge, after: Edge, table: FactTable) -> Iterator[tuple[Node, Edge, Edge]]:
    """The parts of a sequence, each with what can stand before and after it."""
    facts = [table.of(part) for part in parts]
    edges_after = list(
        accumulate(reversed(facts[1:]), lambda edge, fact: edge.beyond(fact.first, fact.nullable), initial=after)
    )
    for part, fact, edge in zip(parts, facts, reversed(edges_after), strict=True):
        yield part, before, edge
        before = before.beyond(fact.last, fact.nullable)
