"""Imports on first use, by one thread at a time."""

from __future__ import annotations

import os
from threading import RLock
from typing import Final

__all__ = ["importing"]


class _Importing:
    """A lock that a fork leaves behind: in the child there is no thread that could release it."""

    def __init__(self) -> None:
        self._renew()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._renew)

    def _renew(self) -> None:
        self._lock = RLock()

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *error: object) -> None:
        self._lock.release()


importing: Final = _Importing()
"""Held while a function imports a module of this package.

Where one thread imports a package and another a module of it, Python takes that for a deadlock, and gives one of them
a module that is half imported (https://github.com/python/cpython/issues/83065). The body of a module must not need it:
a thread that imports the module without it would wait for one that holds it and waits for the module.
"""
