"""Frozen constraints beside the lazy ones that they were frozen from: masks, steps, endings, and numbers of states."""

from __future__ import annotations

import random
from collections import deque
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from grammarspec import _compiler
from grammarspec.frozen import FrozenConstraint
from tests.counting import compared

__all__ = ["Walker", "agree_everywhere", "equivalent_states", "reachable_states"]


def lazy_mask(constraint: _compiler.Constraint, state: int) -> NDArray[np.int32]:
    return np.frombuffer(constraint.mask(state), "<i4")


def _agree_at(constraint: _compiler.Constraint, frozen: FrozenConstraint, lazy: int, state: int) -> None:
    """What both say of a state, without steps."""
    assert np.array_equal(lazy_mask(constraint, lazy), frozen.mask(state)), (lazy, state)
    assert constraint.is_accepting(lazy) == frozen.is_accepting(state), (lazy, state)
    compared(frozen.vocab_size)


def agree_everywhere(constraint: _compiler.Constraint, frozen: FrozenConstraint, most: int = 300) -> None:
    """All pairs of states that the same tokens lead to, and all tokens in each: at most so many pairs."""
    pin = constraint.pin([constraint.start])
    met = {(constraint.start, frozen.start)}
    todo = deque(met)
    while todo and len(met) < most:
        lazy, state = todo.popleft()
        _agree_at(constraint, frozen, lazy, state)
        row = frozen.mask(state)
        for token in range(frozen.vocab_size + 2):
            then, there = constraint.step(lazy, token), frozen.step(state, token)
            assert (then is None) == (there is None), (lazy, state, token)
            inside = token < frozen.vocab_size
            assert (there is not None) == bool(inside and row[token // 32] >> token % 32 & 1), (state, token)
            if then is not None and there is not None and (then, there) not in met:
                met.add((then, there))
                todo.append((then, there))
    pin.release()


@dataclass
class Walker:
    """Random walks through both, token by token; classes of few tokens are taken as often as those of many.

    Attributes:
        steps: tokens that were taken.
        endings: texts that ended.
        refusals: tokens that were refused.
        bits: bits of masks that were compared with those of the engine.
    """

    constraint: _compiler.Constraint
    frozen: FrozenConstraint
    rng: random.Random
    steps: int = 0
    endings: int = 0
    refusals: int = 0
    bits: int = 0
    _classes: dict[int, tuple[list[int], list[int]]] = field(default_factory=dict)
    _state_of: dict[int, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        order = np.argsort(self.frozen.class_of, kind="stable")
        ends = np.searchsorted(self.frozen.class_of[order], np.arange(1, self.frozen.classes))
        self._tokens = np.split(order, ends)

    def walk(self, most: int) -> None:
        """One text of at most so many tokens, from the start to its end."""
        frozen, matcher = self.frozen, self.constraint.matcher()
        rows = np.full((1, frozen.pool.shape[1]), -1, dtype=np.int32)
        state = frozen.start
        for _ in range(most):
            matcher.fill_bitmask(rows)
            assert np.array_equal(rows[0], frozen.mask(state)), state
            assert matcher.is_accepting == frozen.is_accepting(state), state
            # a state of the engine is one language, so that it has one state here
            assert self._state_of.setdefault(matcher.state, state) == state
            self.bits += frozen.vocab_size
            taken, refused = self._sides(state)
            if refused:
                token = self._some(refused)
                assert not matcher.accept_token(token) and frozen.step(state, token) is None, (state, token)
                self.refusals += 1
            if not taken:
                break
            token = self._some(taken)
            assert matcher.accept_token(token), (state, token)
            there = frozen.step(state, token)
            assert there is not None
            assert matcher.is_terminated == (there == frozen.terminated)
            self.steps, state = self.steps + 1, there
        self.endings += matcher.is_terminated

    def _sides(self, state: int) -> tuple[list[int], list[int]]:
        """The classes that a state takes, and those that it refuses."""
        found = self._classes.get(state)
        if found is None:
            leads = self.frozen.next[state] >= 0
            found = self._classes[state] = (np.flatnonzero(leads).tolist(), np.flatnonzero(~leads).tolist())
        return found

    def _some(self, classes: list[int]) -> int:
        tokens = self._tokens[self.rng.choice(classes)]
        return int(tokens[self.rng.randrange(len(tokens))])


def reachable_states(frozen: FrozenConstraint) -> int:
    """How many states some sequence of tokens leads to, the one of ended texts among them."""
    met = np.zeros(frozen.states, dtype=bool)
    last = np.array([frozen.start])
    while len(last):
        met[last] = True
        targets = np.unique(frozen.next[last])
        last = targets[(targets >= 0) & ~met[targets]]
    return int(met.sum())


def equivalent_states(frozen: FrozenConstraint) -> int:
    """How many states are left when those that no sequence of tokens tells apart are one: Moore's refinement."""
    blocks = frozen.accepting.astype(np.int64)
    count = len(np.unique(blocks))
    while True:
        behind = np.where(frozen.next >= 0, blocks[frozen.next], -1)
        _, blocks = np.unique(np.column_stack([blocks, behind]), axis=0, return_inverse=True)
        blocks = blocks.reshape(-1)
        found = int(blocks.max()) + 1
        if found == count:
            return count
        count = found
