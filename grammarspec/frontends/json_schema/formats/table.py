"""The table of formats: one record for each format of strings that is enforced.

A format is described from both sides: by a language *inside* it, whose texts surely are of the format, and by one
*around* it, which surely has all of its texts. A schema asks for the first, and the negation of a schema for the
complement of the second; so neither ever allows what the specification does not. For most formats the two are the same.
Where they are not, the record says in words what each of them leaves out or adds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from grammarspec.frontends.json_schema.formats.base64_text import Base64
from grammarspec.frontends.json_schema.formats.dates import DatesAndTimes
from grammarspec.frontends.json_schema.formats.host_names import HostNames
from grammarspec.frontends.json_schema.formats.identifiers import Identifiers
from grammarspec.frontends.json_schema.formats.mail import Mailboxes
from grammarspec.frontends.json_schema.formats.regex_patterns import RegexPatterns
from grammarspec.frontends.json_schema.formats.resource_names import ResourceNames
from grammarspec.frontends.regex.alphabet import Alphabet
from grammarspec.grammars.builder import GrammarBuilder

__all__ = ["FORMATS", "INTEGER_FORMATS", "Format", "Formats"]

INTEGER_FORMATS: Final = {
    **{f"int{bits}": (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) for bits in (8, 16, 32, 64)},
    **{f"uint{bits}": (0, 2**bits - 1) for bits in (8, 16, 32, 64)},
}
"""Formats of numbers: the least and the greatest integer (OpenAPI Format Registry)."""


class Formats:
    """The formats of one grammar; the nodes of a format are made when it is first asked for.

    Attributes:
        builder: what makes the nodes.
        exact: the alphabet of the strings' insides, in which each character has one spelling.
    """

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

    def _make(self, name: str, language: Callable[[Formats], int], inside: bool) -> int:
        """The node of one side of a format, made once."""
        node = self._made.get((name, inside))
        if node is None:
            node = self._made[name, inside] = language(self)
        return node

    @cached_property
    def dates(self) -> DatesAndTimes:
        """Dates, times and durations."""
        return DatesAndTimes(self.builder, self.exact)

    @cached_property
    def identifiers(self) -> Identifiers:
        """UUIDs and JSON pointers."""
        return Identifiers(self.builder, self.exact)

    @cached_property
    def base64(self) -> Base64:
        """Bytes in base64."""
        return Base64(self.builder, self.exact)

    @cached_property
    def hosts(self) -> HostNames:
        """Names of hosts."""
        return HostNames(self.builder, self.exact)

    @cached_property
    def names(self) -> ResourceNames:
        """Addresses of the Internet and resource identifiers."""
        return ResourceNames(self.builder, self.exact)

    @cached_property
    def mail(self) -> Mailboxes:
        """Addresses of mail."""
        return Mailboxes(self.builder, self.exact, self.hosts, self.names)

    @cached_property
    def regex(self) -> RegexPatterns:
        """Patterns of ECMA-262."""
        return RegexPatterns(self.builder, self.exact)


@dataclass(frozen=True, slots=True)
class Format:
    """A format of strings.

    Attributes:
        name: the value of ``format``.
        inside: makes the node of texts that surely are of the format.
        around: makes the node of texts among which surely are all of the format; ``None``: ``inside`` is exact.
        narrowed: which texts of the format are not in ``inside``, in words of reports; ``""``: none worth a word.
        excluded: which texts ``around`` has, though some of them are not of the format; ``""``: ``inside`` is exact.
    """

    name: str
    inside: Callable[[Formats], int]
    around: Callable[[Formats], int] | None = None
    narrowed: str = ""
    excluded: str = ""


_LEAP_SECONDS: Final = "of 60 seconds at any time"
_ANY_MAILBOX: Final = "with parts of any length and any address literal"

FORMATS: Final[dict[str, Format]] = {
    form.name: form
    for form in (
        Format("date", lambda formats: formats.dates.date),
        Format(
            "time",
            lambda formats: formats.dates.time,
            lambda formats: formats.dates.maybe_time,
            excluded=_LEAP_SECONDS,
        ),
        Format(
            "date-time",
            lambda formats: formats.dates.date_time,
            lambda formats: formats.dates.maybe_date_time,
            narrowed="leap seconds only at the end of June and of December, UTC",
            excluded=_LEAP_SECONDS,
        ),
        Format(  # whether a second is a leap second depends on the offset, which is not known
            "time-local",
            lambda formats: formats.dates.local_time,
            lambda formats: formats.dates.maybe_local_time,
            excluded=_LEAP_SECONDS,
        ),
        Format(
            "date-time-local",
            lambda formats: formats.dates.local_date_time,
            lambda formats: formats.dates.maybe_local_date_time,
            excluded=_LEAP_SECONDS,
        ),
        Format("duration", lambda formats: formats.dates.duration),
        Format("uuid", lambda formats: formats.identifiers.uuid),
        Format("json-pointer", lambda formats: formats.identifiers.json_pointer),
        Format("relative-json-pointer", lambda formats: formats.identifiers.relative_json_pointer),
        Format(  # A-labels have "--" there; whether one is valid is no regular language
            "hostname",
            lambda formats: formats.hosts.ascii(reserved=False),
            lambda formats: formats.hosts.ascii(reserved=True),
            narrowed='no labels with "--" in the third and fourth place',
            excluded="of letters, digits and inner hyphens",
        ),
        Format(
            "idn-hostname",
            lambda formats: formats.hosts.international,
            lambda formats: formats.hosts.maybe_international,
            narrowed="no A-labels, bounded lengths of labels and names, contexts as far as an automaton can tell",
            excluded="whose ASCII characters are letters, digits, hyphens and dots",
        ),
        Format(
            "email",
            lambda formats: formats.mail.ascii,
            lambda formats: formats.mail.maybe_ascii,
            narrowed="local parts of at most 64 octets, address literals of IPv4 and IPv6 only",
            excluded=_ANY_MAILBOX,
        ),
        Format(
            "idn-email",
            lambda formats: formats.mail.international,
            lambda formats: formats.mail.maybe_international,
            narrowed="local parts of at most 64 octets, domains as of idn-hostname",
            excluded=_ANY_MAILBOX,
        ),
        Format("ipv4", lambda formats: formats.names.ipv4),
        Format("ipv6", lambda formats: formats.names.ipv6),
        Format("uri", lambda formats: formats.names.uri(international=False)),
        Format("url", lambda formats: formats.inside("uri")),
        Format("uri-reference", lambda formats: formats.names.reference(international=False)),
        Format(  # RFC 6570, section 2.2, reserves these operators for extensions
            "uri-template",
            lambda formats: formats.names.template(reserved=False),
            lambda formats: formats.names.template(reserved=True),
            narrowed="without the operators that RFC 6570 reserves",
            excluded="with the reserved operators",
        ),
        Format("iri", lambda formats: formats.names.uri(international=True)),
        Format("iri-reference", lambda formats: formats.names.reference(international=True)),
        Format(
            "byte",
            lambda formats: formats.base64.padded,
            lambda formats: formats.base64.maybe_padded,
            narrowed="the bits that pad are zero",
            excluded="with line breaks and any padding",
        ),
        Format(
            "regex",
            lambda formats: formats.regex.inside,
            lambda formats: formats.regex.around,
            narrowed="groups at most five deep, no references to groups and some rarer constructs",
            excluded="that do not begin with *, +, ? or )",
        ),
    )
}
"""The formats of strings that are enforced: those of JSON Schema, and some of the OpenAPI Format Registry."""
