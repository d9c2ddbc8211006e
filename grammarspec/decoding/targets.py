"""What the loop generates with: models of transformers, and other targets by the protocol :class:`Target`.

The loop and its proposers see a :class:`Runner`: a target and what it has read of each row. :func:`runner_for` makes
the one that fits.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Protocol, cast

import torch

from grammarspec.decoding.model_runner import ModelRunner
from grammarspec.decoding.plain_runner import PlainRunner
from grammarspec.decoding.windows import no_rollback, unwrapped
from grammarspec.errors import UnsupportedModel

if TYPE_CHECKING:
    from transformers import PreTrainedModel

__all__ = ["Runner", "Target", "can_draft", "context_length", "runner_for", "width_of"]


class Target(Protocol):
    """A language model that is not of transformers: what it must have to be a target, or a draft model.

    Attributes:
        width: the number of its logits; at least as many as its vocabulary has tokens.
        context_length: how many tokens it can read; ``None``: any number.
        device: where the tensors of the loop are to be.
    """

    @property
    def width(self) -> int: ...
    @property
    def context_length(self) -> int | None: ...
    @property
    def device(self) -> torch.device: ...

    def logits(self, texts: Sequence[Sequence[int]], counts: Sequence[int]) -> Sequence[torch.Tensor]:
        """The logits behind the last tokens of each text.

        A text begins as the one of its row did in the call before, up to draft tokens that were not accepted; texts
        that have ended are missing. So a target may keep what it has computed, by prefix.

        Args:
            texts: the tokens of each text, prompt and draft included.
            counts: for each text, behind how many of its last tokens logits are wanted: at least 1.

        Returns:
            for each text, ``[count, width]`` of a floating dtype: the last row is about the token that follows the
            text, the one before about its last token, and so on.
        """
        ...


class Runner(Protocol):
    """A target and what it has read: one sequence of tokens per row, of different lengths.

    Attributes:
        device: where its logits are.
        width: the number of its logits.
        lengths: the number of tokens that have been read, of each row. Lowering it rolls the row back.
        passes: the number of forward passes so far.
        hidden: hidden states of the tokens that the last pass read, as of
            :class:`~grammarspec.decoding.model_runner.ModelRunner`.
    """

    lengths: list[int]
    passes: int
    hidden: dict[int, torch.Tensor]

    @property
    def device(self) -> torch.device: ...
    @property
    def width(self) -> int: ...

    def read(self, tokens: Sequence[Sequence[int]], keep: int) -> torch.Tensor:
        """Read new tokens of each row.

        Args:
            tokens: the new tokens of each row; a row may have none, but not all rows.
            keep: how many logits of each row to return.

        Returns:
            ``[rows, keep, width]`` of a floating dtype: the logits behind the last ``keep`` of each row's new tokens. A
            row with fewer new tokens is padded on the left by logits that mean nothing.

        Raises:
            ValueError: no row has as many as ``keep`` new tokens.
        """
        ...

    def select(self, rows: Sequence[int]) -> None:
        """Keep these rows, in this order; a row may be taken several times."""

    def fork(self, rows: Sequence[int]) -> Runner:
        """A runner of its own that has read what this one has read of these rows; a row may be taken several times."""
        ...

    def join(self, other: Any) -> None:
        """Append the rows of another runner of the same target and class, which is not to be used again."""


_MEMBERS = ("width", "context_length", "device", "logits")


class _TargetRunner:
    """A :class:`Runner` of a :class:`Target`, which is given whole texts."""

    def __init__(self, target: Target, rows: int) -> None:
        self.target = target
        self.width, self.device = target.width, torch.device(target.device)
        self.lengths = [0] * rows
        self.passes = 0
        self.hidden: dict[int, torch.Tensor] = {}
        self._texts: list[list[int]] = [[] for _ in range(rows)]

    def read(self, tokens: Sequence[Sequence[int]], keep: int) -> torch.Tensor:
        self._texts = [
            text[:length] + list(new) for text, length, new in zip(self._texts, self.lengths, tokens, strict=True)
        ]
        self.lengths = [len(text) for text in self._texts]
        rows = [row for row, new in enumerate(tokens) if new]
        counts = [min(keep, len(tokens[row])) for row in rows]
        found = self.target.logits([self._texts[row] for row in rows], counts)
        self.passes += 1
        shapes, wanted = [tuple(each.shape) for each in found], [(count, self.width) for count in counts]
        if shapes != wanted:
            raise ValueError(f"the target returned logits of the shapes {shapes}, where it should be {wanted}")
        logits = found[0].new_zeros(len(tokens), keep, self.width, device=self.device)
        for row, count, each in zip(rows, counts, found, strict=True):
            logits[row, keep - count :] = each
        return logits

    def select(self, rows: Sequence[int]) -> None:
        self._texts = [self._texts[row] for row in rows]
        self.lengths = [self.lengths[row] for row in rows]

    def fork(self, rows: Sequence[int]) -> _TargetRunner:
        other = _TargetRunner(self.target, 0)
        other._texts = [self._texts[row] for row in rows]
        other.lengths = [self.lengths[row] for row in rows]
        return other

    def join(self, other: _TargetRunner) -> None:
        self._texts += other._texts
        self.lengths += other.lengths
        self.passes += other.passes


def runner_for(
    target: PreTrainedModel | Target, rows: int, *, drafts: bool = True, hidden_layers: Iterable[int] = ()
) -> Runner:
    """The runner of a target.

    Args:
        target: the target.
        rows: the number of rows.
        drafts: whether tokens may have to be taken back.
        hidden_layers: the layers whose hidden states are needed.

    Raises:
        TypeError: it is no target.
        UnsupportedModel: tokens cannot be taken back, but have to be; the model cannot be run at all; or hidden states
            are needed of what is no model of transformers.
    """
    model = _model(target)
    if model is None:
        if hidden_layers:
            what = f"{type(target).__name__} has no hidden states, which a proposer needs"
            raise UnsupportedModel(what, hint="proposers on hidden states are for models of transformers")
        return _TargetRunner(cast(Target, target), rows)
    whole = cast("PreTrainedModel", target)  # within its wrappers, which it is called by
    if drafts or no_rollback(model) is None:
        return ModelRunner(whole, rows, hidden_layers=hidden_layers)
    return PlainRunner(whole, rows)


def can_draft(target: PreTrainedModel | Target) -> bool:
    """Whether tokens of drafts can be taken back.

    Raises:
        TypeError, UnsupportedModel: as :func:`runner_for`.
    """
    model = _model(target)
    return model is None or no_rollback(model) is None


def width_of(target: PreTrainedModel | Target) -> int:
    """The number of a target's logits.

    Raises:
        TypeError, UnsupportedModel: as :func:`runner_for`.
    """
    model = _model(target)
    return cast(Target, target).width if model is None else int(model.config.get_text_config().vocab_size)


def context_length(target: PreTrainedModel | Target) -> int | None:
    """The number of tokens that a target can read, or ``None`` if its configuration does not say.

    Where a model rescales its rotary positions for long inputs, that is the length up to which it does not: the scale
    depends on the longest row, and the logits of a row must not depend on the other rows of the batch.

    Raises:
        TypeError, UnsupportedModel: as :func:`runner_for`.
    """
    model = _model(target)
    if model is None:
        return cast(Target, target).context_length
    config = model.config.get_text_config()
    rotary = getattr(config, "rope_parameters", None) or {}
    lengths = [getattr(config, "max_position_embeddings", None)]
    for kind in (rotary, *(each for each in rotary.values() if isinstance(each, dict))):
        if kind.get("rope_type") in ("dynamic", "longrope"):
            lengths.append(kind.get("original_max_position_embeddings"))
    return min((length for length in lengths if length is not None), default=None)


def _model(target: Any) -> PreTrainedModel | None:
    """The model of transformers in a target; ``None`` for a target of another kind.

    Raises:
        TypeError: it is no target.
        UnsupportedModel: as :func:`~grammarspec.decoding.windows.unwrapped`.
    """
    model = unwrapped(target)
    if model is None and (missing := [name for name in _MEMBERS if not hasattr(target, name)]):
        hint = "a target is a model of transformers, or has the members of grammarspec.decoding.Target"
        raise TypeError(f"{type(target).__name__} is no target: it has no {', '.join(missing)}\n  hint: {hint}")
    return model
