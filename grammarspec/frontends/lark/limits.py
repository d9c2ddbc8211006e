"""Bounds on grammars that lark's loader itself does not have.

Lark's loader can be kept busy for ever by a short text: two expressions of its lexer backtrack on literals that never
end and on long runs of blank lines, and terminals that refer to each other are written out in full. Such texts are
refused, or made harmless, before lark sees them.
"""

from __future__ import annotations

import re
from typing import Any, Final

from grammarspec.errors import GrammarSyntaxError, LimitExceeded
from grammarspec.frontends.lark.text import TOKENS, GrammarText

__all__ = ["check_terminal", "check_text", "without_long_gaps"]

_MAX_TERMINAL: Final = 1_000_000
"""Characters of one terminal's regular expression."""
_MAX_SYMBOLS: Final = 40_000
"""References of terminals to others, all written out in full: lark writes them out, which takes half a second then."""
_MAX_BACKSLASHES: Final = 8
"""Escaped backslashes in what is read as a literal that never ends; lark's time doubles with each."""
_MAX_BLANK_LINES: Final = 100
_LONG_GAP = re.compile(rf"(?:[ \t\r]*\n){{{_MAX_BLANK_LINES},}}")


def without_long_gaps(text: str) -> str:
    """The grammar with at most 100 blank lines in a row; lark's time is quadratic in them."""
    return _LONG_GAP.sub(lambda gap: "\n" * min(_MAX_BLANK_LINES, gap[0].count("\n")), text)


def check_text(source: GrammarText) -> None:
    """Refuse a text that would keep lark's loader busy without end.

    Raises:
        GrammarSyntaxError: a literal never ends.
        LimitExceeded: the terminals, written out, are too large.
    """
    text = source.text
    references: dict[str, list[str]] = {}
    body, line = list[str](), list[str]()  # names in the current definition, and in the current line
    for token in TOKENS.finditer(text):
        if token["name"]:
            line.append(token["name"])
        elif token["line"]:
            body += line
            line = []
        elif token["colon"] and line:
            body = references[line[0]] = []
            line = []
        elif token["open"]:
            line_end = text.find("\n", token.start())
            end = line_end if token["open"] == '"' and line_end >= 0 else len(text)
            if text.count("\\\\", token.start(), end) > _MAX_BACKSLASHES:
                raise GrammarSyntaxError("malformed grammar: a literal that never ends", source.at(token.start()))
    sizes: dict[str, int] = {}
    for terminal in references:
        if terminal.isupper() and _references(terminal, references, sizes) > _MAX_SYMBOLS:
            break
    if sum(sizes.values()) - len(sizes) > _MAX_SYMBOLS:
        raise LimitExceeded(f"the terminals, written out, exceed the limit of {_MAX_SYMBOLS} references to others")


def check_terminal(name: str, tree: Any, source: GrammarText) -> None:
    """Refuse a terminal whose regular expression would be too long.

    Args:
        tree: lark's tree of the terminal.

    Raises:
        LimitExceeded: it would be.
    """
    if _written_out(tree) > _MAX_TERMINAL:
        message = f"the terminal {name} exceeds the limit of {_MAX_TERMINAL} characters"
        raise LimitExceeded(message, source.definition(name))


def _references(terminal: str, references: dict[str, list[str]], sizes: dict[str, int]) -> int:
    """How many names a terminal refers to, and those in turn, each as often as it is reached; kept in ``sizes``."""
    stack = [terminal]
    while stack:
        name = stack[-1]
        if name not in sizes:
            sizes[name] = 1  # where a terminal refers to itself, this ends the walk; lark reports it
            stack += [other for other in references.get(name, ()) if other not in sizes]
        else:
            sizes[name] = min(1 + sum(sizes.get(other, 1) for other in references.get(name, ())), 1 << 62)
            stack.pop()
    return sizes[terminal]


def _written_out(tree: Any) -> int:
    """About how long a terminal's expression gets. Its tree shares subtrees, so it may be far smaller."""
    sizes: dict[int, int] = {}
    stack = [tree]
    while stack:
        part = stack[-1]
        inner = [child for child in part.children if hasattr(child, "children")]
        missing = [child for child in inner if id(child) not in sizes]
        if missing:
            stack += missing
            continue
        leaves = sum(len(str(child)) for child in part.children if not hasattr(child, "children"))
        sizes[id(stack.pop())] = min(2 + leaves + sum(sizes[id(child)] for child in inner), 1 << 62)
    return sizes[id(tree)]
