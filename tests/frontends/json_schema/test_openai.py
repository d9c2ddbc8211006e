"""OpenAI's strict mode: what would be taken, and each rule that is broken."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

import grammarspec as gs

TAKEN: dict[str, Any] = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "description": "of the event", "pattern": "^[a-z]+$"},
        "when": {"type": ["string", "null"], "format": "date-time"},
        "kind": {"type": "string", "enum": ["a", "b"]},
        "count": {"type": "integer", "minimum": 1, "exclusiveMaximum": 9, "multipleOf": 2},
        "tree": {"anyOf": [{"$ref": "#/$defs/node"}, {"type": "null"}]},
    },
    "required": ["name", "when", "kind", "count", "tree"],
    "additionalProperties": False,
    "$defs": {
        "node": {
            "type": "object",
            "properties": {
                "next": {"type": "array", "items": {"$ref": "#/$defs/node"}, "maxItems": 3},
                "tag": {"const": "node"},
            },
            "required": ["next", "tag"],
            "additionalProperties": False,
        }
    },
}


def _problems(schema: Any) -> list[tuple[str, str]]:
    return [(problem.pointer, problem.message) for problem in gs.check_openai_strict(schema)]


def test_what_is_taken() -> None:
    assert gs.check_openai_strict(TAKEN) == []
    assert gs.check_openai_strict(json.dumps(TAKEN)) == []


@pytest.mark.parametrize(
    ("where", "value", "pointer", "message"),
    [
        (["type"], "array", "#/type", "root must be an object"),
        (["anyOf"], [{"type": "null"}], "#/anyOf", "must not be anyOf"),
        (["additionalProperties"], True, "#/additionalProperties", "must be false"),
        (["$defs", "node", "additionalProperties"], None, "#/$defs/node/additionalProperties", "must be false"),
        (["required"], ["name", "when", "kind", "count"], "#/required", "all properties must be required, but not 'tr"),
        (["required"], ["name", "when", "kind", "count", "tree", "x"], "#/required", "'x', which is no property"),
        (["properties", "name", "minLength"], 1, "#/properties/name/minLength", "'minLength' is not supported"),
        (["properties", "name", "default"], "", "#/properties/name/default", "'default' is not supported"),
        (["properties", "name", "allOf"], [{}], "#/properties/name/allOf", "'allOf' is not supported"),
        (["properties", "name", "x/y"], 1, "#/properties/name/x~1y", "is not supported"),
        (["properties", "when", "format"], "uri", "#/properties/when/format", "'uri' is not supported"),
        (["properties", "when", "type"], "text", "#/properties/when/type", "the type 'text'"),
        (["properties", "when"], {"type": "array"}, "#/properties/when", "must have items"),
        (["properties", "when"], {}, "#/properties/when", "must have a type"),
        (["properties", "when"], True, "#/properties/when", "must be an object with a type"),
        (["properties", "a/b"], True, "#/properties/a~1b", "must be an object with a type"),
        (["properties", "when"], {"$ref": "http://x/y"}, "#/properties/when/$ref", "into the schema itself"),
        (["properties", "when"], {"$ref": "#/$defs/no"}, "#/properties/when/$ref", "points to nothing"),
        (["properties", "when"], {"$ref": "#", "title": ""}, "#/properties/when/$ref", "no other keywords: title"),
    ],
    ids=str,
)
def test_rules(where: list[str], value: Any, pointer: str, message: str) -> None:
    schema = copy.deepcopy(TAKEN)
    holder = schema
    for name in where[:-1]:
        holder = holder[name]
    holder[where[-1]] = value
    assert any(found == pointer and message in said for found, said in _problems(schema)), _problems(schema)


def _closed(properties: dict[str, Any], **keywords: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
        **keywords,
    }


def _levels(count: int) -> Any:
    schema: Any = {"type": "string"}
    for _ in range(count):
        schema = _closed({"a": {"type": "array", "items": schema}})
    return schema


@pytest.mark.parametrize(
    ("at_most", "too_much", "message"),
    [
        (_levels(10), _levels(11), "more than 10 levels"),
        (
            _closed({f"p{i}": {"type": "null"} for i in range(5_000)}),
            _closed({f"p{i}": {"type": "null"} for i in range(5_001)}),
            "5001 properties",
        ),
        (
            _closed({"a": {"enum": list(range(1_000))}}),
            _closed({"a": {"enum": list(range(500))}, "b": {"enum": list(range(501))}}),
            "1001 values of enum",
        ),
        (
            _closed({"a" * 59_999: {"const": "b" * 60_000}}, **{"$defs": {"d": {"type": "null"}}}),
            _closed({"a" * 60_000: {"enum": ["b" * 60_000]}}, **{"$defs": {"d": {"type": "null"}}}),
            "120001 characters",
        ),
        (
            _closed({"a": {"enum": [f"{i:059}" for i in range(251)]}}),
            _closed({"a": {"enum": [f"{i:060}" for i in range(251)]}}),
            "an enum of more than 250 values has 15060 characters",
        ),
    ],
    ids=["depth", "properties", "values", "characters", "large enum"],
)
def test_sizes(at_most: Any, too_much: Any, message: str) -> None:
    assert _problems(at_most) == []
    found = _problems(too_much)
    assert len(found) == 1 and message in found[0][1]


def test_other_roots() -> None:
    for schema in (True, "false", "[]"):
        assert _problems(schema) == [("#", "the root must be an object schema")]
    with pytest.raises(gs.GrammarSyntaxError):
        gs.check_openai_strict("{")
    deep: Any = {"type": "null"}
    for _ in range(20_000):
        deep = {"anyOf": [deep]}
    assert any("levels of subschemas" in message for _, message in _problems(_closed({"a": deep})))
