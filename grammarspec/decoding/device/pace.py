"""Chooses the length of drafts on the device: on the host, by the reports that it has read so far.

A graph has a fixed length of drafts, so the length is chosen from a few. Two things are measured: the time of a round
for each length; and for each place in a draft, how often a token there is accepted if all tokens before it were.
"""

from __future__ import annotations

from collections.abc import Iterable

from grammarspec.decoding.adaptive import Costs

__all__ = ["Tempo"]

_LENGTHS = (0, 1, 2, 4, 8, 16, 32)  # each costs a graph: 6 would gain 3 % in batches of 8
_MEMORY = 0.97  # the weight of a measurement of acceptance after the next one was made
_EXPECTED = 0.7  # the acceptance at a place without measurements
_EVERY = 50  # one of this many rounds has the longest draft
_SKIPPED = 2  # the first times of a new length are not used, as they include warming up


class Tempo:
    """Chooses the length of the next draft.

    Args:
        most: the greatest length.
        adapts: whether lengths are chosen; if not, the greatest length is always used.
        costs: the measured costs of rounds; new measurements are added to them.
    """

    def __init__(self, most: int, adapts: bool, costs: Costs) -> None:
        self._lengths = sorted({min(length, most) for length in _LENGTHS} | {most})
        self._adapts, self._costs = adapts and most > 0, costs
        self._tried = [1.0] * most
        self._taken = [_EXPECTED] * most
        self._rounds = 0
        self._seen: dict[tuple[int, int], int] = {}

    def length(self, rows: int) -> int:
        """The length of the next draft.

        Args:
            rows: the number of rows of the round.
        """
        self._rounds += 1
        if not self._adapts or self._rounds % _EVERY == 0:
            return self._lengths[-1]
        return max(self._lengths, key=lambda length: self._tokens(length) / self._costs.seconds(rows, length + 1))

    def _tokens(self, length: int) -> float:
        """The expected number of tokens that a round with drafts of this length commits to a row."""
        tokens = reached = 1.0
        for taken, tried in zip(self._taken[:length], self._tried[:length], strict=True):
            reached *= taken / tried
            tokens += reached
        return tokens

    def learn(self, length: int, drafts: Iterable[tuple[int, int]]) -> None:
        """Add the acceptance of a round to the measurements.

        Args:
            length: the greatest length of the drafts of the round.
            drafts: for each row, the length of its draft, and how many tokens of it were accepted.
        """
        for drafted, accepted in drafts:
            # A draft that ended early has no token at the next place: this counts as a refusal there.
            for place in range(min(accepted + 1, length)):
                self._tried[place] = _MEMORY * self._tried[place] + 1
                self._taken[place] = _MEMORY * self._taken[place] + (place < min(accepted, drafted))

    def took(self, rows: int, length: int, seconds: float) -> None:
        """Add the time of a round to the measurements.

        Args:
            rows: the number of rows of the round.
            length: the length of its drafts.
            seconds: the time of the round.
        """
        seen = self._seen[rows, length] = self._seen.get((rows, length), 0) + 1
        if seen > _SKIPPED:
            self._costs.add(rows, length + 1, seconds)
