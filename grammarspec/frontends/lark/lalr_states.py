"""The states of an LALR(1) parser and what each reduces before which terminals, as lark finds them, in numbers.

States are sets of LR(0) items; lookaheads are found as DeRemer and Pennello (1982) say: transitions by rules *read*
terminals, and *include* what others read. lark does the same with symbols, items and states as objects, whose hashes
and comparisons are methods in Python. Here all of them are numbers, and sets of terminals the bits of one, which takes
a quarter of the time, is charged to a budget, and can be cancelled.

Where transitions read each other, the grammar is LR(k) for no k. lark then takes one set of lookaheads for all of them,
and who sees what of it depends on the order of hashes; here all of them see all of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, Final

from grammarspec.grammars.budget import Budget

__all__ = ["Analysis", "State", "members"]

_ITEM: Final = 4
"""Steps of an item of a state, of a transition, and of each symbol that an item's rule passes."""
_COMPLETE: Final = -1
"""What follows an item whose rule is complete."""


@dataclass(slots=True)
class State:
    """A state of the parser.

    Attributes:
        kernel: the items that it was made of.
        moves: by symbol: the state behind it.
        shifted: the terminals among these symbols, as bits.
        completed: by rule that is complete here: the terminals that may come after it, as bits.
    """

    kernel: tuple[int, ...]
    moves: dict[int, int] = field(default_factory=dict)
    shifted: int = 0
    completed: dict[int, int] = field(default_factory=dict)


class Analysis:
    """The states of a grammar's parser.

    Symbols are numbered: the terminals first, so that a set of them is the bits of a number. An item is the number of
    its rule's first item and the symbols before its place.

    Attributes:
        symbols: lark's symbols, by number.
        terminals: how many of them are terminals.
        rules: lark's rules, by number.
        rule_of: by item: its rule. That of a start is behind the others.
        states: by number.
        starts, ends: by rule to start from: the state before a text of it, and the one behind it.
    """

    def __init__(self, rules: Sequence[Any], starts: Iterable[str], budget: Budget) -> None:
        """Make the states.

        Args:
            rules: lark's, in plain BNF.
            starts: the names of rules to start from.

        Raises:
            LimitExceeded, Cancelled: as the budget.
        """
        from lark.grammar import NonTerminal, Terminal

        self._budget = budget
        self.rules = rules
        end = Terminal("$END")
        terminals = dict.fromkeys([end, *(one for rule in rules for one in rule.expansion if one.is_term)])
        derived = dict.fromkeys(rule.origin for rule in rules)
        self.symbols: list[Any] = [*terminals, *derived]
        self.terminals = len(terminals)
        numbers = {symbol: number for number, symbol in enumerate(self.symbols)}
        self._bodies = [[numbers[symbol] for symbol in rule.expansion] for rule in rules]
        self._origins = [numbers[rule.origin] for rule in rules]
        self._rules_of: list[list[int]] = [[] for _ in self.symbols]
        for rule, origin in enumerate(self._origins):
            self._rules_of[origin].append(rule)
        roots = {start: len(rules) + number for number, start in enumerate(starts)}
        self._bodies += [[numbers[NonTerminal(start)]] for start in roots]
        self._origins += [len(self.symbols)] * len(roots)  # of no symbol: nothing refers to it
        self._first_items: list[int] = []
        self.rule_of: list[int] = []
        self._after: list[int] = []
        for rule, body in enumerate(self._bodies):
            self._first_items.append(len(self._after))
            self._after += [*body, _COMPLETE]
            self.rule_of += [rule] * (len(body) + 1)
        self._nullable = self._find_nullable()
        self.states: list[State] = []
        self._numbers: dict[tuple[int, ...], int] = {}
        self.starts = {start: self._state((self._first_items[root],)) for start, root in roots.items()}
        self._find_states()
        self.ends = {start: self.states[state].moves[self._started_rule(state)] for start, state in self.starts.items()}
        self._find_lookaheads()

    def terminals_of(self, bits: int) -> list[Any]:
        """Lark's terminals of a set of bits."""
        return [self.symbols[number] for number in members(bits)]

    def by_priority(self, state: State) -> list[tuple[int, int]]:
        """The rules that a state completes, the one of the highest priority first, each with its lookaheads."""
        return sorted(state.completed.items(), key=lambda entry: (-_priority(self.rules[entry[0]]), entry[0]))

    def collisions(self, state: State) -> Iterator[tuple[int, list[int]]]:
        """The terminals before which several rules of the same priority are complete, and none of a higher one."""
        if len(state.completed) < 2:
            return
        higher = 0
        for _, group in groupby(self.by_priority(state), lambda entry: _priority(self.rules[entry[0]])):
            entries = [*group]
            once = twice = 0
            for _, before in entries:
                once, twice = once | before, twice | once & before
            for terminal in members(twice & ~higher):
                yield terminal, [rule for rule, before in entries if before >> terminal & 1]
            higher |= once

    def recursion_behind_nothing(self) -> str:
        """A rule that begins with itself, directly or not, behind symbols that can be empty; ``""``: there is none.

        Before a terminal, an LR parser that tries all actions could make such symbols of nothing without end.
        """
        begun: list[list[int]] = [[] for _ in self.symbols]  # by symbol: those that it begins with
        behind: list[tuple[int, int]] = []  # symbols, and those that they begin with behind others
        for rule, body in enumerate(self._bodies[: len(self.rules)]):
            for place, symbol in enumerate(body):
                self._budget.spend(_ITEM)
                begun[self._origins[rule]].append(symbol)
                if place:
                    behind.append((self._origins[rule], symbol))
                if not self._nullable[symbol]:
                    break
        _, components = _closed([0] * len(begun), begun, self._budget)
        found = next((one for one, symbol in behind if components[one] == components[symbol]), None)
        return "" if found is None else self.symbols[found].name

    def _started_rule(self, start: int) -> int:
        """The rule that a state of :attr:`starts` is for."""
        return self._after[self.states[start].kernel[0]]

    def _find_nullable(self) -> list[bool]:
        """By symbol: whether it has the empty text. A rule is looked at once for each of its symbols that has it."""
        nullable = [False] * (len(self.symbols) + 1)
        waiting: list[list[int]] = [[] for _ in self.symbols]
        missing = [len(body) for body in self._bodies]
        for rule, body in enumerate(self._bodies):
            for symbol in body:
                waiting[symbol].append(rule)
        complete = [rule for rule, count in enumerate(missing) if count == 0]
        while complete:
            origin = self._origins[complete.pop()]
            if not nullable[origin]:
                nullable[origin] = True
                for rule in waiting[origin] if origin < len(self.symbols) else ():
                    missing[rule] -= 1
                    if missing[rule] == 0:
                        complete.append(rule)
        return nullable

    # ------------------------------------------------------------------ states
    def _state(self, kernel: tuple[int, ...]) -> int:
        """The number of the state of a kernel."""
        number = self._numbers.get(kernel)
        if number is None:
            number = self._numbers[kernel] = len(self.states)
            self.states.append(State(kernel))
        return number

    def _find_states(self) -> None:
        """Make all states, from those of the starts on."""
        begun = self._begun()
        closures: dict[int, tuple[dict[int, tuple[int, ...]], list[int]]] = {}
        for state in self.states:  # which grow meanwhile
            moves: dict[int, list[int]] = {}
            added = 0
            for item in state.kernel:
                symbol = self._after[item]
                if symbol == _COMPLETE:
                    if self.rule_of[item] < len(self.rules):
                        state.completed[self.rule_of[item]] = 0
                else:
                    moves.setdefault(symbol, []).append(item + 1)
                    added |= begun[symbol]
            if added not in closures:
                closures[added] = self._closure(added)
            behind, empty = closures[added]
            state.completed.update(dict.fromkeys(empty, 0))
            self._budget.spend(_ITEM * (len(state.kernel) + len(behind)))
            for symbol, items in moves.items():
                state.moves[symbol] = self._state((*sorted(items), *behind.get(symbol, ())))
            for symbol, kernel in behind.items():
                if symbol not in moves:
                    state.moves[symbol] = self._state(kernel)
            state.shifted = sum(1 << symbol for symbol in state.moves if symbol < self.terminals)

    def _begun(self) -> list[int]:
        """By symbol: the rules' origins that a text of it may begin with, itself among them, as bits."""
        own = [0 if number < self.terminals else 1 << number for number in range(len(self.symbols))]
        first = [[self._bodies[rule][0] for rule in rules if self._bodies[rule]] for rules in self._rules_of]
        return _closed(own, first, self._budget)[0]

    def _closure(self, origins: int) -> tuple[dict[int, tuple[int, ...]], list[int]]:
        """The items that begin rules of these origins, one symbol further, by that symbol; and their empty rules."""
        moves: dict[int, list[int]] = {}
        empty = []
        for origin in members(origins):
            for rule in self._rules_of[origin]:
                self._budget.spend(_ITEM)
                body = self._bodies[rule]
                if body:
                    moves.setdefault(body[0], []).append(self._first_items[rule] + 1)
                else:
                    empty.append(rule)
        return {symbol: tuple(sorted(items)) for symbol, items in moves.items()}, empty

    # -------------------------------------------------------------- lookaheads
    def _find_lookaheads(self) -> None:
        """Find before which terminals each state reduces which rules."""
        numbers: list[dict[int, int]] = []  # by state: the number of each of its transitions by rules
        behind: list[int] = []  # by transition: the state that it leads to
        for state in self.states:
            own = {symbol: len(behind) + at for at, symbol in enumerate(s for s in state.moves if s >= self.terminals)}
            numbers.append(own)
            behind += [state.moves[symbol] for symbol in own]
        read = [self.states[state].shifted for state in behind]
        for start in self.starts.values():
            read[numbers[start][self._started_rule(start)]] |= 1  # the end of the text
        empty = [[number for symbol, number in own.items() if self._nullable[symbol]] for own in numbers]
        read, components = _closed(read, [empty[state] for state in behind], self._budget)
        includes, lookback = self._relations(numbers)
        # as in lark, transitions that read each other have one set (see the head of this module)
        for transition, component in enumerate(components):
            if component != transition:
                includes[component] += includes[transition]
                includes[transition] = [component]
        followed, _ = _closed(read, includes, self._budget)
        for transition, completed in enumerate(lookback):
            for number, rule in completed:
                self.states[number].completed[rule] |= followed[transition]

    def _relations(self, numbers: list[dict[int, int]]) -> tuple[list[list[int]], list[list[tuple[int, int]]]]:
        """How transitions by rules are related.

        Returns:
            By transition: those whose terminals may come behind it, too, since it may be the end of their rule; and the
            states that complete a rule which makes it, each with the rule.
        """
        tails = [self._tail(body) for body in self._bodies]
        count = sum(map(len, numbers))
        includes: list[list[int]] = [[] for _ in range(count)]
        lookback: list[list[tuple[int, int]]] = [[] for _ in range(count)]
        for number, own in enumerate(numbers):
            begun = [self._first_items[rule] for origin in own for rule in self._rules_of[origin]]
            # lark looks at rules that were begun before, too
            begun += [item for item in self.states[number].kernel if self._origins[self.rule_of[item]] in own]
            for item in begun:
                rule = self.rule_of[item]
                transition, body = own[self._origins[rule]], self._bodies[rule]
                place = item - self._first_items[rule]
                self._budget.spend(_ITEM * (1 + len(body) - place))
                at = number
                for at_place in range(place, len(body)):
                    symbol = body[at_place]
                    if at_place >= tails[rule] and symbol >= self.terminals:
                        includes[numbers[at][symbol]].append(transition)
                    at = self.states[at].moves[symbol]
                if place == 0:
                    lookback[transition].append((at, rule))
        return includes, lookback

    def _tail(self, body: list[int]) -> int:
        """The first place in a rule behind which all that follows can be empty."""
        tail = len(body) - 1
        while tail > 0 and self._nullable[body[tail]]:
            tail -= 1
        return tail


def _priority(rule: Any) -> int:
    return int(rule.options.priority or 0)


def members(bits: int) -> list[int]:
    """The numbers of the bits that are set."""
    found = []
    while bits:
        lowest = bits & -bits
        found.append(lowest.bit_length() - 1)
        bits ^= lowest
    return found


def _closed(sets: list[int], relation: list[list[int]], budget: Budget) -> tuple[list[int], list[int]]:
    """By number: the union of its set with those of all that it is related to, directly or not; and its component.

    The strongly connected components are found as Tarjan (1972) does; those of one have the same set.
    """
    closed, components = [*sets], [*range(len(sets))]
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
                        found[one], closed[one], components[one] = complete, closed[at], at
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
    return closed, components
