"""Whole rounds with tensors that have no values, on a device that is not there: what would wait for it cannot run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

__all__ = ["HostTouched", "imagined", "without_host"]


class HostTouched(AssertionError):
    """An operation had tensors of the host among its inputs or outputs."""


class _OnOneDevice(TorchDispatchMode):
    """Refuses operations on tensors that are not on a device."""

    def __init__(self, device: str) -> None:
        super().__init__()
        self.device = device
        self.calls = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        self.calls += 1
        for value in tree_leaves((args, kwargs, result)):
            if isinstance(value, torch.Tensor) and value.device.type != self.device:
                raise HostTouched(f"{func} has a tensor on {value.device}")
        return result


@contextmanager
def imagined() -> Iterator[FakeTensorMode]:
    """Tensors made inside have shapes and devices, and no values. ``.item()`` and boolean indices raise."""
    with FakeTensorMode(allow_non_fake_inputs=True) as mode:
        yield mode


@contextmanager
def without_host(device: str = "cuda") -> Iterator[_OnOneDevice]:
    """Operations inside are refused if a tensor of another device takes part, as in a copy to the host or from it."""
    with _OnOneDevice(device) as mode:
        yield mode
