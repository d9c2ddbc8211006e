"""The syntax of ECMA-262's regular expressions, as JSON Schema's ``pattern`` uses them: with the ``u`` flag only.

A pattern goes in, and a syntax tree comes out. The reference is section 22.2.1 of ECMA-262
(https://tc39.es/ecma262/#sec-patterns). Many schemas are written for engines that accept more than the ``u`` flag
allows. So of Annex B.1.2 this much is accepted: escapes of punctuation that need none, brackets and braces that stand
for themselves, ``\\w-x`` inside a class, quantified lookarounds. What those engines disagree about (``\\Z``,
``{,3}``, octal escapes) is refused.
"""

from __future__ import annotations

import re
from typing import ClassVar

from grammarspec.frontends.regex import tree
from grammarspec.frontends.regex.charsets import Ranges, complement, single
from grammarspec.frontends.regex.parser import Last, Parser
from grammarspec.frontends.regex.tree import Chars, Node
from grammarspec.frontends.regex.unicode_sets import ECMA_SPACE, ascii_class

__all__ = ["EcmaParser"]

_GROUP = re.compile(r"\?(?:(?P<plain>:)|(?P<look><?[=!])|<(?P<name>[^>]*)>|(?P<flags>[imsuxadDJU^-]+)(?P<end>[:)]))")
_CONTROL_ESCAPES = {"f": 12, "n": 10, "r": 13, "t": 9, "v": 11}
_NOT_NEWLINE: Ranges = complement(((10, 10), (13, 13), (0x2028, 0x2029)))
_CLASSES = {letter: ascii_class(letter) for letter in "dw"} | {"s": ECMA_SPACE}
_CLASSES |= {letter.upper(): complement(ranges) for letter, ranges in _CLASSES.items()}
_ELSEWHERE = {
    "A": "write ^", "Z": "write $", "z": "write $", "G": "write ^", "a": "write \\x07", "e": "write \\x1b",
    "h": "write [ \\t]", "R": "write (?:\\r\\n|[\\n\\r])", "Q": "escape each character", "x": "write \\xHH",
}  # fmt: skip
"""What to write for the escapes of other dialects."""


class EcmaParser(Parser):
    """One parse of an ECMA-262 pattern."""

    quantifier: ClassVar[re.Pattern[str]] = re.compile(
        r"(?:[*+?]|\{(?:(?P<exact>[0-9]+)|(?P<least>[0-9]+),(?P<most>[0-9]*))\})(?P<suffix>\??)"
    )

    def __init__(self, pattern: str) -> None:
        super().__init__(pattern, 0)
        self.names: set[str] = set()

    def other(self, char: str) -> None:
        least = re.compile(r"\{,([0-9]+)\}").match(self.text, self.at)
        if least:
            self.fail("a count without its lower bound", self.at, f"write {{0,{least[1]}}}")
        self.at += 1
        self.add_text(char)

    def fold(self, ranges: Ranges) -> Ranges:
        return ranges

    def dot(self) -> Ranges:
        return _NOT_NEWLINE

    def anchor(self, char: str) -> Node:
        return tree.Start() if char == "^" else tree.End()

    def escape(self) -> None:
        offset = self.at
        letter = self.text[offset + 1 : offset + 2]
        if letter in ("b", "B"):
            self.at += 2
            self.add(self.word_boundary(Chars(ascii_class("w")), letter == "B"), Last.ANCHOR)
        elif letter == "k" or (letter.isdigit() and letter.isascii() and letter != "0"):
            self.refuse(f"the backreference \\{letter}", offset)
        else:
            value = self.common_escape(letter)
            if isinstance(value, int):
                self.add_codepoint(value, offset)
            else:
                self.add(Chars(value))

    def class_escape(self) -> int | Ranges:
        letter = self.text[self.at + 1 : self.at + 2]
        if letter == "b":
            self.at += 2
            return 8
        return self.common_escape(letter)

    def common_escape(self, letter: str) -> int | Ranges:
        """Read an escape that means the same in a class and outside: a code point, or a set."""
        text, offset = self.text, self.at
        self.at += 2
        if not letter:
            self.fail("bad escape (end of pattern)", offset)
        if letter in _CLASSES:
            return _CLASSES[letter]
        if letter in _CONTROL_ESCAPES:
            return _CONTROL_ESCAPES[letter]
        if letter == "u":
            return self.unicode_escape(offset)
        if letter == "x" and not text.startswith("{", self.at):
            return self.hexadecimal(2, 2, offset)
        if letter in "pP":
            return self.property_escape(letter == "P", offset)
        if letter == "c":
            control = text[self.at : self.at + 1]
            if not (control.isascii() and control.isalpha()):
                self.fail("\\c needs a letter", offset)
            self.at += 1
            return ord(control) % 32
        if letter == "0" and not text[self.at : self.at + 1].isdigit():
            return 0
        if letter.isalnum():
            self.fail(f"\\{letter} is no escape of ECMA-262", offset, _ELSEWHERE.get(letter, ""))
        return ord(letter)

    def unicode_escape(self, offset: int) -> int:
        """Read ``\\u{...}``, ``\\uXXXX``, or two of the latter that make a surrogate pair, from behind the ``u`` on."""
        if self.text.startswith("{", self.at):
            digits = self.braced("hexadecimal digits", offset)
            significant = digits.lstrip("0")
            if not re.fullmatch("[0-9A-Fa-f]+", digits) or len(significant) > 6 or int(digits, 16) > 0x10FFFF:
                self.fail(f"bad escape \\u{{{digits}}}", offset)
            return int(digits, 16)
        unit = self.hexadecimal(4, 4, offset)
        low = re.compile(r"\\u([Dd][C-Fc-f][0-9A-Fa-f]{2})").match(self.text, self.at)
        if 0xD800 <= unit <= 0xDBFF and low:
            self.at = low.end()
            return 0x10000 + ((unit - 0xD800) << 10) + int(low[1], 16) - 0xDC00
        return unit

    def set_in_range(self, low: int | Ranges, high: int | Ranges, offset: int) -> list[Ranges]:
        ends = [end if isinstance(end, tuple) else single(end) for end in (low, high)]
        return [*ends, single(ord("-"))]

    def open_group(self) -> None:
        offset = self.at
        self.at += 1
        if not self.text.startswith("?", self.at):
            self.begin_group(offset)
            return
        opening = _GROUP.match(self.text, self.at)
        if not opening:
            hint = "write (?<name>...)" if self.text.startswith("?P<", self.at) else ""
            self.fail("unknown kind of group", offset, hint)
        if opening["flags"]:
            self.refuse(f"the inline flags (?{opening['flags']}{opening['end']}", offset, "spell both cases as classes")
        self.at = opening.end()
        sign, name = opening["look"], opening["name"]
        if name is not None:
            if not name.isidentifier() and not name.replace("$", "_").isidentifier():
                self.fail(f"bad group name {name!r}", offset)
            if name in self.names:
                self.fail(f"redefinition of group name {name!r}", offset)
            self.names.add(name)
        self.begin_group(offset, (not sign.startswith("<"), sign.endswith("!")) if sign else None)
