"""The tables of lark's LALR parser: what each state does before each terminal, conflicts resolved as lark does."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from grammarspec.frontends.lark.lalr_states import Analysis, State
from grammarspec.grammars.budget import Budget

__all__ = ["Tables"]

_LOOKAHEAD = 4
"""Steps of a terminal before which a state reduces; lowering its action takes further ones (:mod:`.lalr`)."""


class Tables:
    """The tables, in the place of lark's ``LALR_Parser``, which knows them by the same attribute.

    Attributes:
        refused: where lark resolves conflicts: by the number of a state, each rule that is complete there, with the
            terminals that may come after it before which the state does not reduce it.
    """

    def __init__(self, parser_conf: Any, budget: Budget, debug: bool = False, strict: bool = False) -> None:
        """Make the tables.

        Args:
            parser_conf: lark's ``ParserConf``.
            debug, strict: of no effect; where conflicts are errors, lark's own tables are made first.

        Raises:
            GrammarError: (lark's) two reductions are possible, and no priority says which.
            LimitExceeded, Cancelled: as the budget.
        """
        from lark.exceptions import GrammarError
        from lark.parsers.lalr_analysis import IntParseTable

        self.refused: dict[int, dict[Any, list[str]]] = {}
        with budget.at("the tables of the parser"):
            self._analysis = Analysis(parser_conf.rules, parser_conf.start, budget)
            self._budget = budget
            self._names: dict[int, list[str]] = {}
            collisions = [line for state in self._analysis.states for line in self._collisions(state)]
            if collisions:
                raise GrammarError("\n\n".join(collisions))
            rows = {number: self._row(number, state) for number, state in enumerate(self._analysis.states)}
        table: Any = IntParseTable
        self._parse_table = table(rows, self._analysis.starts, self._analysis.ends)

    def _row(self, number: int, state: State) -> dict[str, tuple[Any, Any]]:
        """The actions and gotos of a state."""
        from lark.parsers.lalr_analysis import Reduce, Shift

        analysis = self._analysis
        row = {analysis.symbols[symbol].name: (Shift, behind) for symbol, behind in state.moves.items()}
        taken = state.shifted  # a shift comes before reductions
        for rule, before in analysis.by_priority(state):
            reduction = (Reduce, analysis.rules[rule])
            row.update(dict.fromkeys(self._named(before & ~taken), reduction))
            if refused := before & taken:
                self.refused.setdefault(number, {})[analysis.rules[rule]] = self._named(refused)
            taken |= before
        return row

    def _collisions(self, state: State) -> Iterator[str]:
        """What lark says of reductions that it refuses to choose between."""
        for terminal, rules in self._analysis.collisions(state):
            listed = "".join(f"\n\t- {self._analysis.rules[rule]}" for rule in rules)
            yield f"Reduce/Reduce collision in {self._analysis.symbols[terminal]} between the following rules: {listed}"

    def _named(self, terminals: int) -> list[str]:
        """The names of the terminals of a set."""
        known = self._names.get(terminals)
        if known is None:
            known = self._names[terminals] = [one.name for one in self._analysis.terminals_of(terminals)]
        self._budget.spend(_LOOKAHEAD * len(known))
        return known
