"""The folder of a cache: what dead writers left behind is removed, and what is being written counts."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from grammarspec.serving.disk import DiskStore

KEY = bytes(32)


def left_behind(directory: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file of a writer that died before it renamed it."""

    class Died(BaseException):
        pass

    def die(*_: object) -> None:
        raise Died

    with monkeypatch.context() as dying:
        dying.setattr(os, "replace", die)
        with pytest.raises(Died):
            DiskStore(directory, 1 << 20).put(KEY, b"x" * 1000)
    [path] = directory.iterdir()
    return path


def age(path: Path, seconds: float) -> None:
    then = time.time() - seconds
    os.utime(path, (then, then))


def test_files_of_dead_writers_are_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = left_behind(tmp_path, monkeypatch)
    age(path, 2 * 3600)
    other = tmp_path / "of another program.part"
    other.write_bytes(b"")
    age(other, 2 * 3600)
    store = DiskStore(tmp_path, 1 << 20)
    store.put(KEY, b"payload")
    assert store.get(KEY) == b"payload"
    assert not path.exists() and other.exists()


def test_files_that_are_being_written_stay_and_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = left_behind(tmp_path, monkeypatch)
    store = DiskStore(tmp_path, 1064 + 100)  # 64 bytes of each file are its key and its digest
    store.put(KEY, b"short")
    assert path.exists() and store.get(KEY) == b"short"
    store = DiskStore(tmp_path, 1064 + 100)
    store.put(KEY, b"y" * 100)  # together with the other one it is too long
    assert path.exists() and store.get(KEY) is None
    assert store.failed == store.damaged == 0
