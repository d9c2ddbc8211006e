"""The check of a whole number in settings."""

from __future__ import annotations

from typing import Any

__all__ = ["check_whole"]


def check_whole(name: str, value: Any, least: int) -> None:
    """Check a whole number.

    Args:
        name: the name of the setting, for errors.
        value: its value.
        least: the smallest number that is allowed.

    Raises:
        TypeError: the value is not an integer.
        ValueError: it is too small.
    """
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{name} must be a whole number, not {value!r:.60}")
    if value < least:
        raise ValueError(f"{name} must be at least {least}, not {value}")
