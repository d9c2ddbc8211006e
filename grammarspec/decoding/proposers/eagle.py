"""Drafts by one layer on the target's hidden states (EAGLE: Li et al. 2024, arXiv:2401.15077; EAGLE-3: 2025).

For the token behind position ``i`` the head reads token ``i``, by the target's own embedding, and the target's last
hidden state behind token ``i - 1``. Within a draft, where the target has computed none, it reads its own prediction of
that state. Its logits are the target's output rows of selected tokens.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import torch
from torch import nn

from grammarspec.decoding.cache import RaggedCache
from grammarspec.decoding.draft import Draft
from grammarspec.decoding.prepacking import prepack
from grammarspec.decoding.proposers.draft_sampler import DraftSampler
from grammarspec.decoding.proposers.eagle_file import load_head, save_head
from grammarspec.decoding.proposers.eagle_head import EagleHead
from grammarspec.decoding.proposers.protocol import BatchView
from grammarspec.decoding.windows import unwrapped
from grammarspec.errors import DraftMismatch

if TYPE_CHECKING:
    from transformers import PreTrainedModel

__all__ = ["Eagle"]

_WINDOW = 512  # tokens of a prompt that the head reads at most: the last ones


class Eagle:
    """Drafts by a head of the EAGLE kind.

    What other proposers have drafted is read in one pass. No hidden states are known there but, behind a token that the
    head has read, its own prediction; :attr:`EagleHead.unknown` stands for the others. After each round the target's
    own hidden states take the place of all predictions.

    The head knows of a text what the target reads while it drafts, and of a prompt the last 512 tokens at most: nothing
    of a prompt that was read before (for several texts at once, but for its last token).

    Args:
        head: the head; it is run in float32.
        model: the target, whose embedding and output layer it shares.
        tokens: ``int64[selected]``, the tokens that the head can draft; ``None``: all of them.
        masked, confidence: as for :class:`~grammarspec.decoding.proposers.DraftModel`.
        card: what is known about the head: how it was trained, and how good it is.

    Attributes:
        card: as given.

    Raises:
        ValueError: ``confidence`` is out of range.
        DraftMismatch: the head is for hidden states of another size; or (when a batch begins) ``tokens`` names tokens
            that the target does not have.
        TypeError: ``model`` is no model of transformers.
    """

    name = "eagle"
    runs_model = True
    hidden_layers: Sequence[int] = (-1,)

    def __init__(
        self,
        head: EagleHead,
        model: PreTrainedModel,
        tokens: torch.Tensor | None = None,
        *,
        masked: bool = True,
        confidence: float = 0.0,
        card: Mapping[str, Any] | None = None,
    ) -> None:
        inner = unwrapped(model)
        if inner is None:
            raise TypeError(f"Eagle takes a model of transformers, not {type(model).__name__}")
        size = inner.config.get_text_config().hidden_size
        if size != head.config.hidden_size:
            raise DraftMismatch(f"the head reads hidden states of {head.config.hidden_size} numbers, not of {size}")
        tokens = None if tokens is None else tokens.to(inner.device, torch.int64)
        self._sampler = DraftSampler(self.name, masked, confidence, tokens)
        if tokens is not None:
            self._sampler.check(inner.config.get_text_config().vocab_size)
        self.card: Mapping[str, Any] = card or {}
        self._embedding = inner.get_input_embeddings()
        rows = cast(Any, inner).get_output_embeddings().weight.detach()
        rows = (rows if tokens is None else rows[tokens]).float()
        self._rows: nn.Module = nn.Linear(size, len(rows), bias=False, device="meta")
        self._rows.weight = nn.Parameter(rows, requires_grad=False)
        self._head = copy.deepcopy(head).to(inner.device, torch.float32).eval()
        parts = nn.ModuleDict({"head": self._head, "rows": self._rows})
        if inner.device.type == "cpu":
            prepack(cast(Any, parts))
            self._rows = parts["rows"]
        self.passes = 0
        self._batch: BatchView

    @classmethod
    def from_file(
        cls, path: str | Path, model: PreTrainedModel, *, masked: bool = True, confidence: float = 0.0
    ) -> Eagle:
        """Load a head.

        Args:
            path: a file that :meth:`save` has written.
            model, masked, confidence: as for :class:`Eagle`.

        Raises:
            OSError: there is no such file.
            DraftMismatch: it is no head, or a head for another target.
            ValueError, TypeError: as for :class:`Eagle`.
        """
        loaded = cls.load(path)
        return cls(loaded.head, model, loaded.tokens, masked=masked, confidence=confidence, card=loaded.card)

    load = staticmethod(load_head)
    save = staticmethod(save_head)

    # ------------------------------------------------------------------ as a proposer
    def start(self, batch: BatchView) -> None:
        """Begin a new batch.

        Raises:
            DraftMismatch: the head drafts tokens that the target does not have.
        """
        self._sampler.check(batch.target.width)
        count, device = len(batch.sequences), batch.target.device
        self._batch, self.passes = batch, 0
        self._cache = RaggedCache()
        # For each row: how many of its tokens come before those that the head knows about, how many of the others the
        # head has read for good, and how many of its draft after them.
        self._origin: list[int | None] = [None] * count
        self._read, self._ahead = [0] * count, [0] * count
        self._seen = list(batch.target.lengths)
        # The target's hidden states that the head has not read, [any, hidden size]; and its own last prediction.
        empty = torch.zeros(0, self._head.config.hidden_size, device=device)
        self._hidden = [empty] * count
        self._own = torch.zeros(count, self._head.config.hidden_size, device=device)

    def select(self, rows: Sequence[int]) -> None:
        self._origin = [self._origin[row] for row in rows]
        self._read, self._ahead = [self._read[row] for row in rows], [self._ahead[row] for row in rows]
        self._seen, self._hidden = [self._seen[row] for row in rows], [self._hidden[row] for row in rows]
        index = torch.tensor(rows, device=self._own.device)
        self._own = self._own[index]
        self._cache.select(index)

    def propose(self, draft: Draft, rows: Sequence[int]) -> None:
        tokens: list[list[int]] = [[] for _ in draft.sequences]
        for row in rows:
            origin = self._origin[row]
            if origin is not None:
                tokens[row] = draft.text(row)[origin + self._read[row] + self._ahead[row] :]
        rows = [row for row in rows if tokens[row]]
        if rows:
            self._sampler.append(self._pass(tokens), draft, rows, self._batch)

    def commit(self, draft: Draft, accepted: Sequence[int]) -> None:
        hidden = self._batch.target.hidden[-1]
        for row, count in enumerate(accepted):
            known = self._batch.target.lengths[row]
            # The pass padded rows on the left, and read the whole draft.
            end = hidden.shape[1] - len(draft.tokens[row]) + count
            new = min(known - self._seen[row], end)
            states = hidden[row, max(end - new, 0) : end].float()
            if self._origin[row] is None:
                states = states[-_WINDOW:]
                self._origin[row] = known - len(states) + 1
            self._hidden[row] = torch.cat((self._hidden[row], states))
            self._seen[row], self._ahead[row] = known, 0

    # ------------------------------------------------------------------ inside
    def _pass(self, tokens: Sequence[Sequence[int]]) -> torch.Tensor:
        """Read new tokens of each row.

        Args:
            tokens: those of each row that the head has not read; rows may have none, but not all.

        Returns:
            ``[rows, selected]``, the logits behind the last of them.
        """
        device, new = self._own.device, max(map(len, tokens))
        ids = torch.tensor([[0] * (new - len(row)) + list(row) for row in tokens], device=device)
        hidden = self._head.unknown.detach().repeat(len(tokens), new, 1)
        first = []
        for row, text in enumerate(tokens):
            first.append(self._read[row] + self._ahead[row] + len(text) - new)
            if not text:
                continue
            begin, known = new - len(text), min(len(self._hidden[row]), len(text))
            hidden[row, begin : begin + known] = self._hidden[row][:known]
            if not known:  # behind the last token of the draft that the head has read
                hidden[row, begin] = self._own[row]
            self._hidden[row] = self._hidden[row][known:]
            self._read[row] += known
            self._ahead[row] += len(text) - known
        steps, padding = torch.arange(new), torch.tensor([new - len(text) for text in tokens])
        unused = steps < padding[:, None]
        positions = (torch.tensor(first)[:, None] + steps).masked_fill(unused, 0)
        visible = int(positions.max()) + 1
        self._cache.plan(positions.masked_fill(unused, torch.iinfo(torch.int64).max).to(device), visible)
        positions = positions.to(device)
        joined = self._head.joined(self._embedding(ids).float(), hidden)
        query, key, value = self._head.heads(joined, positions)
        key, value = self._cache.update(key, value, 0)
        mask = torch.arange(visible, device=device) <= positions[:, None, :, None]
        states = self._head.finish(joined, query, key, value, mask)[:, -1]
        self.passes += 1
        moved = torch.tensor([bool(text) for text in tokens], device=device)[:, None]
        self._own = torch.where(moved, states, self._own)
        logits: torch.Tensor = self._rows(states)
        return logits
