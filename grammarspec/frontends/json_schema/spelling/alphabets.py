"""Alphabets for the insides of strings, in which every character has exactly one spelling.

Patterns, formats and names are regular languages over *characters*. With one spelling of each character, intersection
and complement of the spelled languages are those of the languages of strings. The spelling in JSON is the one that
``json.dumps`` writes: the short escapes, ``\\u00xx`` for other control characters, and all other characters as they
are (with ``ensure_ascii=True``, as far as they are ASCII).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from json.encoder import encode_basestring as quote

from grammarspec.frontends.regex.alphabet import Alphabet
from grammarspec.frontends.regex.charsets import ALL, LAST, Ranges, intersect
from grammarspec.grammars.builder import GrammarBuilder

__all__ = ["PLAIN", "ExactAlphabet", "RawAlphabet"]

_ESCAPED: Ranges = ((0, 0x1F), (0x22, 0x22), (0x5C, 0x5C))

PLAIN: Ranges = ((0x20, 0x21), (0x23, 0x5B), (0x5D, LAST))
"""The characters that stand in JSON's strings as they are (RFC 8259, section 7)."""


class ExactAlphabet(Alphabet):
    """The inside of JSON's strings.

    Attributes:
        character: any one character.
    """

    def __init__(self, builder: GrammarBuilder, quote: Callable[[str], str]) -> None:
        """An alphabet over a builder; ``quote`` writes a string, in quotation marks of one character each."""
        self.builder, self.quote = builder, quote
        self._classes: dict[Ranges, int] = {}
        self.character = self.codepoints(ALL)
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
        new = type(self).__new__(type(self))
        new.builder, new.quote, new._classes = builder, self.quote, self._classes.copy()
        new.character, new._any_text = self.character, self._any_text
        return new

    def _spell(self, ranges: Ranges) -> int:
        """A new node for one character of a set."""
        builder = self.builder
        raw = intersect(ranges, PLAIN)
        escaped = [quote(chr(code))[1:-1] for low, high in intersect(ranges, _ESCAPED) for code in range(low, high + 1)]
        parts = []
        if raw:
            parts.append(builder.codepoints(raw))
        if escaped:
            parts.append(builder.words(escaped) if len(escaped) > 1 else builder.literal(escaped[0]))
        return builder.alt(*parts)

    def text(self, text: str) -> int:
        """Exactly this text."""
        return self.builder.literal(self.quote(text)[1:-1])

    def words(self, texts: Sequence[str]) -> int:
        """Any one of these texts."""
        return self.builder.words([self.quote(text)[1:-1] for text in texts])


class RawAlphabet(ExactAlphabet):
    """The inside of strings in which all characters stand as they are."""

    def __init__(self, builder: GrammarBuilder) -> None:
        super().__init__(builder, lambda text: f'"{text}"')

    def _spell(self, ranges: Ranges) -> int:
        return self.builder.codepoints(ranges)
