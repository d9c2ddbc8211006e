"""Keeps frozen constraints on a device between batches: one arena for each vocabulary and device.

Freezing takes milliseconds to seconds, and most batches have constraints that earlier batches had, too.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

import torch

from grammarspec._compiler import Constraint
from grammarspec.decoding.device.automaton import ArenaTensors
from grammarspec.decoding.device.forced import forced_token
from grammarspec.errors import LimitExceeded, UnsupportedFeature
from grammarspec.frozen import ArenaEntry, FrozenArena, FrozenConstraint
from grammarspec.vocabulary import Vocabulary

__all__ = ["Loan", "Shelf", "shelf_for"]

_KEPT = 32  # the number of frozen constraints that are kept, the most recently used ones
_SIZES = {"grammars": 64, "states": 1 << 16, "transitions": 1 << 21, "rows": 1 << 10}
_LARGEST = {"grammars": 4096, "states": 1 << 22, "transitions": 1 << 28, "rows": 1 << 18}


@dataclass(frozen=True, eq=False, slots=True)
class Loan:
    """Constraints in an arena, which stay there until :meth:`give_back`.

    Attributes:
        tensors: the tensors of the arena on the device.
        starts: for the ``id`` of each constraint, its start state in the arena.
        entries: the places of the constraints in the arena.
    """

    tensors: ArenaTensors
    starts: dict[int, int]
    entries: tuple[_Place, ...]

    def give_back(self) -> None:
        """Allow the constraints to be removed from the arena."""
        for place in self.entries:
            with place.lock:
                place.users -= 1


@dataclass(eq=False, slots=True)
class _Place:
    """A frozen constraint in an arena, and how many batches use it there."""

    entry: ArenaEntry
    lock: threading.Lock
    users: int = 0


class Shelf:
    """The frozen constraints of a vocabulary on a device. Thread-safe.

    Args:
        vocabulary: the vocabulary.
        width: the number of logits.
        device: the device of the arena.
        end_token: the end-of-text token to draft where the end is forced.
    """

    def __init__(self, vocabulary: Vocabulary, width: int, device: torch.device, end_token: int) -> None:
        # The vocabulary itself is not stored, as that would keep it alive: a shelf lives as long as its vocabulary.
        self._size, self._width, self._device, self._end_token = vocabulary.size, width, device, end_token
        self._lock = threading.Lock()
        self._sizes = dict(_SIZES)
        # By id, together with the constraint, so that its id is not reused.
        self._frozen: OrderedDict[int, tuple[Constraint, FrozenConstraint | Exception]] = OrderedDict()
        self._places: dict[int, _Place] = {}
        self._arena: FrozenArena
        self._tensors: ArenaTensors
        self._new_arena()

    def _new_arena(self) -> None:
        self._arena = FrozenArena(self._size, width=self._width, **self._sizes)
        self._tensors = ArenaTensors.of(self._arena, self._device)
        self._places = {}

    def lend(self, constraints: Iterable[Constraint], vocabulary: Vocabulary) -> Loan:
        """Freeze constraints and add them to the arena, if they are not there yet.

        Args:
            constraints: the constraints.
            vocabulary: the vocabulary, for which the constraints were compiled.

        Raises:
            UnsupportedFeature, LimitExceeded, Cancelled: as :meth:`grammarspec.Constraint.freeze`. Errors of the first
                two classes are kept, and raised again without freezing.
        """
        wanted = {id(constraint): constraint for constraint in constraints}
        with self._lock:
            frozen = {key: self._freeze(constraint) for key, constraint in wanted.items()}
            try:
                places = self._place(frozen, vocabulary)
            except LimitExceeded:
                places = self._place_anew(frozen, vocabulary)
            for place in places.values():
                with place.lock:
                    place.users += 1
            starts = {key: place.entry.start for key, place in places.items()}
            return Loan(self._tensors, starts, tuple(places.values()))

    def _freeze(self, constraint: Constraint) -> FrozenConstraint:
        found = self._frozen.pop(id(constraint), None)
        if found is None:
            result: FrozenConstraint | Exception
            try:
                result = constraint.freeze()
            except (UnsupportedFeature, LimitExceeded) as error:
                result = error
            found = constraint, result
        self._frozen[id(constraint)] = found
        while len(self._frozen) > _KEPT:
            key, _ = self._frozen.popitem(last=False)
            place = self._places.get(key)
            if place is not None and not place.users:
                self._remove(key)
        if isinstance(found[1], Exception):
            raise found[1]
        return found[1]

    def _remove(self, key: int) -> None:
        place = self._places.pop(key)
        self._arena.remove(place.entry)
        self._update(place.entry)

    def _place(self, frozen: dict[int, FrozenConstraint], vocabulary: Vocabulary) -> dict[int, _Place]:
        """Add the constraints that are not in the arena; if there is no room, remove unused ones.

        Raises:
            LimitExceeded: there is not enough room.
        """
        # The id of a place may be that of an earlier constraint that was freed, and whose id was reused.
        stale = [
            key for key, one in frozen.items() if key in self._places and self._places[key].entry.frozen is not one
        ]
        for key in stale:
            if self._places[key].users:
                raise LimitExceeded("the arena holds another constraint in this place")
            self._remove(key)
        for key, one in frozen.items():
            if key in self._places:
                continue
            while True:
                try:
                    entry = self._arena.add(one)
                    break
                except LimitExceeded:
                    unused = [other for other, place in self._places.items() if not place.users and other not in frozen]
                    if not unused:
                        raise
                    self._remove(unused[0])
            self._places[key] = _Place(entry, threading.Lock())
            self._update(entry)
            self._spell(entry, vocabulary)
        return {key: self._places[key] for key in frozen}

    def _place_anew(self, frozen: dict[int, FrozenConstraint], vocabulary: Vocabulary) -> dict[int, _Place]:
        """Make a larger arena; batches that use the old arena go on using it.

        Raises:
            LimitExceeded: the largest arena is too small.
        """
        while True:
            grown = {name: min(4 * size, _LARGEST[name]) for name, size in self._sizes.items()}
            if grown == self._sizes:
                self._new_arena()
                return self._place(frozen, vocabulary)
            self._sizes = grown
            self._new_arena()
            try:
                return self._place(frozen, vocabulary)
            except LimitExceeded:
                continue

    def _update(self, entry: ArenaEntry) -> None:
        """Copy the changes of an entry to the device."""
        if self._device.type == "cpu":
            return  # the tensors are the arena's own memory
        names = ("class_of", "next", "next_offset", "grammar_of", "mask_row", "pool")
        tensors: dict[str, Any] = {name: getattr(self._tensors, name) for name in names}
        tensors["accepting"] = torch.from_numpy(self._arena.accepting).clone()  # the device does not need it
        self._arena.update(tensors, entry)

    def _spell(self, entry: ArenaEntry, vocabulary: Vocabulary) -> None:
        """Find the forced tokens of the mask rows of an entry."""
        rows = sorted(set(entry.rows))
        tokens = [forced_token(self._arena.pool[row], vocabulary, self._end_token) for row in rows]
        self._tensors.forced[torch.tensor(rows, device=self._device)] = torch.tensor(tokens, device=self._device)


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
