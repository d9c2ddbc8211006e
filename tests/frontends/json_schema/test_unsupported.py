"""``unsupported="warn"``: what is not enforced is left out, and never is more asked for it."""

from __future__ import annotations

import warnings
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import grammarspec as gs
from tests.counting import examples
from tests.frontends.json_schema.judges import is_valid
from tests.frontends.json_schema.schemas import PLAIN, VALUES
from tests.frontends.json_schema.texts import BYTES, acceptor, dumps

BACK = r"(a)\1"  # no regular expression says it


def _warned(schema: Any, **options: Any) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        gs.json_schema(schema, unsupported="warn", **options)
    assert all(warning.category is gs.NotEnforced and warning.filename == __file__ for warning in caught)
    return [str(warning.message).partition(": ")[0] for warning in caught]


DEFINED = {"x": {"properties": {"b": {"pattern": BACK}}}}


@pytest.mark.filterwarnings("ignore::grammarspec.errors.NotEnforced")
@pytest.mark.parametrize(
    ("schema", "left_out", "accepted", "refused"),
    [
        ({"type": "string"}, [], '"a"', "1"),
        (
            {"properties": {"a": {"pattern": BACK, "minLength": 2}}},
            ["#/properties/a/pattern"],
            '{"a":"bb"}',
            '{"a":""}',
        ),
        ({"type": "integer", "multipleOf": 1000003}, ["#/multipleOf"], "7", "1.5"),
        ({"type": "string", "allOf": [{"multipleOf": 1000003}], "$ref": "http://x/y"}, ["#/$ref"], '"a"', "1"),
        ({"not": {"uniqueItems": True}, "minItems": 1}, ["#/not"], "[1]", "[]"),
        (
            {"not": {"not": {"pattern": BACK}}, "maxLength": 2},
            ["#/not"],
            '"b"',
            '"bbb"',
        ),
        (
            {"if": {"pattern": BACK}, "then": {"type": "integer"}, "type": ["string", "null"]},
            ["#/if"],
            '"b"',
            "1",
        ),
        (
            {"oneOf": [{"properties": {"a": {"pattern": BACK}}}, {"required": ["c"]}], "type": "object"},
            ["#/oneOf", "#/oneOf/0/properties/a/pattern"],
            '{"a":"b"}',
            "1",
        ),
        (
            {"oneOf": [{"uniqueItems": True}, {"items": {"type": "integer"}}]},
            ["#/oneOf"],
            "[1,1]",
            '["a","a"]',
        ),
        (
            {"anyOf": [True], "oneOf": [{"pattern": BACK}, {"type": "string"}], "maxLength": 1},
            ["#/oneOf"],
            '"b"',
            '"bb"',
        ),
        (
            {"contains": {"pattern": BACK, "minLength": 2}, "maxContains": 1, "minContains": 1},
            ["#/maxContains", "#/contains/pattern"],
            '["bb","bbb"]',
            '["b"]',
        ),
        (
            {"patternProperties": {BACK: {"type": "null"}, "^b": {"type": "null"}}, "additionalProperties": False},
            [f"#/patternProperties/{BACK}"],
            '{"aa":1,"b":null}',
            '{"b":1}',
        ),
        (
            {"allOf": [{"$ref": "http://x/y"}, {"properties": {"a": True}}], "unevaluatedProperties": False},
            ["#/allOf/0/$ref"],
            '{"from y":1}',
            "tru",
        ),
        (
            {"$ref": "http://x/y", "type": "string", "$schema": "http://json-schema.org/draft-07/schema"},
            ["#/$ref"],
            "1",
            "tru",
        ),
        # a definition that is tested in one place and asked for in another
        (
            {"$defs": DEFINED, "properties": {"p": {"not": {"$ref": "#/$defs/x"}}, "q": {"$ref": "#/$defs/x"}}},
            ["#/properties/p/not", "#/$defs/x/properties/b/pattern"],
            '{"p":{},"q":{"b":"b"}}',
            "tru",
        ),
    ],
    ids=str,
)
def test_what_is_left_out(schema: Any, left_out: list[str], accepted: str, refused: str) -> None:
    assert _warned(schema) == left_out
    accepts = acceptor(schema, unsupported="warn")
    assert accepts(accepted)
    assert not accepts(refused)


@pytest.mark.filterwarnings("ignore::grammarspec.errors.NotEnforced")
@pytest.mark.parametrize("schema", [{"type": "strin", "pattern": BACK}, {"$schema": "http://x/y"}, 3], ids=str)
def test_what_cannot_be_left_out_is_refused(schema: Any) -> None:
    with pytest.raises(gs.GrammarError):
        gs.json_schema(schema, unsupported="warn")


def test_other_values_of_the_option() -> None:
    with pytest.raises(ValueError, match="unsupported must be"):
        gs.json_schema(True, unsupported="ignore")  # type: ignore[arg-type]


def test_closed_objects_open_for_what_is_left_out() -> None:
    schema = {"properties": {"a": True}, "allOf": [{"$ref": "http://x/y"}]}
    assert _warned(schema, additional_properties=False) == ["#/allOf/0/$ref"]
    with pytest.warns(gs.NotEnforced):
        accepts = acceptor(schema, unsupported="warn", additional_properties=False)
    assert accepts('{"a":1,"of y":2}')


def test_the_schema_is_not_changed() -> None:
    schema = {"properties": {"a": {"pattern": BACK}, "b": {"oneOf": [{"pattern": BACK}, True]}}}
    before = repr(schema)
    assert len(_warned(schema)) == 3
    assert repr(schema) == before


def _with_refusals(schema: Any) -> Any:
    """Some of the keywords become a pattern that is refused."""
    if isinstance(schema, list):
        return [_with_refusals(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    kept = {key: _with_refusals(value) for key, value in schema.items() if key not in ("minLength", "maxItems")}
    if kept.keys() != schema.keys() or kept.get("pattern") in ("b", "a$"):
        kept["pattern"] = BACK
    if isinstance(schema.get("patternProperties"), dict) and "b" in schema["patternProperties"]:
        kept["patternProperties"][BACK] = kept["patternProperties"].pop("b")
    return kept


@examples(300)
@given(PLAIN.map(_with_refusals), st.lists(VALUES, min_size=1, max_size=4))
def test_random_schemas_only_grow(schema: Any, values: list[Any]) -> None:
    """What python-jsonschema accepts is accepted, whatever had to be left out."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", gs.NotEnforced)
        try:
            grammar = gs.json_schema(schema, unsupported="warn", property_order="any")
            constraint = gs.compile(grammar, BYTES)
        except gs.Unsatisfiable:
            assert not any(is_valid(schema, value) for value in values)
            return
    for value in values:
        if is_valid(schema, value):
            data = dumps(value).encode()
            matcher = constraint.matcher()
            assert matcher.accept_tokens(list(data)) == len(data) and matcher.is_accepting, (schema, value)
