"""Drafts by the target's own first layers (self-speculation; Zhang et al. 2024, Elhoushi et al. 2024)."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeVar

from torch import nn

from grammarspec.decoding.proposers.model import DraftModel
from grammarspec.decoding.reader import Reader

if TYPE_CHECKING:
    from transformers import PreTrainedModel

    from grammarspec.decoding.draft import Draft
    from grammarspec.decoding.loop import Batch

__all__ = ["EarlyExit"]

_Module = TypeVar("_Module", bound=nn.Module)


class EarlyExit(DraftModel):
    """A draft model made of the target's first layers and its output head. It costs no memory.

    It reads and writes the target's own keys and values of those layers: what the target has read it need not read
    again, and what it writes for a draft the target's pass writes once more.

    Args:
        model: the target.
        layers: how many of its layers to run.
        masked, confidence: as for :class:`DraftModel`.

    Raises:
        ValueError: the model has no more layers than that, or they are not found.
    """

    name = "early-exit"

    def __init__(self, model: PreTrainedModel, layers: int, *, masked: bool = True, confidence: float = 0.0) -> None:
        super().__init__(_first_layers(model, layers), masked=masked, confidence=confidence)
        self._target = model

    def reader(self, batch: Batch) -> Reader:
        if batch.model is not self._target:
            raise ValueError("EarlyExit drafts for the model that it was made of only")
        return Reader(self.model, len(batch.lanes), cache=batch.target.cache)

    def select(self, rows: Sequence[int]) -> None:
        # The cache is the target's, which selects it.
        self._reader.lengths = [self._reader.lengths[row] for row in rows]

    def settle(self, draft: Draft, accepted: Sequence[int]) -> None:
        self._reader.lengths = list(self._batch.target.lengths)


def _first_layers(model: PreTrainedModel, count: int) -> PreTrainedModel:
    """A model that shares the modules of another, but runs its first layers only."""
    config = copy.deepcopy(model.config)
    inner = config.get_text_config()
    total = inner.num_hidden_layers
    if not 1 <= count < total:
        raise ValueError(f"layers must be from 1 to {total - 1}, not {count}")
    stacks = [
        name for name, module in model.named_modules() if isinstance(module, nn.ModuleList) and len(module) == total
    ]
    if len(stacks) != 1:
        raise ValueError(f"the layers of {type(model).__name__} are not found")
    inner.num_hidden_layers = count
    if getattr(inner, "layer_types", None):
        inner.layer_types = inner.layer_types[:count]
    # Only the modules on the way to the layers are made anew.
    short = _shallow(model)
    short.config = config
    module: nn.Module = short
    *path, last = stacks[0].split(".")
    for name in path:
        child = _shallow(module.get_submodule(name))
        if hasattr(child, "config"):
            child.config = inner  # type: ignore[assignment]  # torch takes any attribute to be a tensor or a module
        module._modules[name] = child
        module = child
    layers = module.get_submodule(last)
    assert isinstance(layers, nn.ModuleList)
    module._modules[last] = layers[:count]
    return short


def _shallow(module: _Module) -> _Module:
    copied = copy.copy(module)
    copied._modules = dict(module._modules)
    return copied
