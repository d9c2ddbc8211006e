"""Bytes in a folder, by keys, that processes share: written whole or not at all, checked when they are read."""

from __future__ import annotations

import hashlib
import os
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Final

__all__ = ["DiskStore"]

_SUFFIX: Final = ".gsrq"
_PRUNED_AFTER: Final = 64
"""Writes after which the size of the folder is looked at."""


class DiskStore:
    """A folder of small files. Nothing is raised where the folder cannot be used: then nothing is found.

    A file that is damaged, or is another's, is not found, and replaced by the next that is written. Its digest finds
    damage only: whoever may write to the folder decides what is read from it.

    Attributes:
        damaged: how many files were found damaged.
        failed: how many could not be written.
    """

    def __init__(self, directory: str | os.PathLike[str], max_bytes: int) -> None:
        """A store in a folder, which is made if it is not there.

        Args:
            directory: the folder.
            max_bytes: what the files may hold together; those not used for longest go first.
        """
        self._directory, self._max_bytes = Path(directory), max_bytes
        self._writes = 0
        self.damaged = self.failed = 0

    def _path(self, key: bytes) -> Path:
        return self._directory / f"{key.hex()}{_SUFFIX}"

    def get(self, key: bytes) -> bytes | None:
        """What was written under a key, or ``None``."""
        path = self._path(key)
        try:
            data = path.read_bytes()
        except OSError:
            return None
        payload = data[64:]
        if data[:32] != key or data[32:64] != hashlib.sha256(payload).digest():
            self.damaged += 1
            return None
        with suppress(OSError):
            os.utime(path)
        return payload

    def put(self, key: bytes, payload: bytes) -> None:
        """Write something under a key: other processes see all of it, or nothing."""
        try:
            self._directory.mkdir(parents=True, exist_ok=True)
            handle, name = tempfile.mkstemp(dir=self._directory, suffix=".part")
        except OSError:
            self.failed += 1
            return
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(key + hashlib.sha256(payload).digest() + payload)
            os.replace(name, self._path(key))
        except OSError:
            self.failed += 1
            with suppress(OSError):
                os.unlink(name)
        self._writes += 1
        if self._writes % _PRUNED_AFTER == 1:
            self._prune()

    def _prune(self) -> None:
        """Remove the files not used for longest until the others are within the bound."""
        found = []
        for path in self._directory.glob(f"*{_SUFFIX}"):
            with suppress(OSError):
                stat = path.stat()
                found.append((stat.st_mtime, stat.st_size, path))
        held = sum(size for _, size, _ in found)
        for _, size, path in sorted(found):
            if held <= self._max_bytes:
                break
            with suppress(OSError):
                path.unlink()
            held -= size
