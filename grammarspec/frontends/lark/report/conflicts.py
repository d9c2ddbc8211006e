"""Conflicts of lark's LALR tables: lark shifts where it could also reduce, and refuses to choose between reductions.

What lark then does about a conflict (:mod:`..tables`) is what is told here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from typing import Any

from grammarspec.errors import GrammarError, LimitExceeded
from grammarspec.frontends.lark.lalr_states import Analysis, State, members
from grammarspec.frontends.lark.loader import Source
from grammarspec.frontends.lark.opening import Opened
from grammarspec.frontends.lark.report.findings import Finding
from grammarspec.frontends.lark.report.naming import Names
from grammarspec.grammars.budget import Budget

__all__ = ["conflicts"]

_DERIVED = re.compile(r"__(\w+?)_(?:star|plus|opt|sep|repeat\w*)_\d+")
"""The names of rules that lark makes of the repetitions in a rule."""


def conflicts(source: Source, opened: Opened, names: Names) -> list[Finding]:
    """The conflicts of a grammar's LALR tables; none for other parsers, or if lark refuses the grammar before that."""
    if opened.options.parser != "lalr":
        return []
    made: list[Analysis] = []
    plugins = {"LALR_Parser": partial(_Stop, made)}
    with suppress(
        GrammarError, LimitExceeded
    ):  # by which it ends; if it did not come so far, the error is found elsewhere
        opened.options.open(opened.text, opened.file, source.grammar, _plugins=plugins)
    return [
        finding
        for analysis in made
        for state in analysis.states
        for finding in _of_state(analysis, state, names, source)
    ]


class _Stop:
    """Stands in for lark's parser: it makes the states with their lookaheads, and goes no further."""

    def __init__(self, made: list[Analysis], conf: Any, debug: bool = False, strict: bool = False) -> None:
        from lark.exceptions import GrammarError as Enough

        made.append(Analysis(conf.rules, conf.start, Budget()))
        raise Enough("the states are there")


def _of_state(analysis: Analysis, state: State, names: Names, source: Source) -> Iterator[Finding]:
    """The conflicts of a state, resolved as lark does."""
    refused = 0
    for terminal, rules in analysis.collisions(state):
        refused |= 1 << terminal
        listed = " or ".join(sorted(_shown(analysis.rules[rule], names) for rule in rules))
        name = names.of(analysis.symbols[terminal].name)
        message = f"reduce/reduce conflict: before {name}, either of these may have ended: {listed}"
        hint = "give one of the rules a priority, or use parser='earley'"
        yield Finding("refused", message, _place(analysis.rules[rules[0]], source), hint)
    higher = 0
    for rule, before in analysis.by_priority(state):
        for terminal in members(before & state.shifted & ~higher & ~refused):
            # an item behind the terminal is one further than that which the state has
            behind = analysis.states[state.moves[terminal]].kernel
            goes_on = min((analysis.rules[analysis.rule_of[item]] for item in behind), key=str)
            message = (
                f"shift/reduce conflict: {names.of(analysis.symbols[terminal].name)} is taken for the next of "
                f"{_shown(goes_on, names)}, never for what follows {_shown(analysis.rules[rule], names)}"
            )
            yield Finding("conflict", message, _place(analysis.rules[rule], source))
        higher |= before


def _shown(rule: Any, names: Names) -> str:
    """A rule in plain BNF."""
    return f"{rule.origin.name}: {' '.join(names.of(symbol.name) for symbol in rule.expansion) or '(empty)'}"


def _place(rule: Any, source: Source) -> str:
    derived = _DERIVED.fullmatch(rule.origin.name)
    return source.text.definition(derived[1] if derived else rule.origin.name)
