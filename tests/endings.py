"""What is made to hurt must end."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from time import process_time

_SECONDS = 100
"""Of the process alone, and far above what any of them takes: what does not end is found, not what is slow."""


@contextmanager
def ends() -> Iterator[None]:
    """See that what is done here is over soon. What never is, `make test` ends."""
    started = process_time()
    yield
    assert process_time() - started < _SECONDS
