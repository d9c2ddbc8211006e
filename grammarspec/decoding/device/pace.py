"""How long drafts on the device are: chosen by the host, one round late, from what reports say.

A graph has a fixed length of drafts, so a few lengths are to choose from. What a round of each length takes is
measured, and so is how often a draft has a token at each place and how often that is accepted, where those before it
were.
"""

from __future__ import annotations

from collections.abc import Iterable

from grammarspec.decoding.adaptive import Costs

__all__ = ["Tempo"]

_LENGTHS = (0, 1, 2, 4, 6, 8, 12, 16, 24, 32)
_MEMORY = 0.97  # what a measurement of acceptance still counts when the next is made
_EXPECTED = 0.7  # acceptance at a place of which nothing is known
_EVERY = 50  # in so many rounds one has the longest draft
_SKIPPED = 2  # measurements of a new length, which warm up


class Tempo:
    """Chooses the length of the next draft.

    Args:
        most: the greatest length.
        adapts: choose; otherwise it is always the greatest.
        costs: what is known of rounds of this kind; it is added to.
    """

    def __init__(self, most: int, adapts: bool, costs: Costs) -> None:
        self._lengths = sorted({min(length, most) for length in _LENGTHS} | {most})
        self._adapts, self._costs = adapts and most > 0, costs
        self._tried = [1.0] * most
        self._taken = [_EXPECTED] * most
        self._rounds = 0
        self._seen: dict[tuple[int, int], int] = {}

    def length(self, rows: int) -> int:
        """The length of the next draft of so many rows."""
        self._rounds += 1
        if not self._adapts or self._rounds % _EVERY == 0:
            return self._lengths[-1]
        return max(self._lengths, key=lambda length: self._tokens(length) / self._costs.seconds(rows, length + 1))

    def _tokens(self, length: int) -> float:
        """How many tokens a row is expected to commit."""
        tokens = reached = 1.0
        for taken, tried in zip(self._taken[:length], self._tried[:length], strict=True):
            reached *= taken / tried
            tokens += reached
        return tokens

    def learn(self, length: int, drafts: Iterable[tuple[int, int]]) -> None:
        """Take into account how a round went.

        Args:
            length: how long drafts could be.
            drafts: how many tokens the draft of each row had, and how many of them were accepted.
        """
        for drafted, accepted in drafts:
            # A draft that ends early by itself would have gone on as little: it counts as refused there.
            for place in range(min(accepted + 1, length)):
                self._tried[place] = _MEMORY * self._tried[place] + 1
                self._taken[place] = _MEMORY * self._taken[place] + (place < min(accepted, drafted))

    def took(self, rows: int, length: int, seconds: float) -> None:
        """Take into account what a round took."""
        seen = self._seen[rows, length] = self._seen.get((rows, length), 0) + 1
        if seen > _SKIPPED:
            self._costs.add(rows, length + 1, seconds)
