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


# ---------------------------------------------------------------------- far more than can be multiplied out
NAMES = [f"p{i}" for i in range(80)]
DECLARED = {"properties": {name: {"type": "integer"} for name in NAMES}}
NEXT = dict(zip(NAMES, [*NAMES[1:], NAMES[0]], strict=True))
PRESENCE: dict[str, dict[str, Any]] = {
    "each requires the next": {"dependentRequired": {name: [other] for name, other in NEXT.items()}},
    "each requires all": {"dependentRequired": dict.fromkeys(NAMES, NAMES)},
    "schemas": {"dependentSchemas": {name: {"required": [other]} for name, other in NEXT.items()}},
    "draft 4": {
        "$schema": "http://json-schema.org/draft-04/schema#",
        "dependencies": {name: [other] for name, other in NEXT.items()},
    },
    "if": {"allOf": [{"if": {"required": [name]}, "then": {"required": [other]}} for name, other in NEXT.items()]},
    "pairs": {"allOf": [{"anyOf": [{"required": [name]}, {"required": [other]}]} for name, other in NEXT.items()]},
    "one of": {
        "allOf": [
            {"oneOf": [{"required": [name]}, {"required": [other]}]}
            for name, other in zip(NAMES[:40:2], NAMES[1:40:2], strict=True)
        ]
    },
    "not both": {"allOf": [{"not": {"required": [name, other]}} for name, other in NEXT.items()]},
    "forbidden": {"dependentSchemas": {name: {"properties": {other: False}} for name, other in NEXT.items()}},
}


def objects() -> list[Any]:
    """Objects with a few, half or all of the members, and other values."""
    chosen = [[], NAMES, NAMES[::2], NAMES[1::2], NAMES[:1], NAMES[3:5], NAMES[:-1], [*NAMES[::2], NAMES[1]]]
    return [None, "text", [1], *(dict.fromkeys(some, 1) for some in chosen)]


@pytest.mark.combined
@pytest.mark.parametrize("order", ["declared", "any"])
@pytest.mark.parametrize("typed", [{}, {"type": "object"}], ids=["any value", "object"])
@pytest.mark.parametrize("asked", PRESENCE.values(), ids=list(PRESENCE))
def test_many_conditions_on_presence(asked: dict[str, Any], typed: dict[str, Any], order: str) -> None:
    schema = {**asked, **typed, **DECLARED}
    accepts = acceptor(schema, property_order=order)
    validator = jsonschema.validators.validator_for(schema, jsonschema.Draft202012Validator)(schema)
    for value in objects():
        assert accepts(json.dumps(value)) == validator.is_valid(value), value


@pytest.mark.parametrize("asked", PRESENCE.values(), ids=list(PRESENCE))
def test_texts_under_many_conditions_on_presence_can_end(asked: dict[str, Any]) -> None:
    schema = {**asked, **DECLARED, "type": "object", "additionalProperties": False}
    validator = jsonschema.validators.validator_for(schema, jsonschema.Draft202012Validator)(schema)
    grammar = gs.json_schema(schema, whitespace="compact")
    for seed in range(5):
        validator.validate(json.loads(grammar.sample(seed, max_bytes=60)))


OPTIONAL = {f"p{i}": {"properties": {f"p{i}": {"type": "string"}}} for i in range(40)}
UNEVALUATED: dict[str, dict[str, Any]] = {
    "all": {"allOf": [{"anyOf": [branch, True]} for branch in OPTIONAL.values()]},
    "any": {"anyOf": list(OPTIONAL.values())},
    "required": {
        "allOf": [{"anyOf": [{**branch, "required": [name]}, {"type": "object"}]} for name, branch in OPTIONAL.items()]
    },
    "if": {"allOf": [{"if": {"required": [name]}, "then": branch} for name, branch in OPTIONAL.items()]},
}


@pytest.mark.combined
@pytest.mark.parametrize("order", ["declared", "any"])
@pytest.mark.parametrize("rest", [False, {"type": "integer"}], ids=["none", "integers"])
@pytest.mark.parametrize("asked", UNEVALUATED.values(), ids=list(UNEVALUATED))
def test_many_optional_subschemas_that_evaluate(asked: dict[str, Any], rest: Any, order: str) -> None:
    schema = {**asked, "type": "object", "unevaluatedProperties": rest}
    accepts, validator = acceptor(schema, property_order=order), jsonschema.Draft202012Validator(schema)
    for names in ([], list(OPTIONAL), ["p0"], list(OPTIONAL)[7:20], ["q"], ["p0", "q"]):
        for member in ("text", 1, None):
            value = dict.fromkeys(names, member)
            assert accepts(json.dumps(value)) == validator.is_valid(value), value


def test_one_member_under_many_choices() -> None:
    ways = [{"type": "string"}, {"minimum": 2}, {"enum": [1, None]}]
    choices = [
        {"anyOf": [{"properties": {"a": ways[i % 3]}}, {"properties": {"a": ways[(i + 1) % 3]}, "required": ["a"]}]}
        for i in range(8)
    ]
    schema = {"allOf": choices}
    accepts, validator = acceptor(schema), jsonschema.Draft202012Validator(schema)
    for value in (3, {}, {"b": 1}, *({"a": member} for member in ("x", 1, 2, 0, None, [], True))):
        assert accepts(json.dumps(value)) == validator.is_valid(value), value


@pytest.mark.parametrize("order", ["declared", "any"])
def test_many_choices_that_ask_something_of_other_values(order: str) -> None:
    others = {"type": ["null", "boolean", "number", "string", "array"], "minimum": 5}
    for inner in ({"required": ["a"]}, {"properties": {"a": {"type": "string"}}}):
        schema = {"allOf": [{"anyOf": [{"type": "object", **inner}, {**others, "title": str(i)}]} for i in range(8)]}
        accepts, validator = acceptor(schema, property_order=order), jsonschema.Draft202012Validator(schema)
        for value in (3, 7, "text", None, [], {}, {"a": 1}, {"a": "x"}):
            assert accepts(json.dumps(value)) == validator.is_valid(value), value


VALUES = [{"properties": {name: {"const": 1}}} for name in NAMES]
PATTERNS = [{"anyOf": [{"pattern": name}, {"minLength": i + 1}]} for i, name in enumerate(NAMES)]
HARD: dict[str, dict[str, Any]] = {
    "values": {"dependentSchemas": {name: {"properties": {other: {"minimum": 3}}} for name, other in NEXT.items()}},
    "two members": {"allOf": [{"anyOf": [one, other]} for one, other in itertools.pairwise(VALUES)]},
    "patterns": {"allOf": PATTERNS},
    "names": {"propertyNames": {"allOf": PATTERNS}},
    "one of": {"oneOf": [{**one, "required": [name]} for name, one in zip(NAMES, VALUES, strict=True)]},
}


@pytest.mark.parametrize("schema", HARD.values(), ids=list(HARD))
def test_what_has_no_direct_way_ends_at_the_limits(schema: dict[str, Any]) -> None:
    with pytest.raises(gs.LimitExceeded, match="max_steps") as caught:
        gs.json_schema(schema, limits=gs.Limits(max_steps=200_000))
    assert caught.value.where.startswith("#")
