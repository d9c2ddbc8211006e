"""The tables of lark's LALR parser, made as lark makes them, and paid for.

Lark's own analysis runs; the parts of it that take time in proportion to states times terminals, or more, are replaced
here by ones with the same result, which takes a fraction of the time and is charged to a budget while it is made.
"""

from __future__ import annotations

from typing import Any

from grammarspec.grammars.budget import Budget

__all__ = ["Tables"]

_LOOKAHEAD = 4
"""Steps of a terminal before which a state reduces; lowering its action takes further ones (:mod:`.lalr`)."""
_JOINED = 8
"""Terminals that are joined with others in a step."""
_TRANSITION = 3
"""Steps of a transition by a rule, and of each item of its state that derives the rule."""


class Tables:
    """The tables of lark's LALR parser.

    Attributes:
        refused: where lark resolved conflicts: by the number of a state, each rule that is complete there, with the
            terminals that may come after it before which the state does not reduce it.
    """

    def __init__(self, parser_conf: Any, budget: Budget, debug: bool = False, strict: bool = False) -> None:
        """Make the tables, as lark's ``LALR_Parser`` does.

        Raises:
            LimitExceeded, Cancelled: as the budget.
        """
        from lark.parsers.lalr_analysis import LALR_Analyzer

        analysis: Any = LALR_Analyzer(parser_conf, strict=strict)
        with budget.at("the tables of the parser"):
            analysis.compute_lr0_states()
            analysis.compute_reads_relations()
            _relate_by_symbol(analysis, budget)
            _find_lookaheads(analysis, budget)
            _find_actions(analysis)
            states = enumerate(analysis.lr0_itemsets)  # in the order in which lark numbers them
            self.refused = {number: refused for number, state in states if (refused := _refused(state))}
        self._parse_table = analysis.parse_table


def _relate_by_symbol(analysis: Any, budget: Budget) -> None:
    """Relate transitions as lark does, showing it only the items of a state that derive the transition's symbol.

    It looks for these among all items of the state, for each transition anew: quadratic in the rules of an alternation.
    """
    transitions, items = analysis.nonterminal_transitions, dict[Any, dict[Any, list[Any]]]()
    for state, symbol in transitions:
        if state not in items:
            items[state] = {}
            for item in state.closure:
                items[state].setdefault(item.rule.origin, []).append(item)
        whole, state.closure = state.closure, items[state].get(symbol, [])
        budget.spend(_TRANSITION * (1 + len(state.closure)))
        analysis.nonterminal_transitions = [(state, symbol)]
        analysis.compute_includes_lookback()
        state.closure = whole
    analysis.nonterminal_transitions = transitions


def _find_lookaheads(analysis: Any, budget: Budget) -> None:
    """Find before which terminals each state reduces which rules, as lark does.

    Most states reduce one rule: its terminals are joined as sets, and not one by one, each of which lark would hash by
    a method in Python.
    """
    from lark.parsers import lalr_analysis

    digraph: Any = lalr_analysis.digraph
    reads: dict[Any, set[Any]] = digraph(analysis.nonterminal_transitions, analysis.reads, analysis.directly_reads)
    follows = digraph(analysis.nonterminal_transitions, analysis.includes, reads)
    states: dict[Any, dict[Any, list[set[Any]]]] = {}
    for transition, completed in analysis.lookback.items():
        for state, rule in completed:
            states.setdefault(state, {}).setdefault(rule, []).append(follows[transition])
    for state, rules in states.items():
        for rule, sets in rules.items():
            before, alone = set[Any]().union(*sets), {rule}
            budget.spend(_LOOKAHEAD * len(before) + sum(map(len, sets)) // _JOINED)
            if len(rules) == 1:
                state.lookaheads = dict.fromkeys(before, alone)
                break
            for terminal in before:
                state.lookaheads[terminal].add(rule)


def _find_actions(analysis: Any) -> None:
    """Make the tables as lark does, which is shown only the lookaheads of states that reduce several rules.

    The actions of others, which cannot conflict but with a shift, are added afterwards: shifts come before reductions.
    """
    from lark.parsers.lalr_analysis import Reduce

    reductions: list[tuple[Any, Any]] = []
    states = list(analysis.lr0_itemsets)  # the order in which lark numbers them
    for state in states:
        lookaheads = state.lookaheads
        alone = len(set(map(id, lookaheads.values()))) == 1 and len(next(iter(lookaheads.values()))) == 1
        reductions.append((state, lookaheads) if alone else (state, {}))
        if alone:
            state.lookaheads = {}
    analysis.compute_lalr1_states()
    for number, (state, lookaheads) in enumerate(reductions):
        if lookaheads:
            state.lookaheads = lookaheads
            row = analysis.parse_table.states[number]
            (rule,) = next(iter(lookaheads.values()))
            reduction = (Reduce, rule)
            for terminal in lookaheads:
                row.setdefault(terminal.name, reduction)


def _refused(state: Any) -> dict[Any, set[Any]]:
    """By rule that a state completes: the terminals that it could be reduced before, but is not."""
    refused = dict[Any, set[Any]]()
    for terminal in state.transitions.keys() & state.lookaheads.keys():
        for rule in state.lookaheads[terminal]:
            refused.setdefault(rule, set()).add(terminal)
    if len(set[Any]().union(*state.lookaheads.values())) > 1:
        for terminal, rules in state.lookaheads.items():
            best = max(rules, key=lambda rule: rule.options.priority or 0)
            for rule in rules - {best}:
                refused.setdefault(rule, set()).add(terminal)
    return refused
