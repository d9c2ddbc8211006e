"""How the tests of kernels run them: on a CUDA device where Triton compiles, else in its interpreter on the CPU.

``TRITON_INTERPRET=0 pytest tests/kernels`` is what a machine with a device runs.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("triton")

from grammarspec.kernels.dispatch import Mode, using  # noqa: E402

COMPILED = os.environ["TRITON_INTERPRET"] != "1"
DEVICE = torch.device("cuda" if COMPILED else "cpu")
MODE: Mode = "auto" if COMPILED else "interpreter"

FULL = 4096
"""The chunks of rows of a real vocabulary, as on a device."""


def kernel(function: Callable[..., Any], *args: Any) -> Any:
    """What a function returns where kernels run; its tensors are moved to the device and back."""
    given = [value.to(DEVICE) if isinstance(value, torch.Tensor) else value for value in args]
    with using(MODE):
        result = function(*given)
    if isinstance(result, tuple):
        return tuple(each.cpu() for each in result)
    return result.cpu() if isinstance(result, torch.Tensor) else result


def packed(allowed: torch.Tensor) -> torch.Tensor:
    """Mask rows, ``int32[..., words]``, of ``bool[..., width]``."""
    width = allowed.shape[-1]
    bits = torch.nn.functional.pad(allowed, (0, -width % 32)).unflatten(-1, (-1, 32)).long()
    words = (bits << torch.arange(32)).sum(-1)
    return torch.where(words >= 1 << 31, words - (1 << 32), words).to(torch.int32)


def close(mine: torch.Tensor, theirs: torch.Tensor, ulps: int = 16) -> bool:
    """Whether float32 numbers are equal to a few units in the last place; 0, infinities and NaN are equal exactly."""
    ordinary = theirs.isfinite() & (theirs != 0)
    apart = (mine - theirs).abs() > ulps * 2.0**-23 * theirs.abs()
    return torch.equal(mine.isnan(), theirs.isnan()) and not bool(
        (torch.where(ordinary, apart, (mine != theirs) & ~theirs.isnan())).any()
    )


def generator(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def columns(samplings: Sequence[dict[str, Any]], width: int) -> tuple[torch.Tensor | None, ...]:
    """The options of rows as :mod:`grammarspec.decoding.distributions` takes them: temperature, top-k, top-p, min-p."""
    absent = {"temperature": 1.0, "top_k": width, "top_p": float("inf"), "min_p": 0.0}
    return tuple(
        torch.tensor([options.get(name, value) for options in samplings])
        if name == "temperature" or any(name in options for options in samplings)
        else None
        for name, value in absent.items()
    )
