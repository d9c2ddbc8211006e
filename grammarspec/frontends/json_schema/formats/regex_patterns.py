"""The texts of the format ``regex``: patterns of ECMA-262 with the flag ``u`` (section 22.2.1).

This is about patterns as values of a schema's strings; the patterns of a schema's ``pattern`` are read by
:mod:`grammarspec.frontends.regex`.

Groups nest, so that the valid patterns are no regular language. ``inside`` is a part of them: they have at most five
groups inside one another, and nothing whose validity an automaton cannot check:

* no references to groups; at most one group has a name, so that no name comes twice;
* no ``\\0``; property escapes of general categories only, in their short names;
* a repetition ``{n,m}`` has an ``n`` of at most two digits, and no leading zeros;
* ranges in classes are those whose order few bytes show: from a printable ASCII character to any higher one; between
  characters beyond ASCII whose first bytes in UTF-8 differ, or which are both from U+00C0 to U+00FF; between two
  ``\\xhh``; between two ``\\uhhhh`` whose first digits differ. A hyphen for itself is escaped, or first or last.
"""

from __future__ import annotations

from functools import cached_property
from typing import Final

from grammarspec.frontends.json_schema.formats.nodes import FormatNodes, characters
from grammarspec.frontends.regex.charsets import ALL, LAST, subtract

__all__ = ["RegexPatterns"]

_DEPTH: Final = 5
"""The most groups inside one another."""

_SYNTAX = "^$\\.*+?()[]{}|"
_CATEGORIES = (
    "L", "LC", "Lu", "Ll", "Lt", "Lm", "Lo", "M", "Mn", "Mc", "Me", "N", "Nd", "Nl", "No", "P", "Pc", "Pd", "Ps", "Pe",
    "Pi", "Pf", "Po", "S", "Sm", "Sc", "Sk", "So", "Z", "Zs", "Zl", "Zp", "C", "Cc", "Cf", "Co", "Cn",
)  # fmt: skip
_HEXADECIMAL = "0123456789ABCDEF"
_SAME_FIRST_BYTE = ((0x80, 0x800, 0x40), (0x800, 0x10000, 0x1000), (0x10000, LAST, 0x40000))
"""Code points from, to, and how many of them have the same first byte in UTF-8."""


class RegexPatterns(FormatNodes):
    """Patterns of ECMA-262."""

    @cached_property
    def around(self) -> int:
        """Texts that do not begin with what cannot begin a pattern, with any flags."""
        b = self.builder
        first = self.exact.codepoints(subtract(ALL, characters("*+?)")))
        return b.optional(b.seq(first, self.exact.any_text))

    @cached_property
    def inside(self) -> int:
        """Texts that surely are patterns."""
        b = self.builder
        unnamed, named = b.nothing, b.nothing
        for _ in range(_DEPTH + 1):
            unnamed, named = self._disjunctions(unnamed, named)
        return b.alt(unnamed, named)

    # ------------------------------------------------------------------ pieces
    def _text(self, text: str) -> int:
        """Exactly this text."""
        return self.exact.text(text)

    def _one(self, text: str) -> int:
        """One of these characters."""
        return self.exact.codepoints(characters(text))

    # ------------------------------------------------------------------ terms
    def _disjunctions(self, unnamed: int, named: int) -> tuple[int, int]:
        """``Disjunction`` without named groups, and with exactly one, where groups hold the same of less depth."""
        b = self.builder
        plain = self.exact.codepoints(subtract(ALL, characters(_SYNTAX)))
        atom = b.alt(plain, self._text("."), self._escape, self._class)
        assertion = b.alt(self._one("^$"), self._text("\\b"), self._text("\\B"))
        bar = self._text("|")  # alternatives may be empty, so that it may stand anywhere
        term = b.alt(b.seq(atom, b.optional(self._quantifier)), assertion, bar, self._group(unnamed))
        terms = b.repeat(term, 0, None)
        return terms, b.seq(terms, b.alt(self._group(named), self._named_group(unnamed)), terms)

    def _group(self, inner: int) -> int:
        """A group without a name, or an assertion."""
        b, opening, close = self.builder, self._text("("), self._text(")")
        looking = b.alt(*map(self._text, ("?=", "?!", "?<=", "?<!")))
        group = b.seq(opening, b.optional(self._text("?:")), inner, close, b.optional(self._quantifier))
        return b.alt(group, b.seq(opening, looking, inner, close))

    def _named_group(self, inner: int) -> int:
        b = self.builder
        name = b.seq(self._letter, b.repeat(b.alt(self._letter, self._digit, self._text("_")), 0, None))
        return b.seq(self._text("(?<"), name, self._text(">"), inner, self._text(")"), b.optional(self._quantifier))

    @cached_property
    def _quantifier(self) -> int:
        """``Quantifier``."""
        b = self.builder
        counts = b.seq(self._text("{"), b.alt(self._digits, b.seq(self._digits, self._text(",")), self._from_to))
        return b.seq(b.alt(self._one("*+?"), b.seq(counts, self._text("}"))), b.optional(self._text("?")))

    @cached_property
    def _from_to(self) -> int:
        """``n,m`` with n <= m, where n has at most two digits."""
        b = self.builder

        def digits(low: int, high: int) -> int:
            return b.bytes_in(((0x30 + low, 0x30 + high),)) if low <= high else b.nothing

        more = b.seq(digits(1, 9), b.repeat(self._digit, 2, None))  # three digits and more
        two = b.seq(digits(1, 9), self._digit)
        comma = self._text(",")
        found = [b.seq(self._digit, comma, two), b.seq(b.alt(self._digit, two), comma, more)]
        found += [b.seq(self._text(f"{n},"), digits(n, 9)) for n in range(10)]
        for tens in range(1, 10):
            higher = b.seq(digits(tens + 1, 9), self._digit)
            same = [b.seq(self._text(f"{n},{tens}"), digits(n, 9)) for n in range(10)]
            found.append(b.seq(self._text(f"{tens}"), b.alt(b.seq(self._digit, comma, higher), *same)))
        return b.alt(*found)

    # ------------------------------------------------------------------ escapes and classes
    @cached_property
    def _escape(self) -> int:
        """``AtomEscape``, but for references to groups."""
        return self.builder.seq(self._text("\\"), self._escaped)

    @cached_property
    def _escaped(self) -> int:
        """What may follow a backslash in a class and outside."""
        b = self.builder
        four = b.repeat(self._hexadecimal, 4, 4)
        code_point = b.alt(b.repeat(self._hexadecimal, 1, 5), b.seq(self._text("10"), four))
        name = b.seq(b.optional(b.alt(self._text("gc="), self._text("General_Category="))), b.words(_CATEGORIES))
        return b.alt(
            self._one(_SYNTAX + "/fnrtvdDsSwW"),
            b.seq(self._text("c"), self._letter),
            b.seq(self._text("x"), self._hexadecimal, self._hexadecimal),
            b.seq(self._text("u"), b.alt(four, b.seq(self._text("{"), code_point, self._text("}")))),
            b.seq(self._one("pP"), self._text("{"), name, self._text("}")),
        )

    @cached_property
    def _class(self) -> int:
        """``CharacterClass``."""
        b = self.builder
        plain = self.exact.codepoints(subtract(ALL, characters("\\]-")))
        escape = b.seq(self._text("\\"), b.alt(self._escaped, self._one("b-")))
        hyphen = b.optional(self._text("-"))
        members = b.repeat(b.alt(plain, escape, self._class_range), 0, None)
        return b.seq(self._text("["), b.optional(self._text("^")), hyphen, members, hyphen, self._text("]"))

    @cached_property
    def _class_range(self) -> int:
        """Two characters that are in order, with a hyphen between them."""
        return self.builder.alt(self._ascii_range, self._foreign_range, self._escaped_ranges)

    @cached_property
    def _ascii_range(self) -> int:
        """Ranges from a character of ASCII."""
        b = self.builder
        unescaped = characters("\\]-")
        foreign = b.codepoints(((0x80, 0x10FFFF),))
        found = []
        for code in range(0x20, 0x7F):
            if chr(code) not in "\\]-":
                last = b.alt(self.exact.codepoints(subtract(((code, 0x7E),), unescaped)), foreign)
                found.append(b.seq(self._text(chr(code)), self._text("-"), last))
        return b.alt(*found)

    @cached_property
    def _foreign_range(self) -> int:
        """Ranges of characters beyond ASCII, whose order is that of their bytes in UTF-8."""
        b, hyphen = self.builder, self._text("-")
        found = []
        for low, high, step in _SAME_FIRST_BYTE:
            for first in range(low, high, step):
                if first + step <= LAST:
                    after = b.codepoints(((first + step, LAST),))
                    found.append(b.seq(b.codepoints(((first, first + step - 1),)), hyphen, after))
        for code in range(0xC0, 0x100):  # letters with the same first byte that many patterns have
            found.append(b.seq(b.literal(chr(code)), hyphen, b.codepoints(((code, 0xFF),))))
        return b.alt(*found)

    @cached_property
    def _escaped_ranges(self) -> int:
        """Ranges of ``\\uhhhh`` and of ``\\xhh``."""
        b, digit = self.builder, self._hexadecimal
        three = b.repeat(digit, 3, 3)
        u, x = self._text("\\u"), self._text("\\x")
        to_u, to_x = self._text("-\\u"), self._text("-\\x")
        found = []
        for i in range(16):
            this, higher = self._digits_from(i, i), self._digits_from(i + 1, 15)
            if i != 0xD:  # it may be the second half of a surrogate pair
                found.append(b.seq(u, this, three, to_u, higher, three))
            same = [b.seq(self._digits_from(j, j), to_x, this, self._digits_from(j, 15)) for j in range(16)]
            found.append(b.seq(x, this, b.alt(b.seq(digit, to_x, higher, digit), *same)))
        return b.alt(*found)

    def _digits_from(self, low: int, high: int) -> int:
        """One hexadecimal digit of a value from ``low`` to ``high``."""
        digits = _HEXADECIMAL[low : high + 1]
        return self._one(digits + digits.lower()) if digits else self.builder.nothing
