"""Settings of the loop measured side by side: the same texts under each of them, in turns.

Machines are busy at times, and slow down when they are warm: only what alternates can be compared. Cases and settings
go in; for each setting come out the seconds of each turn, and what its texts cost.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from statistics import median
from time import perf_counter
from typing import TYPE_CHECKING

from grammarspec._compiler import Constraint
from grammarspec.decoding.loop import generate_batch
from grammarspec.decoding.metrics import Statistics
from grammarspec.decoding.proposers import Proposer
from grammarspec.decoding.requests import Generation, Request
from grammarspec.decoding.sampling import Sampling
from grammarspec.decoding.targets import Target
from grammarspec.vocabulary import Vocabulary

if TYPE_CHECKING:
    from transformers import PreTrainedModel

__all__ = ["Case", "Interval", "Measurement", "Setting", "alternate"]


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
    """The median of some figures, and the least and the greatest of them."""

    median: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.median:.2f} [{self.low:.2f}, {self.high:.2f}]"


@dataclass(slots=True)
class Measurement:
    """What a setting costs.

    Attributes:
        setting: the setting.
        seconds: of all texts together, in each turn.
        statistics: of all texts of all turns together; times of a batch are counted once.
        texts: the texts of the last turn.
    """

    setting: Setting
    seconds: list[float] = field(default_factory=list)
    statistics: Statistics = field(default_factory=Statistics)
    texts: list[Generation] = field(default_factory=list)

    def speedup(self, base: Measurement) -> Interval:
        """How many times as fast as another setting this one is, turn by turn."""
        ratios = [theirs / ours for theirs, ours in zip(base.seconds, self.seconds, strict=True)]
        return Interval(median(ratios), min(ratios), max(ratios))

    @property
    def tokens_per_second(self) -> float:
        """Tokens of all texts over the seconds of all turns, prompts included."""
        return self.statistics.tokens / sum(self.seconds)

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

    Args:
        model, vocabulary: the target and its tokens.
        cases: what is generated.
        settings: what is compared. Each turn begins with another of them.
        turns: how often; one more, before these, is not counted: what is learnt in it counts for all.
        batch: how many texts are generated together.
        on_turn: called before each setting of each turn, with the number of the turn.

    Returns:
        one measurement for each setting.

    Raises:
        ValueError and others: as :func:`~grammarspec.decoding.generate_batch`; or the error of a text that failed.
    """
    found = [Measurement(setting) for setting in settings]
    for turn in range(turns + 1):
        for index in range(len(settings)):
            measurement = found[(index + turn) % len(settings)]
            if on_turn is not None:
                on_turn(turn, measurement.setting)
            spare = Measurement(measurement.setting) if turn == 0 else measurement
            spare.texts = []
            begin = perf_counter()
            for first in range(0, len(cases), batch):
                _generate(model, vocabulary, cases[first : first + batch], spare)
            spare.seconds.append(perf_counter() - begin)
    return found


def _generate(
    model: PreTrainedModel | Target, vocabulary: Vocabulary, cases: Sequence[Case], measurement: Measurement
) -> None:
    """Generate some texts together, and add what they cost."""
    setting = measurement.setting
    requests = [
        Request(
            prompt=case.prompt,
            matcher=case.constraint.matcher() if case.constraint is not None and setting.constrained else None,
            sampling=setting.sampling,
        )
        for case in cases
    ]
    found = generate_batch(
        model, requests, vocabulary, proposers=setting.proposers, gamma=setting.gamma, adaptive=setting.adaptive
    )
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
