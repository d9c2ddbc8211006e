"""From a draft model's logits to draft tokens, chosen as the target's tokens are; for proposers that run a model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from grammarspec.decoding.draft import Draft
from grammarspec.decoding.proposers.protocol import BatchView
from grammarspec.errors import DraftMismatch

__all__ = ["DraftSampler", "in_target_ids"]


@dataclass(frozen=True, slots=True)
class DraftSampler:
    """How a proposer with a model chooses its draft tokens.

    Attributes:
        name: the proposer's name, for the statistics.
        masked: apply the grammar mask to the draft's logits. Without it, tokens may be drafted that the constraint
            refuses; the generated text has the same distribution, at a lower acceptance rate.
        confidence: end a draft behind a token whose probability under the draft's scores, at temperature 1, is lower
            than this, from 0 to 1. The token itself stays.
        draft_to_target: ``int64[draft width]``, the target's token id for each of the draft's logits; ``None`` if the
            ids are the same.

    Raises:
        ValueError: ``confidence`` is out of range.
    """

    name: str
    masked: bool
    confidence: float
    draft_to_target: torch.Tensor | None = None

    def __post_init__(self) -> None:
        if not 0 <= self.confidence <= 1:
            raise ValueError(f"confidence must be from 0 to 1, not {self.confidence}")

    def check(self, width: int) -> None:
        """Check that ``draft_to_target`` names tokens of the target.

        Args:
            width: the number of the target's logits.

        Raises:
            DraftMismatch: it names others.
        """
        ids = self.draft_to_target
        if ids is not None and len(ids) and not 0 <= int(ids.min()) <= int(ids.max()) < width:
            found = f"{int(ids.min())} to {int(ids.max())}"
            raise DraftMismatch(f"{self.name} drafts tokens from {found}, and the target has only {width}")

    def append(self, logits: torch.Tensor, draft: Draft, rows: Sequence[int], batch: BatchView) -> None:
        """Append one token to the drafts of these rows, or end the draft of a row for which no token is left.

        Args:
            logits: ``[all rows, draft width]``, behind the drafts so far, on the target's device.
            draft: the draft so far.
            rows: the rows that get a token.
            batch: the batch.

        Raises:
            DraftMismatch: ``draft_to_target`` is for another number of logits.
        """
        logits = in_target_ids(logits, batch.target.width, self.draft_to_target)
        proposals = batch.chooser.propose(
            logits, draft, rows, batch.rounds, masked=self.masked, confidence=self.confidence > 0
        )
        for row, proposal in zip(rows, proposals, strict=True):
            if proposal is not None:
                draft.add(row, proposal.token, self.name, proposal.distribution)
            if proposal is None or proposal.confidence < self.confidence:
                draft.finish(row)


def in_target_ids(logits: torch.Tensor, width: int, draft_to_target: torch.Tensor | None) -> torch.Tensor:
    """The draft's logits by the target's token ids, ``[rows, width]``; -inf for tokens that the draft does not have.

    Args:
        logits: ``[rows, draft width]``.
        width: the number of the target's logits.
        draft_to_target: as for :class:`DraftSampler`, on any device.

    Raises:
        DraftMismatch: ``draft_to_target`` is for another number of logits.
    """
    known = logits.shape[1] if draft_to_target is None else 0
    if known == width:
        return logits
    wide = logits.new_full((len(logits), width), -torch.inf)
    if draft_to_target is None:
        known = min(known, width)
        wide[:, :known] = logits[:, :known]
    elif len(draft_to_target) != logits.shape[1]:
        lengths = f"{len(draft_to_target)} entries for {logits.shape[1]} logits"
        raise DraftMismatch(f"draft_to_target has {lengths} of the draft model")
    else:
        wide[:, draft_to_target.to(logits.device)] = logits
    return wide
