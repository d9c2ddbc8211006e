"""Schemas of objects and strings that make an algorithm blow up where one can: patterns and names beside each other."""

from __future__ import annotations

from string import ascii_lowercase
from typing import Any

__all__ = ["BEGINNINGS", "OPTIONS", "SCHEMAS", "names", "object_of"]


def object_of(properties: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A schema of objects."""
    return {"type": "object", "properties": properties, **more}


def names(count: int) -> list[str]:
    """Names of members."""
    return [f"name{i}" for i in range(count)]


_INTEGER, _STRING = {"type": "integer"}, {"type": "string"}
_KINDS: list[dict[str, Any]] = [_INTEGER, _STRING, {"type": "boolean"}, {"type": "null"}, {"const": 5}, {"const": "x"}]
_SEARCHES = [f"{a}.*{b}" for a, b in zip("abcdef", "bcdefg", strict=True)]

SCHEMAS: dict[str, Any] = {
    # ---------------------------------------------------------------- patterns beside each other
    "patternProperties, six searches": {
        "type": "object",
        "patternProperties": dict(zip(_SEARCHES, _KINDS, strict=True)),
    },
    "patternProperties, six searches, one type": {
        "type": "object",
        "patternProperties": {search: {"type": "integer", "minimum": i} for i, search in enumerate(_SEARCHES)},
    },
    "patternProperties, twelve searches, closed": {
        "type": "object",
        "patternProperties": {
            f"{a}.*{a}": {"type": "integer", "multipleOf": i + 1} for i, a in enumerate("abcdefghijkl")
        },
        "additionalProperties": False,
    },
    "patternProperties, forty letters": {
        "type": "object",
        "patternProperties": {f"{a}": {"minimum": i} for i, a in enumerate(ascii_lowercase + "0123456789")},
    },
    "patternProperties, lengths that overlap": {
        "type": "object",
        "patternProperties": {f"^.{{{i},{2 * i}}}$": {"minimum": i} for i in range(1, 30)},
    },
    "patternProperties, distances": {
        "type": "object",
        "patternProperties": {f"{a}.{{9}}{a}": {"minimum": i} for i, a in enumerate("abcdef")},
    },
    "patternProperties, prefixes of prefixes": {
        "type": "object",
        "patternProperties": {"^" + "a" * i: {"minimum": i} for i in range(1, 60)},
    },
    "patternProperties and propertyNames": {
        "type": "object",
        "patternProperties": {f"{a}.*{a}": {"minimum": i} for i, a in enumerate("abcd")},
        "propertyNames": {"pattern": "(x.{8}y|z)", "not": {"pattern": "q.{7}q"}},
    },
    "patternProperties negated": {"not": {"patternProperties": {"^(?!a)": {"required": ["x1"]}}}},
    "patternProperties, forty-four required, closed": {
        "type": "object",
        "properties": dict.fromkeys(names(44), _INTEGER),
        "required": names(44),
        "patternProperties": {"^x-": _STRING},
        "additionalProperties": False,
    },
    "allOf, twenty letters": {"type": "string", "allOf": [{"pattern": a} for a in ascii_lowercase[:20]]},
    "allOf, twenty-six letters, bounded": {
        "type": "string",
        "maxLength": 40,
        "allOf": [{"pattern": a} for a in ascii_lowercase],
    },
    "allOf, ten words in any order": {
        "type": "string",
        "allOf": [{"pattern": w} for w in "alpha beta gamma delta epsilon zeta eta theta iota kappa".split()],
    },
    "allOf, patterns of distances": {
        "type": "string",
        "allOf": [{"pattern": f"{a}.{{{5 + i}}}{a}"} for i, a in enumerate("abcdefgh")],
    },
    "allOf, lengths modulo primes": {
        "type": "string",
        "allOf": [{"pattern": f"^(.{{{prime}}})*$"} for prime in (2, 3, 5, 7, 11, 13, 17)],
    },
    "allOf, classes that overlap": {
        "type": "string",
        "allOf": [{"pattern": f"^[^{a}]*[{a}-z][^{a}]*$"} for a in ascii_lowercase[1:20]],
    },
    "not, twelve distances": {
        "type": "string",
        "allOf": [{"not": {"pattern": f"{a}.{{15}}{a}"}} for a in ascii_lowercase[:12]],
    },
    "not, one distance twelve times": {"type": "string", "allOf": [{"not": {"pattern": "a.{15}a"}} for _ in range(12)]},
    "not, one long distance": {"type": "string", "not": {"pattern": "a.{200}a"}},
    "not, letters": {"type": "string", "not": {"anyOf": [{"pattern": a} for a in ascii_lowercase]}},
    "not, searches": {
        "type": "string",
        "minLength": 3,
        "allOf": [{"not": {"pattern": search}} for search in _SEARCHES],
    },
    "not, end of a count": {"type": "string", "not": {"pattern": "^(a|b)*a(a|b){18}$"}},
    "oneOf, searches": {"type": "string", "oneOf": [{"pattern": search} for search in _SEARCHES]},
    "oneOf, lengths": {"type": "string", "oneOf": [{"minLength": i, "maxLength": 2 * i + 5} for i in range(25)]},
    "anyOf, distances": {"type": "string", "anyOf": [{"pattern": f"^.*{a}.{{12}}$"} for a in ascii_lowercase[:15]]},
    "if on searches": {
        "type": "string",
        "allOf": [{"if": {"pattern": a}, "then": {"pattern": a + ".*" + a}} for a in ascii_lowercase[:12]],
    },
    "two hundred objects told apart by a constant, nothing unevaluated": {
        "anyOf": [object_of({"t": {"const": f"t{i}"}, f"p{i}": _INTEGER}, required=["t"]) for i in range(200)],
        "unevaluatedProperties": False,
    },
    # ---------------------------------------------------------------- names: presence, order, number
    "dependentRequired, 100 names": {
        "type": "object",
        "dependentRequired": {f"a{i}": [f"b{i}"] for i in range(100)},
    },
    "dependentRequired, 200 names": {
        "type": "object",
        "dependentRequired": {f"a{i}": [f"b{i}"] for i in range(200)},
    },
    "dependentRequired, a chain of 150": object_of(
        dict.fromkeys(names(150), _INTEGER),
        dependentRequired={f"name{i}": [f"name{i + 1}"] for i in range(149)},
    ),
    "dependentRequired, each asks all": object_of(
        dict.fromkeys(names(30), _INTEGER),
        dependentRequired={name: names(30) for name in names(30)},
    ),
    "dependentRequired, any order": object_of(
        dict.fromkeys(names(24), _INTEGER),
        dependentRequired={f"name{i}": [f"name{(i * 7 + 3) % 24}"] for i in range(24)},
    ),
    "dependentSchemas that forbid": {
        "type": "object",
        "dependentSchemas": {f"a{i}": {"properties": {f"a{i + 1}": False, f"b{i}": _INTEGER}} for i in range(40)},
    },
    "dependencies of draft 7": {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "type": "object",
        "dependencies": {f"a{i}": [f"a{(i + 1) % 60}", f"a{(i + 7) % 60}"] for i in range(60)},
    },
    "unevaluatedProperties beside forty anyOf": {
        "type": "object",
        "allOf": [{"anyOf": [{"properties": {name: _INTEGER}}, {}]} for name in names(40)],
        "unevaluatedProperties": False,
    },
    "unevaluatedProperties beside forty anyOf that require": {
        "type": "object",
        "allOf": [{"anyOf": [{"properties": {name: _INTEGER}, "required": [name]}, {}]} for name in names(40)],
        "unevaluatedProperties": False,
    },
    "unevaluatedProperties beside thirty if": {
        "type": "object",
        "allOf": [
            {
                "if": {"required": [name]},
                "then": {"properties": {name: _INTEGER}},
                "else": {"properties": {name + "x": True}},
            }
            for name in names(30)
        ],
        "unevaluatedProperties": False,
    },
    "unevaluatedItems beside contains": {
        "type": "array",
        "allOf": [{"anyOf": [{"contains": {"const": i}}, {"prefixItems": [{"const": i}]}]} for i in range(12)],
        "unevaluatedItems": False,
    },
    "20,000 optional properties": object_of(dict.fromkeys(names(20000), _INTEGER), additionalProperties=False),
    "20,000 required properties": object_of(dict.fromkeys(names(20000), _INTEGER), required=names(20_000)),
    "5,000 optional properties, open": object_of({name: _KINDS[i % 4] for i, name in enumerate(names(5_000))}),
    "1,000 required in any order": object_of(dict.fromkeys(names(1000), _INTEGER), required=names(1_000)),
    "2,000 optional in any order": object_of(dict.fromkeys(names(2000), _INTEGER), additionalProperties=False),
    "300 required in any order, in an array": {
        "type": "array",
        "items": object_of(dict.fromkeys(names(300), _INTEGER), required=names(300)),
    },
    "1,000 required, undeclared": {"type": "object", "required": names(1_000)},
    "sixty anyOf of required pairs": object_of(
        dict.fromkeys(names(60), _INTEGER),
        allOf=[{"anyOf": [{"required": [f"name{i}"]}, {"required": [f"name{(i + 1) % 60}"]}]} for i in range(60)],
    ),
    "oneOf of thirty required": {"type": "object", "oneOf": [{"required": [name]} for name in names(30)]},
    "not required, pairs of twenty": {
        "type": "object",
        "allOf": [{"not": {"required": [f"name{i}", f"name{j}"]}} for i in range(20) for j in range(i)],
    },
    "minProperties of many": object_of(dict.fromkeys(names(200), _INTEGER), minProperties=150, maxProperties=160),
    "minProperties of thousands": {"type": "object", "minProperties": 5_000, "maxProperties": 6_000},
    "maxProperties beside required": object_of(dict.fromkeys(names(100), True), required=names(50), maxProperties=51),
    "names of every beginning": object_of({"a" * i: {"const": i} for i in range(400)}, additionalProperties=False),
    "long names": object_of({chr(97 + i) * 20_000: _INTEGER for i in range(10)}, additionalProperties=False),
    "names of escapes": object_of({'"\\\n\x00\u2028\U0001f600' * i: {"const": i} for i in range(60)}),
    "propertyNames, an enum of thousands": {
        "type": "object",
        "propertyNames": {"enum": names(5_000)},
        "additionalProperties": _INTEGER,
    },
    "propertyNames, lengths and patterns": {
        "type": "object",
        "propertyNames": {
            "pattern": "^[a-z]{10,400}$",
            "not": {"pattern": "(ab){9}"},
            "minLength": 30,
            "maxLength": 300,
        },
        "minProperties": 40,
    },
}

OPTIONS: dict[str, dict[str, Any]] = {
    "dependentRequired, any order": {"property_order": "any"},
    "1,000 required in any order": {"property_order": "any"},
    "2,000 optional in any order": {"property_order": "any"},
    "300 required in any order, in an array": {"property_order": "any", "whitespace": "compact"},
    "sixty anyOf of required pairs": {"property_order": "any"},
    "maxProperties beside required": {"property_order": "any"},
}

BEGINNINGS: dict[str, str] = {
    "20,000 optional properties": "{" + ",".join(f'"name{i}":1' for i in range(900)),
    "1,000 required in any order": "{" + ",".join(f'"name{i * 7 % 1000}":1' for i in range(400)),
    "2,000 optional in any order": "{" + ",".join(f'"name{i * 7 % 2000}":1' for i in range(400)),
}
