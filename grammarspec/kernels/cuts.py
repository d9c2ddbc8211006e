"""Kernels that find where top-k and top-p cut a row of scores: the last token that is kept, by radix select.

Tokens are in descending order of scores, then by number. Scores are compared as integers of 32 bits
(:func:`~.blocks.ordered`), whose digits of four bits are found from the highest to the lowest, one launch for each
digit: each chunk counts, among its tokens that agree with the digits found so far, how many have each value of the next
digit; the token that is sought has the value at which the count, from the highest value down, reaches k. For top-p,
weights are summed instead: a token is kept if the tokens before it have less than p of the total weight.

Each launch begins with what the counts of the launch before say; so nothing but memory joins the chunks of a row. How
many digits there are depends on the dtype only: of bfloat16, four digits say all.
"""

from __future__ import annotations

from typing import Any, Final

import torch
import triton
import triton.language as tl

from grammarspec.kernels.blocks import (
    GREEDY,
    Source,
    all_weights,
    chunk_words,
    highest_of,
    load_scores,
    ordered,
    some,
    unordered,
    weights_of,
)

__all__ = ["last_kept"]

_GREEDY = tl.constexpr(GREEDY)
_SIGN = tl.constexpr(0x8000_0000)
_KEEPS_ALL = tl.constexpr(1e30)  # top-p from here on
_DIGITS: Final = {torch.bfloat16: 4, torch.float16: 5}
"""The number of digits by which scores of a dtype differ; 8 for others. The rest of a key follows from its sign."""


@triton.jit
def unsigned(scores):
    """Keys as ``uint32``, in the order of the scores; those of numbers are above 0xFFFF."""
    return (ordered(scores) ^ -0x8000_0000).to(tl.uint32, bitcast=True)


@triton.jit
def score_of(key):
    """The score of a key, ``int64``."""
    return unordered((key - _SIGN).to(tl.int32))


@triton.jit
def agreeing(keys, bound, turn):
    """Which keys have the digits that were found before a turn; and the next digit of each."""
    high = ((tl.full((), -1, tl.int64) << (32 - 4 * turn)) & 0xFFFF_FFFF).to(tl.uint32)
    digit = (keys >> (28 - 4 * turn).to(tl.uint32)) & 15
    return (keys & high) == bound.to(tl.uint32), digit


@triton.jit
def by_count(bounds, lefts, counts, row, rows, k, turn, chunks, CHUNKS: tl.constexpr):
    """The digits that were found before a turn, and which of the tokens that agree with them is sought, from 1."""
    bound = tl.full((), 0, tl.int64)
    left = k.to(tl.int64)
    if turn > 0:
        at = (turn - 1) * rows + row
        bound, left = tl.load(bounds + at), tl.load(lefts + at)
        digits, chunk = tl.arange(0, 16), tl.arange(0, CHUNKS)
        places = counts + (at * chunks + chunk[:, None]) * 16 + digits[None, :]
        each = tl.sum(tl.load(places, mask=(chunk < chunks)[:, None], other=0), axis=0)
        above = tl.sum(each, axis=0) - tl.cumsum(each, axis=0)
        digit = tl.max(tl.where(above + each >= left, digits, 0), axis=0)
        left -= tl.sum(tl.where(digits == digit, above, 0), axis=0)
        bound |= digit.to(tl.int64) << (32 - 4 * turn)
    return bound, left


@triton.jit(do_not_specialize=["turn"])
def count_kernel(
    logits, row_stride, column_stride, masks, mask_rows, mask_stride, mask_count, words, width,
    kinds, n, chunks, rows, turn, top_k, bounds, lefts, counts,
    EVEN: tl.constexpr, MASKED: tl.constexpr, INDEXED: tl.constexpr, CHUNK: tl.constexpr, CHUNKS: tl.constexpr,
):  # fmt: skip
    """Count the tokens of a chunk by their next digit, for top-k."""
    row = tl.program_id(0).to(tl.int64)
    chunk = tl.program_id(1)
    k = tl.load(top_k + row // n)
    if (k < width) & (tl.load(kinds + row // n) != _GREEDY):
        bound, left = by_count(bounds, lefts, counts, row, rows, k, turn, chunks, CHUNKS)
        at = turn * rows + row
        if chunk == 0:
            tl.store(bounds + at, bound)
            tl.store(lefts + at, left)
        mask = chunk_words(masks, mask_rows, mask_stride, mask_count, words, row, chunk, MASKED, INDEXED, CHUNK)
        digits = tl.arange(0, 16)
        found = tl.zeros((16,), tl.int32)
        if some(mask):
            scores = load_scores(logits, row_stride, column_stride, row, mask, chunk, width, EVEN, CHUNK)
            same, digit = agreeing(unsigned(scores), bound, turn)
            same = same & (scores != -float("inf"))
            # The counts of eight tokens at a time fit into 16 fields of four bits.
            one = tl.where(same, tl.full((CHUNK // 32, 32), 1, tl.int64) << (4 * digit).to(tl.int64), 0)
            fields = tl.sum(tl.reshape(one, (CHUNK // 8, 8)), axis=1)
            found = tl.sum(((fields[:, None] >> (4 * digits)[None, :]) & 15).to(tl.int32), axis=0)
        tl.store(counts + (at * chunks + chunk) * 16 + digits, found)


@triton.jit
def by_weight(bounds, masses, weights, row, rows, wanted, turn, chunks, CHUNKS: tl.constexpr):
    """The digits that were found before a turn, and the weight of the tokens above those that agree with them."""
    bound = tl.full((), 0, tl.int64)
    mass = tl.full((), 0.0, tl.float64)
    if turn > 0:
        at = (turn - 1) * rows + row
        bound, mass = tl.load(bounds + at), tl.load(masses + at)
        digits, chunk = tl.arange(0, 16), tl.arange(0, CHUNKS)
        places = weights + (at * chunks + chunk[:, None]) * 16 + digits[None, :]
        each = tl.sum(tl.load(places, mask=(chunk < chunks)[:, None], other=0.0), axis=0)
        above = tl.sum(each, axis=0) - tl.cumsum(each, axis=0)
        open_ = (each > 0) & (mass + above < wanted)
        digit = tl.min(tl.where(open_, digits, 16), axis=0)
        digit = tl.where(digit < 16, digit, tl.max(tl.where(each > 0, digits, 0), axis=0))
        mass += tl.sum(tl.where(digits == digit, above, 0.0), axis=0)
        bound |= digit.to(tl.int64) << (32 - 4 * turn)
    return bound, mass


@triton.jit(do_not_specialize=["turn"])
def weigh_kernel(
    logits, row_stride, column_stride, masks, mask_rows, mask_stride, mask_count, words, width,
    kinds, n, chunks, rows, turn, temperature, top_p, best, wanted, bounds, masses, weights, lowest,
    EVEN: tl.constexpr, MASKED: tl.constexpr, INDEXED: tl.constexpr, CHUNK: tl.constexpr, CHUNKS: tl.constexpr,
):  # fmt: skip
    """Sum the weights of a chunk by the next digit of the tokens, for top-p; of the tokens from ``lowest`` on."""
    row = tl.program_id(0).to(tl.int64)
    chunk = tl.program_id(1)
    if (tl.load(top_p + row // n) < _KEEPS_ALL) & (tl.load(kinds + row // n) != _GREEDY):
        bound, mass = by_weight(bounds, masses, weights, row, rows, tl.load(wanted + row), turn, chunks, CHUNKS)
        at = turn * rows + row
        if chunk == 0:
            tl.store(bounds + at, bound)
            tl.store(masses + at, mass)
        mask = chunk_words(masks, mask_rows, mask_stride, mask_count, words, row, chunk, MASKED, INDEXED, CHUNK)
        found = weights + (at * chunks + chunk) * 16
        scores = load_scores(logits, row_stride, column_stride, row, mask, chunk, width, EVEN, CHUNK)
        keys = unsigned(scores)
        same, digit = agreeing(keys, bound, turn)
        if lowest is not None:
            same = same & (keys >= tl.load(lowest + row).to(tl.uint32))
        if some(mask) & (tl.max(same.to(tl.int32)) > 0):
            highest, _ = highest_of(best, row, chunks, CHUNKS)
            each = tl.where(same, weights_of(scores, highest, tl.load(temperature + row // n)), 0.0)
            for value in tl.static_range(16):
                tl.store(found + value, tl.sum(tl.where(digit == value, each, 0.0)).to(tl.float64))
        else:
            tl.store(found + tl.arange(0, 16), tl.zeros((16,), tl.float64))


@triton.jit
def whole_key(bound, turns):
    """A key whose first digits are given. The other bits of such keys are 0 if the score is positive, else 1."""
    rest = (tl.full((), 1, tl.int64) << (32 - 4 * turns)) - 1
    return tl.where(bound < _SIGN, bound | rest, bound)


@triton.jit
def last_by_count_kernel(
    logits, row_stride, column_stride, masks, mask_rows, mask_stride, mask_count, words, width,
    kinds, n, chunks, rows, turns, temperature, best, top_k, bounds, lefts, counts, keys, ties, tied, above,
    EVEN: tl.constexpr, MASKED: tl.constexpr, INDEXED: tl.constexpr, CHUNK: tl.constexpr, CHUNKS: tl.constexpr,
):  # fmt: skip
    """Store the key of the last token that top-k keeps, how many tokens of this key are kept, and how many a chunk has.

    With ``above``, the sum of the weights above the key is stored, too, for each chunk.
    """
    row = tl.program_id(0).to(tl.int64)
    chunk = tl.program_id(1)
    owner = row // n
    key = tl.full((), 0, tl.int64)
    count = tl.full((), 0, tl.int64) + width
    k = tl.load(top_k + owner)
    if (k < width) & (tl.load(kinds + owner) != _GREEDY):
        bound, count = by_count(bounds, lefts, counts, row, rows, k, turns, chunks, CHUNKS)
        key = whole_key(bound, turns)
    if chunk == 0:
        tl.store(keys + row, key)
        tl.store(ties + row, count)
    if key > 0:
        mask = chunk_words(masks, mask_rows, mask_stride, mask_count, words, row, chunk, MASKED, INDEXED, CHUNK)
        scores = load_scores(logits, row_stride, column_stride, row, mask, chunk, width, EVEN, CHUNK)
        tl.store(tied + row * chunks + chunk, count_tied(scores, key))
        if above is not None:
            highest, _ = highest_of(best, row, chunks, CHUNKS)
            over = unsigned(scores) > key.to(tl.uint32)
            weights = tl.where(over, weights_of(scores, highest, tl.load(temperature + owner)), 0.0)
            tl.store(above + row * chunks + chunk, tl.sum(weights))


@triton.jit
def last_by_weight_kernel(
    logits, row_stride, column_stride, masks, mask_rows, mask_stride, mask_count, words, width,
    kinds, n, chunks, rows, turns, temperature, best, top_p, wanted, bounds, masses, weights, lowest, most,
    keys, ties, tied,
    EVEN: tl.constexpr, MASKED: tl.constexpr, INDEXED: tl.constexpr, CHUNK: tl.constexpr, CHUNKS: tl.constexpr,
):  # fmt: skip
    """As :func:`last_by_count_kernel`, for top-p; ``lowest`` and ``most`` are the key and the number for top-k."""
    row = tl.program_id(0).to(tl.int64)
    chunk = tl.program_id(1)
    owner = row // n
    key = tl.full((), 0, tl.int64)
    count = tl.full((), 0, tl.int64) + width
    if lowest is not None:
        key, count = tl.load(lowest + row), tl.load(most + row)
    if (tl.load(top_p + owner) < _KEEPS_ALL) & (tl.load(kinds + owner) != _GREEDY):
        aim = tl.load(wanted + row)
        bound, mass = by_weight(bounds, masses, weights, row, rows, aim, turns, chunks, CHUNKS)
        bound = whole_key(bound, turns)
        highest, _ = highest_of(best, row, chunks, CHUNKS)
        one = weights_of(score_of(bound), highest, tl.load(temperature + owner)).to(tl.float64)
        few = tl.maximum(tl.where(one > 0, tl.ceil((aim - mass) / one), 1.0), 1.0)
        limit = tl.where(bound == key, count, width)
        key, count = bound, tl.minimum(few, limit.to(tl.float64)).to(tl.int64)
    if chunk == 0:
        tl.store(keys + row, key)
        tl.store(ties + row, count)
    if key > 0:
        mask = chunk_words(masks, mask_rows, mask_stride, mask_count, words, row, chunk, MASKED, INDEXED, CHUNK)
        scores = load_scores(logits, row_stride, column_stride, row, mask, chunk, width, EVEN, CHUNK)
        tl.store(tied + row * chunks + chunk, count_tied(scores, key))


@triton.jit
def count_tied(scores, key):
    """How many tokens have a key."""
    return tl.sum(((unsigned(scores) == key.to(tl.uint32)) & (scores != -float("inf"))).to(tl.int32))


@triton.jit
def wanted_kernel(
    best, sums, temperature, top_p, lowest, most, tied, above, wanted, n, chunks, CHUNKS: tl.constexpr
):  # fmt: skip
    """Store which weight the tokens that top-p keeps have to reach: p times the weight of those that top-k keeps."""
    row = tl.program_id(0).to(tl.int64)
    owner = row // n
    highest, _ = highest_of(best, row, chunks, CHUNKS)
    heat = tl.load(temperature + owner)
    whole = all_weights(best, sums, row, highest, heat, chunks, CHUNKS).to(tl.float64)
    if lowest is not None:
        key = tl.load(lowest + row)
        if key > 0:
            chunk = tl.arange(0, CHUNKS)
            places, inside = row * chunks + chunk, chunk < chunks
            over = tl.sum(tl.load(above + places, mask=inside, other=0.0).to(tl.float64), axis=0)
            count = tl.sum(tl.load(tied + places, mask=inside, other=0), axis=0).to(tl.int64)
            count = tl.minimum(count, tl.load(most + row))
            one = weights_of(score_of(key), highest, heat).to(tl.float64)
            whole = over + tl.where(count > 0, count.to(tl.float64) * one, 0.0)
    tl.store(wanted + row, tl.load(top_p + owner).to(tl.float64) * whole)


@triton.jit
def cut_kernel(
    logits, row_stride, column_stride, masks, mask_rows, mask_stride, mask_count, words, width,
    keys, ties, tied, cut_key, cut_index, chunks,
    EVEN: tl.constexpr, MASKED: tl.constexpr, INDEXED: tl.constexpr, CHUNK: tl.constexpr, CHUNKS: tl.constexpr,
):  # fmt: skip
    """Store the key of the last token that is kept, and of the tokens that have it the number of the last one."""
    row = tl.program_id(0).to(tl.int64)
    key, count = tl.load(keys + row), tl.load(ties + row)
    last = tl.full((), 0, tl.int32) + width
    if key > 0:
        chunk = tl.arange(0, CHUNKS)
        each = tl.load(tied + row * chunks + chunk, mask=chunk < chunks, other=0).to(tl.int64)
        until = tl.cumsum(each, axis=0)
        at = tl.min(tl.where(until >= count, chunk, CHUNKS), axis=0)
        if at < chunks:
            before = tl.sum(tl.where(chunk < at, each, 0), axis=0)
            mask = chunk_words(masks, mask_rows, mask_stride, mask_count, words, row, at, MASKED, INDEXED, CHUNK)
            scores = load_scores(logits, row_stride, column_stride, row, mask, at, width, EVEN, CHUNK)
            same = (unsigned(scores) == key.to(tl.uint32)) & (scores != -float("inf"))
            same = tl.reshape(same.to(tl.int32), (CHUNK,))
            here = (same > 0) & (before + tl.cumsum(same, axis=0) == count)
            last = at * CHUNK + tl.min(tl.where(here, tl.arange(0, CHUNK), CHUNK), axis=0)
    tl.store(cut_key + row, (key - _SIGN).to(tl.int32))
    tl.store(cut_index + row, last)


def last_kept(
    source: Source,
    best: torch.Tensor,
    sums: torch.Tensor,
    cut: dict[str, int],
    temperature: torch.Tensor,
    top_k: torch.Tensor | None,
    top_p: torch.Tensor | None,
    kinds: torch.Tensor,
    n: int,
) -> tuple[torch.Tensor, torch.Tensor]:
    """The last tokens that top-k and top-p keep.

    Args:
        source, best, sums, cut: as of :class:`~.summaries.Summary`, of all tokens.
        temperature, top_k, top_p, kinds, n: as for :func:`~.summaries.summarise`.

    Returns:
        the score of each row's last token that is kept, as an ordered integer, and its number, ``int32[rows]`` each.
    """
    rows, device = len(source.logits), source.logits.device
    chunks = cut["chunks"]
    grid = (rows, chunks)
    turns = _DIGITS.get(source.logits.dtype, 8)

    def empty(dtype: torch.dtype, *shape: int) -> torch.Tensor:
        return torch.empty(shape, dtype=dtype, device=device)

    def result() -> dict[str, torch.Tensor]:
        return {
            "keys": empty(torch.int64, rows), "ties": empty(torch.int64, rows), "tied": empty(torch.int32, *grid)
        }  # fmt: skip

    scores: dict[str, Any] = {**source.arguments, **cut, "num_warps": 8}
    shared = {**scores, "kinds": kinds, "n": n, "rows": rows}
    weighed = {"temperature": temperature, "best": best}
    found: dict[str, torch.Tensor] | None = None
    above: torch.Tensor | None = None
    if top_k is not None:
        found, above = result(), None if top_p is None else empty(torch.float32, *grid)
        count = {
            "top_k": top_k, "bounds": empty(torch.int64, turns, rows), "lefts": empty(torch.int64, turns, rows),
            "counts": empty(torch.int32, turns, *grid, 16),
        }  # fmt: skip
        for turn in range(turns):
            count_kernel[grid](**shared, **count, turn=turn)
        last_by_count_kernel[grid](**shared, **weighed, **count, **found, above=above, turns=turns)
    if top_p is not None:
        before = found or dict.fromkeys(("keys", "ties", "tied"))
        found = result()
        lowest, most = before["keys"], before["ties"]
        wanted = empty(torch.float64, rows)
        wanted_kernel[(rows,)](
            **weighed, sums=sums, top_p=top_p, lowest=lowest, most=most, tied=before["tied"], above=above,
            wanted=wanted, n=n, chunks=chunks, CHUNKS=cut["CHUNKS"],
        )  # fmt: skip
        weigh = {
            "top_p": top_p, "wanted": wanted, "lowest": lowest, "bounds": empty(torch.int64, turns, rows),
            "masses": empty(torch.float64, turns, rows), "weights": empty(torch.float64, turns, *grid, 16),
        }  # fmt: skip
        for turn in range(turns):
            weigh_kernel[grid](**shared, **weighed, **weigh, turn=turn)
        last_by_weight_kernel[grid](**shared, **weighed, **weigh, **found, most=most, turns=turns)
    assert found is not None, "neither top-k nor top-p is asked for"
    cut_key, cut_index = empty(torch.int32, rows), empty(torch.int32, rows)
    cut_kernel[(rows,)](**scores, **found, cut_key=cut_key, cut_index=cut_index)
    return cut_key, cut_index
