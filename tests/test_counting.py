"""Tests that keep too few of their examples fail: above all where an engine refuses everything."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.errors import Unsatisfiable

import grammarspec as gs
from grammarspec import _compiler
from tests import counting
from tests.counting import Tally, discard, examples, tally
from tests.frontends.json_schema import test_histories, test_properties
from tests.properties import test_engine


def _runs(test: Callable[[], None]) -> bool:
    """Whether a test passes, by what it keeps."""
    try:
        with counting.scope():
            test()
    except (pytest.fail.Exception, Unsatisfiable):
        return False
    return True


@pytest.mark.parametrize("kept", [0.0, 0.2, 0.5, 0.8, 1.0])
def test_a_property_keeps_its_share(kept: float) -> None:
    @examples(1000, kept=0.5)
    @given(st.integers(0, 99))
    def run(number: int) -> None:
        if number >= 100 * kept:
            discard("it is large")

    assert _runs(run) is (kept >= 0.5)


def test_assumptions_are_counted() -> None:
    @examples(1000)
    @given(st.integers())
    def run(number: int) -> None:
        assume(number % 2)

    assert not _runs(run)


def test_tallies_of_parts() -> None:
    def run(kept: int, discarded: int) -> None:
        for _ in range(kept):
            tally("parts", 0.9).keep()
        for _ in range(discarded):
            tally("parts", 0.9).discard("a limit")

    assert _runs(lambda: run(90, 10))
    assert _runs(lambda: run(1, 1)), "two say little"
    assert not _runs(lambda: run(50, 50))
    assert not _runs(lambda: run(0, 1))


def test_least_numbers_leave_room_for_chance() -> None:
    assert Tally(0.5).is_enough
    assert Tally(0.5, kept=50).least == 25 - 3 * 12.5**0.5


def _refusing(every: int) -> Callable[..., Any]:
    """``gs.compile`` of an engine that exceeds a limit at all but each so many calls; ``0``: at all of them."""
    calls = iter(range(1, 10**9))
    compile_ = gs.compile

    def refuse(*args: Any, **options: Any) -> gs.Constraint:
        if every and next(calls) % every == 0:
            return compile_(*args, **options)
        raise gs.LimitExceeded("the engine has had enough")

    return refuse


PROPERTIES: dict[str, Callable[[], None]] = {
    "verdicts": lambda: test_properties.test_verdicts(2020),
    "texts": lambda: test_properties.test_whatever_is_written_satisfies_the_schema("unique"),
    "bits": test_histories.test_every_bit_of_the_masks,
    "ends": test_histories.test_every_state_has_an_end,
}


@pytest.mark.slow
@pytest.mark.parametrize("every", [0, 5])
@pytest.mark.parametrize("name", PROPERTIES)
def test_an_engine_that_refuses_is_found(name: str, every: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gs, "compile", _refusing(every))
    assert not _runs(PROPERTIES[name])


@pytest.mark.slow
def test_a_compiler_that_refuses_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> NoReturn:
        raise gs.LimitExceeded("the compiler has had enough")

    monkeypatch.setattr(_compiler, "compile", refuse)
    assert not _runs(test_engine.test_regular_language)
    assert not _runs(test_engine.test_masks_of_regular_grammars)


def test_a_search_that_gives_up_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Within an example, too: an end that is not found is not one that was compared."""
    compile_ = gs.compile

    class Blind:
        def __init__(self, constraint: gs.Constraint) -> None:
            self._constraint = constraint

        def __getattr__(self, name: str) -> Any:
            return getattr(self._constraint, name)

        def shortest_completion(self, state: int) -> list[int]:
            raise gs.LimitExceeded("the search has had enough")

    monkeypatch.setattr(gs, "compile", lambda *args, **options: Blind(compile_(*args, **options)))
    assert not _runs(test_histories.test_every_state_has_an_end)
