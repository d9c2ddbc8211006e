"""The draft of one round: tokens, the states that they lead to, and their mask rows, for draft and target alike."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from time import perf_counter

import numpy as np
import torch

from grammarspec.bitmask import allocate_bitmask
from grammarspec.decoding.lane import Lane
from grammarspec.errors import FAILURES

__all__ = ["Draft", "MaskRows"]


class MaskRows:
    """Memory for the mask rows of a batch, one for each place of its drafts, used anew in every round.

    Attributes:
        rows: ``int32[rows * places, words]``, numpy; place ``i`` of row ``r`` is number ``r * places + i``.
        places: one more than a draft has tokens at most.
    """

    def __init__(self, rows: int, gamma: int, vocab_size: int) -> None:
        self.places = gamma + 1
        self.rows = allocate_bitmask(rows * self.places, vocab_size)


class Draft:
    """What is proposed for each row of the batch in this round.

    The matcher of a row advances with its draft, and the mask row of each place is filled from it once: the proposer's
    law at a place and the target's are of the same state and the same mask.

    Attributes:
        lanes: the rows' texts.
        tokens: of each row, those drafted so far.
        sources: of each of them, the name of its proposer.
        drawn: of each of them, whether it was drawn from a law (see :meth:`add`).
        laws: ``[rows, gamma, width]``, those laws, once there is one.
        refused: rows whose last token the constraint does not allow; nothing can stand behind it.
        failed: rows whose constraint raised an error, such as a limit that was hit; their texts end with it.
        mask_seconds: time taken to fill mask rows.
    """

    def __init__(self, lanes: Sequence[Lane], room: Sequence[int], masks: MaskRows, device: torch.device) -> None:
        self.lanes = lanes
        self.tokens: list[list[int]] = [[] for _ in lanes]
        self.sources: list[list[str]] = [[] for _ in lanes]
        self.drawn: list[list[bool]] = [[] for _ in lanes]
        self.laws: torch.Tensor | None = None
        self.refused: set[int] = set()
        self.failed: dict[int, Exception] = {}
        self.mask_seconds = 0.0
        self._room = list(room)
        self._masks = masks
        self._filled = [0] * len(lanes)
        self._device = device

    @property
    def gamma(self) -> int:
        """Tokens of the longest draft so far."""
        return max(map(len, self.tokens), default=0)

    def room(self, row: int) -> int:
        """How many tokens a row's draft may still get."""
        if row in self.refused or (self.tokens[row] and self.lanes[row].is_end(self.tokens[row][-1])):
            return 0
        return self._room[row] - len(self.tokens[row])

    def open(self) -> list[int]:
        """The rows whose drafts may grow."""
        return [row for row in range(len(self.lanes)) if self.room(row) > 0]

    def finish(self, row: int) -> None:
        """Nothing more for this row. What was drawn stays: to take it back because of its value would bias."""
        self._room[row] = len(self.tokens[row])

    @contextmanager
    def guard(self, row: int) -> Iterator[None]:
        """Around what asks the row's constraint: an error there ends this row's text, and harms no other."""
        try:
            yield
        except FAILURES as error:
            self.failed[row] = error
            self.finish(row)

    def text(self, row: int) -> list[int]:
        """All tokens of the row: prompt, text and draft."""
        return self.lanes[row].tokens + self.tokens[row]

    def extend(self, row: int, tokens: Sequence[int], source: str) -> int:
        """Add tokens that were certain to be proposed, as far as there is room and the constraint allows them.

        Returns:
            how many were added.
        """
        tokens = tokens[: self.room(row)]
        matcher, at, count = self.lanes[row].matcher, len(self.tokens[row]), 0
        if matcher is None:
            ends = [place for place, token in enumerate(tokens) if self.lanes[row].is_end(token)]
            count = ends[0] + 1 if ends else len(tokens)
            self._masks.rows[self._number(row, at) : self._number(row, at + count) + 1] = -1
        else:
            started = perf_counter()
            with self.guard(row):
                count = matcher.fill_draft_bitmasks(tokens, self._masks.rows, self._number(row, at))
                matcher.accept_tokens(tokens[:count])
            self.mask_seconds += perf_counter() - started
            if matcher.is_terminated or row in self.failed:
                self._masks.rows[self._number(row, at + count)] = -1
        self._filled[row] = at + count + 1
        self._append(row, list(tokens[:count]), source, False)
        return count

    def add(self, row: int, token: int, source: str, law: torch.Tensor | None = None) -> None:
        """Add a token that was chosen; it is kept, and verified, also where the constraint refuses it.

        Args:
            law: ``[width]``, what it was drawn from. Without it, the token is a function of the text before it.
        """
        self._fill(row)
        matcher = self.lanes[row].matcher
        if law is not None:
            if self.laws is None:
                self.laws = law.new_zeros(len(self.lanes), max(self._room), len(law))
            self.laws[row, len(self.tokens[row])] = law
        with self.guard(row):
            if matcher is not None and not matcher.accept_token(token):
                self.refused.add(row)
        self._append(row, [token], source, law is not None)

    def masks(self, rows: Sequence[int]) -> torch.Tensor:
        """The masks behind what is drafted so far: ``int32[all rows, words]``, those of other rows allowing all."""
        current = np.full((len(self.lanes), self._masks.rows.shape[1]), -1, dtype=np.int32)
        for row in rows:
            self._fill(row)
            current[row] = self._masks.rows[self._number(row, len(self.tokens[row]))]
        return torch.from_numpy(current).to(self._device)

    def all_masks(self) -> torch.Tensor:
        """The masks of all places: ``int32[rows, gamma + 1, words]``. Those behind a draft allow everything."""
        every = self._masks.rows[: len(self.lanes) * self._masks.places].reshape(
            len(self.lanes), self._masks.places, -1
        )
        for row, tokens in enumerate(self.tokens):
            self._fill(row)
            every[row, len(tokens) + 1 :] = -1
        return torch.from_numpy(every[:, : self.gamma + 1]).to(self._device)

    def padded(self) -> torch.Tensor:
        """The tokens: ``int64[rows, gamma]``, padded by -1."""
        return self._tensor(self.tokens, -1, torch.int64)

    def drawn_tokens(self) -> torch.Tensor:
        """``bool[rows, gamma]``, which of the tokens were drawn from a law."""
        return self._tensor(self.drawn, False, torch.bool)

    def lengths(self) -> torch.Tensor:
        """``int64[rows]``, of the drafts."""
        return torch.tensor([len(tokens) for tokens in self.tokens], device=self._device)

    def _tensor(self, values: Sequence[Sequence[int]], padding: int, dtype: torch.dtype) -> torch.Tensor:
        width = self.gamma
        rows = [[*row, *[padding] * (width - len(row))] for row in values]
        return torch.tensor(rows, dtype=dtype, device=self._device).reshape(len(rows), width)

    def take_back(self, row: int) -> None:
        """Set the row's matcher to where it stood before the draft."""
        matcher = self.lanes[row].matcher
        if matcher is not None:
            matcher.rollback(len(self.tokens[row]) - (row in self.refused))

    def _append(self, row: int, tokens: list[int], source: str, drawn: bool) -> None:
        self.tokens[row] += tokens
        self.sources[row] += [source] * len(tokens)
        self.drawn[row] += [drawn] * len(tokens)

    def _number(self, row: int, place: int) -> int:
        return row * self._masks.places + place

    def _fill(self, row: int) -> None:
        """The mask row of the place behind the draft; rows that no token will be taken from allow everything."""
        place = len(self.tokens[row])
        if self._filled[row] > place:
            return
        matcher = self.lanes[row].matcher
        open_ended = matcher is None or matcher.is_terminated or row in self.refused
        if matcher is not None and not open_ended and row not in self.failed:
            started = perf_counter()
            with self.guard(row):
                matcher.fill_bitmask(self._masks.rows, self._number(row, place))
            self.mask_seconds += perf_counter() - started
        if open_ended or row in self.failed:
            self._masks.rows[self._number(row, place)] = -1
        self._filled[row] = place + 1
