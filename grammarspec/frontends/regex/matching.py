"""Matches patterns against constants in Python.

It serves for texts that the schema itself contains: which ``patternProperties`` apply to a declared name, and which
constants of an ``enum`` match a ``pattern``. The matcher computes, on the syntax tree, sets of positions at which a
match can end. It does not backtrack, so its cost is polynomial for any pattern.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache

from grammarspec.errors import GrammarError
from grammarspec.frontends.regex import tree
from grammarspec.frontends.regex.charsets import ALL
from grammarspec.grammars.budget import Budget
from grammarspec.imports import importing

__all__ = ["begin_apart", "exact_prefix", "few_candidates", "few_texts", "parsed", "pattern_found"]

_MAX_WORK = 200_000  # positions that are looked at, after which the answer is "unknown"
_STEPS = 5  # of a budget, for each


@lru_cache(maxsize=1024)
def parsed(pattern: str) -> tree.Node:
    """The syntax tree of an ECMA-262 pattern.

    Raises:
        GrammarError: the pattern is malformed, or uses a construct that is not supported.
    """
    with importing:
        from grammarspec.frontends.regex import parse

    return parse(pattern, dialect="ecma262")


def pattern_found(pattern: str, text: str, budget: Budget) -> bool | None:
    """Whether a pattern matches somewhere in a text; ``None`` if unknown: it is malformed or takes too much work.

    Raises:
        LimitExceeded: the budget is used up.
    """
    if not text.startswith(exact_prefix(pattern)):
        return False
    search = _Search(text)
    try:
        return search.found(parsed(pattern))
    except (GrammarError, RecursionError, _TooMuchWork):
        return None
    finally:
        budget.spend(_STEPS * search.work)


@lru_cache(maxsize=1024)
def exact_prefix(pattern: str) -> str:
    """A literal text with which every string that matches the pattern begins; empty if the syntax shows none."""
    try:
        node = parsed(pattern)
    except GrammarError:
        return ""
    parts = node.parts if isinstance(node, tree.Sequence) else (node,)
    if not parts or not isinstance(parts[0], tree.Start):
        return ""
    prefix = []
    for part in parts[1:]:
        if isinstance(part, tree.Text):
            prefix.append(part.text)
        elif isinstance(part, tree.Chars) and len(part.ranges) == 1 and part.ranges[0][0] == part.ranges[0][1]:
            prefix.append(chr(part.ranges[0][0]))
        else:
            break
    return "".join(prefix)


def begin_apart(one: str, other: str) -> bool:
    """Whether the literal prefixes of two patterns prove that no text matches both."""
    a, b = exact_prefix(one), exact_prefix(other)
    return not (a.startswith(b) or b.startswith(a))


_FEW = 32
_MAX_LISTED = 5_000  # steps, after which texts are not known to be few


@lru_cache(maxsize=1024)
def few_texts(pattern: str) -> tuple[str, ...] | None:
    """All texts that match the pattern, if it is anchored at both ends and its syntax shows that there are few.

    ``None`` otherwise.
    """
    parts = _anchored(pattern)
    if parts is None or not (isinstance(parts[0], tree.Start) and isinstance(parts[-1], tree.End)):
        return None
    return _listed(_Few(_FEW, exact=True), tree.Sequence(parts[1:-1]), None)


def few_candidates(pattern: str, longest: int | None, few: int) -> tuple[str, ...] | None:
    """At most so many texts, among them all in which the pattern is found; ``None`` if a simple test finds too many.

    Args:
        longest: the most characters of these texts.
    """
    parts = _anchored(pattern)
    if parts is None:
        return None
    before = () if isinstance(parts[0], tree.Start) else (_ANYTHING,)
    after = () if isinstance(parts[-1], tree.End) else (_ANYTHING,)
    return _listed(_Few(few, exact=False), tree.Sequence((*before, *parts, *after)), longest)


def _listed(few: _Few, node: tree.Node, longest: int | None) -> tuple[str, ...] | None:
    """The texts of a node; ``None`` also if it is nested too deeply."""
    try:
        return few.texts(node, longest)
    except RecursionError:
        return None


_ANYTHING = tree.Repeat(tree.Chars(ALL), 0, None)


def _anchored(pattern: str) -> tuple[tree.Node, ...] | None:
    """The parts of a pattern that is anchored at one end or both; ``None`` for any other."""
    try:
        node = parsed(pattern)
    except GrammarError:
        return None
    parts = node.parts if isinstance(node, tree.Sequence) else ()
    return parts if len(parts) > 1 and (isinstance(parts[0], tree.Start) or isinstance(parts[-1], tree.End)) else None


class _Few:
    """Lists the texts of nodes of the syntax tree.

    Attributes:
        few: the most texts that are listed.
        exact: whether only texts that match are listed; otherwise assertions are taken to hold.
    """

    def __init__(self, few: int, *, exact: bool) -> None:
        self.few, self.exact, self.work = few, exact, 0

    def texts(self, node: tree.Node, room: int | None) -> tuple[str, ...] | None:
        """The texts of a node of at most ``room`` characters; ``None`` if they may be too many."""
        self.work += 1
        if self.work > _MAX_LISTED:
            return None
        match node:
            case tree.Text(text):
                return (text,) if room is None or len(text) <= room else ()
            case tree.Chars(ranges):
                if room is not None and room <= 0:
                    return ()
                codes = [code for low, high in ranges for code in range(low, min(high, low + self.few) + 1)]
                return tuple(map(chr, codes)) if len(codes) <= self.few else None
            case tree.Sequence(parts):
                return self.sequence(parts, room)
            case tree.Alternation(branches):
                ways = [self.texts(branch, room) for branch in branches]
                return self.kept(None if way is None else way for way in ways)
            case tree.Repeat(body, least, most):
                if most is None:
                    most = room
                if most is None or most > self.few:
                    return None
                counts = range(least, most + 1)
                return self.kept(self.sequence((body,) * count, room) for count in counts)
            case tree.Look() | tree.Start() | tree.End():
                return None if self.exact else ("",)
        return None

    def sequence(self, parts: Sequence[tree.Node], room: int | None) -> tuple[str, ...] | None:
        """The texts of nodes in a sequence."""
        found: tuple[str, ...] = ("",)
        needed = sum(map(_least, parts))
        for part in parts:
            needed -= _least(part)
            longer = self.kept([self.longer(before, part, room, needed) for before in found])
            if longer is None:
                return None
            found = longer
        return found

    def longer(self, before: str, part: tree.Node, room: int | None, needed: int) -> list[str] | None:
        """A text, followed by those of a node, where so many characters are needed after these."""
        after = self.texts(part, None if room is None else room - len(before) - needed)
        return None if after is None else [before + text for text in after]

    def kept(self, ways: Iterable[Iterable[str] | None]) -> tuple[str, ...] | None:
        """All these texts, each once; ``None`` if some are unknown, or they are too many."""
        found = dict[str, None]()
        for way in ways:
            if way is None:
                return None
            found |= dict.fromkeys(way)
            if len(found) > self.few:
                return None
        return tuple(found)


def _least(node: tree.Node) -> int:
    """A length that no text of a node is shorter than."""
    match node:
        case tree.Text(text):
            return len(text)
        case tree.Chars():
            return 1
        case tree.Sequence(parts):
            return sum(map(_least, parts))
        case tree.Alternation(branches):
            return min(map(_least, branches), default=0)
        case tree.Repeat(body, least, _):
            return least * _least(body)
    return 0


class _TooMuchWork(Exception):
    """The budget of steps is used up."""


class _Search:
    """Searches one text for a pattern, with a memo of the ends of each node's matches."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.codes = [ord(char) for char in text]
        self.memo: dict[tuple[int, int], frozenset[int]] = {}
        self.work = 0

    def found(self, node: tree.Node) -> bool:
        anchored = isinstance(node, tree.Sequence) and node.parts and isinstance(node.parts[0], tree.Start)
        return any(self.ends(node, start) for start in range(1 if anchored else len(self.codes) + 1))

    def ends(self, node: tree.Node, start: int) -> frozenset[int]:
        """The positions at which a match of the node that begins at ``start`` can end."""
        key = (id(node), start)
        known = self.memo.get(key)
        if known is None:
            known = self.memo[key] = self._ends(node, start)
            self.work += 1 + len(known)
            if self.work > _MAX_WORK:
                raise _TooMuchWork
        return known

    def _ends(self, node: tree.Node, start: int) -> frozenset[int]:
        match node:
            case tree.Text(text):
                return frozenset((start + len(text),)) if self.text.startswith(text, start) else frozenset()
            case tree.Chars(ranges):
                here = start < len(self.codes) and any(low <= self.codes[start] <= high for low, high in ranges)
                return frozenset((start + 1,)) if here else frozenset()
            case tree.Sequence(parts):
                reached = frozenset((start,))
                for part in parts:
                    reached = self._step(part, reached)
                return reached
            case tree.Alternation(branches):
                return frozenset().union(*(self.ends(branch, start) for branch in branches))
            case tree.Repeat(body, least, most):
                return self._repeat(body, least, most, start)
            case tree.Look(body, ahead, negative):
                if ahead:
                    seen = bool(self.ends(body, start))
                else:
                    seen = any(start in self.ends(body, before) for before in range(start + 1))
                return frozenset((start,)) if seen != negative else frozenset()
            case tree.Start():
                return frozenset((start,)) if start == 0 else frozenset()
            case tree.End():
                return frozenset((start,)) if start == len(self.codes) else frozenset()
            case tree.AnyText():
                return frozenset(range(start, len(self.codes) + 1))
        raise AssertionError(f"unknown node {type(node).__name__}")

    def _step(self, node: tree.Node, starts: frozenset[int]) -> frozenset[int]:
        reached: set[int] = set()
        for start in starts:
            ends = self.ends(node, start)
            self.work += 1 + len(ends)
            reached |= ends
        return frozenset(reached)

    def _repeat(self, body: tree.Node, least: int, most: int | None, start: int) -> frozenset[int]:
        # With more rounds than characters left, one round matches the empty text and may be repeated at will.
        enough = len(self.codes) - start + 1
        reached = frozenset((start,))
        for _ in range(min(least, enough)):
            reached = self._step(body, reached)
        found, fresh = reached, reached
        for _ in range(enough if most is None else min(most, enough) - min(least, enough)):
            fresh = self._step(body, fresh) - found  # positions reached in fewer rounds need not be extended again
            if not fresh:
                break
            found |= fresh
        return found
