"""The arena: many frozen constraints in arrays of one size, stepped and masked as each alone."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import grammarspec as gs
from grammarspec.errors import LimitExceeded
from grammarspec.frozen import ArenaEntry, FrozenArena
from tests import tiers

BYTES = gs.Vocabulary.bytes()
OTHER = gs.Vocabulary.from_tokens([bytes([255 - value]) for value in range(256)], [256])
PATTERNS = ["a+", "[0-9]{1,4}", "(yes|no)(, (yes|no))*", "[a-z]*@x", ".{0,5}", "(ab|ba)*c?", "a+"]
WIDTH = 300
UNCONSTRAINED, REFUSED, MISSING = 0, 1, 2


def frozen_of(pattern: str, vocabulary: gs.Vocabulary = BYTES) -> gs.FrozenConstraint:
    return gs.compile(gs.regex(pattern), vocabulary).freeze()


@pytest.fixture(scope="module")
def several() -> list[gs.FrozenConstraint]:
    return [frozen_of(pattern) for pattern in PATTERNS]


def arena_for(capacities: dict[str, int] | None = None) -> FrozenArena:
    sizes = {"grammars": 9, "states": 200, "transitions": 3000, "rows": 60} | (capacities or {})
    return FrozenArena(BYTES.size, width=WIDTH, **sizes)


def bits(rows: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    octets = np.ascontiguousarray(rows, dtype="<i4").view(np.uint8)
    return np.unpackbits(octets, axis=-1, bitorder="little").astype(bool)


def check(arena: FrozenArena, entry: ArenaEntry) -> None:
    """Each step, mask and ending of a constraint in the arena is its own."""
    frozen = entry.frozen
    tokens = np.arange(WIDTH)
    for state in range(frozen.states):
        there = entry.base + state
        allowed = bits(arena.masks([there]))[0]
        assert np.array_equal(allowed[: BYTES.size], bits(frozen.mask(state))[: BYTES.size])
        assert not allowed[BYTES.size :].any()
        behind = arena.step(np.full(WIDTH, there), tokens)
        own = frozen.next[state][frozen.class_of]
        assert np.array_equal(behind[: BYTES.size], np.where(own < 0, REFUSED, own + entry.base))
        assert (behind[BYTES.size :] == REFUSED).all()
        assert arena.accepting[there] == frozen.accepting[state]


def test_constraints_side_by_side(several: list[gs.FrozenConstraint]) -> None:
    arena = arena_for()
    entries = [arena.add(frozen) for frozen in several]
    for entry in entries:
        check(arena, entry)
        assert entry.start == entry.base and entry.terminated == entry.base + entry.frozen.terminated
    assert len(arena) == len(several) and "7 constraints" in repr(arena)
    # the same pattern twice, and what all have: the mask of what has ended
    assert entries[0].rows == entries[-1].rows
    assert len({row.tobytes() for row in arena.pool[: 60 - arena.free()["rows"]]}) == 60 - arena.free()["rows"]


def test_states_without_a_constraint(several: list[gs.FrozenConstraint]) -> None:
    arena = arena_for()
    arena.add(several[0])
    tokens = np.arange(WIDTH)
    free = arena.step(np.full(WIDTH, UNCONSTRAINED), tokens)
    assert (free[: BYTES.size] == UNCONSTRAINED).all() and (free[BYTES.size :] == REFUSED).all()
    assert (arena.step(np.full(WIDTH, REFUSED), tokens) == REFUSED).all()
    assert bits(arena.masks([UNCONSTRAINED])).sum() == BYTES.size and not bits(arena.masks([REFUSED])).any()
    missing = arena.step(np.full(WIDTH, MISSING), tokens)
    assert (missing[: BYTES.size] == MISSING).all() and (missing[BYTES.size :] == REFUSED).all()
    assert bits(arena.masks([MISSING])).sum() == BYTES.size
    assert arena.accepting[: MISSING + 1].tolist() == [True, False, False]
    last = len(arena.next_offset) - 1  # no constraint has it
    assert (arena.step(np.full(WIDTH, last), tokens) == REFUSED).all() and not bits(arena.masks([last])).any()


def test_no_padding_where_widths_agree(several: list[gs.FrozenConstraint]) -> None:
    arena = FrozenArena(BYTES.size, states=200, transitions=4000)
    entry = arena.add(several[1])
    assert entry.columns == several[1].classes
    assert arena.step([entry.start], [48]).tolist() == [entry.base + (several[1].step(0, 48) or -1)]


def test_padding_has_a_class_of_its_own_where_every_token_is_allowed() -> None:
    vocabulary = gs.Vocabulary.from_tokens([b"a", None], [1])
    frozen = gs.compile(gs.regex("a*"), vocabulary).freeze()
    assert (frozen.next[0] >= 0).all()
    arena = FrozenArena(2, width=5)
    entry = arena.add(frozen)
    assert entry.columns == frozen.classes + 1
    assert arena.step([entry.start] * 5, range(5)).tolist() == [entry.base, entry.base + 1, 1, 1, 1]


def _fill(arena: FrozenArena, constraints: list[gs.FrozenConstraint]) -> list[ArenaEntry]:
    """Add constraints up to the first for which there is no room."""
    added = []
    for frozen in constraints:
        try:
            added.append(arena.add(frozen))
        except LimitExceeded:
            break
    return added


def test_a_full_arena_says_of_what_and_stays_as_it_is(several: list[gs.FrozenConstraint]) -> None:
    big = several[4]
    for name, least in (("grammars", 2), ("states", 3 + big.states), ("transitions", 800), ("rows", 12)):
        arena = arena_for({name: least})
        added = _fill(arena, [big, *several * 2])
        before, free = {key: array.copy() for key, array in arena.arrays().items()}, arena.free()
        with pytest.raises(LimitExceeded, match=rf"the arena is full: .*\d+ {name} are needed and \d+ free"):
            arena.add([big, *several * 2][len(added)])
        assert added and all(np.array_equal(array, before[key]) for key, array in arena.arrays().items())
        assert arena.free() == free
        arena.remove(added[0])
        assert arena.free()[name] >= 1


@pytest.mark.property
def test_constraints_come_and_go(several: list[gs.FrozenConstraint]) -> None:
    """Whatever is added and removed, arrays stay where they are, and what is in the arena is whole."""
    arena, rng = arena_for({"grammars": 6, "states": 90, "transitions": 1200, "rows": 40}), random.Random(tiers.seed(0))
    places = {name: array.ctypes.data for name, array in arena.arrays().items()}
    empty, held, full = arena.free(), [], 0
    for _ in range(tiers.draws(400)):
        if held and rng.random() < 0.45:
            arena.remove(held.pop(rng.randrange(len(held))))
        else:
            try:
                held.append(arena.add(rng.choice(several)))
            except LimitExceeded:
                full += 1
        if held:
            check(arena, rng.choice(held))
    assert full and places == {name: array.ctypes.data for name, array in arena.arrays().items()}
    for entry in held:
        arena.remove(entry)
    assert arena.free() == empty and len(arena) == 0
    with pytest.raises(KeyError):
        arena.remove(held[0])


def test_removed_states_are_refused(several: list[gs.FrozenConstraint]) -> None:
    arena = arena_for()
    entry = arena.add(several[0])
    arena.remove(entry)
    assert arena.step([entry.start], [97]).tolist() == [REFUSED] and not bits(arena.masks([entry.start])).any()


def test_rooms_for_states_without_a_constraint(several: list[gs.FrozenConstraint]) -> None:
    arena = arena_for()
    empty = arena.free()
    entries, room = [arena.add(several[1])], arena.reserve(7, 5)
    entries.append(arena.add(several[2]))
    states = range(room.base, room.base + room.states)
    assert len(set(room.rows)) == room.states == 7 and arena.mask_row[list(states)].tolist() == list(room.rows)
    for state in states:  # nothing is allowed as long as nothing is written
        assert (arena.step(np.full(WIDTH, state), np.arange(WIDTH)) == REFUSED).all()
        assert not bits(arena.masks([state])).any() and not arena.accepting[state]
    # what their holder writes stays in its parts
    arena.class_of[room.grammar] = np.arange(WIDTH) % room.columns
    table = arena.next[room.transitions : room.transitions + room.states * room.columns].reshape(room.states, -1)
    table[:] = MISSING
    table[3, 2] = room.base + 6
    arena.pool[list(room.rows)] = -1
    assert arena.step([room.base + 3] * 3, [2, 3, 7]).tolist() == [room.base + 6, MISSING, room.base + 6]
    for entry in entries:
        check(arena, entry)
    arena.release(room)
    assert arena.step([room.base], [0]).tolist() == [REFUSED] and not bits(arena.masks([room.base])).any()
    with pytest.raises(KeyError, match="the room is not in the arena"):
        arena.release(room)
    for entry in entries:
        arena.remove(entry)
    assert arena.free() == empty
    with pytest.raises(LimitExceeded, match="61 rows are needed and 58 free"):
        arena.reserve(61, 5)
    again = arena.reserve(7, 5)  # nothing is left of what was there before
    assert not bits(arena.masks(list(range(again.base, again.base + 7)))).any()


def test_tensors_follow(several: list[gs.FrozenConstraint]) -> None:
    arena = arena_for()
    shared, copies = arena.tensors(), {name: tensor.clone() for name, tensor in arena.tensors().items()}
    held = []
    for frozen in several:
        held.append(arena.add(frozen))
        arena.update(copies, held[-1])
    arena.remove(held[2])
    arena.update(copies, held[2])
    room = arena.reserve(4, 9)
    arena.pool[list(room.rows)] = 7
    arena.update(copies, room)
    for name, array in arena.arrays().items():
        assert shared[name].data_ptr() == array.ctypes.data
        used = slice(0, len(array))
        if name in ("class_of", "next", "pool"):  # what is given back there keeps its numbers
            continue
        assert np.array_equal(copies[name].numpy()[used], array), name
    for entry in held[:2] + held[3:]:
        states, tokens = np.full(WIDTH, entry.start), np.arange(WIDTH)
        offsets = copies["next_offset"].numpy()[states]
        classes = copies["class_of"].numpy()[copies["grammar_of"].numpy()[states], tokens]
        assert np.array_equal(copies["next"].numpy()[offsets + classes], arena.step(states, tokens))
        assert np.array_equal(copies["pool"].numpy()[copies["mask_row"].numpy()[states]], arena.masks(states))


def test_wrong_arguments(several: list[gs.FrozenConstraint]) -> None:
    with pytest.raises(ValueError, match="width 10"):
        FrozenArena(11, width=10)
    with pytest.raises(ValueError, match="states must be from 3"):
        FrozenArena(11, states=1)
    arena = arena_for()
    arena.add(several[0])
    with pytest.raises(ValueError, match="another vocabulary"):
        arena.add(frozen_of("a", OTHER))
    with pytest.raises(ValueError, match="a constraint on 2 tokens"):
        arena.add(frozen_of("a", gs.Vocabulary.from_tokens([b"a", None], [1])))
    for states, tokens in (([-1], [0]), ([0], [-1]), ([10_000], [0]), ([0], [WIDTH])):
        with pytest.raises(IndexError):
            arena.step(states, tokens)
