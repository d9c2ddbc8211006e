"""Why a ``.lark`` grammar has no texts: a terminal that matches nothing, or rules that need each other without end.

A rule has texts if one of its alternatives needs only rules and terminals that have some. From the start rule, the
search follows what has none until it comes to a terminal, or back to a rule.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator
from typing import Any, Final

from grammarspec.errors import GrammarError, Unsatisfiable
from grammarspec.frontends.lark.loader import Source
from grammarspec.frontends.lark.terminals import Terminals
from grammarspec.frontends.lark.tree import Alternatives, Body, Literal, Maybe, Pattern, Repetition, Sequence, Symbol
from grammarspec.frontends.regex.contradictions import contradiction as contradiction_of_regex
from grammarspec.frontends.regex.patterns import Dialect, parser_of
from grammarspec.grammars.builder import GrammarBuilder
from grammarspec.grammars.engine import over_bytes

__all__ = ["contradiction", "unproductive"]

_SECONDS: Final = 0.5
"""After which the search for the cause is given up."""


def contradiction(source: Source, start: str, dialect: Dialect) -> Unsatisfiable:
    """The error that says why a grammar, whose expressions are of a dialect, has no texts from a rule on."""
    return _Search(source, dialect).error(start)


def unproductive(source: Source, names: Collection[str], dialect: Dialect) -> Iterator[tuple[str, str]]:
    """The rules and terminals that have no texts, each with the reason.

    Templates are not looked into, and nothing is found if the search takes too long.

    Args:
        source: the grammar.
        names: those that are looked for; the rules in the order of the grammar come first, then the terminals.
        dialect: the dialect of its expressions.
    """
    search = _Search(source, dialect)
    for name, body in search.rules.items():
        missed = search.needed(body) if name in names and name not in search.productive else None
        if search.gives_up:
            return
        if isinstance(missed, Literal):
            yield name, f"derives no text: it needs {missed.pattern.raw}, which matches none"
        elif missed is not None:
            again = "itself" if missed.name == name else f"{missed.name}, which has none"
            yield name, f"derives no text: it needs {again}"
    for name in source.terminals:
        if name in names and not search.gives_up and search.is_empty(name, None):
            yield name, "matches no text"


class _Search:
    """The search in one grammar."""

    def __init__(self, source: Source, dialect: Dialect) -> None:
        self.source = source
        self.dialect: Dialect = dialect
        self.empty_terminals: dict[str, bool] = {}
        self.rules = {name: rule.body for name, rule in source.rules.items() if rule.body and not rule.parameters}
        """The bodies of the rules. Templates are not looked into."""
        self.productive: set[str] = set()
        """The rules that are known to have texts."""
        self.until = time.monotonic() + _SECONDS
        while more := self.more_productive():
            self.productive |= more

    @property
    def gives_up(self) -> bool:
        """Whether the time is used up, so that it is not known which rules have texts."""
        return time.monotonic() > self.until

    def more_productive(self) -> set[str]:
        """Further rules that have texts, if there are any; none if the time is used up."""
        if self.gives_up:
            return set()
        return {name for name, rule in self.rules.items() if name not in self.productive and not self.needed(rule)}

    def needed(self, body: Body) -> Symbol | Literal | None:
        """What a body needs that has no texts, as far as is known; ``None`` if the body has texts."""
        match body:
            case Symbol(name, is_terminal):
                rule = name in self.rules and name not in self.productive
                return body if (self.is_empty(name, None) if is_terminal else rule) else None
            case Literal(pattern):
                return body if self.is_empty("", pattern) else None
            case Sequence(parts):
                return next((missed for part in parts if (missed := self.needed(part))), None)
            case Alternatives(branches):
                all_missed = [self.needed(branch) for branch in branches]
                return all_missed[0] if all(all_missed) else None
            case Repetition(inner, operator, counts) if operator == "+" or int((counts or ("0",))[0]):
                return self.needed(inner)
            case Maybe() | Repetition():
                return None
        return None

    def is_empty(self, name: str, pattern: Pattern | None) -> bool:
        """Whether a terminal, by its name or within a rule, matches no text."""
        key = pattern.regex if pattern else name
        if key not in self.empty_terminals:
            self.empty_terminals[key] = self._is_empty(name, pattern)
        return self.empty_terminals[key]

    def _is_empty(self, name: str, pattern: Pattern | None) -> bool:
        if pattern and pattern.literal is not None:
            return False
        builder = GrammarBuilder()
        terminals = Terminals(self.source, builder, 0, self.dialect, complete=True)
        try:
            over_bytes(builder.build(terminals.literal(pattern) if pattern else terminals.named(name)))
        except Unsatisfiable:
            return True
        except GrammarError:
            pass
        return False

    def error(self, start: str) -> Unsatisfiable:
        """The error for a grammar in which the rule ``start`` has no texts."""
        path = {start: 0}
        last = start
        place = self.source.text.definition
        if self.gives_up:  # which rules have texts is not known
            self.rules.clear()
        while (found := self.needed(self.rules[last]) if last in self.rules else None) is not None:
            if isinstance(found, Literal):
                return self._of_terminal(found.pattern.raw, self.source.text.literal(found.pattern.raw), found.pattern)
            if found.is_terminal:
                return self._of_terminal(found.name, place(found.name), self.source.pattern(found.name))
            if found.name in path:
                return Unsatisfiable.of_cycle(
                    list(path)[path[found.name] :], place(found.name) or f"the rule {found.name}"
                )
            last, path[found.name] = found.name, len(path)
        return Unsatisfiable(f"no text belongs to the grammar: the rule {last} has none", place(last))

    def _of_terminal(self, name: str, where: str, pattern: Any) -> Unsatisfiable:
        said = f"no text belongs to the grammar: the terminal {name} matches none"
        inner = contradiction_of_regex(parser_of(pattern.regex, 0, self.dialect), said)
        return Unsatisfiable(inner.message, f"{where or f'the terminal {name}'}\n  in its expression, {inner.where}")
