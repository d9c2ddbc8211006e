"""The standard formats as regular languages over the exact alphabet.

A format is described from both sides: by a language *inside* it, whose texts surely are of the format, and by one
*around* it, which surely has all of its texts. The first is what a schema asks for, the complement of the second is
what the negation of a schema asks for; so neither ever allows what the specification does not. For most formats they
are the same. Where they are not, :data:`FORMATS` has both, and what lies between them is said there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from grammarspec.frontends.json_schema.formats.host_names import HostNames
from grammarspec.frontends.json_schema.formats.regex_format import RegexFormat
from grammarspec.frontends.json_schema.formats.resource_names import ResourceNames
from grammarspec.frontends.regex.alphabet import Alphabet
from grammarspec.grammars.builder import GrammarBuilder

__all__ = ["FORMATS", "INTEGER_FORMATS", "Format", "Formats"]

_ALPHA = ((0x41, 0x5A), (0x61, 0x7A))
_LETTER_OR_DIGIT = ((0x30, 0x39), *_ALPHA)
_PRINTABLE = tuple((ord(c), ord(c)) for c in "!#$%&'*+-/=?^_`{|}~")
_FOREIGN = (0x80, 0x10FFFF)

INTEGER_FORMATS: Final = {
    **{f"int{bits}": (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) for bits in (8, 16, 32, 64)},
    **{f"uint{bits}": (0, 2**bits - 1) for bits in (8, 16, 32, 64)},
}
"""Formats of numbers: the least and the greatest integer (OpenAPI Format Registry)."""


class Formats:
    """The formats of one grammar, made when first asked for."""

    def __init__(self, builder: GrammarBuilder, exact: Alphabet) -> None:
        self.builder, self.exact = builder, exact
        self._made: dict[tuple[str, bool], int] = {}

    def inside(self, name: str) -> int:
        """Texts that surely are of a format in :data:`FORMATS`."""
        return self._make(name, FORMATS[name].inside, True)

    def around(self, name: str) -> int:
        """Texts among which surely are all of a format in :data:`FORMATS`."""
        around = FORMATS[name].around
        return self.inside(name) if around is None else self._make(name, around, False)

    def _make(self, name: str, describe: Callable[[Formats], int], inside: bool) -> int:
        node = self._made.get((name, inside))
        if node is None:
            node = self._made[name, inside] = describe(self)
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

    @cached_property
    def _hosts(self) -> HostNames:
        return HostNames(self.builder)

    @cached_property
    def _regex(self) -> RegexFormat:
        return RegexFormat(self.builder, self.exact)

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

    @cached_property
    def _fraction(self) -> int:
        return self.builder.optional(self.builder.seq(self._text("."), self._digits))

    @cached_property
    def _zulu(self) -> int:
        return self.builder.bytes_in(((0x5A, 0x5A), (0x7A, 0x7A)))

    @cached_property
    def _offset(self) -> int:
        b = self.builder
        return b.alt(self._zulu, b.seq(b.bytes_in(((0x2B, 0x2B), (0x2D, 0x2D))), self._hour_minute))

    @cached_property
    def _local_time(self) -> int:
        """``partial-time`` without leap seconds."""
        b = self.builder
        return b.seq(self._hour_minute, self._text(":"), self._range("0", "5"), self._digit, self._fraction)

    @cached_property
    def _usual_time(self) -> int:
        """``full-time`` without leap seconds."""
        return self.builder.seq(self._local_time, self._offset)

    @cached_property
    def _leap_seconds(self) -> tuple[int, int]:
        """Times of 23:59:60 UTC, with the offset that makes the local time what it is.

        The first are those where the local date is that of UTC, the second those where it is the day after.
        """
        b = self.builder
        two = b.seq(self._digit, self._digit)
        begin = b.seq(self._text(":60"), self._fraction)
        minutes = b.alt(
            *(
                b.seq(two, self._text(f":{minute:02d}"), begin, b.alt(
                    b.seq(self._text("+"), two, self._text(f":{(minute + 1) % 60:02d}")),
                    b.seq(self._text("-"), two, self._text(f":{59 - minute:02d}")),
                ))
                for minute in range(60)
            )
        )  # fmt: skip
        whole = self._text(":00")
        broken = b.both(b.seq(self._text(":"), two), b.complement(whole))
        later, same = [], []
        for hour in range(24):
            local = b.seq(self._text(f"{hour:02d}:"), two, begin)
            same.append(b.seq(local, self._text(f"-{23 - hour:02d}:"), two))
            later.append(b.seq(local, self._text(f"+{hour:02d}"), broken))
            if hour < 23:
                later.append(b.seq(local, self._text(f"+{hour + 1:02d}"), whole))
        utc = b.seq(self._text("23:59"), begin, b.alt(self._zulu, self._text("+00:00")))
        return b.alt(utc, b.both(minutes, b.alt(*same))), b.both(minutes, b.alt(*later))

    @cached_property
    def _maybe_leap_time(self) -> int:
        b = self.builder
        return b.seq(self._hour_minute, self._text(":60"), self._fraction)

    def _time(self) -> int:
        """``full-time``; a leap second is at 23:59:60 UTC."""
        return self.builder.alt(self._usual_time, *self._leap_seconds)

    def _maybe_time(self) -> int:
        return self.builder.alt(self._usual_time, self.builder.seq(self._maybe_leap_time, self._offset))

    @cached_property
    def _date_and_separator(self) -> int:
        return self.builder.seq(self.inside("date"), self._separator)

    @cached_property
    def _separator(self) -> int:
        return self.builder.bytes_in(((0x54, 0x54), (0x74, 0x74)))

    def _date_time(self) -> int:
        """``date-time``; leap seconds are at the ends of June and December."""
        b = self.builder
        same, later = self._leap_seconds
        year = b.repeat(self._digit, 4, 4)
        leap = b.alt(
            b.seq(b.words(("-06-30", "-12-31")), self._separator, same),
            b.seq(b.words(("-07-01", "-01-01")), self._separator, later),
        )
        return b.alt(b.seq(self._date_and_separator, self._usual_time), b.seq(year, leap))

    def _maybe_date_time(self) -> int:
        return self.builder.seq(self._date_and_separator, self.around("time"))

    def _time_local(self) -> int:
        return self._local_time

    def _maybe_time_local(self) -> int:
        return self.builder.alt(self._local_time, self._maybe_leap_time)

    def _date_time_local(self) -> int:
        return self.builder.seq(self._date_and_separator, self._local_time)

    def _maybe_date_time_local(self) -> int:
        return self.builder.seq(self._date_and_separator, self._maybe_time_local())

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
        return b.seq(up, b.alt(self._text("#"), self.inside("json-pointer")))

    # ------------------------------------------------------------------ bytes (RFC 4648)
    def _base64(self) -> int:
        """Section 4: padded, and the bits that pad are zero (section 3.5)."""
        b = self.builder
        digit = b.bytes_in((*_LETTER_OR_DIGIT, (0x2B, 0x2B), (0x2F, 0x2F)))
        two_bits = b.bytes_in([(ord(c), ord(c)) for c in "AQgw"])
        four_bits = b.bytes_in([(ord(c), ord(c)) for c in "AEIMQUYcgkosw048"])
        ends = b.alt(b.seq(digit, two_bits, self._text("==")), b.seq(digit, digit, four_bits, self._text("=")))
        return b.seq(b.repeat(b.repeat(digit, 4, 4), 0, None), b.optional(ends))

    def _maybe_base64(self) -> int:
        """With any bits that pad, and line breaks anywhere (section 3.1 leaves them to other specifications)."""
        digit = self.exact.codepoints(
            ((0x0A, 0x0A), (0x0D, 0x0D), (0x2B, 0x2B), (0x2F, 0x2F), (0x3D, 0x3D), *_LETTER_OR_DIGIT)
        )
        return self.builder.repeat(digit, 0, None)

    # ------------------------------------------------------------------ mail (RFC 5321, RFC 6531)
    def _local_part(self, *, international: bool) -> int:
        """``Local-part`` of RFC 5321, section 4.1.2."""
        b, exact = self.builder, self.exact
        foreign = (_FOREIGN,) if international else ()
        atom = b.repeat(b.codepoints((*_LETTER_OR_DIGIT, *_PRINTABLE, *foreign)), 1, None)
        dotted = b.seq(atom, b.repeat(b.seq(self._text("."), atom), 0, None))
        plain = exact.codepoints(((0x20, 0x21), (0x23, 0x5B), (0x5D, 0x7E), *foreign))
        escaped = b.seq(exact.text("\\"), exact.codepoints(((0x20, 0x7E),)))
        quoted = b.seq(exact.text('"'), b.repeat(b.alt(plain, escaped), 0, None), exact.text('"'))
        return b.alt(dotted, quoted)

    def _mailbox(self, domain: int, *, international: bool) -> int:
        """Mailboxes with a local part of at most 64 octets (RFC 5321, section 4.5.3.1.1).

        The tag of an address literal must be registered (section 4.1.3), and only that of IPv6 is.
        """
        b = self.builder
        octet = b.alt(self.exact.codepoints(((0x00, 0x7F),)), b.bytes_in(((0x80, 0xFF),)))  # of the text, not of JSON
        local = b.both(self._local_part(international=international), b.repeat(octet, 1, 64))
        address = b.alt(self._names.ipv4, b.seq(self._text("IPv6:"), self._names.ipv6_of_mail))
        return b.seq(local, self._text("@"), b.alt(domain, b.seq(self._text("["), address, self._text("]"))))

    def _maybe_mailbox(self, domain: int, *, international: bool) -> int:
        b = self.builder
        content = b.repeat(self.exact.codepoints(((0x21, 0x5A), (0x5E, 0x7E))), 1, None)
        literal = b.seq(self._text("["), content, self._text("]"))
        return b.seq(self._local_part(international=international), self._text("@"), b.alt(domain, literal))

    def _email(self) -> int:
        return self._mailbox(self._hosts.ascii(reserved=True), international=False)

    def _maybe_email(self) -> int:
        edge, inner = self.builder.bytes_in(_LETTER_OR_DIGIT), self.builder.bytes_in((*_LETTER_OR_DIGIT, (0x2D, 0x2E)))
        domain = self.builder.seq(edge, self.builder.repeat(inner, 0, None))  # of any length
        return self._maybe_mailbox(domain, international=False)

    def _idn_email(self) -> int:
        return self._mailbox(self._hosts.international, international=True)

    def _maybe_idn_email(self) -> int:
        inner = self.builder.codepoints((*_LETTER_OR_DIGIT, (0x2D, 0x2E), _FOREIGN))
        return self._maybe_mailbox(self.builder.repeat(inner, 1, None), international=True)


@dataclass(frozen=True, slots=True)
class Format:
    """A format from both sides.

    Attributes:
        inside: Makes the node of texts that surely are of the format.
        around: Makes that of texts among which surely are all of the format; ``None``: ``inside`` is exact.
    """

    inside: Callable[[Formats], int]
    around: Callable[[Formats], int] | None = None


_URI: Final = Format(lambda formats: formats._names.uri(international=False))

FORMATS: Final[dict[str, Format]] = {
    "date": Format(Formats._date),
    # between: seconds of 60 at another time than 23:59:60 UTC, on another day than the last of June or December
    "time": Format(Formats._time, Formats._maybe_time),
    "date-time": Format(Formats._date_time, Formats._maybe_date_time),
    # between: seconds of 60, as the offset is not known
    "time-local": Format(Formats._time_local, Formats._maybe_time_local),
    "date-time-local": Format(Formats._date_time_local, Formats._maybe_date_time_local),
    "duration": Format(Formats._duration),
    "uuid": Format(Formats._uuid),
    "json-pointer": Format(Formats._json_pointer),
    "relative-json-pointer": Format(Formats._relative_json_pointer),
    # between: labels with "--" in the third and fourth place, which A-labels are
    "hostname": Format(
        lambda formats: formats._hosts.ascii(reserved=False), lambda formats: formats._hosts.ascii(reserved=True)
    ),
    # between: what host_names.py says
    "idn-hostname": Format(
        lambda formats: formats._hosts.international, lambda formats: formats._hosts.maybe_international
    ),
    # between: long local parts and domains, other address literals, what host_names.py says
    "email": Format(Formats._email, Formats._maybe_email),
    "idn-email": Format(Formats._idn_email, Formats._maybe_idn_email),
    "ipv4": Format(lambda formats: formats._names.ipv4),
    "ipv6": Format(lambda formats: formats._names.ipv6),
    "uri": _URI,
    "url": _URI,
    "uri-reference": Format(lambda formats: formats._names.reference(international=False)),
    # between: the operators that RFC 6570, section 2.2, reserves for extensions
    "uri-template": Format(
        lambda formats: formats._names.template(reserved=False), lambda formats: formats._names.template(reserved=True)
    ),
    "iri": Format(lambda formats: formats._names.uri(international=True)),
    "iri-reference": Format(lambda formats: formats._names.reference(international=True)),
    "byte": Format(Formats._base64, Formats._maybe_base64),
    # between: what regex_format.py says
    "regex": Format(lambda formats: formats._regex.inside, lambda formats: formats._regex.around),
}
"""The formats of strings that are enforced: those of JSON Schema, and some of the OpenAPI Format Registry."""
