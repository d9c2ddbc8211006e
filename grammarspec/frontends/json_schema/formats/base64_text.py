"""Bytes in base64 (RFC 4648)."""

from __future__ import annotations

from functools import cached_property

from grammarspec.frontends.json_schema.formats.nodes import LETTER_OR_DIGIT, FormatNodes, characters
from grammarspec.frontends.regex.charsets import union

__all__ = ["Base64"]


class Base64(FormatNodes):
    """Bytes in base64."""

    @cached_property
    def padded(self) -> int:
        """RFC 4648, section 4: padded, and the bits that pad are zero (section 3.5)."""
        b = self.builder
        digit = b.bytes_in(union(LETTER_OR_DIGIT, characters("+/")))
        two_bits, four_bits = self._one_of("AQgw"), self._one_of("AEIMQUYcgkosw048")
        ends = b.alt(b.seq(digit, two_bits, self._literal("==")), b.seq(digit, digit, four_bits, self._literal("=")))
        return b.seq(b.repeat(b.repeat(digit, 4, 4), 0, None), b.optional(ends))

    @cached_property
    def maybe_padded(self) -> int:
        """With any bits that pad, and line breaks anywhere (section 3.1 leaves them to other specifications)."""
        digit = self.exact.codepoints(union(LETTER_OR_DIGIT, characters("\n\r+/=")))
        return self.builder.repeat(digit, 0, None)
