"""Drafts by a smaller model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from grammarspec.decoding.proposers.choosing import Choosing, choose
from grammarspec.decoding.reader import Reader, context_length
from grammarspec.errors import DraftMismatch
from grammarspec.grammars import marks

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel

    from grammarspec.decoding.draft import Draft
    from grammarspec.decoding.loop import Batch

__all__ = ["DraftModel"]


class DraftModel:
    """A causal language model with the target's tokens, one token of each row's draft per pass.

    What it has not read when it is asked (text that others drafted, the target's own token) it reads in the same pass.
    Behind padding of the target's vocabulary that is beyond its own it drafts nothing.

    Args:
        model: a decoder-only model of transformers.
        masked: draw from its law under the constraint. Otherwise it may propose what the constraint refuses; what
            comes out has the same law, at a lower acceptance rate.
        confidence: end a draft behind a token that the draft's scores, at temperature 1, give a lower probability than
            this; the token itself stays.
        draft_to_target: ``int64[the draft's logits]``, the target's token for each of the draft's, if they differ.

    Raises:
        DraftMismatch: (when a batch begins) the target has more tokens than the model can read.
    """

    name = "model"
    hidden_layers: Sequence[int] = ()

    def __init__(
        self,
        model: PreTrainedModel,
        *,
        masked: bool = True,
        confidence: float = 0.0,
        draft_to_target: torch.Tensor | None = None,
    ) -> None:
        self.model = model
        self._known: int = model.config.get_text_config().vocab_size
        self._choosing = Choosing(masked, confidence, draft_to_target)
        self._batch: Batch
        self._reader: Reader

    @property
    def passes(self) -> int:
        """Forward passes made for the current batch."""
        return self._reader.passes

    def start(self, batch: Batch) -> None:
        vocabulary = batch.vocabulary
        for token in range(self._known, vocabulary.size):
            if (said := vocabulary.marked([token])) or token in vocabulary.eos_token_ids:
                name = type(self.model).__name__
                what = f"the target's token {token} is {marks.named(said)!r}, and it knows {self._known} tokens only"
                raise DraftMismatch(f"{name} cannot draft: {what}")
        self._batch = batch
        self._reader = self.reader(batch)

    def reader(self, batch: Batch) -> Reader:
        """What reads the texts for the drafts."""
        return Reader(self.model, len(batch.lanes))

    def select(self, rows: Sequence[int]) -> None:
        self._reader.select(rows)

    def propose(self, draft: Draft, rows: Sequence[int]) -> None:
        reader = self._reader
        context = context_length(self.model)
        if context is not None:
            rows = [row for row in rows if len(draft.text(row)) <= context]
        unread: list[list[int]] = [[] for _ in draft.lanes]
        for row in rows:
            unread[row] = draft.text(row)[reader.lengths[row] :]
            if max(unread[row], default=0) >= self._known:
                unread[row] = []
        rows = [row for row in rows if unread[row]]
        if not rows:
            return
        logits = reader.read(unread, 1)[:, -1].to(self._batch.device)
        choose(self.name, logits, draft, rows, self._batch, self._choosing)

    def settle(self, draft: Draft, accepted: Sequence[int]) -> None:
        # The draft's own prediction behind what is accepted was another token than the target's, or was never read.
        for row, lane in enumerate(self._batch.lanes):
            self._reader.lengths[row] = min(self._reader.lengths[row], len(lane.tokens) - 1)
