"""Settings of the loop measured side by side: the same texts under each of them, in turns.

Machines are busy at times, and slow down when they are warm: only what alternates can be compared, and of several turns
the median counts. A machine may be busy for a second, so what alternates are single rounds of the same texts. Cases and
settings go in; for each setting, out come the seconds of each turn and the costs of texts.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from random import Random
from statistics import median
from time import perf_counter
from typing import TYPE_CHECKING

import torch

from grammarspec._compiler import Constraint
from grammarspec.decoding.batch import Batch
from grammarspec.decoding.loop import generate_batch, on_cuda
from grammarspec.decoding.metrics import Statistics
from grammarspec.decoding.proposers import Proposer
from grammarspec.decoding.requests import Generation, Request
from grammarspec.decoding.sampling import Sampling
from grammarspec.decoding.targets import Target
from grammarspec.decoding.windows import unwrapped
from grammarspec.vocabulary import Vocabulary

if TYPE_CHECKING:
    from transformers import PreTrainedModel

__all__ = ["Case", "Interval", "Measurement", "Setting", "alternate"]

_RESAMPLES = 1000
_ENDED = object()


@dataclass(frozen=True, slots=True)
class Case:
    """A text to be generated.

    Attributes:
        prompt: the tokens of the prompt.
        constraint: what the text must conform to; ``None``: anything.
    """

    prompt: Sequence[int]
    constraint: Constraint | None = None


@dataclass(frozen=True, slots=True)
class Setting:
    """A way to generate the texts; see :func:`~grammarspec.decoding.generate_batch`.

    Attributes:
        name: what reports call it.
        constrained: whether the constraints of the cases are applied.
    """

    name: str
    proposers: Sequence[Proposer] = ()
    gamma: int = 16
    adaptive: bool = True
    sampling: Sampling = field(default_factory=Sampling)
    constrained: bool = True


@dataclass(frozen=True, slots=True)
class Interval:
    """A measured figure, and the interval in which 95 of 100 such measurements lie."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.2f} [{self.low:.2f}, {self.high:.2f}]"

    @classmethod
    def of_ratio(cls, above: Sequence[float], below: Sequence[float]) -> Interval:
        """The ratio of two sums whose terms were measured in pairs.

        The interval is that of the bootstrap over the pairs (Efron 1979), whose random numbers are always the same.

        Args:
            above, below: the terms.
        """
        generator, pairs = Random(0), list(zip(above, below, strict=True))
        ratios = []
        for _ in range(_RESAMPLES):
            drawn = generator.choices(pairs, k=len(pairs))
            ratios.append(sum(term for term, _ in drawn) / sum(term for _, term in drawn))
        ratios.sort()
        return cls(sum(above) / sum(below), ratios[round(0.025 * _RESAMPLES)], ratios[round(0.975 * _RESAMPLES) - 1])


@dataclass(slots=True)
class Measurement:
    """What a setting costs.

    Attributes:
        setting: the setting.
        seconds: by turn, of each batch of texts.
        statistics: of all texts of all turns together; times of a batch are counted once. Times between rounds, and so
            those of prompts and of decoding, include rounds of other settings.
        texts: the texts of the last turn.
    """

    setting: Setting
    seconds: list[list[float]] = field(default_factory=list)
    statistics: Statistics = field(default_factory=Statistics)
    texts: list[Generation] = field(default_factory=list)

    @property
    def medians(self) -> list[float]:
        """The seconds of each batch of texts: the median of all turns."""
        return [median(turns) for turns in zip(*self.seconds, strict=True)]

    def speedup(self, base: Measurement) -> Interval:
        """How many times as fast as another setting this one is, over all texts; the interval is by batches."""
        return Interval.of_ratio(base.medians, self.medians)

    @property
    def tokens_per_second(self) -> float:
        """Tokens of all texts over the seconds of all turns, prompts included."""
        return self.statistics.tokens / sum(map(sum, self.seconds))

    @property
    def phases(self) -> dict[str, float]:
        """Milliseconds of each phase of a round, by its name."""
        rounds = max(self.statistics.target_passes, 1)
        return {name: 1e3 * seconds / rounds for name, seconds in self.statistics.phase_seconds.items()}


def alternate(
    model: PreTrainedModel | Target,
    vocabulary: Vocabulary,
    cases: Sequence[Case],
    settings: Sequence[Setting],
    *,
    turns: int,
    batch: int = 1,
    on_turn: Callable[[int, Setting], None] | None = None,
) -> list[Measurement]:
    """Generate the texts of all cases under each setting, in turns.

    Each batch of texts is generated under all settings at once, by one round of each after the other; on CUDA devices,
    where rounds do not wait for each other, by all rounds of one after those of another. The memory of the batches is
    taken at the same time.

    Args:
        model, vocabulary: the target and its tokens.
        cases: what is generated.
        settings: what is compared: each batch under all of them, beginning with another one each time.
        turns: how often; one more, before these, is not counted: what is learnt in it counts for all.
        batch: how many texts are generated together.
        on_turn: called before each batch under each setting, with the number of the turn.

    Returns:
        one measurement for each setting.

    Raises:
        ValueError and others: as :func:`~grammarspec.decoding.generate_batch`; or the error of a text that failed.
    """
    found = [Measurement(setting) for setting in settings]
    for turn in range(turns + 1):
        counted = found if turn else [Measurement(setting) for setting in settings]
        for measurement in counted:
            measurement.texts = []
            measurement.seconds.append([])
        for number, first in enumerate(range(0, len(cases), batch)):
            order = [counted[(index + turn + number) % len(settings)] for index in range(len(settings))]
            if on_turn is not None:
                for measurement in order:
                    on_turn(turn, measurement.setting)
            _generate_together(model, vocabulary, cases[first : first + batch], order)
    return found


def _generate_together(
    model: PreTrainedModel | Target, vocabulary: Vocabulary, cases: Sequence[Case], measurements: Sequence[Measurement]
) -> None:
    """Generate some texts under several settings, by a round of each after the other, and add what they cost."""
    under_way = [(each, _rounds(model, vocabulary, cases, each)) for each in measurements]
    for measurement in measurements:
        measurement.seconds[-1].append(0.0)
    while under_way:
        going = []
        for measurement, rounds in under_way:
            begin = perf_counter()
            ended = next(rounds, _ENDED) is _ENDED
            measurement.seconds[-1][-1] += perf_counter() - begin
            if not ended:
                going.append((measurement, rounds))
        under_way = going[1:] + going[:1]


def _rounds(
    model: PreTrainedModel | Target, vocabulary: Vocabulary, cases: Sequence[Case], measurement: Measurement
) -> Iterator[None]:
    """Generate some texts together, and add their statistics; between two rounds, others may run."""
    setting = measurement.setting
    requests = [
        Request(
            prompt=case.prompt,
            matcher=case.constraint.matcher() if case.constraint is not None and setting.constrained else None,
            sampling=setting.sampling,
        )
        for case in cases
    ]
    # Proposers serve one batch at a time, and settings may share them. What copies learn for the process, they share.
    proposers = [copy.copy(proposer) for proposer in setting.proposers] if setting.gamma else []
    gamma, adaptive = setting.gamma if proposers else 0, setting.adaptive
    if on_cuda(unwrapped(model)):
        found = generate_batch(model, requests, vocabulary, proposers=proposers, gamma=gamma, adaptive=adaptive)
    else:
        with torch.inference_mode():
            batch = Batch(model, requests, vocabulary, proposers=proposers, gamma=gamma, adaptive=adaptive)
        while batch.sequences:
            yield
            with torch.inference_mode():
                batch.round()
        found = batch.results()
    texts = [text for [text] in found]
    for text in texts:
        if text.error is not None:
            raise text.error
    together = Statistics()
    for text in texts:
        together.add(text.statistics)
    # Passes and phases are those of the whole batch: the text that ended last knows them all.
    last = max((text.statistics for text in texts), key=lambda statistics: statistics.target_passes)
    together.target_passes, together.draft_passes = last.target_passes, last.draft_passes
    together.phase_seconds = dict(last.phase_seconds)
    measurement.statistics.add(together)
    measurement.texts += texts
