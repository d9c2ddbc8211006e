"""Addresses of mail: RFC 5321 and, with characters beyond ASCII, RFC 6531."""

from __future__ import annotations

from functools import cached_property

from grammarspec.frontends.json_schema.formats.host_names import HostNames
from grammarspec.frontends.json_schema.formats.nodes import LETTER_OR_DIGIT, FormatNodes, characters
from grammarspec.frontends.json_schema.formats.resource_names import ResourceNames
from grammarspec.frontends.regex.alphabet import Alphabet
from grammarspec.frontends.regex.charsets import LAST, Ranges, union
from grammarspec.grammars.builder import GrammarBuilder

__all__ = ["Mailboxes"]

_PRINTABLE = characters("!#$%&'*+-/=?^_`{|}~")
_FOREIGN: Ranges = ((0x80, LAST),)


class Mailboxes(FormatNodes):
    """``Mailbox``. Those that begin with ``maybe`` have no bounds of length, and take any address literal."""

    def __init__(self, builder: GrammarBuilder, exact: Alphabet, hosts: HostNames, names: ResourceNames) -> None:
        super().__init__(builder, exact)
        self.hosts, self.names = hosts, names

    @cached_property
    def ascii(self) -> int:
        """RFC 5321, section 4.1.2."""
        return self._mailbox(self.hosts.ascii(reserved=True), international=False)

    @cached_property
    def maybe_ascii(self) -> int:
        """The same, with domains of any length."""
        edge = self.builder.bytes_in(LETTER_OR_DIGIT)
        inner = self.builder.bytes_in(union(LETTER_OR_DIGIT, characters("-.")))
        domain = self.builder.seq(edge, self.builder.repeat(inner, 0, None))
        return self._maybe_mailbox(domain, international=False)

    @cached_property
    def international(self) -> int:
        """RFC 6531, section 3.3."""
        return self._mailbox(self.hosts.international, international=True)

    @cached_property
    def maybe_international(self) -> int:
        """The same, with domains of any letters, digits and characters beyond ASCII."""
        inner = self.builder.codepoints(union(LETTER_OR_DIGIT, characters("-."), _FOREIGN))
        return self._maybe_mailbox(self.builder.repeat(inner, 1, None), international=True)

    def _local_part(self, *, international: bool) -> int:
        """``Local-part`` of RFC 5321, section 4.1.2."""
        b, exact = self.builder, self.exact
        foreign = _FOREIGN if international else ()
        atom = b.repeat(b.codepoints(union(LETTER_OR_DIGIT, _PRINTABLE, foreign)), 1, None)
        dotted = b.seq(atom, b.repeat(b.seq(self._literal("."), atom), 0, None))
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
        address = b.alt(self.names.ipv4, b.seq(self._literal("IPv6:"), self.names.ipv6_of_mail))
        return b.seq(local, self._literal("@"), b.alt(domain, b.seq(self._literal("["), address, self._literal("]"))))

    def _maybe_mailbox(self, domain: int, *, international: bool) -> int:
        """Mailboxes with a local part of any length, and address literals of any content."""
        b = self.builder
        content = b.repeat(self.exact.codepoints(((0x21, 0x5A), (0x5E, 0x7E))), 1, None)
        literal = b.seq(self._literal("["), content, self._literal("]"))
        return b.seq(self._local_part(international=international), self._literal("@"), b.alt(domain, literal))
