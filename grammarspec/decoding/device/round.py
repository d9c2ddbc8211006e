"""One round of speculative decoding as tensor operations: draft, states, masks, target pass, verification, commit.

Nothing in a round makes the host wait for the device, and no shape depends on values. So the whole round can be
captured in a CUDA graph, or traced with fake tensors, which have shapes and no values. The result of a round is one
tensor of integers, the report.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import torch

from grammarspec.decoding.device.automaton import MISSING, ArenaTensors, step
from grammarspec.decoding.device.choices import choices_for
from grammarspec.decoding.device.drafters import Drafter, ForcedDrafter, PreferredDrafter, learn, prefer
from grammarspec.decoding.device.runner import StaticRunner
from grammarspec.decoding.device.state import Draft, Rows
from grammarspec.decoding.processing import Processing

__all__ = ["COLUMNS", "Round", "RowReport"]

COLUMNS: Final = 7
"""The number of columns of a report before the tokens: see :class:`RowReport`."""


@dataclass(frozen=True, slots=True)
class RowReport:
    """The result of a round for one row.

    Attributes:
        tokens: the committed tokens: the accepted draft tokens, and the token that the target chose after them.
        accepted: the number of accepted draft tokens.
        drafted: for each draft token, the number of its drafter.
        refused: whether the constraint does not allow the last draft token.
        broken: the first place, counted from the first token of the round, at which no token could be chosen, as the
            greatest score there is NaN or infinite; -1 if there is no such place.
        highest: the score at that place.
        missed: whether the state after the last token is missing, so that nothing is committed to the row until the
            host has provided it.
    """

    tokens: list[int]
    accepted: int
    drafted: list[int]
    refused: bool
    broken: int
    highest: float
    missed: bool

    @property
    def rested(self) -> bool:
        """Whether nothing was committed: the text has ended, or its state was missing when the round began."""
        return not self.tokens and self.broken < 0

    @classmethod
    def all_of(cls, report: torch.Tensor) -> list[RowReport]:
        """The rows of a report of :meth:`Round.verify`, on the CPU."""
        gamma = (report.shape[1] - COLUMNS - 1) // 2
        scores = report[:, 5].contiguous().view(torch.float64).tolist()
        return [
            cls(
                row[COLUMNS : COLUMNS + row[0]],
                row[1],
                row[COLUMNS + gamma + 1 :][: row[2]],
                bool(row[3]),
                row[4],
                score,
                bool(row[6]),
            )
            for row, score in zip(report.tolist(), scores, strict=True)
        ]


class Round:
    """Runs the rounds of a batch.

    Args:
        target: the target.
        arena: the states of constraints.
        ends: ``bool[width]``, which tokens end texts.
        drafters: the drafters in order of priority.
        looks: whether the host may read values of tensors within a round, to leave out passes that no row needs. On the
            CPU reading costs nothing; on other devices the host would wait, and a graph has fixed passes anyway.
    """

    def __init__(
        self, target: StaticRunner, arena: ArenaTensors, ends: torch.Tensor, drafters: Sequence[Drafter], *, looks: bool
    ) -> None:
        self._target, self._arena, self._ends = target, arena, ends
        self._drafters = list(drafters)
        self._learns = any(isinstance(drafter, ForcedDrafter) for drafter in drafters)
        self._prefers = any(isinstance(drafter, PreferredDrafter) for drafter in drafters)
        self._looks = looks

    def run(self, rows: Rows, processing: Processing, gamma: int, visible: int) -> torch.Tensor:
        """Draft, verify and commit once. ``rows`` and the token counts of ``processing`` change in place.

        Args:
            rows: the rows.
            processing: the sampling options of the rows.
            gamma: the greatest number of tokens of a draft.
            visible: the number of columns of the token buffer, and of slots of caches, that are used: at least the
                length of the longest text plus ``gamma``.

        Returns:
            ``int64[rows, 8 + 2 * gamma']``, the report, for :meth:`RowReport.all_of`; ``gamma'`` is ``gamma`` or, if
            the host may read tensors, the length of the longest draft.
        """
        return self.verify(self.draft(rows, processing, gamma, visible), processing, visible)

    def draft(self, rows: Rows, processing: Processing, gamma: int, visible: int) -> Draft:
        """The draft of a round; the arguments are those of :meth:`run`."""
        draft = Draft(rows, self._arena, self._ends)
        drafters = self._drafters if gamma else []
        choices = choices_for(processing, looks=self._looks)
        for drafter in drafters:
            drafter.begin(draft, visible, choices)
        drawable = ~processing.chosen
        while draft.size < gamma and drafters:
            if self._looks and not bool(draft.open.any()):
                break
            tokens, sources = torch.zeros_like(draft.lengths), torch.zeros_like(draft.lengths)
            found, drawn = torch.zeros_like(draft.open), torch.zeros_like(draft.open)
            go_on = torch.ones_like(draft.open)
            distribution: torch.Tensor | None = None
            for number, drafter in enumerate(drafters):
                if self._looks and number and not bool((draft.open & ~found).any()):
                    break
                proposed = drafter.propose(draft)
                taken = proposed.found & ~found
                tokens = torch.where(taken, proposed.tokens, tokens)
                sources = sources.masked_fill(taken, number)
                if proposed.distribution is not None:
                    # Rows of different drafters have different distributions.
                    others = proposed.distribution if distribution is None else distribution
                    distribution = torch.where(taken[:, None], proposed.distribution, others)
                    drawn = drawn | taken & drawable
                if proposed.go_on is not None:
                    go_on = torch.where(taken, proposed.go_on, go_on)
                found = found | taken
            if self._looks and not bool((draft.open & found).any()):
                break
            draft.append(tokens, found, sources, drawn, distribution, draft.behind(tokens), go_on)
            for drafter in drafters:
                drafter.appended(draft)
        return draft

    def verify(self, draft: Draft, processing: Processing, visible: int, unread: int = 1) -> torch.Tensor:
        """Run the target over a draft, and commit the tokens that it accepts; see :meth:`run`.

        Args:
            draft, processing, visible: see there.
            unread: how many of the last tokens of each text the target has not read; texts may be shorter.
        """
        rows, gamma = draft.rows, draft.size
        steps = torch.arange(gamma + 1, device=rows.lengths.device)
        tokens = torch.stack(draft.tokens, 1) if gamma else rows.tokens[:, :0]
        offsets = torch.arange(-unread, gamma, device=rows.lengths.device)
        places = rows.lengths[:, None] + offsets
        read = torch.cat((rows.tokens.gather(1, places[:, :unread].clamp(min=0)), tokens), 1)
        used = (places >= 0) & (offsets < draft.lengths[:, None])
        logits, hidden = self._target.read(read, places[:, 0], used, visible, gamma + 1)
        hidden = None if hidden is None else hidden[:, unread - 1 :]
        drawn = torch.stack(draft.drawn, 1) if gamma else rows.done[:, None][:, :0]
        positions = (rows.lengths - rows.prompts)[:, None] + steps
        accepted, following, best = choices_for(processing, looks=self._looks).verify_logits(
            logits,
            torch.stack(draft.masks, 1),
            draft.prefix(),
            draft.lengths,
            self._distributions(draft),
            drawn,
            positions,
            rows.turn,
        )
        following = following.clamp(0, logits.shape[-1] - 1)  # if logits are NaN, it may be any number
        return self._commit(draft, processing, tokens, accepted, following, best, hidden)

    def _distributions(self, draft: Draft) -> torch.Tensor | None:
        """The distributions of drawn draft tokens, ``[rows, gamma, width]``; ``None`` if no token was drawn."""
        known = [each for each in draft.distributions if each is not None]
        if not known:
            return None
        nothing = torch.zeros_like(known[0])
        return torch.stack([nothing if each is None else each for each in draft.distributions], 1)

    def _commit(
        self,
        draft: Draft,
        processing: Processing,
        tokens: torch.Tensor,
        accepted: torch.Tensor,
        following: torch.Tensor,
        best: torch.Tensor,
        hidden: torch.Tensor | None,
    ) -> torch.Tensor:
        """Append the accepted tokens, and the token after them, to the texts; returns the report.

        Args:
            draft: the draft.
            processing: the sampling options.
            tokens: ``int64[rows, gamma]``, the draft tokens.
            accepted: ``int64[rows]``, how many of them are accepted.
            following: ``int64[rows]``, the tokens after the accepted ones.
            best: ``[rows, gamma + 1]``, the greatest score at each position.
            hidden: ``[rows, gamma + 1, hidden size]``, or ``None``.
        """
        rows, gamma = draft.rows, draft.size
        steps = torch.arange(gamma + 1, device=accepted.device)
        chosen = torch.cat((tokens, torch.zeros_like(following)[:, None]), 1)
        chosen = torch.where(steps == accepted[:, None], following[:, None], chosen)
        # If the last accepted token ends the text, no token follows. (A draft never continues after such a token.)
        last = chosen.gather(1, (accepted - 1).clamp(min=0)[:, None])[:, 0]
        ended = (accepted > 0) & self._ends[last]
        # Neither does one follow where its mask is not known.
        state = torch.stack(draft.states, 1).gather(1, accepted[:, None])[:, 0]
        stops = ended | (state == MISSING)
        rests = draft.rests()
        count = torch.where(rests, 0, accepted + ~stops)
        broken = ~best.isfinite() & (steps < count[:, None])
        place = torch.where(broken.any(1), broken.to(torch.int64).argmax(1), -1)
        highest = best.gather(1, place.clamp(min=0)[:, None])[:, 0].double()
        alive = ~rests & (place < 0)
        count = torch.where(alive, count, 0)
        committed = steps < count[:, None]
        spare = rows.tokens.shape[1] - 1
        columns = torch.where(committed, rows.lengths[:, None] + steps, spare)
        rows.tokens.scatter_(1, columns, chosen)
        processing.count_each(chosen, committed)
        if self._learns:
            learn(draft, accepted, following, alive & ~stops)
        if self._prefers:
            prefer(draft, chosen, committed)
        # The state after the accepted tokens, and then after the token that follows them.
        state = torch.where(stops, state, step(self._arena, state, following))
        rows.states.copy_(torch.where(alive, state, rows.states))
        if hidden is not None:
            index = (count - 1).clamp(min=0)[:, None, None].expand(-1, 1, hidden.shape[2])
            rows.hidden.copy_(torch.where(count[:, None] > 0, hidden.gather(1, index)[:, 0], rows.hidden))
            rows.known.logical_or_(count > 0)
        rows.lengths.add_(count)
        rows.turn.add_(1)
        ends = (self._ends[chosen] & committed).any(1)
        report = torch.stack(
            (
                count,
                torch.where(alive, accepted, 0),
                torch.where(rests, 0, draft.lengths),
                draft.refused.to(torch.int64),
                place,
                highest.view(torch.int64),
                (alive & (state == MISSING)).to(torch.int64),
            ),
            1,
        )
        rows.done.logical_or_(ends | (place >= 0) | (rows.lengths >= rows.limits))
        sources = torch.stack(draft.sources, 1) if gamma else tokens
        return torch.cat((report, chosen, sources), 1)
