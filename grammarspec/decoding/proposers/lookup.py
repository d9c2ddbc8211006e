"""Prompt lookup: what followed the last tokens when they came up before (Saxena 2023; n-gram drafts)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from grammarspec.decoding.draft import Draft
    from grammarspec.decoding.loop import Batch

__all__ = ["Lookup"]


class Lookup:
    """Proposes what followed an earlier occurrence of the last tokens, in the prompt or in the text so far.

    Of the occurrences, longest match first and latest first, that is taken of which the constraint allows the most.

    Args:
        longest: tokens to match at most.
        shortest: tokens to match at least.
        tries: occurrences to look at for each length.
    """

    name = "lookup"
    hidden_layers: Sequence[int] = ()
    passes = 0

    def __init__(self, longest: int = 3, shortest: int = 1, tries: int = 8) -> None:
        if not 1 <= shortest <= longest:
            raise ValueError(f"shortest must be from 1 to longest ({longest}), not {shortest}")
        self._lengths = range(longest, shortest - 1, -1)
        self._tries = tries
        self._batch: Batch
        self._rows: list[_Occurrences] = []

    def start(self, batch: Batch) -> None:
        self._batch = batch
        self._rows = [_Occurrences(self._lengths) for _ in batch.lanes]

    def select(self, rows: Sequence[int]) -> None:
        self._rows = [self._rows[row] for row in rows]

    def propose(self, draft: Draft, rows: Sequence[int]) -> None:
        for row in rows:
            self._rows[row].read(self._batch.lanes[row].tokens)
            with draft.guard(row):
                if tokens := self._best(draft, row):
                    draft.extend(row, tokens, self.name)

    def settle(self, draft: Draft, accepted: Sequence[int]) -> None:
        pass

    def _best(self, draft: Draft, row: int) -> list[int]:
        text, room = draft.text(row), draft.room(row)
        matcher = draft.lanes[row].matcher
        best: list[int] = []
        for length in self._lengths:
            if length > len(text):
                continue
            for begin in self._rows[row].behind(text[-length:], self._tries):
                tokens = text[begin : begin + room]
                if matcher is not None and tokens:
                    tokens = tokens[: matcher.validate_tokens(tokens)]
                if len(tokens) > len(best):
                    best = tokens
                if len(best) == room:
                    return best
            if best:
                return best
        return best


class _Occurrences:
    """Where each short sequence of tokens in a growing text ends."""

    def __init__(self, lengths: Sequence[int]) -> None:
        self._lengths = lengths
        self._behind: dict[tuple[int, ...], list[int]] = {}
        self._read = 0

    def read(self, tokens: Sequence[int]) -> None:
        # The last token is left for later: nothing stands behind it.
        for end in range(self._read + 1, len(tokens)):
            for length in self._lengths:
                if length <= end:
                    self._behind.setdefault(tuple(tokens[end - length : end]), []).append(end)
        self._read = max(len(tokens) - 1, self._read)

    def behind(self, tokens: Sequence[int], most: int) -> list[int]:
        """The places behind the latest occurrences, latest first."""
        return self._behind.get(tuple(tokens), [])[: -most - 1 : -1]
