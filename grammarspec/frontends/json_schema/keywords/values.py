"""Values of keywords, checked: a malformed one is an error that names its place."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from grammarspec.frontends.json_schema.document.subschema import Subschema
from grammarspec.frontends.json_schema.keywords.json_values import Number, is_finite, is_whole

__all__ = ["count", "mapping", "name_list", "number", "schema_list", "schema_map", "text"]


def number(schema: Subschema, keyword: str, value: Any) -> Number:
    """A number, exactly: a float is the decimal that ``repr`` writes.

    Raises:
        GrammarSyntaxError: it is none.
    """
    if type(value) is int:
        return value
    if isinstance(value, float | Decimal) and is_finite(value):
        return Decimal(repr(value)) if isinstance(value, float) else value
    raise schema.malformed(keyword, "a number")


def count(schema: Subschema, keyword: str, value: Any) -> int:
    """A count of characters, items or members: ``2`` or ``2.0``.

    Raises:
        GrammarSyntaxError: it is none.
    """
    if type(value) is not int:
        if isinstance(value, float | Decimal) and is_finite(value) and is_whole(value) and 0 <= value < 10**18:
            return int(value)
        raise schema.malformed(keyword, "a non-negative integer")
    if value < 0:
        raise schema.malformed(keyword, "a non-negative integer")
    return value


def text(schema: Subschema, keyword: str, value: Any) -> str:
    """A string.

    Raises:
        GrammarSyntaxError: it is none.
    """
    if not isinstance(value, str):
        raise schema.malformed(keyword, "a string")
    return value


def schema_list(schema: Subschema, keyword: str, value: Any) -> tuple[Subschema, ...]:
    """At least one schema.

    Raises:
        GrammarSyntaxError: it is none.
    """
    if not isinstance(value, list) or not value:
        raise schema.malformed(keyword, "a non-empty array of schemas")
    return tuple([schema.child(part, keyword, str(i)) for i, part in enumerate(value)])


def mapping(schema: Subschema, keyword: str, value: Any) -> Mapping[str, Any]:
    """An object whose names are strings: JSON has no others, a Python dict may.

    Raises:
        GrammarSyntaxError: it is none.
    """
    if not isinstance(value, dict):
        raise schema.malformed(keyword, "an object")
    for name in value:
        if not isinstance(name, str):
            raise schema.malformed(keyword, "an object whose names are strings")
    return value


def schema_map(schema: Subschema, keyword: str, value: Any) -> dict[str, Subschema]:
    """Schemas by name.

    Raises:
        GrammarSyntaxError: it is none.
    """
    child = schema.child
    return {name: child(part, keyword, name) for name, part in mapping(schema, keyword, value).items()}


def name_list(schema: Subschema, keyword: str, value: Any) -> list[str]:
    """Names of properties.

    Raises:
        GrammarSyntaxError: it is none.
    """
    if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
        raise schema.malformed(keyword, "an array of strings")
    return value
