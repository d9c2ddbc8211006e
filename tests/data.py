"""Data that tests use and the repository does not have: ``pytest --data DIR``, or the variable GRAMMARSPEC_DATA.

Each has a folder of its own below ``DIR``. Tests of a folder that is not there are skipped.
"""

from __future__ import annotations

from pathlib import Path

import pytest

__all__ = ["FOLDERS", "folder"]

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


def not_at_hand(name: str) -> str:
    """The reason of a skip for want of data."""
    return f"--data has no folder {name}: {FOLDERS[name]}"
