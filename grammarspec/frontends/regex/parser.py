"""The parser that both dialects of regular expressions share: alternation, sequence, groups, quantifiers, classes.

A pattern's text goes in, and a syntax tree (:mod:`.tree`) comes out, or an error that shows the position. A dialect is
a subclass that says what its escapes, groups, anchors and flags mean (:mod:`.python`, :mod:`.ecma262`).

It is written by hand, because the standard library's parser is private, keeps no positions of what is refused, and
knows neither ``\\p{...}`` nor ECMA-262. Open groups are kept on a list, so that nesting may be of any depth.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from enum import Enum, auto
from typing import ClassVar, NoReturn

from grammarspec.errors import GrammarError, GrammarSyntaxError, LimitExceeded, UnsupportedFeature
from grammarspec.frontends.regex import tree
from grammarspec.frontends.regex.charsets import Ranges, complement, single, union
from grammarspec.frontends.regex.lookbehind import lookbehind
from grammarspec.frontends.regex.tree import Node
from grammarspec.frontends.regex.unicode_sets import property_ranges
from grammarspec.grammars.builder import UNBOUNDED
from grammarspec.positions import where

__all__ = ["Parser"]

_SURROGATE = re.compile("[\ud800-\udfff]")
_PLAIN = re.compile(r"[^\\\[(){|.^$*+?]+")


_Spans = dict[int, tuple[int, int]]


class Last(Enum):
    """What stands directly before the current position: it decides whether a quantifier may stand here."""

    NOTHING = auto()
    ITEM = auto()
    ANCHOR = auto()
    REPEAT = auto()


class _Group:
    """An open group, or the whole pattern: what has been read of it so far.

    Attributes:
        offset: where it begins in the pattern.
        outer_flags: the flags that are set again at its end.
        look: if it is a lookaround, whether it looks ahead, and whether it is negative.
        branches: the alternatives that are finished.
        parts: the nodes of the alternative that is being read.
        literal: pieces of text after these parts that are not a node yet, each with the offset where it begins; a
            quantifier takes the last character.
        last: what was read last.
        spans: see :class:`Parser`.
    """

    __slots__ = ("branches", "last", "literal", "look", "offset", "outer_flags", "parts", "spans")

    def __init__(self, offset: int, outer_flags: int, look: tuple[bool, bool] | None, spans: _Spans) -> None:
        self.offset, self.outer_flags, self.look, self.spans = offset, outer_flags, look, spans
        self.branches: list[Node] = []
        self.parts: list[Node] = []
        self.literal: list[tuple[str, int]] = []
        self.last = Last.NOTHING

    def flush(self, end: int) -> None:
        """Make one node of the pieces of text, which end at the offset ``end``."""
        if self.literal:
            node = tree.Text("".join([piece for piece, _ in self.literal]))
            self.spans[id(node)] = (self.literal[0][1], end)
            self.parts.append(node)
            self.literal.clear()

    def end_branch(self, end: int) -> None:
        """Finish the alternative that is being read, which ends at the offset ``end``."""
        self.flush(end)
        parts = [part for part in self.parts if part is not tree.EMPTY]
        branch = parts[0] if len(parts) == 1 else tree.Sequence(tuple(parts)) if parts else tree.EMPTY
        if len(parts) > 1:
            self.spans[id(branch)] = (self.spans[id(parts[0])][0], end)
        self.branches.append(branch)
        self.parts.clear()
        self.last = Last.NOTHING

    def body(self, end: int) -> Node:
        """Finish the group, whose last alternative ends at the offset ``end``; what it matches."""
        self.end_branch(end)
        return self.branches[0] if len(self.branches) == 1 else tree.Alternation(tuple(self.branches))


class Parser(ABC):
    """One parse of one pattern. Subclasses say what a dialect has of its own.

    Attributes:
        quantifier: matches ``*``, ``+``, ``?`` or counts in braces; its groups are ``exact``, ``least`` and ``most``
            (the counts) and ``suffix`` (whether it is lazy or possessive).
        text: the pattern.
        at: the current position in it.
        flags: those of :mod:`re` that hold at the current position.
        begin: where what is being read begins.
        group: the innermost open group.
        outer: the open groups around it, from the outermost.
        spans: of nodes of the tree, by ``id``, where their text begins and ends in the pattern. Nodes that an escape or
            an anchor is made of have none.

    Raises:
        GrammarSyntaxError: (by all methods that read, too) the pattern is malformed.
        UnsupportedFeature: (by these methods) it uses what is refused.
        LimitExceeded: (by these methods) a repetition count is too large.
    """

    quantifier: ClassVar[re.Pattern[str]]

    def __init__(self, pattern: str, flags: int) -> None:
        self.text, self.flags, self.at, self.begin = pattern, flags, 0, 0
        self.spans: _Spans = {}
        self.group = _Group(0, flags, None, self.spans)
        self.outer: list[_Group] = []
        self.known_cases: dict[tuple[str, int], str | tree.Chars] = {}
        surrogate = _SURROGATE.search(pattern)
        if surrogate:
            self.fail(self.surrogate_message(ord(surrogate[0])), surrogate.start())

    # What a dialect decides.

    @property
    def plain(self) -> re.Pattern[str]:
        """Matches a run of characters that stand for themselves under the current flags."""
        return _PLAIN

    @abstractmethod
    def open_group(self) -> None:
        """Read from ``(`` to where the group's own pattern begins."""

    @abstractmethod
    def escape(self) -> None:
        """Read an escape outside a class and add what it means."""

    @abstractmethod
    def class_escape(self) -> int | Ranges:
        """Read an escape inside a class: a code point, or a set."""

    @abstractmethod
    def other(self, char: str) -> None:
        """Read a character that the common syntax gives no meaning."""

    @abstractmethod
    def anchor(self, char: str) -> Node:
        """The meaning of ``^`` or ``$`` here."""

    @abstractmethod
    def dot(self) -> Ranges:
        """The meaning of ``.`` here."""

    @abstractmethod
    def fold(self, ranges: Ranges) -> Ranges:
        """A set of spelled characters with the other cases that the current flags add."""

    # The common syntax.

    def parse(self) -> Node:
        """Read the whole pattern.

        Raises:
            GrammarSyntaxError: the pattern is malformed.
            UnsupportedFeature: it uses what is refused.
            LimitExceeded: a repetition count is too large.
        """
        text, end = self.text, len(self.text)
        while self.at < end:
            self.begin = self.at
            run = self.plain.match(text, self.at)
            if run:
                self.at = run.end()
                self.add_text(run[0])
                continue
            char = text[self.at]
            if char == "|":
                self.at += 1
                self.group.end_branch(self.begin)
            elif char == "(":
                self.open_group()
            elif char == ")":
                self.close_group()
            elif char == "\\":
                self.escape()
            elif char == "[":
                self.add_set(self.character_class())
            elif char == ".":
                self.at += 1
                self.add(tree.Chars(self.dot()))
            elif char in "^$":
                self.at += 1
                self.add(self.anchor(char), Last.ANCHOR)
            elif char in "*+?{" and (counts := self.quantifier.match(text, self.at)):
                self.quantify(counts)
            else:
                self.other(char)
        if self.outer:
            self.fail("missing ), unterminated group", self.group.offset)
        return self.group.body(end)

    def add(self, node: Node, last: Last = Last.ITEM) -> None:
        """Append a node to the alternative that is being read; its text is that from :attr:`begin` on."""
        self.group.flush(self.begin)
        self.spans[id(node)] = (self.begin, self.at)
        self.group.parts.append(node)
        self.group.last = last

    def add_text(self, text: str) -> None:
        """Append characters that stand for themselves; under ``IGNORECASE``, for their other cases, too."""
        self.group.last = Last.ITEM
        if not self.flags & re.IGNORECASE:
            self.group.literal.append((text, self.begin))
            return
        for char in text:
            cases = self.cases(char)
            if isinstance(cases, str):
                self.group.literal.append((cases, self.begin))
            else:
                self.add(cases)

    def cases(self, char: str) -> str | tree.Chars:
        """The character itself, or a class if the current flags give it other cases."""
        key = (char, self.flags & re.ASCII)
        known = self.known_cases.get(key)
        if known is None:
            same = self.fold(single(ord(char)))
            known = char if len(same) == 1 and same[0][0] == same[0][1] else tree.Chars(same)
            self.known_cases[key] = known
        return known

    def add_codepoint(self, codepoint: int, offset: int) -> None:
        """Append a character whose escape began at ``offset``."""
        if 0xD800 <= codepoint <= 0xDFFF:
            self.fail(self.surrogate_message(codepoint), offset)
        self.add_text(chr(codepoint))

    def add_set(self, ranges: Ranges) -> None:
        """Append one character of a set, as text if the set has but one."""
        if len(ranges) == 1 and ranges[0][0] == ranges[0][1]:
            self.group.literal.append((chr(ranges[0][0]), self.begin))
            self.group.last = Last.ITEM
        else:
            self.add(tree.Chars(ranges))

    def begin_group(self, offset: int, look: tuple[bool, bool] | None = None) -> None:
        """Enter a group whose own pattern begins at the current position.

        Args:
            offset: where the group begins.
            look: if it is a lookaround, whether it looks ahead, and whether it is negative.
        """
        self.outer.append(self.group)
        self.group = _Group(offset, self.flags, look, self.spans)

    def close_group(self) -> None:
        """Read ``)`` and append the group."""
        if not self.outer:
            self.fail("unbalanced parenthesis", self.at)
        self.at += 1
        closed = self.group
        body = closed.body(self.begin)
        self.begin = closed.offset
        if closed.look is not None:
            body = self.lookaround(body, *closed.look)
        self.flags = closed.outer_flags
        self.group = self.outer.pop()
        self.add(body)

    def lookaround(self, body: Node, ahead: bool, negative: bool) -> Node:
        """The node of a lookaround; a lookbehind is refused if it cannot be decided when its position is reached."""
        look = tree.Look(body, ahead, negative) if ahead else lookbehind(body, negative)
        if look is None:
            hint = "it may stand at the end of the lookbehind"
            self.refuse("an assertion about what follows, followed by text, in a lookbehind", self.group.offset, hint)
        return look

    def quantify(self, counts: re.Match[str]) -> None:
        """Repeat what was read last by a match of :attr:`quantifier` at the current position."""
        group, offset = self.group, self.at
        if group.last in (Last.NOTHING, Last.ANCHOR):
            self.fail("nothing to repeat", offset)
        if group.last is Last.REPEAT:
            self.fail("multiple repeat", offset)
        if counts["suffix"] == "+":
            self.refuse("a possessive quantifier", offset, "it changes which texts match; write a plain one")
        self.at = counts.end()
        sign = counts[0][0]
        if sign == "{":
            least, most = self.count(counts, "least") or 0, self.count(counts, "most")
            if counts["exact"] is not None:
                least = most = self.count(counts, "exact") or 0
        else:
            least, most = (1 if sign == "+" else 0), (1 if sign == "?" else None)
        if most is not None and least > most:
            self.fail("the least count is above the most", offset)
        if group.literal:
            piece, self.begin = group.literal.pop()
            if len(piece) > 1:
                group.literal.append((piece[:-1], self.begin))
                self.begin = offset - 1
            group.flush(self.begin)
            body: Node = tree.Text(piece[-1])
        else:
            body = group.parts.pop()
            self.begin = self.spans[id(body)][0]
        if most == 0 or body is tree.EMPTY:
            body = tree.EMPTY
        elif (least, most) != (1, 1):
            body = tree.Repeat(body, least, most, counts["suffix"] == "?")
        self.add(body, Last.REPEAT)

    def count(self, counts: re.Match[str], name: str) -> int | None:
        """A number of a quantifier, by the name of its group; ``None``: it is left out.

        Raises:
            LimitExceeded: the number is 2**32 - 1 or more.
        """
        digits = counts[name]
        if not digits:
            return None
        significant = digits.lstrip("0")
        if len(significant) > 10 or int(significant or "0") >= UNBOUNDED:
            limit = f"a repetition count must be below the limit {UNBOUNDED}"
            raise LimitExceeded(limit, where(self.text, counts.start(name)))
        return int(significant or "0")

    def class_items(self, end: int) -> Ranges:
        """Read the items of a class, and the ``]`` behind them.

        The current flags add other cases of characters and ranges, and none to sets that have a name (``\\W``).

        Args:
            end: the first position at which ``]`` ends the class.
        """
        text, spelled, named, start = self.text, list[Ranges](), list[Ranges](), self.at
        while True:
            offset = self.at
            if offset >= len(text):
                self.fail("unterminated character class", text.rfind("[", 0, start))
            if text[offset] == "]" and offset >= end:
                self.at += 1
                return union(self.fold(union(*spelled)), *named)
            low = self.class_item()
            if text[self.at : self.at + 1] != "-" or text[self.at + 1 : self.at + 2] in ("]", ""):
                if isinstance(low, tuple):
                    named.append(low)
                else:
                    spelled.append(single(low))
                continue
            self.at += 1
            high = self.class_item()
            if isinstance(low, tuple) or isinstance(high, tuple):
                named += self.set_in_range(low, high, offset)
            elif low > high:
                self.fail(f"bad character range {text[offset : self.at]}", offset)
            else:
                spelled.append(((low, high),))

    def class_item(self) -> int | Ranges:
        """Read one character or escape within a class: a code point, or a set."""
        char = self.text[self.at]
        if char == "\\":
            return self.class_escape()
        self.at += 1
        return ord(char)

    def set_in_range(self, low: int | Ranges, high: int | Ranges, offset: int) -> list[Ranges]:
        """The meaning of ``\\w-x`` in a class, where the dialect gives it one."""
        self.fail(f"bad character range {self.text[offset : self.at]}", offset)

    def character_class(self) -> Ranges:
        """Read ``[...]``."""
        offset = self.at
        negative = self.text.startswith("^", offset + 1)
        self.at += 2 if negative else 1
        ranges = self.class_items(self.first_end_of_class())
        if negative:
            ranges = complement(ranges)
        if ranges and ranges[0][0] >= 0xD800 and ranges[-1][1] <= 0xDFFF:
            self.fail(self.surrogate_message(ranges[0][0]), offset)
        return ranges

    def first_end_of_class(self) -> int:
        """The first position at which ``]`` ends a class whose items begin here: ``[]`` is the empty class."""
        return self.at

    @staticmethod
    def word_boundary(word: Node, negative: bool) -> Node:
        """``\\b``: a word character on one side only; ``\\B``: on both or on neither."""

        def sides(before: bool, after: bool) -> Node:
            return tree.Sequence((tree.Look(word, False, not before), tree.Look(word, True, not after)))

        return tree.Alternation((sides(True, negative), sides(False, not negative)))

    # Pieces of escapes.

    def hexadecimal(self, least: int, most: int, offset: int) -> int:
        """Read so many hexadecimal digits at the current position; ``offset`` is where their escape began."""
        digits = re.compile(f"[0-9A-Fa-f]{{{least},{most}}}").match(self.text, self.at)
        if not digits:
            self.fail(f"incomplete escape {self.text[offset : self.at]}", offset)
        self.at = digits.end()
        return int(digits[0], 16)

    def braced(self, what: str, offset: int) -> str:
        """Read ``{...}`` at the current position."""
        end = self.text.find("}", self.at)
        if not self.text.startswith("{", self.at) or end < 0:
            self.fail(f"missing {{{what}}}", offset)
        content, self.at = self.text[self.at + 1 : end], end + 1
        return content

    def property_escape(self, negative: bool, offset: int) -> Ranges:
        """Read the ``{...}`` of ``\\p`` or ``\\P``.

        Raises:
            GrammarError: the name in it is malformed, or is that of no property that is supported.
        """
        name = self.braced("name of a Unicode property", offset)
        try:
            ranges = self.property_ranges(name)
        except GrammarError as error:
            raise type(error)(error.message, where(self.text, offset), error.hint) from None
        return complement(ranges) if negative else ranges

    def property_ranges(self, name: str) -> Ranges:
        """The set that the name of a property means.

        Raises:
            GrammarError: the name is that of no property that is supported.
        """
        return property_ranges(name)

    # Errors.

    @staticmethod
    def surrogate_message(codepoint: int) -> str:
        """Why a surrogate is refused."""
        return f"a lone surrogate (U+{codepoint:04X}) cannot be spelled in UTF-8, so nothing could match it"

    def fail(self, message: str, offset: int, hint: str = "") -> NoReturn:
        """Say that the pattern is malformed at an offset.

        Raises:
            GrammarSyntaxError: always.
        """
        raise GrammarSyntaxError(f"malformed regular expression: {message}", where(self.text, offset), hint)

    def refuse(self, feature: str, offset: int, hint: str = "") -> NoReturn:
        """Say that a feature at an offset is not supported.

        Raises:
            UnsupportedFeature: always.
        """
        raise UnsupportedFeature(f"{feature} in a regular expression is not supported", where(self.text, offset), hint)
