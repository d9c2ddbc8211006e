"""What the tests of decoding share."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest


@pytest.fixture
def inference() -> Iterator[None]:
    """No gradients, and no warnings of transformers about configurations as small as those of the tests."""
    torch = pytest.importorskip("torch")
    logging.disable(logging.WARNING)
    with torch.inference_mode():
        yield
    logging.disable(logging.NOTSET)
