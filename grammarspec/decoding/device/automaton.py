"""Steps and masks of states of an arena, as tensor operations.

A state is an integer of a :class:`~grammarspec.frozen.FrozenArena`, in ``int64`` tensors of any shape. State 0 is
unconstrained: it allows every token. State 1 is the refused state: no token leads out of it. State 2 is the missing
state: which state a text is in is known to the host only, and nothing is committed until the host has provided it.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from grammarspec.frozen import FrozenArena, stepping
from grammarspec.frozen.arena import MISSING, REFUSED, UNCONSTRAINED

__all__ = ["MISSING", "REFUSED", "UNCONSTRAINED", "ArenaTensors", "mask_rows", "step"]

_PREFERRED = 1 << 17  # entries of the table of preferred tokens


@dataclass(frozen=True, eq=False, slots=True)
class ArenaTensors:
    """The arrays of an arena on a device, and the tables of tokens to draft.

    Attributes:
        class_of, next, next_offset, grammar_of, mask_row, pool: the arrays of the arena.
        forced: ``int64[R]``, for each mask row, the token to draft; -1 if the row forces no text.
        preferred: ``int64[P]``, tokens that targets have chosen before (:class:`.PreferredDrafter`).
    """

    class_of: torch.Tensor
    next: torch.Tensor
    next_offset: torch.Tensor
    grammar_of: torch.Tensor
    mask_row: torch.Tensor
    pool: torch.Tensor
    forced: torch.Tensor
    preferred: torch.Tensor

    @classmethod
    def of(cls, arena: FrozenArena, device: torch.device) -> ArenaTensors:
        """The tensors of an arena; on the CPU they share its memory, on other devices they are copies."""
        tensors = arena.tensors(device)
        del tensors["accepting"]

        def nothing(size: int) -> torch.Tensor:
            return torch.full((size,), -1, dtype=torch.int64, device=device)

        return cls(**tensors, forced=nothing(len(arena.pool)), preferred=nothing(_PREFERRED))

    def shares(self, arena: FrozenArena) -> bool:
        """Whether the tensors are the memory of the arena itself, so that its changes need not be copied."""
        return self.next.data_ptr() == arena.next.ctypes.data


def step(arena: ArenaTensors, states: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
    """The states after tokens; :data:`REFUSED` after a token that is not allowed, :data:`MISSING` after one whose next
    state the arena does not have.

    Args:
        arena: the automata.
        states: ``int64[...]``, states of the arena.
        tokens: ``int64[...]`` of the same shape, each at least 0 and below the width of the logits.

    Returns:
        ``int64[...]``.
    """
    return stepping.step(states, tokens, arena.class_of, arena.next, arena.next_offset, arena.grammar_of).long()


def mask_rows(arena: ArenaTensors, states: torch.Tensor) -> torch.Tensor:
    """The mask rows of states.

    Args:
        arena: the automata.
        states: ``int64[...]``, states of the arena.

    Returns:
        ``int32[..., words]``; all tokens of the vocabulary for states 0 and 2, none for state 1.
    """
    return arena.pool[arena.mask_row[states].long()]
