"""Descriptions of narrowings that several keywords share, for reports.

A narrowing is a rule by which a grammar has fewer texts than JSON Schema allows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from grammarspec.frontends.json_schema.keywords.keyword import Choices
from grammarspec.grammars.builder import UNBOUNDED

__all__ = ["DISTINCT", "KEYS", "STRINGS", "USUAL", "cut", "keys", "numbers"]

STRINGS: Final = "strings have one spelling per character"
KEYS: Final = "keys have one spelling per character"
DISTINCT: Final = "where it is to fail, undeclared members do not repeat names"
USUAL: Final = ("characters beyond", "integers are", "keys have", "members come", "numbers", "strings have")
"""How descriptions begin of narrowings of spelling and order, which leave out no value; most schemas have these."""


def cut(value: Any, schema: Mapping[str, Any], choices: Choices, negated: bool) -> Iterator[str]:
    """The narrowing of a maximum that is beyond what can be counted."""
    if value >= UNBOUNDED:
        yield f"cut to {UNBOUNDED - 1}"


def keys(value: Any, schema: Mapping[str, Any], choices: Choices, negated: bool) -> Iterator[str]:
    """The narrowing of a keyword that names members."""
    yield KEYS


def numbers(exponents: bool) -> str:
    """The narrowing of numbers with bounds or divisors, by their spelling."""
    return "numbers are plain decimals" + (", or d.ddde±x with an exponent from -307 to 307" if exponents else "")
