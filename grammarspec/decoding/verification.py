"""Speculative sampling: draft tokens are accepted so that the result is distributed as the target's distribution.

Leviathan et al. 2023 (arXiv:2211.17192, section 2.3; the proof is in appendix A.1), Chen et al. 2023
(arXiv:2302.01318, theorem 1).
"""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray

from grammarspec.kernels.dispatch import operator

__all__ = ["accepted_drafts", "accepts", "draw", "draw_one", "residual_distribution", "residual_of"]

_Number = TypeVar("_Number", float, torch.Tensor)


def accepts(p: _Number, q: _Number, uniform: _Number) -> Any:
    """Whether a draft token is accepted: ``u * q(x) < p(x)``, strictly, so that what p forbids never is.

    Args:
        p, q: the probabilities of the token under the target's and the draft's distribution.
        uniform: a random number strictly between 0 and 1.
    """
    return uniform * q < p


def accepted_drafts(
    target: torch.Tensor,
    tokens: torch.Tensor,
    inside: torch.Tensor,
    draft: torch.Tensor | None,
    drawn: torch.Tensor,
    uniforms: torch.Tensor,
    chosen: torch.Tensor | None = None,
) -> torch.Tensor:
    """How many tokens of each draft are accepted: those before the first with ``u * q(x) >= p(x)``.

    A token that was certain to be proposed, of which q is 1, may be compared with a token that was drawn from p:
    they are equal with probability p(x), and otherwise the drawn one is distributed as the residual distribution.

    Args:
        target: ``[rows, drafts + 1, width]``, the target's distributions p.
        tokens: ``int64[rows, drafts]``, the draft tokens x, padded by anything.
        inside: ``bool[rows, drafts]``, which of them are no padding.
        draft: ``[rows, drafts, width]``, the distributions q that the drawn tokens were drawn from; may be ``None``
            where none was.
        drawn: ``bool[rows, drafts]``. Tokens that were not drawn were certain: their q has a single 1.
        uniforms: ``[rows, drafts]``, random numbers u strictly between 0 and 1.
        chosen: ``int64[rows, drafts]``, tokens drawn from p, with which those that were certain are compared; ``None``:
            they are accepted by their probability, as the others are.

    Returns:
        ``int64[rows]``.
    """
    p = target[:, :-1].gather(2, tokens[..., None])[..., 0]
    q = torch.ones_like(p)
    if draft is not None:
        q = torch.where(drawn, draft.gather(2, tokens[..., None])[..., 0], q)
    each = accepts(p, q, uniforms)
    if chosen is not None:
        each = torch.where(drawn, each, chosen == tokens)
    accepted: torch.Tensor = (each & inside).cumprod(1).sum(1)
    return accepted


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


@operator("draw(Tensor weights, Tensor uniforms) -> Tensor", "choices:draw")
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


def residual_of(target: NDArray[Any], draft: NDArray[Any]) -> NDArray[Any]:
    """:func:`residual_distribution` of one rejected token that was drawn, on the CPU.

    Args:
        target: ``[n]``, the target's distribution p.
        draft: ``[n]``, the distribution q that the token was drawn from.

    Returns:
        ``[n]``, not normalised.
    """
    residual = np.maximum(target - draft, 0)
    return residual if residual.any() else target


def draw_one(weights: NDArray[Any], uniform: float) -> int:
    """:func:`draw` for one row, on the CPU.

    Args:
        weights: ``[n]``, not normalised, none negative, not all 0.
        uniform: a random number strictly between 0 and 1.

    Returns:
        an index of a weight above 0.
    """
    cumulative = weights.cumsum(dtype=np.float64)
    return int(cumulative.searchsorted(uniform * cumulative[-1], side="right"))
