"""Values of keywords, checked: a malformed one is an error that names its place."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from grammarspec.errors import GrammarSyntaxError
from grammarspec.frontends.json_schema.document.document import Schema
from grammarspec.frontends.json_schema.meaning.conjunction import Number, is_finite, is_whole

if TYPE_CHECKING:
    from grammarspec.frontends.json_schema.meaning.analysis import Analysis

__all__ = ["count", "divisor", "name_list", "number", "schema_list", "schema_map", "text", "wrong"]


def wrong(analysis: Analysis, schema: Schema, keyword: str, expected: str) -> GrammarSyntaxError:
    """The error that says what a keyword must be."""
    return GrammarSyntaxError(f"{keyword} must be {expected}", where=analysis.document.where(schema, keyword))


def number(analysis: Analysis, value: Any, schema: Schema, keyword: str) -> Number:
    """A number, exactly: a float is the decimal that ``repr`` writes."""
    if type(value) is int:
        return value
    if isinstance(value, float | Decimal) and is_finite(value):
        return Decimal(repr(value)) if isinstance(value, float) else value
    raise wrong(analysis, schema, keyword, "a number")


def divisor(analysis: Analysis, value: Any, schema: Schema) -> Number:
    """The value of ``multipleOf``: a number above 0."""
    found = number(analysis, value, schema, "multipleOf")
    if found <= 0:
        raise wrong(analysis, schema, "multipleOf", "greater than 0")
    return found


def count(analysis: Analysis, value: Any, schema: Schema, keyword: str) -> int:
    """A count of characters, items or members: ``2`` or ``2.0``."""
    if type(value) is not int:
        if isinstance(value, float | Decimal) and is_finite(value) and is_whole(value) and 0 <= value < 10**18:
            return int(value)
        raise wrong(analysis, schema, keyword, "a non-negative integer")
    if value < 0:
        raise wrong(analysis, schema, keyword, "a non-negative integer")
    return value


def text(analysis: Analysis, value: Any, schema: Schema, keyword: str) -> str:
    """A string."""
    if not isinstance(value, str):
        raise wrong(analysis, schema, keyword, "a string")
    return value


def schema_list(analysis: Analysis, value: Any, schema: Schema, keyword: str) -> list[Schema]:
    """At least one schema."""
    if not isinstance(value, list) or not value:
        raise wrong(analysis, schema, keyword, "a non-empty array of schemas")
    return value


def schema_map(analysis: Analysis, value: Any, schema: Schema, keyword: str) -> Mapping[str, Schema]:
    """Something by name: schemas, or what ``dependencies`` takes."""
    if not isinstance(value, dict):
        raise wrong(analysis, schema, keyword, "an object")
    if not all(isinstance(name, str) for name in value):  # JSON has no others, a Python dict may
        raise wrong(analysis, schema, keyword, "an object whose names are strings")
    return value


def name_list(analysis: Analysis, value: Any, schema: Schema, keyword: str) -> list[str]:
    """Names of properties."""
    if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
        raise wrong(analysis, schema, keyword, "an array of strings")
    return value
