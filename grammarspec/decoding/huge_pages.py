"""Weights on huge pages of memory, where Linux has them.

A pass over a few tokens reads every weight once and does little else. On the usual pages of 4 KB, the addresses of half
a gigabyte are 130,000 translations in each pass. Linux can put memory on pages of 2 MB, but does so by itself only
where it is set to do so always. torch can ask for them (``THP_MEM_ALLOC_ENABLE``), but not for packed weights, and not
once they are there.
"""

from __future__ import annotations

import ctypes
import mmap
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import torch

__all__ = ["on_huge_pages"]

_COLLAPSE: Final = 25  # MADV_COLLAPSE of Linux 6.1 and later, which Python's mmap does not name
_SETTINGS: Final = Path("/sys/kernel/mm/transparent_hugepage")


def on_huge_pages(tensors: Iterable[torch.Tensor]) -> int:
    """Move the memory of tensors to huge pages, where it lies; it may be in use. Nothing changes where that fails.

    Args:
        tensors: plain tensors, and packed ones. Those that are not on the CPU, and those of subclasses, are left as
            they are. What is between tensors that are next to each other is moved, too; but where less than half of a
            huge page would be in use, as packed tensors have room that nothing is written to, small pages stay.

    Returns:
        the number of bytes that are on huge pages now.
    """
    size = _huge_page()
    if size is None:
        return 0
    madvise, mincore = ctypes.CDLL(None).madvise, ctypes.CDLL(None).mincore
    length, small = ctypes.c_size_t(size), mmap.PAGESIZE
    in_memory = (ctypes.c_ubyte * (size // small))()
    found = 0
    for first, last in _joined(_ranges(tensors), size):
        for begin in range(-(-first // size) * size, last - size + 1, size):
            page = ctypes.c_void_p(begin)
            if mincore(page, length, in_memory) or sum(each & 1 for each in in_memory) < len(in_memory) / 2:
                continue
            if not madvise(page, length, _COLLAPSE):
                found += size
    return found


def _huge_page() -> int | None:
    """The size of a huge page in bytes; ``None`` where there are none, or whoever runs the machine wants none."""
    try:
        if sys.platform != "linux" or "[never]" in (_SETTINGS / "enabled").read_text():
            return None
        return int((_SETTINGS / "hpage_pmd_size").read_text())
    except (OSError, ValueError):
        return None


def _ranges(tensors: Iterable[torch.Tensor]) -> Iterable[tuple[int, int]]:
    """The addresses of tensors: the first one, and that behind the last one."""
    for tensor in tensors:
        if tensor.device.type != "cpu" or type(tensor) not in (torch.Tensor, torch.nn.Parameter):
            continue
        if tensor.is_mkldnn and hasattr(torch.ops.mkldnn, "data_ptr"):
            begin = int(torch.ops.mkldnn.data_ptr(tensor))
        elif tensor.layout is torch.strided:
            begin = tensor.data_ptr()
        else:
            continue
        yield begin, begin + tensor.numel() * tensor.element_size()


def _joined(ranges: Iterable[tuple[int, int]], gap: int) -> list[tuple[int, int]]:
    """Ranges in order; those with less than ``gap`` between them are one."""
    joined: list[tuple[int, int]] = []
    for begin, end in sorted(ranges):
        if joined and begin < joined[-1][1] + gap:
            joined[-1] = joined[-1][0], max(end, joined[-1][1])
        else:
            joined.append((begin, end))
    return joined
