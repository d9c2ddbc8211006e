"""How JSON values are spelled: the nodes that every part of one grammar shares.

Strings have two alphabets:

* *free*: any spelling that JSON allows, ``\\u`` escapes of surrogates in pairs only (RFC 8259, section 7);
* *exact*: one spelling per character. Patterns, formats and keys are regular languages over *characters*; with one
  spelling each, intersection and complement of spellings are intersection and complement of strings. It is what
  ``json.dumps(text, ensure_ascii=False)`` writes: short escapes, ``\\u00xx`` for the other control characters, all
  else raw.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from json.encoder import encode_basestring as quote

from grammarspec.builder import GrammarBuilder
from grammarspec.frontends.regex.charsets import Ranges
from grammarspec.frontends.regex.lower import Alphabet

__all__ = ["DIGITS", "LETTER_E", "NONZERO", "ExactAlphabet", "JsonText", "quote"]

DIGITS = ((0x30, 0x39),)
NONZERO = ((0x31, 0x39),)
LETTER_E = ((0x45, 0x45), (0x65, 0x65))

_LAST = 0x10FFFF
_ESCAPED = (*range(0x20), 0x22, 0x5C)
_ESCAPES = {code: quote(chr(code))[1:-1] for code in _ESCAPED}
_RAW = ((0x20, 0x21), (0x23, 0x5B), (0x5D, _LAST))

# Whitespace is bounded so that no model can write it for ever: spaces or tabs on the line, or one line break and the
# indentation of the next line (the widest that `json.dumps(indent=4)` writes 30 levels deep).
_SPACES, _INDENT = 8, 120


class ExactAlphabet(Alphabet):
    """Text inside a JSON string, one spelling per character (what the regex front-end lowers onto)."""

    def __init__(self, builder: GrammarBuilder) -> None:
        self.builder = builder
        self._classes: dict[Ranges, int] = {}
        self.character = self.codepoints(((0, _LAST),))
        """Any one character."""
        self._any_text = builder.repeat(self.character, 0, None)

    @property
    def any_text(self) -> int:
        """Any text."""
        return self._any_text

    def codepoints(self, ranges: Ranges) -> int:
        """One character whose code point is within the inclusive ranges."""
        node = self._classes.get(ranges)
        if node is None:
            node = self._classes[ranges] = self._spell(ranges)
        return node

    def over(self, builder: GrammarBuilder) -> ExactAlphabet:
        """The same nodes in a copy of the builder."""
        new = ExactAlphabet.__new__(ExactAlphabet)
        new.builder, new._classes = builder, self._classes.copy()
        new.character, new._any_text = self.character, self._any_text
        return new

    def _spell(self, ranges: Ranges) -> int:
        builder = self.builder
        raw = [
            (max(low, first), min(high, last))
            for low, high in ranges
            for first, last in _RAW
            if low <= last and high >= first
        ]
        escaped = [_ESCAPES[code] for code in _ESCAPED if any(low <= code <= high for low, high in ranges)]
        parts = []
        if raw:
            parts.append(builder.codepoints(raw))
        if escaped:
            parts.append(builder.words(escaped) if len(escaped) > 1 else builder.literal(escaped[0]))
        return builder.alt(*parts)

    def text(self, text: str) -> int:
        """Exactly this text."""
        return self.builder.literal(quote(text)[1:-1])

    def words(self, texts: Sequence[str]) -> int:
        """Any one of these texts."""
        return self.builder.words([quote(text)[1:-1] for text in texts])


class JsonText:
    """The shared nodes of one grammar, made when first asked for."""

    def __init__(self, builder: GrammarBuilder, *, compact: bool) -> None:
        self.builder = builder
        self.compact = compact
        literal = builder.literal
        self.quotation = literal(b'"')
        self.null, self.false, self.true = literal(b"null"), literal(b"false"), literal(b"true")
        if compact:
            self.whitespace = builder.empty
            self.comma, self.colon = literal(b","), literal(b":")
            self.open_object, self.close_object = literal(b"{"), literal(b"}")
            self.open_array, self.close_array = literal(b"["), literal(b"]")
        else:
            blank = builder.bytes_in(((0x20, 0x20), (0x09, 0x09)))
            line_break = builder.seq(builder.optional(literal(b"\r")), literal(b"\n"))
            white = self.whitespace = builder.alt(
                builder.repeat(blank, 0, _SPACES), builder.seq(line_break, builder.repeat(blank, 0, _INDENT))
            )
            self.comma = builder.seq(white, literal(b","), white)
            self.colon = builder.seq(white, literal(b":"), white)
            self.open_object = builder.seq(literal(b"{"), white)
            self.close_object = builder.seq(white, literal(b"}"))
            self.open_array = builder.seq(literal(b"["), white)
            self.close_array = builder.seq(white, literal(b"]"))

    def make_common(self) -> None:
        """Make what most schemas use."""
        _ = (self.string, self.number, self.integer, self.key, self.value, self.zero_fraction)

    def over(self, builder: GrammarBuilder) -> JsonText:
        """The same nodes in a copy of the builder."""
        new = JsonText.__new__(JsonText)
        new.__dict__.update(self.__dict__)
        new.builder = builder
        new.exact = self.exact.over(builder)
        return new

    @cached_property
    def empty_object(self) -> int:
        """``{}``."""
        return self.builder.seq(self.open_object, self.builder.literal(b"}"))

    @cached_property
    def empty_array(self) -> int:
        """``[]``."""
        return self.builder.seq(self.open_array, self.builder.literal(b"]"))

    @cached_property
    def exact(self) -> ExactAlphabet:
        """The alphabet with one spelling per character."""
        return ExactAlphabet(self.builder)

    @cached_property
    def free_character(self) -> int:
        """One character of a string in any spelling; a pair of surrogate escapes is one character."""
        b = self.builder
        hexadecimal = b.bytes_in(((0x30, 0x39), (0x41, 0x46), (0x61, 0x66)))
        two = b.repeat(hexadecimal, 2, 2)
        three = b.repeat(hexadecimal, 3, 3)
        letter_d = b.bytes_in(((0x44, 0x44), (0x64, 0x64)))
        plain = b.alt(
            b.seq(b.bytes_in(((0x30, 0x39), (0x41, 0x43), (0x45, 0x46), (0x61, 0x63), (0x65, 0x66))), three),
            b.seq(letter_d, b.bytes_in(((0x30, 0x37),)), two),
        )
        high = b.seq(letter_d, b.bytes_in(((0x38, 0x39), (0x41, 0x42), (0x61, 0x62))), two)
        low = b.seq(letter_d, b.bytes_in(((0x43, 0x46), (0x63, 0x66))), two)
        # b f n r t, the quotation mark, both slashes
        short = b.bytes_in(((0x22, 0x22), (0x2F, 0x2F), (0x5C, 0x5C), *((ord(c), ord(c)) for c in "bfnrt")))
        unicode = b.seq(b.literal(b"u"), b.alt(plain, b.seq(high, b.literal(b"\\u"), low)))
        return b.alt(b.codepoints(_RAW), b.seq(b.literal(b"\\"), b.alt(short, unicode)))

    @cached_property
    def string(self) -> int:
        """Any string."""
        return self.free_string(0, None)

    def free_string(self, least: int, most: int | None) -> int:
        """Any string of ``least`` to ``most`` characters."""
        b = self.builder
        return b.terminal(b.seq(self.quotation, b.repeat(self.free_character, least, most), self.quotation))

    def exact_string(self, text: int, *, asserting: bool = False) -> int:
        """A string whose text, in the exact alphabet, is of the regular node ``text``.

        Zero-width assertions look at the whole of their terminal, so with them (``asserting``) the quotation marks
        must stay outside.
        """
        b = self.builder
        if asserting:
            return b.seq(self.quotation, b.terminal(text), self.quotation)
        return b.terminal(b.seq(self.quotation, text, self.quotation))

    @cached_property
    def key(self) -> int:
        """Any key."""
        return self.exact_string(self.exact.any_text)

    def key_except(self, names: Iterable[str]) -> int:
        """Any key but these."""
        b = self.builder
        taken = [quote(name) for name in names]
        if not taken:
            return self.key
        text = b.seq(self.quotation, self.exact.any_text, self.quotation)
        return b.terminal(b.both(text, b.complement(b.words(taken))))

    @cached_property
    def integer(self) -> int:
        """Any integer: plain, with a fraction of zeros, or with an exponent that makes it whole."""
        b = self.builder
        digits = b.repeat(b.bytes_in(DIGITS), 0, None)
        plain = b.alt(b.literal(b"0"), b.seq(b.bytes_in(NONZERO), digits))
        magnitude = b.alt(b.seq(plain, b.optional(self.zero_fraction)), self.scientific_integer)
        return b.terminal(b.seq(b.optional(b.literal(b"-")), magnitude))

    @cached_property
    def strict_integer(self) -> int:
        """Any integer as draft 4 has it: no fraction, no exponent."""
        b = self.builder
        plain = b.alt(b.literal(b"0"), b.seq(b.bytes_in(NONZERO), b.repeat(b.bytes_in(DIGITS), 0, None)))
        return b.terminal(b.seq(b.optional(b.literal(b"-")), plain))

    @cached_property
    def zero_fraction(self) -> int:
        """``.0``, ``.00`` and so on."""
        b = self.builder
        return b.seq(b.literal(b"."), b.repeat(b.literal(b"0"), 1, None))

    @cached_property
    def scientific_integer(self) -> int:
        """``d.ddde±x`` that is surely whole: at most 16 digits of fraction and an exponent of at least 16.

        This is how ``json.dumps`` spells whole floats from 1e16 on.
        """
        b = self.builder
        digit = b.bytes_in(DIGITS)
        fraction = b.seq(b.literal(b"."), b.repeat(digit, 1, 16))
        exponent = b.alt(
            b.seq(b.literal(b"1"), b.bytes_in(((0x36, 0x39),))),
            b.seq(b.bytes_in(((0x32, 0x39),)), digit),
            b.seq(b.bytes_in(((0x31, 0x32),)), digit, digit),
            b.seq(b.literal(b"30"), b.bytes_in(((0x30, 0x37),))),
        )
        sign = b.optional(b.literal(b"+"))
        return b.seq(b.bytes_in(NONZERO), b.optional(fraction), b.bytes_in(LETTER_E), sign, exponent)

    @cached_property
    def number(self) -> int:
        """Any number."""
        b = self.builder
        digit = b.bytes_in(DIGITS)
        some, any_digits = b.repeat(digit, 1, None), b.repeat(digit, 0, None)
        whole = b.alt(b.literal(b"0"), b.seq(b.bytes_in(NONZERO), any_digits))
        sign = b.optional(b.bytes_in(((0x2B, 0x2B), (0x2D, 0x2D))))
        exponent = b.seq(b.bytes_in(LETTER_E), sign, some)
        fraction = b.seq(b.literal(b"."), some)
        return b.terminal(b.seq(b.optional(b.literal(b"-")), whole, b.optional(fraction), b.optional(exponent)))

    @cached_property
    def _anything(self) -> tuple[int, int, int]:
        """Any value, any object, any array: they contain each other."""
        b = self.builder
        rule = b.rule("value")
        value = b.call(rule)
        member = b.seq(self.key, self.colon, value)
        members = b.seq(member, b.repeat(b.seq(self.comma, member), 0, None), self.close_object)
        any_object = b.seq(self.open_object, b.alt(members, b.literal(b"}")))
        items = b.seq(value, b.repeat(b.seq(self.comma, value), 0, None), self.close_array)
        any_array = b.seq(self.open_array, b.alt(items, b.literal(b"]")))
        b.define(rule, b.alt(self.string, self.number, any_object, any_array, self.true, self.false, self.null))
        return value, any_object, any_array

    @property
    def value(self) -> int:
        """Any value."""
        return self._anything[0]

    @property
    def object(self) -> int:
        """Any object."""
        return self._anything[1]

    @property
    def array(self) -> int:
        """Any array."""
        return self._anything[2]
