"""Terminals of which one text belongs to both: lark's lexer takes it for the one that it tries first, without a word.

As in lark's strict mode, only regular expressions of the same priority are compared: a string that is also a name is a
keyword, and a priority says what is meant. The engine intersects the two, and has the shortest text as a witness.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import combinations
from typing import Any, Final

from grammarspec.errors import GrammarError, LimitExceeded, Unsatisfiable
from grammarspec.frontends.lark.lexers import Lexemes
from grammarspec.frontends.lark.report.findings import Finding
from grammarspec.frontends.lark.report.naming import Names
from grammarspec.frontends.lark.report.obstacles import modes
from grammarspec.frontends.regex.alphabet import PlainText
from grammarspec.frontends.regex.facts import Neighbour
from grammarspec.frontends.regex.lower import lower
from grammarspec.grammars.builder import GrammarBuilder
from grammarspec.grammars.engine import over_bytes

__all__ = ["collisions"]

_SECONDS: Final = 5.0
"""After which no further pairs are compared."""


def collisions(parser: Any, lexemes: Lexemes, names: Names) -> tuple[list[Finding], list[str]]:
    """The terminals of lark's parser that collide in a mode of its lexer, and notes on those that were not compared.

    Args:
        lexemes: those of the parser.
    """
    until = time.monotonic() + _SECONDS
    found: list[Finding] = []
    unknown: list[str] = []
    for one, other in _pairs(parser):
        both = f"{names.of(one.name)} and {names.of(other.name)}"
        try:
            if time.monotonic() > until:
                raise LimitExceeded("the time is used up")
            texts = [_common(lexemes, one, other, before) for before in lexemes.classes]
            text = next((text for text in texts if text is not None), None)
        except GrammarError:
            unknown.append(both)
            continue
        if text is not None:
            message = f"the terminals {both} both match {text!r}: the lexer tries {names.of(one.name)} first"
            hint = "give one of them a priority, or let one exclude the other's texts"
            found.append(Finding("collision", message, lexemes.called(other)[1] or lexemes.called(one)[1], hint))
    shown = ", ".join(unknown[:3]) + (f" and {len(unknown) - 3} other pairs" if len(unknown) > 3 else "")
    return found, [f"not compared: {shown}"] if unknown else []


def _pairs(parser: Any) -> Iterator[tuple[Any, Any]]:
    """The pairs of terminals that one mode tries, each once, in the order in which they are tried."""
    seen = set[tuple[str, str]]()
    for definitions, _ in modes(parser):
        expressions = [one for one in definitions if one.pattern.type == "re"]
        for one, other in combinations(expressions, 2):
            if one.priority == other.priority and (one.name, other.name) not in seen:
                seen.add((one.name, other.name))
                yield one, other


def _common(lexemes: Lexemes, one: Any, other: Any, before: Neighbour) -> str | None:
    """A shortest text that belongs to both of two terminals, behind a character; ``None`` if there is none.

    Raises:
        GrammarError: they are too large to be compared.
    """
    terminals = lexemes.terminal(one, before), lexemes.terminal(other, before)
    if not lexemes.rivals(*terminals):
        return None
    builder = GrammarBuilder()
    alphabet = PlainText(builder)
    node = builder.both(*[lower(terminal.tree, builder, alphabet) for terminal in terminals])
    try:
        constraint = over_bytes(builder.build(builder.terminal(node)))
    except Unsatisfiable:
        return None
    return bytes(token for token in constraint.shortest_completion(constraint.start) if token < 256).decode()
