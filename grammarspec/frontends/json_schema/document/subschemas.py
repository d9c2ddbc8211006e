"""Where subschemas stand: the keywords that hold them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

__all__ = ["DEFINITIONS", "LISTS", "MAPS", "SINGLE", "children", "subschemas"]

SINGLE = (
    "additionalItems", "additionalProperties", "contains", "contentSchema", "else", "if", "items", "not",
    "propertyNames", "then", "unevaluatedItems", "unevaluatedProperties",
)  # fmt: skip
LISTS = ("allOf", "anyOf", "items", "oneOf", "prefixItems")
MAPS = ("dependencies", "dependentSchemas", "patternProperties", "properties")
DEFINITIONS = ("$defs", "definitions")


def children(schema: dict[Any, Any]) -> Iterator[tuple[str, tuple[str, ...], Any]]:
    """What stands directly in a schema as a subschema, malformed or not: keyword, path and value, in their order."""
    for keyword, value in schema.items():
        if keyword in LISTS and isinstance(value, list):
            for i, part in enumerate(value):
                yield keyword, (keyword, str(i)), part
        elif keyword in SINGLE:
            yield keyword, (keyword,), value
        elif keyword in (*DEFINITIONS, *MAPS) and isinstance(value, dict):
            for name, part in value.items():
                if keyword != "dependencies" or not isinstance(part, list):  # of names
                    yield keyword, (keyword, str(name)), part


def subschemas(schema: dict[Any, Any]) -> Iterator[dict[Any, Any]]:
    """The subschemas that stand directly in a schema and have keywords, definitions among them."""
    return (part for _, _, part in children(schema) if isinstance(part, dict))
