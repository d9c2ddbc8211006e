"""Steps and masks of the states of an arena, as tensor operations: what a kernel may take the place of.

A state is one integer of a :class:`~grammarspec.frozen.FrozenArena`, in ``int64`` tensors of any shape. State 0 is
unconstrained; state 1 is refused, and absorbs.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from grammarspec.frozen import FrozenArena, stepping
from grammarspec.frozen.arena import REFUSED, UNCONSTRAINED

__all__ = ["REFUSED", "UNCONSTRAINED", "ArenaTensors", "mask_rows", "step"]


@dataclass(frozen=True, eq=False, slots=True)
class ArenaTensors:
    """The arrays of an arena on a device, and what is drafted in each of its states.

    Attributes:
        class_of, next, next_offset, grammar_of, mask_row, pool: as those of the arena.
        forced: ``int64[R]``, for each mask row, the token to draft where it applies; -1 if no text is forced there.
    """

    class_of: torch.Tensor
    next: torch.Tensor
    next_offset: torch.Tensor
    grammar_of: torch.Tensor
    mask_row: torch.Tensor
    pool: torch.Tensor
    forced: torch.Tensor

    @classmethod
    def of(cls, arena: FrozenArena, device: torch.device) -> ArenaTensors:
        """The tensors of an arena: on the CPU they share its memory, elsewhere they are copies."""
        tensors = arena.tensors(device)
        del tensors["accepting"]
        return cls(**tensors, forced=torch.full((len(arena.pool),), -1, dtype=torch.int64, device=device))


def step(arena: ArenaTensors, states: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
    """The states behind tokens; :data:`REFUSED` behind a token that is not allowed.

    Args:
        arena: the automata.
        states: ``int64[...]``, states of the arena.
        tokens: ``int64[...]`` of the same shape, from 0 to the width of the logits, exclusively.

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
        ``int32[..., words]``; all tokens of the vocabulary for state 0, none for state 1.
    """
    return arena.pool[arena.mask_row[states].long()]
