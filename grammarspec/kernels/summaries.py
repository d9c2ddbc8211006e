"""Kernels that summarise rows of scores: the highest score, the sum of weights, and what top-k, top-p and min-p keep.

A token's **weight** is ``exp((score - highest) / temperature)``; its probability is its weight divided by the sum of
the weights that are kept. :func:`summarise` finds the highest score and the sum in one pass over the logits. If a row
has top-k or top-p, the last token that is kept is found (:mod:`~grammarspec.kernels.cuts`), and the weights that are
kept are summed in another pass.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import torch
import triton
import triton.language as tl

from grammarspec.kernels.blocks import (
    GREEDY,
    Source,
    all_weights,
    best_of,
    chunk_index,
    chunk_words,
    chunks_of,
    highest_of,
    load_scores,
    ordered,
    packed,
    some,
    unordered,
    weights_of,
)
from grammarspec.kernels.cuts import last_kept

__all__ = ["Summary", "kept_total", "kept_weights", "least_weight", "summarise"]

_GREEDY = tl.constexpr(GREEDY)
_NOTHING = tl.constexpr(-0x7F80_0001)  # the key of -inf


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
    temperature, kinds, best, sums, n, chunks,
    EVEN: tl.constexpr, MASKED: tl.constexpr, INDEXED: tl.constexpr, CHUNK: tl.constexpr,
):  # fmt: skip
    """Store the best token of a chunk and, unless its row is greedy, the sum of weights relative to its score."""
    row = tl.program_id(0).to(tl.int64)
    chunk = tl.program_id(1)
    place = row * chunks + chunk
    mask = chunk_words(masks, mask_rows, mask_stride, mask_count, words, row, chunk, MASKED, INDEXED, CHUNK)
    if some(mask):
        scores = load_scores(logits, row_stride, column_stride, row, mask, chunk, width, EVEN, CHUNK)
        most = best_of(scores, chunk_index(chunk, CHUNK))
        tl.store(best + place, most)
        if tl.load(kinds + row // n) != _GREEDY:
            highest = unordered((most >> 32).to(tl.int32))
            tl.store(sums + place, tl.sum(weights_of(scores, highest, tl.load(temperature + row // n))))
    else:
        tl.store(best + place, packed(tl.full((), _NOTHING, tl.int32), chunk * CHUNK))
        tl.store(sums + place, 0.0)


@triton.jit
def kept_weights(scores, index, highest, heat, row, least, cut_key, cut_index, CUT: tl.constexpr):
    """The weights of the tokens that top-k, top-p and min-p keep; 0 for all others.

    Args:
        least: the least weight that min-p keeps.
    """
    weights = weights_of(scores, highest, heat)
    kept = weights >= least
    if CUT:
        key, last = ordered(scores), tl.load(cut_key + row)
        kept = kept & ((key > last) | ((key == last) & (index <= tl.load(cut_index + row))))
    return tl.where(kept, weights, 0.0)


@triton.jit
def kept_total(best, sums, row, highest, heat, chunks, KEPT: tl.constexpr, CHUNKS: tl.constexpr):
    """The sum of the weights that are kept; NaN if it is not positive (all tokens are forbidden, or logits are NaN)."""
    if KEPT:
        chunk = tl.arange(0, CHUNKS)
        whole = tl.sum(tl.load(sums + row * chunks + chunk, mask=chunk < chunks, other=0.0), axis=0)
    else:
        whole = all_weights(best, sums, row, highest, heat, chunks, CHUNKS)
    return tl.where(whole > 0, whole, float("nan"))


@triton.jit
def least_weight(min_p, owner):
    """The least weight that min-p keeps."""
    return 0.0 if min_p is None else tl.load(min_p + owner)


@triton.jit
def kept_kernel(
    logits, row_stride, column_stride, masks, mask_rows, mask_stride, mask_count, words, width,
    temperature, min_p, kinds, best, sums, cut_key, cut_index, n, chunks,
    EVEN: tl.constexpr, MASKED: tl.constexpr, INDEXED: tl.constexpr, CUT: tl.constexpr, CHUNK: tl.constexpr,
    CHUNKS: tl.constexpr,
):  # fmt: skip
    """Store the sum of the kept weights of a chunk, relative to the highest score of the row."""
    row = tl.program_id(0).to(tl.int64)
    chunk = tl.program_id(1)
    owner = row // n
    mask = chunk_words(masks, mask_rows, mask_stride, mask_count, words, row, chunk, MASKED, INDEXED, CHUNK)
    if some(mask) & (tl.load(kinds + owner) != _GREEDY):
        scores = load_scores(logits, row_stride, column_stride, row, mask, chunk, width, EVEN, CHUNK)
        highest, _ = highest_of(best, row, chunks, CHUNKS)
        heat, lowest = tl.load(temperature + owner), least_weight(min_p, owner)
        index = chunk_index(chunk, CHUNK)
        weights = kept_weights(scores, index, highest, heat, row, lowest, cut_key, cut_index, CUT)
        tl.store(sums + row * chunks + chunk, tl.sum(weights))
    else:
        tl.store(sums + row * chunks + chunk, 0.0)


def summarise(
    source: Source,
    temperature: torch.Tensor,
    top_k: torch.Tensor | None,
    top_p: torch.Tensor | None,
    min_p: torch.Tensor | None,
    kinds: torch.Tensor,
    n: int,
) -> Summary:
    """Summarise rows of scores.

    Args:
        source: the scores.
        temperature, top_k, top_p, min_p, kinds: as for :func:`grammarspec.decoding.distributions.distribution`: one
            value for every ``n`` rows; ``None`` if no row has the option.
        n: how many consecutive rows have the same options.
    """
    rows, width = source.logits.shape
    device = source.logits.device
    cut = chunks_of(width)
    grid = (rows, cut["chunks"])
    best = torch.empty(grid, dtype=torch.int64, device=device)
    sums = torch.empty(grid, dtype=torch.float32, device=device)
    shared = {"temperature": temperature, "kinds": kinds, "best": best, "sums": sums, "n": n, "chunks": cut["chunks"]}
    summary_kernel[grid](**source.arguments, **shared, CHUNK=cut["CHUNK"], num_warps=8)
    found = Summary(best, sums, None, None, cut, kept=False)
    if top_k is not None or top_p is not None:
        key, index = last_kept(source, best, sums, cut, temperature, top_k, top_p, kinds, n)
        found = Summary(best, sums, key, index, cut, kept=True)
    if found.cut_key is not None or min_p is not None:
        found = replace(found, kept=True)
        kept_kernel[grid](
            **source.arguments, **shared, min_p=min_p, cut_key=found.cut_key, cut_index=found.cut_index,
            CUT=found.cut_key is not None, CHUNK=cut["CHUNK"], CHUNKS=cut["CHUNKS"], num_warps=8,
        )  # fmt: skip
    return found
