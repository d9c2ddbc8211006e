"""Drafts by a smaller model (Leviathan et al. 2023, Chen et al. 2023)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from grammarspec.decoding.draft import Draft
from grammarspec.decoding.proposers.draft_sampler import DraftSampler
from grammarspec.decoding.proposers.protocol import BatchView
from grammarspec.decoding.targets import Runner, Target, context_length, runner_for, width_of
from grammarspec.errors import DraftMismatch
from grammarspec.grammars import marks
from grammarspec.vocabulary import Vocabulary

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel

__all__ = ["DraftModel"]


class DraftModel:
    """Drafts by a causal language model with the target's tokens, one token of each row per forward pass.

    Tokens that it has not read yet (those of other proposers, and the bonus token) are read in the same pass. A row
    whose text has a token beyond the model's vocabulary (padding of a wider target) gets no draft.

    Args:
        model: a decoder-only model of transformers, or a :class:`~grammarspec.decoding.Target`.
        masked: apply the grammar mask to its logits. Without it, tokens may be drafted that the constraint refuses; the
            generated text has the same distribution, at a lower acceptance rate.
        confidence: end a draft behind a token whose probability under the draft's scores, at temperature 1, is lower
            than this, from 0 to 1; the token itself stays.
        draft_to_target: ``int64[draft width]``, the target's token id for each of the model's logits; ``None`` if the
            ids are the same.

    Attributes:
        model: the model.
        sampler: how its tokens are chosen.

    Raises:
        ValueError: ``confidence`` is out of range.
        DraftMismatch: (when a batch begins) the target's vocabulary has tokens that the model cannot read.
        UnsupportedModel: (when a batch begins) as :class:`~grammarspec.decoding.model_runner.ModelRunner`.
        TypeError: ``model`` is neither.
    """

    name = "model"
    runs_model = True
    hidden_layers: Sequence[int] = ()

    def __init__(
        self,
        model: PreTrainedModel | Target,
        *,
        masked: bool = True,
        confidence: float = 0.0,
        draft_to_target: torch.Tensor | None = None,
    ) -> None:
        self.model = model
        self._known = width_of(model)
        self.sampler = DraftSampler(self.name, masked, confidence, draft_to_target)
        self._batch: BatchView
        self._runner: Runner

    @property
    def passes(self) -> int:
        """The number of forward passes made for the current batch."""
        return self._runner.passes

    @property
    def runner(self) -> Runner:
        """What the model has read of each row of the current batch."""
        return self._runner

    def start(self, batch: BatchView) -> None:
        """Begin a new batch.

        Raises:
            DraftMismatch: as :meth:`check`.
            UnsupportedModel: as :class:`~grammarspec.decoding.model_runner.ModelRunner`.
        """
        self.check(batch.vocabulary, batch.target.width)
        self._batch = batch
        self._runner = self.new_runner(batch)

    def check(self, vocabulary: Vocabulary, width: int) -> None:
        """Check that the model can draft for a target.

        Args:
            vocabulary: the target's tokens.
            width: the number of the target's logits.

        Raises:
            DraftMismatch: the target has a token of text, or one that ends texts, that the draft model does not know;
                or ``draft_to_target`` names tokens that the target does not have.
        """
        self.sampler.check(width)
        for token in range(self._known, vocabulary.size):
            if (text := vocabulary.marked([token])) or token in vocabulary.eos_token_ids:
                name = type(self.model).__name__
                what = f"the target's token {token} is {marks.named(text)!r}, and it knows {self._known} tokens only"
                raise DraftMismatch(f"{name} cannot draft: {what}")

    def new_runner(self, batch: BatchView) -> Runner:
        """The runner that reads the texts of a new batch.

        Raises:
            UnsupportedModel: as :class:`~grammarspec.decoding.model_runner.ModelRunner`.
        """
        return runner_for(self.model, len(batch.sequences))

    def select(self, rows: Sequence[int]) -> None:
        self._runner.select(rows)

    def propose(self, draft: Draft, rows: Sequence[int]) -> None:
        runner = self._runner
        context = context_length(self.model)
        if context is not None:
            rows = [row for row in rows if len(draft.text(row)) <= context]
        unread: list[list[int]] = [[] for _ in draft.sequences]
        for row in rows:
            unread[row] = draft.text(row)[runner.lengths[row] :]
            if max(unread[row], default=0) >= self._known:
                unread[row] = []
        rows = [row for row in rows if unread[row]]
        if not rows:
            return
        logits = runner.read(unread, 1)[:, -1].to(self._batch.target.device)
        self.sampler.append(logits, draft, rows, self._batch)

    def commit(self, draft: Draft, accepted: Sequence[int]) -> None:
        # The last committed token is the bonus token, which this model has not read; what it read there was rejected.
        for row, sequence in enumerate(self._batch.sequences):
            self._runner.lengths[row] = min(self._runner.lengths[row], len(sequence.tokens) - 1)
