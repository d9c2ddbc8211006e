"""A batch that never ends: requests join it between two rounds, and texts leave it one by one.

:func:`~grammarspec.decoding.loop.generate_batch` knows all its requests beforehand. A server does not: here, requests
come in whenever there is room, and each round hands out the texts that it has ended.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import torch

from grammarspec.decoding.loop import Batch
from grammarspec.decoding.proposers.protocol import Proposer
from grammarspec.decoding.requests import Request
from grammarspec.decoding.sequence_state import SequenceState
from grammarspec.decoding.targets import Target
from grammarspec.vocabulary import Vocabulary

if TYPE_CHECKING:
    from transformers import PreTrainedModel

__all__ = ["RunningBatch"]


class RunningBatch:
    """A batch that requests join while others are under way. It is used by one thread.

    What is promised of :func:`~grammarspec.decoding.loop.generate_batch` holds here: the texts of a request have the
    distribution of the masked model alone; greedily, or with a seed, they are the same whatever else is in the batch,
    but for rounding in batches of other shapes.

    Args:
        model, vocabulary, proposers, gamma, adaptive: as for :func:`~grammarspec.decoding.loop.generate_batch`. The
            proposers serve no other batch meanwhile.

    Attributes:
        rounds: how many there were.
        phase_seconds: seconds of all rounds by phase: ``draft``, ``mask``, ``target``, ``verify``, ``commit``.
    """

    def __init__(
        self,
        model: PreTrainedModel | Target,
        vocabulary: Vocabulary,
        *,
        proposers: Sequence[Proposer] = (),
        gamma: int = 16,
        adaptive: bool = True,
    ) -> None:
        self._model, self._vocabulary, self._adaptive = model, vocabulary, adaptive
        self._proposers = list(proposers) if gamma else []
        self._gamma = gamma if proposers else 0
        self._batch: Batch | None = None
        self.rounds = 0
        self.phase_seconds: dict[str, float] = {}

    @property
    def sequences(self) -> list[SequenceState]:
        """The texts that have not ended."""
        return [] if self._batch is None else self._batch.sequences

    def add(self, request: Request, on_text: Callable[[int, bytes], None] | None = None) -> list[SequenceState]:
        """Begin the texts of a request. Its prompt is read here, if others are under way.

        Args:
            request: the request.
            on_text: called with the number of the sample and the next bytes of its text, in :meth:`round`. It must not
                raise.

        Returns:
            its ``n`` texts; :meth:`round` returns each once it has ended.

        Raises:
            ValueError, PromptError, BudgetTooSmall, UnsupportedFeature: as
                :func:`~grammarspec.decoding.loop.generate_batch`; then nothing has joined.
        """
        running = self._batch
        with torch.inference_mode():
            # The proposers of the batch that runs must not begin another.
            begun = Batch(
                self._model,
                [request],
                self._vocabulary,
                proposers=self._proposers if running is None else (),
                gamma=self._gamma,
                adaptive=self._adaptive,
                on_text=None if on_text is None else lambda _request, sample, data: on_text(sample, data),
            )
            texts = list(begun.sequences)
            if running is None:
                self._batch = begun
            else:
                running.join(begun)
        return texts

    def round(self) -> list[SequenceState]:
        """Draft, verify and commit once.

        Returns:
            the texts that have ended in this round, and have left the batch.

        Raises:
            any error of the model or a proposer; then the batch is to be dropped (:meth:`drop`). What is wrong with one
            text ends that text alone.
        """
        if self._batch is None:
            return []
        before, spent = list(self._batch.sequences), self._batch.phase_seconds
        with torch.inference_mode():
            self._batch.round()
        self.rounds += 1
        for phase, seconds in self._batch.phase_seconds.items():
            self.phase_seconds[phase] = self.phase_seconds.get(phase, 0.0) + seconds - spent[phase]
        return self._ended(before)

    def end(self, sequences: Sequence[SequenceState], error: Exception) -> None:
        """End some texts now, such as those that nobody waits for any more; the others go on.

        Args:
            sequences: the texts; those that have ended are left as they are.
            error: what their generations have as ``error``.
        """
        if self._batch is not None:
            before = list(self._batch.sequences)
            with torch.inference_mode():
                self._batch.end(sequences, error)
            self._ended(before)

    def drop(self) -> list[SequenceState]:
        """Give up all texts, after an error of the whole batch.

        Returns:
            the texts that had not ended.
        """
        texts, self._batch = self.sequences, None
        return [text for text in texts if text.finish_reason is None]

    def _ended(self, before: Sequence[SequenceState]) -> list[SequenceState]:
        if self._batch is not None and not self._batch.sequences:
            self._batch = None  # with its cache
        return [sequence for sequence in before if sequence.finish_reason is not None]
