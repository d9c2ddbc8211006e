"""Mask rows on a device that follow those on the host; on the CPU, with a stand-in for what a device does later."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import grammarspec as gs  # noqa: E402
from grammarspec import uploads  # noqa: E402
from grammarspec.uploads import MaskUploads, _Buffer  # noqa: E402
from tests import tiers  # noqa: E402

NO_CUDA = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
DEVICES = ["cpu", pytest.param("cuda", marks=NO_CUDA)]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.property
def test_the_device_follows(device: str) -> None:
    random = np.random.default_rng(tiers.seed(1))
    there = MaskUploads(7, 100, device)
    address, expected = there.tensor.data_ptr(), np.zeros((7, 4), np.int32)
    for _ in range(tiers.draws(200)):
        changed = random.random(7) < random.random()
        values = random.integers(-(2**31), 2**31, (7, 4)).astype(np.int32)
        expected[changed] = there.rows[changed] = values[changed]
        assert there.upload() == changed.sum()
        assert there.upload() == 0  # nothing has changed since
        assert np.array_equal(there.tensor.cpu().numpy(), expected)
    assert there.tensor.data_ptr() == address


@pytest.mark.parametrize("device", DEVICES)
def test_masks_of_matchers(device: str) -> None:
    vocabulary = gs.Vocabulary.bytes()
    matchers = [gs.compile(gs.regex(pattern), vocabulary).matcher() for pattern in ("a+", "[xyz]", "q")]
    there = MaskUploads(4, vocabulary.size, device)
    gs.fill_bitmasks(matchers, there.rows)
    logits = torch.zeros(3, 300, device=device)
    there.apply(logits, [1, -1, 3])
    finite = [row.isfinite().nonzero()[:, 0].tolist() for row in logits.cpu()]
    assert finite == [[*b"xyz"], [*range(300)], []]
    assert matchers[0].accept_token(ord("a"))
    gs.fill_bitmasks(matchers[:1], there.rows)
    assert there.upload() == 1
    logits = torch.zeros(4, vocabulary.size, device=device)
    there.apply(logits)
    assert logits[0].isfinite().nonzero()[:, 0].tolist() == [ord("a"), 256]


def unpinned(zeros: Callable[..., torch.Tensor], *shape: Any, pin_memory: bool = False, **kwargs: Any) -> torch.Tensor:
    return zeros(*shape, **kwargs)


class Event:
    """An event of a device that is busy until it is waited for."""

    log: ClassVar[list[tuple[str, int]]] = []

    def __init__(self) -> None:
        self.number = sum(name == "new" for name, _ in self.log)
        self.log.append(("new", self.number))

    def record(self) -> None:
        self.log.append(("record", self.number))

    def synchronize(self) -> None:
        self.log.append(("wait", self.number))


def test_a_buffer_is_written_again_only_when_its_copy_has_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    """The two take turns, and each waits for its own last copy."""
    monkeypatch.setattr(uploads, "_event", Event)
    monkeypatch.setattr(Event, "log", [])
    monkeypatch.setattr(torch, "zeros", partial(unpinned, torch.zeros))
    there = MaskUploads(2, 40, "cpu")
    there._buffers = [_Buffer(2, 2, asynchronous=True) for _ in range(2)]
    for turn in range(1, 5):
        there.rows[:] = turn
        there.upload()
    waits = [entry for entry in Event.log if entry[0] != "new"]
    assert waits == [(what, turn % 2) for turn in (1, 2, 3, 4) for what in ("wait", "record")]


def test_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    there = MaskUploads(2, 40, "cpu")
    with pytest.raises(ValueError, match="the logits are on meta, the mask rows on cpu"):
        there.apply(torch.zeros(2, 40, device="meta"))
    with pytest.raises(ValueError, match="2 mask rows for 3 sequences"):
        there.apply(torch.zeros(3, 40))
    with pytest.raises(ValueError, match="must be positive, not 0 and 40"):
        MaskUploads(0, 40, "cpu")
    assert repr(there) == "<MaskUploads: 2 rows on cpu>"
