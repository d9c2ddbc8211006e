"""Steps of many states of an arena at once, as an operation of tensors on any device."""

from __future__ import annotations

import torch

from grammarspec.kernels.dispatch import operator

__all__ = ["step"]


@operator(
    "step(Tensor states, Tensor tokens, Tensor class_of, Tensor following, Tensor next_offset, Tensor grammar_of)"
    " -> Tensor",
    "steps:step",
)
def step(
    states: torch.Tensor,
    tokens: torch.Tensor,
    class_of: torch.Tensor,
    following: torch.Tensor,
    next_offset: torch.Tensor,
    grammar_of: torch.Tensor,
) -> torch.Tensor:
    """The states after tokens, as :meth:`grammarspec.FrozenArena.step` has them.

    What is no state or no token, as padding of drafts by -1, leads to the refused state, so that nothing has to be
    raised, for which the host would have to wait.

    Args:
        states: ``int32[...]`` or ``int64[...]``, states of the arena.
        tokens: ``int32[...]`` or ``int64[...]``, of the same shape.
        class_of, following, next_offset, grammar_of: of :meth:`grammarspec.FrozenArena.tensors`; ``following`` is
            ``next`` there.

    Returns:
        ``int32[...]``.
    """
    count, width = next_offset.shape[0], class_of.shape[1]
    known = (states >= 0) & (states < count) & (tokens >= 0) & (tokens < width)
    states, tokens = states.long().clamp(0, count - 1), tokens.long().clamp(0, width - 1)
    found = following[next_offset[states] + class_of[grammar_of[states].long(), tokens]]
    return torch.where(known, found, 1)
