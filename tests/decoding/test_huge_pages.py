"""Weights are moved to huge pages where they lie, and stay what they are."""

from __future__ import annotations

import ctypes
import mmap
import platform
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from grammarspec.decoding import huge_pages  # noqa: E402
from grammarspec.decoding.huge_pages import on_huge_pages  # noqa: E402
from grammarspec.decoding.prepacking import PackedLinear  # noqa: E402

MEGABYTE = 1 << 20


def can_move() -> bool:
    """Whether Linux is new enough, and set to have huge pages."""
    release = platform.release().split(".")
    return huge_pages._huge_page() is not None and (int(release[0]), int(release[1])) >= (6, 1)


def huge(address: int) -> int:
    """How many bytes are on huge pages in the mapping that an address is in."""
    found = False
    for line in Path("/proc/self/smaps").read_text().splitlines():
        name, *values = line.split()
        if "-" in name and ":" not in name:
            begin, end = (int(part, 16) for part in name.split("-"))
            found = begin <= address < end
        elif found and name == "AnonHugePages:":
            return int(values[0]) * 1024
    return 0


def in_memory(address: int, length: int) -> int:
    """How many bytes of a range are in memory."""
    pages = (ctypes.c_ubyte * (length // mmap.PAGESIZE))()
    assert ctypes.CDLL(None).mincore(ctypes.c_void_p(address), ctypes.c_size_t(length), pages) == 0
    return sum(page & 1 for page in pages) * mmap.PAGESIZE


@pytest.mark.skipif(
    not can_move(), reason="Linux moves memory to huge pages from 6.1 on, where they are not turned off"
)
@pytest.mark.parametrize("packed", [False, True])
def test_memory_is_moved(packed: bool) -> None:
    layer = torch.nn.Linear(2048, 4096, bias=False)
    if packed:
        plain, layer = layer, PackedLinear(layer)
        if not (layer._kept.is_mkldnn and hasattr(torch.ops.mkldnn, "data_ptr")):
            pytest.skip("this torch does not pack weights, or does not say where they are")
        tensor, values = layer._kept, plain.weight
    else:
        tensor, values = layer.weight, layer.weight.detach().clone()
    moved = on_huge_pages([tensor])
    assert 28 * MEGABYTE <= moved <= 4 * tensor.numel()
    assert huge(torch.ops.mkldnn.data_ptr(tensor) if packed else tensor.data_ptr()) >= moved
    assert torch.equal(layer.weight, values)


@pytest.mark.skipif(
    not can_move(), reason="Linux moves memory to huge pages from 6.1 on, where they are not turned off"
)
def test_room_that_nothing_is_written_to_takes_no_memory() -> None:
    # Of its own from Linux: what torch allocates may have been written to before, by tensors that are gone.
    memory = mmap.mmap(-1, 256 * MEGABYTE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    tensor = torch.frombuffer(memory, dtype=torch.float32)
    tensor[: 8 * MEGABYTE] = 1
    tensor[8 * MEGABYTE :: MEGABYTE // 4] = 1  # one number a megabyte
    assert 30 * MEGABYTE <= on_huge_pages([tensor]) <= 34 * MEGABYTE
    assert in_memory(tensor.data_ptr(), 256 * MEGABYTE) <= 34 * MEGABYTE


def test_what_cannot_be_moved_stays() -> None:
    assert on_huge_pages([]) == 0
    elsewhere, sparse = torch.empty(MEGABYTE, device="meta"), torch.ones(4, 4).to_sparse()
    assert on_huge_pages([torch.ones(3), elsewhere, sparse]) == 0


@pytest.mark.parametrize("settings", [{}, {"enabled": "always madvise [never]\n", "hpage_pmd_size": "2097152\n"}])
def test_where_huge_pages_are_not_wanted(
    settings: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, text in settings.items():
        (tmp_path / name).write_text(text)
    monkeypatch.setattr(huge_pages, "_SETTINGS", tmp_path)
    assert on_huge_pages([torch.ones(4 * MEGABYTE)]) == 0


def test_neighbours_are_one_range() -> None:
    assert huge_pages._joined([(50, 60), (0, 10), (12, 20), (5, 8)], gap=3) == [(0, 20), (50, 60)]
