# ruff: noqa: E501  (a case stands in one line)
"""What is said of schemas that no value satisfies: the smallest subschema, and what contradicts in it."""

from __future__ import annotations

import pickle
from typing import Annotated, Any

import pytest
from annotated_types import Ge, Le
from pydantic import BaseModel

import grammarspec as gs
from tests.endings import ends

CASES: list[tuple[Any, str, str]] = [
    (False, "#", "false allows no value"),
    ({"type": "number", "minimum": 10, "maximum": 5}, "#", "minimum (10) is greater than maximum (5)"),
    ({"type": "number", "exclusiveMinimum": 5, "maximum": 5}, "#", "no number is within exclusiveMinimum (5) and maximum (5)"),
    ({"type": "string", "minLength": 3, "maxLength": 2, "title": "t"}, "#", "minLength (3) is greater than maxLength (2)"),
    ({"type": "array", "enum": [1, "a"]}, "#", "none of its enum is an array"),
    ({"type": "null", "const": 1}, "#", "its const is not null"),
    ({"enum": ["a", "b"], "minLength": 2}, "#", "none of its enum satisfies minLength"),
    ({"enum": []}, "#", "its enum is empty"),
    (
        {"type": "object", "properties": {"a": {"type": "array", "enum": [1]}, "b": {}}, "required": ["b", "a"]},
        "#/properties/a",
        "required property 'a': none of its enum is an array",
    ),
    ({"type": "object", "properties": {"a": False}, "required": ["a"]}, "#/properties/a", "required property 'a': false allows no value"),
    (
        {"type": "object", "properties": {"a": {}}, "required": ["b"], "additionalProperties": False},
        "#",
        "required property 'b': additionalProperties forbids it",
    ),
    ({"type": "object", "required": ["a", "b"], "maxProperties": 1}, "#", "2 properties are required, and maxProperties is 1"),
    (
        {"type": "object", "properties": {"a": {"$ref": "#/$defs/n"}}, "required": ["a"],
         "$defs": {"n": {"type": "array", "minItems": 1, "items": {"type": "integer", "minimum": 2, "maximum": 1}}}},
        "#/$defs/n/items",
        "minimum (2) is greater than maximum (1)",
    ),
    ({"allOf": [{"type": "integer", "minimum": 2}, {"maximum": 1}, {"title": "t"}]}, "#", "minimum (2) is greater than maximum (1)"),
    ({"allOf": [{"type": "string"}, {"type": "number"}]}, "#", "allOf/0 and allOf/1 contradict each other"),
    ({"type": "string", "not": {"type": "string"}}, "#", "type and not contradict each other"),
    ({"type": "string", "pattern": "^a$", "minLength": 2}, "#", "type, pattern and minLength contradict each other"),
    ({"type": "array", "minItems": 2, "items": {"const": 1}, "uniqueItems": True}, "#", "type, minItems, items and uniqueItems contradict each other"),
    ({"anyOf": [{"type": "string", "const": 1}, False]}, "#/anyOf/0", "its const is not a string"),
    ({"type": "array", "prefixItems": [{}, False], "minItems": 2}, "#/prefixItems/1", "false allows no value"),
]  # fmt: skip


@pytest.mark.parametrize(("schema", "where", "why"), CASES, ids=str)
def test_what_contradicts_is_named(schema: Any, where: str, why: str) -> None:
    grammar = gs.json_schema(schema)
    with pytest.raises(gs.Unsatisfiable) as caught:
        gs.compile(grammar, gs.Vocabulary.bytes())
    assert (caught.value.message, caught.value.where) == (f"no value satisfies the schema: {why}", where)
    (refused,) = gs.check(schema).of("refused")
    assert (refused.detail, refused.pointer) == (f"no value satisfies the schema: {why}", where)


def test_drafts_without_schemas_that_are_booleans() -> None:
    schema = {"type": "object", "required": ["a"], "properties": {"a": {"type": "null", "enum": [1]}}}
    with pytest.raises(gs.Unsatisfiable, match="'a': none of its enum is null"):
        gs.compile(gs.json_schema(schema, dialect="draft4"), gs.Vocabulary.bytes())


def test_types_and_operands() -> None:
    class Order(BaseModel):
        count: Annotated[int, Ge(3), Le(2)]

    with pytest.raises(
        gs.Unsatisfiable, match=r"required property 'count': minimum \(3\) is greater than maximum \(2\)"
    ):
        gs.compile(gs.grammar(Order), gs.Vocabulary.bytes())
    with pytest.raises(gs.Unsatisfiable, match=r"minimum \(3\) is greater") as caught:
        gs.compile("- " + gs.grammar(Order) + "\n", gs.Vocabulary.bytes())
    assert caught.value.where == "#/properties/count"
    with pytest.raises(gs.Unsatisfiable) as caught:
        gs.compile(gs.regex("a+") + (gs.regex("[ab]") & gs.regex("[cd]")), gs.Vocabulary.bytes())
    assert caught.value.where == "gs.regex('[ab]') & gs.regex('[cd]')"
    with pytest.raises(gs.Unsatisfiable) as caught:
        gs.compile(gs.regex("a") | gs.regex("b"), gs.Vocabulary.from_tokens([b"c", None], eos_token_ids=[1]))
    assert caught.value.where == ""


def test_grammars_without_texts_can_be_pickled() -> None:
    grammar = pickle.loads(pickle.dumps(gs.json_schema({"type": "null", "const": 1})))
    with pytest.raises(gs.Unsatisfiable):
        gs.compile(grammar, gs.Vocabulary.bytes())


def test_a_large_schema_is_told_in_time() -> None:
    properties = {
        f"p{n}": {"type": "object", "properties": {f"q{m}": {"type": "string"} for m in range(30)}} for n in range(200)
    }
    schema = {"type": "object", "properties": {**properties, "z": {"type": "null", "const": 1}}, "required": ["z"]}
    with ends(), pytest.raises(gs.Unsatisfiable, match="no value satisfies the schema"):
        gs.compile(gs.json_schema(schema), gs.Vocabulary.bytes())
