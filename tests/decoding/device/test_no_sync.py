"""Whole rounds run with tensors that have no values, on an imagined CUDA device: nothing in them waits for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import grammarspec as gs

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from torch._subclasses.fake_tensor import DataDependentOutputException, DynamicOutputShapeException  # noqa: E402

from grammarspec.decoding import Sampling  # noqa: E402
from grammarspec.decoding.device.automaton import ArenaTensors  # noqa: E402
from grammarspec.decoding.device.cache import StaticCache  # noqa: E402
from grammarspec.decoding.device.choices import Choices  # noqa: E402
from grammarspec.decoding.device.drafters import (  # noqa: E402
    Drafter,
    ForcedDrafter,
    HeadDrafter,
    LookupDrafter,
    ModelDrafter,
    PreferredDrafter,
    Proposed,
)
from grammarspec.decoding.device.round import COLUMNS, Round  # noqa: E402
from grammarspec.decoding.device.runner import StaticRunner  # noqa: E402
from grammarspec.decoding.device.state import Draft, Rows  # noqa: E402
from grammarspec.decoding.device.support import ends_of  # noqa: E402
from grammarspec.decoding.device.window import Window  # noqa: E402
from grammarspec.decoding.processing import Processing  # noqa: E402
from grammarspec.decoding.proposers.draft_sampler import DraftSampler  # noqa: E402
from grammarspec.decoding.proposers.head import ResidualHead  # noqa: E402
from tests.oracles.tracing import HostTouched, imagined, without_host  # noqa: E402

WIDTH, CAPACITY, GAMMA = 264, 64, 3
SAMPLINGS: dict[str, list[dict[str, Any]]] = {
    "greedy": [{}, {}],
    "drawn": [{"temperature": 1.0}, {"temperature": 0.7, "top_p": 0.9, "top_k": 7, "min_p": 0.1}],
    "mixed": [
        {"temperature": 1.0, "seed": 3, "logit_bias": {3: 1.0}},
        {"repetition_penalty": 1.2, "frequency_penalty": 0.1},
    ],
}


def trace(
    options: list[dict[str, Any]], names: list[str], planted: Drafter | None = None, *, freezes: bool = True
) -> int:
    """Run a round with these samplings and drafters; returns the number of operations.

    Args:
        options, names, planted: the samplings, and the drafters.
        freezes: whether the constraint of the first row does.
    """
    arena = gs.FrozenArena(257, width=WIDTH, transitions=1 << 14, states=1 << 10, rows=64)
    if freezes:
        start = arena.add(gs.compile(gs.regex("(yes|no)( (yes|no)){0,3}"), gs.Vocabulary.bytes()).freeze()).start
    else:
        constraint = gs.compile(gs.json_schema({}), gs.Vocabulary.bytes())
        window = Window(constraint, arena, arena.reserve(9, 70), np.ones(257))
        assert window.enter(constraint.start)
        start = window.place(constraint.start)
    processing = Processing([Sampling(**each) for each in options], [0, 1], [[1], [2]], WIDTH, torch.device("cpu"))
    with torch.no_grad(), imagined():
        device = torch.device("cuda")
        torch.set_default_device(device)
        try:
            model, small = (transformers.LlamaForCausalLM(config(layers)) for layers in (2, 1))
            head = ResidualHead(model, 8)
        finally:
            torch.set_default_device(None)
        target = StaticRunner(model, StaticCache(2, CAPACITY), hidden="head" in names)
        sampler = DraftSampler("model", True, 0.2)
        shared, own = StaticRunner(small, target.cache), StaticRunner(small, StaticCache(2, CAPACITY))
        every: dict[str, Callable[[], Drafter]] = {
            "forced": ForcedDrafter,
            "preferred": lambda: PreferredDrafter(anywhere=True),
            "lookup": lambda: LookupDrafter(3, 1),
            "model": lambda: ModelDrafter("model", own, sampler, WIDTH, shared=False),
            "early exit": lambda: ModelDrafter("early-exit", shared, sampler, WIDTH, shared=True),
            "head": lambda: HeadDrafter(head, sampler, WIDTH, device),
        }
        drafters = [every[name]() for name in names] + ([planted] if planted else [])
        rows = Rows.of([[1, 2, 3], [4, 5]], [40, 30], [start, 0], CAPACITY, device, (32, torch.float32))
        moved(processing, device)
        tensors = ArenaTensors.of(arena, device)
        work = Round(target, tensors, ends_of([256], WIDTH, device), drafters, looks=False)
        with without_host() as seen:
            report = work.run(rows.first(2), processing.first(2), GAMMA if drafters else 0, CAPACITY)
        assert report.shape == (2, COLUMNS + 1 + 2 * (GAMMA if drafters else 0)) and report.dtype == torch.int64
        return seen.calls


def moved(processing: Processing, device: Any) -> None:
    """Move to a device what is there already, as random seeds cannot be imagined."""
    for name, value in vars(processing).items():
        if isinstance(value, torch.Tensor):
            setattr(processing, name, value.to(device))
    processing._device = device


def config(layers: int) -> Any:
    return transformers.LlamaConfig(
        vocab_size=WIDTH, hidden_size=32, intermediate_size=64, num_hidden_layers=layers, num_attention_heads=4
    )


@pytest.mark.combined
@pytest.mark.parametrize("options", SAMPLINGS)
@pytest.mark.parametrize(
    "names",
    [
        [],
        ["forced"],
        ["preferred"],
        ["lookup"],
        ["model"],
        ["early exit"],
        ["head"],
        ["forced", "preferred", "lookup", "head", "model"],
    ],
    ids=lambda names: "+".join(names) or "none",
)
def test_a_round_never_waits(options: str, names: list[str]) -> None:
    # It makes no difference to the round whether the constraint is there as a whole.
    assert trace(SAMPLINGS[options], names) == trace(SAMPLINGS[options], names, freezes=False) > 100


class Planted:
    """A drafter that does what a round must not do."""

    name = "planted"
    runs_model = False

    def __init__(self, wrong: Callable[[Draft], Any]) -> None:
        self._wrong = wrong

    def begin(self, draft: Draft, visible: int, choices: Choices) -> None:
        pass

    def propose(self, draft: Draft) -> Proposed:
        self._wrong(draft)
        return Proposed(torch.zeros_like(draft.lengths), draft.open)

    def appended(self, draft: Draft) -> None:
        pass


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        (lambda draft: draft.lengths.sum().item(), DataDependentOutputException),
        (lambda draft: bool(draft.open.any()), DataDependentOutputException),
        (lambda draft: draft.rows.tokens[draft.open], DynamicOutputShapeException),
        (lambda draft: draft.lengths.cpu(), HostTouched),
        (lambda draft: torch.tensor([1, 2], device="cuda"), HostTouched),
        (lambda draft: draft.lengths + torch.ones(2, dtype=torch.int64), (HostTouched, RuntimeError)),
    ],
    ids=["item", "bool", "boolean index", "to the host", "from a list", "mixed"],
)
def test_what_waits_is_found(wrong: Callable[[Draft], Any], error: Any) -> None:
    trace(SAMPLINGS["greedy"], ["forced"], Planted(lambda draft: None))
    with pytest.raises(error):
        trace(SAMPLINGS["greedy"], ["forced"], Planted(wrong))
