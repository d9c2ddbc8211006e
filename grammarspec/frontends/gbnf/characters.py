"""The characters of literals and classes: escapes are read, sets are made.

Of the escapes, those of llama.cpp are ``\\xHH``, ``\\uHHHH``, ``\\UHHHHHHHH``, ``\\t``, ``\\r``, ``\\n`` and those of
punctuation; XGrammar has some more, which mean nothing else there. Each stands for one code point.
"""

from __future__ import annotations

import re
from typing import Final

from grammarspec.errors import GrammarSyntaxError
from grammarspec.frontends.regex.charsets import Ranges, complement, normalise
from grammarspec.positions import where

__all__ = ["literal", "ranges"]

_ITEM = re.compile(r"\\(?:x([0-9A-Fa-f]{2})|u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|(.))|[^\\]", re.DOTALL)
_SIMPLE: Final = {"n": 10, "r": 13, "t": 9, "a": 7, "b": 8, "f": 12, "v": 11, "0": 0, "e": 27}
_PUNCTUATION: Final = frozenset("\\\"'?[]-^$.*+(){}|/")
_LAST: Final = 0x10FFFF


def literal(text: str, begin: int, end: int) -> str:
    """What the literal between two offsets, its quotes left out, stands for.

    Raises:
        GrammarSyntaxError: an escape is unknown or incomplete, or names no character.
    """
    if "\\" not in text[begin:end] and text[begin:end].isascii():
        return text[begin:end]
    return "".join([chr(_codepoint(text, item)) for item in _ITEM.finditer(text, begin, end)])


def ranges(text: str, begin: int, end: int) -> Ranges:
    """The code points of the class between two offsets, its brackets left out.

    Raises:
        GrammarSyntaxError: as :func:`literal`; or the class is empty, or a range goes down.
    """
    negative = text.startswith("^", begin, end)
    items = list(_ITEM.finditer(text, begin + negative, end))
    if not items:
        hint = "write . for any character" if negative else 'write "" for the empty text'
        raise GrammarSyntaxError("malformed grammar: a class without characters", where(text, begin - 1, end + 1), hint)
    found: list[tuple[int, int]] = []
    at = 0
    while at < len(items):
        low = high = _codepoint(text, items[at])
        if at + 2 < len(items) and items[at + 1][0] == "-":
            high = _codepoint(text, items[at + 2])
            if low > high:
                place = where(text, items[at].start(), items[at + 2].end())
                raise GrammarSyntaxError("malformed grammar: a range of characters that goes down", place)
            at += 2
        found.append((low, high))
        at += 1
    return complement(normalise(found)) if negative else normalise(found)


def _codepoint(text: str, item: re.Match[str]) -> int:
    """The code point of a character or escape."""
    digits = item[1] or item[2] or item[3]
    if digits:
        codepoint = int(digits, 16)
    elif item[4] is None:
        codepoint = ord(item[0])
    elif item[4] in _SIMPLE:
        codepoint = _SIMPLE[item[4]]
    elif item[4] in _PUNCTUATION:
        codepoint = ord(item[4])
    else:
        message = f"malformed grammar: the escape {item[0]} is unknown or incomplete"
        hint = "escapes are \\n, \\r, \\t, \\xHH, \\uHHHH, \\UHHHHHHHH, and those of punctuation"
        raise GrammarSyntaxError(message, where(text, item.start(), item.end()), hint)
    if codepoint > _LAST or 0xD800 <= codepoint <= 0xDFFF:
        message = f"U+{codepoint:04X} is no character, so nothing could match it"
        raise GrammarSyntaxError(message, where(text, item.start(), item.end()))
    return codepoint
