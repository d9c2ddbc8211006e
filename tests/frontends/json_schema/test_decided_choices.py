"""Choices that the rest of a schema decides, so that they are not multiplied out, against jsonschema as oracle."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Sequence
from typing import Any

import jsonschema
import pytest
from hypothesis import given

import grammarspec as gs
from grammarspec.frontends.json_schema.document.loading import load
from grammarspec.frontends.json_schema.keywords.combining import AllOf
from grammarspec.frontends.json_schema.keywords.tables import read
from grammarspec.frontends.json_schema.meaning.analysis import Analysis
from grammarspec.frontends.json_schema.meaning.emptiness import surely_empty
from grammarspec.frontends.json_schema.meaning.implication import implies
from grammarspec.grammars.budget import Budget
from tests.counting import discard, examples
from tests.frontends.json_schema.judges import is_valid
from tests.frontends.json_schema.schemas import PLAIN, VALUES
from tests.frontends.json_schema.texts import acceptor, dumps

FEW = gs.Limits(max_steps=400_000)
"""What each of these schemas takes much less of; multiplied out, each would take millions."""

TEXT = {"type": "string"}


def constant(value: str) -> dict[str, Any]:
    return {"type": "string", "enum": [value]}


def closed(properties: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "additionalProperties": False, **more}


def objects(members: dict[str, Sequence[Any]], most: int = 3) -> Iterator[dict[str, Any]]:
    """Objects of some members, with each of their values."""
    for size in range(most + 1):
        for names in itertools.combinations(members, size):
            for values in itertools.product(*(members[name] for name in names)):
                yield dict(zip(names, values, strict=True))


KINDS = [f"K{i}" for i in range(14)]
WORDS = {
    f"m{i}": {"type": "object", "properties": {"kind": {**TEXT, "pattern": f"^{kind}$"}, "of": {"$ref": "#"}}}
    for i, kind in enumerate(KINDS)
}
BRANCHES = [{**branch, "required": ["kind", *(["of"] if i % 3 else [])]} for i, branch in enumerate(WORDS.values())]
TAGGED = [{"properties": {"kind": constant(kind), "args": {"required": [kind]}}} for kind in KINDS]
NESTED = {
    "type": "array",
    "items": {"oneOf": [closed({"kind": constant(kind), "x": {"minimum": i}}) for i, kind in enumerate(KINDS)]},
}

SCHEMAS: dict[str, tuple[dict[str, Any], list[Any]]] = {
    "patterns as tags": (
        {"oneOf": BRANCHES},
        list(objects({"kind": ["K0", "K1", "K", 5], "of": [{"kind": "K3"}, {"kind": "K1", "of": {"kind": "K0"}}, 1]})),
    ),
    "prefixes as tags": (
        {
            "oneOf": [
                closed({"id": {**TEXT, "pattern": f"^pkg:{kind}/.+"}, kind: {}}, required=["id"]) for kind in KINDS
            ]
        },
        list(objects({"id": ["pkg:K0/a", "pkg:K1/", "pkg:K1/x", "pkg:", 1], "K1": [1], "K0": [None]})),
    ),
    "a tag that a sibling requires": (
        {
            "allOf": [
                {"required": ["kind"], "properties": {"kind": TEXT, "args": {"type": "object"}}},
                {"oneOf": [{"not": {"properties": {"kind": {"enum": KINDS}}}}, *TAGGED]},
            ]
        },
        list(objects({"kind": ["K0", "K1", "none", 3], "args": [{}, {"K0": 1}, {"K1": 1}, 2], "more": [0]})),
    ),
    "members that depend on a tag": (
        {
            **closed({"kind": {"enum": KINDS}, **{f"p{i}": {"type": "integer"} for i in range(14)}}),
            "dependentSchemas": {
                f"p{i}": {"properties": {"kind": {"enum": KINDS[i : i + 3]}}} for i in range(len(KINDS))
            },
        },
        list(objects({"kind": ["K0", "K2", "K5", "other"], "p0": [1, "x"], "p2": [2], "p5": [3], "p9": [4]})),
    ),
    "a refused oneOf beside a required member": (
        {
            "oneOf": [
                closed({"size": {"type": "number"}, "style": TEXT}, required=["size"]),
                {
                    "oneOf": [
                        closed({"ios": {"$ref": "#"}, "android": {"$ref": "#"}}, required=["ios", "android"]),
                        closed({"ref": TEXT}, required=["ref"]),
                        closed({}, patternProperties={"^[0-9]+x$": {"$ref": "#"}}, minProperties=1),
                        closed(
                            {}, patternProperties={"^[a-z]{2,3}$": {"$ref": "#"}}, minProperties=1,
                            **{"not": {"required": ["ios"]}},
                        ),
                    ]
                },
            ]
        },
        list(
            objects(
                {
                    "size": [1, "x"], "style": ["s"], "ref": ["a", {"size": 2}, 3], "ios": [{"size": 1}],
                    "android": [{"ref": "b"}], "2x": [{"size": 1}, {}], "en": [{"size": 1}, {"ref": "a"}, 4],
                },
                2,
            )
        ),
    ),
    "copies in two branches": (
        {
            "oneOf": [
                {"type": "object", "properties": {"steps": NESTED, "notes": TEXT, "name": TEXT}},
                {"type": "object", "properties": {"steps": {**NESTED}, "label": TEXT, "icon": {"type": "integer"}}},
            ]
        },
        list(
            objects(
                {
                    "steps": [[], [{"kind": "K0"}], [{"kind": "K9", "x": 1}], [{"kind": "none"}]],
                    "notes": ["a", 1], "name": [2], "label": ["b", 3], "icon": [4, "c"],
                }
            )
        ),
    ),
    "arrays of different constants": (
        {
            "oneOf": [
                {"type": "array", "maxItems": 25, "items": {"enum": [f"{kind}{i}" for i in range(9)]}} for kind in KINDS
            ]
        },
        [[], ["K00"], ["K00", "K08"], ["K00", "K10"], ["K9"], ["K131"] * 25, ["K131"] * 26, 1],
    ),
    "none of many branches": (
        {
            "not": {
                "oneOf": [
                    closed({"kind": constant(kind), "label": TEXT, "id": TEXT}, required=["kind", "label"])
                    for kind in KINDS[:7]
                ]
            }
        },
        list(objects({"kind": ["K0", "K6", "K7", 1], "label": ["a", 1], "id": ["b", 2], "more": [0]})),
    ),
}  # fmt: skip


@pytest.mark.parametrize("order", ["declared", "any"])
@pytest.mark.parametrize(("schema", "values"), SCHEMAS.values(), ids=list(SCHEMAS))
def test_verdicts(schema: dict[str, Any], values: list[Any], order: str) -> None:
    accepts, validator = acceptor(schema, property_order=order, limits=FEW), jsonschema.Draft202012Validator(schema)
    wrong = []
    for value in values:
        valid = validator.is_valid(value)
        texts = [json.dumps(value)]
        if order == "declared" and isinstance(value, dict):
            texts = [json.dumps(dict(members)) for members in itertools.permutations(value.items())]
        if any(map(accepts, texts)) != valid:
            wrong.append((value, valid))
    assert not wrong
    assert {validator.is_valid(value) for value in values} == {True, False}


def test_branches_of_constants_are_one_beside_others() -> None:
    listing = [{"const": f"{kind}-{i}"} for kind in KINDS for i in range(8)]
    branches = [*listing, {"type": "string", "pattern": r"^\+"}]
    members = {f"p{i}": {"type": "string", "oneOf": branches} for i in range(20)}
    accepts = acceptor({"type": "object", "properties": members}, limits=gs.Limits(max_steps=1_500_000))
    for text in ("K0-0", "K13-7", "K13-8", "+1", "1"):
        assert accepts(json.dumps({"p7": text})) == (text in ("K0-0", "K13-7", "+1"))


def test_constants_that_two_branches_of_one_of_list_are_refused() -> None:
    accepts = acceptor({"oneOf": [{"enum": [1, 2]}, {"const": 2}, {"type": "string"}, {"const": "a"}]})
    assert [text for text in ("1", "2", '"a"', '"b"', "3") if accepts(text)] == ["1", '"b"']


@pytest.mark.parametrize(
    ("options", "names"), [({}, "xyz"), ({"additional_properties": False}, "xy")], ids=["open", "closed"]
)
def test_a_decided_choice_keeps_the_members_that_it_declares(options: Any, names: str) -> None:
    schema = {
        "type": "object",
        "required": ["x"],
        "properties": {"x": {"type": "integer"}},
        "allOf": [
            {"anyOf": [{"required": ["x"]}, {"properties": {"y": {"type": "integer"}}}]},
            {"anyOf": [{"required": ["x"]}, {"minProperties": 3}]},
        ],
    }
    accepts = acceptor(schema, **options)
    for name in "yz":
        assert accepts(json.dumps({"x": 1, name: 2})) == (name in names)


PAIRS: list[tuple[Any, Any, bool]] = [
    ({"required": ["a"], "properties": {"a": {"const": 1}}}, {"properties": {"a": {"not": {"const": 2}}}}, True),
    ({"properties": {"a": {"const": 1}}}, {"required": ["a"]}, False),
    ({"type": "object", "properties": {"a": False}}, {"properties": {"a": TEXT}}, True),
    ({"type": "object", "additionalProperties": False}, {"properties": {"a": TEXT}}, True),
    ({"type": "integer", "minimum": 3}, {"minimum": 3}, True),
    ({"type": "integer", "minimum": 3}, {"exclusiveMinimum": 3}, False),
    ({"type": "integer", "exclusiveMaximum": 3}, {"maximum": 3}, True),
    ({"type": "integer", "multipleOf": 2}, {"multipleOf": 4}, False),
    ({"type": "string", "minLength": 3, "pattern": "a"}, {"pattern": "a", "minLength": 2}, True),
    ({"type": "string", "pattern": "a"}, {"pattern": "b"}, False),
    ({"const": True}, {"const": 1}, False),
    ({"type": "array", "items": {"const": 1}, "minItems": 1}, {"items": {"type": "integer"}}, True),
    ({"type": "array", "prefixItems": [TEXT]}, {"items": TEXT}, False),
    ({"anyOf": [TEXT, {"type": "null"}]}, {"anyOf": [TEXT, {"type": "null"}]}, True),
    ({"type": "object"}, {"type": ["object", "null"]}, True),
    ({"type": "object", "required": ["ab"]}, {"not": {"propertyNames": {"const": "c"}}}, True),
    ({"type": "object"}, {"dependentSchemas": {"a": {"minProperties": 1}}}, True),
    ({"type": "object"}, {"dependentSchemas": {"a": {"required": ["b"]}}}, False),
]  # fmt: skip


def found(one: Any, other: Any) -> tuple[bool, bool]:
    """Whether it is proved that one schema implies another, and that no value satisfies both."""
    document = read(load({"allOf": [one, other]}), None, None)
    goals = Analysis(document, Budget(), assert_formats=True)
    (asked,) = document.start.assertions
    assert isinstance(asked, AllOf)
    first, second = asked.parts
    return implies(goals, goals.gather([first]), second), surely_empty(goals, [first, second], 3)


@pytest.mark.parametrize(("one", "other", "proved"), PAIRS)
def test_what_is_implied(one: Any, other: Any, proved: bool) -> None:
    assert found(one, other)[0] == proved


@examples(300)
@given(one=PLAIN, other=PLAIN, values=VALUES)
def test_what_is_proved_holds_of_values(one: Any, other: Any, values: Any) -> None:
    try:
        implied, empty = found(one, other)
    except gs.GrammarError:
        discard("a refusal")
    satisfied = is_valid(one, values), is_valid(other, values)
    assert not (implied and satisfied == (True, False)), dumps(values)
    assert not (empty and satisfied == (True, True)), dumps(values)
