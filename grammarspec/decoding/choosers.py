"""How the loop and its proposers choose tokens: one interface, for whole batches as tensors and for the CPU.

Logits and a draft go in; accepted draft tokens and next tokens come out. :class:`TensorChooser` works on all rows and
positions at once, on any device, and is the reference; :class:`~grammarspec.decoding.host_chooser.HostChooser` makes
the same choices on the CPU, where it is worth while to look only at the tokens and positions that matter.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import torch

from grammarspec.decoding.draft import Draft
from grammarspec.decoding.processing import Processing

__all__ = ["Chooser", "Proposal", "TensorChooser", "Verdict", "aligned_left"]


@dataclass(frozen=True, slots=True)
class Verdict:
    """What verification says of the draft of one row.

    Attributes:
        accepted: how many of its tokens are accepted.
        following: the token behind these; it means nothing if the last of them ends the text.
        highest: the greatest score at each position up to that token: NaN or infinite where the logits are broken.
    """

    accepted: int
    following: int
    highest: Sequence[float]


@dataclass(frozen=True, slots=True)
class Proposal:
    """A token that a draft model proposes.

    Attributes:
        token: the token.
        distribution: ``[width]``, what it was drawn from; ``None`` if it is a function of the text before it.
        confidence: its probability under the draft's scores at temperature 1; 1.0 where nobody asked.
    """

    token: int
    distribution: torch.Tensor | None
    confidence: float


class Chooser(Protocol):
    """Chooses tokens by the sampling options of the rows of a batch."""

    def verify(self, logits: torch.Tensor, draft: Draft, turn: int) -> list[Verdict]:
        """Verify the drafts of all rows.

        Args:
            logits: ``[rows, gamma + 1, width]`` of any floating dtype, of the target; a row whose draft is shorter than
                ``gamma`` is padded on the left.
            draft: the draft of the round.
            turn: the number of the round.
        """
        ...

    def propose(
        self, logits: torch.Tensor, draft: Draft, rows: Sequence[int], turn: int, *, masked: bool, confidence: bool
    ) -> list[Proposal | None]:
        """Choose draft tokens from the logits of a draft model, as the target's tokens are chosen.

        Args:
            logits: ``[all rows, width]`` of any floating dtype, behind the drafts so far.
            draft: the draft so far.
            rows: the rows that are to get a token.
            turn: the number of the round.
            masked: apply the masks of the constraints.
            confidence: say how probable the tokens are.

        Returns:
            one for each of ``rows``; ``None`` where no token is possible.
        """
        ...


class TensorChooser:
    """The reference: all rows and positions at once, as tensors on any device."""

    def __init__(self, processing: Processing) -> None:
        self._processing = processing

    def verify(self, logits: torch.Tensor, draft: Draft, turn: int) -> list[Verdict]:
        """See :meth:`Chooser.verify`."""
        tokens, device = draft.padded(), logits.device
        logits = aligned_left(logits, draft)
        first = torch.tensor([sequence.length for sequence in draft.sequences], device=device)
        accepted, following, best = self._processing.verify_logits(
            logits,
            draft.all_masks(),
            tokens,
            draft.lengths(),
            None if draft.distributions is None else draft.distributions[:, : draft.gamma],
            draft.drawn_tokens(),
            first[:, None] + torch.arange(draft.gamma + 1, device=device),
            torch.full((len(first),), turn, device=device),
        )
        rows = zip(accepted.tolist(), following.tolist(), best.tolist(), strict=True)
        return [Verdict(count, token, highest[: count + 1]) for count, token, highest in rows]

    def propose(
        self, logits: torch.Tensor, draft: Draft, rows: Sequence[int], turn: int, *, masked: bool, confidence: bool
    ) -> list[Proposal | None]:
        """See :meth:`Chooser.propose`."""
        positions = torch.tensor([draft.position(row) for row in range(len(logits))], device=logits.device)
        found = self._processing.propose_logits(
            logits,
            draft.masks(rows) if masked else None,
            draft.padded(),
            positions,
            torch.full_like(positions, turn),
            torch.ones_like(positions, dtype=torch.bool),
            confidence=confidence,
        )
        chosen, alive, distributions = found.tokens.tolist(), found.possible.tolist(), found.distributions
        sure = [1.0] * len(logits) if found.confidence is None else found.confidence.tolist()

        def proposal(row: int) -> Proposal | None:
            drawn = distributions is not None and self._processing.draws_row(row)
            distribution = distributions[row] if distributions is not None and drawn else None
            return Proposal(chosen[row], distribution, sure[row]) if alive[row] else None

        return [proposal(row) for row in rows]


def aligned_left(logits: torch.Tensor, draft: Draft) -> torch.Tensor:
    """Logits whose rows are padded on the left, moved to be padded on the right: ``[rows, gamma + 1, width]``."""
    longest = draft.gamma
    missing = [longest - len(tokens) for tokens in draft.tokens]
    if not any(missing):
        return logits
    last = logits.shape[1] - 1
    index = torch.arange(last + 1)[None] + torch.tensor(missing)[:, None]
    rows = torch.arange(len(missing), device=logits.device)[:, None]
    return logits[rows, index.clamp(max=last).to(logits.device)]
