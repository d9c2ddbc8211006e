"""Continuous batching: requests join a running batch between two rounds, and each text leaves it when it ends.

:func:`~grammarspec.decoding.loop.generate_batch` gets all requests at once. A server does not know them beforehand:
here, requests can be added before any round, and each round returns the texts that have ended in it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import torch

from grammarspec.decoding.batch import Batch
from grammarspec.decoding.proposers.protocol import Proposer
from grammarspec.decoding.requests import Request
from grammarspec.decoding.sequence_state import SequenceState
from grammarspec.decoding.targets import Target
from grammarspec.vocabulary import Vocabulary

if TYPE_CHECKING:
    from transformers import PreTrainedModel

__all__ = ["JoinError", "RunningBatch"]


class JoinError(RuntimeError):
    """A request could not be joined to the running texts. The batch cannot be used any more and must be dropped."""


class RunningBatch:
    """A batch that requests can join while others are running. Only one thread may use it.

    It promises what :func:`~grammarspec.decoding.loop.generate_batch` promises: the texts of a request have the
    distribution of the masked model. Decoded greedily or with a seed, they do not depend on the other requests in the
    batch, except for rounding errors that depend on the shape of the batch.

    Args:
        model, vocabulary, proposers, gamma, adaptive: as for :func:`~grammarspec.decoding.loop.generate_batch`. The
            proposers may not be used for another batch meanwhile.

    Attributes:
        rounds: the number of rounds so far.
        phase_seconds: seconds of all rounds by phase: ``draft``, ``mask``, ``target``, ``verify``, ``commit``.

    Raises:
        ValueError: ``gamma`` is negative.
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
        if gamma < 0:
            raise ValueError(f"gamma must be at least 0, not {gamma}")
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
        """Add a request. If the batch has other texts, its prompt is read here; otherwise in the next :meth:`round`.

        Args:
            request: the request.
            on_text: called in :meth:`round` with the number of a sample and the next bytes of its text. It must not
                raise an error.

        Returns:
            the ``n`` texts of the request; :meth:`round` returns each again once it has ended.

        Raises:
            ValueError, PromptError, BudgetTooSmall, UnsupportedFeature: as
                :func:`~grammarspec.decoding.loop.generate_batch`. After these, and after any error of the model while
                it reads the prompt, the batch has not changed.
            JoinError: the request could not be joined to the running texts; the error that was raised is its cause.
                The caller must then call :meth:`drop`.
        """
        running = self._batch
        with torch.inference_mode():
            # Proposers serve one batch: those of the running batch must not be started for the new one.
            begun = Batch(
                self._model,
                [request],
                self._vocabulary,
                proposers=self._proposers if running is None else (),
                gamma=self._gamma,
                adaptive=self._adaptive,
                joins=True,
                on_text=None if on_text is None else lambda _request, sample, data: on_text(sample, data),
            )
            texts = list(begun.sequences)
            if running is None:
                self._batch = begun
            else:
                begun.read_ahead()
                try:
                    running.join(begun)
                except Exception as error:
                    raise JoinError(f"a request could not join the batch, which must be dropped: {error}") from error
        return texts

    def round(self) -> list[SequenceState]:
        """Run one round: draft, verify and commit tokens of all texts.

        Returns:
            the texts that have ended in this round; they have left the batch.

        Raises:
            any error of the model or a proposer; the caller must then call :meth:`drop`. An error of one text's
            constraint is not raised: it ends that text alone.
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
        """End some texts now, for example those of a client that has disconnected; the others continue.

        Args:
            sequences: the texts; those that have ended already do not change.
            error: the ``error`` of their generations.
        """
        if self._batch is not None:
            before = list(self._batch.sequences)
            with torch.inference_mode():
                self._batch.end(sequences, error)
            self._ended(before)

    def drop(self) -> list[SequenceState]:
        """Remove all texts, after an error of the whole batch.

        Returns:
            the texts that had not ended.
        """
        texts, self._batch = self.sequences, None
        return [text for text in texts if text.finish_reason is None]

    def _ended(self, before: Sequence[SequenceState]) -> list[SequenceState]:
        if self._batch is not None and not self._batch.sequences:
            self._batch = None  # with its cache
        return [sequence for sequence in before if sequence.finish_reason is not None]
