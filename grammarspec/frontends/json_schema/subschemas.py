"""Where subschemas stand: the keywords that hold them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

__all__ = ["LISTS", "MAPS", "SINGLE", "subschemas"]

SINGLE = (
    "additionalItems", "additionalProperties", "contains", "contentSchema", "else", "if", "items", "not",
    "propertyNames", "then", "unevaluatedItems", "unevaluatedProperties",
)  # fmt: skip
LISTS = ("allOf", "anyOf", "items", "oneOf", "prefixItems")
MAPS = ("dependencies", "dependentSchemas", "patternProperties", "properties")
_DEFINITIONS = ("$defs", "definitions")


def subschemas(schema: dict[str, Any]) -> Iterator[Any]:
    """The subschemas that stand directly in a schema, definitions among them."""
    for keyword in SINGLE:
        if isinstance(schema.get(keyword), dict):
            yield schema[keyword]
    for keyword in LISTS:
        if isinstance(schema.get(keyword), list):
            yield from schema[keyword]
    for keyword in (*_DEFINITIONS, *MAPS):
        if isinstance(schema.get(keyword), dict):
            yield from schema[keyword].values()
