"""Many frozen constraints in arrays of one fixed size: what a device steps and masks batches of sequences with.

The arrays are made once and never move, so that a captured graph of kernels may hold their addresses while constraints
come and go. A state of the arena is one number for all its constraints, and following it takes four reads and no
branch::

    state = next[next_offset[state] + class_of[grammar_of[state], token]]
    row = pool[mask_row[state]]

State 0 is unconstrained: it allows every token and stays. State 1 is refused: it allows no token and stays; every token
that is not allowed leads there. So both are safe for the rows of a batch that hold no sequence. State 2 is missing: to
it lead tokens whose next state is not in the arena. Its mask allows every token, as nothing is known of what follows:
no token may be committed from there.

Beside whole constraints there are rooms (:class:`ArenaRoom`): states without a constraint, whose masks and transitions
their holder writes as they become known.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from threading import Lock
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import numpy as np
    import torch
    from numpy.typing import NDArray

from grammarspec.errors import LimitExceeded, needed_by
from grammarspec.frozen.automaton import FrozenConstraint
from grammarspec.frozen.files import REFUSED as NO_STATE

__all__ = ["ArenaEntry", "ArenaRoom", "FrozenArena"]

UNCONSTRAINED: Final = 0
REFUSED: Final = 1
MISSING: Final = 2
_OWN_STATES: Final = 3
_OWN_TRANSITIONS: Final = 6  # of these states, for tokens and for padding
_MOST_TRANSITIONS: Final = 2**31 - 1
_MOST_CLASSES: Final = 2**15


@dataclass(frozen=True, eq=False)
class ArenaEntry:
    """Where a frozen constraint lies in an arena.

    Attributes:
        frozen: the constraint.
        grammar: its number, the row of ``class_of``.
        base: its first state in the arena, where its texts begin.
        transitions: where its transitions begin in ``next``.
        columns: transitions of each state: its classes of tokens, and one more for padding if need be.
        rows: the numbers of its mask rows in ``pool``.
    """

    frozen: FrozenConstraint = field(repr=False)
    grammar: int
    base: int
    transitions: int
    columns: int
    rows: tuple[int, ...] = field(repr=False)

    @property
    def start(self) -> int:
        """The state of the arena before the first token."""
        return self.base

    @property
    def terminated(self) -> int:
        """The state of the arena after a token that ends the text; -1 if there is none."""
        return NO_STATE if self.frozen.terminated == NO_STATE else self.base + self.frozen.terminated


@dataclass(frozen=True, eq=False)
class ArenaRoom:
    """States of an arena that belong to no frozen constraint: their holder writes to their parts of the arrays.

    Attributes:
        grammar: their row of ``class_of``.
        base: the first state.
        states: how many there are.
        transitions: where the transitions of the first state begin in ``next``; those of the others follow.
        columns: the number of transitions of each state.
        rows: for each state the number of its mask row in ``pool``, which no other state has.
    """

    grammar: int
    base: int
    states: int
    transitions: int
    columns: int
    rows: tuple[int, ...] = field(repr=False)


class _Space:
    """What is free of a range of numbers, taken and given back in runs."""

    def __init__(self, first: int, past: int) -> None:
        self._free = [(first, past)] if first < past else []

    def longest(self) -> int:
        return max((past - first for first, past in self._free), default=0)

    def free(self) -> int:
        return sum(past - first for first, past in self._free)

    def take(self, length: int) -> int:
        """The beginning of a run, which is there: the first one that is long enough."""
        at = next(i for i, (first, past) in enumerate(self._free) if past - first >= length)
        first, past = self._free[at]
        self._free[at : at + 1] = [(first + length, past)] if first + length < past else []
        return first

    def give_back(self, first: int, length: int) -> None:
        runs: list[tuple[int, int]] = []
        for begin, end in sorted([*self._free, (first, first + length)]):
            if runs and runs[-1][1] == begin:
                runs[-1] = (runs[-1][0], end)
            else:
                runs.append((begin, end))
        self._free = runs


class FrozenArena:
    """Frozen constraints on one vocabulary, in arrays of fixed size. Thread-safe.

    Below, G, S, T and R are the capacities, and W is the width of the logits.

    Attributes:
        class_of: ``int16[G, W]``, the class of each token, by grammar.
        next: ``int32[T]``, transitions: states of the arena.
        next_offset: ``int32[S]``, where the transitions of each state begin.
        grammar_of: ``int32[S]``, the grammar of each state, the row of ``class_of``.
        mask_row: ``int32[S]``, the number of the mask row of each state.
        accepting: ``bool[S]``, whether the text may end in a state. In state 0 it may.
        pool: ``int32[R, ceil(W / 32)]``, mask rows; equal ones of different grammars are one. Bits past the vocabulary
            are clear, those of state 0, too.
        vocab_size: the number of tokens.
        width: W; tokens from ``vocab_size`` on are padding, and never allowed.
    """

    class_of: NDArray[np.int16]
    next: NDArray[np.int32]
    next_offset: NDArray[np.int32]
    grammar_of: NDArray[np.int32]
    mask_row: NDArray[np.int32]
    accepting: NDArray[np.bool_]
    pool: NDArray[np.int32]

    def __init__(
        self,
        vocab_size: int,
        *,
        width: int | None = None,
        grammars: int = 64,
        states: int = 1 << 17,
        transitions: int = 1 << 24,
        rows: int = 1 << 12,
    ) -> None:
        """An arena with room for so much, its own two states included.

        Args:
            vocab_size: the number of tokens of the vocabulary.
            width: the width of the logits, where it is larger.
            grammars: constraints, and one number for the unconstrained state.
            states: states of all constraints together.
            transitions: their transitions together: states times classes of tokens.
            rows: distinct mask rows.

        Raises:
            ValueError: the width is below the vocabulary's size, or a capacity is too small or too large.
            MissingPackage: numpy is not installed.
        """
        with needed_by("an arena of frozen constraints"):
            import numpy as np

        self.vocab_size, self.width = vocab_size, vocab_size if width is None else width
        if vocab_size < 1 or self.width < vocab_size:
            raise ValueError(f"logits of width {self.width} for a vocabulary of {vocab_size} tokens")
        least = {"grammars": 1, "states": _OWN_STATES, "transitions": _OWN_TRANSITIONS, "rows": 2}
        given = {"grammars": grammars, "states": states, "transitions": transitions, "rows": rows}
        for name, count in given.items():
            if not least[name] <= count <= _MOST_TRANSITIONS:
                raise ValueError(f"{name} must be from {least[name]} to {_MOST_TRANSITIONS}, not {count}")
        self.class_of = np.zeros((grammars, self.width), np.int16)
        self.next = np.zeros(transitions, np.int32)  # what is free is never read, and takes no memory yet
        self.next_offset = np.zeros(states, np.int32)
        self.grammar_of = np.zeros(states, np.int32)
        self.mask_row = np.zeros(states, np.int32)
        self.accepting = np.zeros(states, np.bool_)
        self.pool = np.zeros((rows, (self.width + 31) // 32), np.int32)
        self._vocabulary: str | None = None
        self._entries: set[ArenaEntry] = set()
        self._rooms: set[ArenaRoom] = set()
        self._free_grammars = list(range(grammars - 1, 0, -1))
        self._free_rows = list(range(rows - 1, -1, -1))
        self._states, self._transitions = _Space(_OWN_STATES, states), _Space(_OWN_TRANSITIONS, transitions)
        self._row_numbers: dict[bytes, int] = {}
        self._row_uses: Counter[int] = Counter()
        self._lock = Lock()
        self._write_own_states()

    def _write_own_states(self) -> None:
        import numpy as np

        tokens = np.arange(self.pool.shape[1] * 32) < self.vocab_size
        every = np.packbits(tokens, bitorder="little").view("<i4").astype(np.int32)
        self.class_of[0, self.vocab_size :] = 1  # padding
        self.next[:_OWN_TRANSITIONS] = [UNCONSTRAINED, REFUSED, REFUSED, REFUSED, MISSING, REFUSED]
        self.next_offset[:] = 2  # states that no constraint has are refused
        self.next_offset[UNCONSTRAINED], self.next_offset[MISSING] = 0, 4
        self.mask_row[:] = self._row(np.zeros_like(every))
        self.mask_row[UNCONSTRAINED] = self.mask_row[MISSING] = self._row(every)
        self.accepting[UNCONSTRAINED] = True

    def __repr__(self) -> str:
        return f"<FrozenArena: {len(self._entries)} constraints on {self.vocab_size} tokens>"

    def __len__(self) -> int:
        return len(self._entries)

    def free(self) -> dict[str, int]:
        """What is free, by the names of the capacities; of states and transitions, the longest run."""
        with self._lock:
            return self._free()

    def _free(self) -> dict[str, int]:
        return {
            "grammars": len(self._free_grammars),
            "states": self._states.longest(),
            "transitions": self._transitions.longest(),
            "rows": len(self._free_rows),
        }

    def add(self, frozen: FrozenConstraint) -> ArenaEntry:
        """Write a constraint into free parts of the arrays; nothing else changes.

        Returns:
            where it lies.

        Raises:
            LimitExceeded: there is not enough room; nothing has changed.
            ValueError: the constraint is for another vocabulary than those before it, or one of another size.
        """
        with self._lock:
            self._check_vocabulary(frozen)
            padding = self._padding_class(frozen)
            columns = max(frozen.classes, padding + 1)
            rows = self._wide_rows(frozen)
            new = {row.tobytes() for row in rows} - self._row_numbers.keys()
            self._check_room(
                {"grammars": 1, "states": frozen.states, "transitions": frozen.states * columns, "rows": len(new)}
            )
            entry = ArenaEntry(
                frozen=frozen,
                grammar=self._free_grammars.pop(),
                base=self._states.take(frozen.states),
                transitions=self._transitions.take(frozen.states * columns),
                columns=columns,
                rows=tuple(self._row(row) for row in rows),
            )
            self._write(entry, padding)
            self._vocabulary = frozen.vocabulary
            self._entries.add(entry)
            return entry

    def reserve(self, states: int, columns: int) -> ArenaRoom:
        """Set states apart, each with a mask row and transitions of its own. All tokens are in class 0, and all
        transitions lead to the refused state, until the holder writes others.

        Args:
            states: the number of states.
            columns: the number of transitions of each: classes of tokens.

        Raises:
            LimitExceeded: there is not enough room; nothing has changed.
        """
        with self._lock:
            self._check_room({"grammars": 1, "states": states, "transitions": states * columns, "rows": states})
            room = ArenaRoom(
                grammar=self._free_grammars.pop(),
                base=self._states.take(states),
                states=states,
                transitions=self._transitions.take(states * columns),
                columns=columns,
                rows=tuple(self._free_rows.pop() for _ in range(states)),
            )
            self._lay_out(room)
            self._rooms.add(room)
            return room

    def _lay_out(self, room: ArenaRoom) -> None:
        import numpy as np

        own, rows = slice(room.base, room.base + room.states), np.array(room.rows, np.int32)
        self.class_of[room.grammar] = 0
        self.next[room.transitions : room.transitions + room.states * room.columns] = REFUSED
        self.next_offset[own] = room.transitions + room.columns * np.arange(room.states)
        self.grammar_of[own], self.mask_row[own], self.accepting[own] = room.grammar, rows, False
        self.pool[rows] = 0

    def release(self, room: ArenaRoom) -> None:
        """Give back states that were set apart. They become refused ones, until others take their numbers.

        Raises:
            KeyError: they are not in the arena.
        """
        with self._lock:
            if room not in self._rooms:
                raise KeyError("the room is not in the arena, or no longer")
            self._rooms.remove(room)
            self._give_back(room.base, room.states, room.transitions, room.columns, room.grammar)
            self._free_rows += room.rows

    def _give_back(self, base: int, states: int, transitions: int, columns: int, grammar: int) -> None:
        own = slice(base, base + states)
        self.next_offset[own], self.grammar_of[own] = self.next_offset[REFUSED], 0
        self.mask_row[own], self.accepting[own] = self.mask_row[REFUSED], False
        self._states.give_back(base, states)
        self._transitions.give_back(transitions, states * columns)
        self._free_grammars.append(grammar)

    def _check_vocabulary(self, frozen: FrozenConstraint) -> None:
        if frozen.vocab_size != self.vocab_size:
            raise ValueError(f"a constraint on {frozen.vocab_size} tokens, in an arena for {self.vocab_size}")
        if self._vocabulary not in (None, frozen.vocabulary):
            raise ValueError("the constraint was frozen for another vocabulary than those in the arena")

    def _padding_class(self, frozen: FrozenConstraint) -> int:
        """The class of padding: one of tokens that are never allowed, or a new one."""
        if self.width == self.vocab_size:
            return 0  # there is no padding
        never = (frozen.next == NO_STATE).all(axis=0)
        padding = int(never.argmax()) if never.any() else frozen.classes
        if padding >= _MOST_CLASSES:
            raise LimitExceeded(f"the constraint has {frozen.classes} classes, and none is left for padding")
        return padding

    def _wide_rows(self, frozen: FrozenConstraint) -> NDArray[np.int32]:
        import numpy as np

        return np.pad(frozen.pool, [(0, 0), (0, self.pool.shape[1] - frozen.pool.shape[1])])

    def _check_room(self, wanted: dict[str, int]) -> None:
        free = self._free()
        lacking = [name for name, count in wanted.items() if count > free[name]]
        if lacking:
            said = ", ".join(f"{wanted[name]} {name} are needed and {free[name]} free" for name in lacking)
            hint = "remove constraints that are no longer used, or make a larger arena: its arrays cannot grow"
            raise LimitExceeded(f"the arena is full: {said}", hint=hint)

    def _row(self, row: NDArray[np.int32]) -> int:
        """The number of a mask row in the pool, of which there is one use more."""
        key = row.tobytes()
        number = self._row_numbers.get(key)
        if number is None:
            number = self._row_numbers[key] = self._free_rows.pop()
            self.pool[number] = row
        self._row_uses[number] += 1
        return number

    def _write(self, entry: ArenaEntry, padding: int) -> None:
        import numpy as np

        frozen, columns = entry.frozen, entry.columns
        self.class_of[entry.grammar, : self.vocab_size] = frozen.class_of
        self.class_of[entry.grammar, self.vocab_size :] = padding
        table = self.next[entry.transitions : entry.transitions + frozen.states * columns].reshape(-1, columns)
        np.add(frozen.next, entry.base, out=table[:, : frozen.classes])
        np.putmask(table[:, : frozen.classes], frozen.next == NO_STATE, REFUSED)
        table[:, frozen.classes :] = REFUSED
        states = slice(entry.base, entry.base + frozen.states)
        self.next_offset[states] = entry.transitions + columns * np.arange(frozen.states)
        self.grammar_of[states] = entry.grammar
        self.mask_row[states] = np.array(entry.rows, np.int32)[frozen.mask_row]
        self.accepting[states] = frozen.accepting

    def remove(self, entry: ArenaEntry) -> None:
        """Give back the room of a constraint. Its states become refused ones, until others take their numbers.

        Raises:
            KeyError: it is not in the arena.
        """
        with self._lock:
            if entry not in self._entries:
                raise KeyError("the constraint is not in the arena, or no longer")
            self._entries.remove(entry)
            self._give_back(entry.base, entry.frozen.states, entry.transitions, entry.columns, entry.grammar)
            for row in entry.rows:
                self._row_uses[row] -= 1
                if not self._row_uses[row]:
                    del self._row_uses[row], self._row_numbers[self.pool[row].tobytes()]
                    self._free_rows.append(row)

    def step(self, states: Any, tokens: Any) -> NDArray[np.int32]:
        """The states after tokens: what a kernel computes, on the host.

        Args:
            states: ``int[n]``, states of the arena.
            tokens: ``int[n]``, tokens below the width.

        Returns:
            ``int32[n]``.

        Raises:
            IndexError: there is no such state or token.
        """
        import numpy as np

        states, tokens = np.asarray(states), np.asarray(tokens)
        if states.size and (states.min() < 0 or tokens.min() < 0):
            raise IndexError("states and tokens are not negative")
        found: NDArray[np.int32] = self.next[self.next_offset[states] + self.class_of[self.grammar_of[states], tokens]]
        return found

    def masks(self, states: Any) -> NDArray[np.int32]:
        """The mask rows of states, ``int32[n, ceil(W / 32)]``.

        Args:
            states: ``int[n]``, states of the arena.

        Raises:
            IndexError: there is no such state.
        """
        import numpy as np

        states = np.asarray(states)
        if states.size and states.min() < 0:
            raise IndexError("states are not negative")
        rows: NDArray[np.int32] = self.pool[self.mask_row[states]]
        return rows

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The arrays by name."""
        names = ("class_of", "next", "next_offset", "grammar_of", "mask_row", "accepting", "pool")
        return {name: getattr(self, name) for name in names}

    def tensors(self, device: Any = "cpu") -> dict[str, torch.Tensor]:
        """The arrays as tensors, by name. On the CPU they share the memory of the arrays; elsewhere they are copies,
        which :meth:`update` keeps up to date.

        Raises:
            MissingPackage: torch is not installed.
        """
        with needed_by("tensors of an arena"):
            import torch

        return {name: torch.from_numpy(array).to(device) for name, array in self.arrays().items()}

    def update(self, tensors: dict[str, torch.Tensor], entry: ArenaEntry | ArenaRoom) -> None:
        """Copy to tensors on a device what changed when a constraint was added or removed. They stay where they are.

        Args:
            tensors: of :meth:`tensors`.
            entry: what was added or removed since; or states that were set apart or given back.
        """
        import torch

        count = entry.states if isinstance(entry, ArenaRoom) else entry.frozen.states
        states = slice(entry.base, entry.base + count)
        table = slice(entry.transitions, entry.transitions + count * entry.columns)
        parts: dict[str, Any] = {"class_of": entry.grammar, "next": table, "pool": list(entry.rows)}
        parts |= dict.fromkeys(("next_offset", "grammar_of", "mask_row", "accepting"), states)
        with self._lock:
            for name, array in self.arrays().items():
                tensors[name][parts[name]] = torch.from_numpy(array[parts[name]]).to(tensors[name].device)
