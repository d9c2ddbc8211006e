"""Speculative sampling: drafts accepted so that what comes out is distributed as the target's law.

Leviathan et al. 2023 (arXiv:2211.17192, theorem 3.5), Chen et al. 2023 (arXiv:2302.01318).
"""

from __future__ import annotations

import torch

__all__ = ["accepted_drafts", "draw", "residual_law"]


def accepted_drafts(
    law: torch.Tensor,
    tokens: torch.Tensor,
    inside: torch.Tensor,
    laws: torch.Tensor | None,
    drawn: torch.Tensor,
    uniforms: torch.Tensor,
) -> torch.Tensor:
    """How many tokens of each draft are accepted: those before the first with ``u * q(x) >= p(x)``.

    Args:
        law: ``[rows, drafts + 1, width]``, the target's.
        tokens: ``int64[rows, drafts]``, padded by anything.
        inside: ``bool[rows, drafts]``, which of them are no padding.
        laws: ``[rows, drafts, width]``, what the drawn tokens were drawn from; may be ``None`` where none was.
        drawn: ``bool[rows, drafts]``. Tokens that were not drawn were certain: their law has a single 1.
        uniforms: ``[rows, drafts]``, random numbers strictly between 0 and 1.

    Returns:
        ``int64[rows]``.
    """
    target = law[:, :-1].gather(2, tokens[..., None])[..., 0]
    draft = torch.ones_like(target)
    if laws is not None:
        draft = torch.where(drawn, laws.gather(2, tokens[..., None])[..., 0], draft)
    return ((uniforms * draft < target) & inside).cumprod(1).sum(1)


def residual_law(
    law: torch.Tensor,
    tokens: torch.Tensor,
    accepted: torch.Tensor,
    lengths: torch.Tensor,
    laws: torch.Tensor | None,
    drawn: torch.Tensor,
) -> torch.Tensor:
    """What the token behind the accepted ones is drawn from.

    That is ``max(p - q, 0)`` where a draft token was refused, and the target's law where all were accepted, or where
    rounding leaves nothing of the difference.

    Returns:
        ``[rows, width]``, not normalised.
    """
    rows = torch.arange(len(law), device=law.device)
    target = law[rows, accepted]
    if tokens.shape[1] == 0:
        return target
    at = accepted.clamp(max=tokens.shape[1] - 1)
    draft = torch.zeros_like(target).scatter_(1, tokens[rows, at][:, None], 1.0)
    if laws is not None:
        draft = torch.where(drawn[rows, at][:, None], laws[rows, at], draft)
    residual = (target - draft).clamp(min=0)
    refused = (accepted < lengths)[:, None] & (residual.sum(-1, keepdim=True) > 0)
    return torch.where(refused, residual, target)


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
