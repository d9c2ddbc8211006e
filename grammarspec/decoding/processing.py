"""From logits to the distributions of next tokens, and tokens chosen from these; for target and drafts alike.

Logits and mask rows go in; scores, distributions, accepted draft tokens and next tokens come out. This is the one
module that knows the order of penalties, bias, mask, temperature, top-k, top-p and min-p. Its tensor operations run on
any device, and do not synchronise with the host; on CUDA devices most of them are kernels (:mod:`grammarspec.kernels`).
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from grammarspec.bitmask import apply_bitmask
from grammarspec.decoding.distributions import Kind, choices, distribution, masked_scores, verify
from grammarspec.decoding.noise import Purpose, Stream, gumbel, uniform
from grammarspec.decoding.sampling import Sampling
from grammarspec.decoding.verification import draw

__all__ = ["Processing", "Proposals"]

# The tensors with one entry for each row: those of options, and those that follow from seeds and kinds of rows.
_OF_ROWS = (
    "_temperature", "_top_k", "_top_p", "_min_p", "_repetition", "_presence", "_frequency",
    "bias", "in_prompt", "counts",
)  # fmt: skip
_OF_STREAMS = ("_streams", "_kinds", "chosen")
_LISTS = ("samplings", "streams", "_greedy", "_shared", "_seeds", "_samples", "_chosen_rows")


@dataclass(frozen=True, eq=False, slots=True)
class Proposals:
    """Draft tokens of the rows of a batch.

    Attributes:
        tokens: ``int64[rows]``, the tokens; 0 where none is possible.
        possible: ``bool[rows]``, which rows have one.
        distributions: ``[rows, width]``, what they were drawn from; ``None`` if no row's tokens are drawn.
        confidence: ``[rows]``, their probabilities under the draft's scores at temperature 1; ``None`` where nobody
            asked.
    """

    tokens: torch.Tensor
    possible: torch.Tensor
    distributions: torch.Tensor | None
    confidence: torch.Tensor | None


class Processing:
    """The sampling options of the rows of a batch, as tensors.

    The tokens of a row are chosen in one of three ways:

    * greedily (temperature 0): the most probable token;
    * by shared noise (a seed is given): the argmax of log-probabilities plus Gumbel noise that is a function of seed,
      sample and position (the Gumbel-max trick), for draft and target alike: the text does not depend on drafts;
    * drawn (otherwise): by inversion of the distribution, with a random number that is a function of the row and the
      position; draft tokens that were drawn themselves are accepted by speculative sampling
      (:mod:`grammarspec.decoding.verification`), other ones if they are the token that comes out.

    Args:
        samplings: the options of each row.
        samples: the number of each row among the samples of its request; rows with the same seed differ by it.
        prompts: the tokens of each row's prompt.
        width: the number of logits.
        device: where the tensors are.

    Attributes:
        samplings: the options of each row.
        streams: what the random numbers of each row depend on.
        width: the number of logits.
        bias: ``[rows, 1, width]``, what is added to logits; ``None`` if no row has a ``logit_bias``.
        in_prompt, counts: ``bool`` and ``int32[rows, 1, width]``: whether a token is in the prompt, and how often it is
            in the text so far; ``None`` if no row has penalties.
        greedy: whether all rows choose greedily.
        draws: whether the tokens of some row are drawn.
        chosen: ``bool[rows]``, the other rows, whose tokens are functions of the text and the seed.

    Raises:
        ValueError: a ``logit_bias`` names a token that the model does not have.
    """

    def __init__(
        self,
        samplings: Sequence[Sampling],
        samples: Sequence[int],
        prompts: Sequence[Sequence[int]],
        width: int,
        device: torch.device,
    ) -> None:
        def each(values: Sequence[float], dtype: torch.dtype = torch.float32) -> torch.Tensor:
            return torch.tensor(values, device=device, dtype=dtype)

        def column(values: Sequence[float]) -> torch.Tensor:
            return each(values)[:, None, None]

        self.samplings = list(samplings)
        self.width = width
        self._device = device
        self._greedy = [sampling.temperature == 0 for sampling in samplings]
        self._shared = [sampling.seed is not None for sampling in samplings]
        self._seeds = [int(torch.randint(1 << 62, ())) if s.seed is None else s.seed for s in samplings]
        self._samples = list(samples)
        self._temperature = each([sampling.temperature or 1.0 for sampling in samplings])
        self._top_k = each([min(sampling.top_k or width, width) for sampling in samplings], torch.int64)
        self._top_p = each([torch.inf if sampling.nucleus is None else sampling.nucleus for sampling in samplings])
        self._min_p = each([sampling.min_p or 0.0 for sampling in samplings])
        self._asked: tuple[bool, ...] = (
            any(sampling.top_k is not None for sampling in samplings),
            any(sampling.nucleus is not None for sampling in samplings),
            any(sampling.min_p for sampling in samplings),
        )
        self._repetition = column([sampling.repetition_penalty for sampling in samplings])
        self._presence = column([sampling.presence_penalty for sampling in samplings])
        self._frequency = column([sampling.frequency_penalty for sampling in samplings])
        self.bias: torch.Tensor | None = None
        self.in_prompt: torch.Tensor | None = None
        self.counts: torch.Tensor | None = None
        if any(sampling.logit_bias for sampling in samplings):
            self.bias = torch.zeros(len(samplings), 1, width, device=device)
            for row, sampling in enumerate(samplings):
                for token, bias in sampling.logit_bias.items():
                    if token >= width:
                        raise ValueError(f"logit_bias names token {token}, but the model has only {width}")
                    self.bias[row, 0, token] = bias
        if any(sampling.penalises for sampling in samplings):
            self.in_prompt = torch.zeros(len(samplings), 1, width, dtype=torch.bool, device=device)
            self.counts = torch.zeros(len(samplings), 1, width, dtype=torch.int32, device=device)
            for row, prompt in enumerate(prompts):
                self.in_prompt[row, 0, torch.tensor(prompt, device=device)] = True
        self._update_streams()

    def _update_streams(self) -> None:
        """Make the tensors that follow from the lists of seeds, samples and kinds of rows."""
        self.streams: list[Stream] = [
            (seed & 0xFFFF_FFFF, seed >> 32, sample) for seed, sample in zip(self._seeds, self._samples, strict=True)
        ]
        self._streams = torch.tensor(self.streams, dtype=torch.int64, device=self._device)
        kinds = [
            Kind.GREEDY if greedy else Kind.NOISY if shared else Kind.DRAWN
            for greedy, shared in zip(self._greedy, self._shared, strict=True)
        ]
        self._kinds = torch.tensor(kinds, dtype=torch.int32, device=self._device)
        self._noise = Kind.NOISY in kinds
        self._chosen_rows = [kind is not Kind.DRAWN for kind in kinds]
        self.chosen = torch.tensor(self._chosen_rows, device=self._device)
        self.greedy = all(self._greedy)
        self.draws = not all(self._chosen_rows)

    def of_row(self, row: int) -> Processing:
        """The options of one row alone, as a batch of its own."""
        return self.of_rows([row])

    def of_rows(self, rows: Sequence[int]) -> Processing:
        """The options of these rows, as a batch of its own; a row may be taken several times."""
        some = copy.copy(self)
        some.select(rows)
        return some

    def draws_row(self, row: int) -> bool:
        """Whether the tokens of a row are drawn, so that verification needs the distributions of its draft."""
        return not self._chosen_rows[row]

    def select(self, rows: Sequence[int], samples: Sequence[int] | None = None) -> None:
        """Keep these rows, in this order; a row may be taken several times.

        Args:
            rows: the rows.
            samples: the numbers of their samples from now on, on which their random numbers depend; ``None`` leaves
                them as they are.
        """
        self.samplings = [self.samplings[row] for row in rows]
        self._greedy, self._shared = ([flags[row] for row in rows] for flags in (self._greedy, self._shared))
        self._seeds, self._samples = ([numbers[row] for row in rows] for numbers in (self._seeds, self._samples))
        self._samples = self._samples if samples is None else list(samples)
        index = torch.tensor(rows, device=self._device)
        for name in _OF_ROWS:
            tensor = getattr(self, name)
            if tensor is not None:
                setattr(self, name, tensor[index])
        self._update_streams()

    def join(self, other: Processing) -> None:
        """Append the rows of another batch of the same model, which is not to be used again."""
        rows, more = len(self.samplings), len(other.samplings)
        self.samplings += other.samplings
        self._greedy, self._shared = self._greedy + other._greedy, self._shared + other._shared
        self._seeds, self._samples = self._seeds + other._seeds, self._samples + other._samples
        self._asked = tuple(mine or theirs for mine, theirs in zip(self._asked, other._asked, strict=True))
        for name in _OF_ROWS:
            mine, theirs = getattr(self, name), getattr(other, name)
            if mine is None and theirs is None:
                continue
            # Where one batch has no bias or no penalties, its rows get zeros, which change nothing.
            mine = theirs.new_zeros(rows, *theirs.shape[1:]) if mine is None else mine
            theirs = mine.new_zeros(more, *mine.shape[1:]) if theirs is None else theirs
            setattr(self, name, torch.cat((mine, theirs)))
        self._update_streams()

    @property
    def shape(self) -> tuple[object, ...]:
        """What the work of a round depends on, beside the values of tensors."""
        given = tuple(getattr(self, name) is not None for name in _OF_ROWS)
        return len(self.samplings), self.greedy, self.draws, self._noise, self._asked, given

    def load(self, other: Processing) -> None:
        """Copy the options of other rows, of the same :attr:`shape`, in place of these; the tensors do not move."""
        for name in (*_OF_ROWS, *_OF_STREAMS):
            mine, theirs = getattr(self, name), getattr(other, name)
            if mine is not None:
                mine.copy_(theirs)
        for name in _LISTS:
            setattr(self, name, getattr(other, name))

    def first(self, rows: int) -> Processing:
        """The options of the first rows: views of the same tensors, which stay where they are.

        What is done for some rows only, such as sorting for top-p, is still done if any row asked for it.
        """
        some = copy.copy(self)
        for name in (*_OF_ROWS, *_OF_STREAMS):
            tensor = getattr(self, name)
            if tensor is not None:
                setattr(some, name, tensor[:rows])
        return some

    def move(self, rows: Sequence[int], index: torch.Tensor) -> None:
        """Copy some rows to the front, in this order, for :meth:`first`; nothing waits for the device.

        Args:
            rows: the rows.
            index: ``int64[rows]``, the same on the device.
        """
        for name in (*_OF_ROWS, *_OF_STREAMS):
            tensor = getattr(self, name)
            if tensor is not None:
                tensor[: len(index)] = tensor[index]  # the right side is a copy
        for name in _LISTS:
            entries = getattr(self, name)
            setattr(self, name, [entries[row] for row in rows] + entries[len(rows) :])

    def count_each(self, tokens: torch.Tensor, committed: torch.Tensor) -> None:
        """Count tokens that were committed to the texts of all rows, for their penalties.

        Args:
            tokens: ``int64[rows, n]``.
            committed: ``bool[rows, n]``, which of them were.
        """
        if self.counts is not None:
            self.counts[:, 0].scatter_add_(1, tokens, committed.to(torch.int32))

    def count(self, row: int, tokens: Sequence[int]) -> None:
        """Count tokens that were committed to a row's text, for its penalties."""
        if self.counts is not None and tokens:
            index = torch.tensor(tokens, device=self._device)
            self.counts[row, 0].index_add_(0, index, torch.ones_like(index, dtype=torch.int32))

    def scores(self, logits: torch.Tensor, masks: torch.Tensor, prefix: torch.Tensor) -> torch.Tensor:
        """Logits after penalties, bias and grammar mask.

        Args:
            logits: ``[rows, n, width]``, of any floating dtype; not changed.
            masks: ``int32[rows, n, words]``, one bit for each token.
            prefix: ``int64[rows, m]``, the draft of each row, padded by -1, with ``m >= n - 1``. The last logits are
                behind all m tokens, each one before them behind one token less.

        Returns:
            ``[rows, n, width]`` in the dtype of the logits, at least float32; -inf where the mask forbids a token.
        """
        rows, n, width = logits.shape
        masks = masks.reshape(rows * n, -1)
        if self.counts is None and self.bias is None:
            return masked_scores(logits.reshape(rows * n, width), masks, None).view(rows, n, width)
        scores = logits.to(torch.promote_types(logits.dtype, torch.float32), copy=True)
        if self.counts is not None and self.in_prompt is not None:
            m = prefix.shape[1]
            before = torch.arange(m, device=self._device) < torch.arange(m - n + 1, m + 1, device=self._device)[:, None]
            drafted = (before & (prefix >= 0)[:, None, :]).to(torch.int32)
            counts = self.counts.repeat(1, n, 1)
            counts.scatter_add_(2, prefix.clamp(min=0)[:, None, :].expand(rows, n, m), drafted)
            penalised = torch.where(scores > 0, scores / self._repetition, scores * self._repetition)
            scores = torch.where(self.in_prompt | (counts > 0), penalised, scores)
            scores -= self._frequency * counts + self._presence * (counts > 0)
        if self.bias is not None:
            scores += self.bias
        apply_bitmask(scores.view(rows * n, width), masks)
        return scores

    def distribution(self, scores: torch.Tensor) -> torch.Tensor:
        """The distributions of the next tokens: scores after temperature, top-k, top-p and min-p, normalised.

        Args:
            scores: ``[rows, n, width]`` of :meth:`scores`.

        Returns:
            ``[rows, n, width]``, probabilities that sum to 1 over the width. Those of greedy rows are one-hot.
        """
        if self.greedy:
            return torch.zeros_like(scores).scatter_(-1, scores.argmax(-1, keepdim=True), 1.0)
        return distribution(scores, *self._options(), self._kinds)

    def _options(self) -> tuple[torch.Tensor, torch.Tensor | None, torch.Tensor | None, torch.Tensor | None]:
        """Temperature, top-k, top-p and min-p; ``None`` for what no row has asked for."""
        top_k, top_p, min_p = self._asked
        return (
            self._temperature,
            self._top_k if top_k else None,
            self._top_p if top_p else None,
            self._min_p if min_p else None,
        )

    def choices(self, distribution: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
        """The tokens that shared noise (greedily: no noise) chooses at each position, whatever was drafted.

        Args:
            distribution: ``[rows, n, width]`` of :meth:`distribution`.
            positions: ``int64[rows, n]``, of the tokens in their texts, from 0.

        Returns:
            ``int64[rows, n]``; for rows whose tokens are drawn, the most probable ones.
        """
        return choices(distribution, positions, self._kinds, self._streams, self._noise)

    def propose(
        self, scores: torch.Tensor, positions: torch.Tensor, rounds: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor | None]:
        """Draft tokens from the scores of a draft model, chosen as the target's tokens are.

        Args:
            scores: ``[rows, width]`` of :meth:`scores`.
            positions: ``int64[rows]``, of the tokens in their texts, from 0.
            rounds: ``int64[rows]``, the number of the round.

        Returns:
            the tokens, ``int64[rows]``; and the distributions that they were drawn from, ``[rows, width]``, or ``None``
            if no row's tokens are drawn.
        """
        if self.greedy:
            return scores.argmax(-1), None
        distribution = self.distribution(scores[:, None])
        chosen = self.choices(distribution, positions[:, None])[:, 0]
        if not self.draws:
            return chosen, None
        drawn = draw(distribution[:, 0], uniform(self._streams, positions[:, None], Purpose.DRAFT, rounds)[:, 0])
        return torch.where(self.chosen, chosen, drawn), distribution[:, 0]

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
        """:meth:`scores` and :meth:`propose` in one.

        Args:
            logits: ``[rows, width]``, of a draft model.
            masks: ``int32[rows, words]``; ``None``: every token is allowed.
            prefix: ``int64[rows, m]``, the draft of each row so far, padded by -1.
            positions, rounds: as for :meth:`propose`.
            wanted: ``bool[rows]``, which rows are to get a token; what the others get means nothing.
            confidence: say how probable the tokens are.
        """
        if masks is None:
            masks = torch.full((len(logits), -(-self.width // 32)), -1, dtype=torch.int32, device=logits.device)
        scores = self.scores(logits[:, None], masks[:, None], prefix)[:, 0]
        tokens, distributions = self.propose(scores, positions, rounds)
        possible = scores.amax(-1).isfinite()  # broken logits draft nothing
        tokens = torch.where(possible, tokens, 0)
        sure = scores.softmax(-1).gather(1, tokens[:, None])[:, 0] if confidence else None
        return Proposals(tokens, possible, distributions, sure)

    def verify(
        self,
        scores: torch.Tensor,
        tokens: torch.Tensor,
        lengths: torch.Tensor,
        draft: torch.Tensor | None,
        drawn: torch.Tensor,
        positions: torch.Tensor,
        rounds: torch.Tensor,
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Verify the drafts: how many tokens of each are accepted, and the token behind those.

        Args:
            scores: ``[rows, drafts + 1, width]``, the target's, before the first draft token and behind each.
            tokens: ``int64[rows, drafts]``, the draft tokens, padded by anything.
            lengths: ``int64[rows]``, how many tokens each draft has.
            draft: ``[rows, drafts, width]``, the distributions that drawn draft tokens were drawn from; may be ``None``
                if none was drawn.
            drawn: ``bool[rows, drafts]``; the other draft tokens were certain to be proposed.
            positions: ``int64[rows, drafts + 1]``, of the tokens in their texts, from 0.
            rounds: ``int64[rows]``, the number of the round.

        Returns:
            how many tokens are accepted and the next token, ``int64[rows]`` each; and the target's distributions, as
            :meth:`distribution` returns them.
        """
        accepted, following, _, target = self._verify(
            scores, None, None, tokens, lengths, draft, drawn, positions, rounds, whole=True
        )
        return accepted, following, target

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
        mask_rows: torch.Tensor | None = None,
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """:meth:`scores` and :meth:`verify` in one: kernels need not write the scores, nor always the distributions.

        Args:
            logits: ``[rows, drafts + 1, width]``, as for :meth:`scores`.
            masks: ``int32[rows, drafts + 1, words]``; with ``mask_rows`` a pool of them, ``int32[m, words]``.
            prefix: ``int64[rows, drafts]``, the draft tokens, padded by -1.
            lengths, draft, drawn, positions, rounds: as for :meth:`verify`.
            mask_rows: ``int64[rows, drafts + 1]``, the row of the pool for each position; a negative one leaves it
                unconstrained.

        Returns:
            how many tokens are accepted and the next token, ``int64[rows]`` each; and the highest score at each
            position, ``[rows, drafts + 1]``: NaN or infinite where the logits are broken.
        """
        pool: torch.Tensor | None = masks
        if self.counts is not None or self.bias is not None:
            if mask_rows is not None:
                masks = masks[mask_rows.clamp(min=0)] | -(mask_rows < 0).to(torch.int32)[..., None]
            logits, pool, mask_rows = self.scores(logits, masks, prefix), None, None
        accepted, following, highest, _ = self._verify(
            logits, pool, mask_rows, prefix.clamp(min=0), lengths, draft, drawn, positions, rounds, whole=False
        )
        return accepted, following, highest

    def _verify(
        self,
        logits: torch.Tensor,
        masks: torch.Tensor | None,
        mask_rows: torch.Tensor | None,
        *drafts: Any,
        whole: bool,
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
        given: list[Any] = [
            logits,
            masks,
            mask_rows,
            *self._options(),
            self._kinds,
            self._noise,
            self._streams,
            *drafts,
        ]
        given += [self.draws, whole, int(Purpose.ACCEPT), int(Purpose.CHOOSE)]
        return verify(*given)

    def choose_again(
        self, row: int, scores: torch.Tensor, distribution: torch.Tensor, position: int, attempt: int
    ) -> int | None:
        """Choose another token at a position, after some tokens were excluded.

        Args:
            row: the row of the batch.
            scores: ``[width]`` of :meth:`scores`, but -inf for the excluded tokens.
            distribution: ``[width]`` of :meth:`distribution`, but 0 for the excluded tokens.
            position: of the token in its text, from 0.
            attempt: a number made of the round and the attempt, so that no other draw of the row has it.

        Returns:
            the token, or ``None`` if no token is left.
        """
        left = scores > -torch.inf if self._greedy[row] else distribution > 0
        if not bool(left.any()):
            return None
        if self._greedy[row]:
            return int(scores.argmax())
        positions = torch.tensor([[position]], device=self._device)
        stream = self._streams[row : row + 1]
        if self._shared[row]:
            return int((distribution.double().log() + gumbel(stream, positions, self.width)[0, 0]).argmax())
        attempts = torch.tensor([attempt], device=self._device)
        return int(draw(distribution[None], uniform(stream, positions, Purpose.AGAIN, attempts)[:, 0]))
