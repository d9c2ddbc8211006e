"""Alphabets of strings in which every character has one spelling.

Patterns, formats and keys are regular languages over *characters*; with one spelling each, intersection and complement
of spellings are intersection and complement of strings. In JSON it is what ``json.dumps`` writes: short escapes,
``\\u00xx`` for the other control characters, and all else raw, or (``ensure_ascii=True``) raw as far as it is ASCII.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from json.encoder import encode_basestring as quote

from grammarspec.frontends.regex.charsets import Ranges
from grammarspec.frontends.regex.lower import Alphabet
from grammarspec.grammars.builder import GrammarBuilder

__all__ = ["PLAIN", "ExactAlphabet", "RawAlphabet"]

_LAST = 0x10FFFF
_ESCAPED = (*range(0x20), 0x22, 0x5C)
_ESCAPES = {code: quote(chr(code))[1:-1] for code in _ESCAPED}

PLAIN = ((0x20, 0x21), (0x23, 0x5B), (0x5D, _LAST))
"""The characters that JSON has in strings as they are."""


class ExactAlphabet(Alphabet):
    """Text inside a JSON string, one spelling per character (what the regex front-end lowers onto)."""

    def __init__(self, builder: GrammarBuilder, quote: Callable[[str], str]) -> None:
        self.builder, self.quote = builder, quote
        self._classes: dict[Ranges, int] = {}
        self.character = self.codepoints(((0, _LAST),))
        """Any one character."""
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
        builder = self.builder
        raw = [
            (max(low, first), min(high, last))
            for low, high in ranges
            for first, last in PLAIN
            if low <= last and high >= first
        ]
        escaped = [_ESCAPES[code] for code in _ESCAPED if any(low <= code <= high for low, high in ranges)]
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
    """Text whose characters are all as they are."""

    def __init__(self, builder: GrammarBuilder) -> None:
        super().__init__(builder, lambda text: f'"{text}"')

    def _spell(self, ranges: Ranges) -> int:
        return self.builder.codepoints(ranges)
