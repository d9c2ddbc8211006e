"""Addresses of the Internet and resource identifiers: RFC 3986 (URI), RFC 3987 (IRI), RFC 6570 (URI templates).

None of them holds a quotation mark, a backslash or a control character, so that JSON escapes none of their characters.
"""

from __future__ import annotations

from functools import cached_property

from grammarspec.frontends.json_schema.formats.nodes import LETTER_OR_DIGIT, FormatNodes, characters
from grammarspec.frontends.regex.alphabet import Alphabet
from grammarspec.frontends.regex.charsets import Ranges, subtract, union
from grammarspec.grammars.builder import GrammarBuilder

__all__ = ["ResourceNames"]

# The names are those of the grammars in RFC 3986 (appendix A) and RFC 3987 (section 2.2).
_UNRESERVED = union(LETTER_OR_DIGIT, characters("-._~"))
_SUB_DELIMS = characters("!$&'()*+,;=")
_PLANES = tuple((plane << 16, (plane << 16) + 0xFFFD) for plane in range(1, 14))
_UCSCHAR: Ranges = ((0xA0, 0xD7FF), (0xF900, 0xFDCF), (0xFDF0, 0xFFEF), *_PLANES, (0xE1000, 0xEFFFD))
_IPRIVATE: Ranges = ((0xE000, 0xF8FF), (0xF0000, 0xFFFFD), (0x100000, 0x10FFFD))


class ResourceNames(FormatNodes):
    """Addresses and resource identifiers. ``international`` is for IRIs, in which more characters are unreserved."""

    def __init__(self, builder: GrammarBuilder, exact: Alphabet) -> None:
        super().__init__(builder, exact)
        self._characters: dict[tuple[str, bool], int] = {}

    # ------------------------------------------------------------------ addresses
    @cached_property
    def ipv4(self) -> int:
        """Four decimal octets without leading zeros (RFC 3986, ``IPv4address``)."""
        b = self.builder
        digit = self._digit
        octet = b.alt(
            b.seq(b.optional(self._range("1", "9")), digit),
            b.seq(b.literal(b"1"), digit, digit),
            b.seq(b.literal(b"2"), self._range("0", "4"), digit),
            b.seq(b.literal(b"25"), self._range("0", "5")),
        )
        return b.seq(octet, b.repeat(b.seq(b.literal(b"."), octet), 3, 3))

    @cached_property
    def ipv6(self) -> int:
        """Eight groups, of which one run of zeros may be left out (RFC 3986, ``IPv6address``)."""
        return self._ipv6(1)

    @cached_property
    def ipv6_of_mail(self) -> int:
        """The same where the run is of at least two groups (RFC 5321, ``IPv6-addr``)."""
        return self._ipv6(2)

    def _ipv6(self, least: int) -> int:
        """Addresses in which ``::`` stands for ``least`` groups or more."""
        b = self.builder
        group = b.repeat(self._hexadecimal, 1, 4)
        colon, gap = b.literal(b":"), b.literal(b"::")
        group_colon = b.seq(group, colon)
        last_two = b.alt(b.seq(group, colon, group), self.ipv4)
        parts = [b.seq(b.repeat(group_colon, 6, 6), last_two)]
        for before in range(9 - least):  # at most that many groups before the gap
            after = 8 - least - before
            left = b.optional(b.seq(b.repeat(group_colon, 0, before - 1), group)) if before else b.empty
            if after >= 2:
                right = b.seq(b.repeat(group_colon, after - 2, after - 2), last_two)
            else:
                right = group if after else b.empty
            parts.append(b.seq(left, gap, right))
        return b.alt(*parts)

    # ------------------------------------------------------------------ characters
    def _character(self, extra: str, international: bool) -> int:
        """``unreserved / pct-encoded / sub-delims`` and the ``extra`` characters."""
        key = (extra, international)
        node = self._characters.get(key)
        if node is None:
            b = self.builder
            in_ascii = union(_UNRESERVED, _SUB_DELIMS, characters(extra))
            plain = b.codepoints(union(in_ascii, _UCSCHAR)) if international else b.bytes_in(in_ascii)
            node = self._characters[key] = b.alt(plain, self._encoded)
        return node

    @cached_property
    def _encoded(self) -> int:
        """``pct-encoded``."""
        return self.builder.seq(self.builder.literal(b"%"), self._hexadecimal, self._hexadecimal)

    def _any(self, extra: str, international: bool) -> int:
        """Any number of these characters."""
        return self.builder.repeat(self._character(extra, international), 0, None)

    # ------------------------------------------------------------------ identifiers
    def _authority(self, international: bool) -> int:
        """``[userinfo "@"] host [":" port]``. An IPv4 address is a registered name, too."""
        b = self.builder
        user = b.seq(self._any(":", international), b.literal(b"@"))
        future = b.seq(
            self._one_of("Vv"),
            b.repeat(self._hexadecimal, 1, None),
            b.literal(b"."),
            b.repeat(b.bytes_in(union(_UNRESERVED, _SUB_DELIMS, characters(":"))), 1, None),
        )
        address = b.seq(b.literal(b"["), b.alt(self.ipv6, future), b.literal(b"]"))
        port = b.seq(b.literal(b":"), b.repeat(self._digit, 0, None))
        return b.seq(b.optional(user), b.alt(address, self._any("", international)), b.optional(port))

    def _path(self, first: str, international: bool) -> int:
        """A path without authority: absolute, or with a first segment of these extra characters, or empty."""
        b = self.builder
        slash, segment = b.literal(b"/"), self._any(":@", international)
        more = b.repeat(b.seq(slash, segment), 0, None)
        begun = b.seq(self._character(":@", international), segment, more)
        rootless = b.seq(b.repeat(self._character(first, international), 1, None), more)
        return b.alt(b.seq(slash, b.optional(begun)), rootless, b.empty)

    def _hierarchy(self, first: str, international: bool) -> int:
        """``hier-part``, or ``relative-part`` if the characters ``first`` have no colon."""
        b = self.builder
        segments = b.repeat(b.seq(b.literal(b"/"), self._any(":@", international)), 0, None)
        full = b.seq(b.literal(b"//"), self._authority(international), segments)
        return b.alt(full, self._path(first, international))

    def _suffix(self, international: bool) -> int:
        """``["?" query] ["#" fragment]``."""
        b = self.builder
        text = self._any(":@/?", international)
        query = text
        if international:
            private = b.codepoints(_IPRIVATE)
            query = b.repeat(b.alt(self._character(":@/?", True), private), 0, None)
        return b.seq(b.optional(b.seq(b.literal(b"?"), query)), b.optional(b.seq(b.literal(b"#"), text)))

    def uri(self, *, international: bool) -> int:
        """``URI`` (``IRI``)."""
        b = self.builder
        rest = b.repeat(b.bytes_in(union(LETTER_OR_DIGIT, characters("+-."))), 0, None)
        scheme = b.seq(self._letter, rest, b.literal(b":"))
        return b.seq(scheme, self._hierarchy(":@", international), self._suffix(international))

    def reference(self, *, international: bool) -> int:
        """``URI-reference`` (``IRI-reference``)."""
        b = self.builder
        relative = b.seq(self._hierarchy("@", international), self._suffix(international))
        return b.alt(self.uri(international=international), relative)

    def template(self, *, reserved: bool) -> int:
        """``URI-Template`` of RFC 6570, up to level 4, with or without the operators reserved for extensions."""
        b = self.builder
        # section 2.1, and the apostrophe (erratum 6937)
        in_ascii = subtract(((0x21, 0x7E),), characters('"%<>\\^`{|}'))
        literal = b.codepoints(union(in_ascii, _UCSCHAR, _IPRIVATE))
        character = b.alt(b.bytes_in(union(LETTER_OR_DIGIT, characters("_"))), self._encoded)
        name = b.seq(character, b.repeat(b.seq(b.optional(b.literal(b".")), character), 0, None))
        prefix = b.seq(b.literal(b":"), self._range("1", "9"), b.repeat(self._digit, 0, 3))
        variable = b.seq(name, b.optional(b.alt(prefix, b.literal(b"*"))))
        operator = self._one_of("+#./;?&" + "=,!@|" * reserved)
        variables = b.seq(variable, b.repeat(b.seq(b.literal(b","), variable), 0, None))
        expression = b.seq(b.literal(b"{"), b.optional(operator), variables, b.literal(b"}"))
        return b.repeat(b.alt(literal, self._encoded, expression), 0, None)
