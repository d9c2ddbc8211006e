"""Counts that may only rise, kept in ``tests/ratchet.json``; ``make written`` writes those that rose."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

__all__ = ["check"]

_FILE = Path(__file__).with_suffix(".json")


def check(config: pytest.Config, name: str, counts: dict[str, int]) -> None:
    """Fail the test if a count is below the one that is kept; with ``--write``, keep those of this run instead.

    Args:
        config: The configuration of the run.
        name: What was counted.
        counts: How many of each kind, the more the better.
    """
    every: dict[str, dict[str, int]] = json.loads(_FILE.read_text(encoding="utf-8"))
    kept = every.get(name, {})
    fallen = {kind: f"{kept[kind]} -> {counts.get(kind)}" for kind in kept if counts.get(kind, -1) < kept[kind]}
    assert not fallen, f"{name}: {fallen}"
    if config.option.write:
        every[name] = counts
        _FILE.write_text(json.dumps(every, indent=2, sort_keys=True) + "\n", encoding="utf-8")
    assert kept or config.option.write, f"{name} is not in {_FILE.name}: run make written"
