"""The standard formats as regular languages over the exact alphabet.

What is not exactly its specification is a subset of it: leap seconds with an offset need one of whole or half hours,
host names have no A-labels (``xn--``, whose validity is that of the Unicode name they encode).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Final

from grammarspec.builder import GrammarBuilder
from grammarspec.frontends.json_schema.json_text import ExactAlphabet
from grammarspec.frontends.json_schema.resource_names import ResourceNames

__all__ = ["EXACT_FORMATS", "FORMATS", "REFUSED_FORMATS", "Formats"]

_ALPHA = ((0x41, 0x5A), (0x61, 0x7A))
_LETTER_OR_DIGIT = ((0x30, 0x39), *_ALPHA)
_PRINTABLE = tuple((ord(c), ord(c)) for c in "!#$%&'*+-/=?^_`{|}~")

REFUSED_FORMATS: Final = {
    "regex": "whether a text is a regular expression is not a regular language",
    "idn-hostname": "it depends on the bidirectional rule of IDNA",
    "idn-email": "it depends on the bidirectional rule of IDNA",
}
"""Formats of the specification that are not enforced, and why."""


class Formats:
    """The formats of one grammar, made when first asked for."""

    def __init__(self, builder: GrammarBuilder, exact: ExactAlphabet) -> None:
        self.builder, self.exact = builder, exact
        self._made: dict[str, int] = {}

    def node(self, name: str) -> int:
        """The texts of a format in :data:`FORMATS`."""
        node = self._made.get(name)
        if node is None:
            node = self._made[name] = FORMATS[name](self)
        return node

    # ------------------------------------------------------------------ shared pieces
    @cached_property
    def _digit(self) -> int:
        return self.builder.bytes_in(((0x30, 0x39),))

    @cached_property
    def _digits(self) -> int:
        return self.builder.repeat(self._digit, 1, None)

    @cached_property
    def _hexadecimal(self) -> int:
        return self.builder.bytes_in(((0x30, 0x39), (0x41, 0x46), (0x61, 0x66)))

    def _range(self, low: str, high: str) -> int:
        return self.builder.bytes_in(((ord(low), ord(high)),))

    def _text(self, text: str) -> int:
        return self.builder.literal(text)

    @cached_property
    def _names(self) -> ResourceNames:
        return ResourceNames(self.builder)

    # ------------------------------------------------------------------ dates and times (RFC 3339)
    def _date(self) -> int:
        """``full-date``: with the days that the month has, in the year."""
        b = self.builder
        digit, zero = self._digit, self._text("0")
        to_28 = b.alt(
            b.seq(zero, self._range("1", "9")),
            b.seq(self._text("1"), digit),
            b.seq(self._text("2"), self._range("0", "8")),
        )
        to_30 = b.alt(to_28, b.words(("29", "30")))
        to_31 = b.alt(to_30, self._text("31"))
        year = b.repeat(digit, 4, 4)
        days = b.alt(
            b.seq(b.words(("01-", "03-", "05-", "07-", "08-", "10-", "12-")), to_31),
            b.seq(b.words(("04-", "06-", "09-", "11-")), to_30),
            b.seq(self._text("02-"), to_28),
        )
        # the 29th of February: years that 4 divides but not 100, and those that 400 divides
        fours = [f"{n:02d}" for n in range(0, 100, 4)]
        leap_year = b.alt(b.seq(digit, digit, b.words(fours[1:])), b.seq(b.words(fours), self._text("00")))
        return b.alt(b.seq(year, self._text("-"), days), b.seq(leap_year, self._text("-02-29")))

    @cached_property
    def _hour_minute(self) -> int:
        b = self.builder
        hour = b.alt(b.seq(self._range("0", "1"), self._digit), b.seq(self._text("2"), self._range("0", "3")))
        return b.seq(hour, self._text(":"), self._range("0", "5"), self._digit)

    def _time(self) -> int:
        """``full-time``; a leap second is at 23:59:60 UTC."""
        b = self.builder
        fraction = b.optional(b.seq(self._text("."), self._digits))
        zulu = b.bytes_in(((0x5A, 0x5A), (0x7A, 0x7A)))
        offset = b.alt(zulu, b.seq(b.bytes_in(((0x2B, 0x2B), (0x2D, 0x2D))), self._hour_minute))
        usual = b.seq(self._hour_minute, self._text(":"), self._range("0", "5"), self._digit, fraction, offset)
        leaps = [b.seq(self._text("23:59:60"), fraction, zulu)]
        for hour in range(24):
            for minute, half, east in ((59, "00", (hour + 1) % 24), (29, "30", hour)):
                offsets = b.words((f"+{east:02d}:{half}", f"-{23 - hour:02d}:{half}"))
                leaps.append(b.seq(self._text(f"{hour:02d}:{minute}:60"), fraction, offsets))
        return b.alt(usual, *leaps)

    def _date_time(self) -> int:
        separator = self.builder.bytes_in(((0x54, 0x54), (0x74, 0x74)))
        return self.builder.seq(self.node("date"), separator, self.node("time"))

    def _duration(self) -> int:
        """ISO 8601 durations as in appendix A of RFC 3339: no unit is left out between two others."""
        b, digits = self.builder, self._digits

        def unit(letter: str, smaller: int | None = None) -> int:
            this = b.seq(digits, self._text(letter))
            return this if smaller is None else b.seq(this, b.optional(smaller))

        second = unit("S")
        minute = unit("M", second)
        time = b.seq(self._text("T"), b.alt(unit("H", minute), minute, second))
        day = unit("D")
        month = unit("M", day)
        date = b.seq(b.alt(unit("Y", month), month, day), b.optional(time))
        return b.seq(self._text("P"), b.alt(date, time, unit("W")))

    # ------------------------------------------------------------------ identifiers
    def _uuid(self) -> int:
        b, dash = self.builder, self._text("-")
        four, eight, twelve = (b.repeat(self._hexadecimal, n, n) for n in (4, 8, 12))
        return b.seq(eight, dash, four, dash, four, dash, four, dash, twelve)

    def _json_pointer(self) -> int:
        """RFC 6901, section 3."""
        b = self.builder
        plain = self.exact.codepoints(((0x00, 0x2E), (0x30, 0x7D), (0x7F, 0x10FFFF)))
        escaped = b.seq(self._text("~"), self._range("0", "1"))
        return b.repeat(b.seq(self._text("/"), b.repeat(b.alt(plain, escaped), 0, None)), 0, None)

    def _relative_json_pointer(self) -> int:
        b = self.builder
        up = b.alt(self._text("0"), b.seq(self._range("1", "9"), b.repeat(self._digit, 0, None)))
        return b.seq(up, b.alt(self._text("#"), self.node("json-pointer")))

    # ------------------------------------------------------------------ hosts and mail
    def _host_name(self, *, a_labels: bool) -> int:
        """RFC 1123, section 2.1: labels of up to 63 letters, digits and inner hyphens; 253 characters in all."""
        b = self.builder
        edge = b.bytes_in(_LETTER_OR_DIGIT)
        inner = b.bytes_in(((0x2D, 0x2D), *_LETTER_OR_DIGIT))
        label = b.seq(edge, b.optional(b.seq(b.repeat(inner, 0, 61), edge)))
        if not a_labels:  # RFC 5890, section 2.3.1: "--" in the third and fourth place is reserved
            label = b.both(label, b.complement(b.seq(inner, inner, self._text("--"), b.anything)))
        name = b.seq(label, b.repeat(b.seq(self._text("."), label), 0, None))
        return b.both(name, b.repeat(b.bytes_in(((0x2D, 0x2E), *_LETTER_OR_DIGIT)), 1, 253))

    def _hostname(self) -> int:
        return self._host_name(a_labels=False)

    def _email(self) -> int:
        """``Mailbox`` of RFC 5321, section 4.1.2; of the address literals those of IPv4 and IPv6."""
        b, exact = self.builder, self.exact
        atom = b.repeat(b.bytes_in((*_LETTER_OR_DIGIT, *_PRINTABLE)), 1, None)
        dotted = b.seq(atom, b.repeat(b.seq(self._text("."), atom), 0, None))
        plain = exact.codepoints(((0x20, 0x21), (0x23, 0x5B), (0x5D, 0x7E)))
        escaped = b.seq(exact.text("\\"), exact.codepoints(((0x20, 0x7E),)))
        quoted = b.seq(exact.text('"'), b.repeat(b.alt(plain, escaped), 0, None), exact.text('"'))
        local = b.both(b.alt(dotted, quoted), b.repeat(exact.codepoints(((0x20, 0x7E),)), 1, 64))
        address = b.alt(self.node("ipv4"), b.seq(self._text("IPv6:"), self.node("ipv6")))
        literal = b.seq(self._text("["), address, self._text("]"))
        return b.seq(local, self._text("@"), b.alt(self._host_name(a_labels=True), literal))


FORMATS: Final[dict[str, Callable[[Formats], int]]] = {
    "date": Formats._date,
    "time": Formats._time,
    "date-time": Formats._date_time,
    "duration": Formats._duration,
    "uuid": Formats._uuid,
    "json-pointer": Formats._json_pointer,
    "relative-json-pointer": Formats._relative_json_pointer,
    "hostname": Formats._hostname,
    "email": Formats._email,
    "ipv4": lambda formats: formats._names.ipv4,
    "ipv6": lambda formats: formats._names.ipv6,
    "uri": lambda formats: formats._names.uri(international=False),
    "uri-reference": lambda formats: formats._names.reference(international=False),
    "uri-template": lambda formats: formats._names.template(),
    "iri": lambda formats: formats._names.uri(international=True),
    "iri-reference": lambda formats: formats._names.reference(international=True),
}
"""The formats that are enforced."""

EXACT_FORMATS: Final = frozenset(FORMATS) - {"time", "date-time", "hostname", "email", "uri-template"}
"""Those whose texts are all of their specification's, so that the complement is right too."""
