"""Texts that were made last, by what they were made of, within so many bytes."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import Lock
from typing import Final

__all__ = ["RecentTexts"]

_BESIDE: Final = 500
"""Bytes of an entry beside its text."""


class RecentTexts:
    """Keeps the texts that were asked for last. Thread-safe: those that ask for the same at once may make it twice."""

    def __init__(self, max_bytes: int) -> None:
        """Nothing is kept yet.

        Args:
            max_bytes: what all texts may hold together. A text of more than an eighth of it is not kept.
        """
        self._max_bytes, self._bytes = max_bytes, 0
        self._lock = Lock()
        self._texts: OrderedDict[Hashable, str] = OrderedDict()

    def get(self, key: Hashable, make: Callable[[], str]) -> str:
        """The text of a key; ``make`` makes it, if it is not kept. What that raises is passed on, and not kept."""
        with self._lock:
            text = self._texts.get(key)
            if text is not None:
                self._texts.move_to_end(key)
                return text
        text = make()
        size = len(text) + _BESIDE
        if size <= self._max_bytes // 8:
            with self._lock:
                if key not in self._texts:
                    self._texts[key] = text
                    self._bytes += size
                while self._bytes > self._max_bytes:
                    _, gone = self._texts.popitem(last=False)
                    self._bytes -= len(gone) + _BESIDE
        return text
