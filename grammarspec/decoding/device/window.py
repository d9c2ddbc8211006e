"""A window on a constraint that does not freeze: the states of it that the device knows.

The host computes states of the lazy automaton, before texts come to them if it can, and enters each into the window's
part of an arena (an ``ArenaRoom``): its mask row, and where each token leads. A token whose next state is not in the
window leads to the missing state. When the window is full, the states that were not used for the longest time are left
out. States are interned, so that one text finds those that were entered for another.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    import torch
    from numpy.typing import NDArray

from grammarspec._compiler import Constraint, Pin
from grammarspec.decoding.device.automaton import MISSING, REFUSED, ArenaTensors
from grammarspec.decoding.device.token_classes import TokenClasses
from grammarspec.errors import LimitExceeded
from grammarspec.frozen import ArenaRoom, FrozenArena

__all__ = ["COLUMNS", "STATES", "Window"]

STATES: Final = 512
"""The number of states of a window, if its batch has no more rows than half of that."""
COLUMNS: Final = 512
"""The number of classes of tokens of a window."""

_ENDED: Final = 0  # the lazy state after a text has ended
_NOT_ALLOWED: Final = -1  # in place of the lazy state after a token
_NOT_MADE: Final = -2  # the same, for an allowed token
_BRANCHES: Final = 64  # the greatest number of different states that tokens of one state lead to, as far as is known
_WEIGHT: Final = 100.0  # of a token in a text, beside 1 for each token of the vocabulary
_LIKELY: Final = 16  # so many of these are looked at when states are computed ahead


class Window:
    """Some states of a constraint, in a room of an arena.

    Args:
        constraint: the constraint.
        arena: the arena.
        room: the room, of at least two states.
        seen: ``float64[tokens]``, a weight for each token: greater if texts have had the token. It may be shared.

    Attributes:
        constraint, room: see above.
        explored: states from which no more states are to be computed ahead, as long as none is left out.
    """

    def __init__(self, constraint: Constraint, arena: FrozenArena, room: ArenaRoom, seen: NDArray[np.float64]) -> None:
        self.constraint, self.room = constraint, room
        self.explored: set[int] = set()
        self._arena = arena
        states, columns = room.states, room.columns
        end = room.transitions + states * columns
        self._next = arena.next[room.transitions : end].reshape(states, columns)
        self._classes = TokenClasses(arena.class_of[room.grammar], arena.vocab_size, columns)
        # For each state and class the lazy state that follows.
        self._behind = np.full((states, columns), _NOT_ALLOWED, np.int64)
        self._slots: dict[int, int] = {}
        self._pins: dict[int, Pin] = {}
        self._likely: dict[int, list[tuple[int, float]]] = {}
        self._free = list(range(states - 1, -1, -1))
        self._used = np.zeros(states, np.int64)
        self._clock = 0
        self._dirty_classes = True
        self._dirty: set[int] = set()
        # New states, in order, each with the first mask row that allows the same tokens, which may be its own.
        self._new: list[tuple[int, int]] = []
        self._rows: dict[int, int] = {}  # by hashes, as a collision costs a draft at most
        self._seen = seen
        self.enter(_ENDED)

    def __contains__(self, state: int) -> bool:
        return state in self._slots

    def __len__(self) -> int:
        return len(self._slots)

    def place(self, state: int) -> int:
        """The number in the arena of a state of the window; :data:`MISSING` for others."""
        slot = self._slots.get(state)
        return MISSING if slot is None else self.room.base + slot

    def likely(self, state: int) -> list[tuple[int, float]]:
        """The states that are most likely to follow, with shares: where most tokens lead that texts have had."""
        return self._likely[state]

    def touch(self, states: Iterable[int]) -> None:
        """Note that a text has come by these states."""
        self._clock += 1
        for state in states:
            slot = self._slots.get(state)
            if slot is not None:
                self._used[slot] = self._clock

    def read(self, tokens: Iterable[int]) -> None:
        """Note that a text has had these tokens: they are taken to be likely."""
        for token in tokens:
            if token < len(self._seen):
                self._seen[token] += _WEIGHT

    # ------------------------------------------------------------------ entering states
    def enter(self, state: int, *, bare: bool = False) -> bool:
        """Compute a state, and enter it into the window.

        Args:
            state: the lazy state.
            bare: enter its mask row only, and no states behind it; for this no classes are needed.

        Returns:
            whether there was room for it.

        Raises:
            LimitExceeded, Cancelled, StateCollected: raised by the constraint; nothing has changed.
        """
        if state in self._slots:
            self.touch((state,))
            return True
        if not self._free:
            return False
        pin = self.constraint.pin([state])
        slot = self._free[-1]
        mask = self._arena.pool[self.room.rows[slot]][None]
        self.constraint.fill_bitmask(state, mask)
        following = None if bare else self._following(state)
        if following is None:
            self._behind[slot], self._next[slot] = _NOT_MADE, MISSING
            self._likely[state] = []
        elif not self._branch(slot, state, *following):
            return False
        self._free.pop()
        self._slots[state], self._pins[state] = slot, pin
        self.touch((state,))
        self._lead_to(state)
        self._dirty.add(slot)
        row, allowed = self.room.rows[slot], hash(mask.tobytes())
        self._new.append((state, self._rows.setdefault(allowed, row)))
        return True

    def _following(self, state: int) -> tuple[NDArray[np.int32], NDArray[np.int64]] | None:
        """For each token an index of the states that follow, and these; ``None`` if they cannot be computed."""
        try:
            of, states = self.constraint.successors(state, _BRANCHES)
        except LimitExceeded:
            return None  # the mask is known, which is enough
        return np.frombuffer(of, "<i4").astype(np.int32, copy=False), np.array(
            [*states, _NOT_MADE, _NOT_ALLOWED], np.int64
        )

    def _branch(self, slot: int, state: int, of: NDArray[np.int32], states: NDArray[np.int64]) -> bool:
        """Write where the tokens lead; returns whether there are enough classes."""
        entered = self._classes.enter(of)
        if entered is None:
            return False
        row, new = entered
        self._split(new)
        # -2 and -1 are the last two elements of the states.
        places = np.array([*map(self.place, states[:-2].tolist()), MISSING, REFUSED], np.int32)
        self._behind[slot, : len(row)], self._next[slot, : len(row)] = states[row], places[row]
        self._behind[slot, len(row) :], self._next[slot, len(row) :] = _NOT_ALLOWED, REFUSED
        allowed = of >= 0
        # All texts that come to a string leave it, though few tokens do that: square roots let these count for more.
        weights = np.sqrt(np.bincount(of[allowed], self._seen[allowed], len(states) - 2))
        best = np.argsort(-weights, kind="stable")[:_LIKELY]
        total = max(float(weights.sum()), 1.0)
        self._likely[state] = [(int(states[index]), float(weights[index]) / total) for index in best]
        return True

    def _split(self, new: list[tuple[int, int]]) -> None:
        """Copy the columns of classes that were split to those that were split from them."""
        if not new:
            return
        columns, old = (list(each) for each in zip(*new, strict=True))
        self._behind[:, columns], self._next[:, columns] = self._behind[:, old], self._next[:, old]
        self._dirty_classes = True
        self._dirty.update(self._slots.values())

    def _lead_to(self, state: int) -> None:
        """Have the tokens lead to a state that do, now that it is in the window."""
        slots, columns = np.nonzero(self._behind[:, : self._classes.count] == state)
        self._next[slots, columns] = self.place(state)
        self._dirty.update(np.unique(slots).tolist())

    def learn(self, state: int, token: int, following: int) -> None:
        """Note where a token leads from a state, if that was not known; it may need a class of its own."""
        slot = self._slots.get(state)
        if slot is None or self._behind[slot, self._arena.class_of[self.room.grammar, token]] != _NOT_MADE:
            return
        alone = self._classes.alone(token)
        if alone is None:
            return
        new, old = alone
        if new != old:
            self._split([alone])
        self._behind[slot, new], self._next[slot, new] = following, self.place(following)
        self._dirty.add(slot)

    # ------------------------------------------------------------------ leaving states out
    def shrink(self, keep: Iterable[int], share: float) -> None:
        """Leave out states, first those that were not used for the longest time. No row of a batch may be in a state
        that is left out, nor on the way to it.

        Args:
            keep: states that stay.
            share: how many of the others stay, as a share of the window's states.
        """
        kept = {_ENDED, *keep}
        others = sorted(
            (state for state in self._slots if state not in kept), key=lambda s: -self._used[self._slots[s]]
        )
        left_out = others[int(share * self.room.states) :]
        rows: set[int] = set()
        for state in left_out:
            slot = self._slots.pop(state)
            self._free.append(slot)
            self._pins.pop(state).release()
            del self._likely[state]
            rows.add(self.room.rows[slot])
            self._behind[slot], self._next[slot] = _NOT_ALLOWED, REFUSED
        self.explored.clear()
        self._rows = {allowed: row for allowed, row in self._rows.items() if row not in rows}
        self._next[np.isin(self._behind, np.array(left_out, np.int64))] = MISSING
        self._merge_classes()

    def _merge_classes(self) -> None:
        """Make one class of those that do the same in all states that are left."""
        used, count = sorted(self._slots.values()), self._classes.count
        columns, first, into = np.unique(self._behind[used, 1:count], axis=1, return_index=True, return_inverse=True)
        self._classes.merge(into.reshape(-1) + 1)
        merged = columns.shape[1] + 1
        places = self._next[:, first + 1]
        self._behind[used, 1:merged], self._next[:, 1:merged] = columns, places
        self._behind[:, merged:], self._next[:, merged:] = _NOT_ALLOWED, REFUSED
        self._dirty_classes = True
        self._dirty.update(used)

    # ------------------------------------------------------------------ the device
    def upload(self, tensors: ArenaTensors) -> list[tuple[int, int]]:
        """Copy what has changed since the last call to a device, without waiting for it.

        Args:
            tensors: the arrays of the arena there; on the CPU, they are those of the arena itself.

        Returns:
            the mask rows of states that were entered since, in order; and for each an earlier mask row that allows the
            same tokens, or the same row if there is none.
        """
        new = [(self.room.rows[self._slots[state]], alike) for state, alike in self._new if state in self._slots]
        self._new = []
        dirty, self._dirty = sorted(self._dirty), set()
        classes, self._dirty_classes = self._dirty_classes, False
        room, arena = self.room, self._arena
        if tensors.shares(arena):
            return new
        if classes:
            _copy(tensors.class_of[room.grammar], arena.class_of[room.grammar])
        if dirty:
            part = slice(room.transitions + dirty[0] * room.columns, room.transitions + (dirty[-1] + 1) * room.columns)
            _copy(tensors.next[part], arena.next[part])
        for row, _ in new:
            _copy(tensors.pool[row], arena.pool[row])
        return new


def _copy(target: torch.Tensor, source: NDArray[np.int16] | NDArray[np.int32]) -> None:
    """Copy an array to a tensor on a device, by pinned memory where there is, so that nothing waits."""
    import torch

    given = torch.from_numpy(source)
    target.copy_(given.pin_memory() if target.device.type == "cuda" else given, non_blocking=True)
