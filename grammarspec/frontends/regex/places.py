"""Where in a text something is wrong, for people to read."""

from __future__ import annotations

__all__ = ["place"]

_MARGIN = 30


def place(text: str, offset: int) -> str:
    """``line L, column C`` (both from 1) of an offset, and its line, cut to what is near, with a caret below."""
    line_start = text.rfind("\n", 0, offset) + 1
    line_end = text.find("\n", offset)
    line = text[line_start : line_end if line_end >= 0 else len(text)]
    column = offset - line_start
    first, last = max(0, column - _MARGIN), column + _MARGIN
    shown = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in line[first:last])
    head, tail = "..." if first else "", "..." if last < len(line) else ""
    caret = " " * (len(head) + column - first) + "^"
    return f"line {text.count(chr(10), 0, offset) + 1}, column {column + 1}\n    {head}{shown}{tail}\n    {caret}"
