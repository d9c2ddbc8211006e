"""GBNF, llama.cpp's notation, of which everything that is written here is also XGrammar's EBNF."""

from __future__ import annotations

import re
from typing import ClassVar

from grammarspec._compiler import Grammar as Ir
from grammarspec.grammars.writing.converted import Converted
from grammarspec.grammars.writing.notation import Level, Notation, Piece, ranges_of_class

__all__ = ["to_gbnf"]

_NAMED = {"\n": "\\n", "\r": "\\r", "\t": "\\t", "\\": "\\\\"}


def to_gbnf(ir: Ir) -> Converted:
    """A language in GBNF; see :meth:`grammarspec.Grammar.to_gbnf`.

    Raises:
        Unsatisfiable: the language is empty.
        UnsupportedFeature: it has bytes that are no text, or a special token that cannot be named.
    """
    return _Gbnf(ir).write()


class _Gbnf(Notation):
    title: ClassVar[str] = "GBNF"
    definition: ClassVar[str] = "{} ::= {}"
    start_name: ClassVar[str] = "root"

    def spelled_name(self, name: str) -> str:
        spelled = re.sub("[^A-Za-z0-9]+", "-", name).strip("-") or "rule"
        return spelled if spelled[0].isalpha() else f"rule-{spelled}"  # XGrammar's names begin with a letter

    def text(self, text: str) -> Piece:
        return Piece(f'"{"".join(_escaped(char, chr(34)) for char in text)}"', Level.ATOM)

    def characters(self, ranges: tuple[tuple[int, int], ...]) -> Piece:
        sign, listed = ranges_of_class(ranges)
        spelled = []
        for low, high in listed:
            first, last = _escaped(chr(low), "[]^-"), _escaped(chr(high), "[]^-")
            spelled.append(first if low == high else f"{first}-{last}")
        return Piece(f"[{sign}{''.join(spelled)}]", Level.ATOM)

    def special(self, name: str) -> Piece:
        return Piece(name, Level.ATOM)


def _escaped(char: str, signs: str) -> str:
    """A character as literals and classes have it; of ``signs`` each needs an escape."""
    if char in _NAMED:
        return _NAMED[char]
    if char in signs:
        return f"\\x{ord(char):02X}" if char == "^" else f"\\{char}"
    if char.isprintable() and (char.isascii() or char.isalnum()):
        return char
    code = ord(char)
    return f"\\x{code:02X}" if code < 256 else f"\\u{code:04X}" if code < 0x10000 else f"\\U{code:08X}"
