"""Fetch the official JSON Schema test suite: ``python -m tests.fetch_suite``.

The repository does not have it. The source distribution of the package ``jsonschema`` does: pip downloads the release
that is named here, and its folder ``json`` is unpacked into ``.cache``, which git ignores.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

__all__ = ["DIRECTORY", "fetch"]

RELEASE = "4.26.0"
SHA256 = "0c26707e2efad8aa1bfc5b7ce170f3fccc2e4918ff85989ba9ffa9facb2be326"
DIRECTORY = Path(__file__).parents[1] / ".cache" / f"json-schema-test-suite-of-jsonschema-{RELEASE}"


def fetch() -> None:
    """Fetch the suite unless it is there."""
    if DIRECTORY.is_dir():
        return
    DIRECTORY.parent.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=DIRECTORY.parent) as temporary:
        work = Path(temporary)
        wanted = work / "requirements.txt"
        wanted.write_text(f"jsonschema=={RELEASE} --hash=sha256:{SHA256}\n")
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", "jsonschema"]
        subprocess.run([*pip, "--dest", work, "--require-hashes", "--requirement", wanted], check=True)
        with tarfile.open(work / f"jsonschema-{RELEASE}.tar.gz") as archive:
            archive.extractall(work, filter="data")
        shutil.move(work / f"jsonschema-{RELEASE}" / "json", DIRECTORY)


if __name__ == "__main__":
    fetch()
