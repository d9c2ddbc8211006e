"""Reading a text by a grammar: whether it is in the language, what it means, and where it leaves the language.

What comes in is a text and the root of a grammar expression; what goes out is a :class:`Match`. The compiled automaton
recognises texts but does not parse them. So the reader asks it where a text of each part may end, and finds by dynamic
programming where the parts of a sequence begin. Each part makes its own value (:mod:`grammarspec.grammars.operators`).
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Generic, TypeVar

from grammarspec._compiler import Constraint
from grammarspec._compiler import Grammar as Ir
from grammarspec.errors import NoMatch, Unsatisfiable
from grammarspec.grammars import marks
from grammarspec.grammars.engine import over_bytes
from grammarspec.positions import where

__all__ = ["Departure", "Match", "Readable", "Reader", "completed", "departure", "match", "match_marked", "matches"]

T_co = TypeVar("T_co", covariant=True)


@dataclass(frozen=True, slots=True)
class Match(Generic[T_co]):
    """A text that a grammar has read.

    Attributes:
        text: the text.
        value: what it means.
        captures: the values of the parts that :meth:`Grammar.named` names, and of named groups of regular expressions,
            by name. A part within a repetition has a list of values; a part in an alternative that was not taken is
            missing.
    """

    text: str
    value: T_co
    captures: dict[str, Any]


class Readable(ABC):
    """A language and what its texts mean: the part of a grammar expression that reading needs."""

    @abstractmethod
    def build(self) -> Ir:
        """Make :attr:`ir`."""

    @cached_property
    def ir(self) -> Ir:
        """The language in the compiler's hash-consed form.

        Raises:
            UnsupportedFeature: an operator for regular languages has an operand that is not regular.
        """
        return self.build()

    @cached_property
    def byte_constraint(self) -> Constraint:
        """The language compiled for the vocabulary of the 256 single bytes.

        Raises:
            Unsatisfiable: the language is empty.
            GrammarError: as :attr:`ir`.
        """
        return over_bytes(self.ir)

    @cached_property
    def special_tokens(self) -> frozenset[str]:
        """The names of the special tokens that the language's texts can hold."""
        return frozenset(name for data in self.ir.literals_with(marks.BEGIN) for name in marks.marked_names(data))

    @abstractmethod
    def value(self, reader: Reader, start: int, end: int, captures: dict[str, Any]) -> Any:
        """What a part of a text means.

        Args:
            reader: reads the text.
            start, end: the part, as byte offsets. It is in the language.
            captures: the values of named parts, by their names; those of this part are added.
        """


class Reader:
    """Finds where the parts of one text may end.

    Args:
        data: the text in UTF-8, special tokens marked. Offsets are offsets of bytes in it.
    """

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._ends: dict[tuple[int, int], list[int]] = {}

    def text(self, start: int, end: int) -> str:
        """The text from ``start`` to ``end``, with the names of special tokens in place of marks."""
        return marks.named(self._data[start:end]).decode()

    def ends(self, part: Readable, start: int) -> list[int]:
        """Where a text of the part that begins at ``start`` may end, the longest first."""
        key = (id(part), start)
        found = self._ends.get(key)
        if found is None:
            found = self._ends[key] = list(reversed(self._recognised(part, start)))
        return found

    def _recognised(self, part: Readable, start: int) -> list[int]:
        try:
            matcher = part.byte_constraint.matcher()
        except Unsatisfiable:
            return []
        return [start + length for length in matcher.accepting_prefixes(self._data[start:])]

    def reached(self, part: Readable, starts: set[int]) -> set[int]:
        """Where texts of the part that begin at one of ``starts`` may end."""
        return {end for start in starts for end in self.ends(part, start)}

    def cuts(self, parts: Sequence[Readable], start: int, end: int) -> list[int]:
        """Where the parts of a sequence begin, and the end: each part is as long as what follows it allows.

        The sequence has the text from ``start`` to ``end``. Time is at worst quadratic in its length.
        """
        reached = [{start}]
        for part in parts:
            reached.append(self.reached(part, reached[-1]))
        useful = [{end}]  # from the last part to the first: where a part may begin so that all that follow fit
        for part, begins in zip(reversed(parts), reversed(reached[:-1]), strict=True):
            useful.append({begin for begin in begins if not useful[-1].isdisjoint(self.ends(part, begin))})
        useful.reverse()
        cuts = [start]
        for part, stops in zip(parts, useful[1:], strict=True):
            cuts.append(next(stop for stop in self.ends(part, cuts[-1]) if stop in stops))
        return cuts


def matches(grammar: Readable, text: str) -> bool:
    """Whether a text, in which names of special tokens stand for these, is in the language.

    Raises:
        GrammarError: the grammar cannot be compiled.
    """
    try:
        data = marks.with_marks(text, grammar.special_tokens)
        matcher = grammar.byte_constraint.matcher()
    except (UnicodeEncodeError, Unsatisfiable):  # a lone surrogate is in no text of any language
        return False
    return matcher.accept_tokens(data) == len(data) and matcher.is_accepting


def match(grammar: Readable, text: str) -> Match[Any]:
    """Read a whole text, in which names of special tokens that the grammar uses stand for these.

    Raises:
        NoMatch: the text is not in the language.
        GrammarError: the grammar cannot be compiled.
    """
    data, broken = _marked(grammar, text)
    _check(grammar, data, text, broken)
    return _read(grammar, data)


def match_marked(grammar: Readable, data: bytes) -> Match[Any]:
    """Read a whole text in which special tokens are marked (:mod:`grammarspec.grammars.marks`).

    Raises:
        NoMatch, GrammarError: as :func:`match`.
    """
    _check(grammar, data, marks.named(data).decode(), False)
    return _read(grammar, data)


def _read(grammar: Readable, data: bytes) -> Match[Any]:
    captures: dict[str, Any] = {}
    reader = Reader(data)
    value = grammar.value(reader, 0, len(data), captures)
    return Match(reader.text(0, len(data)), value, captures)


def _check(grammar: Readable, data: bytes, text: str, broken: bool) -> None:
    """Raise :class:`NoMatch` unless the text is in the language.

    Args:
        data: the bytes of the text, with marks; only up to its first lone surrogate, if it has any.
        broken: the text has a lone surrogate.
    """
    found = _departure(grammar, data, text, broken)
    if found is not None:
        raise NoMatch(found.message, where(text, found.at))


@dataclass(frozen=True, slots=True)
class Departure:
    """Where a text leaves a language.

    Attributes:
        at: the offset of the first character behind which no text of the language goes on; the length of the text, if
            it only ends too early.
        message: what is wrong there.
        following: the bytes that may stand there.
        may_end: whether the text may end there.
    """

    at: int
    message: str
    following: bytes
    may_end: bool


def departure(grammar: Readable, text: str) -> Departure | None:
    """Where a text, in which names of special tokens stand for these, leaves a language; ``None``: it is in it.

    Raises:
        GrammarError: the grammar cannot be compiled.
    """
    data, broken = _marked(grammar, text)
    return _departure(grammar, data, text, broken)


def completed(grammar: Readable, text: str) -> str:
    """The shortest text of a language that begins with this one, as some text of it does.

    Raises:
        GrammarError: the grammar cannot be compiled, or finding an ending goes beyond its limits.
    """
    data, constraint = marks.with_marks(text, grammar.special_tokens), grammar.byte_constraint
    matcher = constraint.matcher()
    matcher.accept_tokens(data)
    rest = bytes(token for token in constraint.shortest_completion(matcher.state) if token < 256)
    return marks.named(data + rest).decode()


def _marked(grammar: Readable, text: str) -> tuple[bytes, bool]:
    """The bytes of a text with marks, up to its first lone surrogate, and whether it has one."""
    surrogate = re.search("[\ud800-\udfff]", text)
    return marks.with_marks(text[: surrogate.start() if surrogate else None], grammar.special_tokens), bool(surrogate)


def _departure(grammar: Readable, data: bytes, text: str, broken: bool) -> Departure | None:
    matcher = grammar.byte_constraint.matcher()
    taken = matcher.accept_tokens(data)
    if taken == len(data) and not broken and matcher.is_accepting:
        return None
    if marks.BEGIN in data[:taken].rpartition(marks.END)[2]:  # the text leaves the language inside a mark
        matcher.rollback(taken - data.rindex(marks.BEGIN, 0, taken))
        taken = data.rindex(marks.BEGIN, 0, taken)
    at = len(marks.named(data[:taken]).decode(errors="ignore"))
    following, may_end = matcher.next_bytes()
    if taken < len(data):
        expected = f"{_listed(following)} may stand here" if following else "the text may only end here"
        message = f"unexpected {text[at]!r}; {expected}"
    elif broken:
        message = "a lone surrogate is no text"
    else:
        message = f"the text ends here, where {_listed(following)} must follow"
    return Departure(at, message, following, may_end)


def _listed(following: bytes) -> str:
    """The bytes that may come next, as errors list them. Characters beyond ASCII are one entry."""
    shown = [repr(chr(byte)) for byte in following if byte < 128]
    if any(128 <= byte < marks.BEGIN for byte in following):
        shown.append("a character beyond ASCII")
    if marks.BEGIN in following:
        shown.append("a special token")
    listed = shown if len(shown) <= 8 else [*shown[:6], "..."]
    return ", ".join(listed[:-1]) + f" or {listed[-1]}" if len(listed) > 1 else "".join(listed)
