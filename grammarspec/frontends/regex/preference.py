"""Of the texts of a pattern, those that a backtracking matcher takes: leftmost-first (Perl's) preference as a language.

A lexer built on ``re.match`` takes the match that backtracking finds first: the lazy ``".*?"`` never runs over a quote,
``a|ab`` never takes ``ab``. The texts that it can take are those that ``re.match``, given the text alone, takes whole.
They are a regular language again: wherever the pattern has a choice, a way of lower rank is open only where no way of
higher rank leads to a match. That is a negative lookahead, of the way of higher rank with all that follows in the
pattern: a *guard*. A syntax tree goes in, and the same tree with guards comes out. Most guards are decided by the next
character and are not made.

On the semantics: R. Cox, "Regular Expression Matching: the Virtual Machine Approach", 2009 (threads by priority);
A. Frisch and L. Cardelli, "Greedy Regular Expression Matching", 2004.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice, takewhile
from operator import is_, methodcaller
from typing import Final

from grammarspec.errors import UnsupportedFeature
from grammarspec.frontends.regex.charsets import Ranges, intersect, single
from grammarspec.frontends.regex.facts import ANYWHERE, BORDER, FactTable, Neighbour
from grammarspec.frontends.regex.tree import EMPTY, NOTHING, Alternation, Chars, Look, Node, Repeat, Sequence, Text

__all__ = ["guarded", "head_of", "may_both_match", "preferred", "text_rivals"]

_MAX_UNROLLED: Final = 64
"""The greatest count of a repetition that is written out as nested options."""
_MAX_WORK: Final = 20_000
"""Parts of guards, and rounds written out, in one pattern."""
_MAX_HEAD: Final = 40
"""Characters at the beginning of two branches that are compared, to see that both cannot match."""


@dataclass(frozen=True, slots=True, eq=False)
class _Follow:
    """All that follows a position in the pattern, as a linked list.

    Attributes:
        node: what follows directly.
        more: what follows that; ``None``: this is the end of the pattern, and ``node`` is empty.
        next: the character or border that may stand after the position, in the pattern or after its end.
        nullable: whether all that follows in the pattern may be empty.
        asserts: whether it holds assertions.
    """

    node: Node
    more: _Follow | None
    next: Neighbour
    nullable: bool = True
    asserts: bool = False

    def parts(self) -> tuple[Node, ...]:
        """The nodes that follow, up to the end of the pattern."""
        parts, follow = list[Node](), self
        while follow.more is not None:
            parts.append(follow.node)
            follow = follow.more
        return tuple(parts)


def preferred(node: Node, table: FactTable, after: Neighbour = BORDER) -> Node:
    """The pattern with guards, so that of its texts those are left that ``re.match`` takes whole.

    Args:
        node: the pattern.
        table: where facts of its parts are kept.
        after: what may follow a match: nothing but the end of the text, or text that goes on after a lexeme. In the
            latter case the guards look into that text, and the language is what ``re.match`` takes before it.

    Raises:
        UnsupportedFeature: guards for this pattern would be inexact or too many.
    """
    return _Preference(table).node(node, _Follow(EMPTY, None, after))


def guarded(higher: list[Node], lower: Node, table: FactTable) -> Node:
    """The guard of a pattern that is tried after others: that none of them matches, whatever follows.

    ``EMPTY``: it needs none, as the next character decides. ``NOTHING``: it is never taken.

    Raises:
        UnsupportedFeature: the guard would be too large.
    """
    if not higher:
        return EMPTY
    preference, end = _Preference(table), _Follow(EMPTY, None, ANYWHERE)
    rival = higher[0] if len(higher) == 1 else Alternation(tuple(higher))
    return preference.unless(preference.before(rival, end), preference.before(lower, end))


def head_of(node: Node, table: FactTable) -> tuple[Ranges, ...]:
    """The sets of the first characters of a pattern's texts, as far as it is a sequence; of others, of the first."""
    return tuple(islice(_head(node, table), _MAX_HEAD)) or (table.of(node).first,)


def may_both_match(a: tuple[Ranges, ...], b: tuple[Ranges, ...]) -> bool:
    """Whether two patterns may match at one place, as far as their first characters tell.

    Args:
        a, b: their :func:`head_of`.
    """
    return all(map(_meet, a, b))


@lru_cache(maxsize=1 << 14)  # thousands of patterns are compared with each other
def _meet(a: Ranges, b: Ranges) -> bool:
    return bool(intersect(a, b))


class _Preference:
    """One pattern's guards. Each method takes a node and what follows it, and returns the node with its guards.

    Where a node needs no guard, the very same node is returned.
    """

    def __init__(self, table: FactTable) -> None:
        self.table = table
        self.work = 0

    def node(self, node: Node, follow: _Follow) -> Node:
        """A node of any kind."""
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
        """What follows the position before a node, given what follows the node."""
        facts = self.table.of(node)
        following = follow.next.past(facts.first, facts.nullable)
        return _Follow(node, follow, following, facts.nullable and follow.nullable, node.asserts or follow.asserts)

    def unless(self, higher: _Follow, lower: _Follow) -> Node:
        """The guard of the way of lower rank: that the way of higher rank does not match.

        ``EMPTY``: it needs none, as the next character decides. ``NOTHING``: it is never taken.
        """
        if higher.nullable and not higher.asserts:
            return NOTHING
        if not higher.nullable and not intersect(higher.next.chars, lower.next.chars):
            return EMPTY
        parts = higher.parts()
        self.spend(len(parts))
        return Look(Sequence(parts), ahead=True, negative=True)

    def sequence(self, node: Node, parts: tuple[Node, ...], follow: _Follow) -> Node:
        """A sequence: each part is followed by the parts behind it."""
        guarded: list[Node] = []
        for part in reversed(parts):
            guarded.append(self.node(part, follow))
            follow = self.before(part, follow)
        guarded.reverse()
        return node if all(map(is_, guarded, parts)) else Sequence(tuple(guarded))

    def option(self, node: Repeat, follow: _Follow) -> Node:
        """``x?``, which prefers to take ``x``, or ``x??``, which prefers to leave it out."""
        inside = self.before(node.body, follow)
        body = self.node(node.body, follow)
        guard = self.unless(follow, inside) if node.lazy else self.unless(inside, follow)
        if guard is EMPTY:
            return node if body is node.body else Repeat(body, 0, 1)
        taken, left = (Sequence((guard, body)), EMPTY) if node.lazy else (body, guard)
        return Alternation((taken, left))

    def alternation(self, node: Node, branches: tuple[Node, ...], follow: _Follow) -> Node:
        """Alternatives: a branch is taken where none of its rivals matches."""
        rivals = self.rivals(branches, follow)
        guarded: list[Node] = []
        for branch, higher in zip(branches, rivals, strict=True):
            new = self.node(branch, follow)
            if higher:
                guard = self.unless(self.before(Alternation(tuple(higher)), follow), self.before(branch, follow))
                new = new if guard is EMPTY else NOTHING if guard is NOTHING else Sequence((guard, new))
            guarded.append(new)
        return node if all(map(is_, guarded, branches)) else Alternation(tuple(guarded))

    def rivals(self, branches: tuple[Node, ...], follow: _Follow) -> list[list[Node]]:
        """For each branch, those of the branches before it (of higher rank) that may match where it does."""
        closed = follow.more is None and follow.next == BORDER
        texts = [branch.text for branch in branches if isinstance(branch, Text)]
        if len(texts) == len(branches):
            return [[branches[j] for j in earlier] for earlier in text_rivals(texts, closed)]
        self.spend(len(branches) ** 2 // 100)
        heads = [tuple(islice(_head(branch, self.table), _MAX_HEAD)) for branch in branches]
        facts = [self.table.of(branch) for branch in branches]

        def rival(j: int, i: int) -> bool:  # whether branch j may match where branch i does
            if closed and facts[j].shortest > facts[i].longest:
                return False  # too long to match in a text of the other
            return may_both_match(heads[j], heads[i])

        return [[branches[j] for j in range(i) if rival(j, i)] for i in range(len(branches))]

    def spend(self, work: int) -> None:
        """Count work, and refuse a pattern that takes too much."""
        self.work += work
        if self.work > _MAX_WORK:
            raise UnsupportedFeature("a regular expression with this many choices that depend on each other")

    def repetition(self, node: Repeat, follow: _Follow) -> Node:
        """A loop: in each round, another round and the end of the loop are the two ways."""
        body, least, most = node.body, node.least, node.most
        if self.table.of(body).zero_width:  # holds as often as once, or need not hold
            return self.node(body, follow) if least else EMPTY
        if self.table.of(body).nullable:
            if node.lazy and least:  # the rounds up to the lower bound may be empty, further ones never are
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
        """The same repetition as nested options, whose guards may differ from round to round."""
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


def _head(node: Node, table: FactTable) -> Iterator[Ranges]:
    """The sets of the first, second, ... character of a node's texts, as far as the node is a plain sequence."""
    match node:
        case Text(text):
            yield from (single(ord(char)) for char in text)
        case Chars(ranges):
            yield ranges
        case Sequence(parts):
            for part in parts:
                if isinstance(part, Text | Chars):
                    yield from _head(part, table)
                elif table.of(part).longest:  # others are assertions
                    break


def text_rivals(texts: list[str], closed: bool) -> list[list[int]]:
    """For each text, the indices of those before it that are a prefix of it or (unless ``closed``) begin with it.

    Args:
        closed: nothing follows the texts, so that a longer text never matches where a shorter one does.
    """
    first_index: dict[str, int] = {}
    for index, text in enumerate(texts):
        first_index.setdefault(text, index)
    ordered = sorted(first_index)
    rivals: list[list[int]] = []
    for index, text in enumerate(texts):
        earlier = {first_index[text[:size]] for size in range(1, len(text) + 1) if text[:size] in first_index}
        if not closed:
            following = (ordered[k] for k in range(bisect_left(ordered, text), len(ordered)))
            earlier.update(first_index[longer] for longer in takewhile(methodcaller("startswith", text), following))
        rivals.append(sorted(other for other in earlier if other < index))
    return rivals


def _without_empty(node: Node, table: FactTable) -> Node:
    """The node's texts but the empty one, in the same order of preference: a round of a loop is never empty.

    Raises:
        UnsupportedFeature: they cannot be told from the node's structure.
    """
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
