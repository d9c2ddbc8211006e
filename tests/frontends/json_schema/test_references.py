"""$ref, identifiers, dialects and registries."""

from __future__ import annotations

from typing import Any

import pytest
from referencing import Registry, Resource
from referencing.jsonschema import DRAFT202012

import grammarspec as gs
from tests.frontends.json_schema.texts import acceptor

INTEGER, STRING = {"type": "integer"}, {"type": "string"}


@pytest.mark.parametrize(
    "reference",
    ["#/$defs/a~1b~0c%25%20", "#/$defs/list/allOf/1", "#/properties/deep/items/0", "#/x-unknown/here", "#named"],
)
def test_pointers(reference: str) -> None:
    schema = {
        "$defs": {
            "a/b~c% ": INTEGER,
            "list": {"allOf": [True, INTEGER]},
            "anchored": {"$anchor": "named", **INTEGER},
        },
        "x-unknown": {"here": INTEGER},
        "properties": {"deep": {"items": [INTEGER]}, "v": {"$ref": reference}},
        "type": "object",
        "required": ["v"],
        "additionalProperties": False,
    }
    accepts = acceptor(schema, dialect="draft2019-09")
    assert accepts('{"v": 1}')
    assert not accepts('{"v": "x"}')


def test_anchors_in_fragments_are_decoded() -> None:
    accepts = acceptor({"$ref": "#a%2Eb", "$defs": {"a": {"$anchor": "a.b", "type": "string"}}})
    assert accepts('"a"')
    assert not accepts("1")


@pytest.mark.parametrize("index", ["01", "-1", "2", "\u0661", "9" * 5000])
def test_indices_in_pointers(index: str) -> None:
    schema = {"properties": {"a": {"$ref": f"#/anyOf/{index}"}}, "anyOf": [True, {"type": "string"}]}
    with pytest.raises(gs.GrammarSyntaxError, match="points to nothing"):
        gs.json_schema(schema)


def test_recursion() -> None:
    tree = {
        "type": "object",
        "properties": {"value": INTEGER, "children": {"type": "array", "items": {"$ref": "#"}}},
        "required": ["value"],
        "additionalProperties": False,
    }
    accepts = acceptor(tree)
    assert accepts('{"value": 1, "children": [{"value": 2}, {"value": 3, "children": []}]}')
    assert not accepts('{"value": 1, "children": [{}]}')
    text = '{"value":0,"children":[' * 300 + "]}" * 300
    assert accepts(text)


def test_mutual_recursion_through_all_of() -> None:
    schema = {
        "$ref": "#/$defs/a",
        "$defs": {
            "a": {"type": "array", "items": {"allOf": [{"$ref": "#/$defs/b"}, {"maxItems": 1}]}},
            "b": {"type": "array", "items": {"$ref": "#/$defs/a"}, "minItems": 1},
        },
    }
    accepts = acceptor(schema)
    assert accepts("[[[]], [[[[]]]]]")
    assert not accepts("[[]]")
    assert not accepts("[[[], []]]")


@pytest.mark.parametrize(
    "definitions",
    [
        {"a": {"$ref": "#/$defs/a"}},
        {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}},
        {"a": {"allOf": [{"$ref": "#/$defs/b"}]}, "b": {"anyOf": [{"type": "null"}, {"$ref": "#/$defs/a"}]}},
        {"a": {"not": {"$ref": "#/$defs/a"}}},
        {"a": {"if": {"$ref": "#/$defs/a"}, "then": False}},
    ],
)
def test_a_reference_that_never_enters_the_value_is_an_error(definitions: dict[str, Any]) -> None:
    with pytest.raises(gs.GrammarSyntaxError, match="without entering the value"):
        gs.json_schema({"properties": {"x": {"$ref": "#/$defs/a"}}, "$defs": definitions})


def test_recursion_without_an_end_is_unsatisfiable() -> None:
    schema = {"$ref": "#/$defs/a", "$defs": {"a": {"type": "array", "minItems": 1, "items": {"$ref": "#/$defs/a"}}}}
    with pytest.raises(gs.Unsatisfiable):
        gs.compile(gs.json_schema(schema), gs.Vocabulary.bytes())


def test_siblings_of_ref_count_from_2019_on() -> None:
    definitions = {"a": INTEGER}
    schema = {"$ref": "#/definitions/a", "minimum": 5}
    for keywords in (schema, {"not": {"not": schema}}, {"allOf": [schema, True]}):
        for dialect in ("draft2019-09", "draft2020-12"):
            assert not acceptor({**keywords, "definitions": definitions}, dialect=dialect)("4")
        for dialect in ("draft4", "draft6", "draft7"):
            assert acceptor({**keywords, "definitions": definitions}, dialect=dialect)("4")


def test_identifiers_make_resources_of_their_own() -> None:
    schema = {
        "$id": "http://example.com/root.json",
        "$defs": {
            "a": {
                "$id": "sub/a.json",
                "$defs": {"x": {"$anchor": "x", **INTEGER}},
                "items": {"$ref": "#/$defs/x"},
            },
            "x": STRING,
        },
        "properties": {
            "one": {"$ref": "sub/a.json"},
            "two": {"$ref": "http://example.com/sub/a.json#x"},
            "three": {"$ref": "root.json#/$defs/x"},
            "four": {"$ref": "#/$defs/a/$defs/x"},
        },
    }
    accepts = acceptor(schema)
    assert accepts('{"one": [1], "two": 2, "three": "s", "four": 4}')
    for wrong in ('{"one": ["s"]}', '{"two": "s"}', '{"three": 3}', '{"four": "s"}'):
        assert not accepts(wrong)


def test_an_identifier_inside_a_constant_is_none() -> None:
    schema = {
        "$defs": {
            "constant": {"enum": [{"$id": "http://example.com/x", "type": "null"}]},
            "x": {"$id": "http://example.com/x", **INTEGER},
        },
        "$ref": "http://example.com/x",
    }
    assert acceptor(schema)("1")


def test_other_documents_come_from_the_registry_only() -> None:
    other = {"$id": "http://example.com/other.json", "$defs": {"t": {"items": {"$ref": "#/$defs/n"}}, "n": INTEGER}}
    registry = Resource.from_contents(other, default_specification=DRAFT202012) @ Registry()
    schema = {"properties": {"a": {"$ref": "http://example.com/other.json#/$defs/t"}}}
    accepts = acceptor(schema, registry=registry)
    assert accepts('{"a": [1]}')
    assert not accepts('{"a": ["x"]}')
    with pytest.raises(gs.UnsupportedFeature, match=r"other\.json") as caught:
        gs.json_schema(schema)
    assert caught.value.where == "#/properties/a/$ref"
    assert "registry" in caught.value.hint


def test_documents_of_other_dialects_keep_theirs() -> None:
    old = {
        "$schema": "http://json-schema.org/draft-04/schema#",
        "id": "http://example.com/old.json",
        "type": "integer",
        "minimum": 1,
        "exclusiveMinimum": True,
    }
    registry = Registry().with_resource("http://example.com/old.json", Resource.from_contents(old))
    accepts = acceptor({"$ref": "http://example.com/old.json"}, registry=registry)
    assert accepts("2")
    assert not accepts("1")
    assert acceptor({"not": {"$ref": "http://example.com/old.json"}}, registry=registry)("1")


@pytest.mark.parametrize(
    ("uri", "draft4"),
    [
        ("http://json-schema.org/draft-04/schema#", True),
        ("http://json-schema.org/draft-04/schema", True),
        ("http://json-schema.org/draft-07/schema#", False),
        ("https://json-schema.org/draft/2019-09/schema", False),
    ],
)
def test_the_dialect_is_what_the_schema_says(uri: str, draft4: bool) -> None:
    accepts = acceptor({"$schema": uri, "const": 1})
    assert accepts("2") == draft4  # draft 4 has no const


def test_unknown_dialects() -> None:
    with pytest.raises(gs.UnsupportedFeature, match="meta-schema") as caught:
        gs.json_schema({"$schema": "https://example.com/my-dialect"})
    assert caught.value.where == "#/$schema"
    assert acceptor({"$schema": "https://example.com/my-dialect", "const": 1}, dialect="draft7")("1")
    with pytest.raises(ValueError, match="draft2020-12"):
        gs.json_schema({}, dialect="draft5")


def test_items_as_an_array() -> None:
    schema = {"items": [INTEGER, STRING], "additionalItems": False}
    assert acceptor(schema, dialect="draft7")('[1, "a"]')
    assert not acceptor(schema, dialect="draft2019-09")('[1, "a", 2]')
    assert not acceptor(schema)('["a"]')  # no dialect is named: read as it was always written
    with pytest.raises(gs.GrammarSyntaxError, match="items"):
        gs.json_schema(schema, dialect="draft2020-12")


@pytest.mark.parametrize("registry", [None, Registry()], ids=["none", "empty"])
@pytest.mark.parametrize(
    "uri",
    [
        "http://json-schema.org/draft-04/schema#",
        "http://json-schema.org/draft-07/schema",
        "https://json-schema.org/draft/2020-12/schema",
    ],
)
def test_standard_meta_schemas_are_known(uri: str, registry: Any) -> None:
    accepts = acceptor({"properties": {"a": {"$ref": uri}}, "required": ["a"], "type": "object"}, registry=registry)
    assert accepts('{"a": {"type": "string"}}')
    assert not accepts('{"a": {"type": 5}}')


def test_no_other_document_of_the_same_site_is() -> None:
    with pytest.raises(gs.UnsupportedFeature, match="nothing"):
        gs.json_schema({"$ref": "https://json-schema.org/nothing"})
