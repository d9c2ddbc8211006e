"""Conflicts of lark's LALR tables: lark shifts where it could also reduce, and refuses to choose between reductions.

Lark's own analysis computes the states and their lookaheads; what it then does about a conflict is what is told here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from typing import Any

from grammarspec.errors import GrammarError
from grammarspec.frontends.lark.loader import Source
from grammarspec.frontends.lark.opening import Opened
from grammarspec.frontends.lark.report.findings import Finding
from grammarspec.frontends.lark.report.naming import Names

__all__ = ["conflicts"]

_DERIVED = re.compile(r"__(\w+?)_(?:star|plus|opt|sep|repeat\w*)_\d+")
"""The names of rules that lark makes of the repetitions in a rule."""


def conflicts(source: Source, opened: Opened, names: Names) -> list[Finding]:
    """The conflicts of a grammar's LALR tables; none for other parsers, or if lark refuses the grammar before that."""
    if opened.options.parser != "lalr":
        return []
    states: list[Any] = []
    plugins = {"LALR_Parser": partial(_Analysis, states)}
    with suppress(GrammarError):  # by which it ends; if it did not come so far, the error is found elsewhere
        opened.options.open(opened.text, opened.file, source.grammar, _plugins=plugins)
    return [finding for state in states for finding in _of_state(state, names, source)]


class _Analysis:
    """Stands in for lark's parser: it makes the states with their lookaheads, and goes no further."""

    def __init__(self, states: list[Any], conf: Any, debug: bool = False, strict: bool = False) -> None:
        from lark.exceptions import GrammarError as Enough
        from lark.parsers.lalr_analysis import LALR_Analyzer

        analysis: Any = LALR_Analyzer(conf)
        analysis.compute_lr0_states()
        analysis.compute_reads_relations()
        analysis.compute_includes_lookback()
        analysis.compute_lookaheads()
        states += analysis.lr0_itemsets
        raise Enough("the states are there")


def _of_state(state: Any, names: Names, source: Source) -> Iterator[Finding]:
    """The conflicts of a state, resolved as lark's ``compute_lalr1_states`` does."""
    for terminal, rules in state.lookaheads.items():
        before = names.of(terminal.name)
        ranked = sorted(rules, key=lambda rule: (-(rule.options.priority or 0), rule.origin.name, rule.order))
        best = ranked[0]
        if len(ranked) > 1 and (best.options.priority or 0) == (ranked[1].options.priority or 0):
            listed = " or ".join(_shown(rule, names) for rule in ranked)
            message = f"reduce/reduce conflict: before {before}, either of these may have ended: {listed}"
            hint = "give one of the rules a priority, or use parser='earley'"
            yield Finding("refused", message, _place(best, source), hint)
        elif terminal in state.transitions:
            goes_on = min((item.rule for item in state.closure if _is_next(item, terminal)), key=str)
            message = (
                f"shift/reduce conflict: {before} is taken for the next of {_shown(goes_on, names)}, "
                f"never for what follows {_shown(best, names)}"
            )
            yield Finding("conflict", message, _place(best, source))


def _is_next(item: Any, terminal: Any) -> bool:
    return not item.is_satisfied and item.next == terminal


def _shown(rule: Any, names: Names) -> str:
    """A rule in plain BNF."""
    return f"{rule.origin.name}: {' '.join(names.of(symbol.name) for symbol in rule.expansion) or '(empty)'}"


def _place(rule: Any, source: Source) -> str:
    derived = _DERIVED.fullmatch(rule.origin.name)
    return source.text.definition(derived[1] if derived else rule.origin.name)
