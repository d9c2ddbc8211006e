"""Batches use the tensors and graphs of earlier batches, and nothing of their texts.

Graphs are played by a stand-in that runs what was captured, on the tensors that it was captured with.
"""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

import torch

import grammarspec as gs
from grammarspec.decoding import Request, Sampling
from grammarspec.decoding.device import DeviceBatch, loop, workspace
from grammarspec.decoding.proposers import Proposer
from tests.decoding.device.test_same_texts import (
    GRAMMARS,
    PROMPTS,
    PROPOSERS,
    SAMPLINGS,
    VOCABULARY,
    WIDTH,
    on_host,
)
from tests.oracles.small_llama import disturbed, small_llama

CAPTURED: list[tuple[int, int]] = []


class Replayed:
    """Runs for each key what was to be captured first."""

    def __init__(self, state: Sequence[torch.Tensor]) -> None:
        self._work: dict[tuple[int, int], Callable[[], torch.Tensor]] = {}

    def run(self, key: tuple[int, int], work: Callable[[], torch.Tensor]) -> torch.Tensor:
        if key not in self._work:
            CAPTURED.append(key)
        return self._work.setdefault(key, work)()


@pytest.fixture(autouse=True)
def graphs(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Every workspace has graphs, and none is kept from other tests."""

    def made(*parts: Any) -> workspace.Workspace:
        return workspace.Workspace(*parts[:-1], Replayed(()))  # type: ignore[arg-type]

    monkeypatch.setattr(loop, "Workspace", made)
    workspace._idle.clear()
    CAPTURED.clear()
    yield
    workspace._idle.clear()


def requests(number: int, **sampling: Any) -> list[Request]:
    """Three requests; other ones for each number."""
    options = {"max_tokens": 12 + number % 5, **sampling}
    return [
        Request(
            prompt=list(PROMPTS[(number + row) % len(PROMPTS)]),
            matcher=gs.compile(GRAMMARS[(number * 3 + row) % len(GRAMMARS)], VOCABULARY).matcher(),
            sampling=Sampling(**options),
        )
        for row in range(3)
    ]


def written(model: Any, number: int, proposers: list[Proposer], **sampling: Any) -> list[list[int]]:
    batch = DeviceBatch(
        model,
        requests(number, **sampling),
        VOCABULARY,
        proposers=proposers,
        gamma=4,
        adaptive=False,
        end_token=264,
        lag=number % 2,
        looks=False,
    )
    return [list(text.tokens) for texts in batch.run() for text in texts]


@pytest.mark.parametrize("sampling", SAMPLINGS, ids=str)
@pytest.mark.parametrize("name", PROPOSERS)
def test_texts_are_those_of_the_host(name: str, sampling: dict[str, Any]) -> None:
    model = small_llama(4, width=WIDTH)
    proposers = PROPOSERS[name](model, disturbed(model, 5))
    for number in range(4):
        options = {**sampling, **({"seed": number} if "seed" in sampling else {})}
        expected = [list(text.tokens) for text in on_host(model, requests(number, **options))]
        assert written(model, number, proposers, **options) == expected
    [kept] = workspace._idle.values()
    assert len(kept) == 1, "all batches used one workspace"
    assert len(set(CAPTURED)) == len(CAPTURED), "each round was captured once"


def test_batches_of_another_shape_get_another_workspace() -> None:
    model = small_llama(4, width=WIDTH)
    first = written(model, 1, [])
    captured = list(CAPTURED)
    assert written(model, 1, [], temperature=1.0, seed=3) != first
    assert CAPTURED[len(captured) :] == captured
    assert written(model, 1, []) == first
    assert captured * 2 == CAPTURED


def test_what_is_kept_does_not_keep_the_model() -> None:
    model = small_llama(4, width=WIDTH)
    written(model, 0, [])
    [[kept]] = workspace._idle.values()
    kept.graphs = None  # unlike real graphs, these hold what they run
    there, cache = weakref.ref(model), weakref.ref(kept.target.cache)
    del kept, model
    gc.collect()
    gc.collect()  # of the cache, whose layers know it
    assert there() is None and cache() is None and not workspace._idle


def test_batches_that_end_early_keep_nothing() -> None:
    model = small_llama(4, width=WIDTH)
    batch = DeviceBatch(model, requests(0), VOCABULARY, proposers=[], gamma=0, adaptive=False, end_token=264)
    with torch.inference_mode():
        batch.begin()
        batch.round()
    batch.close()
    assert not workspace._idle


def test_slots() -> None:
    assert [workspace.slots_for(length, 1) for length in (1, 64, 65, 97, 129, 200, 300)] == [
        64,
        64,
        96,
        128,
        192,
        256,
        384,
    ]
    assert workspace.slots_for(500, 64) == 512 and workspace.slots_for(513, 64) == 576


def test_callers_are_within_inference_mode_or_not() -> None:
    model = small_llama(4, width=WIDTH)
    with torch.inference_mode():
        first = written(model, 0, [])
    assert written(model, 1, []) == [list(text.tokens) for text in on_host(model, requests(1))]
    with torch.inference_mode():
        assert written(model, 0, []) == first
