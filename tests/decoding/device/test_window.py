"""Windows: what the arena says of their states is what the constraint says, as far as it says anything."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import grammarspec as gs
from tests import tiers

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from grammarspec.decoding.device import window as module  # noqa: E402
from grammarspec.decoding.device.automaton import MISSING, REFUSED, ArenaTensors  # noqa: E402
from grammarspec.decoding.device.reports import Mailbox  # noqa: E402
from grammarspec.decoding.device.supply import Supply, _explore  # noqa: E402
from grammarspec.decoding.device.token_classes import PADDING, TokenClasses  # noqa: E402
from grammarspec.decoding.device.window import Window  # noqa: E402
from tests.decoding.device.test_hybrid import GRAMMARS, VOCABULARY, WIDTH  # noqa: E402

TOKENS = np.arange(WIDTH)


def window_of(name: str, states: int = 40, columns: int = 120) -> tuple[gs.FrozenArena, Window]:
    arena = gs.FrozenArena(VOCABULARY.size, width=WIDTH, states=100, transitions=1 << 15, rows=100)
    arena.add(gs.compile(gs.regex("a|b"), VOCABULARY).freeze())  # so that nothing begins at the first number
    constraint = gs.compile(GRAMMARS[name], VOCABULARY)
    return arena, Window(constraint, arena, arena.reserve(states, columns), np.ones(VOCABULARY.size))


def check(arena: gs.FrozenArena, window: Window, states: list[int]) -> int:
    """Compare states with the constraint, token by token; returns how many allowed tokens lead to known states."""
    known = 0
    for state in states:
        place = window.place(state)
        row = np.frombuffer(window.constraint.mask(state), "<i4")
        assert np.array_equal(arena.masks([place])[0][: len(row)], row)
        assert not arena.masks([place])[0][len(row) :].any()
        bits = np.unpackbits(row.view(np.uint8), bitorder="little")[: VOCABULARY.size]
        behind = arena.step(np.full(WIDTH, place), TOKENS)
        for token, found in enumerate(behind.tolist()):
            expected = window.constraint.step(state, token) if token < VOCABULARY.size else None
            if found == MISSING:
                assert expected is None or expected not in window or window.likely(state) == [] or not bits[token]
            elif found == REFUSED:
                assert expected is None
            else:
                assert expected is not None and found == window.place(expected)
                known += 1
    return known


@pytest.mark.property
@pytest.mark.parametrize("name", GRAMMARS)
def test_states_of_a_window_are_those_of_the_constraint(name: str) -> None:
    """States are entered along random texts, learned, and left out, in any order."""
    rng = random.Random(tiers.seed(len(name)))
    arena, window = window_of(name)
    matcher = window.constraint.matcher()
    known = full = 0
    for _ in range(tiers.draws(150, least=60)):
        row = gs.allocate_bitmask(1, VOCABULARY.size)
        matcher.fill_bitmask(row)
        allowed = np.flatnonzero(np.unpackbits(row.view(np.uint8), bitorder="little"))
        before = matcher.state
        if not window.enter(before):
            full += 1
            window.shrink([before], rng.choice([0.5, 0.1, 0.0]))
            assert window.enter(before)
        if not len(allowed) or rng.random() < 0.02:
            matcher.reset()
            continue
        token = int(rng.choice(allowed))
        assert matcher.accept_token(token)
        window.learn(before, token, matcher.state)
        window.read([token])
        if rng.random() < 0.2:
            _explore(window, matcher.state, 5)
        if rng.random() < 0.3:
            known += check(arena, window, [before, matcher.state] if matcher.state in window else [before])
    every = list(window._slots)
    known += check(arena, window, every)
    print(f"{name}: {len(every)} states, {window._classes.count} classes, {known} transitions, {full} times full")
    assert known


def test_a_state_that_leads_nowhere_yet_has_its_mask() -> None:
    arena, window = window_of("any JSON", columns=4)  # too few classes for anything else
    start = window.constraint.start
    assert not window.enter(start) and window.place(start) == MISSING
    window.shrink([], 0)
    assert not window.enter(start) and window.enter(start, bare=True)
    behind = arena.step(np.full(WIDTH, window.place(start)), TOKENS)
    assert (behind == MISSING).sum() >= VOCABULARY.size
    row = np.frombuffer(window.constraint.mask(start), "<i4")
    assert np.array_equal(arena.masks([window.place(start)])[0][: len(row)], row)


def test_what_steps_alone_exceed_leaves_the_mask(monkeypatch: pytest.MonkeyPatch) -> None:
    class Limited:
        """A constraint that cannot say where its tokens lead."""

        def __init__(self, constraint: gs.Constraint) -> None:
            self.start, self.pin, self.fill_bitmask = constraint.start, constraint.pin, constraint.fill_bitmask
            self.successors = self._raise

        def _raise(self, *_: Any) -> Any:
            raise gs.LimitExceeded("max_steps")

    _, window = window_of("tree")
    window.constraint = Limited(window.constraint)  # type: ignore[assignment]
    assert window.enter(window.constraint.start) and window.likely(window.constraint.start) == []


def test_windows_reach_the_device_by_uploads() -> None:
    arena, window = window_of("any JSON")
    shared = ArenaTensors.of(arena, torch.device("cpu"))
    copies = ArenaTensors(**{name: getattr(shared, name).clone() for name in ArenaTensors.__slots__})
    assert shared.shares(arena) and not copies.shares(arena)
    supply = Supply({}, arena, copies, VOCABULARY, 264)
    supply._windows[id(window.constraint)] = window
    _explore(window, window.constraint.start, 20)
    supply.upload()
    window.shrink([window.constraint.start], 0.2)
    _explore(window, window.constraint.start, 7)
    supply.upload()
    room = window.room
    table = slice(room.transitions, room.transitions + room.states * room.columns)
    used = [window._slots[state] for state in window._slots]
    for name in ("class_of", "pool"):
        rows = [room.grammar] if name == "class_of" else [room.rows[slot] for slot in used]
        assert torch.equal(getattr(copies, name)[rows], getattr(shared, name)[rows])
    both = [tensors.next[table].reshape(room.states, -1)[used] for tensors in (copies, shared)]
    assert torch.equal(*both)


def test_what_a_mask_forces_is_learned_for_all_states_with_that_mask() -> None:
    """A text that the target spells in its own way is drafted so at each depth."""
    arena, window = window_of("tree")
    tensors = ArenaTensors.of(arena, torch.device("cpu"))
    supply = Supply({id(window.constraint): window}, arena, tensors, VOCABULARY, 264)
    matcher = window.constraint.matcher()
    places = []
    for text in (b'{"name":"yes","children":[{', b'"name":"no","children":[{'):
        assert matcher.accept_tokens(list(text)) == len(text)
        assert window.enter(matcher.state)
        supply.upload()
        row = arena.mask_row[window.place(matcher.state)]
        places.append(row)
        if len(places) == 1:
            assert VOCABULARY.token_bytes(int(tensors.forced[row])) == b'"'
            tensors.forced[row] = 7  # what is learned
    assert places[0] != places[1] and tensors.forced[places[1]] == 7


def test_more_is_computed_while_the_device_is_busy() -> None:
    arena, window = window_of("any JSON", states=64)
    request = type("Text", (), {"matcher": window.constraint.matcher()})()
    supply = Supply({}, arena, ArenaTensors.of(arena, torch.device("cpu")), VOCABULARY, 264)
    supply._windows[id(request.matcher.constraint)] = window
    supply.compute_ahead([request], lambda: True)
    once = len(window)
    answers = iter([False] * 3 + [True] * 9)
    supply.compute_ahead([request], lambda: next(answers))
    assert 1 < once < len(window) < 64
    supply.compute_ahead([request], lambda: False)  # ends where nothing is left to compute, or the window is full
    assert len(window) == 64 or request.matcher.state in window.explored
    assert Mailbox(torch.device("cpu"), 1, 1).arrived()


# ---------------------------------------------------------------------- classes of tokens
@pytest.mark.property
def test_classes_are_the_coarsest_that_tell_states_apart() -> None:
    rng = random.Random(tiers.seed(0))
    for _ in range(tiers.draws(60, least=10)):
        size, most = rng.randint(1, 60), rng.randint(3, 40)
        of = np.zeros(size + 5, np.int16)
        classes = TokenClasses(of, size, most)
        rows: list[np.ndarray[Any, Any]] = []
        table = np.zeros((0, 2), np.int64)
        for _ in range(rng.randint(1, 8)):
            kinds = rng.randint(1, 5)
            values = np.array([rng.randrange(-2, kinds) for _ in range(size)], np.int32)
            if rng.random() < 0.7:  # mostly long runs of one value
                values[: size - size // 4] = rng.randrange(-2, kinds)
            before = of.copy()
            entered = classes.enter(values)
            distinct = len({tuple(column) for column in np.array([*rows, values]).T.tolist()})
            if entered is None:
                assert distinct + 1 > most and np.array_equal(of, before)
                continue
            row, new = entered
            columns = [*range(table.shape[1]), *(old for _, old in new)]
            table = np.concatenate((table[:, columns], row[None].astype(np.int64)))
            rows.append(values)
            assert distinct == classes.count - 1 and (of[size:] == PADDING).all()
            for entry, each in zip(table, rows, strict=True):
                assert np.array_equal(entry[of[:size]], each)
        token = rng.randrange(size)
        count, alone = classes.count, classes.alone(token)
        if alone is not None:
            assert (of == of[token]).sum() == 1 and alone[0] == of[token]
            assert classes.count - count == (alone[0] != alone[1])
        else:
            assert count == most


def test_the_constants_fit() -> None:
    assert module.COLUMNS > module._BRANCHES + 3
