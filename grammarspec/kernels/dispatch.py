"""Which implementation of an operator runs: its kernel, or its reference in plain torch.

With ``using("auto")``, kernels run for tensors on CUDA devices of compute capability 8.0 or higher, where Triton is
installed. All other devices (the CPU, MPS, XPU, and ROCm, which calls its devices CUDA) and ``float64`` have the
reference, and so has everything unless kernels are asked for: they have been run in Triton's interpreter only.
:func:`using` also compares the two on a device, or runs kernels in the interpreter on the CPU.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache, wraps
from typing import Any, Literal, ParamSpec, TypeVar, get_args

import torch

__all__ = ["Mode", "operator", "takes_over", "using"]

P = ParamSpec("P")
T = TypeVar("T")

Mode = Literal["auto", "reference", "interpreter"]
"""``auto``: kernels where there are some; ``reference``: nowhere; ``interpreter``: on the CPU, too."""

# Kernels are asked for, as long as they have been run in Triton's interpreter only, and on no GPU.
_mode: ContextVar[Mode] = ContextVar("grammarspec_kernels", default="reference")
_LEAST_CAPABILITY = (8, 0)  # bfloat16; what Triton supports


@contextmanager
def using(mode: Mode) -> Iterator[None]:
    """Choose within a ``with`` block, in this thread or task, where kernels run.

    Args:
        mode: one of :data:`Mode`. For ``"interpreter"`` the environment variable ``TRITON_INTERPRET`` must have been 1
            when Triton was imported first.

    Raises:
        ValueError: there is no such mode.
        RuntimeError: Triton is not installed, or it was imported without its interpreter.
    """
    if mode not in get_args(Mode):
        raise ValueError(f"mode must be one of {', '.join(get_args(Mode))}, not {mode!r}")
    if mode == "interpreter" and not _interprets():
        raise RuntimeError(
            "Triton's interpreter is off: install Triton, and set TRITON_INTERPRET=1 before it is imported"
        )
    token = _mode.set(mode)
    try:
        yield
    finally:
        _mode.reset(token)


def takes_over(tensor: torch.Tensor) -> bool:
    """Whether kernels run for a tensor, rather than the reference."""
    mode = _mode.get()
    if mode == "reference" or tensor.dtype == torch.float64:
        return False
    if tensor.is_cuda:
        return _usable(tensor.device)
    return mode == "interpreter" and tensor.device.type == "cpu"


@cache
def _usable(device: torch.device) -> bool:
    """Whether a CUDA device has kernels. Where there is none, tensors of one are fake, and stand for one that has."""
    if torch.version.hip is not None or importlib.util.find_spec("triton") is None:
        return False
    return not torch.cuda.is_available() or torch.cuda.get_device_capability(device) >= _LEAST_CAPABILITY


def _interprets() -> bool:
    """Whether kernels run in Triton's interpreter."""
    if importlib.util.find_spec("triton") is None:
        return False
    from triton.runtime.interpreter import InterpretedFunction

    return isinstance(importlib.import_module("grammarspec.kernels.noise").uniform_kernel, InterpretedFunction)


def operator(
    schema: str, kernel: str, *, changes: Sequence[str] = (), by: int = 0
) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """A decorator that makes an operator of ``torch.library`` of a reference and its kernel.

    The operator ``torch.ops.grammarspec.NAME`` runs the kernel where kernels run, else the reference. Its fake
    implementation, which says shapes and dtypes only, is the reference too: nothing in one may depend on values. What
    the decorator returns calls the reference itself where no kernel runs, which saves the operator's overhead.

    Args:
        schema: ``NAME(Tensor x, ...) -> ...``, in the notation of torch.
        kernel: ``MODULE:FUNCTION``, of a module of this package; it is imported when it runs first, and is called
            like the reference, with arguments by position.
        changes: the names of the arguments that are changed in place.
        by: the number of the argument whose device and dtype decide.
    """
    name, _, signature = schema.partition("(")

    def decorate(reference: Callable[P, T]) -> Callable[P, T]:
        def run(*args: Any) -> Any:
            return (_launcher(kernel) if takes_over(args[by]) else reference)(*args)  # type: ignore[call-arg]

        def fake(*args: Any) -> Any:
            with using("reference"):
                return None if changes else reference(*args)  # type: ignore[call-arg]

        custom = torch.library.custom_op(f"grammarspec::{name}", run, mutates_args=changes, schema=f"({signature}")
        custom.register_fake(fake)

        @wraps(reference)
        def call(*args: P.args, **kwargs: P.kwargs) -> T:
            if takes_over(args[by]):  # type: ignore[arg-type]
                result: T = custom(*args, **kwargs)
                return result
            return reference(*args, **kwargs)

        return call

    return decorate


@cache
def _launcher(kernel: str) -> Callable[..., Any]:
    module, _, function = kernel.partition(":")
    launcher: Callable[..., Any] = getattr(importlib.import_module(f"grammarspec.kernels.{module}"), function)
    return launcher
