"""Kernels for distributions, and for choosing tokens from them: greedily, by shared noise, or by drawing."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from grammarspec.kernels.blocks import (
    DRAWN,
    GREEDY,
    NOISY,
    Source,
    chunk_index,
    chunk_words,
    chunks_of,
    drawn_token,
    highest_of,
    load_scores,
    load_weights,
    ordered_double,
    random_words,
    some,
    uniform_at,
)
from grammarspec.kernels.summaries import Summary, kept_total, kept_weights, least_weight, summarise

__all__ = ["Chosen", "choices", "distribution", "draw"]

_GREEDY, _NOISY, _DRAWN = tl.constexpr(GREEDY), tl.constexpr(NOISY), tl.constexpr(DRAWN)
_LEAST = tl.constexpr(-0x7FFF_FFFF_FFFF_FFFF)
_NO_CHANCE = tl.constexpr(-0x7FF0_0000_0000_0001)  # the key of -inf


@triton.jit
def loudest(probabilities, chunk, width, streams, owner, position, CHUNK: tl.constexpr):
    """The token of a chunk with the greatest log-probability plus Gumbel noise: returns that sum as a key, and it.

    Args:
        probabilities: ``float32[CHUNK // 32, 32]``.
        owner: the row in ``streams``.
    """
    low, high = tl.load(streams + owner * 3), tl.load(streams + owner * 3 + 1)
    sample = tl.load(streams + owner * 3 + 2)
    block = (chunk * (CHUNK // 4) + tl.arange(0, CHUNK // 4)).to(tl.uint32)
    a, b, c, d = random_words(block, position, low, high, sample, position * 0)  # the purpose SHARED is 0
    words = tl.reshape(tl.join(tl.join(a, c), tl.join(b, d)), (CHUNK // 32, 32))
    noise = -tl.log(-tl.log((words.to(tl.float64) + 0.5) / 4294967296.0))
    # The logarithm of 0 is not computed: such tokens get -inf, whatever the noise is.
    safe = tl.where(probabilities == 0, 1.0, probabilities).to(tl.float64)
    return best_token(tl.where(probabilities == 0, -float("inf"), tl.log(safe) + noise), chunk, width, CHUNK)


@triton.jit
def best_token(values, chunk, width, CHUNK: tl.constexpr):
    """The greatest of a chunk's values, ``float64``, as a key, and its token; of equal ones, the first."""
    index = chunk_index(chunk, CHUNK)
    key = tl.where(index < width, ordered_double(values), _LEAST)
    most = tl.max(key)
    return most, tl.min(tl.where((key == most) & (index < width), index, width))


@triton.jit
def choose_kernel(
    logits, row_stride, column_stride, masks, mask_rows, mask_stride, mask_count, words, width,
    best, sums, cut_key, cut_index, temperature, min_p, kinds, streams, positions,
    out, noisy_keys, noisy_tokens, drawn_sums, n, chunks,
    EVEN: tl.constexpr, MASKED: tl.constexpr, INDEXED: tl.constexpr, CUT: tl.constexpr, KEPT: tl.constexpr,
    WRITES: tl.constexpr, NOISE: tl.constexpr, DRAWS: tl.constexpr, CHUNK: tl.constexpr, CHUNKS: tl.constexpr,
):  # fmt: skip
    """Compute a chunk of a row's distribution; by the flags, write it, find its best token with noise, or sum it."""
    row = tl.program_id(0).to(tl.int64)
    chunk = tl.program_id(1)
    place = row * chunks + chunk
    index = chunk_index(chunk, CHUNK)
    owner = row // n
    kind = tl.load(kinds + owner)
    highest, token = highest_of(best, row, chunks, CHUNKS)
    if kind == _GREEDY:
        if WRITES:
            tl.store(out + row * width + index, tl.where(index == token, 1.0, 0.0), mask=index < width)
    else:
        mask = chunk_words(masks, mask_rows, mask_stride, mask_count, words, row, chunk, MASKED, INDEXED, CHUNK)
        heat, lowest = tl.load(temperature + owner), least_weight(min_p, owner)
        whole = kept_total(best, sums, row, highest, heat, chunks, KEPT, CHUNKS)
        # Where no token of a chunk is allowed, only a distribution that is broken differs from 0.
        if some(mask) | (whole != whole):  # noqa: PLR0124 (NaN is not itself)
            scores = load_scores(logits, row_stride, column_stride, row, mask, chunk, width, EVEN, CHUNK)
            weights = kept_weights(scores, index, highest, heat, row, lowest, cut_key, cut_index, CUT)
            probabilities = weights / whole
            if WRITES:
                tl.store(out + row * width + index, probabilities, mask=index < width)
            if NOISE:  # noqa: SIM102 (one condition is decided when compiling, the other when running)
                if kind == _NOISY:
                    position = tl.load(positions + row)
                    key, loud = loudest(probabilities, chunk, width, streams, owner, position, CHUNK)
                    tl.store(noisy_keys + place, key)
                    tl.store(noisy_tokens + place, loud)
            if DRAWS:  # noqa: SIM102
                if kind == _DRAWN:
                    tl.store(drawn_sums + place, tl.sum(probabilities.to(tl.float64)))
        else:
            if WRITES:
                tl.store(out + row * width + index, 0.0 * index.to(tl.float32), mask=index < width)
            if NOISE:
                tl.store(noisy_keys + place, _NO_CHANCE)
                tl.store(noisy_tokens + place, chunk * CHUNK)
            if DRAWS:
                tl.store(drawn_sums + place, 0.0)


@triton.jit
def of_chunks(keys, tokens, row, width, chunks, CHUNKS: tl.constexpr):
    """The best token of a row, from the best tokens of its chunks; of equal ones, the first."""
    chunk = tl.arange(0, CHUNKS)
    inside = chunk < chunks
    key = tl.load(keys + row * chunks + chunk, mask=inside, other=_LEAST)
    token = tl.load(tokens + row * chunks + chunk, mask=inside, other=width)
    return tl.minimum(tl.min(tl.where(key == tl.max(key, axis=0), token, width), axis=0), width - 1)


@triton.jit
def finish_kernel(
    best, kinds, streams, positions, distribution, noisy_keys, noisy_tokens, drawn_sums, chosen, highests,
    width, n, chunks, use,
    NOISE: tl.constexpr, DRAWS: tl.constexpr, CHUNK: tl.constexpr, CHUNKS: tl.constexpr,
):  # fmt: skip
    """Store the token that is chosen for a row, and the highest score of the row."""
    row = tl.program_id(0).to(tl.int64)
    owner = row // n
    kind = tl.load(kinds + owner)
    highest, token = highest_of(best, row, chunks, CHUNKS)
    if NOISE:  # noqa: SIM102
        if kind == _NOISY:
            token = of_chunks(noisy_keys, noisy_tokens, row, width, chunks, CHUNKS)
    if DRAWS:  # noqa: SIM102
        if kind == _DRAWN:
            chance = uniform_at(streams, owner, tl.load(positions + row), use)
            token, _ = drawn_token(
                distribution, row * width, distribution, row, drawn_sums, row, chance, width, chunks, False, CHUNK,
                CHUNKS,
            )  # fmt: skip
    tl.store(chosen + row, token.to(tl.int64))
    tl.store(highests + row, highest)


@triton.jit
def loudest_kernel(
    distribution, kinds, streams, positions, keys, tokens, width, n, chunks, CHUNK: tl.constexpr
):  # fmt: skip
    """Store the best token of a chunk of a distribution: with noise for noisy rows, else the most probable one."""
    row = tl.program_id(0).to(tl.int64)
    chunk = tl.program_id(1)
    index = chunk_index(chunk, CHUNK)
    owner = row // n
    probabilities = tl.load(distribution + row * width + index, mask=index < width, other=0.0)
    if tl.load(kinds + owner) == _NOISY:
        key, token = loudest(probabilities, chunk, width, streams, owner, tl.load(positions + row), CHUNK)
    else:
        key, token = best_token(probabilities.to(tl.float64), chunk, width, CHUNK)
    tl.store(keys + row * chunks + chunk, key)
    tl.store(tokens + row * chunks + chunk, token)


@triton.jit
def loudest_of_row_kernel(keys, tokens, chosen, width, chunks, CHUNKS: tl.constexpr):
    """Store the best token of a row, from the results of :func:`loudest_kernel`."""
    row = tl.program_id(0).to(tl.int64)
    tl.store(chosen + row, of_chunks(keys, tokens, row, width, chunks, CHUNKS).to(tl.int64))


@triton.jit
def weigh_kernel(weights, row_stride, sums, width, chunks, CHUNK: tl.constexpr):
    """Store the sum of a chunk of a row of weights."""
    row = tl.program_id(0).to(tl.int64)
    chunk = tl.program_id(1)
    index = chunk * CHUNK + tl.arange(0, CHUNK)
    each = load_weights(weights, row * row_stride, weights, row, index, width, False)
    tl.store(sums + row * chunks + chunk, tl.sum(each, axis=0))


@triton.jit
def draw_kernel(
    weights, row_stride, sums, uniforms, drawn, width, chunks, CHUNK: tl.constexpr, CHUNKS: tl.constexpr
):  # fmt: skip
    """Store the token that is drawn from a row of weights."""
    row = tl.program_id(0).to(tl.int64)
    token, _ = drawn_token(
        weights, row * row_stride, weights, row, sums, row, tl.load(uniforms + row), width, chunks, False, CHUNK, CHUNKS
    )
    tl.store(drawn + row, token.to(tl.int64))


class Chosen:
    """The chosen tokens of rows, and the distributions from which they are chosen; :meth:`run` computes them.

    Attributes:
        summary: the summary of the scores.
        tokens: ``int64[rows]``, the chosen tokens.
        highest: ``float32[rows]``, the highest score of each row.
        distribution: ``float32[rows, width]``; ``None`` if it is not needed.
    """

    def __init__(
        self,
        source: Source,
        summary: Summary,
        temperature: torch.Tensor,
        min_p: torch.Tensor | None,
        kinds: torch.Tensor,
        n: int,
        *,
        writes: bool,
    ) -> None:
        self.source, self.summary = source, summary
        self._options = {"temperature": temperature, "min_p": min_p, "kinds": kinds, "n": n}
        rows, width = source.logits.shape
        device = source.logits.device
        self.distribution = torch.empty(rows, width, device=device) if writes else None
        self.tokens = torch.empty(rows, dtype=torch.int64, device=device)
        self.highest = torch.empty(rows, device=device)

    def run(
        self, streams: torch.Tensor | None, positions: torch.Tensor | None, use: int, *, noise: bool, draws: bool
    ) -> None:
        """Compute the distribution; with streams and positions, choose the tokens, too."""
        rows, width = self.source.logits.shape
        cut, device = self.summary.cut, self.source.logits.device
        grid = (rows, cut["chunks"])
        keys = torch.empty(grid, dtype=torch.int64, device=device) if noise else None
        loud = torch.empty(grid, dtype=torch.int32, device=device) if noise else None
        sums = torch.empty(grid, dtype=torch.float64, device=device) if draws else None
        what = {"noisy_keys": keys, "noisy_tokens": loud, "drawn_sums": sums, "NOISE": noise, "DRAWS": draws}
        if noise or draws or self.distribution is not None:
            choose_kernel[grid](
                **self.source.arguments, **self.summary.arguments, **self._options, **what, streams=streams,
                positions=positions, out=self.distribution, WRITES=self.distribution is not None, **cut, num_warps=8,
            )  # fmt: skip
        if streams is not None:
            finish_kernel[(rows,)](
                best=self.summary.best, kinds=self._options["kinds"], streams=streams, positions=positions,
                distribution=self.distribution, chosen=self.tokens, highests=self.highest, width=width,
                n=self._options["n"], use=use, **what, **cut, num_warps=8,
            )  # fmt: skip


def distribution(
    scores: torch.Tensor,
    temperature: torch.Tensor,
    top_k: torch.Tensor | None,
    top_p: torch.Tensor | None,
    min_p: torch.Tensor | None,
    kinds: torch.Tensor,
) -> torch.Tensor:
    """See :func:`grammarspec.decoding.distributions.distribution`."""
    rows, n, width = scores.shape
    if not scores.numel():
        return torch.empty(scores.shape, device=scores.device)
    source = Source(scores.reshape(rows * n, width))
    summary = summarise(source, temperature, top_k, top_p, min_p, kinds, n)
    chosen = Chosen(source, summary, temperature, min_p, kinds, n, writes=True)
    chosen.run(None, None, 0, noise=False, draws=False)
    assert chosen.distribution is not None
    return chosen.distribution.view(scores.shape)


def choices(
    distribution: torch.Tensor,
    positions: torch.Tensor,
    kinds: torch.Tensor,
    streams: torch.Tensor,
    noise: bool,
) -> torch.Tensor:
    """See :func:`grammarspec.decoding.distributions.choices`."""
    rows, n, width = distribution.shape
    device = distribution.device
    chosen = torch.empty(rows, n, dtype=torch.int64, device=device)
    if chosen.numel():
        cut = chunks_of(width)
        grid = (rows * n, cut["chunks"])
        keys = torch.empty(grid, dtype=torch.int64, device=device)
        tokens = torch.empty(grid, dtype=torch.int32, device=device)
        loudest_kernel[grid](
            distribution.contiguous(), kinds, streams, positions.contiguous(), keys, tokens, width, n, cut["chunks"],
            CHUNK=cut["CHUNK"], num_warps=8,
        )  # fmt: skip
        loudest_of_row_kernel[(rows * n,)](keys, tokens, chosen, width, cut["chunks"], CHUNKS=cut["CHUNKS"])
    return chosen


def draw(weights: torch.Tensor, uniforms: torch.Tensor) -> torch.Tensor:
    """See :func:`grammarspec.decoding.verification.draw`."""
    rows, width = weights.shape
    drawn = torch.empty(rows, dtype=torch.int64, device=weights.device)
    if rows:
        cut = chunks_of(width)
        grid = (rows, cut["chunks"])
        weights = weights if weights.stride(1) == 1 else weights.contiguous()
        sums = torch.empty(grid, dtype=torch.float64, device=weights.device)
        weigh_kernel[grid](weights, weights.stride(0), sums, width, cut["chunks"], CHUNK=cut["CHUNK"], num_warps=8)
        draw_kernel[(rows,)](
            weights, weights.stride(0), sums, uniforms.contiguous(), drawn, width, **cut, num_warps=8
        )  # fmt: skip
    return drawn
