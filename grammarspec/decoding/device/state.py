"""The state of a batch on the device, and the draft of a round: tensors of fixed shapes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import torch

from grammarspec.decoding.device.automaton import MISSING, REFUSED, UNCONSTRAINED, ArenaTensors, mask_rows, step

__all__ = ["Draft", "Rows"]


@dataclass(eq=False, slots=True)
class Rows:
    """The rows of a batch. All tensors are on the device of the target, and are changed in place only.

    Attributes:
        tokens: ``int64[rows, slots]``, the prompt, the text, and after them the draft of the round. Values that are not
            to be kept are written to the last column.
        lengths: ``int64[rows]``, the number of tokens of prompt and text.
        prompts: ``int64[rows]``, the number of tokens of the prompt.
        limits: ``int64[rows]``, the greatest length of prompt and text.
        states: ``int64[rows]``, the states of the arena after the texts. Nothing is committed to a row whose state is
            missing.
        done: ``bool[rows]``, whether the text has ended: nothing is committed to such a row.
        turn: ``int64[rows]``, the number of the round.
        hidden: ``[rows, hidden size]``, for heads, the target's last hidden states at the token before the last one; of
            size 0 if there is no head.
        known: ``bool[rows]``, whether ``hidden`` has a value.
    """

    tokens: torch.Tensor
    lengths: torch.Tensor
    prompts: torch.Tensor
    limits: torch.Tensor
    states: torch.Tensor
    done: torch.Tensor
    turn: torch.Tensor
    hidden: torch.Tensor
    known: torch.Tensor

    @classmethod
    def of(
        cls,
        prompts: Sequence[Sequence[int]],
        limits: Sequence[int],
        states: Sequence[int],
        slots: int,
        device: torch.device,
        hidden: tuple[int, torch.dtype] = (0, torch.float32),
    ) -> Rows:
        """The rows of a new batch.

        Args:
            prompts: the tokens of each row's prompt.
            limits: the greatest length of prompt and text of each row.
            states: the start state of each row in the arena.
            slots: the number of columns of ``tokens``.
            device: the device of the tensors.
            hidden: the size and the dtype of hidden states.
        """
        tokens = torch.zeros(len(prompts), slots, dtype=torch.int64)
        for row, prompt in enumerate(prompts):
            tokens[row, : len(prompt)] = torch.tensor(prompt)

        def column(values: Sequence[int]) -> torch.Tensor:
            return torch.tensor(values, dtype=torch.int64, device=device)

        lengths = column([len(prompt) for prompt in prompts])
        nothing = torch.zeros(len(prompts), dtype=torch.bool, device=device)
        return cls(
            tokens=tokens.to(device),
            lengths=lengths,
            prompts=lengths.clone(),
            limits=column(limits),
            states=column(states),
            done=nothing,
            turn=torch.zeros_like(lengths),
            hidden=torch.zeros(len(prompts), hidden[0], dtype=hidden[1], device=device),
            known=nothing.clone(),
        )

    def tensors(self) -> list[torch.Tensor]:
        """All tensors, in the order of the attributes."""
        return [getattr(self, entry.name) for entry in fields(self)]

    def load(self, rows: Rows) -> None:
        """Copy other rows, as many and of as many slots, in place of these."""
        for mine, theirs in zip(self.tensors(), rows.tensors(), strict=True):
            mine.copy_(theirs)

    def first(self, rows: int) -> Rows:
        """The first rows, as views: changes of them change these rows, too."""
        return Rows(*(tensor[:rows] for tensor in self.tensors()))

    def move(self, index: torch.Tensor) -> None:
        """Copy some rows to the front, in this order.

        Args:
            index: ``int64[rows]``, on the device.
        """
        for tensor in self.tensors():
            tensor[: len(index)] = tensor[index]  # the right side is a copy


class Draft:
    """The draft of a round, to which one token of each row is appended at a time.

    Position ``i`` of a row is after its first ``i`` draft tokens. Rows whose draft has ended get placeholders, and
    their masks are those of state 0, which allows every token. A draft ends after a token whose next state is missing.

    Args:
        rows: the rows; draft tokens are written after their texts.
        arena: the states of constraints.
        ends: ``bool[width]``, which tokens end texts.

    Attributes:
        rows, arena, ends: see above.
        size: the number of tokens that each row has so far, placeholders included.
        lengths: ``int64[rows]``, the number of draft tokens of each row, without placeholders.
        open: ``bool[rows]``, the rows that may get more tokens.
        tokens: for each of the ``size`` places, ``int64[rows]``: the tokens.
        sources: for each of these places, ``int64[rows]``: the numbers of the drafters.
        drawn: for each of these places, ``bool[rows]``: whether the token was drawn from a distribution.
        distributions: for each of these places, ``[rows, width]``: these distributions; ``None`` if no row has one.
        states: for each position, ``int64[rows]``: the state there.
        masks: for each position, ``int32[rows, words]``: the mask there. After the end of a text, after a refused
            token, and where the state is missing, it allows every token, as no token is ever committed from there.
        refused: ``bool[rows]``, whether the constraint does not allow the last draft token.
    """

    def __init__(self, rows: Rows, arena: ArenaTensors, ends: torch.Tensor) -> None:
        self.rows, self.arena, self.ends = rows, arena, ends
        self.size = 0
        self.lengths = torch.zeros_like(rows.lengths)
        # A draft leaves room for the token that the target chooses after it.
        self.open = ~self.rests() & (rows.lengths + 1 < rows.limits)
        self.tokens: list[torch.Tensor] = []
        self.sources: list[torch.Tensor] = []
        self.drawn: list[torch.Tensor] = []
        self.distributions: list[torch.Tensor | None] = []
        self.states = [rows.states]
        self.masks = [mask_rows(arena, rows.states)]
        self.refused = torch.zeros_like(rows.done)

    def rests(self) -> torch.Tensor:
        """``bool[rows]``, the rows to which nothing is committed: they have ended, or their state is missing."""
        return self.rows.done | (self.rows.states == MISSING)

    @property
    def positions(self) -> torch.Tensor:
        """``int64[rows]``, the position in its text of each row's next token, from 0."""
        return self.rows.lengths - self.rows.prompts + self.size

    def prefix(self) -> torch.Tensor:
        """The tokens so far, ``int64[rows, size]``; -1 for placeholders."""
        if not self.tokens:
            return self.lengths.new_zeros(len(self.lengths), 0)
        used = torch.arange(self.size, device=self.lengths.device) < self.lengths[:, None]
        return torch.where(used, torch.stack(self.tokens, 1), -1)

    def last_committed(self) -> torch.Tensor:
        """``int64[rows]``, the last token of each text, before the draft."""
        return self.rows.tokens.gather(1, self.rows.lengths[:, None] - 1)[:, 0]

    def append(
        self,
        tokens: torch.Tensor,
        found: torch.Tensor,
        sources: torch.Tensor,
        drawn: torch.Tensor,
        distribution: torch.Tensor | None,
        behind: torch.Tensor,
        go_on: torch.Tensor,
    ) -> None:
        """Append a token to the rows that are open and have one; the drafts of the others end.

        Args:
            tokens: ``int64[rows]``, the tokens.
            found: ``bool[rows]``, which rows have a token.
            sources: ``int64[rows]``, the numbers of their drafters.
            drawn: ``bool[rows]``, which tokens were drawn from the distribution.
            distribution: ``[rows, width]``, or ``None``.
            behind: ``int64[rows]``, the states after the tokens.
            go_on: ``bool[rows]``, the rows whose draft may continue after the token.
        """
        taken = self.open & found
        refused = taken & (behind == REFUSED)
        ended = taken & self.ends[tokens]
        tokens = torch.where(taken, tokens, 0)
        column = (self.rows.lengths + self.size).clamp(max=self.rows.tokens.shape[1] - 1)
        self.rows.tokens.scatter_(1, column[:, None], tokens[:, None])
        self.tokens.append(tokens)
        self.sources.append(sources)
        self.drawn.append(drawn & taken)
        self.distributions.append(distribution)
        self.size += 1
        self.lengths = self.lengths + taken
        self.refused = self.refused | refused
        self.states.append(torch.where(taken, behind, self.states[-1]))
        self.masks.append(mask_rows(self.arena, torch.where(taken & ~refused & ~ended, behind, UNCONSTRAINED)))
        known = ~refused & ~ended & (behind != MISSING)
        self.open = taken & go_on & known & (self.rows.lengths + self.size + 1 < self.rows.limits)

    def behind(self, tokens: torch.Tensor) -> torch.Tensor:
        """The states after tokens that would be appended to the draft, ``int64[rows]``."""
        return step(self.arena, self.states[-1], tokens)
