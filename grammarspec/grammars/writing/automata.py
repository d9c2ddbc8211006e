"""Regular parts as automata over characters: for operators that a notation lacks.

The engine makes the states, byte by byte; here they become states over whole characters, and equal ones are merged
(Moore 1956).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from grammarspec._compiler import Constraint
from grammarspec._compiler import Grammar as Ir
from grammarspec.errors import LimitExceeded, Unsatisfiable
from grammarspec.grammars.builder import GrammarBuilder
from grammarspec.grammars.engine import Limits, byte_index, compile_ir
from grammarspec.grammars.writing.graph import joined

__all__ = ["Automaton", "automaton"]

_LIMITS: Final = Limits(max_steps=200_000)
_MOST_STATES: Final = 400
"""States over characters, before equal ones are merged."""
_MOST_WRITTEN: Final = 60
"""States that are written."""
_LEADS: Final = ((0xC2, 0xDF, 0xC0, 1), (0xE0, 0xEF, 0xE0, 2), (0xF0, 0xF4, 0xF0, 3))
"""Of each kind of first byte: the first, the last, its fixed bits, and how many bytes follow."""

Ranges = tuple[tuple[int, int], ...]
Automaton = list[tuple[bool, dict[int, Ranges]]]
"""The states, the first of which is the initial one: whether a text may end there, and for each following state the
characters that lead to it."""


def automaton(ir: Ir, behind_start: int) -> Automaton | None:
    """The automaton of a regular node of a grammar; ``None`` if it is too large to be written.

    Args:
        ir: the grammar.
        behind_start: the number of the node, less that of the grammar's start.
    """
    builder = GrammarBuilder()
    node = builder.embed(ir) + behind_start
    try:
        text = builder.both(builder.any_text(), builder.terminal(node))  # a complement has bytes that are no text
        found = _Explorer(compile_ir(builder.build(text), byte_index(), _LIMITS)).states()
    except Unsatisfiable:
        return [(False, {})]
    except LimitExceeded:
        return None
    return None if found is None else _merged(found)


class _Explorer:
    """Finds the states of one constraint over bytes."""

    def __init__(self, constraint: Constraint) -> None:
        self.constraint = constraint
        self.known: dict[tuple[int, int], list[tuple[int, int, int]]] = {}

    def states(self) -> Automaton | None:
        """All states, each with its transitions by characters; ``None``: there are too many."""
        order = [self.constraint.start]
        numbers = {order[0]: 0}
        found: Automaton = []
        for state in order:  # which grows meanwhile
            moves: dict[int, list[tuple[int, int]]] = {}
            for low, high, target in self.characters(state):
                if target not in numbers:
                    numbers[target] = len(order)
                    order.append(target)
                moves.setdefault(numbers[target], []).append((low, high))
            if len(order) > _MOST_STATES:
                return None
            leads = {target: joined(tuple(ranges)) for target, ranges in moves.items()}
            found.append((self.constraint.is_accepting(state), leads))
        return found

    def characters(self, state: int) -> Iterator[tuple[int, int, int]]:
        """The characters that may follow a state: the first and last of each range, and the state behind."""
        for byte, target in self.steps(state, 0, 0x7F):
            yield byte, byte, target
        for first, last, fixed, more in _LEADS:
            for byte, target in self.steps(state, first, last):
                base = (byte - fixed) << 6 * more
                for low, high, end in self.rest(target, more):
                    yield base + low, base + high, end

    def rest(self, state: int, more: int) -> list[tuple[int, int, int]]:
        """What may follow inside a character, of which so many bytes are missing."""
        if not more:
            return [(0, 0, state)]
        if (state, more) not in self.known:
            found = self.known[state, more] = []
            for byte, target in self.steps(state, 0x80, 0xBF):
                base = (byte - 0x80) << 6 * (more - 1)
                found += [(base + low, base + high, end) for low, high, end in self.rest(target, more - 1)]
            self.known[state, more] = _joined_moves(found)
        return self.known[state, more]

    def steps(self, state: int, first: int, last: int) -> Iterator[tuple[int, int]]:
        """The bytes of a range that may follow a state, each with the state behind it."""
        mask = int.from_bytes(self.constraint.mask(state), "little")
        for byte in range(first, last + 1):
            if mask >> byte & 1:
                target = self.constraint.step(state, byte)
                assert target is not None
                yield byte, target


def _joined_moves(moves: list[tuple[int, int, int]]) -> list[tuple[int, int, int]]:
    merged: list[tuple[int, int, int]] = []
    for low, high, target in sorted(moves):
        if merged and merged[-1][1] + 1 == low and merged[-1][2] == target:
            merged[-1] = (merged[-1][0], high, target)
        else:
            merged.append((low, high, target))
    return merged


def _merged(states: Automaton) -> Automaton | None:
    """The automaton with equal states merged; ``None`` if there are still too many."""
    kinds = [int(accepts) for accepts, _ in states]
    while True:
        signatures: dict[object, int] = {}
        finer = []
        for kind, (_, moves) in zip(kinds, states, strict=True):
            signature = (kind, frozenset(_by_kind(moves, kinds).items()))
            finer.append(signatures.setdefault(signature, len(signatures)))
        if len(signatures) == len(set(kinds)):
            break
        kinds = finer
    if len(signatures) > _MOST_WRITTEN:
        return None
    first = {kind: number for number, kind in reversed(list(enumerate(finer)))}
    return [(states[first[kind]][0], _by_kind(states[first[kind]][1], finer)) for kind in range(len(first))]


def _by_kind(moves: dict[int, Ranges], kinds: list[int]) -> dict[int, Ranges]:
    led: dict[int, list[tuple[int, int]]] = {}
    for target, ranges in moves.items():
        led.setdefault(kinds[target], []).extend(ranges)
    return {kind: joined(tuple(ranges)) for kind, ranges in led.items()}
