"""From a syntax tree to the text of a pattern of ECMA-262, so that a JSON Schema can say what another dialect says.

The tree (:mod:`.tree`) may be of any dialect, before its lookarounds are decided. The text has neither flags nor
names of groups, and nothing of what decides which of several matches is preferred.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Final

from grammarspec.errors import GrammarError, LimitExceeded
from grammarspec.frontends.regex.charsets import LAST, Ranges, complement, is_subset, subtract
from grammarspec.frontends.regex.ecma262 import EcmaParser
from grammarspec.frontends.regex.patterns import Dialect, parser_of
from grammarspec.frontends.regex.tree import Alternation, Chars, End, Look, Node, Repeat, Sequence, Start, Text

__all__ = ["to_ecma262"]

_SYNTAX: Final = frozenset("^$\\.*+?()[]{}|/")
_IN_CLASS: Final = frozenset("^\\[]-")
_SHORT: Final = {9: "\\t", 10: "\\n", 11: "\\v", 12: "\\f", 13: "\\r"}
_NAMED: Final = (
    r"\p{L}\p{Nl}\p{M}\p{Nd}\p{Pc}\u{24B6}-\u{24E9}\u{1F130}-\u{1F149}\u{1F150}-\u{1F169}\u{1F170}-\u{1F189}"
    r"\u{200C}\u{200D}",
    r"\p{L}\p{N}_", r"\p{L}", r"\p{Lu}", r"\p{Ll}", r"\p{N}", r"\p{Nd}", r"\p{P}", r"\p{S}", r"\p{Z}", r"\s", r"\w",
    r"\d",
)  # fmt: skip
"""Sets that are written by name, the larger ones first: ``\\w`` of Rust and of Python, and what these have parts of."""
_PROPERTY = re.compile(r"\\p\{\w+\}")
_FEW: Final = 8
"""Sets of no more ranges are written out."""


def to_ecma262(pattern: str | re.Pattern[str], dialect: Dialect) -> str:
    """A pattern of another dialect, as one of ECMA-262 that is found in the same texts.

    It stays as it is if it means the same there.

    Args:
        pattern: the pattern, or what ``re.compile`` made of one, whose flags hold.
        dialect: the dialect of the pattern.

    Raises:
        GrammarSyntaxError: the pattern is malformed.
        UnsupportedFeature: it uses what no automaton can decide.
        LimitExceeded: a repetition count is too large, or groups are nested too deeply.
    """
    flags = 0
    if isinstance(pattern, re.Pattern):
        flags, pattern = pattern.flags & ~(re.UNICODE | re.DEBUG), pattern.pattern
    try:
        written = _written(parser_of(pattern, flags, dialect).parse())
        try:
            same = _written(EcmaParser(pattern).parse()) == written
        except GrammarError:
            same = False
    except RecursionError:
        raise LimitExceeded("a regular expression exceeds the limit on nesting depth") from None
    return pattern if same else written


def _written(node: Node) -> str:
    """The text of a node.

    Raises:
        RecursionError: groups are nested too deeply.
    """
    match node:
        case Text(text):
            return "".join(map(_character, map(ord, text)))
        case Chars(ranges):
            return _class(ranges)
        case Sequence(parts):
            return "".join(f"(?:{_written(part)})" if isinstance(part, Alternation) else _written(part)
                           for part in parts)  # fmt: skip
        case Alternation(branches):
            return "|".join(map(_written, branches))
        case Repeat(body, least, most):
            return _atom(body) + _quantifier(least, most)
        case Look(body, ahead, negative):
            return f"(?{'' if ahead else '<'}{'!' if negative else '='}{_written(body)})"
        case Start():
            return "^"
        case End():
            return "$"
    raise AssertionError(f"parsers make no {type(node).__name__}")


def _atom(node: Node) -> str:
    """The text of a node that a quantifier can follow."""
    text = _written(node)
    single = isinstance(node, Chars) or (isinstance(node, Text) and len(node.text) == 1)
    return text if single else f"(?:{text})"


def _quantifier(least: int, most: int | None) -> str:
    if least <= 1 and most is None:
        return "+" if least else "*"
    if (least, most) == (0, 1):
        return "?"
    if least == most:
        return f"{{{least}}}"
    return f"{{{least},{'' if most is None else most}}}"


def _character(code: int, special: frozenset[str] = _SYNTAX) -> str:
    char = chr(code)
    if char in special:
        return f"\\{char}"
    return _SHORT.get(code) or (char if char.isprintable() else f"\\u{{{code:X}}}")


def _class(ranges: Ranges) -> str:
    """A set of characters; of a set that has the last one, the complement is written."""
    negative = bool(ranges) and ranges[-1][1] == LAST
    listed = complement(ranges) if negative else ranges
    if not negative and len(listed) == 1 and listed[0][0] == listed[0][1]:
        return _character(listed[0][0])
    pieces: list[str] = []
    if len(listed) > _FEW:
        for text, named in _sets():
            if len(named) > _FEW and is_subset(named, listed):
                pieces.append(text)
                listed = subtract(listed, named)
    for low, high in listed:
        pieces.append(_character(low, _IN_CLASS))
        if high > low:
            pieces.append(("-" if high > low + 1 else "") + _character(high, _IN_CLASS))
    if len(pieces) == 1 and not negative and _PROPERTY.fullmatch(pieces[0]):
        return pieces[0]
    return f"[{'^' if negative else ''}{''.join(pieces)}]"


@cache
def _sets() -> list[tuple[str, Ranges]]:
    """The sets of :data:`_NAMED`."""
    found = []
    for text in _NAMED:
        node = EcmaParser(f"[{text}]").parse()
        assert isinstance(node, Chars)
        found.append((text, node.ranges))
    return found
