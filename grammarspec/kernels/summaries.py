"""Kernels that summarise rows of scores: the highest score, the sum of weights, and what top-k, top-p and min-p keep.

A token's **weight** is ``exp((score - highest) / temperature)``; its probability is its weight divided by the sum of
the weights that are kept. :func:`summarise` finds the highest score and the sum in one pass over the logits. If a row
has top-k or top-p, the last token that is kept is found by radix select (:func:`select_kernel`), and the weights that
are kept are summed in another pass.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
import triton
import triton.language as tl

from grammarspec.kernels.blocks import (
    Source,
    best_of,
    chunks_of,
    highest_of,
    load_scores,
    mask_row_of,
    ordered,
    unordered,
)

__all__ = ["Summary", "kept_total", "kept_weights", "summarise"]

SELECT = 1024
"""The number of tokens that :func:`select_kernel` reads at once."""

_LOWEST = tl.constexpr(-0x8000_0000)
_WORD = tl.constexpr(0x8000_0000)


@dataclass(frozen=True, slots=True)
class Summary:
    """The summary of rows of scores.

    Attributes:
        best: ``int64[rows, chunks]``, the highest score of each chunk with its token (:func:`~.blocks.best_of`).
        sums: ``float32[rows, chunks]``, sums of weights. If ``kept`` is false, of all tokens, relative to the highest
            score of the chunk; otherwise of the tokens that are kept, relative to the highest score of the row.
        cut_key, cut_index: ``int32[rows]``, the score (as an ordered integer) and the number of the last token that
            top-k and top-p keep; ``None`` if no row has these options.
        cut: the number of chunks and the constants of kernels (:func:`~.blocks.chunks_of`).
        kept: whether some row has top-k, top-p or min-p, so that ``sums`` has only the tokens that are kept.
    """

    best: torch.Tensor
    sums: torch.Tensor
    cut_key: torch.Tensor | None
    cut_index: torch.Tensor | None
    cut: dict[str, int]
    kept: bool

    @property
    def arguments(self) -> dict[str, Any]:
        """The arguments of a kernel that needs probabilities (:func:`kept_weights`, :func:`kept_total`)."""
        return {
            "best": self.best,
            "sums": self.sums,
            "cut_key": self.cut_key,
            "cut_index": self.cut_index,
            "CUT": self.cut_key is not None,
            "KEPT": self.kept,
        }


@triton.jit
def summary_kernel(
    logits, row_stride, column_stride, masks, mask_rows, mask_stride, mask_count, words, width,
    temperature, best, sums, n, chunks,
    MASKED: tl.constexpr, INDEXED: tl.constexpr, CHUNK: tl.constexpr,
):  # fmt: skip
    """Store the best token of a chunk, and the sum of the weights of the chunk relative to that token's score."""
    row = tl.program_id(0).to(tl.int64)
    chunk = tl.program_id(1)
    index = chunk * CHUNK + tl.arange(0, CHUNK)
    mask_row = mask_row_of(row, mask_rows, INDEXED)
    scores = load_scores(
        logits, row_stride, column_stride, row, masks, mask_row, mask_stride, mask_count, words, index, width, MASKED
    )
    # Places past the end of the row are below all tokens, even below forbidden ones.
    most = best_of(tl.where(index < width, ordered(scores), _LOWEST), index)
    heat = tl.load(temperature + row // n)
    weights = tl.exp((scores - unordered((most >> 32).to(tl.int32))) / heat)
    tl.store(best + row * chunks + chunk, most)
    tl.store(sums + row * chunks + chunk, tl.sum(tl.where(scores == -float("inf"), 0.0, weights), axis=0))


@triton.jit
def kept_weights(scores, index, highest, heat, row, least, cut_key, cut_index, CUT: tl.constexpr):
    """The weights of the tokens that top-k, top-p and min-p keep; 0 for all others.

    Args:
        least: the least weight that min-p keeps.
    """
    weights = tl.where(scores == -float("inf"), 0.0, tl.exp((scores - highest) / heat))
    kept = weights >= least
    if CUT:
        key, last = ordered(scores), tl.load(cut_key + row)
        kept = kept & ((key > last) | ((key == last) & (index <= tl.load(cut_index + row))))
    return tl.where(kept, weights, 0.0)


@triton.jit
def kept_total(best, sums, row, highest, heat, chunks, KEPT: tl.constexpr, CHUNKS: tl.constexpr):
    """The sum of the weights that are kept; NaN if it is not positive (all tokens are forbidden, or logits are NaN)."""
    chunk = tl.arange(0, CHUNKS)
    inside = chunk < chunks
    each = tl.load(sums + row * chunks + chunk, mask=inside, other=0.0)
    if not KEPT:
        most = (tl.load(best + row * chunks + chunk, mask=inside, other=0) >> 32).to(tl.int32)
        scale = tl.exp((tl.where(inside, unordered(most), -float("inf")) - highest) / heat)
        each = tl.where(each == 0, 0.0, each * scale)
    total = tl.sum(each, axis=0)
    return tl.where(total > 0, total, float("nan"))


@triton.jit
def kept_kernel(
    logits, row_stride, column_stride, masks, mask_rows, mask_stride, mask_count, words, width,
    temperature, min_p, best, sums, cut_key, cut_index, n, chunks,
    MASKED: tl.constexpr, INDEXED: tl.constexpr, CUT: tl.constexpr, CHUNK: tl.constexpr, CHUNKS: tl.constexpr,
):  # fmt: skip
    """Store the sum of the kept weights of a chunk, relative to the highest score of the row."""
    row = tl.program_id(0).to(tl.int64)
    chunk = tl.program_id(1)
    index = chunk * CHUNK + tl.arange(0, CHUNK)
    mask_row = mask_row_of(row, mask_rows, INDEXED)
    scores = load_scores(
        logits, row_stride, column_stride, row, masks, mask_row, mask_stride, mask_count, words, index, width, MASKED
    )
    highest, _ = highest_of(best, row, chunks, CHUNKS)
    heat, least = tl.load(temperature + row // n), tl.load(min_p + row // n)
    weights = kept_weights(scores, index, highest, heat, row, least, cut_key, cut_index, CUT)
    tl.store(sums + row * chunks + chunk, tl.sum(weights, axis=0))


@triton.jit
def select_kernel(
    logits, row_stride, column_stride, masks, mask_rows, mask_stride, mask_count, words, width,
    temperature, top_k, top_p, best, cut_key, cut_index, n, chunks,
    MASKED: tl.constexpr, INDEXED: tl.constexpr, BLOCK: tl.constexpr, CHUNKS: tl.constexpr,
):  # fmt: skip
    """Store the last token of a row that top-k and then top-p keep, in descending order of scores, then by number.

    This is a radix select. Scores are compared as integers (:func:`~.blocks.ordered`), whose digits of four bits are
    found from the highest to the lowest. Each pass counts, among the tokens that agree with the digits found so far,
    how many have each value of the next digit; the token that is sought has the value at which the count, from the
    highest value down, reaches k. For top-p the same is done with sums of weights instead of counts: a token is kept if
    the tokens before it have less than p of the total weight.
    """
    row = tl.program_id(0).to(tl.int64)
    k, p = tl.load(top_k + row // n), tl.load(top_p + row // n)
    mask_row = mask_row_of(row, mask_rows, INDEXED)
    highest, _ = highest_of(best, row, chunks, CHUNKS)
    heat = tl.load(temperature + row // n)
    digits = tl.arange(0, 16)
    block = tl.arange(0, BLOCK)
    # The key of the token that is sought (from 0 to 2**32 - 1), and how many of the tokens with this key are kept.
    bound = tl.full((), 0, tl.int64)
    ties = tl.full((), 0, tl.int64) + width
    if k < width:
        left = k.to(tl.int64)
        for turn in range(8):
            shift = 28 - 4 * turn
            counts = tl.zeros((16,), tl.int64)
            for begin in range(0, width, BLOCK):
                index = begin + block
                scores = load_scores(
                    logits, row_stride, column_stride, row, masks, mask_row, mask_stride, mask_count, words, index,
                    width, MASKED,
                )  # fmt: skip
                key = tl.where(index < width, ordered(scores).to(tl.int64) + _WORD, -1)
                same = (key >> (shift + 4)) == bound
                digit = ((key >> shift) & 15).to(tl.int32)
                hit = same[:, None] & (digit[:, None] == digits[None, :])
                counts += tl.sum(hit.to(tl.int32), axis=0)
            above = tl.sum(counts, axis=0) - tl.cumsum(counts, axis=0)
            digit = tl.max(tl.where(above + counts >= left, digits, 0), axis=0)
            left -= tl.sum(tl.where(digits == digit, above, 0), axis=0)
            bound = bound * 16 + digit
        ties = left
    if p < 1e30:
        total = tl.full((), 0.0, tl.float64)
        rank = tl.full((), 0, tl.int64)
        for begin in range(0, width, BLOCK):
            index = begin + block
            scores = load_scores(
                logits, row_stride, column_stride, row, masks, mask_row, mask_stride, mask_count, words, index, width,
                MASKED,
            )  # fmt: skip
            key = tl.where(index < width, ordered(scores).to(tl.int64) + _WORD, -1)
            tie = (key == bound).to(tl.int64)
            kept = (key > bound) | ((key == bound) & (rank + tl.cumsum(tie, axis=0) <= ties))
            weights = tl.where(scores == -float("inf"), 0.0, tl.exp((scores - highest) / heat))
            total += tl.sum(tl.where(kept, weights, 0.0), axis=0).to(tl.float64)
            rank += tl.sum(tie, axis=0)
        wanted = p.to(tl.float64) * total
        mass = tl.full((), 0.0, tl.float64)
        lowest, most = bound, ties
        bound = tl.full((), 0, tl.int64)
        one = tl.full((), 0.0, tl.float64)  # the weight of each token with the key
        for turn in range(8):
            shift = 28 - 4 * turn
            sums = tl.zeros((16,), tl.float64)
            for begin in range(0, width, BLOCK):
                index = begin + block
                scores = load_scores(
                    logits, row_stride, column_stride, row, masks, mask_row, mask_stride, mask_count, words, index,
                    width, MASKED,
                )  # fmt: skip
                key = tl.where(index < width, ordered(scores).to(tl.int64) + _WORD, -1)
                same = ((key >> (shift + 4)) == bound) & (key >= lowest)
                digit = ((key >> shift) & 15).to(tl.int32)
                weights = tl.where(scores == -float("inf"), 0.0, tl.exp((scores - highest) / heat))
                hit = same[:, None] & (digit[:, None] == digits[None, :])
                sums += tl.sum(tl.where(hit, weights[:, None], 0.0), axis=0).to(tl.float64)
            above = tl.sum(sums, axis=0) - tl.cumsum(sums, axis=0)
            open_ = (sums > 0) & (mass + above < wanted)
            digit = tl.min(tl.where(open_, digits, 16), axis=0)
            digit = tl.where(digit < 16, digit, tl.max(tl.where(sums > 0, digits, 0), axis=0))
            mass += tl.sum(tl.where(digits == digit, above, 0.0), axis=0)
            bound = bound * 16 + digit
        score = unordered((bound - _WORD).to(tl.int32))
        one = tl.exp((score - highest) / heat).to(tl.float64)
        few = tl.where(one > 0, tl.ceil((wanted - mass) / one), 1.0)
        limit = tl.where(bound == lowest, most, width)
        ties = tl.minimum(tl.maximum(few, 1.0), limit.to(tl.float64)).to(tl.int64)
    # Among the tokens with the key, the last one that is kept.
    place = tl.full((), 0, tl.int64) + width
    rank = tl.full((), 0, tl.int64)
    if (k < width) | (p < 1e30):
        for begin in range(0, width, BLOCK):
            index = begin + block
            scores = load_scores(
                logits, row_stride, column_stride, row, masks, mask_row, mask_stride, mask_count, words, index, width,
                MASKED,
            )  # fmt: skip
            key = tl.where(index < width, ordered(scores).to(tl.int64) + _WORD, -1)
            tie = (key == bound).to(tl.int64)
            here = (tie > 0) & (rank + tl.cumsum(tie, axis=0) == ties)
            place = tl.minimum(place, tl.min(tl.where(here, index, width), axis=0).to(tl.int64))
            rank += tl.sum(tie, axis=0)
    tl.store(cut_key + row, (bound - _WORD).to(tl.int32))
    tl.store(cut_index + row, place.to(tl.int32))


def summarise(
    source: Source,
    temperature: torch.Tensor,
    top_k: torch.Tensor,
    top_p: torch.Tensor,
    min_p: torch.Tensor,
    n: int,
    sorts: bool,
    filters: bool,
) -> Summary:
    """Summarise rows of scores.

    Args:
        source: the scores.
        temperature, top_k, top_p, min_p: ``[rows / n]``, int64 for ``top_k``, float32 for the others: one value for
            every ``n`` rows. A ``top_k`` of the width, and a ``top_p`` of infinity, keep every token.
        n: how many consecutive rows have the same options.
        sorts: whether some row has top-k or top-p.
        filters: whether some row has min-p.
    """
    rows, width = source.logits.shape
    device = source.logits.device
    cut = chunks_of(width)
    grid = (rows, cut["chunks"])
    best = torch.empty(grid, dtype=torch.int64, device=device)
    sums = torch.empty(grid, dtype=torch.float32, device=device)
    shape = {"n": n, "chunks": cut["chunks"]}
    summary_kernel[grid](
        **source.arguments, temperature=temperature, best=best, sums=sums, **shape, CHUNK=cut["CHUNK"], num_warps=8
    )
    cut_key = cut_index = None
    if sorts:
        cut_key = torch.empty(rows, dtype=torch.int32, device=device)
        cut_index = torch.empty(rows, dtype=torch.int32, device=device)
        select_kernel[(rows,)](
            **source.arguments, temperature=temperature, top_k=top_k, top_p=top_p, best=best, cut_key=cut_key,
            cut_index=cut_index, **shape, BLOCK=min(SELECT, cut["CHUNK"]), CHUNKS=cut["CHUNKS"], num_warps=8,
        )  # fmt: skip
    if sorts or filters:
        kept_kernel[grid](
            **source.arguments, temperature=temperature, min_p=min_p, best=best, sums=sums, cut_key=cut_key,
            cut_index=cut_index, **shape, CUT=sorts, CHUNK=cut["CHUNK"], CHUNKS=cut["CHUNKS"], num_warps=8,
        )  # fmt: skip
    return Summary(best, sums, cut_key, cut_index, cut, kept=sorts or filters)
