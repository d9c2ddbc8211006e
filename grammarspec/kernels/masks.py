"""Kernels that apply mask rows to logits: in place, or to a new tensor of scores."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from grammarspec.kernels.blocks import Source, chunks_of, load_scores, mask_bits, mask_row_of

__all__ = ["apply_bitmask", "masked_scores"]


@triton.jit
def forbid_kernel(
    logits, row_stride, column_stride, masks, mask_rows, mask_stride, mask_count, words, width,
    MASKED: tl.constexpr, INDEXED: tl.constexpr, CHUNK: tl.constexpr,
):  # fmt: skip
    """Write -inf where a mask row forbids a token. Logits are not read."""
    row = tl.program_id(0).to(tl.int64)
    index = tl.program_id(1) * CHUNK + tl.arange(0, CHUNK)
    mask_row = mask_row_of(row, mask_rows, INDEXED)
    if mask_row >= 0:
        bits = mask_bits(masks, mask_row, mask_stride, mask_count, words, index, width)
        forbidden = (index < width) & (bits == 0)
        places = row * row_stride + index.to(tl.int64) * column_stride
        tl.store(logits + places, tl.full((CHUNK,), -float("inf"), tl.float32), mask=forbidden)


@triton.jit
def scores_kernel(
    logits, row_stride, column_stride, masks, mask_rows, mask_stride, mask_count, words, width, out,
    MASKED: tl.constexpr, INDEXED: tl.constexpr, CHUNK: tl.constexpr,
):  # fmt: skip
    """Write scores: logits in float32, and -inf for forbidden tokens."""
    row = tl.program_id(0).to(tl.int64)
    index = tl.program_id(1) * CHUNK + tl.arange(0, CHUNK)
    mask_row = mask_row_of(row, mask_rows, INDEXED)
    scores = load_scores(
        logits, row_stride, column_stride, row, masks, mask_row, mask_stride, mask_count, words, index, width, MASKED
    )
    tl.store(out + row * width + index, scores, mask=index < width)


def apply_bitmask(logits: torch.Tensor, rows: torch.Tensor, indices: torch.Tensor | None) -> None:
    """See :func:`grammarspec.bitmask.apply_bitmask`; here logits and rows have two dimensions, and are checked before.

    An index past the last mask row forbids every token.
    """
    if logits.numel():
        cut = chunks_of(logits.shape[1])
        grid = (logits.shape[0], cut["chunks"])
        forbid_kernel[grid](**Source(logits, rows, indices).arguments, CHUNK=cut["CHUNK"])


def masked_scores(logits: torch.Tensor, rows: torch.Tensor, indices: torch.Tensor | None) -> torch.Tensor:
    """See :func:`grammarspec.decoding.distributions.masked_scores`."""
    out = torch.empty(logits.shape, dtype=torch.float32, device=logits.device)
    if logits.numel():
        cut = chunks_of(logits.shape[1])
        grid = (logits.shape[0], cut["chunks"])
        scores_kernel[grid](**Source(logits, rows, indices).arguments, out=out, CHUNK=cut["CHUNK"])
    return out
