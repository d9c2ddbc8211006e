"""Keeps constraints on a device between batches: one arena for each vocabulary and device.

Freezing takes milliseconds to seconds, and most batches have constraints that earlier batches had, too. A constraint
that does not freeze gets a window (``window.py``), which only one batch uses at a time. When that batch ends, the
window keeps its states for the next one.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

import numpy as np
import torch

from grammarspec._compiler import Constraint
from grammarspec.decoding.device.automaton import ArenaTensors
from grammarspec.decoding.device.forced import forced_token
from grammarspec.decoding.device.window import COLUMNS, STATES, Window
from grammarspec.errors import LimitExceeded, UnsupportedFeature
from grammarspec.frozen import ArenaEntry, ArenaRoom, FrozenArena, FrozenConstraint
from grammarspec.vocabulary import Vocabulary

__all__ = ["Loan", "Shelf", "shelf_for"]

_Taken = TypeVar("_Taken")

_KEPT = 32  # the number of constraints that are kept, the most recently used ones
_SIZES = {"grammars": 64, "states": 1 << 16, "transitions": 1 << 21, "rows": 1 << 10}
_LARGEST = {"grammars": 4096, "states": 1 << 22, "transitions": 1 << 28, "rows": 1 << 18}
_BYTES = 5 << 28  # an arena grows up to this size rather than that idle constraints are removed;
_SHARE = 16  # on CUDA, up to one part in so many of the device's memory


@dataclass(frozen=True, eq=False, slots=True)
class Loan:
    """Constraints in an arena, which stay there until :meth:`give_back`.

    Attributes:
        arena: the arena.
        tensors: its arrays on the device.
        starts: for the ``id`` of each frozen constraint, its start state in the arena.
        windows: for the ``id`` of each constraint that does not freeze, its window.
        give_back: allows the constraints to be removed from the arena. To be called once.
    """

    arena: FrozenArena
    tensors: ArenaTensors
    starts: dict[int, int]
    windows: dict[int, Window]
    give_back: Callable[[], None]


@dataclass(eq=False, slots=True)
class _Place:
    """A frozen constraint in an arena, and how many batches use it there."""

    entry: ArenaEntry
    users: int = 0


@dataclass(eq=False, slots=True)
class _Kept:
    """A constraint that was lent, so that its ``id`` is not reused.

    Attributes:
        constraint: the constraint.
        frozen: its frozen form; ``None`` if it does not freeze.
        forced: for each of its mask rows the forced token, once they were looked for.
        place: where that lies in the arena.
        windows: its windows that no batch uses.
    """

    constraint: Constraint
    frozen: FrozenConstraint | None
    forced: list[int] | None = None
    place: _Place | None = None
    windows: list[Window] = field(default_factory=list)


class Shelf:
    """The constraints of a vocabulary on a device. Thread-safe, and for callers within ``torch.inference_mode`` or not.

    Args:
        vocabulary: the vocabulary.
        width: the number of logits.
        device: the device of the arena.
        end_token: the end-of-text token to draft where the end is forced.
    """

    def __init__(self, vocabulary: Vocabulary, width: int, device: torch.device, end_token: int) -> None:
        # The vocabulary itself is not stored, as that would keep it alive: a shelf lives as long as its vocabulary.
        self._size, self._width, self._device, self._end_token = vocabulary.size, width, device, end_token
        self._lock = threading.RLock()
        self._sizes = dict(_SIZES)
        self._kept: OrderedDict[int, _Kept] = OrderedDict()
        # For all windows: tokens of one schema are likely in others, too.
        self._seen = np.ones(vocabulary.size)
        self._arena: FrozenArena
        self._tensors: ArenaTensors
        self._new_arena()

    def _new_arena(self) -> None:
        self._arena = FrozenArena(self._size, width=self._width, **self._sizes)
        self._tensors = ArenaTensors.of(self._arena, self._device)
        for kept in self._kept.values():
            kept.place = None
            kept.windows.clear()

    def lend(self, constraints: Iterable[Constraint], vocabulary: Vocabulary, rows: int = 1) -> Loan:
        """Bring constraints to the arena, if they are not there yet: frozen, or as windows if they do not freeze.

        Args:
            constraints: the constraints.
            vocabulary: the vocabulary, for which the constraints were compiled.
            rows: the number of texts that may be in different states of a window.

        Raises:
            LimitExceeded: there is no room for so many.
            Cancelled: the work of a constraint was cancelled.
        """
        wanted = {id(constraint): constraint for constraint in constraints}
        with self._lock, torch.inference_mode():
            used = {key: self._freeze(constraint) for key, constraint in wanted.items()}
            self._drop_old(used)
            states = max(STATES, 2 * rows)
            try:
                return self._lend(used, vocabulary, states)
            except LimitExceeded:
                return self._lend_anew(used, vocabulary, states)

    def _freeze(self, constraint: Constraint) -> _Kept:
        kept = self._kept.pop(id(constraint), None)
        if kept is None:
            try:
                kept = _Kept(constraint, constraint.freeze())
            except (UnsupportedFeature, LimitExceeded):
                kept = _Kept(constraint, None)
        self._kept[id(constraint)] = kept
        return kept

    def _drop_old(self, used: dict[int, _Kept]) -> None:
        """Forget constraints that were not lent for the longest time, but for those in use."""
        idle = [key for key, kept in self._kept.items() if key not in used and not (kept.place and kept.place.users)]
        for key in idle[: max(len(self._kept) - _KEPT, 0)]:
            self._remove(self._kept.pop(key))

    def _remove(self, kept: _Kept) -> bool:
        """Take out of the arena what no batch uses of a constraint; returns whether that is anything."""
        removed: list[ArenaEntry | ArenaRoom] = []
        if kept.place is not None and not kept.place.users:
            self._arena.remove(kept.place.entry)
            removed.append(kept.place.entry)
            kept.place = None
        while kept.windows:
            room = kept.windows.pop().room
            self._arena.release(room)
            removed.append(room)
        for each in removed:
            self._update(each)
        return bool(removed)

    def _lend(self, used: dict[int, _Kept], vocabulary: Vocabulary, states: int) -> Loan:
        """Add the constraints that are not in the arena; if there is no room, remove unused ones.

        Raises:
            LimitExceeded: there is not enough room.
        """
        places: dict[int, _Place] = {}
        windows: dict[int, Window] = {}
        try:
            for key, kept in used.items():
                if kept.frozen is None:
                    windows[key] = self._window(kept, states, used)
                else:
                    places[key] = self._place(kept, kept.frozen, vocabulary, used)
                    places[key].users += 1
        except BaseException:
            self._return(self._arena, places, windows)
            raise
        arena = self._arena
        return Loan(
            arena,
            self._tensors,
            {key: place.entry.start for key, place in places.items()},
            windows,
            lambda: self._return(arena, places, windows),
        )

    def _return(self, arena: FrozenArena, places: dict[int, _Place], windows: dict[int, Window]) -> None:
        with self._lock, torch.inference_mode():
            for place in places.values():
                place.users -= 1
            for key, window in windows.items():
                kept = self._kept.get(key)
                # A window of an earlier arena goes with it.
                if arena is self._arena and kept is not None and kept.constraint is window.constraint:
                    kept.windows.append(window)
                elif arena is self._arena:
                    arena.release(window.room)
                    self._update(window.room)

    def _place(self, kept: _Kept, frozen: FrozenConstraint, vocabulary: Vocabulary, used: dict[int, _Kept]) -> _Place:
        if kept.place is None:
            entry = self._with_room(lambda: self._arena.add(frozen), used)
            kept.place = _Place(entry)
            self._update(entry)
            if kept.forced is None:
                rows = self._arena.pool[list(entry.rows)]
                kept.forced = [forced_token(row, vocabulary, self._end_token) for row in rows]
            self._tensors.forced[torch.tensor(entry.rows, device=self._device)] = torch.tensor(
                kept.forced, device=self._device
            )
        return kept.place

    def _window(self, kept: _Kept, states: int, used: dict[int, _Kept]) -> Window:
        for window in kept.windows:
            if window.room.states >= states:
                kept.windows.remove(window)
                return window
        room = self._with_room(lambda: self._arena.reserve(states, COLUMNS), used)
        self._update(room)
        return Window(kept.constraint, self._arena, room, self._seen)

    def _with_room(self, take: Callable[[], _Taken], used: dict[int, _Kept]) -> _Taken:
        """Take room in the arena; as long as there is none, and it is to grow no more, remove what no batch uses."""
        while True:
            try:
                return take()
            except LimitExceeded:
                if self._grows() or not any(self._remove(kept) for key, kept in self._kept.items() if key not in used):
                    raise

    def _grown(self) -> dict[str, int]:
        """The capacities of the next larger arena, of which more is used than half now; or else all are larger.

        They are those of this arena, if there is no larger one.
        """
        free = self._arena.free()
        larger = {name: min(4 * size, _LARGEST[name]) for name, size in self._sizes.items()}
        used = {name: larger[name] if 2 * free[name] < size else size for name, size in self._sizes.items()}
        return larger if used == self._sizes else used

    def _grows(self) -> bool:
        """Whether the next larger arena is small enough that idle constraints may stay."""
        sizes = self._grown()
        words = -(-self._width // 32)
        size = 4 * sizes["transitions"] + 13 * sizes["states"] + 4 * words * sizes["rows"]
        size += 2 * self._width * sizes["grammars"]
        most = _BYTES
        if self._device.type == "cuda":
            most = min(most, torch.cuda.get_device_properties(self._device).total_memory // _SHARE)
        return sizes != self._sizes and size <= most

    def _lend_anew(self, used: dict[int, _Kept], vocabulary: Vocabulary, states: int) -> Loan:
        """Make a larger arena; batches that use the old arena go on using it.

        Raises:
            LimitExceeded: the largest arena is too small.
        """
        while True:
            grown = self._grown()
            largest = grown == self._sizes
            self._sizes = grown
            self._new_arena()
            try:
                return self._lend(used, vocabulary, states)
            except LimitExceeded:
                if largest:
                    raise

    def _update(self, entry: ArenaEntry | ArenaRoom) -> None:
        """Copy the changes of an entry to the device."""
        if self._tensors.shares(self._arena):
            return
        names = ("class_of", "next", "next_offset", "grammar_of", "mask_row", "pool")
        tensors: dict[str, Any] = {name: getattr(self._tensors, name) for name in names}
        tensors["accepting"] = torch.from_numpy(self._arena.accepting).clone()  # the device does not need it
        self._arena.update(tensors, entry)


_shelves: WeakKeyDictionary[Vocabulary, dict[tuple[int, str, int], Shelf]] = WeakKeyDictionary()
_lock = threading.Lock()


def shelf_for(vocabulary: Vocabulary, width: int, device: torch.device, end_token: int) -> Shelf:
    """The shelf of a vocabulary on a device, which lives as long as the vocabulary does."""
    key = width, str(device), end_token
    with _lock:
        shelves = _shelves.setdefault(vocabulary, {})
        if key not in shelves:
            shelves[key] = Shelf(vocabulary, width, device, end_token)
        return shelves[key]
