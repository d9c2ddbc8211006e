"""How a pattern's characters are spelled in the language that is built.

A pattern is about characters (code points). The language that the compiler gets is about bytes, in which a character
may be spelled as itself in UTF-8, or as an escape of a JSON string. An :class:`Alphabet` is that mapping: a code point,
a set of code points or a text goes in, and a node of the grammar builder comes out. So one lowering (:mod:`.lower`)
serves plain texts and the insides of JSON strings.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from grammarspec.frontends.regex.charsets import ALL, Ranges, single
from grammarspec.grammars.builder import GrammarBuilder

__all__ = ["Alphabet", "PlainText"]


class Alphabet(ABC):
    """A spelling of every character, as nodes of one grammar builder.

    A character may have several spellings; then :meth:`codepoints` and ``any_text`` hold all of them. No spelling of
    one character is a spelling of another, so that intersection and complement of spelled texts are those of the texts.
    """

    builder: GrammarBuilder

    @property
    @abstractmethod
    def any_text(self) -> int:
        """Any text in this spelling, the empty one included."""

    @property
    def any_prefix(self) -> int:
        """``any_text`` or a superset of it, for where the text is checked to be valid by other means.

        It must still end between two characters. A spelling in which the beginning of a character can be told from any
        position (UTF-8 is one) may answer with ``builder.anything``, which is cheaper to run.
        """
        return self.any_text

    @abstractmethod
    def codepoints(self, ranges: Ranges) -> int:
        """One character of a set of code points."""

    def text(self, text: str) -> int:
        """Exactly this text."""
        return self.builder.seq(*(self.codepoints(single(ord(char))) for char in text))

    def words(self, texts: Sequence[str]) -> int:
        """Any one of these texts."""
        return self.builder.alt(*(self.text(text) for text in texts))


class PlainText(Alphabet):
    """Characters as they are, in UTF-8."""

    __slots__ = ("_any_text", "builder")

    def __init__(self, builder: GrammarBuilder) -> None:
        self.builder = builder
        self._any_text: int | None = None

    @property
    def any_text(self) -> int:
        if self._any_text is None:
            self._any_text = self.builder.repeat(self.builder.codepoints(ALL), 0, None)
        return self._any_text

    @property
    def any_prefix(self) -> int:
        return self.builder.anything

    def codepoints(self, ranges: Ranges) -> int:
        return self.builder.codepoints(ranges)

    def text(self, text: str) -> int:
        return self.builder.literal(text)

    def words(self, texts: Sequence[str]) -> int:
        return self.builder.words(texts)
