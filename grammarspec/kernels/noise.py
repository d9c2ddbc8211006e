"""The kernel of :func:`grammarspec.decoding.noise.uniform`."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from grammarspec.kernels.blocks import uniform_at

__all__ = ["uniform"]

_BLOCK = 128


@triton.jit
def uniform_kernel(streams, positions, rounds, purpose, out, count, n, BLOCK: tl.constexpr):
    """Compute a block of numbers: ``out[i]`` belongs to the ``i``-th position of all rows in a row-major order."""
    index = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = index < count
    row = tl.where(inside, index // n, 0)
    position = tl.load(positions + index, mask=inside, other=0)
    use = (purpose << 28) | tl.load(rounds + row)
    tl.store(out + index, uniform_at(streams, row, position, use), mask=inside)


def uniform(streams: torch.Tensor, positions: torch.Tensor, purpose: int, rounds: torch.Tensor) -> torch.Tensor:
    """See :func:`grammarspec.decoding.noise.uniform`."""
    out = torch.empty(positions.shape, dtype=torch.float64, device=positions.device)
    if (count := positions.numel()) > 0:
        uniform_kernel[(triton.cdiv(count, _BLOCK),)](
            streams.contiguous(), positions.contiguous(), rounds.contiguous(), int(purpose), out,
            count, positions.shape[1], BLOCK=_BLOCK,
        )  # fmt: skip
    return out
