"""What the tests of kernels share."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows of a few dozen tokens have several chunks, as long ones do."""
    pytest.importorskip("triton")
    from grammarspec.kernels import blocks

    monkeypatch.setattr(blocks, "CHUNK", 32)


@pytest.fixture
def whole_rows(small_chunks: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows as long as those of real vocabularies have chunks as on a device."""
    from grammarspec.kernels import blocks
    from tests.kernels.running import FULL

    monkeypatch.setattr(blocks, "CHUNK", FULL)
