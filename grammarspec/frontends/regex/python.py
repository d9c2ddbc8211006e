"""The syntax of Python's ``re`` for text, with ``\\p{...}`` and lookbehinds of any width added.

A pattern and flags go in, and a syntax tree comes out. The reference is
https://docs.python.org/3/library/re.html#regular-expression-syntax, and where that is silent, CPython's parser.
"""

from __future__ import annotations

import re
import sys
import unicodedata
from typing import ClassVar

from grammarspec.frontends.regex import tree
from grammarspec.frontends.regex.charsets import ALL, Ranges, complement, single
from grammarspec.frontends.regex.parser import Last, Parser
from grammarspec.frontends.regex.tree import Alternation, Chars, Look, Node, Sequence, Text
from grammarspec.frontends.regex.unicode_sets import ascii_class, fold_case, unicode_class

__all__ = ["PythonParser"]

_FLAGS = {"i": re.IGNORECASE, "L": re.LOCALE, "m": re.MULTILINE, "s": re.DOTALL, "x": re.VERBOSE, "a": re.ASCII}
_FLAGS |= {"u": re.UNICODE}
_KNOWN_FLAGS = re.IGNORECASE | re.MULTILINE | re.DOTALL | re.VERBOSE | re.ASCII | re.UNICODE | re.LOCALE
_NO_MATTER = int(re.DEBUG) | 1  # the latter was TEMPLATE, before Python 3.13
_KINDS = re.ASCII | re.UNICODE | re.LOCALE  # of which at most one can be on
_SIMPLE_ESCAPES = {"a": 7, "f": 12, "n": 10, "r": 13, "t": 9, "v": 11, "\\": 92}
_PLAIN_VERBOSE = re.compile(r"[^\\\[(){|.^$*+?# \t\n\r\v\f]+")
_OCTAL = re.compile("[0-7]{1,3}")
_DIGITS = re.compile("[0-9]{1,2}")
_COMMENT = re.compile(r"#(?:[^\\\n]|\\.)*(?:\n|\Z)", re.DOTALL)  # an escaped newline does not end it
_GROUP_COMMENT = re.compile(r"(?:[^\\)]|\\.)*\)", re.DOTALL)
_NEWLINE = Text("\n")


class PythonParser(Parser):
    """One parse of a pattern of Python's ``re``.

    Attributes:
        boundaries: the letters of escapes that are assertions.

    Raises:
        ValueError: a flag is unknown.
        GrammarError: as :class:`~.parser.Parser`.
    """

    quantifier: ClassVar[re.Pattern[str]] = re.compile(
        r"(?:[*+?]|\{(?:(?P<exact>[0-9]+)|(?P<least>[0-9]*),(?P<most>[0-9]*))\})(?P<suffix>[?+]?)"
    )

    boundaries: ClassVar[str] = "AZbBz" if sys.version_info >= (3, 14) else "AZbB"

    def __init__(self, pattern: str, flags: int) -> None:
        flags = int(flags) & ~_NO_MATTER
        if flags & ~int(_KNOWN_FLAGS):
            raise ValueError(f"unknown flags for a regular expression: {re.RegexFlag(flags)!r}")
        super().__init__(pattern, flags)
        self.names: dict[str, int] = {}
        self.groups = 0
        self.check_kinds(0)

    def check_kinds(self, offset: int) -> None:
        """Refuse flags that contradict each other; ``offset`` is where they were set."""
        if self.flags & re.LOCALE:
            self.fail("the flag LOCALE is for patterns of bytes", offset)
        if self.flags & re.ASCII and self.flags & re.UNICODE:
            self.fail("the flags ASCII and UNICODE are incompatible", offset)

    @property
    def plain(self) -> re.Pattern[str]:
        return _PLAIN_VERBOSE if self.flags & re.VERBOSE else super().plain

    def other(self, char: str) -> None:
        verbose = self.flags & re.VERBOSE
        if verbose and char == "#":
            comment = _COMMENT.match(self.text, self.at)
            if not comment:
                self.fail("bad escape (end of pattern)", len(self.text) - 1)
            self.at = comment.end()
            return
        self.at += 1
        if not (verbose and char in " \t\n\r\v\f"):
            self.add_text(char)

    # Sets and anchors under the current flags.

    def letter_class(self, letter: str) -> Ranges:
        """``\\d``, ``\\s``, ``\\w``, or in upper case their complement, under the current flags."""
        ranges = (ascii_class if self.flags & re.ASCII else unicode_class)(letter.lower())
        return complement(ranges) if letter.isupper() else ranges

    def fold(self, ranges: Ranges) -> Ranges:
        if not self.flags & re.IGNORECASE:
            return ranges
        return fold_case(ranges, ascii_only=bool(self.flags & re.ASCII))

    def dot(self) -> Ranges:
        return ALL if self.flags & re.DOTALL else complement(single(10))

    def anchor(self, char: str) -> Node:
        multiline = self.flags & re.MULTILINE
        if char == "^":
            return Alternation((tree.START, Look(_NEWLINE, False, False))) if multiline else tree.Start()
        newline = _NEWLINE if multiline else Sequence((_NEWLINE, tree.END))
        return Alternation((tree.END, Look(newline, True, False)))

    def boundary(self, letter: str) -> Node:
        """The meaning of an escape of :attr:`boundaries`."""
        if letter == "A":
            return tree.Start()
        if letter in "Zz":
            return tree.End()
        boundary = self.word_boundary(Chars(self.letter_class("w")), letter == "B")
        if letter == "B" and sys.version_info < (3, 14):  # there, \B holds nowhere in the empty text
            anything = Chars(ALL)
            return Sequence((Alternation((Look(anything, False, False), Look(anything, True, False))), boundary))
        return boundary

    # Escapes.

    def escape(self) -> None:
        offset = self.at
        letter = self.text[offset + 1 : offset + 2]
        if letter and letter in self.boundaries:
            self.at += 2
            self.add(self.boundary(letter), Last.ANCHOR)
        elif letter.isascii() and letter.isdigit() and letter != "0":
            self.digits(offset)
        else:
            value = self.common_escape(letter)
            if isinstance(value, int):
                self.add_codepoint(value, offset)
            else:
                self.add(Chars(value))

    def digits(self, offset: int) -> None:
        """Read digits after a backslash: three octal ones are a character, any others are a reference to a group."""
        octal = _OCTAL.match(self.text, offset + 1)
        if octal and len(octal[0]) == 3:
            self.add_codepoint(self.octal(octal), offset)
            return
        digits = _DIGITS.match(self.text, offset + 1)
        assert digits is not None
        if int(digits[0]) > self.groups:
            self.fail(f"invalid group reference {digits[0]}", offset)
        self.refuse(f"the backreference \\{digits[0]}", offset)

    def octal(self, digits: re.Match[str]) -> int:
        """The character of an octal escape, which is read past."""
        self.at = digits.end()
        if int(digits[0], 8) > 0o377:
            self.fail(f"octal escape \\{digits[0]} outside of range 0-0o377", digits.start() - 1)
        return int(digits[0], 8)

    def first_end_of_class(self) -> int:
        return self.at + 1  # a leading ] stands for itself

    def class_escape(self) -> int | Ranges:
        offset = self.at
        letter = self.text[offset + 1 : offset + 2]
        if letter == "b":
            self.at += 2
            return 8
        octal = _OCTAL.match(self.text, offset + 1)
        return self.octal(octal) if octal else self.common_escape(letter)

    def common_escape(self, letter: str) -> int | Ranges:
        """Read an escape that means the same in a class and outside: a code point, or a set."""
        offset = self.at
        self.at += 2
        if not letter:
            self.fail("bad escape (end of pattern)", offset)
        if letter in _SIMPLE_ESCAPES:
            return _SIMPLE_ESCAPES[letter]
        if letter in "dDsSwW":
            return self.letter_class(letter)
        if letter in "xuU":
            width = {"x": 2, "u": 4, "U": 8}[letter]
            value = self.hexadecimal(width, width, offset)
            if value > 0x10FFFF:
                self.fail(f"bad escape {self.text[offset : self.at]}", offset)
            return value
        if letter in "pP":
            return self.property_escape(letter == "P", offset)
        if letter == "N":
            name = self.braced("character name", offset)
            try:
                return ord(unicodedata.lookup(name))
            except (KeyError, TypeError):  # TypeError: the name of a sequence of characters
                self.fail(f"undefined character name {name!r}", offset)
        if letter == "0":
            octal = re.compile("0[0-7]{0,2}").match(self.text, offset + 1)
            assert octal is not None
            return self.octal(octal)
        if letter.isascii() and letter.isalnum():
            self.fail(f"bad escape \\{letter}", offset, "write \\Z" if letter == "z" else "")
        return ord(letter)

    # Groups.

    def open_group(self) -> None:
        text, offset = self.text, self.at
        self.at += 1
        if not text.startswith("?", self.at):
            self.groups += 1
            self.begin_group(offset)
            return
        looks = {"?=": (True, False), "?!": (True, True), "?<=": (False, False), "?<!": (False, True)}
        for sign, look in looks.items():
            if text.startswith(sign, self.at):
                self.at += len(sign)
                self.begin_group(offset, look)
                return
        kind = text[self.at + 1 : self.at + 2]
        self.at += 2
        if kind == ":":
            self.begin_group(offset)
        elif kind == "#":
            comment = _GROUP_COMMENT.match(text, self.at)
            if not comment:
                self.fail("missing ), unterminated comment", offset)
            self.at = comment.end()
        elif kind == "P":
            self.named_group(offset)
        elif kind == ">":
            self.refuse("an atomic group", offset, "it changes which texts match; write a plain group")
        elif kind == "(":
            self.refuse("a conditional group", offset)
        elif kind and kind in "-" + "".join(_FLAGS):
            self.at -= 1
            self.flag_group(offset)
        elif not kind:
            self.fail("unexpected end of pattern", offset)
        else:
            self.fail(f"unknown extension {text[offset + 1 : self.at]}", offset)

    def named_group(self, offset: int) -> None:
        """Read ``(?P<name>`` from the sign on; ``(?P=name)`` is refused."""
        sign = self.text[self.at : self.at + 1]
        end = self.text.find({"<": ">", "=": ")"}.get(sign, ""), self.at)
        if sign not in ("<", "=") or end < 0:
            self.fail("unknown extension ?P, or an unterminated name", offset)
        name = self.text[self.at + 1 : end]
        self.at = end + 1
        if not name.isidentifier():
            self.fail(f"bad group name {name!r}", offset)
        if sign == "=":
            if name not in self.names:
                self.fail(f"unknown group name {name!r}", offset)
            self.refuse(f"the backreference (?P={name})", offset)
        self.groups += 1
        if name in self.names:
            self.fail(f"redefinition of group name {name!r}", offset)
        self.names[name] = self.groups
        self.begin_group(offset)

    def flag_group(self, offset: int) -> None:
        """Read the flags of ``(?aiLmsux)``, for the whole pattern, or of ``(?aiLmsux-imsx:...)``, for a group."""
        spelled = re.compile("([a-zA-Z]*)(?:(-)([a-zA-Z]*))?([:)]?)").match(self.text, self.at)
        assert spelled is not None
        added, minus, removed, end = spelled.groups(default="")
        for letter in added + removed:
            if letter not in _FLAGS:
                self.fail(f"unknown flag {letter!r}", offset)
        if not end or (minus and not removed) or (minus and end == ")"):
            self.fail("missing -, : or ) after flags, or a flag after -", offset)
        on, off = self.flag_bits(added), self.flag_bits(removed)
        if off & _KINDS:
            self.fail("the flags a, u and L cannot be turned off", offset)
        if on & off:
            self.fail("a flag is turned on and off", offset)
        kinds = on & _KINDS
        if kinds & (kinds - 1) or kinds & re.LOCALE:
            self.fail("of the flags a and u only one can be on, and L is for patterns of bytes", offset)
        self.at = spelled.end()
        if end == ")":
            group = self.group
            if self.outer or group.branches or group.parts or group.literal:
                self.fail("global flags not at the start of the expression", offset, f"write (?{added}:...)")
            self.flags |= on
            self.check_kinds(offset)
            return
        self.begin_group(offset)
        self.flags = ((self.flags & ~_KINDS if kinds else self.flags) | on) & ~off

    @staticmethod
    def flag_bits(letters: str) -> int:
        """The flags of :mod:`re` that these letters stand for."""
        bits = 0
        for letter in letters:
            bits |= int(_FLAGS[letter])
        return bits
