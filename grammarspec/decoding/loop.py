"""The speculative decoding loop: draft, verify in one pass of the target, commit; batched, each row at its own pace.

Without proposers every round yields the one token that the target chooses: the plain loop.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, Literal

import torch

from grammarspec._compiler import Matcher
from grammarspec.decoding.draft import Draft, MaskRows
from grammarspec.decoding.lane import Generation, Lane, Request
from grammarspec.decoding.processing import Processing
from grammarspec.decoding.proposers.protocol import Proposer, propose
from grammarspec.decoding.reader import Reader, context_length
from grammarspec.decoding.sampling import Sampling
from grammarspec.errors import FAILURES, PromptError
from grammarspec.vocabulary import Vocabulary

if TYPE_CHECKING:
    from transformers import PreTrainedModel

__all__ = ["Batch", "generate", "generate_batch"]

_TRIES = 32  # other tokens to choose where one leaves no room for an ending, before an ending is written


def generate(
    model: PreTrainedModel,
    prompt: Sequence[int],
    matcher: Matcher | None,
    vocabulary: Vocabulary,
    *,
    sampling: Sampling | None = None,
    proposers: Sequence[Proposer] = (),
    gamma: int = 5,
    forced: Literal["sample", "feed"] = "sample",
    on_text: Callable[[bytes], None] | None = None,
) -> Generation:
    """Generate one text. See :func:`generate_batch` for the arguments, and :class:`Request` for ``matcher``.

    Args:
        on_text: called with the bytes of the text as it grows; a character may be split between calls.

    Raises:
        LimitExceeded, Cancelled, StateCollected: the constraint did, while the text was generated.
        Truncated: the text was cut short (``on_limit="raise"``).
    """
    request = Request(prompt=prompt, matcher=matcher, sampling=sampling or Sampling())
    say = None if on_text is None else lambda _request, _sample, text: on_text(text)
    [[result]] = generate_batch(
        model, [request], vocabulary, proposers=proposers, gamma=gamma, forced=forced, on_text=say
    )
    if result.error is not None:
        raise result.error
    return result


def generate_batch(
    model: PreTrainedModel,
    requests: Sequence[Request],
    vocabulary: Vocabulary,
    *,
    proposers: Sequence[Proposer] = (),
    gamma: int = 5,
    forced: Literal["sample", "feed"] = "sample",
    on_text: Callable[[int, int, bytes], None] | None = None,
) -> list[list[Generation]]:
    """Generate texts of different requests together, with a causal language model of transformers.

    The texts are distributed as those of the masked model alone, whatever is drafted; greedily, or with a seed, they
    are the same (but for what rounding in batches of other shapes changes).

    Args:
        vocabulary: the one that the matchers' constraints were compiled for.
        proposers: where drafts come from; at each place the first that has something to say is heard. With none, the
            target chooses each token alone.
        gamma: tokens of a draft at most.
        forced: ``"sample"`` scores every token. ``"feed"`` appends text that the grammar forces, in the spelling of
            ``matcher.forced_tokens()``, without scoring it: the same texts are possible, but their probabilities are
            not those of the masked model, which may prefer another tokenisation.
        on_text: called with the numbers of request and sample, and the bytes of that text as it grows.

    Returns:
        for each request its ``n`` texts. One whose constraint raises an error while it is generated ends with it; the
        others go on.

    Raises:
        ValueError: a prompt is empty, fills the model's context or has a token that the model does not, a constraint
            is for another vocabulary, the vocabulary is larger than the model's, a matcher is at the end of a text or
            has two texts to follow, no text can be whole within a budget (``on_limit="close"``), or an argument has
            no such value.
        UnsupportedFeature: the model keeps a state that cannot be set back, or cannot read a ragged batch.
    """
    if gamma < 0:
        raise ValueError(f"gamma must be at least 0, not {gamma}")
    if forced not in ("sample", "feed"):
        raise ValueError(f"forced must be 'sample' or 'feed', not {forced!r}")
    if not requests:
        return []
    with torch.inference_mode():
        batch = Batch(
            model,
            requests,
            vocabulary,
            proposers=proposers if gamma else (),
            gamma=gamma if proposers else 0,
            feed=forced == "feed",
            on_text=on_text,
        )
        while batch.lanes:
            batch.round()
    return batch.results()


class Batch:
    """Texts that are generated together. :meth:`round` drafts, verifies and commits once, and drops what has ended.

    Attributes:
        model: the target.
        target: what reads for it.
        lanes: the texts that have not ended: the rows of all tensors.
        processing: what the rows want done to their logits.
        vocabulary: its tokens.
        end_token: of the tokens that end a text, the one that the model is most likely to use.
        width: the number of the target's logits.
        rounds: how many have been.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        requests: Sequence[Request],
        vocabulary: Vocabulary,
        *,
        proposers: Sequence[Proposer],
        gamma: int,
        feed: bool = False,
        on_text: Callable[[int, int, bytes], None] | None = None,
    ) -> None:
        self.model = model
        self.device = model.device
        self.width: int = model.config.get_text_config().vocab_size
        if vocabulary.size > self.width:
            raise ValueError(
                f"the vocabulary has {vocabulary.size} tokens, the model {self.width}: "
                "build it with the size of the model's logits (size=...)"
            )
        for request in requests:
            unknown = next((token for token in request.prompt if not 0 <= token < self.width), None)
            if unknown is not None:
                raise PromptError(f"the prompt has the token {unknown}, the model only {self.width}")
        alone = [id(request.matcher) for request in requests if request.matcher is not None and request.n == 1]
        if len(set(alone)) < len(alone):
            raise ValueError("two requests have the same matcher, which follows one text: give each its own (fork())")
        self.vocabulary = vocabulary
        self.end_token = _end_token(model, vocabulary)
        self._proposers = proposers
        self._gamma = gamma
        self._feed = feed
        self._requests = requests
        context = context_length(model)

        def lane(request: int, sample: int) -> Lane:
            say = None if on_text is None else partial(on_text, request, sample)
            return Lane(request, sample, requests[request], vocabulary, context, say)

        self.lanes = [lane(number, sample) for number, request in enumerate(requests) for sample in range(request.n)]
        self._all = list(self.lanes)
        layers = {layer for proposer in proposers for layer in proposer.hidden_layers}
        self.target = Reader(model, len(requests), hidden_layers=layers)
        self.processing = Processing(
            [lane.sampling for lane in self.lanes],
            [lane.sample for lane in self.lanes],
            [lane.tokens for lane in self.lanes],
            self.width,
            self.device,
        )
        self.rounds = 0
        self._phases: dict[str, float] = dict.fromkeys(("draft", "mask", "target", "verify", "commit"), 0.0)
        self._read_prompts()
        for proposer in proposers:
            proposer.start(self)
        self._masks = MaskRows(len(self.lanes), gamma, vocabulary.size)
        if feed:
            self._append_forced()
            self._drop_ended()

    @property
    def round_numbers(self) -> torch.Tensor:
        """``int64[rows]``: what keeps apart the random numbers that are drawn for a place in different rounds."""
        return torch.full((len(self.lanes),), self.rounds, device=self.device)

    def results(self) -> list[list[Generation]]:
        """Of each request the texts, which have all ended."""
        texts: list[list[Generation]] = [[] for _ in self._requests]
        for lane in self._all:
            texts[lane.request].append(lane.result())
        return texts

    def round(self) -> Draft:
        """Draft, verify, commit; rows that have ended leave the batch. The draft is returned to look at."""
        begin = perf_counter()
        draft = Draft(self.lanes, [min(self._gamma, lane.room - 1) for lane in self.lanes], self._masks, self.device)
        propose(self._proposers, draft)
        masks, tokens = draft.all_masks(), draft.padded()
        drafted = perf_counter()
        unread = [
            lane.tokens[read:] + proposed
            for lane, read, proposed in zip(self.lanes, self.target.lengths, draft.tokens, strict=True)
        ]
        logits = _from_first_place(self.target.read(unread, draft.gamma + 1), draft)
        _synchronise(self.device)
        passed = perf_counter()
        scores = self.processing.scores(logits, masks, tokens)
        first = torch.tensor([lane.length for lane in self.lanes], device=self.device)
        accepted, following, law = self.processing.verify(
            scores,
            tokens.clamp(min=0),
            draft.lengths(),
            None if draft.laws is None else draft.laws[:, : draft.gamma],
            draft.drawn_tokens(),
            first[:, None] + torch.arange(draft.gamma + 1, device=self.device),
            self.round_numbers,
        )
        counts, nexts = accepted.tolist(), following.tolist()
        verified = perf_counter()
        taken = [
            self._commit(row, draft, counts[row], nexts[row], logits[row], scores[row], law[row])
            for row in range(len(self.lanes))
        ]
        for row, lane in enumerate(self.lanes):
            self.target.lengths[row] = min(self.target.lengths[row], len(lane.tokens) - 1)
        for proposer in self._proposers:
            proposer.settle(draft, taken)
        if self._feed:
            self._append_forced()
        end = perf_counter()
        self._phases["draft"] += drafted - begin - draft.mask_seconds
        self._phases["mask"] += draft.mask_seconds
        self._phases["target"] += passed - drafted
        self._phases["verify"] += verified - passed
        self._phases["commit"] += end - verified
        self.rounds += 1
        for lane in self.lanes:
            lane.end_round(end)
        self._drop_ended()
        return draft

    def _commit(
        self,
        row: int,
        draft: Draft,
        accepted: int,
        following: int,
        logits: torch.Tensor,
        scores: torch.Tensor,
        law: torch.Tensor,
    ) -> int:
        """Append what a round gave a row; how many tokens of its draft were taken."""
        lane, proposed = self.lanes[row], draft.tokens[row]
        statistics, before = lane.statistics, lane.length
        if row in draft.failed:
            lane.fail(draft.failed[row])
            return 0
        draft.take_back(row)
        # Behind an end that was drafted and accepted there is nothing.
        ended = accepted > 0 and lane.is_end(proposed[accepted - 1])
        taken = written = 0
        try:
            for place, token in enumerate(proposed[:accepted] if ended else [*proposed[:accepted], following]):
                if not lane.commit(token):
                    written = self._steer(row, token, scores[place].clone(), law[place].clone())
                    break
                taken += place < accepted
                if lane.finish_reason is not None:
                    break
        except FAILURES as error:
            lane.fail(error)
        new = lane.tokens[lane.prompt_length + before :]
        if lane.sampling.logprobs:
            lane.report(before, new[: len(new) - written], logits, scores)
        self.processing.count(row, new)
        statistics.rounds[len(proposed), taken] += 1
        statistics.proposed.update(draft.sources[row])
        statistics.accepted.update(draft.sources[row][:taken])
        statistics.refused += row in draft.refused
        statistics.closing_tokens += written
        statistics.chosen_tokens += len(new) - taken - written
        return taken

    def _steer(self, row: int, token: int, scores: torch.Tensor, law: torch.Tensor) -> int:
        """A row's token leaves no room for an ending: choose others, by the same law without it, or write an ending.

        Returns:
            how many tokens of an ending were written.
        """
        lane = self.lanes[row]
        for attempt in range(_TRIES):
            scores[token], law[token] = -torch.inf, 0
            again = self.processing.again(row, scores, law, lane.length, self.rounds * _TRIES + attempt)
            if again is None:
                break
            if lane.commit(again):
                return 0
            token = again
        return lane.close()

    def _read_prompts(self) -> None:
        """Prompts of several texts are read once, but for their last token."""
        if len(self.lanes) == len(self._requests):
            return
        prompts = [list(request.prompt[:-1]) if request.n > 1 else [] for request in self._requests]
        if any(prompts):
            self.target.read(prompts, 1)
        self.target.select([lane.request for lane in self.lanes])

    def _append_forced(self) -> None:
        """Append what the grammar forces, unscored."""
        for row, lane in enumerate(self.lanes):
            if lane.matcher is None or lane.finish_reason is not None:
                continue
            before = lane.length
            try:
                for token in lane.matcher.forced_tokens()[: lane.room]:
                    if not lane.commit(token) or lane.finish_reason is not None:
                        break
            except FAILURES as error:
                lane.fail(error)
            lane.statistics.fed_tokens += lane.length - before
            self.processing.count(row, lane.tokens[lane.prompt_length + before :])

    def _drop_ended(self) -> None:
        """Rows that have ended leave the batch."""
        kept = [row for row, lane in enumerate(self.lanes) if lane.finish_reason is None]
        if len(kept) == len(self.lanes):
            return
        for lane in self.lanes:
            if lane.finish_reason is not None:
                lane.statistics.target_passes = self.target.passes
                lane.statistics.draft_passes = sum(proposer.passes for proposer in self._proposers)
                lane.statistics.phase_seconds = dict(self._phases)
        self.lanes = [self.lanes[row] for row in kept]
        if not kept:
            return
        self.target.select(kept)
        self.processing.select(kept)
        for proposer in self._proposers:
            proposer.select(kept)
        self._masks = MaskRows(len(kept), self._gamma, self.vocabulary.size)


def _end_token(model: PreTrainedModel, vocabulary: Vocabulary) -> int:
    configured = getattr(getattr(model, "generation_config", None), "eos_token_id", None)
    ends = [] if configured is None else [configured] if isinstance(configured, int) else configured
    return next((token for token in ends if token in vocabulary.eos_token_ids), vocabulary.eos_token_ids[0])


def _from_first_place(logits: torch.Tensor, draft: Draft) -> torch.Tensor:
    """Logits whose rows end together, moved so that they begin together: ``[rows, gamma + 1, width]``."""
    missing = [draft.gamma - len(tokens) for tokens in draft.tokens]
    if not any(missing):
        return logits
    last = logits.shape[1] - 1
    index = torch.arange(last + 1)[None] + torch.tensor(missing)[:, None]
    rows = torch.arange(len(missing), device=logits.device)[:, None]
    return logits[rows, index.clamp(max=last).to(logits.device)]


def _synchronise(device: torch.device) -> None:
    """Wait for the device, so that times are those of the phases that they are given to."""
    if device.type != "cpu":
        torch.accelerator.synchronize(device)
