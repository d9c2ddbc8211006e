"""Drafters: the proposers of the loop on the host, as tensor operations.

For each position of a draft, each drafter is asked for the next token of all rows at once. Each row gets the token of
the first drafter, in order of priority, that has one for it. Drafts do not change the distribution of texts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import torch

from grammarspec.decoding.device.automaton import MISSING, REFUSED, step
from grammarspec.decoding.device.choices import Choices
from grammarspec.decoding.device.runner import StaticRunner
from grammarspec.decoding.device.state import Draft, Rows
from grammarspec.decoding.proposers.draft_sampler import DraftSampler, in_target_ids

__all__ = [
    "Drafter",
    "ForcedDrafter",
    "HeadDrafter",
    "LookupDrafter",
    "ModelDrafter",
    "PreferredDrafter",
    "Proposed",
    "learn",
    "prefer",
]


@dataclass(frozen=True, eq=False, slots=True)
class Proposed:
    """One draft token of each row.

    Attributes:
        tokens: ``int64[rows]``, the tokens.
        found: ``bool[rows]``, which rows have a token.
        distribution: ``[rows, width]``, the distributions from which the tokens were drawn; ``None`` if they are
            functions of the text before them.
        go_on: ``bool[rows]``, whether the draft may continue after the token; ``None``: in all rows.
    """

    tokens: torch.Tensor
    found: torch.Tensor
    distribution: torch.Tensor | None = None
    go_on: torch.Tensor | None = None


class Drafter(Protocol):
    """Proposes draft tokens on the device.

    Attributes:
        name: the name under which statistics count its tokens.
        runs_model: whether drafting costs passes of a model.
    """

    name: str
    runs_model: bool

    def begin(self, draft: Draft, visible: int, choices: Choices) -> None:
        """Begin a round.

        Args:
            draft: the draft, which has no tokens yet.
            visible: the number of columns of the token buffer that are used, with those of the draft.
            choices: chooses tokens by the sampling options of the rows.
        """

    def propose(self, draft: Draft) -> Proposed:
        """Propose the next token of each row."""
        ...

    def appended(self, draft: Draft) -> None:
        """Called after a token was appended to each row; it may be the token of another drafter."""


class ForcedDrafter:
    """Drafts the text that the grammar forces, by a table with a token for each mask row.

    If the target writes a forced text with other tokens, the table is changed to these: :func:`learn`.
    """

    name = "forced"
    runs_model = False

    def begin(self, draft: Draft, visible: int, choices: Choices) -> None:
        """See :meth:`Drafter.begin`."""

    def propose(self, draft: Draft) -> Proposed:
        """See :meth:`Drafter.propose`."""
        tokens = draft.arena.forced[draft.arena.mask_row[draft.states[-1]].long()]
        return Proposed(tokens.clamp(min=0), tokens >= 0)

    def appended(self, draft: Draft) -> None:
        """See :meth:`Drafter.appended`."""


def learn(draft: Draft, accepted: torch.Tensor, following: torch.Tensor, committed: torch.Tensor) -> None:
    """Replace forced tokens in the table by those that the target has chosen in the same place.

    Only the places after the accepted draft tokens are considered, and only those where text is forced.

    Args:
        draft: the draft of the round.
        accepted: ``int64[rows]``, how many of its tokens were accepted.
        following: ``int64[rows]``, the token that the target chose after these.
        committed: ``bool[rows]``, whether that token was committed.
    """
    forced = draft.arena.forced
    states = torch.stack(draft.states, 1).gather(1, accepted[:, None])[:, 0]
    places = draft.arena.mask_row[states].long()
    before = forced[places]
    # If several rows write to the same place, any of their tokens may win: each was chosen by the target.
    forced.scatter_(0, places, torch.where(committed & (before >= 0), following, before))


class PreferredDrafter:
    """Drafts the token that was chosen the last time behind the same token, in the same state of the constraint.

    That is how a target writes what a constraint leaves open: whitespace, say, or what it fills a field with. A token
    is drafted when the entry is new, or when it was chosen twice in a row; so places where anything may follow are
    left to others.

    The table has an entry for each pair of state and token by a hash, and one for each token in any state: ``t`` if
    token ``t`` is to be drafted, ``-t - 2`` if it was chosen the last time but is not, and -1 if nothing was chosen
    yet. Pairs with the same hash share an entry, and states of the arena are used again; both cost a draft at most.

    Args:
        anywhere: take what was chosen in any state, if nothing is known of this one.
    """

    name = "preferred"
    runs_model = False

    def __init__(self, *, anywhere: bool) -> None:
        self._anywhere = anywhere

    def begin(self, draft: Draft, visible: int, choices: Choices) -> None:
        """See :meth:`Drafter.begin`."""

    def propose(self, draft: Draft) -> Proposed:
        """See :meth:`Drafter.propose`."""
        table, state = draft.arena.preferred, draft.states[-1]
        last = draft.tokens[-1] if draft.tokens else draft.last_committed()
        entry = table[_entries(table, state, last)]
        if self._anywhere:
            entry = torch.where(entry == -1, table[_entries(table, _ANY, last)], entry)
        tokens = entry.clamp(min=0)
        return Proposed(tokens, (entry >= 0) & (state > MISSING) & (draft.behind(tokens) != REFUSED))

    def appended(self, draft: Draft) -> None:
        """See :meth:`Drafter.appended`."""


_ANY = 0  # in place of a state; no entry is for this one, the unconstrained state


def prefer(draft: Draft, chosen: torch.Tensor, committed: torch.Tensor) -> None:
    """Enter the tokens of a round into the table of :class:`PreferredDrafter`.

    Args:
        draft: the draft of the round.
        chosen: ``int64[rows, size + 1]``, the tokens.
        committed: ``bool[rows, size + 1]``, which of them were committed.
    """
    table = draft.arena.preferred
    states = torch.stack(draft.states, 1)
    last = torch.cat((draft.last_committed()[:, None], chosen[:, :-1]), 1)
    entries = torch.stack((_entries(table, states, last), _entries(table, _ANY, last)))
    before = table[entries]
    again = (before == -1) | (before == chosen) | (before == -chosen - 2)
    known = committed & (states > MISSING)
    entries, after = torch.where(known, entries, 0), torch.where(known, torch.where(again, chosen, -chosen - 2), -1)
    # Several rows may write to one entry: the greatest number is the same in each run.
    table.scatter_reduce_(0, entries.flatten(), after.flatten(), "amax", include_self=False)


def _entries(table: torch.Tensor, states: torch.Tensor | int, tokens: torch.Tensor) -> torch.Tensor:
    """The entries of pairs of states and tokens. Entry 0 is of no pair: what is not to be kept is written there."""
    return (states * 40_503 + tokens * 1_000_003) % (len(table) - 1) + 1


class LookupDrafter:
    """Drafts the token that followed an earlier occurrence of the last tokens, in prompt or text (Saxena 2023).

    It takes the longest match whose next token the constraint allows; of several, the latest. Matches grow with the
    draft, whichever drafter its tokens are from.

    Args:
        longest, shortest: the greatest and the least number of last tokens to match; behind the text, matches that go
            on are longer.
    """

    name = "lookup"
    runs_model = False

    def __init__(self, longest: int, shortest: int) -> None:
        self._longest, self._shortest = longest, shortest
        # For each place of the text, how many tokens right before it are also the last tokens of text and draft.
        self._matched: torch.Tensor

    def begin(self, draft: Draft, visible: int, choices: Choices) -> None:
        """See :meth:`Drafter.begin`."""
        rows = draft.rows
        text, lengths = rows.tokens[:, :visible], rows.lengths[:, None]
        places = torch.arange(visible, device=text.device)
        self._matched = torch.zeros_like(text)
        alive = (places < lengths) & (places > 0)
        for back in range(1, min(self._longest, visible - 1) + 1):
            last = text.gather(1, (lengths - back).clamp(min=0))
            same = torch.nn.functional.pad(text[:, : visible - back] == last, (back, 0))
            alive = alive & same & (places >= back) & (lengths > back)
            self._matched = self._matched + alive

    def propose(self, draft: Draft) -> Proposed:
        """See :meth:`Drafter.propose`."""
        matched, visible = self._matched, self._matched.shape[1]
        text = draft.rows.tokens[:, :visible]
        behind = step(draft.arena, draft.states[-1][:, None].expand_as(text), text)
        found = (matched >= self._shortest) & (behind != REFUSED)
        places = torch.arange(visible, device=text.device)
        best = torch.where(found, matched * visible + places, -1).amax(1)
        tokens = text.gather(1, (best % visible)[:, None])[:, 0]
        return Proposed(tokens, best >= 0)

    def appended(self, draft: Draft) -> None:
        """See :meth:`Drafter.appended`."""
        matched, visible = self._matched, self._matched.shape[1]
        same = draft.rows.tokens[:, : visible - 1] == draft.tokens[-1][:, None]
        grown = torch.nn.functional.pad(torch.where(same, matched[:, :-1] + 1, 0), (1, 0))
        places = torch.arange(visible, device=matched.device)
        self._matched = torch.where(places < (draft.rows.lengths + draft.size)[:, None], grown, 0)


class _Sampled:
    """The choice of tokens by logits, for drafters that run a model; tokens are chosen as the target's are."""

    def __init__(self, sampler: DraftSampler, width: int, device: torch.device) -> None:
        ids = sampler.draft_to_target
        self._ids = None if ids is None else ids.to(device)
        self._sampler, self._width = sampler, width
        self.choices: Choices

    def choose(self, draft: Draft, logits: torch.Tensor) -> Proposed:
        """Choose a token of each row by logits ``[rows, draft width]``."""
        least = self._sampler.confidence
        found = self.choices.propose_logits(
            in_target_ids(logits, self._width, self._ids),
            draft.masks[-1] if self._sampler.masked else None,
            draft.prefix(),
            draft.positions,
            draft.rows.turn,
            draft.open,
            confidence=least > 0,
        )
        go_on = None if found.confidence is None else found.confidence >= least
        return Proposed(found.tokens, found.possible, found.distributions, go_on)


class ModelDrafter:
    """Drafts by a smaller model, or by the first layers of the target, with one pass for each token.

    The drafter does not count how many tokens of each row it has read: in each round its first pass reads the last
    tokens of all texts again, as many as can be new since its last pass.

    Args:
        name: the name under which statistics count its tokens.
        runner: the model.
        sampler: how tokens are chosen.
        width: the number of the target's logits.
        shared: whether the model writes into the target's cache, which has all but the last token of each text.

    Attributes:
        behind: the greatest number of tokens at the end of a text that the model may not have read. The loop updates it
            by :meth:`committed` and :meth:`knows`.
    """

    runs_model = True

    def __init__(self, name: str, runner: StaticRunner, sampler: DraftSampler, width: int, *, shared: bool) -> None:
        self.name = name
        self.runner, self.shared = runner, shared
        self._sampled = _Sampled(sampler, width, runner.device)
        self._visible = 0
        self.restart()

    def restart(self) -> None:
        """Begin a batch, whose prompts the model reads without their last tokens."""
        self.behind = 1
        self._read = 0
        self._most = 0

    def begin(self, draft: Draft, visible: int, choices: Choices) -> None:
        """See :meth:`Drafter.begin`."""
        self._visible, self._sampled.choices = visible, choices
        self._read = 1 - self.behind

    def propose(self, draft: Draft) -> Proposed:
        """See :meth:`Drafter.propose`."""
        count = draft.size + 1 - self._read
        logits = self.last(draft.rows, draft.size, count, draft.lengths, self._visible)
        self._read = draft.size + 1
        return self._sampled.choose(draft, logits)

    @property
    def has_read(self) -> bool:
        """Whether the model has read anything since :meth:`begin`: then it has read the texts as they were then."""
        return self._read > 0

    def committed(self, most: int, *, read: bool) -> None:
        """Called when a round was launched that commits at most ``most`` tokens to each row.

        Args:
            most: the number of tokens.
            read: whether the model has read the texts in this round.
        """
        if not self.shared:
            self.behind = most if read else self.behind + most
            self._most = most

    def knows(self, most: int) -> None:
        """Called when it is known that the last round has committed at most ``most`` tokens to each row."""
        if not self.shared:
            # The last token is read in any case, for the logits after it.
            self.behind = max(self.behind - (self._most - most), 1)
            self._most = most

    def last(self, rows: Rows, size: int, count: int, drafted: torch.Tensor, visible: int) -> torch.Tensor:
        """Read the last tokens of each row, the draft included.

        Args:
            rows: the rows.
            size: the number of draft tokens of each row, placeholders included.
            count: how many tokens to read.
            drafted: ``int64[rows]``, the number of draft tokens of each row without placeholders.
            visible: as for :meth:`Drafter.begin`.

        Returns:
            ``[rows, draft width]``, the logits after the last token.
        """
        first = rows.lengths + size - count
        places = first[:, None] + torch.arange(count, device=first.device)
        tokens = rows.tokens.gather(1, places.clamp(0, rows.tokens.shape[1] - 1))
        used = (places >= 0) & (places < (rows.lengths + drafted)[:, None])
        known = tokens.clamp(max=self.runner.width - 1)
        return self.runner.read(known, first, used, visible, 1)[0][:, -1]

    def appended(self, draft: Draft) -> None:
        """See :meth:`Drafter.appended`."""


class HeadDrafter:
    """Drafts by a head on the target's last hidden state. The head reads all draft tokens, whichever drafter made them.

    Args:
        head: a :class:`~grammarspec.decoding.proposers.head.HiddenStateHead`.
        sampler: how tokens are chosen.
        width: the number of the target's logits.
        device: the device of the target.
    """

    name = "head"
    runs_model = True

    def __init__(self, head: Any, sampler: DraftSampler, width: int, device: torch.device) -> None:
        self._head = head
        self._sampled = _Sampled(sampler, width, device)
        self._hidden: torch.Tensor
        self._logits: torch.Tensor
        self._read = 0

    def begin(self, draft: Draft, visible: int, choices: Choices) -> None:
        """See :meth:`Drafter.begin`."""
        self._sampled.choices = choices
        self._hidden, self._read = draft.rows.hidden, 0

    def propose(self, draft: Draft) -> Proposed:
        """See :meth:`Drafter.propose`."""
        for tokens in [draft.last_committed(), *draft.tokens][self._read : draft.size + 1]:
            self._logits, self._hidden = self._head(self._hidden, tokens)
        self._read = draft.size + 1
        found = self._sampled.choose(draft, self._logits)
        return Proposed(found.tokens, found.found & draft.rows.known, found.distribution, found.go_on)

    def appended(self, draft: Draft) -> None:
        """See :meth:`Drafter.appended`."""
