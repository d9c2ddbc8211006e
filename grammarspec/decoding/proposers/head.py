"""Drafts by a head on the target's hidden states (Hydra, EAGLE: Li et al. 2024)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol, cast

import torch
from torch import nn

from grammarspec.decoding.proposers.choosing import Choosing, choose

if TYPE_CHECKING:
    from transformers import PreTrainedModel

    from grammarspec.decoding.draft import Draft
    from grammarspec.decoding.loop import Batch

__all__ = ["HeadProposer", "HiddenStateHead", "ResidualHead"]


class HiddenStateHead(Protocol):
    """Predicts from the hidden state behind a token and the token after it.

    Attributes:
        draft_to_target: ``int64[the head's logits]``, the target's token for each of the head's (EAGLE checkpoints
            store differences: add the head's own ids), or ``None`` where they are the same.
    """

    draft_to_target: torch.Tensor | None

    def __call__(self, hidden: torch.Tensor, tokens: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Step on by one token.

        Args:
            hidden: ``[rows, width]``, the target's last hidden state (normalised) behind the tokens before, or the
                head's own.
            tokens: ``int64[rows]``, the tokens that follow.

        Returns:
            logits of the tokens behind those, ``[rows, the head's width]``, and the head's hidden state,
            ``[rows, width]``.
        """
        ...


class ResidualHead(nn.Module):
    """A small head: ``h' = h + V silu(W [embedding(x); h])``, and the target's own output layer on ``h'``.

    It begins as ``h' = h``; train it to predict the target's hidden states.

    Args:
        model: the target, whose embedding and output layer are shared.
        width: of the hidden layer.
    """

    draft_to_target: torch.Tensor | None = None

    def __init__(self, model: PreTrainedModel, width: int) -> None:
        super().__init__()
        size = model.config.get_text_config().hidden_size
        # Held in a tuple, they are no parameters of the head.
        self._ends = (model.get_input_embeddings(), cast(Any, model).get_output_embeddings())
        self.inner = nn.Linear(2 * size, width, dtype=model.dtype, device=model.device)
        self.outer = nn.Linear(width, size, dtype=model.dtype, device=model.device)
        nn.init.zeros_(self.outer.weight)
        nn.init.zeros_(self.outer.bias)

    def forward(self, hidden: torch.Tensor, tokens: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        embedding, output = self._ends
        joined = torch.cat((embedding(tokens), hidden), -1)
        hidden = hidden + self.outer(nn.functional.silu(self.inner(joined)))
        return output(hidden), hidden


class HeadProposer:
    """Drafts one token after another by a head, from where the target's hidden states end.

    Args:
        head: its parameters are on the target's device.
        masked, confidence: as for :class:`DraftModel`.
    """

    name = "head"
    hidden_layers: Sequence[int] = (-1,)

    def __init__(self, head: HiddenStateHead, *, masked: bool = True, confidence: float = 0.0) -> None:
        self._head = head
        self._choosing = Choosing(masked, confidence, head.draft_to_target)
        self.passes = 0
        self._batch: Batch
        self._hidden: torch.Tensor | None = None
        self._read: list[int] = []

    def start(self, batch: Batch) -> None:
        self._batch, self._hidden, self.passes = batch, None, 0
        self._read = [0] * len(batch.lanes)

    def select(self, rows: Sequence[int]) -> None:
        self._read = [self._read[row] for row in rows]
        if self._hidden is not None:
            self._hidden = self._hidden[torch.tensor(rows, device=self._hidden.device)]

    def propose(self, draft: Draft, rows: Sequence[int]) -> None:
        if self._hidden is None:
            return
        # Tokens that others drafted are stepped through first, each row at its own pace.
        while unread := [row for row in rows if self._read[row] < len(draft.text(row))]:
            tokens = [0] * len(draft.lanes)
            for row in unread:
                tokens[row] = draft.text(row)[self._read[row]]
                self._read[row] += 1
            logits, hidden = self._head(self._hidden, torch.tensor(tokens, device=self._hidden.device))
            self.passes += 1
            moved = torch.tensor([row in unread for row in range(len(tokens))], device=hidden.device)[:, None]
            self._hidden = torch.where(moved, hidden, self._hidden)  # pyright: ignore  # it does not see that it is set
            ready = [row for row in unread if self._read[row] == len(draft.text(row))]
            if ready:
                choose(self.name, logits, draft, ready, self._batch, self._choosing)
                rows = [row for row in rows if row not in ready]

    def settle(self, draft: Draft, accepted: Sequence[int]) -> None:
        hidden = self._batch.target.hidden[-1]
        # The rows of the pass ended together: the last state stands behind the whole of each draft.
        last = [n - len(tokens) - 1 for n, tokens in zip(accepted, draft.tokens, strict=True)]
        rows = torch.arange(len(accepted), device=hidden.device)
        self._hidden = hidden[rows, torch.tensor(last, device=hidden.device)]
        self._read = [len(lane.tokens) - 1 for lane in draft.lanes]
