"""The kernels of verification: they accept draft tokens, and choose the token after them, without the host."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from grammarspec.kernels.blocks import DRAWN, Source, drawn_token, load_weights, uniform_at
from grammarspec.kernels.choices import Chosen
from grammarspec.kernels.summaries import summarise

__all__ = ["verify"]

_DRAWN = tl.constexpr(DRAWN)


@triton.jit
def accept_kernel(
    chosen, distribution, draft, draft_row_stride, draft_stride, tokens, lengths, drawn, kinds, streams, positions,
    rounds, accepted, following, purpose, n, width,
    DRAWS: tl.constexpr, DRAFTED: tl.constexpr,
):  # fmt: skip
    """Store how many draft tokens of a row are accepted, and the token that is chosen after them."""
    row = tl.program_id(0).to(tl.int64)
    length = tl.load(lengths + row)
    kind = tl.load(kinds + row)
    count = tl.full((), 0, tl.int64)
    going = length >= 0
    for place in range(n - 1):
        token = tl.load(tokens + row * (n - 1) + place)
        agrees = tl.load(chosen + row * n + place) == token
        if DRAWS:
            by_ratio = (tl.load(drawn + row * (n - 1) + place) != 0) & (kind == _DRAWN)
            known = by_ratio & (token >= 0) & (token < width)
            p = tl.load(distribution + (row * n + place) * width + token, mask=known, other=0.0).to(tl.float64)
            q = (token * 0 + 1).to(tl.float64)
            if DRAFTED:
                at = row * draft_row_stride + place * draft_stride + token
                q = tl.load(draft + at, mask=known, other=1.0).to(tl.float64)
            use = (purpose << 28) | tl.load(rounds + row)
            chance = uniform_at(streams, row, tl.load(positions + row * n + place), use)
            agrees = tl.where(by_ratio, chance * q < p, agrees)
        going = going & agrees & (place < length)
        count += going.to(tl.int64)
    tl.store(accepted + row, count)
    tl.store(following + row, tl.load(chosen + row * n + count))


@triton.jit
def needs_residual(row, n, accepted, lengths, drawn, kinds):
    """Whether a drawn token was refused, so that another one must be drawn in its place; and the position of it."""
    at = tl.load(accepted + row)
    inside = (at < tl.load(lengths + row)) & (tl.load(kinds + row) == _DRAWN) & (at < n - 1)
    return inside & (tl.load(drawn + row * (n - 1) + at, mask=inside, other=0) != 0), at


@triton.jit
def residual_kernel(
    distribution, draft, draft_row_stride, draft_stride, lengths, drawn, kinds, accepted, sums, n, width, chunks,
    CHUNK: tl.constexpr,
):  # fmt: skip
    """Store the sum of a chunk of a row's residual distribution."""
    row = tl.program_id(0).to(tl.int64)
    chunk = tl.program_id(1)
    needed, at = needs_residual(row, n, accepted, lengths, drawn, kinds)
    if needed:
        index = chunk * CHUNK + tl.arange(0, CHUNK)
        other = row * draft_row_stride + at * draft_stride
        each = load_weights(distribution, (row * n + at) * width, draft, other, index, width, True)
        tl.store(sums + row * chunks + chunk, tl.sum(each, axis=0))


@triton.jit
def replace_kernel(
    distribution, draft, draft_row_stride, draft_stride, lengths, drawn, kinds, accepted, sums, streams, positions,
    following, use, n, width, chunks, CHUNK: tl.constexpr, CHUNKS: tl.constexpr,
):  # fmt: skip
    """Replace a refused token by one from the residual distribution; if that is 0 everywhere, nothing changes."""
    row = tl.program_id(0).to(tl.int64)
    needed, at = needs_residual(row, n, accepted, lengths, drawn, kinds)
    if needed:
        chance = uniform_at(streams, row, tl.load(positions + row * n + at), use)
        other = row * draft_row_stride + at * draft_stride
        token, total = drawn_token(
            distribution, (row * n + at) * width, draft, other, sums, row, chance, width, chunks, True, CHUNK, CHUNKS
        )
        if total > 0:
            tl.store(following + row, token.to(tl.int64))


def verify(
    logits: torch.Tensor,
    masks: torch.Tensor | None,
    mask_rows: torch.Tensor | None,
    temperature: torch.Tensor,
    top_k: torch.Tensor | None,
    top_p: torch.Tensor | None,
    min_p: torch.Tensor | None,
    kinds: torch.Tensor,
    noise: bool,
    streams: torch.Tensor,
    tokens: torch.Tensor,
    lengths: torch.Tensor,
    draft: torch.Tensor | None,
    drawn: torch.Tensor,
    positions: torch.Tensor,
    rounds: torch.Tensor,
    draws: bool,
    whole: bool,
    accept: int,
    choose: int,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """See :func:`grammarspec.decoding.distributions.verify`."""
    rows, n, width = logits.shape
    device = logits.device
    accepted = torch.empty(rows, dtype=torch.int64, device=device)
    following = torch.empty(rows, dtype=torch.int64, device=device)
    if not rows:
        return accepted, following, logits.new_empty(0, n, dtype=torch.float32), logits.new_empty(0, n, width)
    if masks is not None:
        masks = masks.flatten(0, -2)
        mask_rows = None if mask_rows is None else mask_rows.flatten()
    source = Source(logits.reshape(rows * n, width), masks, mask_rows)
    summary = summarise(source, temperature, top_k, top_p, min_p, kinds, n)
    positions, tokens, lengths, rounds = (t.contiguous() for t in (positions, tokens, lengths, rounds))
    each = Chosen(source, summary, temperature, min_p, kinds, n, writes=whole or draws)
    each.run(streams, positions, choose << 28, noise=noise, draws=draws)
    drafts = draft if draft is None or draft.stride(2) == 1 else draft.contiguous()
    steps = {
        "draft": drafts,
        "draft_row_stride": 0 if drafts is None else drafts.stride(0),
        "draft_stride": 0 if drafts is None else drafts.stride(1),
        "distribution": each.distribution, "lengths": lengths, "drawn": drawn.contiguous(), "kinds": kinds,
        "accepted": accepted, "n": n, "width": width,
    }  # fmt: skip
    random = {"streams": streams, "positions": positions, "following": following}
    accept_kernel[(rows,)](
        **steps, **random, chosen=each.tokens, tokens=tokens, rounds=rounds, purpose=accept, DRAWS=draws,
        DRAFTED=drafts is not None, num_warps=1,
    )  # fmt: skip
    if draws and drafts is not None and n > 1:
        cut = summary.cut
        sums = torch.empty(rows, cut["chunks"], dtype=torch.float64, device=device)
        residual_kernel[(rows, cut["chunks"])](
            **steps, sums=sums, chunks=cut["chunks"], CHUNK=cut["CHUNK"], num_warps=8
        )  # fmt: skip
        replace_kernel[(rows,)](**steps, **random, sums=sums, use=choose << 28, **cut, num_warps=8)
    whole_distribution = each.distribution if whole else torch.empty(0, device=device)
    assert whole_distribution is not None
    return (
        accepted,
        following,
        each.highest.view(rows, n),
        whole_distribution.view(rows, n, width) if whole else whole_distribution,
    )
