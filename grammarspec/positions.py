"""Positions in texts, for people to read: line and column, and the line with carets below.

An offset or, in a JSON text, a JSON pointer (RFC 6901) goes in; what comes out is shown in errors and reports.
"""

from __future__ import annotations

import json
import re
from typing import NamedTuple

__all__ = ["Position", "excerpt", "locate", "lone_surrogate", "pointer_token", "where"]

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\]:,]|[^\s{}\[\]:,"]+', re.DOTALL)
_WIDTH = 100  # characters of a line that are shown


class Position(NamedTuple):
    """A place in a text: ``line`` and ``column`` count from 1, the text is from ``start`` to ``end``."""

    line: int
    column: int
    start: int
    end: int

    @staticmethod
    def of(text: str, start: int, end: int) -> Position:
        """The position of ``text[start:end]``."""
        return Position(text.count("\n", 0, start) + 1, start - text.rfind("\n", 0, start), start, end)


def lone_surrogate(error: UnicodeEncodeError) -> str:
    """What is wrong with a text that has no UTF-8."""
    return f"a lone surrogate (U+{ord(error.object[error.start]):04X}) cannot be spelled in UTF-8"


class _Container:
    """An object or array that is being read: how many of the pointer's tokens lead to it, and where in it we are."""

    def __init__(self, is_object: bool, depth: int) -> None:
        self.is_object, self.depth = is_object, depth
        self.index = 0
        self.key: re.Match[str] | None = None


def locate(text: str, pointer: str) -> Position | None:
    """Where a JSON pointer (``#/properties/a``) points to in the JSON text that it is of.

    For a member that is its name; for an item, or the whole text, its first token. Of several members with the same
    name, the last one counts. The time is linear in the text. ``None`` if there is no such place.
    """
    if not pointer.startswith("#"):
        return None
    path = [token.replace("~1", "/").replace("~0", "~") for token in pointer[1:].split("/")[1:]]
    found: re.Match[str] | None = None
    stack: list[_Container] = []
    for token in _TOKEN.finditer(text):
        first = token[0][0]
        top = stack[-1] if stack else None
        if first in "]}":
            stack.pop() if stack else None
        elif first == ",":
            if top is not None:
                top.index, top.key = top.index + 1, None
        elif first == ":":
            continue
        elif top is not None and top.is_object and top.key is None:
            top.key = token
            if 0 <= top.depth < len(path) and _name(token[0]) == path[top.depth]:
                found = token if top.depth == len(path) - 1 else None  # what an earlier member of the name held is void
        else:
            depth = _depth(top, path)
            if depth == len(path) and (top is None or not top.is_object):
                found = token
            if first in "[{":
                stack.append(_Container(first == "{", depth))
    return None if found is None else Position.of(text, found.start(), found.end())


def _depth(top: _Container | None, path: list[str]) -> int:
    """How many tokens of the path lead to the value that begins here; -1: it is not on the path."""
    if top is None:
        return 0
    if not 0 <= top.depth < len(path):
        return -1
    here = _name(top.key[0]) if top.key is not None else None if top.is_object else str(top.index)
    return top.depth + 1 if here == path[top.depth] else -1


def _name(token: str) -> str:
    if "\\" not in token:
        return token[1:-1]
    try:
        return str(json.loads(token, strict=False))
    except ValueError:
        return token


def excerpt(text: str, position: Position) -> str:
    """The line of a position and carets under it, both indented by four.

    Of a long line the part around the position is shown, between dots. Characters that cannot be printed are replaced.
    """
    begin = position.start - position.column + 1
    end = text.find("\n", begin)
    line = text[begin : len(text) if end < 0 else end].rstrip("\r")
    column = position.start - begin
    first = max(0, column - _WIDTH // 2)
    last = first + _WIDTH
    shown = "".join(
        char if char.isprintable() or char == "\t" else "\N{REPLACEMENT CHARACTER}" for char in line[first:last]
    )
    head, tail = "..." if first else "", "..." if last < len(line) else ""
    indentation = "".join("\t" if c == "\t" else " " for c in text[begin + first : position.start])
    carets = "^" * max(1, min(position.end - begin, last, len(line)) - column)
    return f"    {head}{shown}{tail}\n    {' ' * len(head)}{indentation}{carets}"


def where(text: str, offset: int, end: int | None = None) -> str:
    """``line L, column C`` of a part of a text (one character if no ``end`` is given), and its :func:`excerpt`."""
    position = Position.of(text, offset, offset + 1 if end is None else end)
    return f"line {position.line}, column {position.column}\n{excerpt(text, position)}"


def pointer_token(key: object) -> str:
    """A name or an index as a JSON pointer has it (RFC 6901)."""
    return str(key).replace("~", "~0").replace("/", "~1")
