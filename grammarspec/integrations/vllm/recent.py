"""A cache of texts by key, bounded by bytes; the least recently used are removed first."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import Lock
from typing import Final

__all__ = ["RecentTexts"]

_BESIDE: Final = 500
"""The bytes that an entry takes in addition to its text."""


class RecentTexts:
    """Keeps recently used texts. Thread-safe; threads that ask for the same text at once may each make it."""

    def __init__(self, max_bytes: int) -> None:
        """An empty cache.

        Args:
            max_bytes: the largest number of bytes of all texts together. A text of more than an eighth is not kept.
        """
        self._max_bytes, self._bytes = max_bytes, 0
        self._lock = Lock()
        self._texts: OrderedDict[Hashable, str] = OrderedDict()

    def get(self, key: Hashable, make: Callable[[], str]) -> str:
        """The text of a key; if it is not kept, ``make`` is called. An error of ``make`` is raised, and not kept."""
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
