"""Arrays whose items must differ and have few values: no state is without a way on, and no array is lost."""

from __future__ import annotations

from typing import Any

import pytest

import grammarspec as gs
from grammarspec.frontends.regex.matching import few_candidates, few_texts
from tests.endings import ends

EMPTY_ARRAY = {"type": "array", "items": False}
NULL = {"type": "null"}
BOOLEAN = {"type": "boolean"}
A_IS_NULL = {"type": "object", "properties": {"a": NULL}}


def closed(**keywords: Any) -> dict[str, Any]:
    return {"type": "object", "additionalProperties": False, **keywords}


def arrays(items: Any, **keywords: Any) -> dict[str, Any]:
    return {"type": "array", "items": items, **keywords}


# Items, and how many values they have.
FEW: list[tuple[Any, int]] = [
    (EMPTY_ARRAY, 1),
    ({"type": "array", "unevaluatedItems": False}, 1),
    (closed(), 1),
    ({"type": "object", "unevaluatedProperties": False}, 1),
    (closed(properties={"a": False}), 1),
    ({"type": "object", "propertyNames": False}, 1),
    ({"type": "object", "additionalProperties": {"not": {}}}, 1),
    ({"type": "object", "allOf": [{"additionalProperties": NULL}, {"additionalProperties": BOOLEAN}]}, 1),
    (closed(properties={"a": {"const": 1}}), 2),
    (closed(properties={"a": NULL}, required=["a"]), 1),
    (closed(properties={"a": BOOLEAN}, minProperties=1), 2),
    (closed(patternProperties={"^(a|b)$": NULL}), 4),
    ({"type": "object", "propertyNames": {"enum": ["a"]}, "additionalProperties": NULL}, 2),
    ({"type": ["array", "object"], "items": False, "additionalProperties": False}, 2),
    ({"anyOf": [EMPTY_ARRAY, {"const": []}]}, 1),
    (arrays(False, prefixItems=[BOOLEAN]), 3),
    (arrays(BOOLEAN, maxItems=1), 3),
    (arrays({"enum": [1]}, uniqueItems=True), 2),
    (arrays(EMPTY_ARRAY, maxItems=2), 3),
    (arrays(arrays(EMPTY_ARRAY, uniqueItems=True), uniqueItems=True, minItems=1, maxItems=1), 2),
    ({"type": "string", "maxLength": 0}, 1),
    ({"type": "string", "pattern": "^a?$"}, 2),
    ({"type": "string", "pattern": "^a", "maxLength": 1}, 1),
    ({"type": "string", "pattern": "a$", "maxLength": 1}, 1),
    ({"type": "string", "pattern": "^[ab]*$", "minLength": 2, "maxLength": 2}, 4),
    ({"type": "number", "minimum": 1, "maximum": 1}, 1),
    ({"type": "number", "minimum": 1, "maximum": 9, "multipleOf": 2.5}, 3),
    ({"type": "integer", "minimum": 1, "maximum": 9, "multipleOf": 5}, 1),
]  # fmt: skip


def no_dead_ends(grammar: gs.Grammar[Any], states: int = 1500) -> None:
    constraint = gs.compile(grammar, gs.Vocabulary.bytes())
    waiting, seen = [constraint.matcher()], set[int]()
    while waiting and len(seen) < states:
        matcher = waiting.pop(0)
        following, may_end = matcher.next_bytes()
        assert following or may_end
        for byte in following:
            longer = matcher.fork()
            assert longer.accept_token(byte)
            if longer.state not in seen:
                seen.add(longer.state)
                waiting.append(longer)


@pytest.mark.parametrize(("items", "values"), FEW, ids=str)
def test_different_items_with_few_values(items: Any, values: int) -> None:
    schema = arrays(items, uniqueItems=True, minItems=values)
    no_dead_ends(gs.json_schema(schema, whitespace="compact"))
    with pytest.raises(gs.Unsatisfiable):
        gs.compile(gs.json_schema({**schema, "minItems": values + 1}), gs.Vocabulary.bytes())


def test_objects_that_are_closed_by_an_option() -> None:
    for items, values in (({"type": "object", "properties": {}}, 1), (A_IS_NULL, 2)):
        schema = arrays(items, uniqueItems=True, minItems=values)
        no_dead_ends(gs.json_schema(schema, whitespace="compact", additional_properties=False))
        no_dead_ends(gs.json_schema({**schema, "minItems": 9}, whitespace="compact"), states=100)
        larger = gs.json_schema({**schema, "minItems": values + 1}, additional_properties=False)
        with pytest.raises(gs.Unsatisfiable):
            gs.compile(larger, gs.Vocabulary.bytes())


def test_items_with_values_of_their_own_are_refused_where_these_may_be_taken() -> None:
    with pytest.raises(gs.UnsupportedFeature, match="so few values"):
        gs.json_schema({"type": "array", "uniqueItems": True, "minItems": 2, "prefixItems": [EMPTY_ARRAY, EMPTY_ARRAY]})


def test_items_that_hold_items_of_their_own_kind() -> None:
    node = {"type": "array", "maxItems": 1, "items": {"$ref": "#/$defs/node"}}
    no_dead_ends(
        gs.json_schema({"$defs": {"node": node}, **arrays({"$ref": "#/$defs/node"}, uniqueItems=True, minItems=3)})
    )


@pytest.mark.parametrize(
    ("pattern", "longest", "texts"),
    [
        ("^a?$", None, {"", "a"}),
        ("^(ab?){1,2}$", None, {"a", "ab", "aa", "aba", "aab", "abab"}),
        ("^[ab]*$", 1, {"", "a", "b"}),
        ("^[ab]*$", None, None),
        ("^a", 1, {"a"}),
        ("^a", 2, None),
        ("ab$", 2, {"ab"}),
        ("a", 1, None),
        ("^(?!a)[ab]$", None, {"a", "b"}),
    ],
)
def test_few_candidates(pattern: str, longest: int | None, texts: set[str] | None) -> None:
    found = few_candidates(pattern, longest, 100)
    assert (found if found is None else set(found)) == texts


@pytest.mark.parametrize(
    "pattern", ["^" + "(" * 60 + "a" + "{0,3})" * 60 + "$", "^" + "(" * 9000 + "a" + ")?" * 9000 + "$"]
)
def test_hostile_patterns(pattern: str) -> None:
    with ends():
        few_candidates(pattern, 200, 256)
        few_texts(pattern)
