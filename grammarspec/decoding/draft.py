"""The draft of one round: draft tokens, the states that they lead to, and the mask rows of their positions.

Proposers append draft tokens. The matcher of a row advances with its draft and fills the mask row of each position
once, so that proposer and target see the same states and the same masks. The loop reads tokens, masks and draft
distributions off as tensors, and rolls the matchers back after verification.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import takewhile
from time import perf_counter

import numpy as np
import torch
from numpy.typing import NDArray

from grammarspec.bitmask import allocate_bitmask, allows_few
from grammarspec.decoding.sequence_state import SequenceState
from grammarspec.errors import FAILURES, DraftMismatch

__all__ = ["Draft", "MaskRows"]


class MaskRows:
    """Memory for the mask rows of a batch, one for each position of its drafts, reused in every round.

    Args:
        rows: the number of rows of the batch.
        gamma: the greatest number of draft tokens of a row.
        vocab_size: the number of tokens that masks have bits for.

    Attributes:
        positions: the mask rows of each row of the batch: one more than a draft has tokens at most.
        rows: ``int32[rows * positions, words]``, numpy; that of position ``i`` of row ``r`` is ``r * positions + i``.
    """

    def __init__(self, rows: int, gamma: int, vocab_size: int) -> None:
        self.positions = gamma + 1
        self.rows = allocate_bitmask(rows * self.positions, vocab_size)


class Draft:
    """The draft tokens of each row of the batch in one round.

    Position ``i`` of a row is behind its first ``i`` draft tokens: a draft of ``d`` tokens has ``d + 1`` positions.

    Args:
        sequences: the rows of the batch.
        room: the greatest number of draft tokens of each row.
        masks: where mask rows are written.
        device: where tensors are made.
        width: the number of the target's logits.

    Attributes:
        sequences: the rows of the batch.
        tokens: the draft tokens of each row so far.
        sources: of each of them, the name of its proposer.
        kinds: of each of them, what its acceptance is measured by: the name of its proposer, or finer.
        cut: the first token that was cut from the draft of each row, and its kind; ``None`` if none was.
        drawn: of each of them, whether it was drawn from a distribution (see :meth:`add`).
        distributions: those distributions, ``[rows, gamma, width]``; ``None`` while no token was drawn.
        refused: the rows whose last draft token the constraint does not allow; they get no more tokens.
        failed: the errors of constraints, such as a limit that was exceeded, by row; the texts of these rows end.
        mask_seconds: the time taken to fill mask rows.
    """

    def __init__(
        self,
        sequences: Sequence[SequenceState],
        room: Sequence[int],
        masks: MaskRows,
        device: torch.device,
        width: int,
    ) -> None:
        self.sequences = sequences
        self.tokens: list[list[int]] = [[] for _ in sequences]
        self.sources: list[list[str]] = [[] for _ in sequences]
        self.kinds: list[list[str]] = [[] for _ in sequences]
        self.cut: list[tuple[int, str] | None] = [None for _ in sequences]
        self.drawn: list[list[bool]] = [[] for _ in sequences]
        self.distributions: torch.Tensor | None = None
        self.refused: set[int] = set()
        self.failed: dict[int, Exception] = {}
        self.mask_seconds = 0.0
        self._room = list(room)
        self._masks = masks
        self._filled = [0] * len(sequences)  # positions whose mask rows are filled
        self._device = device
        self._width = width

    # ------------------------------------------------------------------ for proposers
    def text(self, row: int) -> list[int]:
        """All tokens of a row: prompt, generated text and draft."""
        return self.sequences[row].tokens + self.tokens[row]

    def room(self, row: int) -> int:
        """How many more tokens the draft of a row may get; 0 behind a refused token and behind an end of text."""
        if row in self.refused or (self.tokens[row] and self.sequences[row].is_end(self.tokens[row][-1])):
            return 0
        return self._room[row] - len(self.tokens[row])

    def masks(self, rows: Sequence[int]) -> torch.Tensor:
        """The masks behind the drafts so far.

        Args:
            rows: the rows whose masks are needed.

        Returns:
            ``int32[all rows, words]``; the masks of the other rows allow every token.
        """
        current = np.full((len(self.sequences), self._masks.rows.shape[1]), -1, dtype=np.int32)
        for row in rows:
            current[row] = self.mask_row(row)
        return torch.from_numpy(current).to(self._device)

    def mask_row(self, row: int) -> NDArray[np.int32]:
        """The mask behind the draft of a row so far: ``int32[words]``, overwritten in the next round."""
        last: NDArray[np.int32] = self.mask_rows(row)[-1]
        return last

    def position(self, row: int) -> int:
        """The position in the text of a row of the token behind its draft so far, from 0."""
        return self.sequences[row].length + len(self.tokens[row])

    def is_open(self, row: int) -> bool:
        """Whether many tokens can follow the draft of a row (see :func:`~grammarspec.bitmask.allows_few`)."""
        return self.sequences[row].matcher is None or not allows_few(self.mask_row(row), self._width)

    def model_kind(self, row: int, source: str, ahead: int = 0) -> str:
        """What the acceptance of a model's next token is measured by.

        A model drafts best behind text that the target has read, and where few tokens can follow.

        Args:
            row: the row of the batch.
            source: the name of the proposer that runs the model.
            ahead: how many tokens of that proposer are still to come before that token.

        Returns:
            the name, the number of the proposer's tokens right before it (two at most), and how many tokens can follow.
        """
        behind = sum(1 for _ in takewhile(source.__eq__, reversed(self.sources[row])))
        return f"{source} {min(behind + ahead, 2)} {'open' if self.is_open(row) else 'narrow'}"

    def extend(self, row: int, tokens: Sequence[int], source: str, kinds: Sequence[str] | None = None) -> int:
        """Append tokens that were certain to be proposed, as far as there is room and the constraint allows them.

        Args:
            row: the row of the batch.
            tokens: a function of the text before them: their draft distributions are one-hot.
            source: the name of the proposer.
            kinds: of each of them, what its acceptance is measured by, if that is finer than by proposer.

        Returns:
            the number of appended tokens.

        Raises:
            DraftMismatch: the target has no such token.
        """
        self._check_tokens(tokens, source)
        tokens = tokens[: self.room(row)]
        matcher, at, count = self.sequences[row].matcher, len(self.tokens[row]), 0
        if matcher is None:
            ends = [index for index, token in enumerate(tokens) if self.sequences[row].is_end(token)]
            count = ends[0] + 1 if ends else len(tokens)
            self._masks.rows[self._mask_row(row, at) : self._mask_row(row, at + count) + 1] = -1
        else:
            started = perf_counter()
            with self.guard(row):
                count = matcher.fill_draft_bitmasks(tokens, self._masks.rows, self._mask_row(row, at))
                matcher.accept_tokens(tokens[:count])
            self.mask_seconds += perf_counter() - started
            if matcher.is_terminated or row in self.failed:
                self._masks.rows[self._mask_row(row, at + count)] = -1
        self._filled[row] = at + count + 1
        self._append(row, list(tokens[:count]), source, list(kinds or [source] * count)[:count], False)
        return count

    def add(self, row: int, token: int, source: str, distribution: torch.Tensor | None = None) -> None:
        """Append a token that was sampled. It is kept and verified even if the constraint refuses it.

        Args:
            row: the row of the batch.
            token: the token.
            source: the name of the proposer.
            distribution: ``[width]``, what the token was drawn from; ``None`` if the token is a function of the text
                before it (greedy, or shared noise).

        Raises:
            DraftMismatch: the target has no such token, or another number of tokens than the distribution.
        """
        self._check_tokens([token], source)
        kind = self.model_kind(row, source)
        if distribution is not None and distribution.shape != (self._width,):
            width = "x".join(map(str, distribution.shape))
            raise DraftMismatch(f"{source} draws from a distribution over {width} tokens, the target has {self._width}")
        self._fill(row)
        matcher = self.sequences[row].matcher
        if distribution is not None:
            if self.distributions is None:
                self.distributions = distribution.new_zeros(len(self.sequences), max(self._room), len(distribution))
            self.distributions[row, len(self.tokens[row])] = distribution
        with self.guard(row):
            if matcher is not None and not matcher.accept_token(token):
                self.refused.add(row)
        self._append(row, [token], source, [kind], distribution is not None)

    def finish(self, row: int) -> None:
        """End the draft of a row here. Tokens that were drawn stay: to drop one for its value would bias the text."""
        self._room[row] = len(self.tokens[row])

    @contextmanager
    def guard(self, row: int) -> Iterator[None]:
        """Catch the errors of a row's constraint: the text of the row ends with the error, the others go on."""
        try:
            yield
        except FAILURES as error:
            self.failed[row] = error
            self.finish(row)

    # ------------------------------------------------------------------ for the loop
    def limit(self, most: int) -> None:
        """Cut the drafts to a length, which may not depend on tokens that were drawn; they get no longer than that."""
        for row, tokens in enumerate(self.tokens):
            self._room[row] = min(self._room[row], most)
            if len(tokens) <= most:
                continue
            self.cut[row] = tokens[most], self.kinds[row][most]
            matcher = self.sequences[row].matcher
            if matcher is not None:
                matcher.rollback(len(tokens) - most - (row in self.refused))
            self.refused.discard(row)
            for values in (tokens, self.sources[row], self.kinds[row], self.drawn[row]):
                del values[most:]
            self._filled[row] = min(self._filled[row], most + 1)

    @property
    def gamma(self) -> int:
        """The number of tokens of the longest draft so far."""
        return max(map(len, self.tokens), default=0)

    def open(self) -> list[int]:
        """The rows whose drafts may get more tokens."""
        return [row for row in range(len(self.sequences)) if self.room(row) > 0]

    def mask_rows(self, row: int) -> NDArray[np.int32]:
        """The masks of the positions of a row: ``int32[draft tokens + 1, words]``, overwritten in the next round."""
        self._fill(row)
        begin = self._mask_row(row, 0)
        return self._masks.rows[begin : begin + len(self.tokens[row]) + 1]

    def all_masks(self) -> torch.Tensor:
        """The masks of all positions.

        Returns:
            ``int32[rows, gamma + 1, words]``; the masks of positions that a row does not have allow every token.
        """
        every = self._masks.rows[: len(self.sequences) * self._masks.positions].reshape(
            len(self.sequences), self._masks.positions, -1
        )[:, : self.gamma + 1]
        for row, tokens in enumerate(self.tokens):
            self._fill(row)
            every[row, len(tokens) + 1 :] = -1
        return torch.from_numpy(every).to(self._device)

    def fill_masks(self) -> None:
        """Fill the masks behind the drafts, so that the time for that is counted before the target's pass."""
        for row in range(len(self.sequences)):
            self._fill(row)

    def padded(self) -> torch.Tensor:
        """The draft tokens: ``int64[rows, gamma]``, padded by -1."""
        return self._tensor(self.tokens, -1, torch.int64)

    def drawn_tokens(self) -> torch.Tensor:
        """``bool[rows, gamma]``, which of the draft tokens were drawn from a distribution."""
        return self._tensor(self.drawn, False, torch.bool)

    def lengths(self) -> torch.Tensor:
        """``int64[rows]``, the number of draft tokens of each row."""
        return torch.tensor([len(tokens) for tokens in self.tokens], device=self._device)

    def rollback(self, row: int) -> None:
        """Set the matcher of a row back to where it was before the draft."""
        matcher = self.sequences[row].matcher
        if matcher is not None:
            matcher.rollback(len(self.tokens[row]) - (row in self.refused))

    # ------------------------------------------------------------------ inside
    def _check_tokens(self, tokens: Sequence[int], source: str) -> None:
        """Refuse what is no token of the target: the target could not read it."""
        unknown = next((token for token in tokens if not 0 <= token < self._width), None)
        if unknown is not None:
            raise DraftMismatch(f"{source} drafts the token {unknown}, and the target has only {self._width}")

    def _tensor(self, values: Sequence[Sequence[int]], padding: int, dtype: torch.dtype) -> torch.Tensor:
        width = self.gamma
        rows = [[*row, *[padding] * (width - len(row))] for row in values]
        return torch.tensor(rows, dtype=dtype, device=self._device).reshape(len(rows), width)

    def _append(self, row: int, tokens: list[int], source: str, kinds: list[str], drawn: bool) -> None:
        self.tokens[row] += tokens
        self.sources[row] += [source] * len(tokens)
        self.kinds[row] += kinds
        self.drawn[row] += [drawn] * len(tokens)

    def _mask_row(self, row: int, position: int) -> int:
        """The number of the mask row of a position."""
        return row * self._masks.positions + position

    def _fill(self, row: int) -> None:
        """Fill the mask row of the position behind the draft; where no token can follow, it allows every token."""
        position = len(self.tokens[row])
        if self._filled[row] > position:
            return
        matcher = self.sequences[row].matcher
        unmasked = matcher is None or matcher.is_terminated or row in self.refused
        if matcher is not None and not unmasked and row not in self.failed:
            started = perf_counter()
            with self.guard(row):
                matcher.fill_bitmask(self._masks.rows, self._mask_row(row, position))
            self.mask_seconds += perf_counter() - started
        if unmasked or row in self.failed:
            self._masks.rows[self._mask_row(row, position)] = -1
        self._filled[row] = position + 1
