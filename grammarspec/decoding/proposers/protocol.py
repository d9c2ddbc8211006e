"""The interface between the loop and its proposers: what a proposer does, and what it may see of the batch.

To add a proposer, write a class with the members of :class:`Proposer` in a module of its own, and list it in the
``__init__`` of this package. It may import anything below the loop, and never the loop itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from grammarspec.decoding.choosers import Chooser
from grammarspec.decoding.draft import Draft
from grammarspec.decoding.sequence_state import SequenceState
from grammarspec.decoding.targets import Runner
from grammarspec.vocabulary import Vocabulary

__all__ = ["BatchView", "Proposer", "propose", "runs_model"]


class BatchView(Protocol):
    """What proposers see of the batch. They read it, and change nothing of it.

    Attributes:
        sequences: the texts that have not ended, one for each row of all tensors.
        vocabulary: the target's tokens.
        end_token: the end-of-text token that the target is most likely to use.
        target: the target, the lengths that it has read, and the hidden states that :attr:`Proposer.hidden_layers`
            asks for.
        chooser: chooses draft tokens by a draft model's logits and the sampling options of each row.
        rounds: the number of rounds so far; random numbers for draft tokens depend on it.
    """

    @property
    def sequences(self) -> Sequence[SequenceState]: ...
    @property
    def vocabulary(self) -> Vocabulary: ...
    @property
    def end_token(self) -> int: ...
    @property
    def target(self) -> Runner: ...
    @property
    def chooser(self) -> Chooser: ...
    @property
    def rounds(self) -> int: ...


class Proposer(Protocol):
    """Appends draft tokens. One object serves one batch after another, and keeps what it needs for the current one.

    Attributes:
        name: the name under which statistics count its tokens.
        runs_model: whether drafting costs passes of a model, as is supposed of a proposer that does not say so. What
            is drafted without is drafted first, and may be cut.
        hidden_layers: the target's layers whose hidden states it needs, in ``batch.target.hidden``; usually none.
        passes: the number of forward passes made for the current batch; 0 without a model.
    """

    name: str
    runs_model: bool
    hidden_layers: Sequence[int]

    @property
    def passes(self) -> int: ...

    def start(self, batch: BatchView) -> None:
        """Begin a new batch.

        Args:
            batch: the batch; it changes as rounds go by, and is valid until the next ``start``.

        Raises:
            ValueError, UnsupportedFeature: the proposer does not fit the target.
        """

    def select(self, rows: Sequence[int]) -> None:
        """Keep the state of these rows, in this order: the other rows have left the batch."""

    def propose(self, draft: Draft, rows: Sequence[int]) -> None:
        """Append one or more draft tokens to each of these rows, or to some or none of them.

        Tokens that follow from the text before them are appended by :meth:`Draft.extend`; tokens that were drawn, by
        :meth:`Draft.add` with the distribution that they were drawn from. The loop asks again while there is room.

        Args:
            draft: the draft so far, with the tokens of other proposers.
            rows: rows that have room for at least one token.
        """

    def commit(self, draft: Draft, accepted: Sequence[int]) -> None:
        """End a round: drafts were verified, and accepted tokens and bonus tokens committed to ``batch.sequences``.

        A proposer that has read tokens of the draft must forget those that were not accepted.

        Args:
            draft: the draft of the round.
            accepted: the number of accepted draft tokens of each row.
        """


def runs_model(proposer: Proposer) -> bool:
    """Whether drafting by a proposer costs passes of a model."""
    return getattr(proposer, "runs_model", True)


def propose(proposers: Sequence[Proposer], draft: Draft) -> None:
    """Fill the drafts: at each position of a row, the first proposer that has tokens for it appends them.

    Args:
        proposers: in order of priority.
        draft: gets the draft tokens.
    """
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
