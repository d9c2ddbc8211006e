"""Speculative sampling: draft tokens are accepted so that the result is distributed as the target's distribution.

Leviathan et al. 2023 (arXiv:2211.17192, section 2.3; the proof is in appendix A.1), Chen et al. 2023
(arXiv:2302.01318, theorem 1).
"""

from __future__ import annotations

import torch

__all__ = ["accepted_drafts", "draw", "residual_distribution"]


def accepted_drafts(
    target: torch.Tensor,
    tokens: torch.Tensor,
    inside: torch.Tensor,
    draft: torch.Tensor | None,
    drawn: torch.Tensor,
    uniforms: torch.Tensor,
) -> torch.Tensor:
    """How many tokens of each draft are accepted: those before the first with ``u * q(x) >= p(x)``.

    Args:
        target: ``[rows, drafts + 1, width]``, the target's distributions p.
        tokens: ``int64[rows, drafts]``, the draft tokens x, padded by anything.
        inside: ``bool[rows, drafts]``, which of them are no padding.
        draft: ``[rows, drafts, width]``, the distributions q that the drawn tokens were drawn from; may be ``None``
            where none was.
        drawn: ``bool[rows, drafts]``. Tokens that were not drawn were certain: their q has a single 1.
        uniforms: ``[rows, drafts]``, random numbers u strictly between 0 and 1.

    Returns:
        ``int64[rows]``.
    """
    p = target[:, :-1].gather(2, tokens[..., None])[..., 0]
    q = torch.ones_like(p)
    if draft is not None:
        q = torch.where(drawn, draft.gather(2, tokens[..., None])[..., 0], q)
    return ((uniforms * q < p) & inside).cumprod(1).sum(1)


def residual_distribution(
    target: torch.Tensor,
    tokens: torch.Tensor,
    accepted: torch.Tensor,
    lengths: torch.Tensor,
    draft: torch.Tensor | None,
    drawn: torch.Tensor,
) -> torch.Tensor:
    """What the token behind the accepted ones is drawn from.

    That is ``max(p - q, 0)`` where a draft token was rejected; and p where all were accepted (the bonus token), or
    where rounding leaves nothing of the difference.

    Args:
        target, tokens, draft, drawn: as for :func:`accepted_drafts`.
        accepted: ``int64[rows]``, how many tokens of each draft were accepted.
        lengths: ``int64[rows]``, how many tokens each draft has.

    Returns:
        ``[rows, width]``, not normalised.
    """
    rows = torch.arange(len(target), device=target.device)
    p = target[rows, accepted]
    if tokens.shape[1] == 0:
        return p
    at = accepted.clamp(max=tokens.shape[1] - 1)
    q = torch.zeros_like(p).scatter_(1, tokens[rows, at][:, None], 1.0)
    if draft is not None:
        q = torch.where(drawn[rows, at][:, None], draft[rows, at], q)
    residual = (p - q).clamp(min=0)
    rejected = (accepted < lengths)[:, None] & (residual.sum(-1, keepdim=True) > 0)
    return torch.where(rejected, residual, p)


def draw(weights: torch.Tensor, uniforms: torch.Tensor) -> torch.Tensor:
    """One token per row by inversion of the cumulative weights.

    Args:
        weights: ``[rows, width]``, not normalised, none negative, not all 0.
        uniforms: ``[rows]``, random numbers strictly between 0 and 1.

    Returns:
        ``int64[rows]``, tokens of weight above 0.
    """
    cumulative = weights.double().cumsum(-1)
    # The first token whose cumulative weight exceeds the number, which lies below the total.
    return torch.searchsorted(cumulative, uniforms[:, None] * cumulative[:, -1:], right=True)[:, 0]
