"""Drafts by a small head on the target's hidden states (Hydra: Ankner et al. 2024; EAGLE: Li et al. 2024)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol, cast

import torch
from torch import nn

from grammarspec.decoding.draft import Draft
from grammarspec.decoding.proposers.draft_sampler import DraftSampler
from grammarspec.decoding.proposers.protocol import BatchView

if TYPE_CHECKING:
    from transformers import PreTrainedModel

__all__ = ["HeadProposer", "HiddenStateHead", "ResidualHead"]


class HiddenStateHead(Protocol):
    """A head: from the hidden state behind a token and the next token, it predicts the token after that.

    Attributes:
        draft_to_target: ``int64[head width]``, the target's token id for each of the head's logits; ``None`` if the ids
            are the same. (EAGLE checkpoints store differences: add the head's own ids.)
    """

    draft_to_target: torch.Tensor | None

    def __call__(self, hidden: torch.Tensor, tokens: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Read one token of each row.

        Args:
            hidden: ``[rows, hidden size]``, behind the tokens before: the target's last hidden state (normalised), or
                the one that the head returned.
            tokens: ``int64[rows]``, the next tokens.

        Returns:
            the logits behind ``tokens``, ``[rows, head width]``, and the head's hidden state there,
            ``[rows, hidden size]``.
        """
        ...


class ResidualHead(nn.Module):
    """A small head: ``h' = h + V silu(W [embedding(x); h])``, and the target's own output layer on ``h'``.

    Untrained it is ``h' = h``; train it to predict the target's hidden states.

    Args:
        model: the target, whose embedding and output layer it shares.
        width: the size of the inner layer.
    """

    draft_to_target: torch.Tensor | None = None

    def __init__(self, model: PreTrainedModel, width: int) -> None:
        super().__init__()
        size = model.config.get_text_config().hidden_size
        # In a tuple, torch does not count them as parameters of the head.
        self._ends = (model.get_input_embeddings(), cast(Any, model).get_output_embeddings())
        self.inner = nn.Linear(2 * size, width, dtype=model.dtype, device=model.device)
        self.outer = nn.Linear(width, size, dtype=model.dtype, device=model.device)
        nn.init.zeros_(self.outer.weight)
        nn.init.zeros_(self.outer.bias)

    def forward(self, hidden: torch.Tensor, tokens: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """See :meth:`HiddenStateHead.__call__`."""
        embedding, output = self._ends
        joined = torch.cat((embedding(tokens), hidden), -1)
        hidden = hidden + self.outer(nn.functional.silu(self.inner(joined)))
        return output(hidden), hidden


class HeadProposer:
    """Drafts one token after another by a head, beginning with the target's last hidden state of the last round.

    Args:
        head: the head, on the target's device.
        masked, confidence: as for :class:`DraftModel`.

    Attributes:
        head: the head.
        sampler: how its tokens are chosen.

    Raises:
        ValueError: ``confidence`` is out of range.
    """

    name = "head"
    runs_model = True
    hidden_layers: Sequence[int] = (-1,)

    def __init__(self, head: HiddenStateHead, *, masked: bool = True, confidence: float = 0.0) -> None:
        self.head = head
        self.sampler = DraftSampler(self.name, masked, confidence, head.draft_to_target)
        self.passes = 0
        self._batch: BatchView
        self._hidden: torch.Tensor | None = None
        self._read: list[int] = []  # how many tokens of each row's text come before the hidden state

    def start(self, batch: BatchView) -> None:
        self.sampler.check(batch.target.width)
        self._batch, self._hidden, self.passes = batch, None, 0
        self._read = [0] * len(batch.sequences)

    def select(self, rows: Sequence[int]) -> None:
        self._read = [self._read[row] for row in rows]
        if self._hidden is not None:
            self._hidden = self._hidden[torch.tensor(rows, device=self._hidden.device)]

    def propose(self, draft: Draft, rows: Sequence[int]) -> None:
        if self._hidden is None:
            return
        # Tokens that the head has not read (of other proposers, say) are read first, one per call; rows may differ.
        while unread := [row for row in rows if self._read[row] < len(draft.text(row))]:
            tokens = [0] * len(draft.sequences)
            for row in unread:
                tokens[row] = draft.text(row)[self._read[row]]
                self._read[row] += 1
            logits, hidden = self.head(self._hidden, torch.tensor(tokens, device=self._hidden.device))
            self.passes += 1
            moved = torch.tensor([row in unread for row in range(len(tokens))], device=hidden.device)[:, None]
            self._hidden = torch.where(moved, hidden, self._hidden)  # pyright: ignore  # it takes it for None
            ready = [row for row in unread if self._read[row] == len(draft.text(row))]
            if ready:
                self.sampler.append(logits, draft, ready, self._batch)
                rows = [row for row in rows if row not in ready]

    def commit(self, draft: Draft, accepted: Sequence[int]) -> None:
        hidden = self._batch.target.hidden[-1]
        # The pass padded rows on the left: the last hidden state of each row is behind its whole draft.
        last = [n - len(tokens) - 1 for n, tokens in zip(accepted, draft.tokens, strict=True)]
        rows = torch.arange(len(accepted), device=hidden.device)
        self._hidden = hidden[rows, torch.tensor(last, device=hidden.device)]
        self._read = [len(sequence.tokens) - 1 for sequence in draft.sequences]
