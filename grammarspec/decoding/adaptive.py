"""How long drafts should be: chosen for each round, from measured costs and measured acceptance.

A draft pays if the tokens that it is expected to save cost more than the longer pass that verifies it. Neither is known
beforehand: a pass over five tokens takes as long as one over a single token on one machine, and nearly twice as long on
another; and drafts are nearly all accepted in one text, and hardly ever in the next. So both are measured while texts
are generated, and kept for the process: :class:`Costs` and :class:`Acceptance`, together the :class:`Experience` with a
target. :class:`Pace` puts them together. Where no draft pays, it drafts none; since what would have been drafted is
still compared with what the target chose, it sees when drafts would pay again.

No decision looks at a token that was drawn in the same round, so that the distribution of the texts stays the target's.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterable, Sequence
from math import sqrt
from statistics import NormalDist, median
from typing import Any
from weakref import WeakKeyDictionary

from grammarspec.decoding.draft import Draft

__all__ = ["Acceptance", "Costs", "Experience", "Pace", "experience_with"]

_KEPT = 9  # measurements of a cost, the latest ones
_MEMORY = 0.98  # what a measurement of acceptance still counts when the next is made
_EXPECTED = {"forced": 0.95, "preferred": 0.85}  # acceptance of kinds of drafts that were not measured yet, else:
_UNKNOWN = 0.6
_CONFIDENCE = 2.0  # as many measurements does such an expectation count for
_SLOPE = 0.1  # what one token more is expected to add to the cost of a pass over one, before that is measured
_SHORT = 16  # how many more tokens a text that has just begun is expected to have
_EVERY = 50  # in so many rounds one has a longer draft than what seems to pay


def _least_of(count: int) -> float:
    """How far the least of some numbers is expected to be below their mean, in standard deviations (Blom 1958)."""
    return NormalDist().inv_cdf((count - 0.375) / (count + 0.25))


class Costs:
    """Seconds of a round behind its draft, by the number of rows and of tokens that the target reads of each.

    Costs are close to a line in the number of tokens. What was measured a few times is therefore drawn to the line
    through all that was measured with as many rows: a cost that happens to be too high would not be corrected by
    measuring, since what seems not to pay is not tried.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()  # batches of several threads may have one target
        self._measured: dict[int, dict[int, deque[float]]] = {}
        self._medians: dict[int, dict[int, float]] = {}
        self._lines: dict[int, tuple[float, float]] = {}  # by rows: at no tokens, and for each token

    def add(self, rows: int, tokens: int, seconds: float) -> None:
        """Add a measurement."""
        with self._lock:
            measured = self._measured.setdefault(rows, {})
            latest = measured.setdefault(tokens, deque(maxlen=_KEPT))
            latest.append(seconds)
            medians = self._medians.setdefault(rows, {})
            medians[tokens] = median(latest)
            self._lines[rows] = _line((number, cost, len(measured[number])) for number, cost in medians.items())

    def knows(self, rows: int, tokens: int) -> bool:
        """Whether this was measured."""
        return tokens in self._medians.get(rows, {})

    def seconds(self, rows: int, tokens: int) -> float:
        """What a round is expected to cost; in proportion only, where nothing is known."""
        with self._lock:
            nearest = min(self._lines, key=lambda known: abs(known - rows), default=None)
            if nearest is None:
                return 1 + _SLOPE * (tokens - 1)
            offset, slope = self._lines[nearest]
            line = offset + slope * tokens
            if tokens not in self._medians[nearest]:
                return line
            trust = len(self._measured[nearest][tokens]) / _KEPT
            return line + trust * (self._medians[nearest][tokens] - line)


def _line(points: Iterable[tuple[float, float, int]]) -> tuple[float, float]:
    """The line that is closest to points (least squares), does not fall, and is not below 0 at 0.

    Args:
        points: their places, heights, and weights. If all are at one place, the line is that of :data:`_SLOPE`.

    Returns:
        its height at 0, and its slope.
    """
    points = list(points)
    whole = sum(weight for *_, weight in points)
    place = sum(weight * x for x, _, weight in points) / whole
    height = sum(weight * y for _, y, weight in points) / whole
    spread = sum(weight * (x - place) ** 2 for x, _, weight in points)
    if spread:
        slope = sum(weight * (x - place) * (y - height) for x, y, weight in points) / spread
        slope = min(max(slope, 0.0), height / place)
    else:
        slope = _SLOPE * height / (1 + _SLOPE * (place - 1))
    return height - slope * place, slope


class Acceptance:
    """How often draft tokens of each kind are accepted, given that those before them are; the latest count most."""

    def __init__(self) -> None:
        self._counts: dict[str, tuple[float, float]] = {}  # of accepted and of all tokens

    def add(self, kind: str, accepted: bool) -> None:
        """Add a measurement."""
        taken, tried = self._counts.get(kind, (0.0, 0.0))
        self._counts[kind] = _MEMORY * taken + accepted, _MEMORY * tried + 1

    def rate(self, kind: str) -> float:
        """The probability that a token of this kind is accepted, from 0 to 1."""
        taken, tried = self._counts.get(kind, (0.0, 0.0))
        return (taken + _CONFIDENCE * _EXPECTED.get(kind, _UNKNOWN)) / (tried + _CONFIDENCE)


class Experience:
    """What is known of a target: see the module.

    Attributes:
        costs: of its rounds.
        acceptance: of draft tokens, by kind.
        steps: seconds of the latest steps of proposers that run a model.
    """

    def __init__(self) -> None:
        self.costs = Costs()
        self.acceptance = Acceptance()
        self.steps: deque[float] = deque(maxlen=_KEPT)


_experiences: WeakKeyDictionary[Any, Experience] = WeakKeyDictionary()


def experience_with(target: Any) -> Experience:
    """The experience of this process with a target; a new one each time for what cannot be referred to weakly."""
    try:
        return _experiences.setdefault(target, Experience())
    except TypeError:
        return Experience()


class Pace:
    """Decides how many draft tokens of each row a round verifies.

    Args:
        experience: what is known of the target; it is added to.
        model: the name of the proposer that runs a model; ``None`` without one.
        together: whether all that there is to do are the texts of the batch, so that it is done when its last text is.
            Otherwise others take the places of those that end.
    """

    def __init__(self, experience: Experience, model: str | None, *, together: bool = True) -> None:
        self._experience = experience
        self._model = model
        self._together = together
        self._rounds = 0
        self._gains = 0.0  # how many tokens of each row drafts were expected to save so far

    def length(self, draft: Draft, most: int) -> int:
        """How many tokens the draft of each row should have at most.

        Args:
            draft: what proposers without a model have drafted.
            most: the greatest number of draft tokens of a row.

        Returns:
            from 0 to ``most``: longer drafts are to be cut, and shorter ones may be continued by a model.
        """
        self._rounds += 1
        costs, rows = self._experience.costs, len(draft.tokens)
        longest = most if self._model is not None else draft.gamma
        if longest == 0:
            return 0
        expected = [self._expected(draft, row, longest) for row in range(rows)]
        self._gains += sum(row[-1] for row in expected) / rows
        if not costs.knows(rows, 1) and any(costs.knows(rows, tokens) for tokens in range(2, most + 2)):
            return 0  # what a draft costs is known only when it is known what none costs
        share = self._share(draft) if self._together else 1.0
        values = [self._value(expected, draft, length, share) for length in range(longest + 1)]
        best = values.index(max(values))
        if self._rounds % _EVERY:
            return best
        return longest if best else values.index(max(values[1:]), 1)

    def _expected(self, draft: Draft, row: int, longest: int) -> list[float]:
        """How many tokens of a row are expected to be accepted of drafts of 0, 1, 2, ... tokens, a model's included."""
        rate, reached, found = self._experience.acceptance.rate, 1.0, [0.0]
        kinds = list(draft.kinds[row])
        if self._model is not None:
            count = min(longest - len(kinds), draft.room(row))
            more = [draft.model_kind(row, self._model, ahead) for ahead in range(min(count, 3))]
            kinds += more + more[-1:] * (count - len(more))  # from the third on, all are of one kind
        for kind in kinds:
            reached *= rate(kind)
            found.append(found[-1] + reached)
        return found

    def _share(self, draft: Draft) -> float:
        """How much of the tokens that drafts save is saved by the slowest text, too: from 0 to 1.

        Drafts help one text here and another there. If each text is expected to save ``m`` tokens until it ends, what
        it does save varies by about the square root of ``m``, and the slowest saves less than ``m`` by a multiple of
        that: rare gains do not shorten a batch at all. It is not known how long texts become; one of ``n`` tokens is
        expected to have as many more.
        """
        left = max(min(max(text.length, _SHORT), text.room) for text in draft.sequences)
        saved = self._gains / self._rounds * left
        return max(0.0, 1 - _least_of(len(draft.sequences)) / sqrt(saved)) if saved else 0.0

    def _value(self, expected: Sequence[Sequence[float]], draft: Draft, length: int, share: float) -> float:
        """Tokens of each row per second of a round that verifies drafts of a length.

        Args:
            expected: by row, how many tokens are expected to be accepted of drafts of each length.
            draft: what proposers without a model have drafted.
            length: the length.
            share: how much an accepted token counts, from 0 to 1.
        """
        gained = sum(row[min(length, len(row) - 1)] for row in expected)
        tokens = 1 + share * gained / len(expected)
        seconds = self._experience.costs.seconds(len(expected), length + 1)
        steps = list(self._experience.steps)
        if self._model is not None and steps:
            shortest = min(map(len, draft.tokens))
            seconds += median(steps) * max(length - shortest, 0)
        return tokens / seconds

    def learn(self, draft: Draft, accepted: Sequence[int], seconds: float | None) -> None:
        """Take into account how a round went.

        Args:
            draft: its draft.
            accepted: the number of committed draft tokens of each row.
            seconds: what the round took behind its draft; ``None`` if it read more than drafts.
        """
        if seconds is not None:
            self._experience.costs.add(len(accepted), draft.gamma + 1, seconds)
        for row, count in enumerate(accepted):
            if row in draft.failed:
                continue
            for kind in draft.kinds[row][:count]:
                self._experience.acceptance.add(kind, True)
            sequence = draft.sequences[row]
            if sequence.finish_reason is not None:
                continue
            if count < len(draft.tokens[row]):
                self._experience.acceptance.add(draft.kinds[row][count], False)
            elif (cut := draft.cut[row]) is not None:
                token, kind = cut
                self._experience.acceptance.add(kind, token == sequence.tokens[-1])

    def step(self, seconds: float) -> None:
        """Take into account what a step of a proposer that runs a model took."""
        self._experience.steps.append(seconds)
