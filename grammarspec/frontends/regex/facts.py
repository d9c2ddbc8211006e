"""What is known of a pattern's parts without running them: how their texts begin and end, and how long they are.

A node of the syntax tree goes in, and its :class:`Facts` come out: the sets *first* and *last* of characters, and
bounds of the length, from which *nullable* follows. They are those of Glushkov's construction (V. M. Glushkov, "The
abstract theory of automata", 1961), for sets of characters in place of positions. All of them are bounds on what is
possible: a character in ``first`` need not begin any text, but one that is not in it begins none. So conclusions may be
drawn only from what the facts exclude.

From the facts of the parts around a position, a :class:`Neighbour` is made: what may stand on one side of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
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

__all__ = ["ANYWHERE", "BORDER", "FactTable", "Facts", "Neighbour", "with_neighbours"]


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known of a node's texts.

    Attributes:
        first: a superset of the characters that they begin with.
        last: a superset of the characters that they end with.
        shortest: a lower bound on their length in characters.
        longest: an upper bound on it (``inf``: none is known).
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
class Neighbour:
    """What may stand directly before, or directly after, a position of a text.

    Attributes:
        chars: the characters that may.
        border: whether the border (the start or end) of the whole text may.
    """

    chars: Ranges
    border: bool

    def past(self, node_chars: Ranges, nullable: bool) -> Neighbour:
        """The neighbour of a position on one side of a node, where this is the neighbour on its other side.

        Args:
            node_chars: the characters that a text of the node may have next to the position.
            nullable: whether the node may be empty, so that this neighbour may stand next to the position, too.
        """
        if not nullable:
            return Neighbour(node_chars, False)
        return Neighbour(union(self.chars, node_chars), self.border) if node_chars else self


BORDER: Final = Neighbour((), True)
"""Always the border of the whole text."""
ANYWHERE: Final = Neighbour(ALL, True)
"""Nothing is known."""
_NO_TEXT: Final = Facts((), (), 0, 0)


@dataclass(slots=True)
class FactTable:
    """The facts of the nodes of a tree, computed once each."""

    _known: dict[int, tuple[Node, Facts]] = field(default_factory=dict)
    """By ``id`` of the node; the node is held beside them, so that no other gets its ``id``."""

    def of(self, node: Node) -> Facts:
        """The facts of a node."""
        known = self._known.get(id(node))
        if known is None:
            for part in self._unknown(node):
                if id(part) not in self._known:
                    self._known[id(part)] = (part, self._compute(part))
            known = self._known[id(node)]
        return known[1]

    def _unknown(self, node: Node) -> list[Node]:
        """The node and those below it that are not known yet, parts before wholes (no recursion: trees are deep)."""
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
        """The facts of a node whose parts' facts are known."""
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
                return Facts(
                    _until_not_nullable((facts.first, facts.nullable) for facts in all_facts),
                    _until_not_nullable((facts.last, facts.nullable) for facts in reversed(all_facts)),
                    sum(facts.shortest for facts in all_facts),
                    sum(facts.longest for facts in all_facts),
                )


def _until_not_nullable(parts: Iterable[tuple[Ranges, bool]]) -> Ranges:
    """The union of the sets of a sequence's parts, up to the first part that cannot be empty."""
    found: list[Ranges] = []
    for chars, nullable in parts:
        found.append(chars)
        if not nullable:
            break
    return union(*found)


def with_neighbours(
    parts: tuple[Node, ...], before: Neighbour, after: Neighbour, table: FactTable
) -> Iterator[tuple[Node, Neighbour, Neighbour]]:
    """The parts of a sequence, each with its neighbours before and after it.

    Args:
        before: what may stand before the sequence.
        after: what may stand after it.
    """
    facts = [table.of(part) for part in parts]
    afters = [after]
    for fact in reversed(facts[1:]):
        afters.append(afters[-1].past(fact.first, fact.nullable))
    for part, fact, part_after in zip(parts, facts, reversed(afters), strict=True):
        yield part, before, part_after
        before = before.past(fact.last, fact.nullable)
