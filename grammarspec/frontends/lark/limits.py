"""Bounds on grammars that lark's loader itself does not have.

Lark's loader can be kept busy for ever by a short text: two expressions of its lexer backtrack on literals that never
end and on long runs of blank lines, and terminals that refer to each other are written out in full. Such texts are
refused, or made harmless, before lark sees them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from math import prod
from typing import Any, Final

from grammarspec.errors import GrammarSyntaxError, LimitExceeded
from grammarspec.frontends.lark.text import TOKENS, GrammarText
from grammarspec.frontends.lark.tree import (
    Alternatives,
    Body,
    Maybe,
    Repetition,
    Rule,
    Sequence,
    Symbol,
    terminals_of,
)
from grammarspec.grammars.budget import Budget

__all__ = ["charge_loading", "check_expansion", "check_terminal", "check_text", "without_long_gaps"]

_LOADING: Final = 100
"""Steps that lark's loader takes for each character of a grammar: about twenty microseconds. Once it runs, nothing can
stop it."""
_MAX_TERMINAL: Final = 1_000_000
"""Characters of one terminal's regular expression."""
_MAX_SYMBOLS: Final = 40_000
"""References of terminals to others, all written out in full: lark writes them out, which takes half a second then."""
_MAX_BACKSLASHES: Final = 8
"""Escaped backslashes in what is read as a literal that never ends; lark's time doubles with each."""
_PRODUCTION: Final = 40
"""Steps of a symbol of a rule in plain BNF, which lark makes and compares with others."""
_ENTRY: Final = 1
"""Steps of a terminal in a state of LALR tables, as many states being charged as there are places in the rules in plain
BNF. Grammars of real languages have up to a million such entries."""
_PARTS: Final = 3
"""Symbols, in all the parts of an alternative, that lark looks at in the time of a step."""
_FACTORED: Final = 50
"""Counts from which on lark makes rules of parts of a repetition, and does not write all of it out."""
_MAX_BLANK_LINES: Final = 100
_LONG_GAP = re.compile(rf"(?:[ \t\r]*\n){{{_MAX_BLANK_LINES},}}")


def without_long_gaps(text: str) -> str:
    """The grammar with at most 100 blank lines in a row; lark's time is quadratic in them."""
    return _LONG_GAP.sub(lambda gap: "\n" * min(_MAX_BLANK_LINES, gap[0].count("\n")), text)


def charge_loading(text: str, budget: Budget) -> None:
    """Charge what lark's loader takes for a text.

    Raises:
        LimitExceeded: it is too much.
    """
    size = len(" ".join(text.split()))
    budget.spend(_LOADING * size, f"the text of the grammar, {size} characters")


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


def check_expansion(rules: Mapping[str, Rule], budget: Budget, *, tables: bool) -> None:
    """Charge what lark makes of the rules in plain BNF: options in a sequence multiply its alternatives.

    Args:
        tables: whether it makes LALR tables of them, too.

    Raises:
        LimitExceeded: it is too much.
    """
    places, terminals = 0, set[str]()
    for name, rule in rules.items():
        if rule.body is not None:
            count, length = _expanded(rule.body)
            size = min(count * (1 + length), 1 << 40)
            # lark looks at each part of an alternative between two of its places
            steps = _PRODUCTION * size + count * length**3 // _PARTS
            budget.spend(min(steps, 1 << 60), f"the rule {name}, {count} alternatives in BNF")
            places += size
            terminals.update(
                one.name if isinstance(one, Symbol) else one.pattern.regex for one in terminals_of(rule.body)
            )
    if tables:
        entries = places * len(terminals)
        budget.spend(_ENTRY * entries, f"LALR tables of {places} places and {len(terminals)} terminals")


def _expanded(body: Body) -> tuple[int, int]:
    """The alternatives of a body in BNF, and the symbols of the longest one."""
    match body:
        case Alternatives(branches):
            found = [_expanded(branch) for branch in branches]
            return sum(count for count, _ in found), max(length for _, length in found)
        case Sequence(parts):
            found = [_expanded(part) for part in parts]
            return min(prod(count for count, _ in found), 1 << 40), sum(length for _, length in found)
        case Maybe(inner):
            count, length = _expanded(inner)
            return count + 1, length
        case Repetition(inner, operator, counts):
            count, length = _expanded(inner)
            if operator != "~":
                return count + (operator != "+"), length
            least, most = int(counts[0][:7]), int(counts[-1]) if len(counts[-1]) < 7 else 1 << 20
            if most < _FACTORED:
                return min(sum(count**times for times in range(least, most + 1)), 1 << 40), most * length
            return (most - least + 1) * count, most * length
    return 1, 1


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
