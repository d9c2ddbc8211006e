"""What the loop asks of a proposer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from grammarspec.decoding.draft import Draft
    from grammarspec.decoding.loop import Batch

__all__ = ["Proposer", "propose"]


class Proposer(Protocol):
    """Adds tokens to drafts. One object serves one batch after another, and keeps what it needs of the current one.

    Attributes:
        name: by which statistics count its tokens.
        hidden_layers: the target's layers whose hidden states it wants, in ``batch.target.hidden``.
        passes: forward passes made for the current batch.
    """

    name: str
    hidden_layers: Sequence[int]

    @property
    def passes(self) -> int: ...

    def start(self, batch: Batch) -> None:
        """A new batch begins.

        Raises:
            ValueError, UnsupportedFeature: the proposer does not fit the target.
        """

    def select(self, rows: Sequence[int]) -> None:
        """The batch goes on with these rows, in this order."""

    def propose(self, draft: Draft, rows: Sequence[int]) -> None:
        """Add what there is to say, to each of these rows or to some: at least a token, or nothing.

        Tokens that are certain, given the text before them, are added by ``draft.extend``; tokens that are chosen, by
        ``draft.add`` with the law that they were drawn from. The loop asks again while there is room.
        """

    def settle(self, draft: Draft, accepted: Sequence[int]) -> None:
        """The round is over: of each row's draft so many tokens were accepted, and a token of the target follows.

        The batch's lanes have them already. What was read of a draft beyond the accepted tokens is to be forgotten.
        """


def propose(proposers: Sequence[Proposer], draft: Draft) -> None:
    """Let each row's next tokens come from the first proposer that has something to say, until the drafts are full."""
    waiting = draft.open()
    while waiting:
        grown = []
        for proposer in proposers:
            if not waiting:
                break
            before = {row: len(draft.tokens[row]) for row in waiting}
            proposer.propose(draft, waiting)
            grown += [row for row in waiting if len(draft.tokens[row]) > before[row]]
            waiting = [row for row in waiting if len(draft.tokens[row]) == before[row]]
        waiting = [row for row in grown if draft.room(row) > 0]
