"""Schemas that make an algorithm blow up where one can, each with what it is aimed at as its name.

Those of patterns and names beside each other stand in :mod:`.object_schemas`.
"""

from __future__ import annotations

from functools import reduce
from typing import Any

from tests.hostile import object_schemas
from tests.hostile.object_schemas import names, object_of

__all__ = ["BEGINNINGS", "OPTIONS", "SCHEMAS", "UNJUDGED"]


def _pattern(pattern: str) -> dict[str, str]:
    return {"type": "string", "pattern": pattern}


def _tower(depth: int, keyword: str, leaf: Any) -> Any:
    """A keyword within itself: as the one subschema, or in a list of two."""
    for i in range(depth):
        leaf = {keyword: [leaf, {"maxLength": i + 1}]} if keyword.endswith("Of") else {keyword: leaf}
    return leaf


def _web(count: int) -> dict[str, Any]:
    """Definitions that all refer to all others."""
    all_names = names(count)
    every = {name: {"$ref": f"#/$defs/{name}"} for name in all_names}
    return {"$ref": "#/$defs/name0", "$defs": {name: object_of(every) for name in all_names}}


def _doubling(depth: int, keyword: str) -> dict[str, Any]:
    """Each definition has the next one twice, so that there are two to the depth of paths."""
    defs: dict[str, Any] = {
        f"d{i}": {keyword: [{"$ref": f"#/$defs/d{i + 1}"}, {"$ref": f"#/$defs/d{i + 1}", "minLength": i}]}
        for i in range(depth)
    }
    return {"$ref": "#/$defs/d0", "$defs": {**defs, f"d{depth}": {"type": ["string", "null"]}}}


_INTEGER, _STRING = {"type": "integer"}, {"type": "string"}
_KINDS: list[dict[str, Any]] = [_INTEGER, _STRING, {"type": "boolean"}, {"type": "null"}, {"const": 5}, {"const": "x"}]
_SEARCHES = [f"{a}.*{b}" for a, b in zip("abcdef", "bcdefg", strict=True)]

SCHEMAS: dict[str, Any] = {
    **object_schemas.SCHEMAS,
    # ---------------------------------------------------------------- towers and unions
    "allOf, a tower": {"type": "string", **_tower(300, "allOf", {})},
    "anyOf, a tower": _tower(300, "anyOf", {"type": "string"}),
    "oneOf, a tower": _tower(14, "oneOf", {"type": "string"}),
    "not, a tower": _tower(301, "not", {"type": "string"}),
    "not, a tower of objects": _tower(40, "not", object_of({"a": _INTEGER}, required=["a"])),
    "if, a tower": _tower(60, "if", {"type": "string"}),
    "items, a tower": _tower(900, "items", _INTEGER),
    "items, a deep tower": _tower(10_000, "items", _INTEGER),
    "properties, a tower": reduce(lambda s, i: object_of({f"p{i}": s}), range(400), _INTEGER),
    "if beside if": {
        "type": "object",
        "allOf": [
            {
                "if": {"properties": {f"a{i}": {"const": 1}}},
                "then": {"required": [f"b{i}"]},
                "else": {"required": [f"c{i}"]},
            }
            for i in range(16)
        ],
    },
    "anyOf of twenty pairs": {
        "type": "object",
        "allOf": [
            {"anyOf": [{"properties": {f"a{i}": _INTEGER}}, {"properties": {f"a{i}": _STRING}}]} for i in range(20)
        ],
    },
    "oneOf of objects that overlap": {
        "oneOf": [object_of({f"a{j}": _INTEGER for j in range(i + 2)}, required=[f"a{i}"]) for i in range(12)],
    },
    "multiples between bounds of 308 digits": {
        "type": "integer",
        "multipleOf": 7,
        "exclusiveMinimum": -1e308,
        "exclusiveMaximum": 1e308,
    },
    "oneOf of numbers that overlap": {"type": "number", "oneOf": [{"multipleOf": i} for i in (2, 3, 5, 7, 11)]},
    "a wide union": {
        "anyOf": [object_of({f"k{i}": _KINDS[i % 4], "z": _INTEGER}, required=[f"k{i}"]) for i in range(2_000)]
    },
    "a wide union of arrays": {
        "anyOf": [{"type": "array", "prefixItems": [{"const": i}, _INTEGER]} for i in range(1_000)]
    },
    "a union told apart late": {
        "anyOf": [
            object_of({"a": _STRING, "b": _STRING, "kind": {"const": f"k{i}"}}, required=["a", "b", "kind"])
            for i in range(300)
        ],
    },
    "an enum of 100,000": {"enum": [f"value number {i}" for i in range(100_000)]},
    "an enum of integers": {"enum": list(range(0, 200_000, 3))},
    "an enum of objects": {"enum": [{"a": i, "b": [i] * 20} for i in range(1_500)]},
    "an enum of 20 long texts": {"enum": [f"{i}" + "ab" * 20_000 for i in range(20)]},
    "a const of a long text": {"const": "forced " * 100_000},
    "a const of a deep array": {"const": reduce(lambda v, _: [v], range(500), 0)},
    "enums that intersect": {"allOf": [{"enum": list(range(i, 4_000))} for i in range(40)]},
    "enum less enum": {"enum": list(range(5_000)), "not": {"enum": list(range(0, 5_000, 2))}},
    "not an enum of thousands": {"type": "string", "not": {"enum": names(5_000)}},
    "not an enum of integers": {"type": "integer", "not": {"enum": list(range(-1_500, 1_500, 2))}},
    # ---------------------------------------------------------------- references
    "$ref, each to all": _web(60),
    "$ref, two to the sixty paths by allOf": _doubling(60, "allOf"),
    "$ref, two to the sixty paths by anyOf": _doubling(60, "anyOf"),
    "$ref, two to the twelve paths by oneOf": _doubling(12, "oneOf"),
    "$ref, a long chain": {
        "$ref": "#/$defs/d0",
        "$defs": {f"d{i}": {"$ref": f"#/$defs/d{i + 1}"} for i in range(3_000)} | {"d3000": _INTEGER},
    },
    "$ref, a cycle": {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}},
    "$ref, a cycle in allOf": {"allOf": [{"$ref": "#"}, {"type": "string"}]},
    "$ref, recursion under not": {"type": ["array", "string"], "items": {"not": {"$ref": "#"}}},
    "$ref, a tree in all of twelve ways": {
        "$ref": "#/$defs/t",
        "$defs": {
            "t": {
                "type": "object",
                "allOf": [{"properties": {"c": {"$ref": "#/$defs/t"}, f"m{i}": _INTEGER}} for i in range(12)],
            }
        },
    },
    "$ref, recursion in oneOf": {
        "$defs": {
            "e": {
                "oneOf": [
                    _INTEGER,
                    {"type": "array", "items": {"$ref": "#/$defs/e"}, "maxItems": 2},
                    object_of({"l": {"$ref": "#/$defs/e"}, "r": {"$ref": "#/$defs/e"}}, required=["l", "r"]),
                ]
            }
        },
        "$ref": "#/$defs/e",
    },
    "$dynamicRef in each other": {
        "$id": "http://x.example/a",
        "$dynamicAnchor": "n",
        "type": "array",
        "items": {"$dynamicRef": "#n"},
        "uniqueItems": True,
    },
    # ---------------------------------------------------------------- arrays
    "uniqueItems, long strings": {"type": "array", "uniqueItems": True, "items": _STRING},
    "uniqueItems, many strings": {"type": "array", "uniqueItems": True, "items": _STRING, "minItems": 3_000},
    "uniqueItems of uniqueItems": {
        "type": "array",
        "uniqueItems": True,
        "minItems": 20,
        "items": {"type": "array", "uniqueItems": True, "items": {"type": "array", "uniqueItems": True}},
    },
    "uniqueItems, few values": {
        "type": "array",
        "uniqueItems": True,
        "items": {"type": "integer", "minimum": 0, "maximum": 60},
        "minItems": 58,
    },
    "uniqueItems, few objects": {
        "type": "array",
        "uniqueItems": True,
        "minItems": 60,
        "items": object_of(
            {c: {"type": "boolean"} for c in "abcdef"}, required=list("abcdef"), additionalProperties=False
        ),
    },
    "uniqueItems of empty arrays": {"type": "array", "items": {"items": False}, "uniqueItems": True, "minItems": 2},
    "uniqueItems, long beginnings in common": {
        "type": "array",
        "uniqueItems": True,
        "items": {"enum": ["ab" * 500 + str(i) for i in range(300)]},
        "minItems": 250,
    },
    "uniqueItems of anything": {"uniqueItems": True, "items": {"uniqueItems": True}},
    "contains, ten": {"type": "array", "allOf": [{"contains": {"const": i}} for i in range(10)]},
    "contains, forty with counts": {
        "type": "array",
        "allOf": [{"contains": {"minimum": i}, "minContains": i, "maxContains": i + 9} for i in range(1, 12)],
    },
    "contains of patterns": {
        "type": "array",
        "items": _STRING,
        "allOf": [{"contains": _pattern(s)} for s in _SEARCHES],
    },
    "counts of items": {
        "type": "array",
        "items": {"type": "array", "items": {"type": "array", "maxItems": 1_000}, "maxItems": 1_000},
        "minItems": 1_000,
    },
    "a count above all": {"type": "array", "minItems": 4_000_000_000},
    "a long least length": {"type": "string", "minLength": 1_000_000},
    "prefixItems, thousands": {"type": "array", "prefixItems": [{"const": i} for i in range(5_000)], "items": False},
    "prefixItems, each optional": {"type": "array", "prefixItems": [_KINDS[i % 6] for i in range(2_000)]},
    # ---------------------------------------------------------------- numbers
    "multipleOf, large": {"type": "integer", "multipleOf": 99_991},
    "multipleOf, coprime": {"type": "integer", "allOf": [{"multipleOf": n} for n in (7, 11, 13, 17, 19)]},
    "multipleOf, of none of five": {"allOf": [{"not": {"multipleOf": n}} for n in (2, 3, 11, 13, 17)]},
    "multipleOf, of no small fraction": {"allOf": [{"not": {"multipleOf": n / 10**6}} for n in (7, 11, 13, 17)]},
    "multipleOf, a contradiction": {
        "type": "integer",
        "allOf": [{"multipleOf": 3}, *({"not": {"multipleOf": n}} for n in (2, 3, 11, 13, 17))],
    },
    "multipleOf, a small fraction": {"type": "number", "multipleOf": 0.000_001_7},
    "multipleOf, beyond bounds": {"type": "integer", "multipleOf": 10**30 + 57, "minimum": 10**60},
    "not multipleOf": {"type": "integer", "allOf": [{"not": {"multipleOf": n}} for n in (2, 3, 5, 7, 11, 13, 17)]},
    "bounds of many digits": {"type": "integer", "minimum": 10**400 + 1, "maximum": 10**401 - 7},
    "bounds of small numbers": {"type": "number", "exclusiveMinimum": 1e-300, "maximum": 1.000_000_000_000_1e-300},
    "bounds, a hundred alternatives": {
        "type": "integer",
        "anyOf": [{"minimum": 10**i, "maximum": 10**i + 7} for i in range(100)],
    },
    "bounds and multiples": {
        "type": "number",
        "minimum": -1e15,
        "maximum": 1e15,
        "multipleOf": 0.0625,
        "not": {"multipleOf": 3},
    },
    # ---------------------------------------------------------------- formats and lengths
    "formats, all at once": {
        "type": "string",
        "allOf": [{"format": "uri"}, {"format": "iri-reference"}, {"pattern": "x.{5}y"}],
    },
    "format less format": {"type": "string", "format": "hostname", "not": {"format": "idn-hostname"}},
    "format with a long length": {"type": "string", "format": "email", "minLength": 200, "maxLength": 254},
    "format, patterns beside": {
        "type": "string",
        "format": "date-time",
        "allOf": [{"pattern": "9.*9"}, {"pattern": "[13579]Z$"}],
    },
    "not a format": {
        "type": "string",
        "not": {"anyOf": [{"format": f} for f in ("uri", "email", "ipv6", "date-time", "uuid")]},
    },
    "format regex, lengths": {"type": "string", "format": "regex", "minLength": 100, "maxLength": 120},
    "counted lengths, nested": _pattern(r"^(([a-z]{1,50}-){1,50}[0-9]{1,50},){1,50}$"),
    "a length beside a pattern": {"type": "string", "pattern": "(ab|ba|aab){3}", "minLength": 900, "maxLength": 1_000},
    "a catastrophe for backtracking": _pattern(r"^(a+)+(a|aa)*(a*)*b$"),
    "a pattern of 20,000 alternatives": _pattern("^(" + "|".join(names(20_000)) + ")$"),
    # ---------------------------------------------------------------- malformed on purpose
    "a keyword of wrong kind, deep": _tower(500, "items", {"type": 5}),
    "an unknown reference in thousands": object_of({f"p{i}": {"$ref": f"#/$defs/none{i}"} for i in range(3_000)}),
    "a contradiction of thousands": {"allOf": [{"type": "integer", "minimum": i, "maximum": i} for i in range(400)]},
    "a contradiction behind choices": {
        "allOf": [{"anyOf": [{"const": 2 * i}, {"const": 2 * i + 1}]} for i in range(24)],
    },
}

OPTIONS: dict[str, dict[str, Any]] = {
    **object_schemas.OPTIONS,
    "an enum of objects": {"property_order": "any"},
    "items, a tower": {"whitespace": "pretty"},
    "a const of a long text": {"ensure_ascii": True},
}

BEGINNINGS: dict[str, str] = {
    **object_schemas.BEGINNINGS,
    "uniqueItems, long strings": '["' + "ab c" * 10_000 + '","' + "ab c" * 9_999 + "ab",
    "uniqueItems, many strings": "[" + ",".join(f'"{i}"' for i in range(1_500)),
    "items, a tower": "[\n",
    "$ref, each to all": '{"name0":' * 300,
    "uniqueItems of anything": "[" * 400,
    "counted lengths, nested": '"' + "abc-" * 40 + "12345," + "ab-9,",
}

UNJUDGED = {name for name in SCHEMAS if "format" in name}
"""Schemas of formats, of which python-jsonschema knows few."""
