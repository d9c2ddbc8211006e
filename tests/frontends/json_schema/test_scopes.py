"""Dynamic references, and meta-schemas that use some vocabularies only."""

from __future__ import annotations

from typing import Any

import pytest
from referencing import Registry, Resource
from referencing.jsonschema import DRAFT201909, DRAFT202012

import grammarspec as gs
from tests.frontends.json_schema.texts import acceptor

TREE = {
    "$id": "http://example.com/tree",
    "$dynamicAnchor": "node",
    "type": "object",
    "properties": {"data": True, "children": {"type": "array", "items": {"$dynamicRef": "#node"}}},
}
STRICT = {
    "$id": "http://example.com/strict",
    "$dynamicAnchor": "node",
    "$ref": "tree",
    "unevaluatedProperties": False,
    "$defs": {"tree": TREE},
}


@pytest.mark.parametrize("order", ["declared", "any"])
def test_a_tree_made_strict_from_outside(order: Any) -> None:
    """The example of 2020-12 core, section 8.2.3.2 and appendix C."""
    strict, loose = acceptor(STRICT, property_order=order), acceptor(TREE, property_order=order)
    for text in ('{"children": [{"daat": 1}]}', '{"daat": 1}', '{"children": [{"children": [{"x": 1}]}]}'):
        assert loose(text) and not strict(text)
    for text in ('{"data": {"daat": 1}, "children": [{"data": 2}]}', '{"children": [{"children": [{}]}]}'):
        assert loose(text) and strict(text)
    assert not loose('{"children": [1]}')


def test_the_outermost_dynamic_anchor_counts() -> None:
    def items(name: str, kind: str, **more: Any) -> dict[str, Any]:
        bound = {"$dynamicAnchor": "T", "type": kind}
        return {"$id": name, **more, "$defs": {"T": bound, **more.get("$defs", {})}}

    lists = items("list", "null", type="array", items={"$dynamicRef": "#T"})
    strings = items("http://example.com/strings", "string", **{"$ref": "list", "$defs": {"list": lists}})
    accepts = acceptor(strings)
    assert accepts('["a"]') and accepts("[]")
    assert not accepts("[null]") and not accepts("[1]")
    outer = items("http://example.com/outer", "integer", **{"$ref": "strings", "$defs": {"strings": strings}})
    outer["$defs"]["strings"]["$id"] = "strings"
    accepts = acceptor(outer)
    assert accepts("[1]") and not accepts('["a"]')


def test_one_schema_in_two_scopes() -> None:
    """What is bound depends on the way, so that one list is of integers here and of strings there."""
    lists = {
        "$id": "list",
        "type": "array",
        "items": {"$dynamicRef": "#T"},
        "$defs": {"T": {"$dynamicAnchor": "T"}},
    }
    of = {
        kind: {"$id": kind, "$ref": "list", "$defs": {"T": {"$dynamicAnchor": "T", "type": kind}}}
        for kind in ("integer", "string")
    }
    schema = {
        "$id": "http://example.com/root",
        "properties": {"i": {"$ref": "integer"}, "s": {"$ref": "string"}, "any": {"$ref": "list"}},
        "$defs": {"list": lists, **of},
    }
    accepts = acceptor(schema)
    assert accepts('{"i": [1], "s": ["a"], "any": [1, "a"]}')
    assert not accepts('{"i": ["a"]}') and not accepts('{"s": [1]}')


def test_without_a_dynamic_anchor_it_is_a_plain_reference() -> None:
    for anchor in ("$anchor", "$dynamicAnchor"):
        schema = {"items": {"$dynamicRef": "#n"}, "type": "array", "$defs": {"n": {anchor: "n", "type": "integer"}}}
        accepts = acceptor(schema)
        assert accepts("[1]") and not accepts('["a"]')
    inner = {"$id": "inner", "$defs": {"n": {"$anchor": "n", "type": "integer"}}, "items": {"$dynamicRef": "#n"}}
    outer = {
        "$id": "http://example.com/outer",
        "$ref": "inner",
        "$defs": {"inner": inner, "n": {"$dynamicAnchor": "n", "type": "string"}},
    }
    assert acceptor(outer)("[1]")
    assert not acceptor(outer)('["a"]')


@pytest.mark.parametrize(("outer", "inner"), [(True, True), (True, False), (False, True), (False, False)])
def test_recursive_references(outer: bool, inner: bool) -> None:
    """2019-09: bound to the outermost resource if it, and all between, have the anchor."""
    tree = {
        "$id": "http://example.com/tree",
        "$recursiveAnchor": inner,
        "type": "object",
        "properties": {"child": {"$recursiveRef": "#"}},
    }
    strict = {
        "$id": "http://example.com/strict",
        "$recursiveAnchor": outer,
        "$ref": "tree",
        "unevaluatedProperties": False,
        "$defs": {"tree": tree},
    }
    accepts = acceptor(strict, dialect="draft2019-09")
    assert accepts('{"child": {"child": {}}}')
    assert not accepts('{"x": 1}')
    assert not accepts('{"child": 1}')
    assert accepts('{"child": {"x": 1}}') == (not (outer and inner))


def test_a_recursive_reference_across_documents() -> None:
    other = {"$id": "http://example.com/other", "$recursiveAnchor": True, "items": {"$recursiveRef": "#"}}
    registry = Resource.from_contents(other, default_specification=DRAFT201909) @ Registry()
    schema = {
        "$id": "http://example.com/root",
        "$recursiveAnchor": True,
        "$ref": "other",
        "type": ["array", "integer"],
    }
    accepts = acceptor(schema, dialect="draft2019-09", registry=registry)
    assert accepts("[1, [2, [3]]]")
    assert not accepts('[["a"]]')


# ---------------------------------------------------------------------- vocabularies
BASE = "https://json-schema.org/draft/2020-12/vocab/"


def _with_meta(*vocabularies: str, required: bool = True, **others: bool) -> Registry[Any]:
    meta = {
        "$id": "http://example.com/meta",
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$vocabulary": {**{BASE + name: required for name in vocabularies}, **others},
    }
    return Resource.from_contents(meta, default_specification=DRAFT202012) @ Registry()


ALL = {
    "$schema": "http://example.com/meta",
    "properties": {"a": {"minimum": 5, "type": "integer"}, "b": {"format": "ipv4"}},
    "unevaluatedProperties": False,
}


@pytest.mark.parametrize(
    ("vocabularies", "taken", "refused"),
    [
        (
            ("core", "applicator", "validation", "unevaluated"),
            ['{"a": 5}', "1"],
            ['{"a": 1}', '{"a": "s"}', '{"c": 1}'],
        ),
        (("core", "applicator", "unevaluated"), ['{"a": 1}', '{"a": "s"}'], ['{"c": 1}']),
        (("core", "applicator", "validation"), ['{"c": 1}'], ['{"a": 1}']),
        (("core", "validation"), ['{"a": 1}', '{"c": 1}'], []),
        (("core",), ['{"a": 1}', '{"c": 1}'], []),
    ],
)
def test_keywords_of_other_vocabularies_ask_nothing(
    vocabularies: tuple[str, ...], taken: list[str], refused: list[str]
) -> None:
    accepts = acceptor(ALL, registry=_with_meta(*vocabularies), format="annotation")
    assert [text for text in taken if not accepts(text)] == []
    assert [text for text in refused if accepts(text)] == []


def test_unknown_vocabularies() -> None:
    known = ("core", "applicator", "validation")
    mine = {"http://example.com/mine": True}
    with pytest.raises(gs.UnsupportedFeature, match=r"http://example\.com/mine"):
        gs.json_schema(ALL, registry=_with_meta(*known, **mine))
    accepts = acceptor(ALL, registry=_with_meta(*known, **{"http://example.com/mine": False}))
    assert accepts('{"a": 5}') and not accepts('{"a": 1}')


def test_a_meta_schema_that_is_not_at_hand() -> None:
    with pytest.raises(gs.UnsupportedFeature, match="meta-schema") as caught:
        gs.json_schema(ALL)
    assert caught.value.where == "#/$schema"
    assert "registry" in caught.value.hint


def test_a_meta_schema_that_is_its_own() -> None:
    meta = {"$id": "http://example.com/meta", "$schema": "http://example.com/meta"}
    registry = Resource.from_contents(meta, default_specification=DRAFT202012) @ Registry()
    with pytest.raises(gs.UnsupportedFeature, match="meta-schema"):
        gs.json_schema(ALL, registry=registry)
