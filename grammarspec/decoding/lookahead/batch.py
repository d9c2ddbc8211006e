"""The loop of decoding with lookaheads: rounds of the speculative loop in which a reward decides, too.

A :class:`~grammarspec.decoding.batch.Batch` drafts, and has the target verify. Here the state of each row follows from
the acceptance score and the reward, and from the state what is committed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import isfinite
from time import perf_counter
from typing import TYPE_CHECKING, Final, Literal

import torch

from grammarspec.decoding.batch import Batch
from grammarspec.decoding.choosers import Verdict
from grammarspec.decoding.draft import Draft
from grammarspec.decoding.lookahead.options import Lookahead, Plan
from grammarspec.decoding.lookahead.rewards import Reward, RewardLike, as_reward, scored
from grammarspec.decoding.lookahead.rollouts import Branch, Guide, candidates, roll_out
from grammarspec.decoding.proposers import Proposer
from grammarspec.decoding.requests import Generation, Request
from grammarspec.decoding.targets import Target, context_length, width_of
from grammarspec.errors import FAILURES
from grammarspec.vocabulary import Vocabulary

if TYPE_CHECKING:
    from transformers import PreTrainedModel

__all__ = ["LookaheadBatch", "State", "generate_with_lookahead"]

State = Literal["accepted", "low acceptance", "low acceptance and reward", "low reward", "cdlh", "greedy"]
"""What a round did: the four states of CDSL, and one for each of the methods that it is compared with."""

_STATES: Final[dict[tuple[bool, bool], State]] = {
    (True, True): "accepted",
    (False, True): "low acceptance",
    (False, False): "low acceptance and reward",
    (True, False): "low reward",
}


def generate_with_lookahead(
    model: PreTrainedModel | Target,
    requests: Sequence[Request],
    vocabulary: Vocabulary,
    *,
    reward: RewardLike | Sequence[RewardLike],
    lookahead: Lookahead | None = None,
    proposers: Sequence[Proposer] = (),
    on_text: Callable[[int, int, bytes], None] | None = None,
) -> list[list[Generation]]:
    """Generate the texts of several requests together, with lookaheads that rewards judge.

    What :func:`grammarspec.decoding.generate_batch` promises of distributions does **not** hold here: texts are chosen
    for their reward. What it promises of masks does: each whole text is one of its grammar.

    Args:
        model, requests, vocabulary, on_text: as for :func:`grammarspec.decoding.generate_batch`.
        reward: what texts are worth; or several rewards, one for each request.
        lookahead: how lookaheads are made and used; with all defaults if not given.
        proposers: what drafts if ``lookahead`` has no draft.

    Returns:
        the ``n`` texts of each request, with their ``reward``, and rounds by state in ``statistics.states``.

    Raises:
        TypeError: a reward, the lookahead or the target is none.
        ValueError: there are not as many rewards as requests; sampling options do not fit the lookahead; there is no
            draft, or none that can continue candidates; a reward is not finite; or as
            :func:`grammarspec.decoding.generate_batch`.
        DraftMismatch, UnsupportedModel: as :func:`grammarspec.decoding.generate_batch`.
    """
    lookahead = Lookahead() if lookahead is None else lookahead
    if not isinstance(lookahead, Lookahead):
        raise TypeError(f"lookahead must be a Lookahead, not {lookahead!r}")
    given: list[RewardLike]
    if isinstance(reward, Sequence) and not isinstance(reward, Reward | str):
        given = list(reward)
    else:
        given = [reward] * len(requests)  # pyright: ignore[reportAssignmentType]  # it takes it for a text
    if len(given) != len(requests):
        raise ValueError(f"{len(given)} rewards are given for {len(requests)} requests: give one, or one for each")
    known = {id(each): as_reward(each) for each in given}
    for request in requests:
        lookahead.check_sampling(request.sampling)
    if not requests:
        return []
    plan = Plan.of(lookahead, model, proposers)
    with torch.inference_mode():
        batch = LookaheadBatch(model, requests, vocabulary, [known[id(each)] for each in given], plan, on_text)
        while batch.sequences:
            batch.round()
        return batch.results()


class LookaheadBatch(Batch):
    """A batch of texts that are generated with lookaheads.

    Args:
        model, requests, vocabulary, on_text: as for :class:`~grammarspec.decoding.batch.Batch`.
        rewards: one for each request.
        plan: how lookaheads are made and used.

    Raises:
        ValueError, UnsupportedFeature, TypeError: as :func:`generate_with_lookahead`.
    """

    def __init__(
        self,
        model: PreTrainedModel | Target,
        requests: Sequence[Request],
        vocabulary: Vocabulary,
        rewards: Sequence[Reward],
        plan: Plan,
        on_text: Callable[[int, int, bytes], None] | None = None,
    ) -> None:
        gamma = plan.d if plan.method == "cdsl" else 0
        super().__init__(model, requests, vocabulary, proposers=plan.proposers, gamma=gamma, on_text=on_text)
        self._plan, self._rewards = plan, list(rewards)
        self._phases |= {"lookahead": 0.0, "reward": 0.0}
        self._target_guide = Guide(self.target, width_of(model), context_length(model))
        self._draft_guide: Guide | None = None
        if (draft := plan.draft) is not None:
            sampler, inner = draft.sampler, draft.model
            self._draft_guide = Guide(
                draft.runner, width_of(inner), context_length(inner), sampler.masked, sampler.draft_to_target
            )

    def results(self) -> list[list[Generation]]:
        """The texts of each request, with their rewards."""
        found = super().results()
        return [
            [
                replace(text, reward=value)
                for text, value in zip(texts, scored(reward, [text.text for text in texts]), strict=True)
            ]
            for texts, reward in zip(found, self._rewards, strict=True)
        ]

    # ------------------------------------------------------------------ inside
    def _commit_rows(self, draft: Draft, verdicts: Sequence[Verdict], logits: torch.Tensor) -> list[int]:
        """See :meth:`~grammarspec.decoding.batch.Batch._commit_rows`."""
        begin = self._phases["lookahead"] + self._phases["reward"]
        states = self._states(draft, verdicts)
        chosen = self._choices(draft, states, logits)
        committed = []
        for row, (verdict, state) in enumerate(zip(verdicts, states, strict=True)):
            if state is not None:
                self.sequences[row].statistics.states[state] += 1
            if self.sequences[row].finish_reason is not None:  # its constraint has raised an error
                committed.append(0)
            elif row in chosen:
                committed.append(self._commit_choice(row, draft, *chosen[row]))
            else:
                committed.append(self._commit(row, draft, verdict, logits))
        # The loop counts all of this as the phase "commit".
        self._phases["commit"] -= self._phases["lookahead"] + self._phases["reward"] - begin
        return committed

    def _states(self, draft: Draft, verdicts: Sequence[Verdict]) -> list[State | None]:
        """The state of each row; ``None`` for a row that fails, for its constraint or its logits."""
        states: list[State | None] = [None] * len(verdicts)
        heads: list[tuple[int, list[int]]] = []  # rows, and what they would commit
        for row, verdict in enumerate(verdicts):
            sequence, tokens = self.sequences[row], draft.tokens[row][: verdict.accepted]
            ended = bool(tokens) and sequence.is_end(tokens[-1])
            seen = verdict.highest[: verdict.accepted + (not ended)]
            if row not in draft.failed and all(map(isfinite, seen)):
                heads.append((row, tokens if ended else [*tokens, verdict.following]))
        if self._plan.method != "cdsl":
            for row, _ in heads:
                states[row] = "cdlh" if self._plan.method == "cdlh" else "greedy"
            return states
        rewards = self._reward([(row, self.sequences[row].text_with(head)) for row, head in heads])
        for (row, _), reward in zip(heads, rewards, strict=True):
            accepts = self._acceptance(row, draft, verdicts[row].accepted) >= self._plan.acceptance
            states[row] = _STATES[accepts, reward >= self._plan.reward]
        return states

    def _acceptance(self, row: int, draft: Draft, accepted: int) -> float:
        """The acceptance score: accepted tokens over d.

        A draft that had to end before, with the text or its budget, is compared with its own length; and where there
        was no room for any token, nothing was refused.
        """
        room = draft.room(row)
        wanted = len(draft.tokens[row]) + max(room, 0)
        return accepted / wanted if wanted else 1.0

    def _choices(
        self, draft: Draft, states: Sequence[State | None], logits: torch.Tensor
    ) -> dict[int, tuple[int, torch.Tensor]]:
        """For the rows whose next token is chosen among candidates: the token, and the scores of all tokens.

        A row whose constraint raises an error ends here.
        """
        begin = perf_counter()
        chosen: dict[int, tuple[int, torch.Tensor]] = {}
        scores: dict[int, torch.Tensor] = {}
        groups: dict[bool, list[Branch]] = {True: [], False: []}  # by whether the draft continues them
        for row, state in enumerate(states):
            if state in (None, "accepted", "greedy"):
                continue
            by_draft = self._draft_guide is not None and state in ("low reward", "cdlh")
            scores[row] = self._scores(row, draft, logits)[0]
            draft.rollback(row)
            try:
                groups[by_draft] += candidates(row, self.sequences[row], self._possible(row, scores[row]), self._plan.k)
            except FAILURES as error:
                self.sequences[row].fail(error)
        for by_draft, branches in groups.items():
            guide = self._draft_guide if by_draft else self._target_guide
            if guide is not None:
                guide.runner.passes += roll_out(
                    guide, branches, self.sequences, self.processing, self._plan.d, self.vocabulary.size
                )
        self._phases["lookahead"] += perf_counter() - begin
        every = [branch for branches in groups.values() for branch in branches]
        texts = [(branch.row, self.sequences[branch.row].text_with(branch.tokens)) for branch in every]
        for branch, reward in zip(every, self._reward(texts), strict=True):
            branch.score = branch.logprob + self._plan.weight * reward
        for row in dict.fromkeys(branch.row for branch in every):
            # Of equal ones, the first is the most probable.
            best = max((branch for branch in every if branch.row == row), key=lambda branch: branch.score)
            chosen[row] = best.tokens[0], scores[row]
        return chosen

    def _possible(self, row: int, scores: torch.Tensor) -> torch.Tensor:
        """Scores without the tokens that top-k, top-p or min-p leave out."""
        sampling = self.processing.samplings[row]
        if sampling.temperature == 0:
            return scores
        distribution = self.processing.of_row(row).distribution(scores[None, None])[0, 0]
        return scores.masked_fill(distribution == 0, -torch.inf)

    def _commit_choice(self, row: int, draft: Draft, token: int, scores: torch.Tensor) -> int:
        """Commit a token that was chosen among candidates; the draft is dropped, and its matcher rolled back already.

        Returns:
            the number of committed draft tokens: 0.
        """
        sequence, statistics = self.sequences[row], self.sequences[row].statistics
        before, written = sequence.length, 0
        try:
            if not sequence.commit(token):
                written = self._steer(row, token, scores)
        except FAILURES as error:
            sequence.fail(error)
        new = sequence.tokens[sequence.prompt_length + before :]
        self.processing.count(row, new)
        statistics.rounds[len(draft.tokens[row]), 0] += 1
        statistics.proposed.update(draft.sources[row])
        statistics.refused += row in draft.refused
        statistics.closing_tokens += written
        statistics.bonus_tokens += len(new) - written
        return 0

    def _reward(self, texts: Sequence[tuple[int, str]]) -> list[float]:
        """The rewards of texts, each with its row; equal texts of a row, and those of one reward, are asked at once."""
        begin = perf_counter()
        asked: dict[int, dict[str, float]] = {}
        rewards: dict[int, Reward] = {}
        for row, text in texts:
            reward = self._rewards[self.sequences[row].request]
            rewards[id(reward)] = reward
            asked.setdefault(id(reward), {})[text] = 0.0
        for number, values in asked.items():
            found = scored(rewards[number], list(values))
            values.update(zip(list(values), found, strict=True))
        self._phases["reward"] += perf_counter() - begin
        return [asked[id(self._rewards[self.sequences[row].request])][text] for row, text in texts]
