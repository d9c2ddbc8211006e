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
_ITEM = 4
"""Steps of a transition, of an item of a state, and of each symbol that it passes."""


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
            _find_lookaheads(analysis, budget)
            _find_actions(analysis)
            states = enumerate(analysis.lr0_itemsets)  # in the order in which lark numbers them
            self.refused = {number: refused for number, state in states if (refused := _refused(state))}
        self._parse_table = analysis.parse_table


def _find_lookaheads(analysis: Any, budget: Budget) -> None:
    """Find before which terminals each state reduces which rules, as lark does.

    Both do as DeRemer and Pennello (1982) say: transitions by rules *read* terminals, and *include* what others read.
    lark keeps its relations by pairs of objects, whose hashes and comparisons are methods in Python; here transitions
    are numbers, and sets of terminals the bits of one.
    """
    transitions = _Transitions(analysis, budget)
    read = _closed(transitions.directly_read, transitions.reads, budget)
    followed = _closed(read, transitions.includes, budget)
    states: dict[Any, dict[Any, int]] = {}
    for transition, completed in enumerate(transitions.lookback):
        for state, rule in completed:
            by_rule = states.setdefault(state, {})
            by_rule[rule] = by_rule.get(rule, 0) | followed[transition]
    for state, rules in states.items():
        for rule, bits in rules.items():
            before, alone = transitions.terminals_of(bits), {rule}
            budget.spend(_LOOKAHEAD * len(before))
            if len(rules) == 1:
                state.lookaheads = dict.fromkeys(before, alone)
                break
            for terminal in before:
                state.lookaheads[terminal].add(rule)


class _Transitions:
    """The transitions of the states by rules, each a number, and how they are related.

    Attributes:
        directly_read: by transition: the terminals that the state behind it shifts, as bits.
        reads: those from the state behind it by rules that can be empty.
        includes: those whose terminals may come behind it, too, since it may be the end of their rule.
        lookback: the states that complete a rule which makes it, each with the rule.
    """

    def __init__(self, analysis: Any, budget: Budget) -> None:
        from lark.grammar import Terminal

        self.terminals: list[Any] = []
        bits: dict[Any, int] = {}

        def bit(terminal: Any) -> int:
            if terminal not in bits:
                bits[terminal] = 1 << len(self.terminals)
                self.terminals.append(terminal)
            return bits[terminal]

        rules, self.lists = analysis.lr0_rules_by_origin, dict[int, list[Any]]()
        numbers: dict[Any, dict[Any, int]] = {}
        behind: list[Any] = []
        shifted: dict[Any, int] = {}
        for state in analysis.lr0_itemsets:
            own = numbers[state] = {}
            shifted[state] = 0
            for symbol, next_state in state.transitions.items():
                budget.spend(_ITEM)
                if symbol in rules:
                    own[symbol] = len(behind)
                    behind.append(next_state)
                else:
                    shifted[state] |= bit(symbol)
        self.directly_read = [shifted[state] for state in behind]
        for root in analysis.lr0_start_states.values():
            (item,) = root.kernel
            self.directly_read[numbers[root][item.next]] |= bit(Terminal("$END"))
        empty = {
            state: [number for symbol, number in own.items() if symbol in analysis.NULLABLE]
            for state, own in numbers.items()
        }
        self.reads = [empty[state] for state in behind]
        self.includes: list[list[int]] = [[] for _ in behind]
        self.lookback: list[list[tuple[Any, Any]]] = [[] for _ in behind]
        for state, own in numbers.items():
            for item in state.closure:
                number = own.get(item.rule.origin)
                if number is not None:
                    self._relate(number, state, item, numbers, analysis.NULLABLE)
                    budget.spend(_ITEM * (2 + len(item.rule.expansion) - item.index))

    def _relate(self, number: int, state: Any, item: Any, numbers: Any, nullable: Any) -> None:
        """Follow an item of the transition ``number`` through the states that the rest of its rule passes."""
        parts, at = item.rule.expansion, state
        ends: list[int] = []
        for symbol in parts[item.index :]:
            if symbol not in nullable:
                ends.clear()
            transition = numbers[at].get(symbol)
            if transition is not None:
                ends.append(transition)
            at = at.transitions[symbol]
        for transition in ends:
            self.includes[transition].append(number)
        if item.index == 0:
            self.lookback[number].append((at, item.rule))

    def terminals_of(self, bits: int) -> list[Any]:
        """The terminals of a set."""
        known = self.lists.get(bits)
        if known is None:
            known = self.lists[bits] = [one for at, one in enumerate(self.terminals) if bits >> at & 1]
        return known


def _closed(sets: list[int], relation: list[list[int]], budget: Budget) -> list[int]:
    """By number: the union of its set with those of all that it is related to, directly or not.

    The strongly connected components are found as Tarjan (1972) does; those of one have the same set.
    """
    closed = [*sets]
    found = [0] * len(sets)  # in which order they are met; when their component is complete, more than all of these
    complete = len(sets) + 1
    stack: list[int] = []
    for first in range(len(sets)):
        if found[first]:
            continue
        path = [(first, iter(relation[first]), len(stack))]
        stack.append(first)
        found[first] = len(stack)
        while path:
            at, others, depth = path[-1]
            other = next(others, None)
            if other is None:
                path.pop()
                if found[at] == depth + 1:
                    for one in stack[depth:]:
                        found[one], closed[one] = complete, closed[at]
                    del stack[depth:]
                if path:
                    above = path[-1][0]
                    found[above] = min(found[above], found[at])
                    closed[above] |= closed[at]
            elif not found[other]:
                path.append((other, iter(relation[other]), len(stack)))
                stack.append(other)
                found[other] = len(stack)
            else:
                found[at] = min(found[at], found[other])
                closed[at] |= closed[other]
        budget.spend(1)
    return closed


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
