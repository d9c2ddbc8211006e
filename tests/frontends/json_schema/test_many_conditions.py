"""Many conditions beside each other: dozens of ``if`` on one property, and what they evaluate."""

from __future__ import annotations

import itertools
import json
from typing import Any

import jsonschema
import pytest

import grammarspec as gs
from tests.frontends.json_schema.texts import acceptor

KINDS = [f"kind{i}" for i in range(30)]


def when(kind: Any, *, required: bool = True) -> dict[str, Any]:
    condition: dict[str, Any] = {"properties": {"type": {"const": kind}}}
    return {**condition, "required": ["type"]} if required else condition


def then(i: int) -> dict[str, Any]:
    return {"properties": {f"only{i}": {"type": "integer"}, "shared": {"type": "boolean"}}, "required": [f"only{i}"]}


def values() -> list[Any]:
    members = {"type": ["kind0", "kind7", "kind29", "other", 5], "only0": [1, "x"], "only7": [2], "shared": [True, 0]}
    found: list[Any] = ["text", 3, []]
    for size in range(len(members) + 1):
        for names in itertools.combinations(members, size):
            found += [dict(zip(names, chosen, strict=True)) for chosen in itertools.product(*map(members.get, names))]  # type: ignore[arg-type]
    return found


def agree(schema: dict[str, Any]) -> None:
    """Exactly the values that satisfy the schema are taken, whatever the order of their members."""
    schema = {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}
    validator = jsonschema.Draft202012Validator(schema)
    accepts = acceptor(schema, property_order="any")
    for value in values():
        assert accepts(json.dumps(value)) == validator.is_valid(value), value


@pytest.mark.combined
@pytest.mark.parametrize("required", [True, False])
@pytest.mark.parametrize("base", [{}, {"type": "object"}, {"required": ["type"]}], ids=str)
def test_conditions_on_one_property(base: dict[str, Any], *, required: bool) -> None:
    conditions = [{"if": when(kind, required=required), "then": then(i)} for i, kind in enumerate(KINDS)]
    agree({**base, "allOf": conditions})
    agree({**base, "properties": {"type": {"enum": [*KINDS, "other"]}}, "allOf": conditions})


def test_conditions_with_else_and_several_values() -> None:
    conditions = [
        {
            "if": {"properties": {"type": {"enum": KINDS[i::3]}}, "required": ["type"]},
            "then": then(i),
            "else": {"minProperties": i},
        }
        for i in range(3)
    ]
    agree({"type": "object", "allOf": conditions})


@pytest.mark.combined
@pytest.mark.parametrize("asked", [False, {"type": "integer"}], ids=str)
@pytest.mark.parametrize("base", [{}, {"type": "object"}], ids=str)
def test_what_many_conditions_evaluate(base: dict[str, Any], asked: Any) -> None:
    conditions = [{"if": when(kind), "then": then(i)} for i, kind in enumerate(KINDS)]
    agree({**base, "properties": {"type": {}}, "allOf": conditions, "unevaluatedProperties": asked})
    agree({**base, "allOf": [*conditions, {"if": {"required": ["only0"]}}], "unevaluatedProperties": asked})


def test_many_conditions_that_evaluate_everything() -> None:
    conditions: list[Any] = [{"if": when(kind), "then": then(i)} for i, kind in enumerate(KINDS)]
    conditions[7]["then"] = {"additionalProperties": {"type": ["integer", "string"]}}
    conditions[0]["else"] = {"anyOf": [{"properties": {"shared": True}}, {"required": ["only7"]}]}
    agree({"type": "object", "properties": {"type": {}}, "allOf": conditions, "unevaluatedProperties": False})


def test_too_many_combinations_are_an_error() -> None:
    conditions = [{"if": {"required": [f"a{i}"]}, "then": {"patternProperties": {f"^b{i}": True}}} for i in range(40)]
    with pytest.raises(gs.LimitExceeded, match="1024 combinations") as caught:
        gs.json_schema({"type": "object", "allOf": conditions, "unevaluatedProperties": False})
    assert caught.value.where == "#"


def test_walks_of_many_conditions_are_valid() -> None:
    conditions = [{"if": when(kind), "then": then(i)} for i, kind in enumerate(KINDS)]
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "properties": {"type": {"enum": KINDS}},
        "required": ["type"],
        "allOf": conditions,
        "unevaluatedProperties": False,
    }
    grammar, validator = gs.json_schema(schema), jsonschema.Draft202012Validator(schema)
    for seed in range(50):
        validator.validate(json.loads(grammar.sample(seed)))


@pytest.mark.parametrize("least", [1, 2])
def test_items_that_differ_and_contradict_each_other(least: int) -> None:
    pair = {"type": "array", "uniqueItems": True, "minItems": least, "maxItems": 2, "items": {"type": "number"}}
    schema = {"type": "object", "properties": {"a": pair}, "required": ["a"]}
    accepts = acceptor({**schema, "not": {**schema, "required": ["a", "c"]}})
    assert accepts('{"a": [1, 2]}')
    assert not accepts('{"a": [1, 2], "c": 1}')
