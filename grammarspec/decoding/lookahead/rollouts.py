"""Candidates for a next token and their continuations: logits go in, texts that a reward can judge come out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from grammarspec._compiler import Matcher
from grammarspec.bitmask import allocate_bitmask
from grammarspec.decoding.processing import Processing
from grammarspec.decoding.proposers.draft_sampler import in_target_ids
from grammarspec.decoding.sequence_state import SequenceState
from grammarspec.decoding.targets import Runner
from grammarspec.errors import FAILURES

__all__ = ["Branch", "Guide", "candidates", "roll_out"]


@dataclass(slots=True)
class Branch:
    """A candidate for the next token of a text, with what may follow it.

    Attributes:
        row: the row of the batch.
        tokens: the candidate, and its continuation.
        logprob: of the candidate under the masked model, in nats.
        matcher: the state of the constraint behind ``tokens``; ``None`` without a constraint.
        open: whether more tokens can follow.
        score: by which the candidate is compared with the others.
    """

    row: int
    tokens: list[int]
    logprob: float
    matcher: Matcher | None
    open: bool
    score: float = 0.0


@dataclass(frozen=True, slots=True)
class Guide:
    """The model that continues candidates.

    Attributes:
        runner: what it has read of each row of the batch: all of a text but, perhaps, its last tokens.
        known: it can read the tokens below this number.
        context: how many tokens it can read; ``None``: any number.
        masked: apply the masks of the constraints.
        to_target: ``int64[width]``, the target's token for each of its logits; ``None`` if they are the same.
    """

    runner: Runner
    known: int
    context: int | None = None
    masked: bool = True
    to_target: torch.Tensor | None = None


def candidates(row: int, sequence: SequenceState, scores: torch.Tensor, k: int) -> list[Branch]:
    """The most probable next tokens of a text.

    Args:
        row: the row of the batch.
        sequence: the text; its matcher is behind its last token.
        scores: ``[width]``, -inf for tokens that cannot follow; at least one can.
        k: how many at most.

    Returns:
        at least one, the most probable first, of equal ones that of the lowest id.

    Raises:
        RuntimeError: the constraint refuses a token that its mask allowed: a bug.
        LimitExceeded, Cancelled, StateCollected: raised by the constraint.
    """
    values, tokens = scores.topk(min(k, len(scores)))
    logprobs = (values - scores.logsumexp(-1)).tolist()
    # topk takes any of equal scores; the most probable token is that of argmax, as everywhere.
    best = int(scores.argmax())
    ids = [best, *(token for token in tokens.tolist() if token != best)][: len(logprobs)]
    ranked = sorted(zip(logprobs, ids, strict=True), key=lambda each: (-each[0], each[1]))
    found = []
    for logprob, token in ranked:
        if logprob == -torch.inf:
            break
        matcher = None if sequence.matcher is None else sequence.matcher.fork()
        if matcher is not None and not matcher.accept_token(token):
            raise RuntimeError(f"the mask allows token {token}, which the matcher refuses")
        found.append(Branch(row, [token], logprob, matcher, not sequence.is_end(token) and sequence.room > 1))
    return found


def roll_out(
    guide: Guide,
    branches: Sequence[Branch],
    sequences: Sequence[SequenceState],
    processing: Processing,
    d: int,
    vocab_size: int,
) -> int:
    """Continue candidates greedily, all of them together, up to the end of a text or its budget.

    Args:
        guide: the model.
        branches: the candidates, without continuations; they get them.
        sequences, processing: the rows of the batch and their sampling options.
        d: the greatest number of tokens of a continuation.
        vocab_size: the number of tokens that masks have bits for.

    Returns:
        the number of forward passes. A branch whose constraint raises an error, or for which the model's logits are
        broken, ends there.
    """
    going = [branch for branch in branches if branch.open]
    if not going or not d:
        return 0
    runner = _read_up(guide, sequences, sorted({branch.row for branch in going}))
    fork = runner.fork([branch.row for branch in going])
    for number, branch in enumerate(going):
        fork.lengths[number] = min(fork.lengths[number], len(sequences[branch.row].tokens))
    options = processing.of_rows([branch.row for branch in going])
    masks = allocate_bitmask(len(going), vocab_size)
    for _ in range(d):
        unread = [_unread(guide, sequences, branch, read) for branch, read in zip(going, fork.lengths, strict=True)]
        if not any(unread):
            break
        logits = fork.read(unread, 1)[:, -1].to(processing.chosen.device)
        logits = in_target_ids(logits, processing.width, guide.to_target)
        masks[:] = -1
        for number, branch in enumerate(going):
            if unread[number] and branch.matcher is not None and guide.masked:
                try:
                    branch.matcher.fill_bitmask(masks, number)
                except FAILURES:
                    branch.open = False
        prefix = _padded([branch.tokens for branch in going], logits.device)
        rows = torch.from_numpy(masks).to(logits.device)
        scores = options.scores(logits[:, None], rows[:, None], prefix)[:, 0]
        best = scores.max(-1)
        for branch, new, value, token in zip(going, unread, best.values.tolist(), best.indices.tolist(), strict=True):
            if new and branch.open:
                _append(branch, sequences[branch.row], token, value)
    return fork.passes


def _read_up(guide: Guide, sequences: Sequence[SequenceState], rows: Sequence[int]) -> Runner:
    """Have the model read the texts of these rows but for their last tokens, once for all candidates."""
    runner = guide.runner
    unread: list[list[int]] = [[] for _ in sequences]
    for row in rows:
        text = sequences[row].tokens
        known = max(text[runner.lengths[row] :], default=0) < guide.known
        if known and (guide.context is None or len(text) <= guide.context):
            unread[row] = text[runner.lengths[row] : -1]
    if any(unread):
        runner.read(unread, 1)
    return runner


def _unread(guide: Guide, sequences: Sequence[SequenceState], branch: Branch, read: int) -> list[int]:
    """The tokens of a branch that the model has not read; none if the branch has ended, or the model cannot read it."""
    if not branch.open:
        return []
    text = sequences[branch.row].tokens + branch.tokens
    if (guide.context is not None and len(text) > guide.context) or max(text[read:]) >= guide.known:
        branch.open = False
        return []
    return text[read:]


def _append(branch: Branch, sequence: SequenceState, token: int, score: float) -> None:
    """Append a token with its score to a branch, if it can follow."""
    branch.open = False
    if not -torch.inf < score < torch.inf:
        return
    try:
        if branch.matcher is not None and not branch.matcher.accept_token(token):
            return  # of a draft without masks
    except FAILURES:
        return
    branch.tokens.append(token)
    branch.open = not sequence.is_end(token) and len(branch.tokens) < sequence.room


def _padded(tokens: Sequence[Sequence[int]], device: torch.device) -> torch.Tensor:
    """``int64[rows, longest]``, padded by -1."""
    longest = max(map(len, tokens))
    return torch.tensor([[*row, *[-1] * (longest - len(row))] for row in tokens], device=device)
