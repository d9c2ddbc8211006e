"""Random schemas against python-jsonschema.

Nothing that it refuses may be accepted; what it accepts must be accepted in some order of members (the order of
properties is a documented narrowing); and whatever the automaton writes must satisfy it.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator
from decimal import Decimal, InvalidOperation, localcontext
from typing import Any

import jsonschema
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from json_schema.schemas import SCHEMAS, VALUES
from json_schema.texts import BYTES, dumps, orders, walk

import grammarspec as gs

# What random schemas may run into. Each has its own test that the refusal is right.
REFUSALS = (gs.UnsupportedFeature, gs.LimitExceeded)


def _compiled(schema: Any, **options: Any) -> gs.Constraint | None:
    try:
        return gs.compile(gs.json_schema(schema, **options), BYTES)
    except gs.Unsatisfiable:
        return None
    except REFUSALS:
        assume(False)
        raise


def _accepts(constraint: gs.Constraint | None, value: Any) -> bool:
    if constraint is None:
        return False
    data = dumps(value).encode()
    matcher = constraint.matcher()
    return matcher.accept_tokens(list(data)) == len(data) and matcher.is_accepting


def _pattern(validator: Any, pattern: str, instance: Any, schema: Any) -> Iterator[jsonschema.ValidationError]:
    """``pattern`` as ECMA-262 reads the few patterns of these tests, where Python's ``re`` differs."""
    python = pattern.replace("$", r"\Z").replace(".", "[^\n\r\u2028\u2029]")
    if isinstance(instance, str) and not re.search(python, instance):
        yield jsonschema.ValidationError(f"{instance!r} does not match {pattern!r}")


_Validator = jsonschema.validators.extend(jsonschema.Draft202012Validator, {"pattern": _pattern})


def _validator(schema: Any) -> Any:
    return _Validator(schema)


@settings(max_examples=400)
@given(SCHEMAS, st.lists(VALUES, min_size=1, max_size=8))
def test_verdicts(schema: Any, values: list[Any]) -> None:
    constraint = _compiled(schema)
    validator = _validator(schema)
    for value in values:
        valid = validator.is_valid(value)
        if not valid:
            assert not _accepts(constraint, value), (schema, value)
        elif not ("uniqueItems" in json.dumps(schema) and _repeats(value)):  # to fail it is never written inside not
            assert any(_accepts(constraint, order) for order in orders(value)), (schema, value)


@settings(max_examples=400)
@given(SCHEMAS, st.lists(VALUES, min_size=1, max_size=8))
def test_verdicts_in_any_order(schema: Any, values: list[Any]) -> None:
    constraint = _compiled(schema, property_order="any")
    validator = _validator(schema)
    for value in values:
        if not validator.is_valid(value):
            assert not _accepts(constraint, value), (schema, value)
        elif not ("uniqueItems" in json.dumps(schema) and _repeats(value)):
            assert any(_accepts(constraint, order) for order in orders(value)), (schema, value)


def _repeats(value: Any) -> bool:
    """Whether some array in the value has equal items."""
    if isinstance(value, dict):
        return any(map(_repeats, value.values()))
    if not isinstance(value, list):
        return False
    return not jsonschema.Draft202012Validator({"uniqueItems": True}).is_valid(value) or any(map(_repeats, value))


def _number(text: str) -> int | Decimal:
    """Exactly the number; whole ones as ``int``, the only kind that python-jsonschema takes for an integer."""
    value = Decimal(text)
    return int(value) if abs(value.adjusted()) < 900 and value == value.to_integral_value() else value


@settings(max_examples=300)
@given(SCHEMAS, st.integers(0, 2**32), st.sampled_from([5, 20, 60]))
def test_whatever_is_written_satisfies_the_schema(schema: Any, seed: int, length: int) -> None:
    constraint = _compiled(schema, whitespace="compact")
    assume(constraint is not None)
    assert constraint is not None
    try:
        text = walk(constraint, random.Random(seed), length).decode()
    except gs.LimitExceeded:  # the search for the shortest way to an end has a budget
        assume(False)
    assume(not re.search("[\u2028\u2029]|\\\\[nr]", text))  # line ends, which Python's patterns see otherwise
    exact = json.loads(json.dumps(schema), parse_float=Decimal)
    with localcontext(prec=1000):
        try:
            valid = _validator(exact).is_valid(json.loads(text, parse_float=_number))
        except InvalidOperation:  # an exponent that Decimal has no room for
            assume(False)
        assert valid, (schema, text)


@settings(max_examples=200)
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
