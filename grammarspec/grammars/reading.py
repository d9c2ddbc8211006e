"""Reading a text by a grammar: what it means, what its named parts are, where it leaves the language; and examples."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Generic, TypeVar

from grammarspec.errors import NoMatch, Unsatisfiable
from grammarspec.grammars import marks
from grammarspec.grammars.expressions import (
    Complement,
    Concatenation,
    Fields,
    Grammar,
    Intersection,
    Mapped,
    Named,
    Option,
    Repetition,
    Union,
)  # fmt: skip
from grammarspec.positions import Position, excerpt

__all__ = ["Match", "match", "match_marked", "sample"]

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


@dataclass(frozen=True, slots=True)
class Match(Generic[T_co]):
    """A text that a grammar has read.

    Attributes:
        text: the text.
        value: what it means.
        captures: by name, what the parts that :meth:`Grammar.named` names mean; of one within a repetition the list of
            all, of one in an alternative that was not taken nothing.
    """

    text: str
    value: T_co
    captures: dict[str, Any]


def match(grammar: Grammar[T], text: str) -> Match[T]:
    """Read a whole text, in which names of special tokens that the grammar uses stand for these.

    Raises:
        NoMatch: the text is not in the language.
    """
    surrogate = re.search("[\ud800-\udfff]", text)
    data = marks.with_marks(text[: surrogate.start() if surrogate else None], grammar._special)
    _check(grammar, data, text, surrogate is not None)
    return _match(grammar, data)


def match_marked(grammar: Grammar[T], data: bytes) -> Match[T]:
    """Read a whole text in which special tokens are marked; raises as :func:`match` does."""
    _check(grammar, data, marks.named(data).decode(), False)
    return _match(grammar, data)


def _match(grammar: Grammar[T], data: bytes) -> Match[T]:
    captures: dict[str, Any] = {}
    value = _Reader(data).value(grammar, 0, len(data), captures)
    return Match(marks.named(data).decode(), value, captures)


def _check(grammar: Grammar[Any], data: bytes, text: str, broken: bool) -> None:
    """See that the bytes are in the language. They are those of the text, up to its first surrogate if it is broken."""
    matcher = grammar._bytes.matcher()
    taken = matcher.accept_tokens(data)
    if marks.BEGIN in data[:taken].rpartition(marks.END)[2]:
        matcher.rollback(taken - data.rindex(marks.BEGIN, 0, taken))
        taken = data.rindex(marks.BEGIN, 0, taken)
    at = len(marks.named(data[:taken]).decode(errors="ignore"))
    following, may_end = matcher.next_bytes()
    if taken < len(data):
        expected = f"{_some(following)} may stand here" if following else "the text may only end here"
        raise _no_match(text, at, f"unexpected {text[at]!r}; {expected}")
    if broken:
        raise _no_match(text, at, "a lone surrogate is no text")
    if not may_end:
        raise _no_match(text, at, f"the text ends here, where {_some(following)} must follow")


def _no_match(text: str, at: int, message: str) -> NoMatch:
    position = Position.of(text, at, at + 1)
    place = f"line {position.line}, column {position.column}"
    return NoMatch(message, where=f"{place}\n{excerpt(text, position)}")


def _some(following: bytes) -> str:
    """Bytes that may come next, for people; those of longer characters are not told apart."""
    shown = [repr(chr(byte)) for byte in following if byte < 128]
    if any(128 <= byte < marks.BEGIN for byte in following):
        shown.append("a character beyond ASCII")
    if marks.BEGIN in following:
        shown.append("a special token")
    listed = shown if len(shown) <= 8 else [*shown[:6], "..."]
    return ", ".join(listed[:-1]) + f" or {listed[-1]}" if len(listed) > 1 else "".join(listed)


class _Reader:
    """Finds the parts of one text: where each may end, and what it means there."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self._ends: dict[tuple[int, int], list[int]] = {}

    def ends(self, grammar: Grammar[Any], start: int) -> list[int]:
        """Where a text of the grammar that begins at ``start`` may end, the longest first."""
        key = (id(grammar), start)
        found = self._ends.get(key)
        if found is None:
            found = self._ends[key] = list(reversed(self._found(grammar, start)))
        return found

    def _found(self, grammar: Grammar[Any], start: int) -> list[int]:
        try:
            matcher = grammar._bytes.matcher()
        except Unsatisfiable:
            return []
        found = [start] if matcher.is_accepting else []
        for at in range(start, len(self.data)):
            if not matcher.accept_token(self.data[at]):
                break
            if matcher.is_accepting:
                found.append(at + 1)
        return found

    def value(self, grammar: Grammar[Any], start: int, end: int, captures: dict[str, Any]) -> Any:
        """What the text from ``start`` to ``end``, which is in the language, means."""
        said = marks.named(self.data[start:end]).decode()
        match grammar:
            case Concatenation():
                cuts = self._cut([self._part(operand) for operand in grammar.operands], start, end)
                for operand, begin, stop in zip(grammar.operands, cuts, cuts[1:], strict=False):
                    self.value(operand, begin, stop, captures)
                return said
            case Union():
                taken = next(operand for operand in grammar.operands if end in self.ends(operand, start))
                return self.value(taken, start, end, captures)
            case Repetition():
                return self._items(grammar, start, end, captures)
            case Option():
                if end in self.ends(grammar.inner, start):
                    return self.value(grammar.inner, start, end, captures)
                return None
            case Named():
                captures[grammar.name] = self.value(grammar.inner, start, end, captures)
                return captures[grammar.name]
            case Fields():
                own: dict[str, Any] = {}
                self.value(grammar.inner, start, end, own)
                return own
            case Mapped():
                return grammar.function(self.value(grammar.inner, start, end, captures))
            case Intersection():
                return self.value(grammar.operands[0], start, end, captures)
            case Complement():
                return said
        return said if grammar._read is None else grammar._read(said)

    def _part(self, grammar: Grammar[Any]) -> Callable[[int], list[int]]:
        return lambda start: self.ends(grammar, start)

    def _cut(self, parts: list[Callable[[int], list[int]]], start: int, end: int) -> list[int]:
        """Where the parts of a sequence begin, and the end: each as long as what follows it allows."""
        reached = [{start}]
        for part in parts:
            reached.append({stop for begin in reached[-1] for stop in part(begin)})
        useful = [{end}]  # from the last part to the first
        for part, begins in zip(reversed(parts), reversed(reached[:-1]), strict=True):
            useful.append({begin for begin in begins if not useful[-1].isdisjoint(part(begin))})
        useful.reverse()
        cuts = [start]
        for part, stops in zip(parts, useful[1:], strict=True):
            cuts.append(next(stop for stop in part(cuts[-1]) if stop in stops))
        return cuts

    def _items(self, grammar: Repetition, start: int, end: int, captures: dict[str, Any]) -> list[Any]:
        """The values of a repetition's items; names in these and in separators are captured as lists."""
        item, separator = self._part(grammar.inner), self._part(grammar.separator)
        reached = [{start}]  # after so many items
        parts: list[Callable[[int], list[int]]] = []
        while len(reached) <= grammar.least or end not in reached[-1]:
            more = [item] if not parts else [separator, item]
            here = reached[-1]
            for part in more:
                here = {stop for begin in here for stop in part(begin)}
            parts += more
            reached.append(here)
        cuts = self._cut(parts, start, end)
        captures.update({name: [] for name in _names(grammar)})
        values = []
        for number, (begin, stop) in enumerate(pairwise(cuts)):
            own: dict[str, Any] = {}
            values.append(self.value(grammar.operands[number % 2], begin, stop, own))
            for name, value in own.items():
                captures[name].append(value)
        return values[::2]


def _names(grammar: Grammar[Any]) -> list[str]:
    """The names of a grammar's parts, the inner ones first."""
    if isinstance(grammar, Fields):
        return []
    names = [name for operand in grammar._operands() for name in _names(operand)]
    return [*names, grammar.name] if isinstance(grammar, Named) else names


# ---------------------------------------------------------------------- examples
_STOPS = 0.3  # how often a text ends where it may
_USUAL = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 ")


def sample(grammar: Grammar[Any], seed: int | None, max_bytes: int) -> str:
    """A random text of the language."""
    rng = random.Random(seed)
    constraint = grammar._bytes
    matcher = constraint.matcher()
    written = bytearray()
    while len(written) < max_bytes:
        following, may_end = matcher.next_bytes()
        if not following or (may_end and rng.random() < _STOPS):
            break
        usual = [byte for byte in following if byte in _USUAL]
        byte = rng.choice(usual if usual and rng.random() < 0.7 else following)
        matcher.accept_token(byte)
        written.append(byte)
    if not matcher.is_accepting:
        written += bytes(token for token in constraint.shortest_completion(matcher.state) if token < 256)
    return marks.named(bytes(written)).decode()
