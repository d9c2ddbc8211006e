"""Functions that kernels share: chunks of rows, masked loads, numbers as ordered integers, random words.

The rows of a matrix of logits are divided into chunks, so that even a few rows use the whole device. The first launch
computes a partial result for each chunk; in the next launch, each program combines the partial results of its row.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
import triton
import triton.language as tl

__all__ = [
    "CHUNK",
    "DRAWN",
    "GREEDY",
    "NOISY",
    "Source",
    "all_weights",
    "best_of",
    "bits_of",
    "bytes_of",
    "chunk_index",
    "chunk_words",
    "chunks_of",
    "drawn_token",
    "highest_of",
    "load_scores",
    "load_weights",
    "ordered",
    "ordered_double",
    "packed",
    "random_words",
    "some",
    "uniform_at",
    "unordered",
    "weights_of",
]

CHUNK = 4096
"""The number of tokens of a chunk."""

GREEDY, NOISY, DRAWN = 0, 1, 2
"""How the tokens of a row are chosen: the values of ``kinds``."""

_INDEX_BITS = tl.constexpr(0x7FFF_FFFF)
_NAN = tl.constexpr(0x7FFF_FFFF)
_SIGN_FREE = tl.constexpr(0x7FFF_FFFF_FFFF_FFFF)


@dataclass(frozen=True, slots=True)
class Source:
    """The source of scores: logits, and mask rows that are applied while the logits are read.

    Attributes:
        logits: ``[rows, width]``, of any strides.
        masks: ``int32[m, words]``; ``None`` if there is no mask.
        mask_rows: ``int[rows]``, the number of the mask row of each row of logits; a negative number leaves the row
            unconstrained. With ``None``, row ``i`` has mask row ``i``.
    """

    logits: torch.Tensor
    masks: torch.Tensor | None = None
    mask_rows: torch.Tensor | None = None

    @property
    def arguments(self) -> dict[str, Any]:
        """The arguments of a kernel that reads scores (:func:`load_scores`)."""
        masks = self.masks if self.masks is None or self.masks.stride(-1) == 1 else self.masks.contiguous()
        return {
            "logits": self.logits,
            "row_stride": self.logits.stride(0),
            "column_stride": self.logits.stride(1),
            "masks": masks,
            "mask_rows": None if self.mask_rows is None else self.mask_rows.contiguous(),
            "mask_stride": 0 if masks is None else masks.stride(0),
            "mask_count": 0 if masks is None else masks.shape[0],
            "words": 0 if masks is None else masks.shape[1],
            "width": self.logits.shape[1],
            "EVEN": self.logits.shape[1] % 8 == 0,
            "MASKED": masks is not None,
            "INDEXED": self.mask_rows is not None,
        }


def chunks_of(width: int, chunk: int | None = None) -> dict[str, int]:
    """The division of rows into chunks: the number of chunks, and the constants for which kernels are compiled."""
    chunk = min(chunk or CHUNK, max(triton.next_power_of_2(width), 32))
    chunks = triton.cdiv(width, chunk)
    return {"chunks": chunks, "CHUNK": chunk, "CHUNKS": max(triton.next_power_of_2(chunks), 2)}


@triton.jit
def chunk_index(chunk, CHUNK: tl.constexpr):
    """The tokens of a chunk, ``int32[CHUNK // 32, 32]``: a line for each word of a mask row."""
    return chunk * CHUNK + 32 * tl.arange(0, CHUNK // 32)[:, None] + tl.arange(0, 32)[None, :]


@triton.jit
def chunk_words(
    masks, mask_rows, mask_stride, mask_count, words, row, chunk,
    MASKED: tl.constexpr, INDEXED: tl.constexpr, CHUNK: tl.constexpr,
):  # fmt: skip
    """The words of a row's mask for a chunk, ``int32[CHUNK // 32]``; -1 if nothing is masked.

    A mask row that does not exist forbids all tokens; one of a negative number allows all tokens.
    """
    if MASKED:
        mask_row = tl.load(mask_rows + row).to(tl.int64) if INDEXED else row
        word = chunk * (CHUNK // 32) + tl.arange(0, CHUNK // 32)
        known = tl.where((mask_row >= 0) & (mask_row < mask_count), words, 0)
        beyond = tl.where(mask_row < 0, -1, 0)
        return tl.load(masks + mask_row * mask_stride + word, mask=word < known, other=beyond)
    return tl.full((CHUNK // 32,), -1, tl.int32)


@triton.jit
def some(words):
    """Whether any bit of the words is set."""
    return tl.max((words != 0).to(tl.int32), axis=0) > 0


@triton.jit
def bits_of(words):
    """The bits of words, 0 or 1, ``int32[n, 32]``."""
    return (words[:, None] >> tl.arange(0, 32)[None, :]) & 1


@triton.jit
def bytes_of(words):
    """For each bit of the words, the byte that it is in, ``int32[n, 32]``."""
    return (words[:, None] >> (tl.arange(0, 32) & 24)[None, :]) & 0xFF


@triton.jit
def load_scores(
    logits, row_stride, column_stride, row, words, chunk, width, EVEN: tl.constexpr, CHUNK: tl.constexpr
):  # fmt: skip
    """The scores of a chunk, ``float32[CHUNK // 32, 32]``: -inf outside of the row and where ``words`` forbid a token.

    Of memory, only the sectors of 32 bytes that hold an allowed token are read, so that a row which allows few tokens
    costs little more than reading its mask. With ``EVEN`` (the width is a multiple of 8) the logits of eight tokens are
    read at once, if one of them is allowed.
    """
    index = chunk_index(chunk, CHUNK)
    places = logits + row * row_stride + index.to(tl.int64) * column_stride
    allowed = (index < width) & (bits_of(words) != 0)
    if EVEN:
        read = tl.max_constancy((index < width) & (bytes_of(words) != 0), [1, 8])
        return tl.where(allowed, tl.load(places, mask=read, other=-float("inf")).to(tl.float32), -float("inf"))
    return tl.load(places, mask=allowed, other=-float("inf")).to(tl.float32)


@triton.jit
def ordered(x):
    """``int32`` in the same order as the ``float32`` numbers; NaN is the greatest, and both zeros are equal."""
    x = tl.where(x == 0, 0.0, x)
    bits = x.to(tl.int32, bitcast=True)
    return tl.where(x == x, bits ^ ((bits >> 31) & _NAN), _NAN)  # noqa: PLR0124 (NaN is not itself)


@triton.jit
def unordered(key):
    """The inverse of :func:`ordered`: the ``float32`` number of such an integer."""
    return (key ^ ((key >> 31) & _NAN)).to(tl.float32, bitcast=True)


@triton.jit
def ordered_double(x):
    """``int64`` in the same order as the ``float64`` numbers; NaN is the greatest, and both zeros are equal."""
    x = tl.where(x == 0, 0.0, x)
    bits = x.to(tl.int64, bitcast=True)
    return tl.where(x == x, bits ^ ((bits >> 63) & _SIGN_FREE), _SIGN_FREE)  # noqa: PLR0124


@triton.jit
def packed(key, index):
    """A key (:func:`ordered`) and its token in one ``int64``: the greatest has the greatest key and the least token."""
    return (key.to(tl.int64) << 32) | (index ^ _INDEX_BITS).to(tl.int64)


@triton.jit
def best_of(scores, index):
    """The highest score of a chunk and its token, the first of several, :func:`packed`; NaN is the highest."""
    broken = scores != scores  # noqa: PLR0124 (NaN is not itself)
    ranked = tl.where(broken, -float("inf"), scores)
    most = tl.max(ranked)
    token = tl.min(tl.where(ranked == most, index, _INDEX_BITS))
    first = tl.min(tl.where(broken, index, _INDEX_BITS))
    key = tl.where(first < _INDEX_BITS, _NAN, ordered(most))
    return packed(key, tl.where(first < _INDEX_BITS, first, token))


@triton.jit
def highest_of(best, row, chunks, CHUNKS: tl.constexpr):
    """The highest score of a row and its token, from the results of :func:`best_of` for its chunks."""
    chunk = tl.arange(0, CHUNKS)
    most = tl.max(tl.load(best + row * chunks + chunk, mask=chunk < chunks, other=-_SIGN_FREE), axis=0)
    return unordered((most >> 32).to(tl.int32)), ((most & _INDEX_BITS) ^ _INDEX_BITS).to(tl.int32)


@triton.jit
def weights_of(scores, highest, heat):
    """The weights of scores: ``exp((score - highest) / temperature)``, 0 for -inf."""
    x = scores - highest
    if heat != 1.0:
        x = x / heat
    return tl.where(scores == -float("inf"), 0.0, tl.exp(x))


@triton.jit
def all_weights(best, sums, row, highest, heat, chunks, CHUNKS: tl.constexpr):
    """The sum of the weights of a row, from the sums of its chunks relative to the best tokens of these."""
    chunk = tl.arange(0, CHUNKS)
    inside = chunk < chunks
    each = tl.load(sums + row * chunks + chunk, mask=inside, other=0.0)
    most = (tl.load(best + row * chunks + chunk, mask=inside, other=0) >> 32).to(tl.int32)
    scale = tl.exp((tl.where(inside, unordered(most), -float("inf")) - highest) / heat)
    return tl.sum(tl.where(each == 0, 0.0, each * scale), axis=0)


@triton.jit
def random_words(block, position, low, high, sample, use):
    """Four random words of 32 bits for each block (Philox4x32-10, as :func:`grammarspec.decoding.noise.philox`).

    Args:
        block: ``uint32[n]``, or a number; the other arguments are numbers.
    """
    zero = block * 0
    return tl.philox_impl(
        block,
        zero + position.to(tl.uint32),
        zero + sample.to(tl.uint32),
        zero + use.to(tl.uint32),
        zero + low.to(tl.uint32),
        zero + high.to(tl.uint32),
        10,
    )


@triton.jit
def uniform_at(streams, row, position, use):
    """The random number of a position of a row (:func:`grammarspec.decoding.noise.uniform`), ``float64``."""
    low, high = tl.load(streams + row * 3), tl.load(streams + row * 3 + 1)
    sample = tl.load(streams + row * 3 + 2)
    word, _, _, _ = random_words((position * 0).to(tl.uint32), position, low, high, sample, use)
    return (word.to(tl.float64) + 0.5) / 4294967296.0


@triton.jit
def load_weights(weights, place, others, other_place, index, width, RESIDUAL: tl.constexpr):
    """Weights of a row at some indices, ``float64``; with ``RESIDUAL``, ``max(weight - other weight, 0)``."""
    inside = index < width
    weight = tl.load(weights + place + index, mask=inside, other=0.0)
    if RESIDUAL:
        weight = tl.maximum(weight - tl.load(others + other_place + index, mask=inside, other=0.0), 0.0)
    return weight.to(tl.float64)


@triton.jit
def drawn_token(
    weights, place, others, other_place, sums, row, uniform, width, chunks,
    RESIDUAL: tl.constexpr, CHUNK: tl.constexpr, CHUNKS: tl.constexpr,
):  # fmt: skip
    """Draw a token by inverting a row's cumulative weights, given the sums of its chunks; also returns the total.

    It is the first token whose cumulative weight exceeds ``uniform`` times the total. If rounding errors leave none, it
    is the last token of positive weight in the chunk. If weights are NaN, it is token 0.
    """
    chunk = tl.arange(0, CHUNKS)
    each = tl.load(sums + row * chunks + chunk, mask=chunk < chunks, other=0.0)
    cumulative = tl.cumsum(each, axis=0)
    total = tl.sum(tl.where(chunk == chunks - 1, cumulative, 0.0), axis=0)
    threshold = uniform * total
    at = tl.min(tl.where((cumulative > threshold) & (each > 0), chunk, CHUNKS), axis=0)
    at = tl.maximum(tl.minimum(at, tl.max(tl.where(each > 0, chunk, -1), axis=0)), 0)
    before = tl.sum(tl.where(chunk == at - 1, cumulative, 0.0), axis=0)
    index = at * CHUNK + tl.arange(0, CHUNK)
    weight = load_weights(weights, place, others, other_place, index, width, RESIDUAL)
    passed = (before + tl.cumsum(weight, axis=0) > threshold) & (weight > 0)
    first = tl.min(tl.where(passed, index, width), axis=0)
    last = tl.max(tl.where(weight > 0, index, 0), axis=0)
    return tl.minimum(first, last), total
