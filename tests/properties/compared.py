"""How much the property suites compared."""

from __future__ import annotations

COMPARED: list[int] = []
"""Mask bits compared with acceptance, a number per mask."""
