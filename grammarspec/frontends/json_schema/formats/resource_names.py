"""Addresses and resource identifiers: RFC 3986 (URI), RFC 3987 (IRI), RFC 6570 (URI templates).

None of them holds a quotation mark, a backslash or a control character, so in JSON they are spelled as they are.
"""

from __future__ import annotations

from functools import cached_property

from grammarspec.grammars.builder import GrammarBuilder

__all__ = ["ResourceNames"]

_ALPHA = ((0x41, 0x5A), (0x61, 0x7A))
_DIGIT = ((0x30, 0x39),)
_UNRESERVED = (*_ALPHA, *_DIGIT, *((ord(c), ord(c)) for c in "-._~"))
_SUB_DELIMS = tuple((ord(c), ord(c)) for c in "!$&'()*+,;=")
_PLANES = tuple((plane << 16, (plane << 16) + 0xFFFD) for plane in range(1, 14))
_UCSCHAR = ((0xA0, 0xD7FF), (0xF900, 0xFDCF), (0xFDF0, 0xFFEF), *_PLANES, (0xE1000, 0xEFFFD))
_IPRIVATE = ((0xE000, 0xF8FF), (0xF0000, 0xFFFFD), (0x100000, 0x10FFFD))


class ResourceNames:
    """The nodes of one grammar, made when first asked for."""

    def __init__(self, builder: GrammarBuilder) -> None:
        self.builder = builder
        self._characters: dict[tuple[str, bool], int] = {}

    # ------------------------------------------------------------------ addresses
    @cached_property
    def _hexadecimal(self) -> int:
        return self.builder.bytes_in(((0x30, 0x39), (0x41, 0x46), (0x61, 0x66)))

    @cached_property
    def ipv4(self) -> int:
        """Four decimal octets without leading zeros (RFC 3986, ``IPv4address``)."""
        b = self.builder
        digit, nonzero = b.bytes_in(_DIGIT), b.bytes_in(((0x31, 0x39),))
        octet = b.alt(
            b.seq(b.optional(nonzero), digit),
            b.seq(b.literal(b"1"), digit, digit),
            b.seq(b.literal(b"2"), b.bytes_in(((0x30, 0x34),)), digit),
            b.seq(b.literal(b"25"), b.bytes_in(((0x30, 0x35),))),
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
            ascii_ranges = (*_UNRESERVED, *_SUB_DELIMS, *((ord(c), ord(c)) for c in extra))
            plain = b.codepoints((*ascii_ranges, *_UCSCHAR)) if international else b.bytes_in(ascii_ranges)
            node = self._characters[key] = b.alt(plain, self._encoded)
        return node

    @cached_property
    def _encoded(self) -> int:
        return self.builder.seq(self.builder.literal(b"%"), self._hexadecimal, self._hexadecimal)

    def _any(self, extra: str, international: bool) -> int:
        return self.builder.repeat(self._character(extra, international), 0, None)

    # ------------------------------------------------------------------ identifiers
    def _authority(self, international: bool) -> int:
        """``[userinfo "@"] host [":" port]``. An IPv4 address is a registered name, too."""
        b = self.builder
        user = b.seq(self._any(":", international), b.literal(b"@"))
        future = b.seq(
            b.bytes_in(((0x56, 0x56), (0x76, 0x76))),
            b.repeat(self._hexadecimal, 1, None),
            b.literal(b"."),
            b.repeat(b.bytes_in((*_UNRESERVED, *_SUB_DELIMS, (0x3A, 0x3A))), 1, None),
        )
        address = b.seq(b.literal(b"["), b.alt(self.ipv6, future), b.literal(b"]"))
        port = b.seq(b.literal(b":"), b.repeat(b.bytes_in(_DIGIT), 0, None))
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
        rest = b.repeat(b.bytes_in((*_ALPHA, *_DIGIT, (0x2B, 0x2B), (0x2D, 0x2E))), 0, None)
        scheme = b.seq(b.bytes_in(_ALPHA), rest, b.literal(b":"))
        return b.seq(scheme, self._hierarchy(":@", international), self._suffix(international))

    def reference(self, *, international: bool) -> int:
        """``URI-reference`` (``IRI-reference``)."""
        b = self.builder
        relative = b.seq(self._hierarchy("@", international), self._suffix(international))
        return b.alt(self.uri(international=international), relative)

    def template(self, *, reserved: bool) -> int:
        """``URI-Template`` up to level 4, with or without the operators that are reserved for extensions."""
        b = self.builder
        # section 2.1, and the apostrophe (erratum 6937)
        literals = ((0x21, 0x21), (0x23, 0x24), (0x26, 0x3B), (0x3D, 0x3D), (0x3F, 0x5B), (0x5D, 0x5D), (0x5F, 0x5F))
        literal = b.codepoints((*literals, (0x61, 0x7A), (0x7E, 0x7E), *_UCSCHAR, *_IPRIVATE))
        character = b.alt(b.bytes_in((*_ALPHA, *_DIGIT, (0x5F, 0x5F))), self._encoded)
        name = b.seq(character, b.repeat(b.seq(b.optional(b.literal(b".")), character), 0, None))
        prefix = b.seq(b.literal(b":"), b.bytes_in(((0x31, 0x39),)), b.repeat(b.bytes_in(_DIGIT), 0, 3))
        variable = b.seq(name, b.optional(b.alt(prefix, b.literal(b"*"))))
        operator = b.bytes_in([(ord(c), ord(c)) for c in "+#./;?&" + "=,!@|" * reserved])
        variables = b.seq(variable, b.repeat(b.seq(b.literal(b","), variable), 0, None))
        expression = b.seq(b.literal(b"{"), b.optional(operator), variables, b.literal(b"}"))
        return b.repeat(b.alt(literal, self._encoded, expression), 0, None)
