"""What a call costs this process: CPU time, and memory at its peak."""

from __future__ import annotations

import ctypes
import gc
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from time import process_time
from typing import Any, TypeVar

__all__ = ["BYTES", "SECONDS", "Cost", "Meter", "allocated", "machine_factor", "memory"]

T = TypeVar("T")

SECONDS = 1.0
"""Of CPU time, on the machine of :func:`machine_factor`: what a call may take."""
BYTES = 256 << 20
"""What a call may add to the memory of its process, at its peak."""

_REFERENCE = 0.03  # seconds that the reference workload takes on the machine that the bounds are for


@dataclass(frozen=True, slots=True)
class Cost:
    """What one call took."""

    call: str
    seconds: float
    bytes: int


@dataclass
class Meter:
    """Measures calls one by one. Nothing else may run in the process."""

    costs: list[Cost] = field(default_factory=list)

    def __call__(self, name: str, call: Callable[..., T], *arguments: Any) -> T:
        """The result of a call, or what it raises; what it took is kept."""
        Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew (proc_pid_clear_refs(5))
        before, started = memory("VmRSS"), process_time()
        try:
            return call(*arguments)
        finally:
            seconds = process_time() - started
            self.costs.append(Cost(name, seconds, memory("VmHWM") - before))


def memory(name: str) -> int:
    """A size of this process in bytes: ``VmRSS``, what it has now, or ``VmHWM``, its peak."""
    found = re.search(rf"^{name}:\s*(\d+) kB$", Path("/proc/self/status").read_text(), re.MULTILINE)
    assert found
    return int(found[1]) * 1024


class _Mallinfo(ctypes.Structure):
    """``struct mallinfo2`` of glibc: all fields are sizes or counts (mallinfo(3))."""

    _names = "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost"
    _fields_ = [(name, ctypes.c_size_t) for name in _names.split()]


def allocated() -> int | None:
    """The bytes that are allocated with glibc's malloc, in all its arenas; ``None`` where the C library is another.

    What the process has beyond that and beyond Python's own pools are pages that the allocator keeps.
    """
    mallinfo = getattr(ctypes.CDLL(None), "mallinfo2", None)
    if mallinfo is None:
        return None
    mallinfo.restype = _Mallinfo
    found = mallinfo()
    return int(found.uordblks + found.hblkhd)


def machine_factor() -> float:
    """How much slower than the machine of the bounds this one is now, at least 1.

    A fixed piece of work is timed that allocates, hashes and compares, as compiling does, and uses nothing of
    grammarspec.
    """
    gc.disable()
    started = process_time()
    table: dict[tuple[int, ...], int] = {}
    for number in range(35_000):
        table[number * 7919 % 65_537, number] = len(table)
    sorted(table, reverse=True)
    seconds = process_time() - started
    gc.enable()
    return max(1.0, seconds / _REFERENCE)
