"""A store of byte strings by key in a folder that processes share. Files are written atomically, and read checked."""

from __future__ import annotations

import hashlib
import os
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

__all__ = ["DiskStore"]

_SUFFIX: Final = ".gsrq"
_PART: Final = f"{_SUFFIX}.part"
"""The suffix of files that are being written."""
_ABANDONED_AFTER: Final = 3600.0
"""The seconds after which such a file counts as left behind by a process that has died."""
_PRUNED_AFTER: Final = 64
"""The number of writes after which the size of the folder is checked."""


class DiskStore:
    """A folder of small files, one for each key. If the folder cannot be used, nothing is found and nothing is raised.

    A file that is damaged, or has another key, counts as not found; the next write for its key replaces it. The digest
    in a file detects damage only: whoever can write to the folder decides what is read from it.

    Attributes:
        damaged: how many files were damaged.
        failed: how many files could not be written.
    """

    def __init__(self, directory: str | os.PathLike[str], max_bytes: int) -> None:
        """A store in a folder, which is created by the first write.

        Args:
            directory: the folder.
            max_bytes: the largest number of bytes of all files together; the least recently used are removed first.
        """
        self._directory, self._max_bytes = Path(directory), max_bytes
        self._writes = 0
        self.damaged = self.failed = 0

    def _path(self, key: bytes) -> Path:
        return self._directory / f"{key.hex()}{_SUFFIX}"

    def get(self, key: bytes) -> bytes | None:
        """The bytes that were written for a key; ``None`` if there are none."""
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
        """Write the bytes for a key, atomically: other processes see all of them, or none."""
        try:
            self._directory.mkdir(parents=True, exist_ok=True)
            handle, name = tempfile.mkstemp(dir=self._directory, suffix=_PART)
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
        """Remove the least recently used files until the others are within the bound, and what writers left behind.

        Files that are being written count, but are not removed.
        """
        found, held, now = [], 0, time.time()
        for path in self._directory.glob(f"*{_SUFFIX}*"):
            with suppress(OSError):
                stat = path.stat()
                if path.name.endswith(_SUFFIX):
                    found.append((stat.st_mtime, stat.st_size, path))
                elif not path.name.endswith(_PART):
                    continue
                elif now - stat.st_mtime > _ABANDONED_AFTER:
                    path.unlink()
                    continue
                held += stat.st_size
        for _, size, path in sorted(found):
            if held <= self._max_bytes:
                break
            with suppress(OSError):
                path.unlink()
            held -= size
