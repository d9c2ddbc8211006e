"""UUIDs (RFC 4122) and JSON pointers (RFC 6901, and the draft of relative ones)."""

from __future__ import annotations

from functools import cached_property

from grammarspec.frontends.json_schema.formats.nodes import FormatNodes
from grammarspec.frontends.regex.charsets import complement

__all__ = ["Identifiers"]


class Identifiers(FormatNodes):
    """UUIDs and JSON pointers."""

    @cached_property
    def uuid(self) -> int:
        """RFC 4122, section 3, in letters of either case."""
        b, dash = self.builder, self._literal("-")
        four, eight, twelve = (b.repeat(self._hexadecimal, n, n) for n in (4, 8, 12))
        return b.seq(eight, dash, four, dash, four, dash, four, dash, twelve)

    @cached_property
    def json_pointer(self) -> int:
        """RFC 6901, section 3."""
        b = self.builder
        plain = self.exact.codepoints(complement(((0x2F, 0x2F), (0x7E, 0x7E))))
        escaped = b.seq(self._literal("~"), self._range("0", "1"))
        return b.repeat(b.seq(self._literal("/"), b.repeat(b.alt(plain, escaped), 0, None)), 0, None)

    @cached_property
    def relative_json_pointer(self) -> int:
        """draft-handrews-relative-json-pointer-01, section 3."""
        b = self.builder
        up = b.alt(self._literal("0"), b.seq(self._range("1", "9"), b.repeat(self._digit, 0, None)))
        return b.seq(up, b.alt(self._literal("#"), self.json_pointer))
