"""From logits to the law of the next tokens, and draws from it: the one place where this is done.

Every tensor operation is free of host synchronisation, and of the device that it runs on.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from grammarspec.bitmask import apply_bitmask
from grammarspec.decoding.noise import Purpose, gumbel, uniform
from grammarspec.decoding.sampling import Sampling
from grammarspec.decoding.verification import accepted_drafts, draw, residual_law

__all__ = ["Processing"]


class Processing:
    """What the rows of a batch want done to their logits, as tensors.

    A row's tokens are chosen greedily (temperature 0), by shared noise (a seed is given) or drawn (otherwise).

    Args:
        samplings: one for each row.
        samples: the number of each row among the samples of its request; rows of one seed draw differently by it.
        prompts: the tokens of each row's prompt.
        width: the number of logits.

    Attributes:
        greedy: all rows choose greedily.
        draws: some row's tokens are drawn.

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
        def column(values: Sequence[float]) -> torch.Tensor:
            return torch.tensor(values, device=device)[:, None, None]

        self._device = device
        self._width = width
        self._greedy = [sampling.temperature == 0 for sampling in samplings]
        self._shared = [sampling.seed is not None for sampling in samplings]
        self._seeds = [int(torch.randint(1 << 62, ())) if s.seed is None else s.seed for s in samplings]
        self._samples = list(samples)
        self._temperature = column([sampling.temperature or 1.0 for sampling in samplings])
        self._greedy_rows = column(self._greedy)
        self._top_k = column([sampling.top_k or width for sampling in samplings])
        self._top_p = column([torch.inf if sampling.top_p is None else sampling.top_p for sampling in samplings])
        self._min_p = column([sampling.min_p or 0.0 for sampling in samplings])
        self._sorts = any(sampling.top_k is not None or sampling.top_p is not None for sampling in samplings)
        self._filters = any(sampling.min_p for sampling in samplings)
        self._repetition = column([sampling.repetition_penalty for sampling in samplings])
        self._presence = column([sampling.presence_penalty for sampling in samplings])
        self._frequency = column([sampling.frequency_penalty for sampling in samplings])
        self._bias = self._in_prompt = self._counts = None
        if any(sampling.logit_bias for sampling in samplings):
            self._bias = torch.zeros(len(samplings), 1, width, device=device)
            for row, sampling in enumerate(samplings):
                for token, bias in sampling.logit_bias.items():
                    if token >= width:
                        raise ValueError(f"logit_bias names token {token}, but the model has only {width}")
                    self._bias[row, 0, token] = bias
        if any((s.repetition_penalty, s.presence_penalty, s.frequency_penalty) != (1, 0, 0) for s in samplings):
            self._in_prompt = torch.zeros(len(samplings), 1, width, dtype=torch.bool, device=device)
            self._counts = torch.zeros(len(samplings), 1, width, dtype=torch.int32, device=device)
            for row, prompt in enumerate(prompts):
                self._in_prompt[row, 0, torch.tensor(prompt, device=device)] = True
        self._place()

    def _place(self) -> None:
        """Tensors that follow from the rows' lists."""
        words = [
            (seed & 0xFFFF_FFFF, seed >> 32, sample) for seed, sample in zip(self._seeds, self._samples, strict=True)
        ]
        self._streams = torch.tensor(words, dtype=torch.int64, device=self._device)
        noisy = [row for row, greedy in enumerate(self._greedy) if self._shared[row] and not greedy]
        self._noisy = torch.tensor(noisy, dtype=torch.int64, device=self._device)
        self._chosen_rows = [greedy or shared for greedy, shared in zip(self._greedy, self._shared, strict=True)]
        self._chosen = torch.tensor(self._chosen_rows, device=self._device)
        self.greedy = all(self._greedy)
        self.draws = not all(self._chosen_rows)

    def draws_row(self, row: int) -> bool:
        """A row's tokens are drawn, so that verifying its draft takes the law that it was drawn from."""
        return not self._chosen_rows[row]

    def select(self, rows: Sequence[int]) -> None:
        """Go on with these rows, in this order."""
        self._greedy, self._shared = ([flags[row] for row in rows] for flags in (self._greedy, self._shared))
        self._seeds, self._samples = ([numbers[row] for row in rows] for numbers in (self._seeds, self._samples))
        index = torch.tensor(rows, device=self._device)
        for name in (
            "temperature", "greedy_rows", "top_k", "top_p", "min_p", "repetition", "presence", "frequency",
            "bias", "in_prompt", "counts",
        ):  # fmt: skip
            tensor = getattr(self, f"_{name}")
            if tensor is not None:
                setattr(self, f"_{name}", tensor[index])
        self._place()

    def count(self, row: int, tokens: Sequence[int]) -> None:
        """Tokens were added to a row's text."""
        if self._counts is not None and tokens:
            index = torch.tensor(tokens, device=self._device)
            self._counts[row, 0].index_add_(0, index, torch.ones_like(index, dtype=torch.int32))

    def scores(self, logits: torch.Tensor, masks: torch.Tensor, prefix: torch.Tensor) -> torch.Tensor:
        """Penalties, bias and grammar mask.

        Args:
            logits: ``[rows, n, width]``, of any floating dtype; left as they are.
            masks: ``int32[rows, n, words]``.
            prefix: ``int64[rows, m]``, the draft of each row, padded by -1; ``m >= n - 1``, and the last logits stand
                behind all of it, those before behind one token less each.

        Returns:
            ``[rows, n, width]``, at least float32; -inf where the mask forbids a token.
        """
        rows, n, width = logits.shape
        scores = logits.to(torch.promote_types(logits.dtype, torch.float32), copy=True)
        if self._counts is not None and self._in_prompt is not None:
            m = prefix.shape[1]
            before = torch.arange(m, device=self._device) < torch.arange(m - n + 1, m + 1, device=self._device)[:, None]
            drafted = (before & (prefix >= 0)[:, None, :]).to(torch.int32)
            counts = self._counts.repeat(1, n, 1)
            counts.scatter_add_(2, prefix.clamp(min=0)[:, None, :].expand(rows, n, m), drafted)
            penalised = torch.where(scores > 0, scores / self._repetition, scores * self._repetition)
            scores = torch.where(self._in_prompt | (counts > 0), penalised, scores)
            scores -= self._frequency * counts + self._presence * (counts > 0)
        if self._bias is not None:
            scores += self._bias
        apply_bitmask(scores.view(rows * n, width), masks.reshape(rows * n, -1))
        return scores

    def law(self, scores: torch.Tensor) -> torch.Tensor:
        """Temperature, top-k, top-p and min-p: the probabilities that the next tokens are drawn from.

        Args:
            scores: ``[rows, n, width]`` of :meth:`scores`.

        Returns:
            ``[rows, n, width]``; each row sums to 1. Greedy rows have a single 1.
        """
        choice = torch.zeros_like(scores).scatter_(-1, scores.argmax(-1, keepdim=True), 1.0)
        if self.greedy:
            return choice
        # Measured from the highest score, so that no quotient overflows upwards.
        scores = (scores - scores.amax(-1, keepdim=True)) / self._temperature
        if self._sorts:
            ordered, order = scores.sort(dim=-1, descending=True, stable=True)
            ordered.masked_fill_(torch.arange(self._width, device=self._device) >= self._top_k, -torch.inf)
            probabilities = ordered.softmax(-1)
            ordered.masked_fill_(probabilities.cumsum(-1) - probabilities >= self._top_p, -torch.inf)
            scores = scores.scatter(-1, order, ordered)
        probabilities = scores.softmax(-1)
        if self._filters:
            probabilities.masked_fill_(probabilities < self._min_p * probabilities.amax(-1, keepdim=True), 0)
            probabilities /= probabilities.sum(-1, keepdim=True)
        return torch.where(self._greedy_rows, choice, probabilities)

    def choices(self, law: torch.Tensor, places: torch.Tensor) -> torch.Tensor:
        """The tokens that are chosen by the noise of their place (greedily: without noise), whatever was drafted.

        Args:
            law: ``[rows, n, width]``.
            places: ``int64[rows, n]``, where in their texts the tokens stand.

        Returns:
            ``int64[rows, n]``; for rows whose tokens are drawn, the most probable ones.
        """
        chosen = law.argmax(-1)
        if len(self._noisy):
            noisy = law[self._noisy].double().log() + gumbel(
                self._streams[self._noisy], places[self._noisy], self._width
            )
            chosen[self._noisy] = noisy.argmax(-1)
        return chosen

    def propose(
        self, scores: torch.Tensor, places: torch.Tensor, rounds: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor | None]:
        """Tokens from a draft model's scores, by the same rule as the target's.

        Args:
            scores: ``[rows, width]``.
            places, rounds: ``int64[rows]``.

        Returns:
            ``int64[rows]``, and the law that they were drawn from, ``[rows, width]``, where some row's were drawn.
        """
        if self.greedy:
            return scores.argmax(-1), None
        law = self.law(scores[:, None])
        chosen = self.choices(law, places[:, None])[:, 0]
        if not self.draws:
            return chosen, None
        drawn = draw(law[:, 0], uniform(self._streams, places[:, None], Purpose.DRAFT, rounds)[:, 0])
        return torch.where(self._chosen, chosen, drawn), law[:, 0]

    def verify(
        self,
        scores: torch.Tensor,
        tokens: torch.Tensor,
        lengths: torch.Tensor,
        laws: torch.Tensor | None,
        drawn: torch.Tensor,
        places: torch.Tensor,
        rounds: torch.Tensor,
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """How much of each row's draft is accepted, and the token behind that.

        Args:
            scores: ``[rows, drafts + 1, width]``, the target's, behind each draft token and before the first.
            tokens: ``int64[rows, drafts]``, the drafts, padded by anything.
            lengths: ``int64[rows]``, of the drafts.
            laws: ``[rows, drafts, width]``, what drawn draft tokens were drawn from.
            drawn: ``bool[rows, drafts]``; other draft tokens were certain to be proposed.
            places: ``int64[rows, drafts + 1]``, where in their texts the tokens stand.
            rounds: ``int64[rows]``.

        Returns:
            how many tokens are accepted and the next one, ``int64[rows]`` each; and the law, as :meth:`law`.
        """
        law = self.law(scores)
        inside = torch.arange(tokens.shape[1], device=self._device) < lengths[:, None]
        chosen = self.choices(law, places)
        agreed = ((chosen[:, :-1] == tokens) & inside).cumprod(1).sum(1)
        following = chosen.gather(1, agreed[:, None])[:, 0]
        if not self.draws:
            return agreed, following, law
        accept = uniform(self._streams, places[:, :-1], Purpose.ACCEPT, rounds)
        accepted = accepted_drafts(law, tokens, inside, laws, drawn, accept)
        residual = residual_law(law, tokens, accepted, lengths, laws, drawn)
        next_places = places.gather(1, accepted[:, None])
        drawn_next = draw(residual, uniform(self._streams, next_places, Purpose.CHOOSE, rounds)[:, 0])
        return (
            torch.where(self._chosen, agreed, accepted),
            torch.where(self._chosen, following, drawn_next),
            law,
        )

    def again(self, row: int, scores: torch.Tensor, law: torch.Tensor, place: int, turn: int) -> int | None:
        """Choose once more at a place, of fewer tokens.

        Args:
            scores, law: ``[width]``, as :meth:`scores` and :meth:`law` gave them, but -inf and 0 at the tokens that
                are not to be chosen.
            turn: a number of the round and the attempt that no other draw of the row had.

        Returns:
            the token, or ``None`` if none is left.
        """
        left = scores > -torch.inf if self._greedy[row] else law > 0
        if not bool(left.any()):
            return None
        if self._greedy[row]:
            return int(scores.argmax())
        places = torch.tensor([[place]], device=self._device)
        stream = self._streams[row : row + 1]
        if self._shared[row]:
            return int((law.double().log() + gumbel(stream, places, self._width)[0, 0]).argmax())
        turns = torch.tensor([turn], device=self._device)
        return int(draw(law[None], uniform(stream, places, Purpose.AGAIN, turns)[:, 0]))
