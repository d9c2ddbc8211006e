"""Distributions of next tokens and what is chosen from them, as functions of tensors: what devices run in each round.

Scores and sampling options of the rows of a batch go in, as tensors of one number for each row; distributions and
tokens come out. Each function is the reference of an operator: :mod:`grammarspec.kernels` has a kernel of it. None
of them synchronises with the host. :class:`~grammarspec.decoding.processing.Processing` holds the tensors.
"""

from __future__ import annotations

from enum import IntEnum

import torch

from grammarspec.bitmask import apply_bitmask
from grammarspec.decoding.noise import Purpose, gumbel, uniform
from grammarspec.decoding.verification import accepted_drafts, draw, residual_distribution
from grammarspec.kernels.dispatch import operator

__all__ = ["Kind", "choices", "distribution", "masked_scores", "verify"]


class Kind(IntEnum):
    """How the tokens of a row are chosen.

    Attributes:
        GREEDY: the most probable token.
        NOISY: by noise that draft and target share (a seed is given).
        DRAWN: drawn by inversion of the distribution.
    """

    GREEDY = 0
    NOISY = 1
    DRAWN = 2


@operator(
    "masked_scores(Tensor logits, Tensor masks, Tensor? mask_rows) -> Tensor",
    "masks:masked_scores",
)
def masked_scores(logits: torch.Tensor, masks: torch.Tensor, mask_rows: torch.Tensor | None) -> torch.Tensor:
    """Logits in a dtype to compute with, -inf where a mask forbids the token.

    Args:
        logits: ``[rows, width]``, of any floating dtype and strides; not changed.
        masks: ``int32[m, words]``.
        mask_rows: ``int64[rows]``, the mask row of each row; a negative one leaves it unconstrained. ``None``: row
            ``i`` has mask row ``i``.

    Returns:
        ``[rows, width]`` in the dtype of the logits, at least float32.
    """
    dtype = torch.promote_types(logits.dtype, torch.float32)
    scores = logits.to(dtype, copy=True, memory_format=torch.contiguous_format)
    apply_bitmask(scores, masks, mask_rows)
    return scores


@operator(
    "distribution(Tensor scores, Tensor temperature, Tensor? top_k, Tensor? top_p, Tensor? min_p, Tensor kinds)"
    " -> Tensor",
    "choices:distribution",
)
def distribution(
    scores: torch.Tensor,
    temperature: torch.Tensor,
    top_k: torch.Tensor | None,
    top_p: torch.Tensor | None,
    min_p: torch.Tensor | None,
    kinds: torch.Tensor,
) -> torch.Tensor:
    """The distributions of the next tokens: scores after temperature, top-k, top-p and min-p, normalised.

    Args:
        scores: ``[rows, n, width]``, -inf where the mask forbids a token.
        temperature: ``float32[rows]``, above 0.
        top_k: ``int64[rows]``, the width where all tokens are kept; ``None`` if no row has the option.
        top_p: ``float32[rows]``, infinite where all tokens are kept; or ``None``.
        min_p: ``float32[rows]``, 0 where all tokens are kept; or ``None``.
        kinds: ``int32[rows]``, numbers of :class:`Kind`.

    Returns:
        ``[rows, n, width]``, probabilities that sum to 1 over the width. Those of greedy rows are one-hot.
    """
    choice = torch.zeros_like(scores).scatter_(-1, scores.argmax(-1, keepdim=True), 1.0)
    # Measured from the highest score, so that no quotient overflows upwards.
    scores = (scores - scores.amax(-1, keepdim=True)) / temperature[:, None, None]
    if top_k is not None or top_p is not None:
        ordered, order = scores.sort(dim=-1, descending=True, stable=True)
        if top_k is not None:
            rank = torch.arange(scores.shape[-1], device=scores.device)
            ordered.masked_fill_(rank >= top_k[:, None, None], -torch.inf)
        if top_p is not None:
            probabilities = ordered.softmax(-1)
            before = probabilities.cumsum(-1) - probabilities
            ordered.masked_fill_(before >= top_p[:, None, None], -torch.inf)
        scores = scores.scatter(-1, order, ordered)
    probabilities = scores.softmax(-1)
    if min_p is not None:
        least = min_p[:, None, None] * probabilities.amax(-1, keepdim=True)
        probabilities.masked_fill_(probabilities < least, 0)
        probabilities /= probabilities.sum(-1, keepdim=True)
    return torch.where(kinds[:, None, None] == Kind.GREEDY, choice, probabilities)


@operator(
    "choices(Tensor distribution, Tensor positions, Tensor kinds, Tensor streams, bool noise) -> Tensor",
    "choices:choices",
)
def choices(
    distribution: torch.Tensor,
    positions: torch.Tensor,
    kinds: torch.Tensor,
    streams: torch.Tensor,
    noise: bool,
) -> torch.Tensor:
    """The tokens that shared noise (greedily: no noise) chooses at each position, whatever was drafted.

    Args:
        distribution: ``[rows, n, width]`` of :func:`distribution`.
        positions: ``int64[rows, n]``, of the tokens in their texts, from 0.
        kinds: ``int32[rows]``, numbers of :class:`Kind`.
        streams: ``int64[rows, 3]``, what the random numbers of each row depend on (:func:`~.noise.uniform`).
        noise: some row is of kind ``NOISY``.

    Returns:
        ``int64[rows, n]``; for rows whose tokens are drawn, the most probable ones.
    """
    chosen = distribution.argmax(-1)
    if noise:
        noisy = distribution.double().log() + gumbel(streams, positions, distribution.shape[-1])
        chosen = torch.where((kinds == Kind.NOISY)[:, None], noisy.argmax(-1), chosen)
    return chosen


@operator(
    "verify(Tensor logits, Tensor? masks, Tensor? mask_rows, Tensor temperature, Tensor? top_k, Tensor? top_p,"
    " Tensor? min_p, Tensor kinds, bool noise, Tensor streams, Tensor tokens, Tensor lengths, Tensor? draft,"
    " Tensor drawn, Tensor positions, Tensor rounds, bool draws, bool whole, int accept,"
    " int choose) -> (Tensor, Tensor, Tensor, Tensor)",
    "verdicts:verify",
)
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
    accept: int = Purpose.ACCEPT,
    choose: int = Purpose.CHOOSE,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """Verify drafts: how many tokens of each are accepted, and the token behind those.

    Args:
        logits: ``[rows, drafts + 1, width]``, the target's, before the first draft token and behind each: scores, or
            logits that the masks are still to be applied to.
        masks: ``int32[m, words]`` or ``int32[rows, drafts + 1, words]``; ``None``: no mask is to be applied.
        mask_rows: ``int64[rows, drafts + 1]``, as for :func:`masked_scores`.
        temperature, top_k, top_p, min_p, kinds: as for :func:`distribution`.
        noise, streams, positions: as for :func:`choices`.
        tokens: ``int64[rows, drafts]``, the draft tokens, padded by any token.
        lengths: ``int64[rows]``, how many tokens each draft has.
        draft: ``[rows, drafts, width]``, the distributions that drawn draft tokens were drawn from; may be ``None`` if
            none was drawn.
        drawn: ``bool[rows, drafts]``; the other draft tokens were certain to be proposed.
        rounds: ``int64[rows]``, the number of the round.
        draws: some row is of kind ``DRAWN``.
        whole: the distributions are wanted.
        accept, choose: the purposes of random numbers, of :class:`~.noise.Purpose`.

    Returns:
        how many tokens are accepted and the next token, ``int64[rows]`` each; the highest score at each position,
        ``[rows, drafts + 1]``, NaN or infinite where the logits are broken; and the target's distributions, empty if
        they are not wanted.
    """
    scores = logits
    if masks is not None:
        where = None if mask_rows is None else mask_rows.flatten()
        scores = masked_scores(logits.flatten(0, 1), masks.flatten(0, -2), where).view_as(logits)
    highest = scores.amax(-1)
    if not (draws or noise):  # all rows are greedy
        chosen = scores.argmax(-1)
        target = torch.zeros_like(scores).scatter_(-1, chosen[..., None], 1.0) if whole else scores
    else:
        target = distribution(scores, temperature, top_k, top_p, min_p, kinds)
        chosen = choices(target, positions, kinds, streams, noise)
    inside = torch.arange(tokens.shape[1], device=tokens.device) < lengths[:, None]
    if not draws:
        accepted = ((chosen[:, :-1] == tokens) & inside).cumprod(1).sum(1)
        following = chosen.gather(1, accepted[:, None])[:, 0]
        return accepted, following, highest, target if whole else target.new_empty(0)
    by_draw = (kinds == Kind.DRAWN)[:, None]
    # Each place of a text is decided once, so that its number need not depend on the round: a text in which no
    # draft token was drawn is the same for all drafts.
    chances = uniform(streams, positions, Purpose(choose), torch.zeros_like(rounds))
    drawn_each = draw(target.flatten(0, 1), chances.flatten()).view_as(chosen)
    chosen = torch.where(by_draw, drawn_each, chosen)
    uniforms = uniform(streams, positions[:, :-1], Purpose(accept), rounds)
    ratio = drawn & by_draw
    accepted = accepted_drafts(target, tokens, inside, draft, ratio, uniforms, chosen[:, :-1])
    following = chosen.gather(1, accepted[:, None])[:, 0]
    if draft is not None:
        residual = residual_distribution(target, tokens, accepted, lengths, draft, ratio)
        drawn_next = draw(residual, chances.gather(1, accepted[:, None])[:, 0])
        refused = (torch.cat((ratio, ratio.new_zeros(len(ratio), 1)), 1)).gather(1, accepted[:, None])[:, 0]
        following = torch.where(refused & (accepted < lengths), drawn_next, following)
    return accepted, following, highest, target if whole else target.new_empty(0)
