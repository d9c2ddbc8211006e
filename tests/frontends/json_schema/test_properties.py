"""Random schemas against python-jsonschema.

Nothing that it refuses may be accepted; what it accepts must be accepted in some order of members (the order of
properties is a documented narrowing); and whatever the automaton writes must satisfy it.
"""

from __future__ import annotations

import json
import random
import re
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

import grammarspec as gs
from tests.counting import discard, examples
from tests.frontends.json_schema.judges import is_valid, satisfies
from tests.frontends.json_schema.schemas import (
    DRAFTS,
    EVALUATED,
    REPEATING,
    UNIQUE,
    VALUES,
    dynamic,
    evaluating,
    schemas,
    without,
)
from tests.frontends.json_schema.texts import BYTES, dumps, orders, walk

# What random schemas may run into. Each has its own test that the refusal is right.
REFUSALS = (gs.UnsupportedFeature, gs.LimitExceeded)


def _compiled(schema: Any, **options: Any) -> gs.Constraint | None:
    try:
        return gs.compile(gs.json_schema(schema, **options), BYTES, limits=gs.Limits(max_steps=5_000_000))
    except gs.Unsatisfiable:
        return None
    except REFUSALS as error:
        discard(f"a refusal: {error.code}")
    except gs.GrammarSyntaxError as error:
        if "without entering the value" in str(error):
            discard("a schema that refers to itself")
        raise


def _accepts(constraint: gs.Constraint | None, value: Any) -> bool:
    if constraint is None:
        return False
    data = dumps(value).encode()
    matcher = constraint.matcher()
    return matcher.accept_tokens(list(data)) == len(data) and matcher.is_accepting


def _is_narrowed(schema: Any, value: Any) -> bool:
    """Whether a valid value may be one that is not written.

    Members whose names are few count once altogether, and inside ``not`` items are never repeated to fail uniqueItems.
    """
    said = json.dumps(schema)
    counts = "minProperties" in said or ("maxProperties" in said and bool(re.search('"(not|if|oneOf)"', said)))
    few = bool(re.search('"(propertyNames|patternProperties|additionalProperties|unevaluatedProperties)"', said))
    return (counts and few) or ("uniqueItems" in said and _repeats(value))


def _repeats(value: Any) -> bool:
    """Whether some array in the value has equal items."""
    if isinstance(value, dict):
        return any(map(_repeats, value.values()))
    if not isinstance(value, list):
        return False
    return not jsonschema.Draft202012Validator({"uniqueItems": True}).is_valid(value) or any(map(_repeats, value))


def _check_verdicts(schema: Any, values: list[Any], year: int) -> None:
    """Some spelling of each valid value is accepted, and none of any other value."""
    declared = _compiled(schema, dialect=DRAFTS[year])
    any_order = _compiled(schema, dialect=DRAFTS[year], property_order="any")
    for value in values:
        if not is_valid(schema, value, year):
            assert not _accepts(declared, value), (schema, value)
            assert not _accepts(any_order, value), (schema, value)
        elif not _is_narrowed(schema, value):
            assert any(_accepts(declared, order) for order in orders(value)), (schema, value)
            assert any(_accepts(any_order, order) for order in orders(value)), (schema, value)


def _judged(strategy: st.SearchStrategy[Any], year: int) -> st.SearchStrategy[Any]:
    """Schemas without the keyword that the judge of a draft reads otherwise; see judges.py."""
    return strategy.map(lambda schema: without(schema, "unevaluatedItems")) if year == 2019 else strategy


@pytest.mark.property
@pytest.mark.parametrize("year", DRAFTS)
def test_verdicts(year: int) -> None:
    @examples(120, kept=0.7)
    @given(_judged(schemas(year), year), st.lists(VALUES, min_size=1, max_size=8))
    def run(schema: Any, values: list[Any]) -> None:
        _check_verdicts(schema, values, year)

    run()


@pytest.mark.property
@pytest.mark.parametrize("year", [2019, 2020])
def test_verdicts_of_dynamic_references(year: int) -> None:
    @examples(60, kept=0.7)
    @given(_judged(dynamic(year), year), st.lists(VALUES, min_size=1, max_size=8))
    def run(schema: Any, values: list[Any]) -> None:
        _check_verdicts(schema, values, year)

    run()


@pytest.mark.property
@pytest.mark.parametrize("year", [2019, 2020])
def test_verdicts_on_what_is_evaluated(year: int) -> None:
    @examples(60, kept=0.7)
    @given(_judged(evaluating(year), year), st.lists(EVALUATED, min_size=4, max_size=14))
    def run(schema: Any, values: list[Any]) -> None:
        _check_verdicts(schema, values, year)

    run()


@examples(120, kept=0.7)
@given(UNIQUE, st.lists(REPEATING, min_size=4, max_size=12))
def test_verdicts_on_unique_items(schema: Any, values: list[Any]) -> None:
    _check_verdicts(schema, values, 2020)


WALKED = {
    **{f"draft {year}": (_judged(schemas(year), year), year) for year in DRAFTS},
    "dynamic": (dynamic(2020), 2020),
    "evaluating": (evaluating(2020), 2020),
    "unique": (UNIQUE, 2020),
}


@pytest.mark.property
@pytest.mark.parametrize("kind", WALKED)
def test_whatever_is_written_satisfies_the_schema(kind: str) -> None:
    strategy, year = WALKED[kind]

    @examples(60, kept=0.5)
    @given(strategy, st.sampled_from(["declared", "any"]), st.integers(0, 2**32), st.sampled_from([5, 20, 60]))
    def run(schema: Any, order: str, seed: int, length: int) -> None:
        constraint = _compiled(schema, whitespace="compact", dialect=DRAFTS[year], property_order=order)
        if constraint is None:
            discard("an empty language")
        try:
            text = walk(constraint, random.Random(seed), length).decode()
        except gs.LimitExceeded:  # the search for the shortest way to an end has a budget
            discard("a limit of the search for an end")
        if re.search("[\u2028\u2029]|\\\\[nr]", text):
            discard("a line end, which the judge's patterns see otherwise")
        assert satisfies(schema, text, year), (schema, text)

    run()


@examples(200)
@given(VALUES)
def test_a_constant_accepts_itself_in_every_layout(value: Any) -> None:
    constraint = gs.compile(gs.json_schema({"const": value}), BYTES)
    compact = gs.compile(gs.json_schema({"const": value}, whitespace="compact"), BYTES)
    for layout in ({}, {"indent": 2}, {"indent": 4}, {"indent": "\t"}, {"separators": (",", ":")}):
        data = list(json.dumps(value, ensure_ascii=False, **layout).encode())
        matcher = constraint.matcher()
        assert matcher.accept_tokens(data) == len(data)
        assert matcher.is_accepting
    matcher = compact.matcher()
    data = list(json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode())
    assert matcher.accept_tokens(data) == len(data)
    assert matcher.is_accepting
