"""Data that tests use and the repository does not have: ``pytest --data DIR``, or the variable GRAMMARSPEC_DATA.

Each has a folder of its own below ``DIR``. Tests of a folder that is not there are skipped.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest

__all__ = ["FOLDERS", "folder", "package_file"]

FOLDERS = {
    "llama3": "tokenizer.json and tokenizer_config.json of Llama 3; its licence lets nobody pass them on",
    "maskbench": "the JSON files of github.com/guidance-ai/jsonschemabench, folder maskbench/data; no package has them",
    "templates": "the chat templates of github.com/ggml-org/llama.cpp, folder models/templates; no package has them",
}


def folder(config: pytest.Config, name: str) -> Path:
    """The folder of one kind of data; where there is none, the test is skipped.

    Args:
        config: The configuration of the run.
        name: A key of ``FOLDERS``.
    """
    directory: Path | None = config.getoption("--data")
    if directory is None or not (directory / name).is_dir():
        pytest.skip(not_at_hand(name))
    return directory / name


def package_file(package: str, path: str) -> Path:
    """A data file of an installed package, which is not imported; where there is none, the test is skipped."""
    found = find_spec(package)
    if found is None or not found.submodule_search_locations:
        pytest.skip(f"needs the package {package}")
    return Path(found.submodule_search_locations[0]) / path


def not_at_hand(name: str) -> str:
    """The reason of a skip for want of data."""
    return f"--data has no folder {name}: {FOLDERS[name]}"
