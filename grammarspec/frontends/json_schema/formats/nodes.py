"""What the families of formats share: sets of characters, and nodes of digits and letters."""

from __future__ import annotations

from functools import cached_property
from typing import Final

from grammarspec.frontends.regex.alphabet import Alphabet
from grammarspec.frontends.regex.charsets import Ranges, normalise, union
from grammarspec.grammars.builder import GrammarBuilder

__all__ = ["ALPHA", "DIGIT", "HEXADECIMAL", "LETTER_OR_DIGIT", "FormatNodes", "characters"]

ALPHA: Final[Ranges] = ((0x41, 0x5A), (0x61, 0x7A))
"""The letters of ASCII."""
DIGIT: Final[Ranges] = ((0x30, 0x39),)
LETTER_OR_DIGIT: Final[Ranges] = union(DIGIT, ALPHA)
HEXADECIMAL: Final[Ranges] = ((0x30, 0x39), (0x41, 0x46), (0x61, 0x66))


def characters(text: str) -> Ranges:
    """The set of a text's characters."""
    return normalise((ord(character), ord(character)) for character in text)


class FormatNodes:
    """The nodes of a family of formats, over one builder; each is made when first asked for.

    Attributes:
        builder: what makes the nodes.
        exact: the alphabet of the strings' insides. Characters that no alphabet escapes are spelled by the builder.
    """

    def __init__(self, builder: GrammarBuilder, exact: Alphabet) -> None:
        self.builder, self.exact = builder, exact

    @cached_property
    def _digit(self) -> int:
        return self.builder.bytes_in(DIGIT)

    @cached_property
    def _digits(self) -> int:
        """One digit or more."""
        return self.builder.repeat(self._digit, 1, None)

    @cached_property
    def _hexadecimal(self) -> int:
        """One hexadecimal digit."""
        return self.builder.bytes_in(HEXADECIMAL)

    @cached_property
    def _letter(self) -> int:
        """One letter of ASCII."""
        return self.builder.bytes_in(ALPHA)

    def _range(self, low: str, high: str) -> int:
        """One character of ASCII from ``low`` to ``high``."""
        return self.builder.bytes_in(((ord(low), ord(high)),))

    def _one_of(self, text: str) -> int:
        """One of these characters of ASCII."""
        return self.builder.bytes_in(characters(text))

    def _literal(self, text: str) -> int:
        """Exactly this text, none of whose characters is escaped."""
        return self.builder.literal(text)
