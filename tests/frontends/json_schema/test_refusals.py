"""Errors: what is malformed, what is not enforced, and inputs made to hurt."""

from __future__ import annotations

import contextlib
import json
from typing import Any

import pytest

import grammarspec as gs
from tests.endings import ends
from tests.frontends.json_schema.texts import BYTES, acceptor


@pytest.mark.parametrize(
    ("schema", "where"),
    [
        ({"type": "strin"}, "#/type"),
        ({"type": 3}, "#/type"),
        ({"properties": {"a~b/c": {"minLength": "3"}}}, "#/properties/a~0b~1c/minLength"),
        ({"properties": []}, "#/properties"),
        ({"properties": {1: True}}, "#/properties"),
        ({"items": {"const": {1: 2}}}, "#/items"),
        ({"items": {"not": {"const": {1: 2}}}}, "#/items"),
        ({"items": {"minProperties": 2, "not": {"enum": [{"k": {1: 2}}]}}}, "#/items/not"),
        ({"items": {"minItems": -1}}, "#/items/minItems"),
        ({"minItems": 1.5}, "#/minItems"),
        ({"items": {"const": float("nan")}}, "#/items/const"),
        ({"items": {"enum": [1, float("inf")]}}, "#/items/enum/1"),
        ({"items": {"not": {"enum": [{1, 2}]}}}, "#/items/not/enum/0"),
        ({"items": {"const": "\ud800"}}, "#/items"),
        ({"minimum": "1"}, "#/minimum"),
        ({"maximum": True}, "#/maximum"),
        ({"minimum": float("nan")}, "#/minimum"),
        ({"multipleOf": 0}, "#/multipleOf"),
        ({"required": "a"}, "#/required"),
        ({"required": [1]}, "#/required"),
        ({"required": True}, "#/required"),
        ({"enum": "a"}, "#/enum"),
        ({"anyOf": []}, "#/anyOf"),
        ({"allOf": {}}, "#/allOf"),
        ({"prefixItems": [True, {"oneOf": 3}]}, "#/prefixItems/1/oneOf"),
        ({"pattern": 3}, "#/pattern"),
        ({"format": 3}, "#/format"),
        ({"uniqueItems": 1}, "#/uniqueItems"),
        ({"patternProperties": []}, "#/patternProperties"),
        ({"dependentRequired": {"a": "b"}}, "#/dependentRequired"),
        ({"$ref": 3}, "#/$ref"),
        ({"$ref": "#/nowhere"}, "#/$ref"),
        ({"$ref": "#nowhere"}, "#/$ref"),
        ({"not": 3}, "#/not"),
        ({"$schema": 3}, "#/$schema"),
        ({"$dynamicRef": 3}, "#/$dynamicRef"),
        ({"$dynamicRef": "#nowhere"}, "#/$dynamicRef"),
        ({"not": {"multipleOf": 0}}, "#/not/multipleOf"),
        ({"properties": {"a/b": None}}, "#/properties/a~1b"),
        ({"items": {"allOf": [{}, 3]}}, "#/items/allOf/1"),
        ({"items": {"oneOf": [{"type": "null"}, "null"]}}, "#/items/oneOf/1"),
        ({"patternProperties": {"^a": 3}}, "#/patternProperties/^a"),
        ({"if": "a", "then": {}}, "#/if"),
        ({"items": {"propertyNames": 1}}, "#/items/propertyNames"),
        ({"not": {"anyOf": [3]}}, "#/not/anyOf/0"),
        ({"dependentSchemas": {"a": "b"}}, "#/dependentSchemas/a"),
        ({"dependencies": {"a": ["b"], "b": "c"}}, "#/dependencies/b"),
        ({"unevaluatedProperties": "b"}, "#/unevaluatedProperties"),
        ({"anyOf": [True, {"$ref": "#/anyOf"}]}, "#/anyOf/1/$ref"),
        ({"properties": {"a": {"$ref": "#/title"}}, "title": "a"}, "#/properties/a/$ref"),
    ],
    ids=str,
)
def test_malformed_keywords(schema: Any, where: str) -> None:
    with pytest.raises(gs.GrammarSyntaxError) as caught:
        gs.json_schema(schema)
    assert caught.value.where == where


@pytest.mark.parametrize(
    ("schema", "keyword", "where"),
    [
        (
            {"uniqueItems": True, "prefixItems": [{"enum": [1, 2]}, {"const": 1}], "minItems": 2, "type": "array"},
            "uniqueItems",
            "#/uniqueItems",
        ),
        ({"not": {"uniqueItems": True}}, "uniqueItems inside not", "#/not/uniqueItems"),
        (
            {"minProperties": 3, "patternProperties": {"^[ab]$": True}, "additionalProperties": False},
            "minProperties",
            "#/minProperties",
        ),
        ({"multipleOf": 1000003, "type": "integer"}, "multipleOf", "#"),
        ({"patternProperties": {p: {"const": p} for p in "abcdefghij"}}, "that may overlap", "#/patternProperties"),
        ({"pattern": "(a)\\1"}, "pattern", "#/pattern"),
    ],
    ids=str,
)
def test_unsupported_keywords(schema: Any, keyword: str, where: str) -> None:
    with pytest.raises(gs.UnsupportedFeature) as caught:
        gs.json_schema(schema)
    assert keyword in caught.value.message
    assert caught.value.where.endswith(where)


def test_keywords_that_cannot_matter_are_not_refused() -> None:
    assert acceptor({"type": "integer", "uniqueItems": True, "unevaluatedProperties": False})("1")
    assert acceptor({"unevaluatedProperties": True, "unevaluatedItems": {}, "uniqueItems": False})("[1, 1]")
    assert acceptor({"$defs": {"unused": {"$dynamicRef": "#x", "type": "strin"}}})("1")
    annotations = {"title": "t", "description": "d", "default": 1, "examples": [], "$comment": "", "readOnly": True}
    assert acceptor({**annotations, "contentMediaType": "text/html", "deprecated": 3, "x-mine": {"type": "null"}})(
        "[1]"
    )


def test_json_text() -> None:
    assert acceptor('{"type": "integer"}')("1")
    assert acceptor(b'{"const": "\xc3\xa9"}')('"\u00e9"')
    assert acceptor("true")("[]")
    for text in ("{", '{"a": NaN}', "", "{'a': 1}"):
        with pytest.raises(gs.GrammarSyntaxError, match="not JSON"):
            gs.json_schema(text)
    with pytest.raises(gs.GrammarSyntaxError, match="not JSON"):
        gs.json_schema(b"\xff\xff{}")
    with pytest.raises(gs.GrammarSyntaxError, match="object or a boolean"):
        gs.json_schema("[]")


def test_options() -> None:
    for options in ({"format": "no"}, {"whitespace": "much"}, {"property_order": "random"}):
        with pytest.raises(ValueError, match=next(iter(options))):
            gs.json_schema({}, **options)


def _nested(depth: int, inside: Any) -> Any:
    for _ in range(depth):
        inside = {"type": "object", "properties": {"a": inside}, "additionalProperties": False}
    return inside


def test_deep_nesting_works() -> None:
    accepts = acceptor(_nested(1_000, {"type": "integer"}))
    assert accepts('{"a":' * 1_000 + "1" + "}" * 1_000)
    assert not accepts('{"a":' * 1_000 + '"x"' + "}" * 1_000)


def test_large_objects_work() -> None:
    names = [f"p{i}" for i in range(2_000)]
    for required in ([], names[::2]):
        properties = {name: {"type": "integer"} for name in names}
        accepts = acceptor({"type": "object", "properties": properties, "required": required})
        assert accepts("{" + ", ".join(f'"{name}": 1' for name in names) + "}")
        assert accepts('{"p1999": 1}') == (not required)
        assert not accepts('{"p5": "x"}')


def _shared(depth: int) -> Any:
    inside: Any = {"type": "string"}
    for _ in range(depth):
        inside = {"type": "object", "properties": {"a": inside, "b": inside}}
    return inside


HOSTILE: dict[str, Any] = {
    "maxItems": {"type": "array", "items": {"type": "integer"}, "maxItems": 10**8},
    "minItems": {"type": "array", "items": {"type": "integer"}, "minItems": 10**9},
    "beyond the counters": {"type": "array", "minItems": 10**30},
    "maxLength": {"type": "string", "maxLength": 10**30},
    "maxLength as a float": {"type": "string", "maxLength": 1e30},
    "maxProperties": {"type": "object", "maxProperties": 10**9, "properties": {"a": True}},
    "minProperties": {"type": "object", "minProperties": 10**9},
    "a million times": {"type": "string", "pattern": "a{1000000}"},
    "groups": {"type": "string", "pattern": "(" * 20_000 + ")" * 20_000},
    "ambiguous pattern": {"properties": {"a" * 40 + "!": True}, "patternProperties": {"^(a|a)*$": False}},
    "nesting": _nested(20_000, True),
    "nested text": '{"a":' * 100_000 + "1" + "}" * 100_000,
    "nested constant": {"const": json.loads("[" * 900 + "]" * 900)},
    "allOf in allOf": json.loads('{"allOf":[' * 400 + "true" + "]}" * 400),
    "choices": {"allOf": [{"anyOf": [{"required": [f"a{i}"]}, {"required": [f"b{i}"]}]} for i in range(40)]},
    "exclusive": {"oneOf": [{"required": [f"a{i}"], "minProperties": i % 3} for i in range(300)]},
    "negated": {"not": {"anyOf": [{"required": [f"a{i}", f"b{i}"]} for i in range(40)]}},
    "properties": {"properties": {f"p{i}": {"type": "string", "minLength": 1} for i in range(150_000)}},
    "text of 10 MB": json.dumps({"properties": {f"property {i}": {"description": "x" * 50} for i in range(120_000)}}),
    "digits": '{"const": ' + "9" * 100_000 + "}",
    "exponent": '{"minimum": 1e999999999999999999999}',
    "large exponent": '{"minimum": 1e999999}',
    "small divisor": {"type": "number", "multipleOf": 1e-300},
    "shared twice a level": _shared(60),
}


HOSTILE_FOR_LONG = {"choices", "negated", "nesting", "properties", "text of 10 MB"}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] * (name in HOSTILE_FOR_LONG)) for name in HOSTILE]
)
def test_hostile_schemas_are_answered(name: str) -> None:
    with ends(), contextlib.suppress(gs.GrammarError):  # a clear error is an answer
        gs.compile(gs.json_schema(HOSTILE[name]), BYTES)


def test_a_schema_that_contains_itself() -> None:
    schema: dict[str, Any] = {"type": "object", "additionalProperties": False}
    schema["properties"] = {"a": schema}
    assert acceptor(schema)('{"a": {"a": {}}}')
    schema = {}
    schema["allOf"] = [schema]
    assert acceptor(schema)("1")


@pytest.mark.parametrize(
    "schema",
    [
        {"const": "\ud800"},
        {"properties": {"\udfff": True}},
        {"required": ["a\ud800"]},
        {"pattern": "\ud800"},
        {"enum": ["a", {"\ud800": 1}]},
    ],
)
def test_lone_surrogates_are_refused(schema: Any) -> None:
    with pytest.raises(gs.GrammarSyntaxError, match="surrogate"):
        gs.json_schema(schema)


def test_nul_is_a_character_like_others() -> None:
    accepts = acceptor({"type": "object", "properties": {"a\0": {"const": "\0b"}}, "additionalProperties": False})
    assert accepts('{"a\\u0000": "\\u0000b"}')
    assert not accepts('{"a\0": "\\u0000b"}')


def test_constants_that_are_no_json() -> None:
    for value in ({1, 2}, b"x", float("inf"), [float("nan")], {"a": object()}):
        with pytest.raises(gs.GrammarSyntaxError):
            gs.json_schema({"enum": [value]})
