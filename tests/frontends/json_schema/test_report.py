"""Reports: what becomes of each keyword, and all that is refused."""

from __future__ import annotations

import contextlib
import json
from typing import Any

import pytest
from hypothesis import given

import grammarspec as gs
from tests import tiers
from tests.counting import examples, tally
from tests.endings import ends
from tests.frontends.json_schema.schemas import SCHEMAS
from tests.frontends.json_schema.texts import BYTES

BACK = r"(a)\1"


def _verdicts(schema: Any, **options: Any) -> dict[str, str]:
    return {entry.pointer: entry.verdict for entry in gs.check(schema, **options).entries}


def _detail(schema: Any, pointer: str, **options: Any) -> str:
    return next(entry.detail for entry in gs.check(schema, **options).entries if entry.pointer == pointer)


def test_verdicts() -> None:
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "t",
        "type": "object",
        "properties": {
            "a": {"type": "string", "minLength": 1, "format": "color", "x-unit": 1},
            "b": {"$ref": "#/$defs/used"},
            "c": {"then": False, "minContains": 2},
        },
        "additionalProperties": False,
        "$defs": {"used": {"format": "email"}, "unused": {"type": "strin"}},
    }
    assert _verdicts(schema) == {
        "#/$schema": "enforced",
        "#/title": "annotation",
        "#/type": "narrowed",
        "#/properties": "narrowed",
        "#/properties/a/type": "enforced",
        "#/properties/a/minLength": "enforced",
        "#/properties/a/format": "annotation",
        "#/properties/a/x-unit": "annotation",
        "#/properties/b/$ref": "enforced",
        "#/properties/c/then": "annotation",
        "#/properties/c/minContains": "annotation",
        "#/additionalProperties": "enforced",
        "#/$defs": "enforced",
        "#/$defs/used/format": "narrowed",
        "#/$defs/unused/type": "annotation",
    }
    assert gs.check(schema).ok
    assert _verdicts(schema, format="annotation")["#/$defs/used/format"] == "annotation"


def test_verdicts_depend_on_the_dialect() -> None:
    schema = {"$ref": "#/definitions/a", "type": "string", "definitions": {"a": {"contains": True, "const": None}}}
    assert _verdicts(schema)["#/type"] == "enforced"
    old = _verdicts(schema, dialect="draft4")
    assert [old[pointer] for pointer in ("#/type", "#/definitions/a/const")] == ["annotation", "annotation"]
    assert _verdicts({"exclusiveMinimum": True}, dialect="draft4") == {"#/exclusiveMinimum": "annotation"}
    assert _verdicts({"exclusiveMinimum": True, "minimum": 1}, dialect="draft4")["#/exclusiveMinimum"] == "narrowed"


@pytest.mark.parametrize(
    ("schema", "pointer", "options", "words"),
    [
        ({"properties": {"a": True, "b": True}}, "#/properties", {}, "in the order of properties"),
        ({"properties": {"a": True}}, "#/properties", {}, "keys have one spelling"),
        ({"properties": {"a": True}}, "#/properties", {"additional_properties": False}, "no other members"),
        ({"pattern": "a"}, "#/pattern", {}, "strings have one spelling"),
        ({"type": "integer"}, "#/type", {}, "a fraction of zeros"),
        ({"type": "integer"}, "#/type", {"dialect": "draft4"}, "integers are digits"),
        ({"type": "number"}, "#/type", {"numbers": "plain"}, "no exponents"),
        ({"minimum": 3}, "#/minimum", {}, "plain decimals, or d.ddd"),
        ({"multipleOf": 3}, "#/multipleOf", {}, "plain decimals"),
        ({"enum": [{"a": 1, "b": 2}]}, "#/enum", {}, "in the order given"),
        ({"const": 1.5}, "#/const", {}, "as json.dumps"),
        ({"format": "hostname"}, "#/format", {}, "no labels with"),
        ({"not": {"format": "time"}}, "#/not/format", {}, "where it is to fail"),
        ({"uniqueItems": True}, "#/uniqueItems", {}, "do not repeat names"),
        ({"maxItems": 10**10}, "#/maxItems", {}, "cut to 4294967294"),
        ({"maxItems": 10**5, "contains": {"type": "null"}}, "#/maxItems", {}, "shared out evenly"),
        ({"minProperties": 3}, "#/minProperties", {}, "do not repeat names"),
        ({"minProperties": 2, "properties": {"a": True, "b": True}}, "#/minProperties", {}, "do not repeat names"),
        (
            {"minProperties": 2, "properties": {"a": True}, "patternProperties": {"^x": False}},
            "#/minProperties",
            {},
            "count as one",
        ),
        ({"oneOf": [{"properties": {"t": {"const": i}}} for i in range(3)]}, "#/oneOf", {}, "'t' is required"),
    ],
    ids=str,
)
def test_narrowings(schema: Any, pointer: str, options: dict[str, Any], words: str) -> None:
    assert words in _detail(schema, pointer, **options)
    assert _verdicts(schema, **options)[pointer] == "narrowed"


@pytest.mark.parametrize(
    ("schema", "options"),
    [
        ({"type": "number"}, {}),
        ({"type": "string", "minimum": 3}, {}),
        ({"type": ["string", "null"]}, {}),
        ({"minLength": 3, "minItems": 1, "uniqueItems": False}, {}),
        ({"enum": [True, None, []]}, {}),
        ({"oneOf": [{"type": "null"}, {"type": "boolean"}]}, {}),
    ],
    ids=str,
)
def test_what_is_exact(schema: Any, options: dict[str, Any]) -> None:
    assert set(_verdicts(schema, **options).values()) == {"enforced"}


def test_whitespace_is_noted() -> None:
    for options, words in (({}, "8 blanks"), ({"whitespace": "compact"}, "json.dumps"), ({"indent": 2}, "json.dumps")):
        assert words in gs.check(True, **options).notes[0]


def test_all_refusals_are_listed() -> None:
    schema = {
        "properties": {
            "a": {"pattern": BACK},
            "b": {"type": "strin", "minimum": "x"},
            "c": {"patternProperties": {BACK: True}, "multipleOf": 1000003, "type": ["integer", "object"]},
            "d": {"not": {"uniqueItems": True}},
            "e": {"oneOf": [{"pattern": BACK}, {"minLength": 2}]},
        },
        "allOf": [{"$ref": "http://x/y"}, {"$ref": "#/nowhere"}],
    }
    report = gs.check(schema)
    assert {entry.pointer for entry in report.of("refused")} == {
        "#/properties/a/pattern",
        "#/properties/b/type",
        "#/properties/b/minimum",
        f"#/properties/c/patternProperties/{BACK}",
        "#/properties/c/multipleOf",
        "#/properties/d/not/uniqueItems",
        "#/properties/e/oneOf/0/pattern",
        "#/allOf/0/$ref",
        "#/allOf/1/$ref",
    }
    assert not report.ok
    by_pointer = {entry.pointer: entry for entry in report.entries}
    assert len(by_pointer) == len(report.entries)
    assert "Registry" in by_pointer["#/allOf/0/$ref"].hint
    assert "line 1, column 4" in by_pointer["#/properties/a/pattern"].detail
    assert str(report).splitlines()[0].startswith("refused ")
    assert str(report).splitlines()[-1].startswith("9 refused, ")


def test_all_malformed_subschemas_are_listed() -> None:
    schema = {"properties": {"a": None, "b": {"allOf": [{}, 1]}, "c": {"type": "strin"}, "d": {"not": 2}}}
    refused = {entry.pointer for entry in gs.check(schema).of("refused")}
    assert refused == {"#/properties/a", "#/properties/b/allOf/1", "#/properties/c/type", "#/properties/d/not"}


@pytest.mark.parametrize(
    ("schema", "refused"),
    [
        ({"anyOf": [{"anyOf": []}, {"items": {"items": 3}}]}, ["#/anyOf/0/anyOf", "#/anyOf/1/items/items"]),
        (
            {"oneOf": [{"oneOf": [{"required": ["a"]}, {"$ref": "http://x/y", "maxProperties": 1}]}, {"minimum": 1}]},
            ["#/oneOf/0/oneOf/1/$ref"],
        ),
        ({"const": {"a": 1}, "propertyNames": {"pattern": BACK}}, ["#/const", "#/propertyNames/pattern"]),
    ],
    ids=str,
)
def test_each_keyword_is_listed_once(schema: Any, refused: list[str]) -> None:
    report = gs.check(schema)
    pointers = [entry.pointer for entry in report.entries]
    assert len(set(pointers)) == len(pointers)
    assert sorted(entry.pointer for entry in report.of("refused")) == refused


def test_what_would_be_left_out() -> None:
    schema = {
        "properties": {"a": {"pattern": BACK}, "b": {"not": {"$ref": "#/$defs/x"}}},
        "$defs": {"x": {"uniqueItems": True}},
    }
    report = gs.check(schema, unsupported="warn")
    assert report.ok
    assert {entry.pointer for entry in report.of("not enforced")} == {
        "#/properties/a/pattern",
        "#/properties/b/not",
        "#/properties/b/not/$ref",
        "#/$defs/x/uniqueItems",
    }
    schema["type"] = "strin"  # type: ignore[assignment]
    malformed = gs.check(schema, unsupported="warn")
    assert [entry.pointer for entry in malformed.of("refused")] == ["#/type"]


def test_no_value_at_all() -> None:
    report = gs.check({"type": "object", "required": ["a"], "properties": {"a": False}})
    assert [entry.pointer for entry in report.of("refused")] == ["#/properties/a"]
    assert "no value" in report.of("refused")[0].detail
    assert not gs.check(False).ok


def test_reports_as_data() -> None:
    report = gs.check('{"minimum": 0.10, "pattern": 3}')
    assert json.loads(json.dumps(report.as_dict())) == {
        "ok": False,
        "entries": [
            {
                "pointer": "#/minimum",
                "keyword": "minimum",
                "verdict": "narrowed",
                "detail": "numbers are plain decimals, or d.ddde±x with an exponent from -307 to 307",
                "hint": "",
            },
            {
                "pointer": "#/pattern",
                "keyword": "pattern",
                "verdict": "refused",
                "detail": "pattern must be a string",
                "hint": "",
            },
        ],
        "notes": list(report.notes),
    }


def test_unusable_arguments() -> None:
    with pytest.raises(gs.GrammarSyntaxError, match="not JSON"):
        gs.check("{")
    with pytest.raises(ValueError, match="whitespace"):
        gs.check(True, whitespace="much")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="dialect"):
        gs.check(True, dialect="draft5")
    with pytest.raises(TypeError):
        gs.check(True, colour="red")  # type: ignore[call-arg]


def _nested(depth: int, inside: Any) -> Any:
    for _ in range(depth):
        inside = {"not": {"properties": {"a": inside}}}
    return inside


@pytest.mark.parametrize(
    "schema",
    [
        _nested(50, {"pattern": BACK}),
        tiers.slow(_nested(1_000, {"pattern": BACK})),
        tiers.slow(_nested(10_000, {"pattern": BACK})),
        tiers.slow({"properties": {f"p{i}": {"pattern": BACK} for i in range(1_000)}}),
        tiers.slow({"properties": {f"p{i}": {"type": "string", "pattern": "a"} for i in range(10_000)}}),
        {"properties": {"a\0\n  at #/b": {"type": 3}}},
        {"const": "\ud800"},
        {"items": {"const": {1: 2}}},
        {"properties": {"a": 3, "b": {"items": 4}}},
        {"$ref": "#"},
    ],
    ids=["not", "deep", "deeper", "refused", "wide", "name", "surrogate", "number", "no schemas", "cycle"],
)
def test_inputs_made_to_hurt(schema: Any) -> None:
    for unsupported in ("error", "warn"):
        with ends(), contextlib.suppress(gs.LimitExceeded):
            assert str(gs.check(schema, unsupported=unsupported))


@examples(150, least=150)
@given(SCHEMAS)
def test_reports_agree_with_the_front_end(schema: Any) -> None:
    """What is taken is reported so, and every keyword has one verdict."""
    verdicts = tally("schemas taken", 0.9)
    try:
        gs.compile(gs.json_schema(schema), BYTES)
        taken = True
        verdicts.keep()
    except gs.GrammarError as error:
        taken = False
        verdicts.discard(f"a refusal: {error.code}")
    report = gs.check(schema)
    assert report.ok is taken
    pointers = [entry.pointer for entry in report.entries]
    assert len(pointers) == len(set(pointers))
    assert gs.check(schema, unsupported="warn").ok or not taken


def test_the_table_begins_with_what_is_found() -> None:
    schema = {
        "type": "object",
        "title": "x",
        "properties": {
            "a": {"type": "integer", "minimum": 0, "maxmum": 1},
            "b": {"type": "array", "uniqueItems": True, "items": {"enum": ["x", 1, {"a": 1, "b": 2}]}},
            "c": {"pattern": BACK},
        },
        "required": ["a"],
    }
    report = gs.check(schema)
    lines = str(report).splitlines()
    assert [line.split()[:2] for line in lines[:3]] == [
        ["refused", "#/properties/c/pattern"],
        ["annotation", "#/properties/a/maxmum"],
        ["narrowed", "#/properties/b/uniqueItems"],
    ]
    (folded,) = (line for line in lines if "in spelling and order only" in line)
    assert folded.startswith(
        "narrowed      6 keywords, in spelling and order only: keys have one spelling per character"
    )
    assert len(report.of("narrowed")) == 7
    for part in ("integers are", "members come in the order of properties", "numbers are spelled as written"):
        assert folded.count(part) == 1
    assert folded not in str(gs.check({"minimum": True}))
