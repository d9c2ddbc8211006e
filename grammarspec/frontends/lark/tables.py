"""The tables of an LALR parser: what each state does before each terminal.

For lark's own LALR parser, conflicts are resolved as lark does. For its parser of Earley's, which takes all that the
rules do, no action is left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from grammarspec.errors import UnsupportedFeature
from grammarspec.frontends.lark.lalr_states import Analysis, State
from grammarspec.grammars.budget import Budget

__all__ = ["Tables"]

_LOOKAHEAD = 4
"""Steps of a terminal before which a state reduces; lowering its action takes further ones (:mod:`.lalr`)."""


class Tables:
    """The tables, in the place of lark's ``LALR_Parser``, which knows them by the same attribute.

    Attributes:
        set_aside: where there are conflicts: by the number of a state, each rule that is complete there, with the
            terminals that may come after it before which the table of the state has something else.
        resolved: whether what is set aside is left out; else it is done as well.
    """

    def __init__(
        self, parser_conf: Any, budget: Budget, *, resolved: bool = True, debug: bool = False, strict: bool = False
    ) -> None:
        """Make the tables.

        Args:
            parser_conf: lark's ``ParserConf``.
            resolved: as the attribute.
            debug, strict: of no effect; where conflicts are errors, lark's own tables are made first.

        Raises:
            GrammarError: (lark's) conflicts are to be resolved, and no priority says which of two reductions to make.
            UnsupportedFeature: all actions are wanted, and there is no end of them before some terminal.
            LimitExceeded, Cancelled: as the budget.
        """
        from lark.exceptions import GrammarError
        from lark.parsers.lalr_analysis import IntParseTable

        self.set_aside: dict[int, dict[Any, list[str]]] = {}
        self.resolved = resolved
        with budget.at("the tables of the parser"):
            self._analysis = Analysis(parser_conf.rules, parser_conf.start, budget)
            self._budget = budget
            self._names: dict[int, list[str]] = {}
            if not resolved and (name := self._analysis.recursion_behind_nothing()):
                raise UnsupportedFeature(
                    f"the rule {name} begins with itself behind what can be empty, which is not supported with postlex",
                    hint="leave out of the rule what comes before it",
                )
            collisions = [line for state in self._analysis.states for line in self._collisions(state)]
            if resolved and collisions:
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
            if others := before & taken:
                self.set_aside.setdefault(number, {})[analysis.rules[rule]] = self._named(others)
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
