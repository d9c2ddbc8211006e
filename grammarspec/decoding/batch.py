"""A batch of requests: rounds of draft, verify and commit.

In each round, proposers draft tokens for each row, one pass of the target model scores them, and each row commits its
accepted tokens and a bonus token; rows advance by different numbers of tokens. Without proposers, a round commits one
token per row: plain decoding.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import isfinite
from time import perf_counter
from typing import TYPE_CHECKING

import torch

from grammarspec.decoding.adaptive import Pace, experience_with
from grammarspec.decoding.choosers import Chooser, TensorChooser, Verdict
from grammarspec.decoding.draft import Draft, MaskRows
from grammarspec.decoding.host_chooser import HostChooser, row_by_row
from grammarspec.decoding.processing import Processing
from grammarspec.decoding.proposers.protocol import Proposer, propose, runs_model
from grammarspec.decoding.requests import Generation, Request, check_requests
from grammarspec.decoding.sequence_state import SequenceState, invalid_logits, sequences_of
from grammarspec.decoding.targets import Target, context_length, runner_for, width_of
from grammarspec.errors import FAILURES
from grammarspec.vocabulary import Vocabulary

if TYPE_CHECKING:
    from transformers import PreTrainedModel

__all__ = ["Batch", "chooser_for", "end_token_of"]

_TRIES = 32  # after a token behind which no ending fits: how many others are tried before an ending is appended


class Batch:
    """The texts that are generated together; :meth:`round` drafts, verifies and commits once, and drops ended rows.

    It is the :class:`~grammarspec.decoding.proposers.BatchView` of its proposers.

    Args:
        model, requests, vocabulary, proposers, gamma, adaptive, on_text: as for
            :func:`~grammarspec.decoding.loop.generate_batch`.
        feed: append forced text without scoring it (``forced="feed"``).
        joins: whether other batches are going to :meth:`join`, as texts end. It says when drafts pay, and nothing else.

    Attributes:
        sequences: the texts that have not ended: the rows of all tensors.
        target: the target, with what it has read.
        processing: the sampling options of the rows.
        chooser: chooses their tokens.
        needs_masks: whether it looks at the masks, which are filled before the target's pass.
        vocabulary: the target's tokens.
        end_token: the end-of-text token that the target is most likely to use.
        rounds: the number of rounds so far.

    Raises:
        ValueError, UnsupportedFeature: as :func:`~grammarspec.decoding.loop.generate_batch`.
    """

    def __init__(
        self,
        model: PreTrainedModel | Target,
        requests: Sequence[Request],
        vocabulary: Vocabulary,
        *,
        proposers: Sequence[Proposer],
        gamma: int,
        adaptive: bool = False,
        feed: bool = False,
        joins: bool = False,
        on_text: Callable[[int, int, bytes], None] | None = None,
    ) -> None:
        width = width_of(model)
        check_requests(requests, vocabulary, width)
        self.vocabulary = vocabulary
        self.end_token = end_token_of(model, vocabulary)
        self._proposers = proposers
        self._models = [proposer for proposer in proposers if runs_model(proposer)]
        self._pace: Pace | None = None
        if adaptive and proposers:
            drafting = self._models[0].name if self._models else None
            self._pace = Pace(experience_with(model), drafting, together=not joins)
        self._feed = feed
        self._requests = requests
        self.sequences = sequences_of(requests, vocabulary, context_length(model), on_text)
        self._all = list(self.sequences)
        self._longest = gamma
        self._gamma = self._useful_gamma()
        layers = {layer for proposer in proposers for layer in proposer.hidden_layers}
        self.target = runner_for(model, len(requests), drafts=bool(proposers), hidden_layers=layers)
        self._device = self.target.device
        self.processing = Processing(
            [sequence.sampling for sequence in self.sequences],
            [sequence.sample for sequence in self.sequences],
            [sequence.tokens for sequence in self.sequences],
            width,
            self._device,
        )
        self.chooser = chooser_for(self.processing, self._device)
        self.needs_masks = True
        self.rounds = 0
        self._phases: dict[str, float] = dict.fromkeys(("draft", "mask", "target", "verify", "commit"), 0.0)
        self._read_prompts()
        self._begin_anew()
        if feed:
            self._append_forced()
            self._drop_ended()

    def join(self, other: Batch) -> None:
        """Append the rows of another batch between two rounds: texts may begin while others are under way.

        The prompts of the other batch are read here, so that their length does not widen a pass of this one. Proposers
        begin anew: drafts change no text. ``target_passes`` and ``phase_seconds`` of a text are counted from here on.

        Args:
            other: a batch of the same model, vocabulary and proposers in which there was no round yet. It is not to be
                used again.

        Raises:
            ValueError: there was a round in the other batch; or this one has no texts left.
        """
        if other.rounds or not self.sequences:
            raise ValueError("a batch joins before its first round, and another that has texts left")
        for batch in (self, other):
            batch.read_ahead()
        drafted = sum(proposer.passes for proposer in self._proposers)
        for sequence in self.sequences:
            sequence.statistics.draft_passes += drafted
        for sequence in other.sequences:  # what the batch has done so far is not theirs
            sequence.statistics.target_passes = -self.target.passes
            sequence.statistics.phase_seconds = {name: -seconds for name, seconds in self._phases.items()}
        self.target.join(other.target)
        self.processing.join(other.processing)
        self.sequences += other.sequences
        self._gamma = self._useful_gamma()
        self._begin_anew()

    def branch(self, rows: Sequence[int], samples: Sequence[int]) -> None:
        """Go on with these rows between two rounds: one that is named several times goes on as so many texts.

        Proposers begin anew, as where another batch joins. :meth:`results` knows the texts that there were before.

        Args:
            rows: the rows; the others leave the batch.
            samples: the numbers of their samples from now on: texts of one row go on differently by them alone.
        """
        drafted = sum(proposer.passes for proposer in self._proposers)
        kept, before = [], set()
        for row in rows:
            kept.append(self.sequences[row].fork() if row in before else self.sequences[row])
            before.add(row)
        self.sequences = kept
        if not kept:
            return
        for sequence in kept:
            sequence.statistics.draft_passes += drafted
        self.target.select(rows)
        self.processing.select(rows, samples)
        self._begin_anew()

    def end(self, sequences: Sequence[SequenceState], error: Exception) -> None:
        """End some texts between two rounds with an error, such as one that nobody waits for any more."""
        for sequence in sequences:
            if sequence.finish_reason is None:
                sequence.fail(error)
        self._drop_ended()

    @property
    def phase_seconds(self) -> dict[str, float]:
        """Seconds of all rounds so far by phase: ``draft``, ``mask``, ``target``, ``verify``, ``commit``."""
        return dict(self._phases)

    def results(self) -> list[list[Generation]]:
        """The texts of each request that the batch was made with, once all have ended."""
        texts: list[list[Generation]] = [[] for _ in self._requests]
        for sequence in self._all:
            texts[sequence.request].append(sequence.result())
        return texts

    def round(self) -> Draft:
        """Draft, verify and commit once; rows that have ended leave the batch.

        Returns:
            the draft of the round, to be inspected.
        """
        begin = perf_counter()
        draft = Draft(
            self.sequences,
            [min(self._gamma, sequence.room - 1) for sequence in self.sequences],
            self._masks,
            self._device,
            self.target.width,
        )
        self._propose(draft)
        if self.needs_masks:
            draft.fill_masks()
        drafted = perf_counter()
        before = [sequence.tokens[read:] for sequence, read in zip(self.sequences, self.target.lengths, strict=True)]
        unread = [text + proposed for text, proposed in zip(before, draft.tokens, strict=True)]
        logits = self.target.read(unread, draft.gamma + 1)
        _check_width(logits, self.target.width)
        _synchronise(self._device)
        passed = perf_counter()
        verdicts = self.chooser.verify(logits, draft, self.rounds)
        verified = perf_counter()
        committed = self._commit_rows(draft, verdicts, logits)
        for row, sequence in enumerate(self.sequences):
            self.target.lengths[row] = min(self.target.lengths[row], len(sequence.tokens) - 1)
        for proposer in self._proposers:
            proposer.commit(draft, committed)
        if self._pace is not None:
            usual = all(len(text) == 1 for text in before)
            self._pace.learn(draft, committed, perf_counter() - drafted if usual else None)
        if self._feed:
            self._append_forced()
        end = perf_counter()
        self._phases["draft"] += drafted - begin - draft.mask_seconds
        self._phases["mask"] += draft.mask_seconds
        self._phases["target"] += passed - drafted
        self._phases["verify"] += verified - passed
        self._phases["commit"] += end - verified
        self.rounds += 1
        for sequence in self.sequences:
            sequence.end_round(end)
        self._drop_ended()
        return draft

    def _propose(self, draft: Draft) -> None:
        """Fill the drafts, as far as they are expected to pay."""
        if self._pace is None or not self._proposers:
            propose(self._proposers, draft)
            return
        propose([proposer for proposer in self._proposers if proposer not in self._models], draft)
        draft.limit(self._pace.length(draft, self._gamma))
        if self._models and draft.open():
            begin, passes = perf_counter(), sum(proposer.passes for proposer in self._models)
            propose(self._proposers, draft)
            steps = sum(proposer.passes for proposer in self._models) - passes
            if steps:
                self._pace.step((perf_counter() - begin) / steps)

    def _commit_rows(self, draft: Draft, verdicts: Sequence[Verdict], logits: torch.Tensor) -> list[int]:
        """Commit tokens to all rows; arguments and results of each row are those of :meth:`_commit`."""
        return [self._commit(row, draft, verdict, logits) for row, verdict in enumerate(verdicts)]

    def _commit(self, row: int, draft: Draft, verdict: Verdict, logits: torch.Tensor) -> int:
        """Commit the accepted draft tokens of a row, and the bonus token behind them.

        Args:
            row: the row of the batch.
            draft: the draft of the round.
            verdict: what verification says of it.
            logits: ``[rows, gamma + 1, width]``, the target's, of which rows are padded on the left.

        Returns:
            the number of committed draft tokens: fewer than accepted if the text ended before.
        """
        sequence, proposed = self.sequences[row], draft.tokens[row]
        statistics, before = sequence.statistics, sequence.length
        if row in draft.failed:
            sequence.fail(draft.failed[row])
            return 0
        draft.rollback(row)
        # Behind an accepted end-of-text token there is no bonus token.
        accepted = verdict.accepted
        ended = accepted > 0 and sequence.is_end(proposed[accepted - 1])
        for position, score in enumerate(verdict.highest[: accepted + (not ended)]):
            if not isfinite(score):
                sequence.fail(invalid_logits(score, before + position))
                return 0
        committed = written = 0
        try:
            chosen = proposed[:accepted] if ended else [*proposed[:accepted], verdict.following]
            for position, token in enumerate(chosen):
                if not sequence.commit(token):
                    written = self._steer(row, token, self._scores(row, draft, logits)[position])
                    break
                committed += position < accepted
                if sequence.finish_reason is not None:
                    break
        except FAILURES as error:
            sequence.fail(error)
        new = sequence.tokens[sequence.prompt_length + before :]
        if sequence.sampling.logprobs:
            scores = self._scores(row, draft, logits)
            sequence.add_logprobs(before, new[: len(new) - written], logits[row, -len(scores) :], scores)
        self.processing.count(row, new)
        statistics.rounds[len(proposed), committed] += 1
        statistics.proposed.update(draft.sources[row])
        statistics.accepted.update(draft.sources[row][:committed])
        statistics.refused += row in draft.refused
        statistics.closing_tokens += written
        statistics.bonus_tokens += len(new) - committed - written
        return committed

    def _scores(self, row: int, draft: Draft, logits: torch.Tensor) -> torch.Tensor:
        """The scores at the positions of the draft of a row: ``[draft tokens + 1, width]``.

        Args:
            row: the row of the batch.
            draft: the draft of the round.
            logits: ``[rows, gamma + 1, width]``, the target's, of which rows are padded on the left.
        """
        masks, tokens = torch.from_numpy(draft.mask_rows(row)).to(self._device), draft.tokens[row]
        prefix = torch.tensor(tokens, dtype=torch.int64, device=self._device)
        return self.processing.of_row(row).scores(logits[row : row + 1, -len(masks) :], masks[None], prefix[None])[0]

    def _steer(self, row: int, token: int, scores: torch.Tensor) -> int:
        """Commit another token in place of one behind which no ending fits, or else append an ending.

        Args:
            row: the row of the batch.
            token: the token that does not fit.
            scores: ``[width]``, by which it was chosen.

        Returns:
            the number of tokens of an ending that were appended.
        """
        sequence = self.sequences[row]
        distribution = self.processing.of_row(row).distribution(scores[None, None])[0, 0]
        scores = scores.clone()
        for attempt in range(_TRIES):
            scores[token], distribution[token] = -torch.inf, 0
            other = self.processing.choose_again(
                row, scores, distribution, sequence.length, self.rounds * _TRIES + attempt
            )
            if other is None:
                break
            if sequence.commit(other):
                return 0
            token = other
        return sequence.close()

    def _useful_gamma(self) -> int:
        """How long drafts may be: one leaves room for the bonus token, and memory is taken for no longer ones."""
        return min(self._longest, max(sequence.room for sequence in self.sequences) - 1)

    def _read_prompts(self) -> None:
        """Read the prompts of requests for several texts once, but for their last token, and copy keys and values."""
        if len(self.sequences) == len(self._requests):
            return
        prompts = [list(request.prompt[:-1]) if request.n > 1 else [] for request in self._requests]
        if any(prompts):
            self.target.read(prompts, 1)
        self.target.select([sequence.request for sequence in self.sequences])

    def read_ahead(self) -> None:
        """Read all but the last token of each text."""
        unread = [sequence.tokens[read:-1] for sequence, read in zip(self.sequences, self.target.lengths, strict=True)]
        if any(unread):
            self.target.read(unread, 1)

    def _append_forced(self) -> None:
        """Append the text that the grammar forces to each row, without scoring it (``forced="feed"``)."""
        for row, sequence in enumerate(self.sequences):
            if sequence.matcher is None or sequence.finish_reason is not None:
                continue
            before = sequence.length
            try:
                for token in sequence.matcher.forced_tokens()[: sequence.room]:
                    if not sequence.commit(token) or sequence.finish_reason is not None:
                        break
            except FAILURES as error:
                sequence.fail(error)
            sequence.statistics.fed_tokens += sequence.length - before
            self.processing.count(row, sequence.tokens[sequence.prompt_length + before :])

    def _begin_anew(self) -> None:
        """Make mask rows for the texts that there are now, and have proposers begin with these texts."""
        self._masks = MaskRows(len(self.sequences), self._gamma, self.vocabulary.size)
        for proposer in self._proposers:
            proposer.start(self)

    def _drop_ended(self) -> None:
        """Drop the rows that have ended from the batch."""
        kept = [row for row, sequence in enumerate(self.sequences) if sequence.finish_reason is None]
        if len(kept) == len(self.sequences):
            return
        for sequence in self.sequences:
            if sequence.finish_reason is not None:
                statistics = sequence.statistics
                statistics.target_passes += self.target.passes
                statistics.draft_passes += sum(proposer.passes for proposer in self._proposers)
                statistics.phase_seconds = {
                    name: seconds + statistics.phase_seconds.get(name, 0.0) for name, seconds in self._phases.items()
                }
        self.sequences = [self.sequences[row] for row in kept]
        if not kept:
            return
        self.target.select(kept)
        self.processing.select(kept)
        for proposer in self._proposers:
            proposer.select(kept)
        self._masks = MaskRows(len(kept), self._gamma, self.vocabulary.size)


def chooser_for(processing: Processing, device: torch.device) -> Chooser:
    """What chooses the tokens of a batch."""
    return HostChooser(processing) if row_by_row(processing.width, device) else TensorChooser(processing)


def end_token_of(model: PreTrainedModel | Target, vocabulary: Vocabulary) -> int:
    """The first end-of-text token of the generation configuration that the vocabulary knows, else the vocabulary's."""
    configured = getattr(getattr(model, "generation_config", None), "eos_token_id", None)
    ends = [] if configured is None else [configured] if isinstance(configured, int) else configured
    return next((token for token in ends if token in vocabulary.eos_token_ids), vocabulary.eos_token_ids[0])


def _check_width(logits: torch.Tensor, width: int) -> None:
    """Refuse a model that returns other numbers of logits than it says.

    Raises:
        ValueError: it does.
    """
    if logits.shape[-1] != width:
        raise ValueError(
            f"the model returns {logits.shape[-1]} logits, its configuration says {width}: "
            "set vocab_size of its configuration to what its output layer returns"
        )


def _synchronise(device: torch.device) -> None:
    """Wait for the device, so that the time measured for a pass is that of the pass."""
    if device.type != "cpu":
        torch.accelerator.synchronize(device)
