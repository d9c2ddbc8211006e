"""Cases that came out wrong once; and some that still do, whose tests have to lose their mark when they pass."""

from __future__ import annotations

import re
from typing import Any

import pytest

import grammarspec as gs
from tests.frontends.json_schema.texts import BYTES, acceptor


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object", "required": ["a"], "maxProperties": 1},
        {"type": "object", "required": ["a", "b"], "maxProperties": 2, "properties": {"c": True}},
    ],
    ids=str,
)
def test_no_dead_end_in_any_order_below_a_maximum(schema: Any) -> None:
    constraint = gs.compile(gs.json_schema(schema, property_order="any"), BYTES)
    assert constraint.matcher().validate_tokens(list(b'{"c":1')) < 5


@pytest.mark.parametrize(
    ("conditions", "begun"),
    [
        ({"oneOf": [{"required": ["a"]}, {"required": ["b"]}]}, '{"c":1,"d":2'),
        ({"anyOf": [{"required": ["a"]}, {"required": ["b", "c"]}]}, '{"d":1,"b":2'),
        ({"dependentRequired": {"a": ["b"]}}, '{"c":1,"a":2'),
        ({"if": {"required": ["a"]}, "then": {"required": ["b"]}}, '{"c":1,"a":2'),
    ],
    ids=str,
)
def test_no_dead_end_in_any_order_where_conditions_need_room(conditions: Any, begun: str) -> None:
    schema = {"type": "object", "maxProperties": 2, **conditions}
    constraint = gs.compile(gs.json_schema(schema, property_order="any"), BYTES)
    assert constraint.matcher().validate_tokens(list(begun.encode())) < len(begun)
    accepts = acceptor(schema, property_order="any")
    assert accepts('{"b": 1, "a": 2}') == ("oneOf" not in conditions)
    assert accepts('{"c": 1, "b": 2}')


@pytest.mark.parametrize(
    ("strings", "text", "wrong"),
    [
        ({"not": {"pattern": "a"}}, "b", "ba"),
        ({"not": {"pattern": "^a"}}, "ba", "ab"),
        ({"pattern": "a", "allOf": [{"pattern": "b"}]}, "ba", "bc"),
    ],
    ids=str,
)
def test_patterns_beside_a_large_maximum(strings: Any, text: str, wrong: str) -> None:
    accepts = acceptor({"type": "string", "maxLength": 50_000, **strings})
    assert accepts(f'"{text}"')
    assert not accepts(f'"{wrong}"')


@pytest.mark.parametrize(
    ("schema", "text"),
    [
        ({"items": {"type": "integer"}, "enum": [[1]]}, "[1]"),
        ({"properties": {"a": {"type": "integer"}}, "enum": [{"a": 1.0}]}, '{"a": 1}'),
        ({"enum": [1.0, None], "oneOf": [{"type": "integer"}, {"type": "string"}]}, "1"),
    ],
    ids=str,
)
def test_integers_of_draft_4_in_constants(schema: Any, text: str) -> None:
    accepts = acceptor(schema, dialect="draft4")
    assert accepts(text)
    assert not accepts(text.replace("1", "1.0"))


def test_exclusive_branches_evaluate_only_what_they_say() -> None:
    one, other = ({"properties": {name: {"const": 1}}, "required": [name]} for name in "ab")
    accepts = acceptor({"oneOf": [one, other], "unevaluatedProperties": False, "type": "object"})
    assert accepts('{"a": 1}')
    assert not accepts('{"a": 1, "b": 3}')


@pytest.mark.parametrize("text", ['["a", "b"]', '["a", 1]'])
def test_a_maximum_below_the_prefix_beside_contains(text: str) -> None:
    accepts = acceptor({"prefixItems": [True, True], "contains": {"type": "string"}, "maxItems": 1})
    assert accepts('["a"]')
    assert not accepts(text)


@pytest.mark.xfail(
    strict=True, raises=gs.LimitExceeded, reason="unique items that must be counted: the search is blind"
)
def test_a_short_ending_of_unique_items_that_count() -> None:
    schema = {"type": "array", "uniqueItems": True, "contains": {"type": "integer"}, "minContains": 2}
    limits = gs.Limits(max_steps=2_000_000)
    constraint = gs.compile(gs.json_schema(schema), BYTES, limits=limits)
    assert constraint.tokens_to_end(constraint.start) < 20


@pytest.mark.xfail(
    strict=True,
    reason="open branches with several members of their own: 3,900 combinations of five, 23,430 of six; the members of "
    "an object would have to remember which of two schemas each value satisfies, as they do which are present",
)
def test_one_of_many_open_branches_that_fail_in_many_ways() -> None:
    def branch(i: int) -> dict[str, Any]:
        optional = {f"o{i}{j}": {"type": "integer"} for j in range(3)}
        return {"type": "object", "required": [f"k{i}"], "properties": {f"k{i}": {"type": "string"}, **optional}}

    assert acceptor({"oneOf": [branch(i) for i in range(6)]})('{"k0": "a", "k1": 5}')


def test_no_dead_end_in_a_prefix_that_contains_needs() -> None:
    one = {"const": 1}
    schema = {"type": "array", "uniqueItems": True, "prefixItems": [one, one], "contains": {"type": "string"}}
    with pytest.raises((gs.Unsatisfiable, gs.UnsupportedFeature)):
        gs.compile(gs.json_schema(schema), BYTES)


def test_the_order_of_members_does_not_depend_on_unevaluated_properties() -> None:
    schema = {
        "type": "object",
        "$ref": "#/$defs/x",
        "properties": {"b": True},
        "$defs": {"x": {"properties": {"a": {}}}},
    }
    assert acceptor(schema)('{"a": 1, "b": 1}')
    assert acceptor({**schema, "unevaluatedProperties": False})('{"a": 1, "b": 1}')


@pytest.mark.parametrize("text", ['{"x": 1, "y": 2}', '{"a": 1, "x": 1, "y": 2}'])
def test_several_undeclared_members_count(text: str) -> None:
    least = len(re.findall(":", text))
    assert acceptor({"type": "object", "properties": {"a": {}, "b": {}}, "minProperties": least})(text)
