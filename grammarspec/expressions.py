"""Grammars as values: what every front-end returns and :func:`grammarspec.compile` takes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from grammarspec import _compiler
from grammarspec.builder import GrammarBuilder
from grammarspec.errors import GrammarSyntaxError, Unsatisfiable

__all__ = ["Grammar", "choice"]


@dataclass(frozen=True, slots=True, repr=False)
class Grammar:
    """A language over UTF-8 text, independent of any vocabulary. Immutable, hashable, picklable.

    Two grammars are equal when they are built alike, which is finer than describing the same language.

    Attributes:
        ir: the compiler's hash-consed form.
    """

    ir: _compiler.Grammar

    def __repr__(self) -> str:
        return f"<Grammar {hash(self.ir) & 0xFFFF_FFFF_FFFF_FFFF:016x}>"

    def to_bytes(self) -> bytes:
        """The grammar in a portable form that carries its version; :meth:`from_bytes` reads it back."""
        return self.ir.to_bytes()

    @staticmethod
    def from_bytes(data: bytes) -> Grammar:
        """Read what :meth:`to_bytes` wrote.

        Raises:
            GrammarError: ``data`` is damaged, or of a version that this release cannot read.
        """
        return Grammar(_compiler.Grammar.from_bytes(data))


def choice(texts: Iterable[str]) -> Grammar:
    """Exactly one of these texts. Large lists are fine: 100,000 texts share one minimised trie.

    Raises:
        TypeError: ``texts`` is a single string, or holds something that is not a string.
        Unsatisfiable: ``texts`` is empty.
        GrammarSyntaxError: a text holds a lone surrogate, which UTF-8 cannot spell.
    """
    if isinstance(texts, str | bytes):
        raise TypeError("choice() takes several texts, not a single one: write choice([text])")
    encoded: list[bytes] = []
    for number, text in enumerate(texts):
        if not isinstance(text, str):
            raise TypeError(f"choice() takes texts, but element {number} is of type {type(text).__name__}")
        try:
            encoded.append(text.encode())
        except UnicodeEncodeError as error:
            message = f"a lone surrogate (U+{ord(text[error.start]):04X}) cannot be spelled in UTF-8"
            raise GrammarSyntaxError(message, where=f"text {number}, character {error.start}") from None
    if not encoded:
        raise Unsatisfiable("a choice of no texts has no member", hint="give choice() at least one text")
    builder = GrammarBuilder()
    return Grammar(builder.build(builder.words(encoded)))
