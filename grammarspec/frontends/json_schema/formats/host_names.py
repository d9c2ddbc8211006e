"""Names of hosts: RFC 1123 (ASCII) and IDNA 2008 (RFC 5890 to 5893).

Whether a label ``xn--...`` (an A-label) is valid depends on the Unicode label that its Punycode encodes (RFC 3492). How
long a Unicode label (a U-label) is in Punycode depends on the sorted order of its characters. Neither is a regular
language. So names that surely are valid have no A-labels, and their U-labels have so few characters that they fit
whatever their Punycode is.

No name of a host holds a character that JSON escapes.
"""

from __future__ import annotations

from functools import cached_property
from typing import Final

from grammarspec.frontends.json_schema.formats import idna_classes as idna
from grammarspec.frontends.json_schema.formats.nodes import ALPHA, LETTER_OR_DIGIT, FormatNodes
from grammarspec.frontends.regex.charsets import ALL, LAST, Ranges, complement, intersect, single, subtract, union

__all__ = ["HostNames"]

_HYPHEN_LETTER_OR_DIGIT = union(single(0x2D), LETTER_OR_DIGIT)
_ASCII = (0x00, 0x7F)
_DOTS = ((0x2E, 0x2E), (0x3002, 0x3002), (0xFF0E, 0xFF0E), (0xFF61, 0xFF61))
# Characters that a rule of their own allows (RFC 5892, appendix A).
_JOINERS = ((0x200C, 0x200D),)
_MIDDLE_DOT, _KERAIA, _KATAKANA_DOT, _GERESH = single(0xB7), single(0x375), single(0x30FB), ((0x5F3, 0x5F4),)
_ARABIC_DIGITS, _EXTENDED_DIGITS = ((0x660, 0x669),), ((0x6F0, 0x6F9),)

_LABELS = 4
_OCTETS = (253 - (_LABELS - 1)) // _LABELS
"""The most octets of a label of an internationalised name, in Punycode: four labels and their dots have 251 of 253."""
U_LABEL_SIZES: Final = ((11, 11, LAST), (8, 23, LAST), (4, 38, LAST), (16, 16, 0x7FF), (12, 22, 0x7FF))
"""Bounds of labels that surely fit: characters that are not ASCII, characters in all, and the greatest code point."""


class HostNames(FormatNodes):
    """Names of hosts, in ASCII only or international."""

    # ------------------------------------------------------------------ ASCII
    def ascii(self, *, reserved: bool, longest: int = 63) -> int:
        """Labels of letters, digits and inner hyphens (RFC 1123, section 2.1); 253 characters in all.

        Without the ``reserved`` labels, "--" is not in the third and fourth place (RFC 5890, section 2.3.1).
        """
        b = self.builder
        label = self._ascii_label(reserved=reserved, longest=longest)
        name = b.seq(label, b.repeat(b.seq(b.literal(b"."), label), 0, None))
        return b.both(name, b.repeat(b.bytes_in(((0x2D, 0x2E), *LETTER_OR_DIGIT)), 1, 253))

    def _ascii_label(self, *, reserved: bool, longest: int) -> int:
        """One label; see :meth:`ascii`."""
        b = self.builder
        edge = b.bytes_in(LETTER_OR_DIGIT)
        inner = b.bytes_in(_HYPHEN_LETTER_OR_DIGIT)
        label = b.seq(edge, b.optional(b.seq(b.repeat(inner, 0, longest - 2), edge)))
        return label if reserved else b.both(label, b.complement(b.seq(inner, inner, b.literal(b"--"), b.anything)))

    # ------------------------------------------------------------------ Unicode
    @cached_property
    def international(self) -> int:
        """Names that surely are valid: ASCII names, and those of up to four labels that may be U-labels.

        If a label is written from right to left, the rule of RFC 5893 holds for all of them.
        """
        b = self.builder
        short = self._ascii_label(reserved=False, longest=_OCTETS)
        plain = b.both(self._u_label, b.repeat(self._one(complement(self._right_to_left)), 0, None))
        directed = b.alt(b.both(b.alt(short, self._u_label), self._from_left), b.both(self._u_label, self._from_right))
        return b.alt(self.ascii(reserved=False), self._few(b.alt(short, plain)), self._few(directed))

    @cached_property
    def maybe_international(self) -> int:
        """Names of at most 253 characters, at most 63 in a label; of ASCII only letters, digits and hyphens."""
        b = self.builder
        dot = self._one(_DOTS)
        label = b.repeat(self._one(subtract(complement(_DOTS), subtract((_ASCII,), _HYPHEN_LETTER_OR_DIGIT))), 1, 63)
        name = b.seq(label, b.repeat(b.seq(dot, label), 0, None))
        return b.both(name, b.repeat(self._one(ALL), 1, 253))

    def _few(self, label: int) -> int:
        """Names of as many labels as surely fit."""
        b = self.builder
        return b.seq(label, b.repeat(b.seq(self._one(_DOTS), label), 0, _LABELS - 1))

    def _one(self, ranges: Ranges) -> int:
        """One character of a set."""
        return self.builder.codepoints(ranges)

    def _some(self, ranges: Ranges, least: int = 0) -> int:
        """``least`` or more characters of a set."""
        return self.builder.repeat(self._one(ranges), least, None)

    @cached_property
    def _u_label(self) -> int:
        """U-labels by RFC 5891, section 4.2, and RFC 5892, whatever the direction of their letters."""
        b, c = self.builder, idna.classes()
        digits_or_dot = union(_ARABIC_DIGITS, _EXTENDED_DIGITS, _KATAKANA_DOT)
        first = self._one(union(c.first, digits_or_dot, _KERAIA))
        no_hyphens = b.complement(b.alt(b.seq(self._one(ALL), self._one(ALL), b.literal(b"--"), b.anything),
                                        b.seq(b.anything, b.literal(b"-"))))  # fmt: skip
        apart = [*c.composing, (complement(union(idna.HEBREW, _GERESH)), _GERESH)]
        pairs = b.alt(*(b.seq(self._one(left), self._one(right)) for left, right in apart))
        one_kind_of_digits = b.alt(self._some(complement(_ARABIC_DIGITS)), self._some(complement(_EXTENDED_DIGITS)))
        katakana_dot = b.alt(
            self._some(complement(_KATAKANA_DOT)), b.seq(b.anything, self._one(idna.JAPANESE), b.anything)
        )
        return b.both(
            b.seq(first, b.anything),
            b.repeat(self._cluster(union(c.starters, digits_or_dot, _GERESH)), 1, None),
            no_hyphens,
            b.complement(b.seq(b.anything, pairs, b.anything)),
            one_kind_of_digits,
            katakana_dot,
            b.alt(*(self._of_size(*size) for size in U_LABEL_SIZES)),
        )

    def _cluster(self, starters: Ranges) -> int:
        """A character with its marks in canonical order, or one that is allowed only between certain others.

        The latter are those with contextual rules (RFC 5892, appendix A): joiners, middle dot, keraia.
        """
        b, c = self.builder, idna.classes()
        marks = b.seq(*(self._some(group) for group in c.marks))
        nukta, virama = self._some(c.marks[0]), self._some(c.viramas, 1)
        dotted = b.repeat(b.literal("l\u00b7"), 1, None)
        joins_both = intersect(idna.JOINS_BOTH, c.starters)
        joins = union(joins_both, intersect(idna.JOINS_RIGHT, c.starters))
        not_joining = b.repeat(b.seq(self._one(joins_both), b.literal("\u200c")), 1, None)
        return b.alt(
            b.seq(self._one(starters), marks),
            b.seq(self._one(starters), nukta, virama, self._one(_JOINERS)),
            b.seq(not_joining, self._one(joins), marks),
            b.seq(dotted, b.literal(b"l"), marks),
            b.seq(self._some(_KERAIA, 1), self._one(intersect(idna.GREEK, c.starters)), marks),
        )

    def _of_size(self, foreign: int, characters: int, last: int) -> int:
        """Texts within the bounds of an entry of :data:`U_LABEL_SIZES`."""
        b = self.builder
        ascii_run, other = self._some((_ASCII,)), self._one(((_ASCII[1] + 1, last),))
        return b.both(
            b.seq(ascii_run, b.repeat(b.seq(other, ascii_run), 0, foreign)), b.repeat(self._one(ALL), 1, characters)
        )

    # ------------------------------------------------------------------ direction (RFC 5893, section 2)
    @cached_property
    def _right_to_left(self) -> Ranges:
        """The characters that make a label one that is written from right to left."""
        c = idna.classes()
        return union(c.right_to_left, c.arabic_numbers, _ARABIC_DIGITS, _GERESH)

    @cached_property
    def _neutral(self) -> Ranges:
        """The characters that may stand within labels of either direction."""
        c = idna.classes()
        return union(c.neutral, c.nonspacing, _JOINERS)

    @cached_property
    def _from_left(self) -> int:
        """Labels that are written from left to right: rules 1, 5 and 6."""
        b, c = self.builder, idna.classes()
        letter = union(c.left_to_right, ALPHA)
        digits = union(c.numbers, _EXTENDED_DIGITS)
        dots = union(_KATAKANA_DOT, _KERAIA, _MIDDLE_DOT)  # the letters that they go with are written from the left
        within, marks = self._some(union(letter, digits, dots, self._neutral)), self._some(c.nonspacing)
        end = b.seq(within, self._one(union(letter, digits)))
        return b.seq(self._one(letter), b.optional(end), marks)

    @cached_property
    def _from_right(self) -> int:
        """Labels that are written from right to left: rules 1 to 4. European and Arabic numbers do not mix."""
        b, c = self.builder, idna.classes()
        letter = union(c.right_to_left, _GERESH)
        kinds = []
        for digits in (union(c.numbers, _EXTENDED_DIGITS), union(c.arabic_numbers, _ARABIC_DIGITS)):
            within, marks = self._some(union(letter, digits, self._neutral)), self._some(c.nonspacing)
            end = b.seq(within, self._one(union(letter, digits)))
            kinds.append(b.seq(self._one(letter), b.optional(end), marks))
        return b.alt(*kinds)
