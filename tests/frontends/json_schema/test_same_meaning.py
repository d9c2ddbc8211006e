"""Schemas that mean the same give the same verdicts."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import grammarspec as gs
from tests.counting import discard, examples
from tests.frontends.json_schema.schemas import EVALUATED, UNIQUE, VALUES, evaluating, schemas, without
from tests.frontends.json_schema.texts import BYTES, dumps

PLAIN = schemas(2020).filter(lambda schema: "$ref" not in json.dumps(schema))  # references go to the root

Rewriting = Callable[[Any, Any], tuple[Any, Any]]

REWRITINGS: dict[str, Rewriting] = {
    "allOf of one": lambda one, _: (one, {"allOf": [one]}),
    "allOf of itself": lambda one, _: (one, {"allOf": [one, one]}),
    "anyOf of itself": lambda one, _: (one, {"anyOf": [one, False, one]}),
    "oneOf of it and nothing": lambda one, _: (one, {"oneOf": [False, one]}),
    "not not": lambda one, _: (one, {"not": {"not": one}}),
    "not not, with company": lambda one, other: ({"allOf": [one, other]}, {"not": {"not": {"allOf": [one, other]}}}),
    "an absorbed alternative": lambda one, other: (one, {"anyOf": [one, {"allOf": [one, other]}]}),
    "nothing is both": lambda one, _: (False, {"allOf": [one, {"not": one}]}),
    "anything is either": lambda one, _: (True, {"anyOf": [one, {"not": one}]}),
    "de Morgan": lambda one, other: (
        {"not": {"anyOf": [one, other]}},
        {"allOf": [{"not": one}, {"not": other}]},
    ),
    "de Morgan, the other way": lambda one, other: (
        {"not": {"allOf": [one, other]}},
        {"anyOf": [{"not": one}, {"not": other}]},
    ),
    "if, then, else": lambda one, other: (
        {"if": one, "then": other, "else": {"type": ["integer", "array", "object"]}},
        {"anyOf": [{"allOf": [one, other]}, {"not": one, "type": ["integer", "array", "object"]}]},
    ),
    "oneOf of two": lambda one, other: (
        {"oneOf": [one, other]},
        {"anyOf": [{"allOf": [one, {"not": other}]}, {"allOf": [{"not": one}, other]}]},
    ),
    "disjoint branches": lambda one, other: (
        {"oneOf": [{"allOf": [one], "type": "object"}, {"allOf": [other], "type": "array"}]},
        {"anyOf": [{"allOf": [one], "type": "object"}, {"allOf": [other], "type": "array"}]},
    ),
    "unevaluated members may be anything": lambda one, _: (
        one,
        {"allOf": [one], "unevaluatedProperties": True, "unevaluatedItems": True},
    ),
    "a reference": lambda one, _: (one, {"$ref": "#/$defs/one", "$defs": {"one": one}}),
    "a reference with siblings": lambda one, other: (
        {"allOf": [one, other]},
        {"$ref": "#/$defs/one", "allOf": [{"$dynamicRef": "#/$defs/other"}], "$defs": {"one": one, "other": other}},
    ),
    "dependentSchemas": lambda one, _: (
        {"dependentSchemas": {"a": one}},
        {"if": {"type": "object", "required": ["a"]}, "then": one},
    ),
    "members": lambda one, other: (
        {"properties": {"a": one}, "additionalProperties": other},
        {"patternProperties": {"^a$": one, "^(?!a$)": other}},
    ),
    "items": lambda one, other: (
        {"prefixItems": [one], "items": other},
        {"prefixItems": [one], "unevaluatedItems": other},
    ),
}


def _accepts(schema: Any) -> Callable[[str], bool]:
    try:
        constraint = gs.compile(gs.json_schema(schema, property_order="any"), BYTES)
    except gs.Unsatisfiable:
        return lambda text: False
    except (gs.UnsupportedFeature, gs.LimitExceeded) as error:
        discard(f"a refusal: {error.code}")

    def accepts(text: str) -> bool:
        matcher = constraint.matcher()
        data = text.encode()
        return matcher.accept_tokens(list(data)) == len(data) and matcher.is_accepting

    return accepts


def _is_narrowed(schema: Any) -> bool:
    """Whether repeated undeclared names may narrow what is accepted, by how the schema is written.

    Then, towards a minimum, they count once, and what a negation asks for comes last.
    """
    text = json.dumps(schema)
    counted = any(keyword in text for keyword in ("minProperties", "maxProperties"))
    negating = any(keyword in text for keyword in ('"not"', '"if"', '"oneOf"'))
    return counted or (negating and any(k in text for k in ("roperties", "propertyNames")))


@pytest.mark.property
@pytest.mark.parametrize("rewriting", REWRITINGS.values(), ids=REWRITINGS)
def test_the_same_verdicts(rewriting: Rewriting) -> None:
    @examples(25, kept=0.3)
    @given(PLAIN, PLAIN, st.lists(VALUES, min_size=1, max_size=8))
    def run(one: Any, other: Any, values: list[Any]) -> None:
        left, right = rewriting(one, other)
        if _is_narrowed(left) or _is_narrowed(right):
            discard("a narrowing")
        taken, also = _accepts(left), _accepts(right)
        for value in values:
            assert taken(dumps(value)) == also(dumps(value)), (left, right, value)

    run()


_MEMBERS = ["properties", "patternProperties", "additionalProperties", "unevaluatedProperties"]


@pytest.mark.property
@pytest.mark.parametrize("rewriting", ["allOf of one", "not not", "a reference", "anyOf of itself", "nothing is both"])
def test_the_same_verdicts_on_what_is_evaluated(rewriting: str) -> None:
    negating = rewriting in ("not not", "nothing is both")
    left_out = ["minProperties", "maxProperties", *(_MEMBERS if negating else [])]  # see _is_narrowed
    strategy = evaluating(2020).map(lambda schema: without(schema, *left_out))

    @examples(40, kept=0.6)
    @given(strategy, st.lists(EVALUATED, min_size=2, max_size=10))
    def run(schema: Any, values: list[Any]) -> None:
        part = {key: value for key, value in schema.items() if key != "$defs"}
        left, right = REWRITINGS[rewriting](part, True)
        if _is_narrowed(left) or _is_narrowed(right):
            discard("a narrowing")
        definitions = schema["$defs"]
        taken = _accepts({**left, "$defs": definitions} if isinstance(left, dict) else left)
        also = _accepts({**right, "$defs": {**definitions, **right.get("$defs", {})}})
        for value in values:
            assert taken(dumps(value)) == also(dumps(value)), (left, right, value)

    run()


@pytest.mark.property
@pytest.mark.parametrize("rewriting", ["allOf of itself", "anyOf of itself", "an absorbed alternative", "items"])
def test_the_same_verdicts_on_unique_items(rewriting: str) -> None:
    @examples(40, kept=0.4)
    @given(
        UNIQUE, UNIQUE, st.lists(VALUES.flatmap(lambda v: st.sampled_from([[v, v], [v], v, [[v], [v]]])), max_size=8)
    )
    def run(one: Any, other: Any, values: list[Any]) -> None:
        left, right = REWRITINGS[rewriting](one, other)
        if _is_narrowed(left) or _is_narrowed(right):
            discard("a narrowing")
        taken, also = _accepts(left), _accepts(right)
        for value in values:
            assert taken(dumps(value)) == also(dumps(value)), (left, right, value)

    run()
