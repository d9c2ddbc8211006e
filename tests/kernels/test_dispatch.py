"""Where kernels run: on CUDA devices, as operators whose shapes are known without running them, and nowhere else."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("triton")
pytest.importorskip("transformers")

from torch._subclasses.fake_tensor import DataDependentOutputException, FakeTensorMode  # noqa: E402
from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402
from triton.runtime import interpreter, jit  # noqa: E402

import grammarspec as gs  # noqa: E402
from grammarspec.decoding import Sampling, distributions, noise, verification  # noqa: E402
from grammarspec.decoding.processing import Processing  # noqa: E402
from grammarspec.frozen import stepping  # noqa: E402
from grammarspec.kernels import dispatch  # noqa: E402
from tests.kernels.running import MODE  # noqa: E402

SAMPLINGS = [
    {"temperature": 0},
    {"temperature": 0.9, "seed": 11, "top_k": 4},
    {"temperature": 1.1, "min_p": 0.1},
]
ROWS, N, WIDTH = 3, 4, 150


def inputs(device: str) -> dict[str, Any]:
    whole = {"dtype": torch.int64, "device": device}
    return {
        "logits": torch.randn(ROWS, N, WIDTH, device=device).bfloat16(),
        "masks": torch.full((ROWS, N, 5), -1, dtype=torch.int32, device=device),
        "tokens": torch.zeros(ROWS, N - 1, **whole),
        "lengths": torch.full((ROWS,), N - 1, **whole),
        "draft": torch.full((ROWS, N - 1, WIDTH), 1 / WIDTH, device=device),
        "drawn": torch.ones(ROWS, N - 1, dtype=torch.bool, device=device),
        "positions": torch.zeros(ROWS, N, **whole),
        "rounds": torch.zeros(ROWS, **whole),
        "states": torch.zeros(ROWS, **whole),
        "class_of": torch.zeros(2, WIDTH, dtype=torch.int16, device=device),
        "arena": torch.zeros(40, dtype=torch.int32, device=device),
    }


def whole_round(device: str) -> list[Any]:
    """All that a loop on a device asks of masks, sampling, verification and steps."""
    given = inputs(device)
    process = Processing([Sampling(**o) for o in SAMPLINGS], [0] * ROWS, [[0]] * ROWS, WIDTH, torch.device(device))
    rest = [given[name] for name in ("lengths", "draft", "drawn", "positions", "rounds")]
    scores = process.scores(given["logits"], given["masks"], given["tokens"])
    proposed = process.propose(scores[:, 0], given["positions"][:, 0], given["rounds"])
    whole = process.verify(scores, given["tokens"], *rest)
    fused = process.verify_logits(given["logits"], given["masks"], given["tokens"], *rest)
    gs.apply_bitmask(given["logits"][:, 0], given["masks"][:, 0])
    arena = [given["arena"]] * 3
    states = stepping.step(given["states"], given["rounds"], given["class_of"], *arena)
    return [scores, *proposed, *whole, *fused, states]


@pytest.fixture(autouse=True)
def seeds(monkeypatch: pytest.MonkeyPatch) -> None:
    """The seeds of rows without one are numbers of the host, as they are where no tensor is fake."""
    monkeypatch.setattr(torch, "randint", lambda *args: 5)


class Operators(TorchDispatchMode):
    """The names of the operators that run."""

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.names.append(str(func))
        return func(*args, **(kwargs or {}))


OURS = {"masked_scores", "apply_bitmask", "distribution", "choices", "draw", "uniform", "verify", "step"}


def test_cuda_tensors_go_to_kernels() -> None:
    """Fake tensors of a CUDA device: each function of a round is one of our operators, and nothing asks for a value."""
    with FakeTensorMode(), Operators() as seen:
        found = whole_round("cuda")
    assert {f"grammarspec.{name}.default" for name in OURS} <= set(seen.names)
    assert all(each.device.type == "cuda" for each in found)
    assert not {name for name in seen.names if "_local_scalar_dense" in name or "nonzero" in name or "sort" in name}
    with FakeTensorMode(), Operators() as plain, dispatch.using("reference"):
        whole_round("cuda")
    assert not [name for name in plain.names if name.startswith("grammarspec.")]


def test_a_planted_question_to_the_host_is_noticed() -> None:
    with FakeTensorMode(), pytest.raises(DataDependentOutputException):
        whole_round("cuda")[1][0].item()


@pytest.mark.slow
@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_other_devices_have_the_reference(device: str) -> None:
    with FakeTensorMode(), Operators() as seen:
        whole_round(device)
    assert not [name for name in seen.names if name.startswith("grammarspec.")]


def test_rocm_has_the_reference(monkeypatch: pytest.MonkeyPatch) -> None:
    dispatch._usable.cache_clear()
    monkeypatch.setattr(torch.version, "hip", "6.4")
    with FakeTensorMode():
        assert not dispatch.takes_over(torch.zeros(1, device="cuda"))
    dispatch._usable.cache_clear()


def test_float64_has_the_reference() -> None:
    with FakeTensorMode():
        assert not dispatch.takes_over(torch.zeros(1, device="cuda", dtype=torch.float64))


@pytest.fixture
def launches(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Kernels are not run: their grids are noted."""
    grids: list[Any] = []

    def run(self: Any, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> None:
        grids.append(grid)

    monkeypatch.setattr(interpreter.InterpretedFunction, "run", run)
    monkeypatch.setattr(jit.JITFunction, "run", run)
    return grids


def test_launching_asks_for_no_value_and_shapes_are_those_of_fakes(launches: list[Any]) -> None:
    """What launches kernels runs on fake tensors as well: so it never waits, and grids follow from shapes."""
    with FakeTensorMode():
        fakes = whole_round("cuda")

    def launched() -> list[Any]:
        process = Processing([Sampling(**o) for o in SAMPLINGS], [0] * ROWS, [[0]] * ROWS, WIDTH, torch.device("cuda"))
        given = inputs("cuda")
        from grammarspec.kernels import choices, masks, noise, steps, verdicts

        options = (*process._options(), process._kinds)
        scores = masks.masked_scores(given["logits"].flatten(0, 1), given["masks"].flatten(0, 1), None)
        scores = scores.view(ROWS, N, WIDTH)
        shares = choices.distribution(scores, *options)
        first = given["positions"][:, :1]
        chosen = choices.choices(shares[:, :1], first, process._kinds, process._streams, process._noise)
        chances = noise.uniform(process._streams, first, 1, given["rounds"])
        drawn = choices.draw(shares[:, 0], chances[:, 0])
        rest = [given[name] for name in ("tokens", "lengths", "draft", "drawn", "positions", "rounds")]
        more = (*options, process._noise, process._streams, *rest, True)
        whole = verdicts.verify(scores, None, None, *more, True, 2, 3)
        fused = verdicts.verify(given["logits"], given["masks"], None, *more, False, 2, 3)
        masks.apply_bitmask(given["logits"][:, 0], given["masks"][:, 0], None)
        states = steps.step(given["states"], given["rounds"], given["class_of"], *[given["arena"]] * 3)
        assert chosen.shape == (ROWS, 1)
        return [scores, drawn, shares[:, 0], *whole[:2], whole[3], *fused[:3], states]

    with FakeTensorMode():
        found = launched()
    assert [(each.shape, each.dtype) for each in found] == [(each.shape, each.dtype) for each in fakes]
    first = [*launches]
    assert len(first) > 20
    with FakeTensorMode():
        launched()
    assert launches[len(first) :] == first


@pytest.mark.parametrize("mode", ["reference", MODE])
def test_operators_keep_the_rules_of_torch(mode: Any) -> None:
    """``torch.library.opcheck``: schemas, fakes, what is changed in place; of the reference and of kernels."""
    process = Processing([Sampling(**o) for o in SAMPLINGS], [0] * ROWS, [[0]] * ROWS, 20, torch.device("cpu"))
    logits, masks = torch.randn(ROWS, 20), torch.full((ROWS, 1), -1, dtype=torch.int32)
    positions, rounds = torch.zeros(ROWS, 1, dtype=torch.int64), torch.zeros(ROWS, dtype=torch.int64)
    options, streams, noise = (*process._options(), process._kinds), process._streams, process._noise
    shares = logits.softmax(-1)
    none = torch.zeros(ROWS, 0, dtype=torch.int64)
    operators = torch.ops.grammarspec
    cases = [
        (operators.masked_scores, (logits, masks, None)),
        (operators.distribution, (logits[:, None], *options)),
        (operators.choices, (shares[:, None], positions, process._kinds, streams, noise)),
        (operators.uniform, (streams, positions, 3, rounds)),
        (operators.draw, (shares, torch.full((ROWS,), 0.5, dtype=torch.float64))),
    ]
    drafts = (none, rounds, None, none.bool(), positions, rounds, True, True, 2, 3)
    cases.append((operators.verify, (logits[:, None], masks[:, None], None, *options, noise, streams, *drafts)))
    gs.apply_bitmask(logits, masks)
    cases.append((operators.apply_bitmask, (logits, masks, None)))
    with dispatch.using(mode):
        for operator, args in cases:
            torch.library.opcheck(operator.default, args, test_utils=("test_schema", "test_faketensor"))


def test_the_mode_is_that_of_the_thread_and_task() -> None:
    found: list[str] = []

    async def elsewhere() -> None:
        found.append(dispatch._mode.get())

    with dispatch.using("reference"):
        thread = threading.Thread(target=lambda: found.append(dispatch._mode.get()))
        thread.start()
        thread.join()
        asyncio.run(elsewhere())
    assert found == ["auto", "reference"]


def test_there_is_no_other_mode() -> None:
    message = "mode must be one of auto, reference, interpreter, not 'fast'"
    with pytest.raises(ValueError, match=message), dispatch.using("fast"):
        pass


WITHOUT = """
import sys
sys.modules["triton"] = None
import importlib.util
found = importlib.util.find_spec
importlib.util.find_spec = lambda name, *rest: None if name == "triton" else found(name, *rest)
import torch
from grammarspec.decoding.distributions import masked_scores
from grammarspec.kernels.dispatch import using
print(masked_scores(torch.zeros(1, 40), torch.ones(1, 2, dtype=torch.int32), None).isfinite().sum().item())
try:
    with using("interpreter"):
        pass
except RuntimeError as error:
    print(error)
"""


@pytest.mark.slow
def test_without_triton() -> None:
    run = subprocess.run([sys.executable, "-c", WITHOUT], capture_output=True, text=True, check=True)
    assert run.stdout.splitlines() == [
        "2",
        "Triton's interpreter is off: install Triton, and set TRITON_INTERPRET=1 before it is imported",
    ]


def test_references_stay_in_their_modules() -> None:
    """Where a kernel is not asked for, a function is the plain one: the operator costs nothing there."""
    for function in (verification.draw, noise.uniform, distributions.verify):
        assert function.__wrapped__.__module__ == function.__module__
