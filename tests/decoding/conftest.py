"""What the tests of decoding share."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from weakref import WeakKeyDictionary

import pytest


@pytest.fixture
def inference() -> Iterator[None]:
    """No gradients, and no warnings of transformers about configurations as small as those of the tests."""
    torch = pytest.importorskip("torch")
    logging.disable(logging.WARNING)
    with torch.inference_mode():
        yield
    logging.disable(logging.NOTSET)


@pytest.fixture(autouse=True)
def on_host(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tokens are chosen as they are on the CPU, although the models of the tests have few tokens."""
    if (chooser := sys.modules.get("grammarspec.decoding.host_chooser")) is not None:
        monkeypatch.setattr(chooser, "HOST_WIDTH", 0)


@pytest.fixture(autouse=True)
def long_drafts(drafts_pay: None) -> None:
    """Drafts are as long as they can be."""


@pytest.fixture(autouse=True)
def nothing_learnt(monkeypatch: pytest.MonkeyPatch) -> None:
    """What targets of other tests preferred is not known."""
    if (spellings := sys.modules.get("grammarspec.decoding.proposers.spellings")) is not None:
        monkeypatch.setattr(spellings, "_spellings", WeakKeyDictionary())
