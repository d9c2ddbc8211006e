"""The texts that a pattern takes when it is *run*, not merely those that belong to it.

A lexer built on ``re.match`` takes the match that backtracking finds first: the lazy ``".*?"`` never runs over a quote,
``a|ab`` never takes ``ab``. The texts that can be taken are those that ``re.match`` on the text itself takes whole, and
they are a regular language again: wherever the pattern has a choice, a lower-ranked way is open only if no
higher-ranked one would lead to a match. That is a negative lookahead, of the higher-ranked way with all that
follows in the pattern. Most are decided by the next character and never come to be.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice, takewhile
from operator import methodcaller
from typing import Final

from grammarspec.errors import UnsupportedFeature
from grammarspec.frontends.regex.charsets import Ranges, intersect, single
from grammarspec.frontends.regex.facts import BORDER, Edge, FactTable
from grammarspec.frontends.regex.tree import EMPTY, NOTHING, Alternation, Chars, Look, Node, Repeat, Sequence, Text

__all__ = ["preferred"]

_MAX_UNROLLED: Final = 64
_MAX_WORK: Final = 20_000
_MAX_HEAD: Final = 40


@dataclass(frozen=True, slots=True, eq=False)
class _Follow:
    """What follows a place in the pattern: a node, then more (or, at the end of the pattern, nothing).

    Attributes:
        edge: what its texts, and what comes after the pattern, can begin with.
        nullable, asserts: as for a node, of all that follows.
    """

    node: Node
    more: _Follow | None
    edge: Edge
    nullable: bool = True
    asserts: bool = False

    def parts(self) -> tuple[Node, ...]:
        parts, follow = list[Node](), self
        while follow.more is not None:
            parts.append(follow.node)
            follow = follow.more
        return tuple(parts)


def preferred(node: Node, table: FactTable, after: Edge = BORDER) -> Node:
    """The node with guards, so that of its texts those are left that ``re.match`` takes whole.

    ``after`` is what can follow the text: nothing but its border, or the text that goes on after a lexeme. In the
    latter case the guards look into that text, and the lexeme is what ``re.match`` takes there.

    Raises:
        UnsupportedFeature: guards for this pattern would be inexact or too many.
    """
    return _Preference(table).node(node, _Follow(EMPTY, None, after))


class _Preference:
    def __init__(self, table: FactTable) -> None:
        self.table = table
        self.work = 0

    def node(self, node: Node, follow: _Follow) -> Node:
        """The node with its guards, or the very same node where it needs none."""
        match node:
            case Sequence(parts):
                return self.sequence(node, parts, follow)
            case Alternation(branches):
                return self.alternation(node, branches, follow)
            case Repeat(_, 0, 1):
                return self.option(node, follow)
            case Repeat():
                return self.repetition(node, follow)
        return node

    def before(self, node: Node, follow: _Follow) -> _Follow:
        facts = self.table.of(node)
        edge = follow.edge.beyond(facts.first, facts.nullable)
        return _Follow(node, follow, edge, facts.nullable and follow.nullable, node.asserts or follow.asserts)

    def unless(self, higher: _Follow, lower: _Follow) -> Node:
        """The guard of the lower-ranked of two ways: ``EMPTY`` if it needs none, ``NOTHING`` if it is never taken."""
        if higher.nullable and not higher.asserts:
            return NOTHING
        if not higher.nullable and not intersect(higher.edge.chars, lower.edge.chars):
            return EMPTY
        parts = higher.parts()
        self.spend(len(parts))
        return Look(Sequence(parts), ahead=True, negative=True)

    def sequence(self, node: Node, parts: tuple[Node, ...], follow: _Follow) -> Node:
        guarded: list[Node] = []
        for part in reversed(parts):
            guarded.append(self.node(part, follow))
            follow = self.before(part, follow)
        guarded.reverse()
        return node if all(map(_same, guarded, parts)) else Sequence(tuple(guarded))

    def option(self, node: Repeat, follow: _Follow) -> Node:
        inside = self.before(node.body, follow)
        body = self.node(node.body, follow)
        guard = self.unless(follow, inside) if node.lazy else self.unless(inside, follow)
        if guard is EMPTY:
            return node if body is node.body else Repeat(body, 0, 1)
        taken, left = (Sequence((guard, body)), EMPTY) if node.lazy else (body, guard)
        return Alternation((taken, left))

    def alternation(self, node: Node, branches: tuple[Node, ...], follow: _Follow) -> Node:
        rivals = self.rivals(branches, follow)
        guarded: list[Node] = []
        for branch, higher in zip(branches, rivals, strict=True):
            new = self.node(branch, follow)
            if higher:
                guard = self.unless(self.before(Alternation(tuple(higher)), follow), self.before(branch, follow))
                new = new if guard is EMPTY else NOTHING if guard is NOTHING else Sequence((guard, new))
            guarded.append(new)
        return node if all(map(_same, guarded, branches)) else Alternation(tuple(guarded))

    def rivals(self, branches: tuple[Node, ...], follow: _Follow) -> list[list[Node]]:
        """For each branch the earlier ones that may match where it does."""
        closed = follow.more is None and follow.edge == BORDER
        texts = [branch.text for branch in branches if isinstance(branch, Text)]
        if len(texts) == len(branches):
            return [[branches[j] for j in earlier] for earlier in _text_rivals(texts, closed)]
        self.spend(len(branches) ** 2 // 100)
        heads = [list(islice(_head(branch), _MAX_HEAD)) for branch in branches]
        facts = [self.table.of(branch) for branch in branches]

        def rival(j: int, i: int) -> bool:
            if closed and facts[j].shortest > facts[i].longest:
                return False  # too long to match in a text of the other
            return all(intersect(a, b) for a, b in zip(heads[j], heads[i], strict=False))

        return [[branches[j] for j in range(i) if rival(j, i)] for i in range(len(branches))]

    def spend(self, work: int) -> None:
        self.work += work
        if self.work > _MAX_WORK:
            raise UnsupportedFeature("a regular expression with this many choices that depend on each other")

    def repetition(self, node: Repeat, follow: _Follow) -> Node:
        body, least, most = node.body, node.least, node.most
        if self.table.of(body).nullable:
            if node.lazy and least:  # rounds that must be made may be empty, further ones never are
                further = Repeat(body, 0, None if most is None else most - least, lazy=True)
                return self.node(Sequence((self.unrolled(body, least, least, True), further)), follow)
            body = _without_empty(body, self.table)
            least = 0
        rounds = self.before(Repeat(body, 0, None, node.lazy), follow)
        new = self.node(body, rounds)
        again = self.before(body, rounds)
        guard = EMPTY if least == most else self.unless(follow, again) if node.lazy else self.unless(again, follow)
        if new is body and guard is EMPTY:
            return node
        if most is not None and (new is not body or not node.lazy):
            return self.node(self.unrolled(body, least, most, node.lazy), follow)
        rest = None if most is None else most - least
        if node.lazy:
            return Sequence((Repeat(new, least, least), Repeat(Sequence((guard, new)), 0, rest)))
        return Sequence((Repeat(new, least, None), guard))

    def unrolled(self, body: Node, least: int, most: int, lazy: bool) -> Node:
        """The same repetition as nested options: what guards it needs differs from round to round."""
        if most > _MAX_UNROLLED:
            raise UnsupportedFeature(
                f"a repetition counted to {most} whose end depends on what follows",
                hint="make the end of the repetition recognisable by the next character, or its count smaller",
            )
        self.spend(most)
        options: Node = EMPTY
        for _ in range(most - least):
            options = Repeat(Sequence((body, options)), 0, 1, lazy)
        return Sequence((*[body] * least, options))


def _head(node: Node) -> Iterator[Ranges]:
    """The sets of characters at the first places of the node's texts, as far as all texts are spelled alike."""
    match node:
        case Text(text):
            yield from (single(ord(char)) for char in text)
        case Chars(ranges):
            yield ranges
        case Sequence(parts):
            for part in parts:
                if not isinstance(part, Text | Chars):
                    break
                yield from _head(part)


def _same(a: Node, b: Node) -> bool:
    return a is b


def _text_rivals(texts: list[str], closed: bool) -> list[list[int]]:
    """For each text the places of the earlier ones that it begins with or (unless ``closed``) that begin with it."""
    places: dict[str, int] = {}
    for place, text in enumerate(texts):
        places.setdefault(text, place)
    ordered = sorted(places)
    rivals: list[list[int]] = []
    for place, text in enumerate(texts):
        earlier = {places[text[:size]] for size in range(1, len(text) + 1) if text[:size] in places}
        if not closed:
            following = (ordered[k] for k in range(bisect_left(ordered, text), len(ordered)))
            earlier.update(places[longer] for longer in takewhile(methodcaller("startswith", text), following))
        rivals.append(sorted(other for other in earlier if other < place))
    return rivals


def _without_empty(node: Node, table: FactTable) -> Node:
    """The node's texts but the empty one, in the same order of preference; a round of a loop is never empty."""
    if not table.of(node).nullable:
        return node
    match node:
        case Repeat(body, _, most, False):
            return Repeat(_without_empty(body, table), 1, most)
        case Alternation(branches) if not any(table.of(branch).nullable for branch in branches[:-1]):
            last = branches[-1]
            return Alternation(branches[:-1] if last is EMPTY else (*branches[:-1], _without_empty(last, table)))
        case Sequence((only,)):
            return _without_empty(only, table)
    raise UnsupportedFeature(
        "a repetition of something that can be empty, whose extent depends on the order of attempts",
        hint="make the repeated part match at least one character",
    )
