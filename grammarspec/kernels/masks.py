"""Kernels that apply mask rows to logits: in place, or to a new tensor of scores."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from grammarspec.kernels.blocks import (
    Source,
    bits_of,
    bytes_of,
    chunk_index,
    chunk_words,
    chunks_of,
    load_scores,
)

__all__ = ["apply_bitmask", "masked_scores"]


@triton.jit
def forbid_kernel(
    logits, row_stride, column_stride, masks, mask_rows, mask_stride, mask_count, words, width,
    EVEN: tl.constexpr, MASKED: tl.constexpr, INDEXED: tl.constexpr, CHUNK: tl.constexpr,
):  # fmt: skip
    """Write -inf where a mask row forbids a token.

    With ``EVEN``, the logits of eight tokens are written at once; they are read before if some of them are allowed.
    """
    row = tl.program_id(0).to(tl.int64)
    chunk = tl.program_id(1)
    mask = chunk_words(masks, mask_rows, mask_stride, mask_count, words, row, chunk, MASKED, INDEXED, CHUNK)
    index = chunk_index(chunk, CHUNK)
    places = logits + row * row_stride + index.to(tl.int64) * column_stride
    if EVEN:
        allowed = bytes_of(mask)
        written = (index < width) & (allowed != 0xFF)
        kept = tl.load(places, mask=tl.max_constancy(written & (allowed != 0), [1, 8]), other=-float("inf"))
        kept = tl.where(bits_of(mask) != 0, kept, -float("inf"))
        tl.store(places, kept, mask=tl.max_constancy(written, [1, 8]))
    else:
        nothing = tl.full((CHUNK // 32, 32), -float("inf"), tl.float32)
        tl.store(places, nothing, mask=(index < width) & (bits_of(mask) == 0))


@triton.jit
def scores_kernel(
    logits, row_stride, column_stride, masks, mask_rows, mask_stride, mask_count, words, width, out,
    EVEN: tl.constexpr, MASKED: tl.constexpr, INDEXED: tl.constexpr, CHUNK: tl.constexpr,
):  # fmt: skip
    """Write scores: logits in float32, and -inf for forbidden tokens."""
    row = tl.program_id(0).to(tl.int64)
    chunk = tl.program_id(1)
    mask = chunk_words(
        masks, mask_rows, mask_stride, mask_count, words, row, chunk, MASKED, INDEXED, CHUNK
    )  # fmt: skip
    scores = load_scores(logits, row_stride, column_stride, row, mask, chunk, width, EVEN, CHUNK)
    index = chunk_index(chunk, CHUNK)
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
