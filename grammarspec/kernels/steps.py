"""The kernel for steps: from states of an arena of frozen constraints and tokens to the next states."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

__all__ = ["step"]

_BLOCK = 128


@triton.jit
def step_kernel(
    states, tokens, class_of, following, next_offset, grammar_of, out, count, width, states_count, BLOCK: tl.constexpr
):
    """Step a block of states. Numbers that are not states or not tokens lead to state 1, the refused state."""
    index = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = index < count
    state = tl.load(states + index, mask=inside, other=0).to(tl.int64)
    token = tl.load(tokens + index, mask=inside, other=0).to(tl.int64)
    known = inside & (state >= 0) & (state < states_count) & (token >= 0) & (token < width)
    grammar = tl.load(grammar_of + state, mask=known, other=0).to(tl.int64)
    kind = tl.load(class_of + grammar * width + token, mask=known, other=0).to(tl.int64)
    offset = tl.load(next_offset + state, mask=known, other=0).to(tl.int64)
    tl.store(out + index, tl.load(following + offset + kind, mask=known, other=1), mask=inside)


def step(
    states: torch.Tensor,
    tokens: torch.Tensor,
    class_of: torch.Tensor,
    following: torch.Tensor,
    next_offset: torch.Tensor,
    grammar_of: torch.Tensor,
) -> torch.Tensor:
    """See :func:`grammarspec.frozen.stepping.step`."""
    out = torch.empty(states.shape, dtype=following.dtype, device=states.device)
    if (count := states.numel()) > 0:
        step_kernel[(triton.cdiv(count, _BLOCK),)](
            states.contiguous(), tokens.contiguous(), class_of, following, next_offset, grammar_of, out,
            count, class_of.shape[1], next_offset.shape[0], BLOCK=_BLOCK,
        )  # fmt: skip
    return out
