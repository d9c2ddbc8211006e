"""Linear layers whose weights are kept in the order that the CPU's matrix kernels read them in.

A pass over the two to nine tokens of a draft costs little more than one over a single token, if the weights need not be
put in order for each pass anew. torch has no public way to do that ahead of time that is not slower
(``torch.utils.mkldnn`` converts inputs and outputs as well); so this is the one place that calls private operations of
torch, those of MKL, and where they are missing, nothing is changed. MKL's packed product reads weights faster than
oneDNN's, and rounds a row in the same way whatever rows are beside it (in layers of 192 outputs or more).
"""

from __future__ import annotations

import copy
from threading import Thread
from typing import TYPE_CHECKING, Any, Final

import torch
from torch import nn

from grammarspec.decoding.huge_pages import on_huge_pages

if TYPE_CHECKING:
    from transformers import PreTrainedModel

__all__ = ["PackedLinear", "prepack"]

_ROWS: Final = 64  # that weights are packed for; other numbers of rows can be multiplied with them, too


class PackedLinear(nn.Linear):
    """A linear layer for inference, with its weights packed as long as they are float32 on the CPU.

    Args:
        linear: the layer; its weights are copied.

    Attributes:
        in_features, out_features, bias: as of ``nn.Linear``.
    """

    def __init__(self, linear: nn.Linear) -> None:
        nn.Module.__init__(self)  # that of nn.Linear would make weights
        self.in_features, self.out_features = linear.in_features, linear.out_features
        self.bias = linear.bias
        self._keep(linear.weight)

    def _keep(self, weight: torch.Tensor) -> None:
        """Take over plain weights, ``[out_features, in_features]``."""
        self._kept = _packed(weight.detach())
        # Beside packed weights, the operation takes plain ones, of which it reads nothing but the shape.
        self._like = torch.empty((), dtype=weight.dtype, device=weight.device).expand(weight.shape)

    @property
    def weight(self) -> torch.Tensor:  # type: ignore[override]
        """The weights in plain order, ``[out_features, in_features]``: a copy, which takes long to make."""
        if not self._kept.is_mkldnn:
            return self._kept
        # What is packed can only be multiplied: with the identity, which changes no finite value.
        count = self._like.shape[1]
        parts = [torch.arange(first, min(first + _ROWS, count)) for first in range(0, count, _ROWS)]
        identity = (nn.functional.one_hot(part, count).float() for part in parts)
        return torch.cat([self._product(rows, None).T for rows in identity], dim=1)

    def __setattr__(self, name: str, value: Any) -> None:
        """Weights that are given, as where embeddings are tied or resized, are packed, too."""
        if name == "weight":
            self._keep(value)
        else:
            super().__setattr__(name, value)

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """As that of ``nn.Linear``, without gradients for the weights.

        Raises:
            RuntimeError: the input has another number of features, or another dtype or device.
        """
        if not self._kept.is_mkldnn:
            return nn.functional.linear(input, self._kept, self.bias)
        if input.shape[-1:] != self._like.shape[1:]:  # the operation does not look
            raise RuntimeError(f"an input of shape {list(input.shape)} does not end in {self._like.shape[1]} features")
        return self._product(input, self.bias)

    def _product(self, input: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
        # The operation would not use packed weights for another number of rows than that it is told they are for.
        rows = input.numel() // self._like.shape[1]
        output: torch.Tensor = torch.ops.mkl._mkl_linear(input, self._kept, self._like, bias, rows)
        return output

    def _apply(self, fn: Any, recurse: bool = True) -> PackedLinear:
        """Move to another device or dtype, where weights may have no packed form."""
        super()._apply(fn, recurse)  # type: ignore[no-untyped-call]
        moved = fn(self._like.new_empty(0))
        if (moved.device, moved.dtype) != (self._like.device, self._like.dtype):
            self._keep(fn(self.weight))
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> PackedLinear:
        """A layer with the same packed weights, to which nothing writes."""
        copied = PackedLinear.__new__(PackedLinear)
        nn.Module.__init__(copied)
        copied.in_features, copied.out_features = self.in_features, self.out_features
        copied.bias = copy.deepcopy(self.bias, memo)
        copied._kept, copied._like = self._kept, self._like
        return copied

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        super()._save_to_state_dict(destination, prefix, keep_vars)
        destination[f"{prefix}weight"] = self.weight

    def extra_repr(self) -> str:
        """What stands in the representation of a model."""
        return f"in_features={self.in_features}, out_features={self.out_features}, bias={self.bias is not None}"


def prepack(model: PreTrainedModel) -> int:
    """Pack the weights of a model's linear layers, in place, for running it on the CPU; it cannot be trained then.

    A thread then moves all weights to huge pages where there are such (two to three seconds for a gigabyte).

    Args:
        model: the model. Layers that are no plain ``nn.Linear`` of float32 on the CPU, such as adapted or quantised
            ones, stay as they are.

    Returns:
        the number of packed layers; 0 where torch has no packed form.
    """
    available: bool = torch.backends.mkl.is_available()  # type: ignore[no-untyped-call]
    if not (available and hasattr(torch.ops.mkl, "_mkl_linear")):
        return 0
    found = [
        (parent, name, child)
        for parent in model.modules()
        for name, child in parent.named_children()
        if type(child) is nn.Linear and _has_packed_form(child.weight)
    ]
    for parent, name, child in found:
        setattr(parent, name, PackedLinear(child))
    if found:
        packed = [module._kept for module in model.modules() if isinstance(module, PackedLinear)]
        Thread(target=on_huge_pages, args=([*packed, *model.parameters()],), daemon=True).start()
    return len(found)


def _has_packed_form(weight: torch.Tensor) -> bool:
    return weight.device.type == "cpu" and weight.dtype is torch.float32


def _packed(weight: torch.Tensor) -> torch.Tensor:
    """Weights packed, if they have a packed form."""
    if not _has_packed_form(weight):
        return weight
    packed: torch.Tensor = torch.ops.mkl._mkl_reorder_linear_weight(weight, _ROWS)
    return packed
