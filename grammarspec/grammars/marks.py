"""Marks: special tokens among bytes of text.

A special token such as ``<|eot|>`` is not text: a text that spells its name is something else. So in the bytes of a
grammar, and among the bytes of tokens, it is written as a *mark*: bytes that UTF-8 never has (0xF5 to 0xFF), which
spell its name. Vocabularies keep tokens of text with such bytes out, so a mark is always one token.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache

__all__ = ["BEGIN", "END", "ending", "mark", "marked_names", "named", "reserved", "split", "whole", "with_marks"]

BEGIN = 0xFF
"""The first byte of every mark."""

END = b"\xfe"
"""The last byte of every mark."""

_ZERO = 0xF5  # the lowest of eight octal digits
_MARK = re.compile(rb"\xff[\xf5-\xfc]+\xfe")
_RESERVED = frozenset(range(_ZERO, 0x100))


@cache
def mark(name: str) -> bytes:
    """The mark of the special token with this name: three octal digits for each byte of it."""
    digits = (byte >> shift & 7 for byte in name.encode() for shift in (6, 3, 0))
    return bytes([BEGIN, *(_ZERO + digit for digit in digits), *END])


def _name(found: re.Match[bytes]) -> bytes:
    digits = [byte - _ZERO for byte in found[0][1:-1]]
    return bytes(a << 6 | b << 3 | c for a, b, c in zip(*[iter(digits)] * 3, strict=True))


def reserved(text: bytes) -> bool:
    """Whether a text holds a byte that marks are made of."""
    return not _RESERVED.isdisjoint(text)


def named(data: bytes) -> bytes:
    """Marked text with the names of special tokens in place of their marks."""
    return _MARK.sub(_name, data) if BEGIN in data else data


def marked_names(data: bytes) -> set[str]:
    """The names of the special tokens that are marked in a text."""
    return {_name(found).decode() for found in _MARK.finditer(data)}


def split(data: bytes) -> Iterator[tuple[bytes, str | None]]:
    """The parts of a marked text, in order: each mark with its name, and each text between marks with ``None``."""
    at = 0
    for found in _MARK.finditer(data):
        if found.start() > at:
            yield data[at : found.start()], None
        yield found[0], _name(found).decode()
        at = found.end()
    if at < len(data):
        yield data[at:], None


def ending(data: bytes, text: str) -> bytes:
    """The end of a marked text that reads ``text`` once names stand in place of marks.

    Args:
        data: the marked text. With names in place of marks it ends with ``text``, which begins inside no name.
        text: the end of it, as people see it.

    Returns:
        A suffix of ``data``.
    """
    before = len(named(data)) - len(text.encode())
    at = 0
    for piece, _ in split(data):
        said = len(named(piece))
        if said > before:
            return data[at + before :]
        at, before = at + len(piece), before - said
    return b""


def whole(data: bytes) -> bytes:
    """Marked text without the incomplete mark that it may end with."""
    begin = data.rfind(BEGIN)
    return data if begin < 0 or END in data[begin:] else data[:begin]


def with_marks(text: str, names: Iterable[str]) -> bytes:
    """A text in UTF-8, with marks in place of the names of special tokens; of several names that fit, the longest.

    Raises:
        UnicodeEncodeError: the text holds a lone surrogate.
    """
    alternatives = sorted(map(re.escape, names), key=len, reverse=True)
    if not alternatives:
        return text.encode()
    parts = re.split(f"({'|'.join(alternatives)})", text)
    return b"".join(mark(part) if number % 2 else part.encode() for number, part in enumerate(parts))
