"""Characters beyond ASCII as ``\\u`` escapes, the way ``json.dumps(text)`` writes them.

A character of the Basic Multilingual Plane is spelled in four lower-case hexadecimal digits, any other as a pair of
surrogates (RFC 8259, section 7). A set of characters goes in; nodes over hexadecimal digits come out, in which branches
that go on alike are joined.
"""

from __future__ import annotations

from json.encoder import encode_basestring_ascii

from grammarspec.frontends.regex.charsets import Ranges, intersect, normalise
from grammarspec.grammars.builder import GrammarBuilder

__all__ = ["escape_nodes", "quote_ascii"]

_PLAIN: Ranges = ((0x00, 0x7E),)
_BASIC: Ranges = ((0x7F, 0xD7FF), (0xE000, 0xFFFF))
_SUPPLEMENTARY = 0x10000
_HIGH, _LOW, _BITS = 0xD800, 0xDC00, 10  # each half of a pair holds ten bits


def quote_ascii(text: str) -> str:
    """As ``json.dumps(text)`` writes it.

    Raises:
        UnicodeEncodeError: the text holds a lone surrogate, which is no character.
    """
    text.encode()
    return encode_basestring_ascii(text)


def escape_nodes(builder: GrammarBuilder, ranges: Ranges) -> tuple[Ranges, list[int]]:
    """How the characters of a set are spelled: those that stand as they are (ASCII but DEL), and nodes for the others.

    The nodes are alternatives: of each of the other characters, one node has its escape.
    """
    b = builder
    escape = b.literal(b"\\u")
    nodes = []
    basic = intersect(ranges, _BASIC)
    if basic:
        nodes.append(b.seq(escape, _hexadecimal(b, basic, 4)))
    by_low: dict[Ranges, list[tuple[int, int]]] = {}
    for high, low in _pairs(ranges).items():
        by_low.setdefault(normalise(low), []).append((high, high))
    for low_halves, high_halves in by_low.items():
        pair = _hexadecimal(b, normalise(high_halves), 4), escape, _hexadecimal(b, low_halves, 4)
        nodes.append(b.seq(escape, *pair))
    return intersect(ranges, _PLAIN), nodes


def _pairs(ranges: Ranges) -> dict[int, list[tuple[int, int]]]:
    """By high surrogate, the ranges of low ones that make a character of the set with it."""
    pairs: dict[int, list[tuple[int, int]]] = {}
    last = (1 << _BITS) - 1
    for first, end in ranges:
        low, high = max(first, _SUPPLEMENTARY) - _SUPPLEMENTARY, end - _SUPPLEMENTARY
        for half in range(low >> _BITS, (high >> _BITS) + 1):
            start = max(low - (half << _BITS), 0)
            stop = min(high - (half << _BITS), last)
            pairs.setdefault(_HIGH + half, []).append((_LOW + start, _LOW + stop))
    return pairs


def _hexadecimal(builder: GrammarBuilder, ranges: Ranges, width: int) -> int:
    """Numbers of ``width`` hexadecimal digits that are in the ranges."""
    if ranges == ((0, 16**width - 1),):
        return builder.repeat(_digits(builder, range(16)), width, width)
    if width == 1:
        return _digits(builder, [digit for low, high in ranges for digit in range(low, high + 1)])
    unit: int = 16 ** (width - 1)
    by_rest: dict[Ranges, list[int]] = {}
    for digit in range(16):
        rest = intersect(ranges, ((digit * unit, (digit + 1) * unit - 1),))
        if rest:
            by_rest.setdefault(tuple((low % unit, high % unit) for low, high in rest), []).append(digit)
    return builder.alt(
        *(
            builder.seq(_digits(builder, digits), _hexadecimal(builder, rest, width - 1))
            for rest, digits in by_rest.items()
        )
    )


def _digits(builder: GrammarBuilder, values: range | list[int]) -> int:
    """One hexadecimal digit of these values."""
    return builder.bytes_in([(ord(digit), ord(digit)) for digit in (f"{value:x}" for value in values)])
