"""Compiles all kernels for CUDA devices that need not be there: ``python -m tests.kernels.compiling 80 90``.

Each kernel is compiled with the flags and dtypes that verification, distributions and masks ask for. Printed are the
kernels, for each device, with the widest loads and stores of logits that they have, as JSON.
"""

from __future__ import annotations

import json
import os
import sys
from collections import defaultdict
from types import SimpleNamespace
from typing import Any

os.environ["TRITON_INTERPRET"] = "0"  # read when Triton is imported

import torch
import triton.runtime.driver
from triton.backends.compiler import GPUTarget
from triton.runtime.jit import JITFunction

from grammarspec.decoding import Sampling
from grammarspec.decoding.processing import Processing
from grammarspec.kernels import choices, masks, noise, steps, verdicts

ROWS, N, WIDTH = 2, 3, 128_256
DTYPES = torch.bfloat16, torch.float16, torch.float32
SAMPLINGS: list[dict[str, Any]] = [
    {"temperature": 0},
    {"temperature": 1.0},
    {"temperature": 1.0, "seed": 1},
    {"temperature": 1.0, "top_k": 50, "top_p": 0.9, "min_p": 0.1},
]


def launches(sampling: dict[str, Any], dtype: torch.dtype) -> None:
    """Launch what a round launches, with tensors on the CPU."""
    process = Processing([Sampling(**sampling)] * ROWS, [0] * ROWS, [[0]] * ROWS, WIDTH, torch.device("cpu"))
    options = (*process._options(), process._kinds)
    logits = torch.zeros(ROWS, N, WIDTH, dtype=dtype)
    rows = torch.full((ROWS, N, -(-WIDTH // 32)), -1, dtype=torch.int32)
    whole = torch.zeros(ROWS, N, dtype=torch.int64)
    draft = torch.full((ROWS, N - 1, WIDTH), 1 / WIDTH) if process.draws else None
    drafts = (whole[:, 1:], whole[:, 0], draft, whole[:, 1:] > 0, whole, whole[:, 0], process.draws, False, 2, 3)
    verdicts.verify(logits, rows, None, *options, process._noise, process._streams, *drafts)
    shares = choices.distribution(logits.float(), *options)
    choices.choices(shares, whole, process._kinds, process._streams, process._noise)
    choices.draw(shares[:, 0], noise.uniform(process._streams, whole, 1, whole[:, 0])[:, 0])
    masks.masked_scores(logits[:, 0], rows[:, 0], whole[:, 0])
    masks.apply_bitmask(logits[:, 0], rows[:, 0], None)
    steps.step(whole, whole, torch.zeros(2, WIDTH, dtype=torch.int16), *[torch.zeros(40, dtype=torch.int32)] * 3)


def compiled(capability: int) -> dict[str, list[str]]:
    """The kernels that are compiled for a device, with the memory operations of the widest vectors in each."""
    target = GPUTarget("cuda", capability, 32)
    triton.runtime.driver.set_active(
        SimpleNamespace(
            get_current_target=lambda: target, get_current_device=lambda: capability, get_current_stream=lambda _: 0
        )
    )
    found: dict[str, set[str]] = defaultdict(set)
    run = JITFunction.run

    def compile_only(self: Any, *args: Any, grid: Any, warmup: bool, **options: Any) -> Any:
        kernel = run(self, *args, grid=grid, warmup=True, **options)
        assert kernel.asm["cubin"]
        found[self.__name__] |= {
            word for word in kernel.asm["ptx"].split() if word.startswith(("ld.global.v4", "st.global.v4"))
        }
        return kernel

    JITFunction.run = compile_only
    try:
        for sampling in SAMPLINGS:
            for dtype in DTYPES if sampling["temperature"] else DTYPES[:1]:
                launches(sampling, dtype)
    finally:
        JITFunction.run = run
    return {name: sorted(operations) for name, operations in sorted(found.items())}


if __name__ == "__main__":
    print(json.dumps({capability: compiled(int(capability)) for capability in sys.argv[1:]}))
