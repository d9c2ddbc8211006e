"""Bounds and divisors against decimal arithmetic."""

from __future__ import annotations

import json
import math
import re
from decimal import Decimal
from typing import Any

import jsonschema
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import grammarspec as gs
from tests.counting import discard, examples
from tests.frontends.json_schema.texts import acceptor

_WHOLE_SCIENTIFIC = re.compile(r"-?\d(?:\.(\d{1,16}))?[eE]\+?(\d+)\Z")
_PLAIN = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?\Z")
_SCIENTIFIC = re.compile(r"-?[1-9](?:\.\d+)?[eE](?:\+?0?\d+|-0?[1-9]\d*)\Z")

BOUNDS = st.one_of(
    st.integers(-40, 40),
    st.integers(-(10**18), 10**18),
    st.decimals(-200, 200, places=2),
    st.sampled_from([Decimal("1e-3"), Decimal("1E+5"), Decimal("-12e15"), Decimal("3E+17"), Decimal("0.05")]),
)
PLAIN = st.one_of(
    st.integers(-45, 45).map(str),
    st.integers(-(10**19), 10**19).map(str),
    st.decimals(-200, 200, places=2).map(lambda value: format(value, "f")),
    st.decimals(-2, 2, places=4).map(lambda value: format(value, "f")),
    st.sampled_from(["-0", "0.0", "-0.00", "0.050", "1.00"]),
)
SCIENTIFIC = st.builds(
    "{}{}{}{}{}{}".format,
    st.sampled_from(["", "-"]),
    st.integers(1, 9),
    st.sampled_from(["", ".5", ".25", ".0", ".99"]),
    st.sampled_from("eE"),
    st.sampled_from(["", "+", "-"]),
    st.sampled_from(["0", "1", "2", "05", "07", "16", "17", "18", "100", "307"]),
)


def _spelled(text: str, kind: str) -> bool:
    """Whether the text is among the documented spellings of bounded numbers."""
    if _PLAIN.match(text):
        return True
    if kind == "number":
        return bool(_SCIENTIFIC.match(text))
    match = _WHOLE_SCIENTIFIC.match(text)
    return match is not None and not match[2].startswith("0") and int(match[2]) >= 16


@examples(200)
@given(
    kind=st.sampled_from(["number", "integer"]),
    low=st.none() | st.tuples(BOUNDS, st.booleans()),
    high=st.none() | st.tuples(BOUNDS, st.booleans()),
    texts=st.lists(PLAIN | SCIENTIFIC, min_size=1, max_size=20),
)
@example(kind="number", low=(0, True), high=(0, False), texts=["0"])
def test_bounds(
    kind: str, low: tuple[int | Decimal, bool] | None, high: tuple[int | Decimal, bool] | None, texts: list[str]
) -> None:
    keywords = [f'"type": "{kind}"']
    if low is not None:
        keywords.append(f'"{"exclusiveMinimum" if low[1] else "minimum"}": {low[0]}')
    if high is not None:
        keywords.append(f'"{"exclusiveMaximum" if high[1] else "maximum"}": {high[0]}')
    schema = "{" + ", ".join(keywords) + "}"
    candidates = {*texts, *(format(Decimal(bound[0]), "f") for bound in (low, high) if bound is not None)}

    def satisfies(text: str) -> bool:
        value = Decimal(text)
        above = low is None or value > low[0] or (value == low[0] and not low[1])
        below = high is None or value < high[0] or (value == high[0] and not high[1])
        return above and below and (kind == "number" or value == value.to_integral_value())

    try:
        accepts = acceptor(schema)
    except gs.Unsatisfiable:
        assert not any(satisfies(text) for text in candidates)
        return
    for text in candidates:
        if accepts(text):
            assert satisfies(text), (schema, text)
        elif satisfies(text):
            assert not (low is None and high is None and kind == "number"), (schema, text)
            assert not _spelled(text, kind), (schema, text)


DIVISORS = st.sampled_from(["1", "2", "3", "4", "5", "6", "7", "8", "10", "12", "20", "25", "33", "100", "125", "300"])
FRACTIONS = st.sampled_from(["0.1", "0.01", "0.5", "0.25", "2.5", "1.5", "0.3", "0.05", "1.25", "0.125", "0.7"])


@examples(200, kept=0.7)
@given(
    kind=st.sampled_from(["number", "integer"]),
    wanted=st.lists(DIVISORS | FRACTIONS, max_size=2),
    unwanted=st.lists(DIVISORS | FRACTIONS, max_size=1),
    low=st.none() | st.integers(-50, 200),
    span=st.none() | st.integers(0, 500),
    excluded=st.lists(st.integers(-50, 200), max_size=3),
    numbers=st.lists(PLAIN, min_size=1, max_size=20),
)
def test_divisors(
    kind: str,
    wanted: list[str],
    unwanted: list[str],
    low: int | None,
    span: int | None,
    excluded: list[int],
    numbers: list[str],
) -> None:
    if not wanted and not unwanted:
        discard("no divisor")
    parts = [f'{{"multipleOf": {divisor}}}' for divisor in wanted]
    parts += [f'{{"not": {{"multipleOf": {divisor}}}}}' for divisor in unwanted]
    bounds = "" if low is None else f', "minimum": {low}'
    high = None if span is None or low is None else low + span
    bounds += "" if high is None else f', "maximum": {high}'
    bounds += f', "not": {{"enum": {excluded}}}' if excluded else ""
    schema = f'{{"type": "{kind}", "allOf": [{", ".join(parts)}]{bounds}}}'

    def satisfies(text: str) -> bool:
        value = Decimal(text)
        return (
            (kind == "number" or value == value.to_integral_value())
            and all(value % Decimal(divisor) == 0 for divisor in wanted)
            and not any(value % Decimal(divisor) == 0 for divisor in unwanted)
            and (low is None or value >= low)
            and (high is None or value <= high)
            and value not in excluded
        )

    try:
        accepts = acceptor(schema)
    except gs.UnsupportedFeature as error:
        discard(f"a refusal: {error.code}")
    except gs.Unsatisfiable:
        assert not any(map(satisfies, numbers))
        return
    for text in numbers:
        assert accepts(text) == satisfies(text), (schema, text)


@pytest.mark.parametrize(
    ("wanted", "unwanted", "bounds"),
    [
        ([33, 13], [6, 7, 8], {}),
        ([77, 44, 13], [429], {"exclusiveMaximum": -100_000}),
        ([77, 44, 13], [429], {"minimum": 300_300}),
        ([15, 7], [9, 8, 16], {"minimum": 1}),
        ([12], [8, 9, 10], {}),
        ([], [8, 12, 1024], {}),
        ([7], [], {"exclusiveMinimum": 0}),
        ([7], [5], {"minimum": 49}),
        ([3], [7], {"maximum": -51, "minimum": -70}),
        ([1001], [2, 3], {"minimum": 2_000_000}),
        ([6, 10], [4, 9, 25, 7], {"minimum": -9_000_000}),
    ],
    ids=str,
)
def test_many_divisors(wanted: list[int], unwanted: list[int], bounds: dict[str, int]) -> None:
    parts = [{"multipleOf": n} for n in wanted] + [{"not": {"multipleOf": n}} for n in unwanted]
    schema = {"type": "number", "allOf": parts, **bounds}
    accepts, validator = acceptor(schema), jsonschema.Draft202012Validator(schema)
    step = math.lcm(*wanted)
    edges = [0, *bounds.values()]
    numbers = {edge - edge % step + step * i for edge in edges for i in range(-40, 41)}
    numbers |= {edge + i for edge in edges for i in range(-30, 31)}
    assert [n for n in sorted(numbers) if accepts(str(n)) != validator.is_valid(n)] == []
    assert any(map(validator.is_valid, numbers))


def test_divisors_that_contradict_each_other() -> None:
    with pytest.raises(gs.Unsatisfiable):
        acceptor({"type": "integer", "multipleOf": 33, "not": {"multipleOf": 11}})


@pytest.mark.parametrize(
    ("schema", "accepted", "refused"),
    [
        ('{"maximum": 9007199254740993, "type": "integer"}', "9007199254740993", "9007199254740994"),
        ('{"minimum": 1e20, "type": "integer"}', "100000000000000000000", "99999999999999999999"),
        ('{"const": 9007199254740993}', "9007199254740993", "9007199254740992"),
        ('{"const": 0.1000000000000000055511151231257827}', "0.1000000000000000055511151231257827", "0.1"),
        ('{"multipleOf": 0.01, "type": "number"}', "0.07", "0.075"),
        ('{"minimum": -1.7976931348623157e308, "type": "number"}', "-1.7e+307", "-1" + "9" * 309),
        ('{"type": "integer", "multipleOf": 1e10}', "30000000000", "3000000000"),
        ('{"enum": [1.50]}', "1.50", "1.51"),
    ],
)
def test_exact_decimals(schema: str, accepted: str, refused: str) -> None:
    accepts = acceptor(schema)
    assert accepts(accepted)
    assert not accepts(refused)


def test_floats_of_a_dict_are_what_repr_writes() -> None:
    schema: dict[str, Any] = {"type": "number", "minimum": 0.1, "maximum": 0.3}
    accepts = acceptor(schema)
    assert accepts("0.1")
    assert accepts("0.3")
    assert not accepts("0.30000000000000001")
    assert acceptor(json.dumps(schema))("0.3")


def test_exclusive_bounds_of_draft_4() -> None:
    accepts = acceptor({"type": "integer", "minimum": 1, "exclusiveMinimum": True, "maximum": 3}, dialect="draft4")
    assert [n for n in "01234" if accepts(n)] == ["2", "3"]
    assert not accepts("2.0")  # in draft 4 this is a number, no integer
    assert not acceptor({"not": {"minimum": 1, "exclusiveMinimum": True}}, dialect="draft4")("2")
    assert acceptor({"not": {"minimum": 1, "exclusiveMinimum": True}}, dialect="draft4")("1")


def test_constants_with_an_exponent_as_written() -> None:
    accepts = acceptor('{"enum": [1e2, 2.50e30]}')
    assert all(map(accepts, ["1e2", "1e+2", "100", "100.0", "2.50e30", "2.5e+30"]))
    assert not accepts("1e3")


@pytest.mark.parametrize("value", ["1", "1.0", "1.5", "1e16", "-2.5e-7", "123456789012345678901234567890", "1e400"])
def test_constants_are_taken_as_json_writes_them(value: str) -> None:
    exact = json.loads(value, parse_float=Decimal)
    accepts = acceptor(f'{{"const": {value}}}')
    assert any(accepts(text) for text in (value, str(exact), str(exact).replace("E", "e")))
    if abs(exact) < 1e300:
        assert accepts(json.dumps(json.loads(value)))
