"""Decides which implementation of an operator runs: its kernel, or its reference in plain torch.

Kernels run for tensors on CUDA devices of compute capability 8.0 or higher, if Triton is installed; for other devices
(the CPU, MPS, XPU, and ROCm, which torch also calls CUDA) and for ``float64`` the reference runs. With
``using("reference")`` it runs everywhere; with ``using("interpreter")``, kernels also run on the CPU, in Triton's
interpreter.
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

from grammarspec.imports import importing

__all__ = ["Mode", "operator", "takes_over", "using"]

P = ParamSpec("P")
T = TypeVar("T")

Mode = Literal["auto", "reference", "interpreter"]
"""``auto``: kernels run where they can; ``reference``: nowhere; ``interpreter``: as ``auto``, and on the CPU, too."""

_mode: ContextVar[Mode] = ContextVar("grammarspec_kernels", default="auto")
_LEAST_CAPABILITY = (8, 0)  # bfloat16; what Triton supports


@contextmanager
def using(mode: Mode) -> Iterator[None]:
    """Choose where kernels run, within a ``with`` block and in this thread or task only.

    Args:
        mode: one of :data:`Mode`. For ``"interpreter"``, the environment variable ``TRITON_INTERPRET`` must have been 1
            when Triton was first imported.

    Raises:
        ValueError: there is no such mode.
        RuntimeError: Triton is not installed or was imported without its interpreter, and the mode needs that.
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
    """Whether the kernel runs for a tensor, and not the reference."""
    mode = _mode.get()
    if mode == "reference" or tensor.dtype == torch.float64:
        return False
    if tensor.is_cuda:
        return _usable(tensor.device)
    return mode == "interpreter" and tensor.device.type == "cpu"


@cache
def _usable(device: torch.device) -> bool:
    """Whether kernels run on a CUDA device. Without any device, CUDA tensors are fake, and the answer is yes."""
    if torch.version.hip is not None or importlib.util.find_spec("triton") is None:
        return False
    return not torch.cuda.is_available() or torch.cuda.get_device_capability(device) >= _LEAST_CAPABILITY


def _interprets() -> bool:
    """Whether kernels run in Triton's interpreter."""
    if importlib.util.find_spec("triton") is None:
        return False
    from triton.runtime.interpreter import InterpretedFunction

    with importing:
        return isinstance(importlib.import_module("grammarspec.kernels.noise").uniform_kernel, InterpretedFunction)


def operator(
    schema: str, kernel: str, *, changes: Sequence[str] = (), by: int = 0
) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """A decorator that makes an operator of ``torch.library`` from a reference and its kernel.

    The operator ``torch.ops.grammarspec.NAME`` runs the kernel where kernels run, and the reference elsewhere. Its fake
    implementation, which computes only shapes and dtypes, is the reference, too; so nothing in a reference may depend
    on values. The decorated function calls the reference directly where no kernel runs, which saves the overhead of the
    operator.

    Args:
        schema: ``NAME(Tensor x, ...) -> ...``, in the notation of torch.
        kernel: ``MODULE:FUNCTION`` of this package. The module is imported when the kernel first runs; the function is
            called with the arguments of the reference, by position.
        changes: the names of the arguments that are changed in place.
        by: the number of the argument whose device and dtype decide whether the kernel runs.
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
    with importing:
        launcher: Callable[..., Any] = getattr(importlib.import_module(f"grammarspec.kernels.{module}"), function)
    return launcher
