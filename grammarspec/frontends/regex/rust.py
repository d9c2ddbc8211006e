"""The syntax of Rust's ``regex`` crate, which Pydantic uses for its patterns, and llguidance for its terminals.

A pattern and flags go in, and a syntax tree comes out. The reference is https://docs.rs/regex/latest/regex/#syntax.
"""

from __future__ import annotations

import re
from contextlib import suppress
from functools import cache
from typing import ClassVar, Final

from grammarspec.errors import GrammarSyntaxError
from grammarspec.frontends.regex import tree
from grammarspec.frontends.regex.charsets import ALL, Ranges, complement, intersect, normalise, single, subtract, union
from grammarspec.frontends.regex.parser import Last, Parser
from grammarspec.frontends.regex.tree import Alternation, Chars, Look, Node, Sequence
from grammarspec.frontends.regex.unicode_sets import property_ranges

__all__ = ["RustParser"]

_FLAGS: Final = {"i": re.IGNORECASE, "s": re.DOTALL, "u": re.UNICODE, "m": re.MULTILINE}
_ESCAPES: Final = {"a": 7, "f": 12, "n": 10, "r": 13, "t": 9, "v": 11}
_HEX: Final = {"x": 2, "u": 4, "U": 8}
_PUNCTUATION: Final = frozenset("!\"#$%&'()*+,-./:;=?@[\\]^_`{|}~ \n\t\r\v\f")
_ASSERTION = re.compile(r"\\(?:b\{(?:start|end)(?:-half)?\}|[AzbB<>])")
_STARTS: Final = frozenset((r"\<", r"\b{start}", r"\b{start-half}"))
_GROUP = re.compile(
    r"\?(?:(?P<plain>:)|P?<(?P<name>[A-Za-z_][\w.\[\]]*)>|(?P<on>[a-zA-Z]*)(?:-(?P<off>[a-zA-Z]+))?(?P<end>[:)]))"
)
_POSIX = re.compile(r"\[:(\^?)([a-z]+):\]")
_SPACE: Ranges = (
    (0x09, 0x0D), (0x20, 0x20), (0x85, 0x85), (0xA0, 0xA0), (0x1680, 0x1680), (0x2000, 0x200A), (0x2028, 0x2029),
    (0x202F, 0x202F), (0x205F, 0x205F), (0x3000, 0x3000),
)  # fmt: skip
"""The property White_Space."""
_CIRCLED: Ranges = ((0x24B6, 0x24E9), (0x1F130, 0x1F149), (0x1F150, 0x1F169), (0x1F170, 0x1F189))
"""The symbols that are alphabetic."""
_JOINERS: Ranges = ((0x200C, 0x200D),)
_CLASSES: Final[dict[str, Ranges]] = {
    "alnum": ((48, 57), (65, 90), (97, 122)), "alpha": ((65, 90), (97, 122)), "ascii": ((0, 127),),
    "blank": ((9, 9), (32, 32)), "cntrl": ((0, 31), (127, 127)), "digit": ((48, 57),), "graph": ((33, 126),),
    "lower": ((97, 122),), "print": ((32, 126),), "punct": ((33, 47), (58, 64), (91, 96), (123, 126)),
    "space": ((9, 13), (32, 32)), "upper": ((65, 90),), "word": ((48, 57), (65, 90), (95, 95), (97, 122)),
    "xdigit": ((48, 57), (65, 70), (97, 102)),
}  # fmt: skip
_MOST_NESTED: Final = 100


@cache
def _letter_class(letter: str) -> Ranges:
    """``\\d``, ``\\s`` or ``\\w``."""
    if letter == "d":
        return property_ranges("Nd")
    if letter == "s":
        return _SPACE
    return union(*map(property_ranges, ("L", "Nl", "M", "Nd", "Pc")), _CIRCLED, _JOINERS)


@cache
def _cases() -> dict[int, tuple[int, ...]]:
    """The code points that have other cases, each with all that are equal to it by simple case folding."""
    groups: dict[str, list[int]] = {}
    for code in range(0x1E944):
        char = chr(code)
        folded = char.casefold()
        folded = folded if len(folded) == 1 else char.lower() if len(char.lower()) == 1 else char
        if folded != char:
            groups.setdefault(folded, [ord(folded)]).append(code)
    return {code: tuple(group) for group in groups.values() for code in group}


class RustParser(Parser):
    """One parse of a pattern of Rust's ``regex``.

    Args:
        flags: the letters of flags that hold for all of it.

    Raises:
        GrammarError: as :class:`~.parser.Parser`; or a flag is unknown or not supported.
    """

    quantifier: ClassVar[re.Pattern[str]] = re.compile(
        r"(?:[*+?]|\{(?:(?P<exact>[0-9]+)|(?P<least>[0-9]+),(?P<most>[0-9]*))\})(?P<suffix>\??)"
    )

    def __init__(self, pattern: str, flags: str = "") -> None:
        super().__init__(pattern, 0)
        self.flags = self.group.outer_flags = self.bits(flags, 0)

    def bits(self, letters: str, offset: int) -> int:
        """The flags that letters stand for."""
        bits = 0
        for letter in letters:
            if letter not in _FLAGS:
                self.refuse(f"the flag {letter}", offset)
            bits |= int(_FLAGS[letter])
        return bits & ~int(re.UNICODE)

    def other(self, char: str) -> None:
        if char in "*+?{":
            self.fail(f"an unexpected {char}", self.at, f"\\{char} is the character")
        self.at += 1
        self.add_text(char)

    def fold(self, ranges: Ranges) -> Ranges:
        if not self.flags & re.IGNORECASE:
            return ranges
        found = list(ranges)
        for code, group in _cases().items():
            if any(low <= code <= high for low, high in ranges):
                found += [(other, other) for other in group]
        return normalise(found)

    def dot(self) -> Ranges:
        return ALL if self.flags & re.DOTALL else complement(single(10))

    def anchor(self, char: str) -> Node:
        begins = char == "^"
        if self.flags & re.MULTILINE:
            return Alternation((tree.Start() if begins else tree.End(), Look(Chars(single(10)), not begins, False)))
        return tree.Start() if begins else tree.End()

    def assertion(self, escape: str) -> Node:
        """The meaning of an escape that is an assertion."""
        if escape in "\\A\\z":
            return tree.Start() if escape == "\\A" else tree.End()
        word = Chars(_letter_class("w"))
        if escape in ("\\b", "\\B"):
            return self.word_boundary(word, escape == "\\B")
        before, after = Look(word, False, escape in _STARTS), Look(word, True, escape not in _STARTS)
        if escape.endswith("-half}"):
            return before if escape in _STARTS else after
        return Sequence((before, after))

    # Escapes.

    def escape(self) -> None:
        offset = self.at
        if found := _ASSERTION.match(self.text, offset):
            self.at = found.end()
            self.add(self.assertion(found[0]), Last.ANCHOR)
            return
        value = self.class_escape()
        if isinstance(value, int):
            self.add_codepoint(value, offset)
        else:
            self.add(Chars(value))

    def class_escape(self) -> int | Ranges:
        offset = self.at
        letter = self.text[offset + 1 : offset + 2]
        self.at += 2
        if not letter:
            self.fail("bad escape (end of pattern)", offset)
        if letter in "dDsSwW":
            ranges = _letter_class(letter.lower())
            return complement(ranges) if letter.isupper() else ranges
        if letter in "pP":
            if not self.text.startswith("{", self.at):
                self.at += 1
                ranges = property_ranges(self.text[self.at - 1 : self.at])
                return complement(ranges) if letter == "P" else ranges
            return self.property_escape(letter == "P", offset)
        if letter in _HEX:
            return self.number(letter, offset)
        if letter in _ESCAPES:
            return _ESCAPES[letter]
        if letter not in _PUNCTUATION:
            self.fail(f"bad escape \\{letter}", offset)
        return ord(letter)

    def property_ranges(self, name: str) -> Ranges:
        """In Rust, case does not matter in names, and those of scripts stand alone, too."""
        for candidate in (name, name.title(), f"Script={name.title()}"):
            with suppress(GrammarSyntaxError):
                return property_ranges(candidate)
        return super().property_ranges(name)

    def number(self, letter: str, offset: int) -> int:
        """Read the digits of an escape, in braces or as many as its letter asks for."""
        if self.text.startswith("{", self.at):
            digits = self.braced("hexadecimal digits", offset)
            if not re.fullmatch("[0-9A-Fa-f]{1,8}", digits):
                self.fail(f"bad escape \\{letter}{{{digits}}}", offset)
            value = int(digits, 16)
        else:
            value = self.hexadecimal(_HEX[letter], _HEX[letter], offset)
        if value > 0x10FFFF:
            self.fail(f"bad escape {self.text[offset : self.at]}", offset)
        return value

    # Classes, which may hold classes, and operators between them.

    def character_class(self) -> Ranges:
        return self.nested_class(0)

    def nested_class(self, depth: int) -> Ranges:
        """Read ``[...]``: unions, and ``&&``, ``--`` and ``~~`` between them, from left to right."""
        text, offset = self.text, self.at
        if depth > _MOST_NESTED:
            self.refuse(f"a class within {_MOST_NESTED} others", offset)
        negative = text.startswith("^", offset + 1)
        self.at += 2 if negative else 1
        items: list[Ranges] = []
        result: Ranges | None = None
        operator = ""
        if leading := re.compile(r"-+|\]").match(text, self.at):  # at the beginning, they stand for themselves
            items.append(single(ord(leading[0][0])))
            self.at = leading.end()
        while True:
            if self.at >= len(text):
                self.fail("unterminated character class", offset)
            sign = text[self.at : self.at + 2]
            end = text[self.at] == "]"
            if end or sign in ("&&", "--", "~~"):
                result = self.combined(result, operator, union(*items) if items else ())
                items, operator = [], sign
                self.at += 1 if end else 2
                if end:
                    return complement(result) if negative else result
                continue
            items.append(self.nested_item(depth))

    @staticmethod
    def combined(left: Ranges | None, operator: str, right: Ranges) -> Ranges:
        """Two sets with an operator between them; of the first set, which has none to its left, itself."""
        if left is None:
            return right
        if operator == "&&":
            return intersect(left, right)
        if operator == "--":
            return subtract(left, right)
        return union(subtract(left, right), subtract(right, left))

    def nested_item(self, depth: int) -> Ranges:
        """Read one item of a class: a class, a set that has a name, a character, or a range of them."""
        text, offset = self.text, self.at
        named = _POSIX.match(text, offset)
        if named and named[2] in _CLASSES:
            self.at = named.end()
            ranges = self.fold(_CLASSES[named[2]])
            return complement(ranges) if named[1] else ranges
        if text[offset] == "[":
            return self.nested_class(depth + 1)
        low = self.class_item()
        if isinstance(low, tuple):
            return low
        follows = text[self.at + 1 : self.at + 2]
        if text[self.at : self.at + 1] != "-" or follows in ("]", "-", ""):
            return self.fold(single(low))
        self.at += 1
        high = self.class_item()
        if isinstance(high, tuple) or low > high:
            self.fail(f"bad character range {text[offset : self.at]}", offset)
        return self.fold(((low, high),))

    # Groups.

    def open_group(self) -> None:
        offset = self.at
        self.at += 1
        if not self.text.startswith("?", self.at):
            self.begin_group(offset)
            return
        if self.text[self.at : self.at + 2] in ("?=", "?!") or self.text[self.at : self.at + 3] in ("?<=", "?<!"):
            self.refuse("a lookaround", offset)
        opening = _GROUP.match(self.text, self.at)
        if not opening:
            self.fail("unknown kind of group", offset)
        self.at = opening.end()
        if "u" in (opening["off"] or ""):
            self.refuse("bytes in place of characters (the flag -u)", offset)
        added = self.bits(opening["on"] or "", offset)
        removed = self.bits(opening["off"] or "", offset)
        if opening["end"] == ")":  # from here to the end of the group around it
            self.flags = (self.flags | added) & ~removed
            return
        self.begin_group(offset)
        self.flags = (self.flags | added) & ~removed
