"""From a draft's logits to draft tokens, by the law that the target's tokens are chosen by."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from grammarspec.decoding.draft import Draft
    from grammarspec.decoding.loop import Batch

__all__ = ["Choosing", "choose"]


@dataclass(frozen=True, slots=True)
class Choosing:
    """How a draft's tokens are chosen.

    Attributes:
        masked, confidence, draft_to_target: see :class:`~grammarspec.decoding.proposers.DraftModel`.
    """

    masked: bool
    confidence: float
    draft_to_target: torch.Tensor | None = None

    def __post_init__(self) -> None:
        if not 0 <= self.confidence <= 1:
            raise ValueError(f"confidence must be from 0 to 1, not {self.confidence}")


def choose(
    name: str, logits: torch.Tensor, draft: Draft, rows: Sequence[int], batch: Batch, choosing: Choosing
) -> None:
    """Add one token to the drafts of these rows. A row of whose tokens none may come next gets no more.

    Args:
        logits: ``[all rows, the draft's width]``.
    """
    processing = batch.processing
    logits = _in_target_ids(logits, batch.width, choosing.draft_to_target)
    masks = draft.masks(rows if choosing.masked else ())
    scores = processing.scores(logits[:, None], masks[:, None], draft.padded())[:, 0]
    places = [lane.length + len(tokens) for lane, tokens in zip(draft.lanes, draft.tokens, strict=True)]
    tokens, laws = processing.propose(scores, torch.tensor(places, device=batch.device), batch.round_numbers)
    some = scores.amax(-1) > -torch.inf
    tokens = torch.where(some, tokens, 0)  # where there is none, the draw's result means nothing
    alive = some.tolist()
    sure = [True] * len(alive)
    if choosing.confidence > 0:
        sure = (scores.softmax(-1).gather(1, tokens[:, None])[:, 0] >= choosing.confidence).tolist()
    chosen = tokens.tolist()
    for row in rows:
        if not alive[row]:
            draft.finish(row)
            continue
        draft.add(row, chosen[row], name, laws[row] if laws is not None and processing.draws_row(row) else None)
        if not sure[row]:
            draft.finish(row)


def _in_target_ids(logits: torch.Tensor, width: int, draft_to_target: torch.Tensor | None) -> torch.Tensor:
    """The draft's logits by the target's token ids; -inf for tokens that the draft does not know."""
    known = logits.shape[1] if draft_to_target is None else 0
    if known == width:
        return logits
    wide = logits.new_full((len(logits), width), -torch.inf)
    if draft_to_target is None:
        known = min(known, width)
        wide[:, :known] = logits[:, :known]
    else:
        wide[:, draft_to_target.to(logits.device)] = logits
    return wide
