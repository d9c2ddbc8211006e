"""Drafts by the target's own first layers: self-speculation (Zhang et al. 2024, Elhoushi et al. 2024: LayerSkip)."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeVar

from torch import nn

from grammarspec.decoding.draft import Draft
from grammarspec.decoding.model_runner import ModelRunner
from grammarspec.decoding.proposers.model import DraftModel
from grammarspec.decoding.proposers.protocol import BatchView
from grammarspec.decoding.windows import decoder_of, unwrapped

if TYPE_CHECKING:
    from transformers import PreTrainedModel

__all__ = ["EarlyExit"]

_Module = TypeVar("_Module", bound=nn.Module)


class EarlyExit(DraftModel):
    """A draft model made of the target's first layers and its output head; it needs no memory of its own.

    It shares the target's keys and values of those layers. So it need not read again what the target has read; and the
    target's pass overwrites with the same values what it has written for a draft.

    Args:
        model: the target.
        layers: how many of its layers to run, from 1 to one less than it has.
        masked, confidence: as for :class:`DraftModel`.

    Raises:
        ValueError: ``layers`` or ``confidence`` is out of range, or the model's layers are not found; or (when a batch
            begins) the batch is of another model.
        TypeError: it is no model of transformers.
        UnsupportedModel: it is an encoder-decoder model, or has an adapter that adds tokens to prompts.
    """

    name = "early-exit"

    def __init__(self, model: PreTrainedModel, layers: int, *, masked: bool = True, confidence: float = 0.0) -> None:
        inner = unwrapped(model)
        if inner is None:
            raise TypeError(f"EarlyExit takes a model of transformers, not {type(model).__name__}")
        self._first = _first_layers(inner, layers)
        super().__init__(self._first, masked=masked, confidence=confidence)
        self._target = model

    def new_runner(self, batch: BatchView) -> ModelRunner:
        """As :meth:`DraftModel.new_runner`; it shares the target's cache.

        Raises:
            ValueError: the batch is of another model.
        """
        target = batch.target
        self.check_target(target.model if isinstance(target, ModelRunner) else None)
        assert isinstance(target, ModelRunner)
        return ModelRunner(self._first, len(batch.sequences), cache=target.cache)

    def check_target(self, model: object) -> None:
        """Check that the batch is of the model whose layers these are.

        Raises:
            ValueError: it is not.
        """
        if model is not self._target:
            raise ValueError("EarlyExit drafts for the model that it was made of only")

    def select(self, rows: Sequence[int]) -> None:
        # The target's runner selects the rows of the shared cache.
        self._runner.lengths = [self._runner.lengths[row] for row in rows]

    def commit(self, draft: Draft, accepted: Sequence[int]) -> None:
        self._runner.lengths = list(self._batch.target.lengths)


def _first_layers(model: PreTrainedModel, count: int) -> PreTrainedModel:
    """A model that shares the modules of another, but runs only its first layers."""
    decoder = decoder_of(model)
    total = decoder.config.get_text_config().num_hidden_layers
    if not 1 <= count < total:
        raise ValueError(f"layers must be from 1 to {total - 1}, not {count}")
    parts = set(decoder.modules())
    stacks = [
        name
        for name, module in model.named_modules()
        if module in parts and isinstance(module, nn.ModuleList) and len(module) == total
    ]
    if len(stacks) != 1:
        raise ValueError(f"the layers of {type(model).__name__} are not found")
    # Only the modules on the path to the list of layers are copied; all others are shared. The configuration stays that
    # of all layers, since embeddings may have a part for each of them (Gemma 3n).
    short = _shallow(model)
    module: nn.Module = short
    *path, last = stacks[0].split(".")
    for name in path:
        module._modules[name] = child = _shallow(module.get_submodule(name))
        module = child
    layers = module.get_submodule(last)
    assert isinstance(layers, nn.ModuleList)
    module._modules[last] = layers[:count]
    return short


def _shallow(module: _Module) -> _Module:
    """A copy with the same submodules, whose table of submodules can be changed."""
    copied = copy.copy(module)
    copied._modules = dict(module._modules)
    return copied
