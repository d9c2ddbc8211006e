"""Tokens chosen on the CPU: position by position, as far as needed, among the allowed tokens only.

The choices are those of :class:`~grammarspec.decoding.processing.Processing`, but for rounding. A mask mostly allows
few tokens, and then scores, noise and sorting are for these alone; and most positions of a draft that is refused lie
behind the first refusal, where nothing needs to be known. numpy does the work: on arrays of this size a call of torch
costs more than what it computes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from grammarspec.bitmask import allowed_tokens, allows_few, apply_bitmask
from grammarspec.decoding.choosers import Proposal, Verdict
from grammarspec.decoding.draft import Draft
from grammarspec.decoding.noise import Purpose, Stream, above, gumbel_of, uniform_of
from grammarspec.decoding.processing import Processing, Proposals
from grammarspec.decoding.verification import accepts, draw_one, residual_of

__all__ = ["HostChooser", "row_by_row"]

HOST_WIDTH = 4096  # from how many logits on tokens are chosen row by row
_NUCLEUS = 256  # how many tokens are looked at first for top-p
_MANY = 1024  # from how many tokens on it pays to find out which of them noise may choose
_RARE = 1e-4  # what is less probable than the most probable token by this factor needs much noise to be chosen

_Floats = NDArray[np.floating]


@dataclass(frozen=True, slots=True)
class _Values:
    """Scores, or probabilities, of the tokens at one position.

    Attributes:
        tokens: ``int64[n]``, the tokens, ascending; ``None`` if they are all tokens from 0 on.
        values: ``[n]``.
    """

    tokens: NDArray[np.int64] | None
    values: _Floats

    def token(self, index: int) -> int:
        """The token of a value."""
        return index if self.tokens is None else int(self.tokens[index])

    def index(self, token: int) -> int | None:
        """Where the value of a token is; ``None`` if it has none."""
        if self.tokens is None:
            return token
        index = int(self.tokens.searchsorted(token))
        return index if index < len(self.tokens) and self.tokens[index] == token else None

    def of(self, token: int) -> float:
        """The value of a token; 0 if it has none."""
        index = self.index(token)
        return 0.0 if index is None else float(self.values[index])

    def among(self, indices: NDArray[np.int64]) -> _Values:
        """Some of the values."""
        return _Values(indices if self.tokens is None else self.tokens[indices], self.values[indices])


@dataclass(frozen=True, slots=True)
class _RowDraft:
    """The draft of one row.

    Attributes:
        tokens: its tokens.
        masks: ``int32[tokens + 1, words]``, the mask rows before the first token and behind each.
        drawn: for each token, whether it was drawn from a distribution.
        distributions: ``[gamma, width]``, these distributions; ``None`` if there are none.
        place: the place of the first token in the text, from 0.
        ends: whether a token ends the text.
    """

    tokens: Sequence[int]
    masks: NDArray[np.int32]
    drawn: Sequence[bool]
    distributions: torch.Tensor | None
    place: int
    ends: Callable[[int], bool]


def row_by_row(width: int, device: torch.device) -> bool:
    """Whether a :class:`HostChooser` is to choose tokens: where rows are short, it pays to look at all of them at once.

    Args:
        width: the number of logits.
        device: where they are.
    """
    return device.type == "cpu" and width >= HOST_WIDTH


class HostChooser:
    """A :class:`~grammarspec.decoding.choosers.Chooser` for models on the CPU.

    For the loop on the device, when its device is the CPU, it has methods of
    :class:`~grammarspec.decoding.processing.Processing` as well.

    Args:
        processing: the sampling options of the rows.
    """

    def __init__(self, processing: Processing) -> None:
        self._processing = processing

    def verify(self, logits: torch.Tensor, draft: Draft, turn: int) -> list[Verdict]:
        """See :meth:`Chooser.verify`."""
        rows = []
        for row, sequence in enumerate(draft.sequences):
            tokens = draft.tokens[row]
            drawn_from = None if draft.distributions is None else draft.distributions[row]
            drafted = _RowDraft(
                tokens, draft.mask_rows(row), draft.drawn[row], drawn_from, sequence.length, sequence.is_end
            )
            rows.append(self._verify_row(row, logits[row, logits.shape[1] - 1 - len(tokens) :], drafted, turn))
        return rows

    def propose(
        self, logits: torch.Tensor, draft: Draft, rows: Sequence[int], turn: int, *, masked: bool, confidence: bool
    ) -> list[Proposal | None]:
        """See :meth:`Chooser.propose`."""
        return [
            self._propose_row(
                row,
                logits[row],
                draft.mask_row(row) if masked else None,
                draft.tokens[row],
                draft.position(row),
                turn,
                confidence=confidence,
            )
            for row in rows
        ]

    def verify_logits(
        self,
        logits: torch.Tensor,
        masks: torch.Tensor,
        prefix: torch.Tensor,
        lengths: torch.Tensor,
        draft: torch.Tensor | None,
        drawn: torch.Tensor,
        positions: torch.Tensor,
        rounds: torch.Tensor,
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """See :meth:`.Processing.verify_logits`; behind the token that is chosen, the highest scores are 0."""
        highest = torch.zeros(logits.shape[:2], dtype=torch.float64)
        verdicts = []
        for row, (length, turn) in enumerate(zip(lengths.tolist(), rounds.tolist(), strict=True)):
            drafted = _RowDraft(
                prefix[row, :length].tolist(),
                masks[row, : length + 1].numpy(),
                drawn[row, :length].tolist(),
                None if draft is None else draft[row],
                int(positions[row, 0]),
                _never,
            )
            verdict = self._verify_row(row, logits[row], drafted, turn)
            verdicts.append((verdict.accepted, verdict.following))
            highest[row, : len(verdict.highest)] = torch.tensor(verdict.highest, dtype=torch.float64)
        accepted, following = torch.tensor(verdicts).unbind(1)
        return accepted, following, highest

    def propose_logits(
        self,
        logits: torch.Tensor,
        masks: torch.Tensor | None,
        prefix: torch.Tensor,
        positions: torch.Tensor,
        rounds: torch.Tensor,
        wanted: torch.Tensor,
        *,
        confidence: bool,
    ) -> Proposals:
        """See :meth:`.Processing.propose_logits`; rows that want no token get none."""
        tokens, possible = torch.zeros_like(positions), torch.zeros_like(wanted)
        sure = torch.ones(len(logits)) if confidence else None
        distributions: torch.Tensor | None = None
        for row in wanted.nonzero()[:, 0].tolist():
            proposal = self._propose_row(
                row,
                logits[row],
                None if masks is None else masks[row].numpy(),
                [token for token in prefix[row].tolist() if token >= 0],
                int(positions[row]),
                int(rounds[row]),
                confidence=confidence,
            )
            if proposal is None:
                continue
            tokens[row], possible[row] = proposal.token, True
            if sure is not None:
                sure[row] = proposal.confidence
            if proposal.distribution is not None:
                if distributions is None:
                    distributions = torch.zeros_like(logits, dtype=proposal.distribution.dtype)
                distributions[row] = proposal.distribution
        return Proposals(tokens, possible, distributions, sure)

    def _verify_row(self, row: int, logits: torch.Tensor, draft: _RowDraft, turn: int) -> Verdict:
        """Verify the draft of a row, whose logits are ``[gamma + 1, width]``."""
        tokens = draft.tokens
        highest: list[float] = []
        greedy = self._processing.samplings[row].temperature == 0
        for position, mask in enumerate(draft.masks):
            scores = self._scores(row, _array(logits[position]), mask, tokens[:position], best=greedy)
            best = int(scores.values.argmax()) if len(scores.values) else None
            highest.append(-np.inf if best is None else float(scores.values[best]))
            if best is None or not math.isfinite(highest[-1]):
                return Verdict(position, 0, highest)
            proposed = tokens[position] if position < len(tokens) else None
            if self._processing.draws_row(row):
                refused = self._draw(row, scores, best, proposed, draft, position, turn)
            else:
                refused = self._choose(row, scores, best, draft.place + position)
            if refused is not None and refused != proposed:
                return Verdict(position, refused, highest)
            if proposed is not None and draft.ends(proposed):
                return Verdict(position + 1, proposed, highest)
        raise AssertionError("behind the last draft token, a token is chosen in any case")

    def _draw(
        self, row: int, scores: _Values, best: int, proposed: int | None, draft: _RowDraft, position: int, turn: int
    ) -> int | None:
        """Accept the draft token at a position (``None``), or else draw another token."""
        target, place = self._distribution(row, scores, best), draft.place + position
        stream = self._processing.streams[row]
        if proposed is not None and draft.drawn[position]:
            assert draft.distributions is not None
            drafted: _Floats = draft.distributions[position].numpy()
            uniform = uniform_of(stream, place, Purpose.ACCEPT, turn)
            if accepts(target.of(proposed), float(drafted[proposed]), uniform):
                return None
            residual = residual_of(target.values, drafted if target.tokens is None else drafted[target.tokens])
            target = _Values(target.tokens, residual)
        return target.token(draw_one(target.values, uniform_of(stream, place, Purpose.CHOOSE, 0)))

    def _choose(self, row: int, scores: _Values, best: int, place: int) -> int:
        """The token that the greatest score (greedily), or the shared noise chooses at a place of the text."""
        if self._processing.samplings[row].temperature == 0:
            return scores.token(best)
        return self._by_noise(row, self._distribution(row, scores, best), place)

    def _by_noise(self, row: int, distribution: _Values, place: int) -> int:
        """The token that shared noise chooses of a distribution."""
        stream = self._processing.streams[row]
        possible = distribution.among(np.flatnonzero(distribution.values))
        if len(possible.values) > _MANY:
            possible = _audible(possible, stream, place, self._processing.width)
        return possible.token(int(_noisy(possible, stream, place).argmax()))

    def _propose_row(
        self,
        row: int,
        logits: torch.Tensor,
        mask: NDArray[np.int32] | None,
        prefix: Sequence[int],
        place: int,
        turn: int,
        *,
        confidence: bool,
    ) -> Proposal | None:
        """The draft token of a row, whose logits are ``[width]``, at a place of its text."""
        greedy = self._processing.samplings[row].temperature == 0
        scores = self._scores(row, _array(logits), mask, prefix, best=greedy and not confidence)
        best = int(scores.values.argmax()) if len(scores.values) else None
        if best is None or not math.isfinite(scores.values[best]):
            return None
        distribution = None
        if self._processing.draws_row(row):
            drawn = self._distribution(row, scores, best)
            token = drawn.token(
                draw_one(drawn.values, uniform_of(self._processing.streams[row], place, Purpose.DRAFT, turn))
            )
            distribution = _dense(drawn, len(logits))
        else:
            token = self._choose(row, scores, best, place)
        sure = 1.0
        if confidence:
            weights = np.exp(scores.values - scores.values[best])
            sure = _Values(scores.tokens, weights / weights.sum()).of(token)
        return Proposal(token, distribution, sure)

    def _scores(
        self, row: int, logits: _Floats, mask: NDArray[np.int32] | None, prefix: Sequence[int], *, best: bool
    ) -> _Values:
        """The scores of the tokens at a position, as :meth:`Processing.scores` makes them.

        Args:
            row: the row of the batch.
            logits: ``[width]``; not changed.
            mask: ``int32[words]``; ``None``: every token is allowed.
            prefix: the draft tokens before the position.
            best: nothing but the greatest score is needed; others may be those of tokens that are not allowed.
        """
        tokens = None if mask is None else _few_allowed(mask, len(logits))
        if tokens is not None:
            return _Values(tokens, self._penalised(row, logits[tokens], tokens, prefix))
        scores = self._penalised(row, logits, None, prefix)
        if mask is not None and not (best and _allows(mask, int(scores.argmax()))):
            scores = scores.copy() if scores is logits else scores
            apply_bitmask(scores, mask)
        return _Values(None, scores)

    def _penalised(self, row: int, logits: _Floats, tokens: NDArray[np.int64] | None, prefix: Sequence[int]) -> _Floats:
        """Logits after penalties and bias; the same array if there are none.

        Args:
            row: the row of the batch.
            logits: ``[n]``; not changed.
            tokens: ``int64[n]``, what they are of; ``None``: of all tokens.
            prefix: the draft tokens before the position.
        """
        processing, options = self._processing, self._processing.samplings[row]
        which = slice(None) if tokens is None else tokens
        if options.penalises:
            assert processing.counts is not None
            assert processing.in_prompt is not None
            counts = processing.counts[row, 0].numpy()[which]
            if prefix:
                counts = counts + np.bincount(prefix, minlength=processing.width)[which].astype(np.int32)
            written = counts > 0
            repetition = np.float32(options.repetition_penalty)
            penalised = np.where(logits > 0, logits / repetition, logits * repetition)
            logits = np.where(processing.in_prompt[row, 0].numpy()[which] | written, penalised, logits)
            logits -= np.float32(options.frequency_penalty) * counts + np.float32(options.presence_penalty) * written
        if options.logit_bias:
            assert processing.bias is not None
            logits = logits + processing.bias[row, 0].numpy()[which]
        return logits

    def _distribution(self, row: int, scores: _Values, best: int) -> _Values:
        """The probabilities of the next tokens, as :meth:`Processing.distribution` makes them.

        Args:
            row: the row of the batch; it does not choose greedily.
            scores: as :meth:`_scores` makes them.
            best: the index of the greatest.
        """
        options = self._processing.samplings[row]
        with np.errstate(over="ignore"):  # what is far below the highest score is -inf then, as it should be
            values = scores.values - scores.values[best]
            values /= options.temperature
        weights = _Values(scores.tokens, np.exp(values))
        if options.top_k is not None:
            weights = weights.among(_largest(weights.values, options.top_k))
        if options.nucleus is not None:
            weights = weights.among(_nucleus(weights.values, options.nucleus))
        if options.min_p:
            weights.values[weights.values < options.min_p * weights.values.max()] = 0
        return _Values(weights.tokens, weights.values / weights.values.sum(dtype=np.float64).astype(values.dtype))


def _never(token: int) -> bool:
    """Behind the end of a text, drafts have no token anyway."""
    return False


def _noisy(distribution: _Values, stream: Stream, place: int) -> NDArray[np.float64]:
    """Log-probabilities, all above 0, plus the noise of their tokens at a place of a text."""
    assert distribution.tokens is not None
    noise = gumbel_of(stream, place, distribution.tokens)
    noise += np.log(distribution.values, dtype=np.float64)
    return noise


def _audible(distribution: _Values, stream: Stream, place: int, width: int) -> _Values:
    """The probabilities of those tokens that noise may choose: the likely ones, and what has very much noise.

    Args:
        distribution: probabilities above 0.
        stream, place: of the noise.
        width: the number of all tokens.
    """
    rare = float(distribution.values.max()) * _RARE
    likely = np.flatnonzero(distribution.values > rare)
    least = _noisy(distribution.among(likely), stream, place).max()
    loud = above(stream, place, width, least - math.log(rare))
    assert distribution.tokens is not None
    chosen = np.zeros(width, dtype=bool)
    chosen[distribution.tokens[likely]] = chosen[loud] = True
    return distribution.among(np.flatnonzero(chosen[distribution.tokens]))


def _array(logits: torch.Tensor) -> _Floats:
    """Logits as an array of at least float32, without a copy where that is possible."""
    return logits.to(torch.promote_types(logits.dtype, torch.float32)).numpy()


def _dense(distribution: _Values, width: int) -> torch.Tensor:
    """A distribution over all tokens: ``[width]``."""
    if distribution.tokens is None:
        return torch.from_numpy(distribution.values)
    dense = np.zeros(width, dtype=distribution.values.dtype)
    dense[distribution.tokens] = distribution.values
    return torch.from_numpy(dense)


def _allows(mask: NDArray[np.int32], token: int) -> bool:
    """Whether a mask allows a token."""
    return token >> 5 < len(mask) and bool(int(mask[token >> 5]) >> (token & 31) & 1)


def _few_allowed(mask: NDArray[np.int32], width: int) -> NDArray[np.int64] | None:
    """The tokens below ``width`` that a mask allows, ascending; ``None`` if they are not few."""
    if not allows_few(mask, width):
        return None
    tokens = allowed_tokens(mask)
    return tokens[: tokens.searchsorted(width)]


def _largest(values: _Floats, count: int) -> NDArray[np.int64]:
    """The indices of the ``count`` greatest values, ascending; of equal values those with the lowest indices."""
    if count >= len(values):
        return np.arange(len(values))
    least = np.partition(values, len(values) - count)[len(values) - count]
    above = np.flatnonzero(values > least)
    equal = np.flatnonzero(values == least)[: count - len(above)]
    return np.sort(np.concatenate((above, equal)))


def _nucleus(weights: _Floats, share: float) -> NDArray[np.int64]:
    """The indices of the fewest greatest weights that reach a share of their sum, ascending.

    Args:
        weights: ``[n]``, none negative.
        share: from 0 to 1.
    """
    wanted, count = share * weights.sum(dtype=np.float64), _NUCLEUS
    while True:
        largest = _largest(weights, count)
        order = largest[np.argsort(-weights[largest], kind="stable")]
        reached = np.cumsum(weights[order], dtype=np.float64)
        if reached[-1] >= wanted or count >= len(weights):
            return np.sort(order[reached - weights[order] < wanted])
        count *= 8
