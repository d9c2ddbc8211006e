"""Prompt lookup: drafts what followed an earlier occurrence of the last tokens (Saxena 2023)."""

from __future__ import annotations

from collections.abc import Sequence

from grammarspec.decoding.draft import Draft
from grammarspec.decoding.proposers.protocol import BatchView

__all__ = ["Lookup"]

_LONGEST = 6  # longer matches are all of one kind


class Lookup:
    """Drafts the tokens that followed an earlier occurrence of the last tokens, in the prompt or in the text so far.

    The longest match is taken; of several, the one behind which the constraint allows the most tokens; of these, the
    latest.

    Args:
        longest: the greatest number of last tokens to match.
        shortest: the least number of last tokens to match, at least 1.
        tries: how many occurrences to try for each length, the latest ones.

    Attributes:
        lengths: the numbers of last tokens to match, the greatest first.

    Raises:
        ValueError: ``shortest`` is out of range.
    """

    name = "lookup"
    runs_model = False
    hidden_layers: Sequence[int] = ()
    passes = 0

    def __init__(self, longest: int = 3, shortest: int = 1, tries: int = 8) -> None:
        if not 1 <= shortest <= longest:
            raise ValueError(f"shortest must be from 1 to longest ({longest}), not {shortest}")
        self.lengths = range(longest, shortest - 1, -1)
        self._tries = tries
        self._batch: BatchView
        self._rows: list[_Occurrences] = []

    def start(self, batch: BatchView) -> None:
        self._batch = batch
        self._rows = [_Occurrences(self.lengths) for _ in batch.sequences]

    def select(self, rows: Sequence[int]) -> None:
        self._rows = [self._rows[row] for row in rows]

    def propose(self, draft: Draft, rows: Sequence[int]) -> None:
        for row in rows:
            self._rows[row].read(self._batch.sequences[row].tokens)
            with draft.guard(row):
                tokens, matched = self._best(draft, row)
                if tokens:
                    where = "among many" if draft.is_open(row) else "among few"
                    # Where a token is accepted, the match behind it is longer by one.
                    lengths = [min(matched + offset, _LONGEST) for offset in range(len(tokens))]
                    draft.extend(row, tokens, self.name, [f"{self.name} of {length} {where}" for length in lengths])

    def commit(self, draft: Draft, accepted: Sequence[int]) -> None:
        pass

    def _best(self, draft: Draft, row: int) -> tuple[list[int], int]:
        """The tokens to draft for a row, none if there is no match that the constraint allows; and how many matched."""
        text, room = draft.text(row), draft.room(row)
        matcher = draft.sequences[row].matcher
        best: list[int] = []
        for length in self.lengths:
            if length > len(text):
                continue
            for begin in self._rows[row].find(text[-length:], self._tries):
                tokens = text[begin : begin + room]
                if matcher is not None and tokens:
                    tokens = tokens[: matcher.validate_tokens(tokens)]
                if len(tokens) > len(best):
                    best = tokens
                if len(best) == room:
                    return best, length
            if best:
                return best, length
        return best, 0


class _Occurrences:
    """An index of a growing text: where each short sequence of tokens (n-gram) occurs in it."""

    def __init__(self, lengths: Sequence[int]) -> None:
        self._lengths = lengths
        self._ends: dict[tuple[int, ...], list[int]] = {}  # the offsets behind the occurrences
        self._read = 0

    def read(self, tokens: Sequence[int]) -> None:
        """Add the tokens of the text that are new since the last call."""
        # The last token is left for the next call: no token follows it yet.
        for end in range(self._read + 1, len(tokens)):
            for length in self._lengths:
                if length <= end:
                    self._ends.setdefault(tuple(tokens[end - length : end]), []).append(end)
        self._read = max(len(tokens) - 1, self._read)

    def find(self, tokens: Sequence[int], most: int) -> list[int]:
        """The offsets behind the latest occurrences of a sequence, at most ``most``, latest first."""
        return self._ends.get(tuple(tokens), [])[: -most - 1 : -1]
