"""Texts from the model's distribution given that the whole text is valid: masked decoding with weights (particles).

A mask removes what cannot lead to a valid text, and the rest is normalised at each token. So the masked loop draws a
text with probability ``q(text) = p(text) / (m_1 m_2 ...)``, where ``m_t`` is the **allowed mass**: the probability that
the model, without a mask, gives to the tokens that are allowed at place ``t``. A text that the model reaches only where
most of its probability was masked out comes up too often. The product of the masses is what corrects this: with the
weight ``w = m_1 m_2 ...``, ``q(text) w = p(text)`` for every valid text, and the mean of ``w`` estimates ``p(valid)``
without bias.

Here, each text is chosen among several **particles**, texts that the masked loop writes side by side, in proportion to
their weights. Where the weights have become too unequal, particles of little weight are dropped between two rounds and
heavy ones go on as several (sequential Monte Carlo: Lew et al. 2023, arXiv:2306.03081; Loula et al. 2025,
arXiv:2504.13139). One particle is the masked loop; the more there are, the nearer is the distribution of the text to
``p(text | valid)``.

**Drafts change nothing.** The target's distribution is known at each place that was verified, and so is the mass there.
Whatever is drafted, what follows a committed text is distributed as the masked model says, so that particles may be
exchanged after any round, though they have different lengths then. But after which tokens that is depends on how long
drafts were. So that texts with a seed repeat, no drafts are made for them, unless particles are never exchanged.

**Budgets.** The model's texts are what it would write without a mask within ``max_tokens``, cut there as the masked
loop cuts them; valid are those that are ``whole`` (with ``on_limit="raise"``: that have ended, too). A particle that is
not whole when its budget is used up gets the weight 0. Before, where particles are exchanged, one of which no known
ending fits its budget counts as ``DOOMED`` times its weight, and if it stays all the same, its weight is set right: the
known ending is mostly, but not always the shortest, so that this may cost precision, but no text.

**Where the mass comes from.** The masked loop has it at hand: two sums over the logits of a place, which are exact
(``masses="exact"``, the default; a mask takes microseconds here). Only where masks are dear, as for a constraint whose
states are all new, can it pay to check tokens one by one instead (``masses="rejection"``,
:mod:`~grammarspec.decoding.rejection`): the token is the same, and the mass an unbiased estimate, so that the limit is
the same, too, with a little more noise in the weights. That way makes no drafts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import TYPE_CHECKING, Literal, cast

import numpy as np
import torch
from numpy.typing import NDArray

from grammarspec.bitmask import apply_bitmask
from grammarspec.decoding.batch import Batch
from grammarspec.decoding.choosers import Chooser, Proposal, Verdict, aligned_left
from grammarspec.decoding.draft import Draft
from grammarspec.decoding.noise import Purpose, Stream, gumbel_of, uniform_of
from grammarspec.decoding.particles import effective_size, log_mean, offspring, placed
from grammarspec.decoding.processing import Processing
from grammarspec.decoding.proposers.protocol import Proposer
from grammarspec.decoding.rejection import draw_taken
from grammarspec.decoding.requests import Generation, Request
from grammarspec.decoding.sampling import Sampling
from grammarspec.decoding.sequence_state import SequenceState
from grammarspec.decoding.targets import Target
from grammarspec.decoding.verification import draw_one
from grammarspec.errors import FAILURES, InvalidLogits
from grammarspec.vocabulary import Vocabulary

if TYPE_CHECKING:
    from transformers import PreTrainedModel

__all__ = ["DOOMED", "Conditional", "Evidence", "check_conditional", "generate_conditional"]

DOOMED = 1e-6
"""What a particle counts, as a multiple of its weight, behind which no known ending fits the budget."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """What the particles of a text say of the model's distribution.

    Attributes:
        log_valid: the natural logarithm of the estimate of ``p(valid)``, the probability that the model, without a
            mask, writes a valid text; -inf if no particle was valid. The estimate itself (not its logarithm) has no
            bias.
        effective: the effective sample size of the particles at the end, ``(sum w)^2 / sum w^2``: how many texts
            drawn from ``p(text | valid)`` they are worth at most. 0 if no particle was valid.
        particles: how many there were.
        resamplings: how often particles were exchanged.
    """

    log_valid: float
    effective: float
    particles: int
    resamplings: int

    @property
    def valid(self) -> float:
        """The estimate of ``p(valid)``."""
        return math.exp(self.log_valid)


@dataclass(frozen=True, slots=True)
class Conditional:
    """A text of the model's distribution given that it is valid, and the particles that it was chosen from.

    Attributes:
        text: the text. If no particle was valid, one that was cut short, whose ``whole`` says so.
        evidence: what the particles say of the model's distribution.
        population: the particles and their weights, which add up to 1: an average over them estimates an
            expectation under ``p(text | valid)``. Texts that go back to one particle may stand there several times. If
            none was valid, all weights are 0.
    """

    text: Generation
    evidence: Evidence
    population: list[tuple[Generation, float]]


def check_conditional(sampling: Sampling, particles: int) -> None:
    """Refuse options with which there is no distribution given that the text is valid.

    Raises:
        TypeError: ``particles`` is no whole number.
        ValueError: ``particles`` is below 1; nothing is drawn at random (temperature 0); ``top_k``, ``top_p`` or
            ``min_p`` cuts the distribution at each token, so that no valid text may be left in it; or
            ``on_limit="close"`` has texts end otherwise than the model would.
    """
    if isinstance(particles, bool) or not isinstance(particles, int):
        raise TypeError(f"particles must be a whole number, not {particles!r}")
    if particles < 1:
        raise ValueError(f"particles must be at least 1, not {particles}")
    if sampling.temperature == 0:
        hint = "give a temperature, such as 1, which is the model's own distribution"
        raise ValueError(f"law='conditional' draws texts at random, but temperature is 0\n  hint: {hint}")
    cuts = {"top_k": sampling.top_k, "top_p": sampling.nucleus, "min_p": sampling.min_p}
    cut = next((name for name, value in cuts.items() if value), None)
    if cut is not None:
        hint = f"leave {cut} out, and choose a lower temperature where texts are too wild"
        raise ValueError(f"law='conditional' weighs whole texts, and {cut} cuts each token's choice\n  hint: {hint}")
    if sampling.on_limit == "close":
        hint = "leave it out: texts that are not whole in time have no weight"
        raise ValueError(f"law='conditional' cannot steer texts to an ending (on_limit='close')\n  hint: {hint}")


def generate_conditional(
    model: PreTrainedModel | Target,
    requests: Sequence[Request],
    vocabulary: Vocabulary,
    *,
    particles: int = 8,
    threshold: float = 0.5,
    masses: Literal["exact", "rejection"] = "exact",
    proposers: Sequence[Proposer] = (),
    gamma: int = 16,
    adaptive: bool = True,
    between: Callable[[], object] | None = None,
) -> list[list[Conditional]]:
    """Generate texts towards the model's distribution given that they are valid.

    Args:
        model, vocabulary, proposers, gamma, adaptive: as for :func:`~grammarspec.decoding.loop.generate_batch`.
        requests: what to generate. Each of the ``n`` texts of a request has particles of its own. With a seed, the
            texts repeat, and there are no drafts in the batch if particles may be exchanged; the first particle of a
            text of which nothing was dropped is the text of :func:`~grammarspec.decoding.loop.generate_batch` with
            ``n`` times ``particles`` texts.
        particles: the number of texts that each text is chosen from.
        threshold: particles are exchanged when their effective sample size is below this part of their number; 0:
            never (importance sampling).
        masses: ``"exact"``: by sums over the logits and the mask. ``"rejection"``: by checking tokens one by one.
        between: called after each round; what it raises ends the generation.

    Returns:
        the ``n`` texts of each request. A text of which a particle ends with an error ends with that error.

    Raises:
        TypeError: as :func:`check_conditional`, or the model is no target.
        ValueError: as :func:`check_conditional`; ``threshold`` is not from 0 to 1; there is no such way to ``masses``,
            or it goes neither with ``proposers`` nor with ``logprobs``; and as
            :func:`~grammarspec.decoding.loop.generate_batch`.
        DraftMismatch, UnsupportedModel, PromptError: as :func:`~grammarspec.decoding.loop.generate_batch`.
    """
    if not 0 <= threshold <= 1:
        raise ValueError(f"threshold must be from 0 to 1, not {threshold}")
    if masses not in ("exact", "rejection"):
        raise ValueError(f"masses must be 'exact' or 'rejection', not {masses!r}")
    for request in requests:
        check_conditional(request.sampling, particles)
        if masses == "rejection" and request.sampling.logprobs:
            raise ValueError("masses='rejection' sees no masks, of which logprobs would tell: leave one of them out")
    if masses == "rejection" and proposers:
        raise ValueError("masses='rejection' makes no drafts: leave proposers out")
    if gamma < 0:
        raise ValueError(f"gamma must be at least 0, not {gamma}")
    if not requests:
        return []
    repeats = any(request.sampling.seed is not None for request in requests)
    if not gamma or (repeats and particles > 1 and threshold):
        proposers = ()
    with torch.inference_mode():
        batch = Batch(
            model,
            [replace(request, n=request.n * particles) for request in requests],
            vocabulary,
            proposers=proposers,
            gamma=gamma if proposers else 0,
            adaptive=adaptive,
        )
        weights = _Weights(batch, requests, particles, threshold, exact=masses == "exact")
        while batch.sequences:
            weights.round()
            if between is not None:
                between()
    return weights.results()


# ---------------------------------------------------------------------- the masses
class _ExactMasses:
    """A chooser that chooses as another does, and notes the allowed masses of the places that were verified.

    Args:
        chooser: chooses the tokens.
        processing: the sampling options of the rows.

    Attributes:
        log_masses: ``float64[rows, n]``, of the last round: the logarithms of the masses at the first ``n`` places
            behind each text; NaN where the logits have no distribution. They mean nothing behind the accepted tokens.
    """

    def __init__(self, chooser: Chooser, processing: Processing) -> None:
        self._chooser, self._processing = chooser, processing
        self.log_masses: NDArray[np.float64] = np.empty((0, 0))

    def verify(self, logits: torch.Tensor, draft: Draft, turn: int) -> list[Verdict]:
        """See :meth:`~grammarspec.decoding.choosers.Chooser.verify`."""
        verdicts = self._chooser.verify(logits, draft, turn)
        places = max(verdict.accepted for verdict in verdicts) + 1
        places = min(places, draft.gamma + 1)
        masked = free_scores(self._processing, aligned_left(logits, draft)[:, :places], draft)
        total = masked.logsumexp(-1)
        masks = draft.all_masks()[:, :places]
        apply_bitmask(masked.flatten(0, 1), masks.flatten(0, 1))
        found = torch.where(total.isfinite(), (masked.logsumexp(-1) - total).clamp(max=0), torch.nan)
        self.log_masses = found.double().cpu().numpy()
        return verdicts

    def propose(
        self, logits: torch.Tensor, draft: Draft, rows: Sequence[int], turn: int, *, masked: bool, confidence: bool
    ) -> list[Proposal | None]:
        """See :meth:`~grammarspec.decoding.choosers.Chooser.propose`."""
        return self._chooser.propose(logits, draft, rows, turn, masked=masked, confidence=confidence)


class _RejectionMasses:
    """A chooser without masks and drafts: tokens are drawn by their noise, and checked, until one is allowed.

    Args:
        processing: the sampling options of the rows.

    Attributes:
        log_masses: ``float64[rows, 1]``, of the last round: the logarithms of estimates of the masses.
    """

    def __init__(self, processing: Processing) -> None:
        self._processing = processing
        self.log_masses: NDArray[np.float64] = np.empty((0, 0))

    def verify(self, logits: torch.Tensor, draft: Draft, turn: int) -> list[Verdict]:
        """See :meth:`~grammarspec.decoding.choosers.Chooser.verify`; the draft has no tokens."""
        scores = free_scores(self._processing, logits, draft)[:, 0]
        highest = scores.amax(-1).tolist()
        probabilities = scores.softmax(-1).cpu().numpy()
        self.log_masses = np.full((len(scores), 1), np.nan)
        return [self._verify_row(row, probabilities[row], highest[row], draft) for row in range(len(scores))]

    def _verify_row(self, row: int, probabilities: NDArray[np.floating], highest: float, draft: Draft) -> Verdict:
        if not math.isfinite(highest):
            return Verdict(0, 0, [highest])
        sequence = draft.sequences[row]
        noise = gumbel_of(self._processing.streams[row], sequence.length, np.arange(len(probabilities)))

        def takes(token: int) -> bool:
            return sequence.matcher is None or sequence.matcher.validate_tokens([token]) == 1

        found = None
        with draft.guard(row):
            found = draw_taken(probabilities, noise, takes)
        if found is None:
            return Verdict(0, 0, [-math.inf])
        self.log_masses[row, 0] = math.log(found.mass)
        return Verdict(0, found.token, [highest])

    def propose(
        self, logits: torch.Tensor, draft: Draft, rows: Sequence[int], turn: int, *, masked: bool, confidence: bool
    ) -> list[Proposal | None]:
        """Nothing is drafted here."""
        return [None for _ in rows]


def free_scores(processing: Processing, logits: torch.Tensor, draft: Draft) -> torch.Tensor:
    """The scores of all tokens at the first places behind each text, without a mask, divided by the temperature.

    Args:
        processing: the sampling options of the rows.
        logits: ``[rows, n, width]`` of any floating dtype, behind the first ``n - 1`` tokens of each draft.
        draft: the draft of the round.

    Returns:
        ``[rows, n, width]`` of at least float32, a tensor of its own.
    """
    rows, places, width = logits.shape
    every = torch.full((rows, places, (width + 31) // 32), -1, dtype=torch.int32, device=logits.device)
    scores = processing.scores(logits, every, draft.padded()[:, : places - 1])
    temperature = [sampling.temperature for sampling in processing.samplings]
    return scores / torch.tensor(temperature, dtype=scores.dtype, device=scores.device)[:, None, None]


# ---------------------------------------------------------------------- the weights
class _Particles:
    """The particles of one text.

    Attributes:
        texts: the texts; those that have ended stay.
        samples: the sample number of each, on which its random numbers depend.
        logs: ``[particles]``, the logarithms of their weights.
        stream: what the random numbers by which particles are chosen depend on.
        resamplings: how often particles were exchanged.
        failed: a text that has ended with an error, if there is one.
    """

    def __init__(self, texts: list[SequenceState], samples: list[int], stream: Stream) -> None:
        self.texts, self.samples, self.stream = texts, samples, stream
        self.logs = np.zeros(len(texts))
        self.resamplings = 0
        self.failed: SequenceState | None = None

    def resample(self, threshold: float, fresh: Callable[[], int]) -> bool:
        """Exchange particles, if their weights are too unequal.

        Args:
            threshold: the effective sample size below which that is so, as a part of the number of particles.
            fresh: gives sample numbers that no text has had.

        Returns:
            whether particles were exchanged.
        """
        if len(self.texts) == 1 or all(text.finish_reason is not None for text in self.texts):
            return False
        twist = np.array([_log_twist(text) for text in self.texts])
        twisted = self.logs + twist
        if not 0 < effective_size(twisted) < threshold * len(self.texts):
            return False
        uniform = uniform_of(self.stream, self.resamplings, Purpose.RESAMPLE, 0)
        chosen = placed(offspring(twisted, uniform))
        self.logs = log_mean(twisted) - twist[chosen]
        self.texts = [self.texts[index] for index in chosen]
        # The numbers of a place were used for the text that is dropped here, further on than where its copy goes on.
        self.samples = [self.samples[place] if place == index else fresh() for place, index in enumerate(chosen)]
        self.resamplings += 1
        return True

    def result(self) -> Conditional:
        """The text that is chosen, once all particles have ended."""
        effective = effective_size(self.logs)
        evidence = Evidence(log_mean(self.logs), effective, len(self.texts), self.resamplings)
        found = {id(text): text.result() for text in self.texts}
        generations = [found[id(text)] for text in self.texts]
        if self.failed is not None or effective == 0:
            text = generations[0] if self.failed is None else self.failed.result()
            return Conditional(text, evidence, [(generation, 0.0) for generation in generations])
        weights = np.exp(self.logs - self.logs.max())
        index = draw_one(weights, uniform_of(self.stream, self.resamplings, Purpose.RESAMPLE, 1))
        shares = (weights / weights.sum()).tolist()
        return Conditional(generations[index], evidence, list(zip(generations, shares, strict=True)))


class _Weights:
    """The weights of all the texts of a batch.

    Args:
        batch: the batch, before its first round.
        requests: the requests, each with its number of texts, not of particles.
        particles, threshold: as for :func:`generate_conditional`.
        exact: whether masses are exact.
    """

    def __init__(
        self, batch: Batch, requests: Sequence[Request], particles: int, threshold: float, *, exact: bool
    ) -> None:
        self._batch, self._threshold = batch, threshold
        chooser = _ExactMasses(batch.chooser, batch.processing) if exact else _RejectionMasses(batch.processing)
        self._masses = chooser
        batch.chooser, batch.needs_masks = chooser, exact
        self._sizes = [request.n for request in requests]
        self._groups: list[_Particles] = []
        for first in range(0, len(batch.sequences), particles):
            texts = batch.sequences[first : first + particles]
            samples = [text.sample for text in texts]
            self._groups.append(_Particles(texts, samples, batch.processing.streams[first]))
        self._fresh = count(particles * max(self._sizes)).__next__

    def round(self) -> None:
        """Draft, verify and commit once; then weigh, and exchange particles where that is due."""
        texts = list(self._batch.sequences)
        lengths = [text.length for text in texts]
        self._batch.round()
        gained = {}
        for row, (text, length) in enumerate(zip(texts, lengths, strict=True)):
            gained[id(text)] = float(self._masses.log_masses[row, : text.length - length].sum())
        moved = False
        for group in self._groups:
            if group.failed is None and any(id(text) in gained for text in group.texts):
                self._weigh(group, gained)
                moved |= group.failed is None and group.resample(self._threshold, self._fresh)
        if moved:
            self._branch()

    def results(self) -> list[list[Conditional]]:
        """The texts of each request, once all particles have ended."""
        found = iter([group.result() for group in self._groups])
        return [[next(found) for _ in range(size)] for size in self._sizes]

    def _weigh(self, group: _Particles, gained: dict[int, float]) -> None:
        """Multiply the weights by the masses of a round; end the text if one of its particles has failed."""
        for place, text in enumerate(group.texts):
            if id(text) not in gained:
                continue
            mass = gained[id(text)]
            if math.isnan(mass) and text.finish_reason != "error":
                hint = "numbers may overflow in the model's dtype: load it in another, such as dtype=torch.float32"
                text.fail(InvalidLogits("the model's logits have no sum", f"token {text.length - 1} of the text", hint))
            if text.finish_reason == "error":
                group.failed = text
                error = cast(Exception, text.result().error)
                self._batch.end(group.texts, error)
                return
            group.logs[place] += mass
            if text.finish_reason is not None:
                result = text.result()  # without a constraint, every text is valid
                if result.error is not None or not (result.whole or text.matcher is None):
                    group.logs[place] = -np.inf

    def _branch(self) -> None:
        """Have the rows of the batch be the particles that go on."""
        row_of = {id(text): row for row, text in enumerate(self._batch.sequences)}
        going = [
            (group, place)
            for group in self._groups
            for place, text in enumerate(group.texts)
            if text.finish_reason is None
        ]
        rows = [row_of[id(group.texts[place])] for group, place in going]
        self._batch.branch(rows, [group.samples[place] for group, place in going])
        for (group, place), text in zip(going, self._batch.sequences, strict=True):
            group.texts[place] = text


def _log_twist(text: SequenceState) -> float:
    """By what a particle counts more or less than its weight says, as a logarithm: little if no known ending fits."""
    if text.matcher is None or text.finish_reason is not None:
        return 0.0
    try:
        missing = text.matcher.constraint.tokens_to_end(text.matcher.state)
    except FAILURES:
        return 0.0  # what exceeds a limit here is nothing that the text needs
    return math.log(DOOMED) if missing > text.room else 0.0
