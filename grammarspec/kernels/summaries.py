"""Kernels that sum up rows of scores: the highest, the sum of exponentials, and which tokens top-k, top-p, min-p keep.

A token's **weight** is ``exp((score - highest) / temperature)``; its probability is the weight over the sum of those
that are kept. :func:`summarise` finds highest and sum in one pass over the logits. Where a row is cut, the cut is found
by radix select (:func:`select_kernel`), and the weights behind it are summed in another pass.
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
"""Tokens that :func:`select_kernel` looks at together."""

_LOWEST = tl.constexpr(-0x8000_0000)
_WORD = tl.constexpr(0x8000_0000)


@dataclass(frozen=True, slots=True)
class Summary:
    """What is known of rows of scores.

    Attributes:
        best: ``int64[rows, chunks]``, the highest score of each chunk with its token (:func:`~.blocks.best_of`).
        sums: ``float32[rows, chunks]``, sums of weights: of all tokens, measured from the highest score of the chunk,
            if no row is cut; else of the tokens that are kept, measured from the highest score of the row.
        cut_key, cut_index: ``int32[rows]``: the last token that top-k and top-p keep, by score and then by number;
            ``None`` where no row has these options.
        cut: the number of chunks and the constants of kernels.
        kept: whether ``sums`` are of tokens that are kept.
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
    """The best token of a chunk, and the sum of its weights measured from that token's score."""
    row = tl.program_id(0).to(tl.int64)
    chunk = tl.program_id(1)
    index = chunk * CHUNK + tl.arange(0, CHUNK)
    mask_row = mask_row_of(row, mask_rows, INDEXED)
    scores = load_scores(
        logits, row_stride, column_stride, row, masks, mask_row, mask_stride, mask_count, words, index, width, MASKED
    )
    # Places past the end of the row are below all others, those of forbidden tokens, too.
    most = best_of(tl.where(index < width, ordered(scores), _LOWEST), index)
    heat = tl.load(temperature + row // n)
    weights = tl.exp((scores - unordered((most >> 32).to(tl.int32))) / heat)
    tl.store(best + row * chunks + chunk, most)
    tl.store(sums + row * chunks + chunk, tl.sum(tl.where(scores == -float("inf"), 0.0, weights), axis=0))


@triton.jit
def kept_weights(scores, index, highest, heat, row, least, cut_key, cut_index, CUT: tl.constexpr):
    """The weights of the tokens that top-k, top-p and min-p keep, 0 of others.

    Args:
        least: the weight that min-p asks for.
    """
    weights = tl.where(scores == -float("inf"), 0.0, tl.exp((scores - highest) / heat))
    kept = weights >= least
    if CUT:
        key, last = ordered(scores), tl.load(cut_key + row)
        kept = kept & ((key > last) | ((key == last) & (index <= tl.load(cut_index + row))))
    return tl.where(kept, weights, 0.0)


@triton.jit
def kept_total(best, sums, row, highest, heat, chunks, KEPT: tl.constexpr, CHUNKS: tl.constexpr):
    """The sum of the weights that are kept. NaN where no token has a weight: of all-forbidden and of broken rows."""
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
    """The sum of the weights of a chunk that are kept, measured from the highest score of the row."""
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
    """The last token of a row that top-k and then top-p keep, in the order of scores and, of equal ones, of tokens.

    A radix select: the digits of four bits of the integer that is ordered as the score is (:func:`~.blocks.ordered`)
    are found from the highest to the lowest. Each pass counts, of the tokens that have the digits found so far, how
    many have each digit next; the sought one has the digit in which the count from above reaches k. Then once more with
    weights in place of counts for top-p: a token is kept if those before it have less than p of the total.
    """
    row = tl.program_id(0).to(tl.int64)
    k, p = tl.load(top_k + row // n), tl.load(top_p + row // n)
    mask_row = mask_row_of(row, mask_rows, INDEXED)
    highest, _ = highest_of(best, row, chunks, CHUNKS)
    heat = tl.load(temperature + row // n)
    digits = tl.arange(0, 16)
    block = tl.arange(0, BLOCK)
    # Of the token to be found: its key (from 0 to 2**32 - 1), and how many of the tokens with that key are kept.
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
        one = tl.full((), 0.0, tl.float64)  # the weight of one token that has the key
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
    # The token of that key whose rank among these is the last to be kept.
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
    """Sum up rows of scores.

    Args:
        source: the scores.
        temperature, top_k, top_p, min_p: ``[rows / n]``, float32 but for ``top_k``, which is int64; of each ``n`` rows.
            The width and infinity are no bounds.
        n: rows that have the same options.
        sorts: some row has top-k or top-p.
        filters: some row has min-p.
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
