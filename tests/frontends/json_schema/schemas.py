"""Random schemas of every keyword of every draft, and random values, for Hypothesis."""

from __future__ import annotations

import json
import re
from typing import Any

from hypothesis import strategies as st

__all__ = [
    "DRAFTS", "EVALUATED", "NAMES", "PLAIN", "REPEATING", "SCHEMAS", "UNIQUE", "VALUES", "dynamic", "evaluating",
    "schemas",
]  # fmt: skip

DRAFTS = {4: "draft4", 6: "draft6", 7: "draft7", 2019: "draft2019-09", 2020: "draft2020-12"}
"""The drafts by the numbers that :func:`schemas` takes."""

NAMES = st.sampled_from(["a", "b", "ab", "c"])
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 12),
    st.sampled_from([0.5, 1.5, 2.0, -1.0]),
    st.text('ab\u00e9\n"', max_size=3),
    st.sampled_from(["127.0.0.1", "127.0.0.01", "2024-02-29", "2023-02-29"]),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=6,
)
TYPES = st.sampled_from(["null", "boolean", "integer", "number", "string", "array", "object"])
PATTERNS = st.sampled_from(["^a", "b", "a$", "^[ab]*$", "^(?!a)", "^.{2,}$", "\u00e9|^$"])
SMALL = st.integers(0, 3)
REQUIRED = st.lists(NAMES, max_size=2, unique=True)

Drawn = st.SearchStrategy[Any]


def _optional(keywords: dict[str, Drawn], least: int = 0) -> Drawn:
    """Up to four of the keywords, and at least so many."""

    def chosen(names: list[str]) -> Drawn:
        return st.fixed_dictionaries({name: keywords[name] for name in names})

    return st.lists(st.sampled_from(sorted(keywords)), min_size=least, max_size=4, unique=True).flatmap(chosen)


def _leaves(year: int) -> Drawn:
    keywords: dict[str, Drawn] = {
        "type": TYPES | st.lists(TYPES, min_size=1, max_size=3, unique=True),
        "enum": st.lists(VALUES, min_size=1, max_size=3, unique_by=repr),
        "minimum": st.integers(-2, 5),
        "maximum": st.sampled_from([0, 1.5, 9]),
        "multipleOf": st.sampled_from([2, 3, 0.5]),
        "minLength": SMALL,
        "maxLength": SMALL,
        "pattern": PATTERNS,
        "format": st.sampled_from(["ipv4", "date"] if year > 4 else ["ipv4"]),
        "minItems": SMALL,
        "maxItems": SMALL,
        "uniqueItems": st.booleans(),
        "minProperties": SMALL,
        "maxProperties": SMALL,
        "required": REQUIRED if year > 4 else st.lists(NAMES, min_size=1, max_size=2, unique=True),
    }
    if year == 4:
        bounded = st.sampled_from(
            [
                {"minimum": 1, "exclusiveMinimum": True},
                {"maximum": 5, "exclusiveMaximum": True},
                {"minimum": 2, "exclusiveMinimum": False},
            ]
        )
        return _optional(keywords) | bounded
    keywords |= {"const": VALUES, "exclusiveMinimum": st.integers(-3, 3), "exclusiveMaximum": st.integers(0, 9)}
    return st.booleans() | _optional(keywords)


def _deeper(inner: Drawn, year: int) -> Drawn:
    members = st.dictionaries(NAMES, inner, max_size=3)
    several = st.lists(inner, min_size=1, max_size=2)
    keywords: dict[str, Drawn] = {
        "type": TYPES | st.lists(TYPES, min_size=1, max_size=3, unique=True),
        "properties": members,
        "additionalProperties": inner | st.booleans(),
        "patternProperties": st.dictionaries(PATTERNS, inner, max_size=2),
        "required": st.lists(NAMES, min_size=1, max_size=2, unique=True),
        "minProperties": SMALL,
        "maxProperties": SMALL,
        "items": inner,
        "minItems": SMALL,
        "maxItems": SMALL,
        "uniqueItems": st.booleans(),
        "anyOf": several,
        "allOf": several,
        "oneOf": several,
        "not": inner,
    }
    if year < 2020:
        keywords |= {"items": inner | several, "additionalItems": inner | st.booleans()}
    if year < 2019:
        needed = st.lists(NAMES, min_size=1, max_size=1)
        keywords["dependencies"] = st.dictionaries(NAMES, inner | needed, max_size=2)
    if year >= 6:
        names = st.builds(lambda pattern: {"pattern": pattern}, PATTERNS)
        enum = st.builds(lambda some: {"enum": some}, st.lists(NAMES, min_size=1, max_size=3, unique=True))
        keywords |= {"contains": inner, "propertyNames": names | enum | st.just({"maxLength": 1})}
    if year >= 7:
        keywords |= {"if": inner, "then": inner, "else": inner}
    if year >= 2019:
        keywords |= {
            "dependentRequired": st.dictionaries(NAMES, st.lists(NAMES, max_size=1), max_size=2),
            "dependentSchemas": st.dictionaries(NAMES, inner, max_size=2),
            "minContains": SMALL,
            "maxContains": SMALL,
            "unevaluatedProperties": inner,
            "unevaluatedItems": inner,
        }
    if year >= 2020:
        keywords["prefixItems"] = several
    return _optional(keywords)


def _nested(year: int, references: list[dict[str, str]]) -> Drawn:
    leaves = _leaves(year)
    if references:
        leaves = leaves | leaves | st.sampled_from(references)
    return st.recursive(leaves, lambda inner: _deeper(inner, year), max_leaves=6)


def without(schema: Any, *keywords: str) -> Any:
    """A schema without some keywords, wherever they stand; no names and values of these strategies are spelled so."""
    if isinstance(schema, dict):
        return {key: without(value, *keywords) for key, value in schema.items() if key not in keywords}
    return [without(part, *keywords) for part in schema] if isinstance(schema, list) else schema


def schemas(year: int) -> Drawn:
    """Schemas of a draft; some with definitions, and references to those and to the whole."""
    place = "$defs" if year >= 2019 else "definitions"
    references = [{"$ref": f"#/{place}/x"}, {"$ref": f"#/{place}/y"}, {"$ref": "#"}]
    part = _nested(year, references)
    whole = _deeper(part, year)
    referring = st.builds(lambda root, x, y: {**root, place: {"x": x, "y": y}}, whole, part, part)
    return _nested(year, []) | referring


def dynamic(year: int) -> Drawn:
    """Schemas of three resources of 2019-09 or 2020-12 that refer to each other by what is bound dynamically."""
    references = [{"$ref": "http://example.com/x"}, {"$ref": "y"}, {"$ref": "root#/$defs/z"}]
    anchor: dict[str, Drawn]
    if year == 2019:
        references += [{"$recursiveRef": "#"}] * 3
        anchor = {"$recursiveAnchor": st.booleans()}
    else:
        references += [{"$dynamicRef": "#n"}, {"$dynamicRef": "#n"}, {"$dynamicRef": "y#n"}]
        anchor = {"$dynamicAnchor": st.just("n")}
    part = _nested(year, references).filter(lambda schema: isinstance(schema, dict))

    def resource(name: str) -> Drawn:
        bound = st.fixed_dictionaries(anchor)
        if year == 2020:  # on the root, or on a definition, or no dynamic one
            elsewhere = st.sampled_from([{"$dynamicAnchor": "n"}, {"$anchor": "n"}])
            inside = st.builds(lambda kind, schema: {"$defs": {"n": {**schema, **kind}}}, elsewhere, part)
            bound = bound | inside
        return st.builds(lambda own, schema: {**schema, **own, "$id": f"http://example.com/{name}"}, bound, part)

    def joined(root: dict[str, Any], x: Any, y: Any, z: Any) -> Any:
        return {**root, "$defs": {**root.get("$defs", {}), "x": x, "y": y, "z": z}}

    return st.builds(joined, resource("root"), resource("x"), resource("y"), part)


SCHEMAS = schemas(2020)
_NOT_PLAIN = re.compile('"([$]ref|uniqueItems|minProperties|maxProperties)"')
PLAIN = SCHEMAS.filter(lambda schema: not _NOT_PLAIN.search(json.dumps(schema)))
"""Without references, which may come back to themselves, and without what is narrowed in some places."""


# ---------------------------------------------------------------------- narrower, so that keywords meet
ITEMS = st.sampled_from(
    [{"type": "integer"}, {"type": "string"}, True, False, {"const": 1}, {"minimum": 2}, {"enum": [1, "a"]}]
)
"""Subschemas of items and members."""


def evaluating(year: int) -> Drawn:
    """Schemas of objects and arrays in which much depends on what is evaluated."""

    def deeper(inner: Drawn) -> Drawn:
        several = st.lists(inner, min_size=1, max_size=3)
        return _optional(
            {
                "allOf": several,
                "anyOf": several,
                "oneOf": several,
                "not": inner,
                "if": inner,
                "then": inner,
                "else": inner,
                "dependentSchemas": st.dictionaries(NAMES, inner, min_size=1, max_size=2),
                "properties": st.dictionaries(NAMES, ITEMS, min_size=1, max_size=2),
                "unevaluatedProperties": ITEMS,
                "unevaluatedItems": ITEMS,
                "contains": ITEMS,
                "$ref": st.sampled_from(["#/$defs/x", "#/$defs/y"]),
            },
            2,
        )

    first = st.lists(ITEMS, min_size=1, max_size=2)
    keywords: dict[str, Drawn] = {
        "properties": st.dictionaries(NAMES, ITEMS, min_size=1, max_size=2),
        "patternProperties": st.dictionaries(st.sampled_from(["^a", "b", "c$"]), ITEMS, min_size=1, max_size=2),
        "additionalProperties": ITEMS,
        "required": st.lists(NAMES, min_size=1, max_size=2, unique=True),
        "minProperties": SMALL,
        "maxProperties": SMALL,
        "contains": ITEMS,
        "minContains": SMALL,
        "maxContains": SMALL,
        "unevaluatedItems": ITEMS,
        "unevaluatedProperties": ITEMS,
        "minItems": SMALL,
        "uniqueItems": st.just(True),
    }
    if year >= 2020:
        keywords |= {"prefixItems": first, "items": ITEMS}
    else:
        keywords |= {"items": first | ITEMS, "additionalItems": ITEMS}
    part = st.recursive(_optional(keywords, 1), deeper, max_leaves=5)
    plain = part.filter(lambda schema: "$ref" not in str(schema))

    def joined(root: dict[str, Any], x: Any, y: Any, unevaluated: dict[str, Any]) -> Any:
        return {**root, **unevaluated, "$defs": {"x": x, "y": y}}

    last = _optional({"unevaluatedProperties": ITEMS, "unevaluatedItems": ITEMS}, 1)
    return st.builds(joined, part, plain, plain, last)


def _near(values: Drawn) -> Drawn:
    return st.lists(values, max_size=4) | st.dictionaries(NAMES, values, max_size=4)


EVALUATED = _near(st.sampled_from([1, 2, 5, "a", "b", None]))
"""Values whose items and members decide schemas of :func:`evaluating`."""


def _unique(inner: Drawn) -> Drawn:
    array = _optional(
        {
            "items": inner,
            "prefixItems": st.lists(inner, min_size=1, max_size=3),
            "contains": inner,
            "minContains": SMALL,
            "maxContains": SMALL,
            "minItems": SMALL,
            "maxItems": SMALL,
            "uniqueItems": st.booleans(),
            "anyOf": st.lists(inner, min_size=1, max_size=2),
            "not": inner,
        }
    ).map(lambda schema: {"type": "array", "uniqueItems": True, **schema})
    members = _optional({"properties": st.dictionaries(NAMES, inner, min_size=1, max_size=2), "minProperties": SMALL})
    return array | members


UNIQUE = st.recursive(ITEMS | st.just({"enum": [1, 1.5, "a", None, [1], {"a": 1, "b": 2}]}), _unique, max_leaves=6)
"""Schemas of arrays of unique items, in each other."""

_ITEM = st.sampled_from(
    [1, 1.0, 2, "1", "a", None, True, False, 0, 1.5, [1], [1.0], {"a": 1, "b": 2}, {"b": 2, "a": 1}]
)
REPEATING = st.recursive(_ITEM, _near, max_leaves=8)
"""Values whose items are often equal."""
