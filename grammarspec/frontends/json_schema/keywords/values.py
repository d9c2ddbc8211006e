"""Reads the values of keywords: a value of the right form comes out, or an error that names its place."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from grammarspec.frontends.json_schema.document.subschema import Subschema
from grammarspec.frontends.json_schema.json_values import Number, is_finite, is_whole

__all__ = ["count", "mapping", "name_list", "number", "schema_list", "schema_map", "text"]

_HUGE = 10**400  # such an exponent is not written out


def number(schema: Subschema, keyword: str, value: Any) -> Number:
    """Read a number exactly: a float is the decimal that ``repr`` writes.

    Raises:
        GrammarSyntaxError: the value is no finite number.
    """
    if type(value) is int:
        return value
    if isinstance(value, float | Decimal) and is_finite(value):
        return Decimal(repr(value)) if isinstance(value, float) else value
    raise schema.malformed(keyword, "a number")


def count(schema: Subschema, keyword: str, value: Any) -> int:
    """Read a count of characters, items or members: ``2`` or ``2.0``.

    Raises:
        GrammarSyntaxError: the value is no integer, or negative.
    """
    if type(value) is not int:
        if isinstance(value, float | Decimal) and is_finite(value) and is_whole(value) and 0 <= value < _HUGE:
            return int(value)
        raise schema.malformed(keyword, "a non-negative integer")
    if value < 0:
        raise schema.malformed(keyword, "a non-negative integer")
    return value


def text(schema: Subschema, keyword: str, value: Any) -> str:
    """Read a string.

    Raises:
        GrammarSyntaxError: the value is no string.
    """
    if not isinstance(value, str):
        raise schema.malformed(keyword, "a string")
    return value


def schema_list(schema: Subschema, keyword: str, value: Any) -> tuple[Subschema, ...]:
    """Read a nonempty list of schemas.

    Raises:
        GrammarSyntaxError: the value is no list, or empty.
    """
    if not isinstance(value, list) or not value:
        raise schema.malformed(keyword, "a non-empty array of schemas")
    return tuple([schema.child(part, keyword, str(i)) for i, part in enumerate(value)])


def mapping(schema: Subschema, keyword: str, value: Any) -> Mapping[str, Any]:
    """Read an object. A Python dict may have keys that are no strings; they are refused.

    Raises:
        GrammarSyntaxError: the value is no object, or has such keys.
    """
    if not isinstance(value, dict):
        raise schema.malformed(keyword, "an object")
    for name in value:
        if not isinstance(name, str):
            raise schema.malformed(keyword, "an object whose names are strings")
    return value


def schema_map(schema: Subschema, keyword: str, value: Any) -> dict[str, Subschema]:
    """Read an object of schemas by name.

    Raises:
        GrammarSyntaxError: the value is no object.
    """
    return schema.children(keyword, mapping(schema, keyword, value))


def name_list(schema: Subschema, keyword: str, value: Any) -> list[str]:
    """Read a list of names of properties.

    Raises:
        GrammarSyntaxError: the value is no list of strings.
    """
    if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
        raise schema.malformed(keyword, "an array of strings")
    return value
