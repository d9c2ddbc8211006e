# ruff: noqa: UP045  (the old spelling of unions is tested, too)
"""``gs.types``, and Python types as operands: what they describe, and what is refused."""

from __future__ import annotations

import datetime
import ipaddress
import pickle
import re
import uuid
from functools import partial
from typing import Annotated, Any, Literal, NewType, Optional

import pytest
from annotated_types import Ge, Le
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel
from typing_extensions import TypeAliasType

import grammarspec as gs
from grammarspec.frontends.types.dates import dates
from grammarspec.frontends.types.report import check_target


class Person(BaseModel):
    age: int


Age = NewType("Age", int)
Ages = TypeAliasType("Ages", list[int])
WORD = gs.regex("[a-z]+")


# ---------------------------------------------------------------------- operators
@pytest.mark.parametrize(
    "type_",
    [
        int,
        str,
        Person,
        list[int],
        int | bool,
        None,
        Optional[int],
        Annotated[int, Ge(3)],
        Literal["a", "b"],
        Age,
        Ages,
        Any,
    ],
    ids=repr,
)
def test_types_are_operands(type_: Any) -> None:
    alone = gs.grammar(type_)
    assert WORD + type_ == WORD + alone
    assert type_ + WORD == alone + WORD
    assert WORD | type_ == WORD | alone
    assert gs.grammar(type_ | WORD).matches("word")  # a Grammar at once, but for the forms of typing
    assert WORD.repeat(sep=type_) == WORD.repeat(sep=alone)
    assert WORD & str == WORD & gs.grammar(str)
    assert str & WORD == gs.grammar(str) & WORD


def test_what_they_mean() -> None:
    assert (WORD | int).parse("12") == 12
    assert (int | WORD).parse("no") == "no"
    assert ("Person: " + gs.grammar(Person).named("who")).match('Person: {"age": 3}').captures == {"who": Person(age=3)}
    assert (gs.regex("never|always") | Person).parse('{"age": 3}') == Person(age=3)


def test_unions_that_hold_grammars() -> None:
    united = Literal["no"] | WORD
    assert not isinstance(united, gs.Grammar)  # typing has made a Union of its own
    assert gs.grammar(united) == gs.grammar(Literal["no"]) | WORD
    assert WORD + united == WORD + gs.grammar(united)
    assert gs.grammar(Optional[WORD]).parse("null") == "null"  # the first alternative that fits
    assert gs.grammar(Optional[gs.literal("x")]).parse("null") is None
    with pytest.raises(gs.UnsupportedFeature, match="the type has no JSON"):
        gs.grammar(list[united])


@pytest.mark.parametrize("value", [5, 1.5, b"a", ["a"], print])
def test_values_are_no_operands(value: Any) -> None:
    for operation in (lambda: WORD + value, lambda: value + WORD, lambda: WORD | value, lambda: value & WORD):
        with pytest.raises(TypeError, match=r"unsupported operand|can only concatenate|can't concat"):
            operation()
    with pytest.raises(TypeError, match="expected a grammar, a text or a type, not"):
        WORD.repeat(sep=value)


# ---------------------------------------------------------------------- primitives
CLASSES = {
    "boolean": bool, "date": datetime.date, "datetime": datetime.datetime, "email": str, "hostname": str,
    "integer": int, "ipv4": ipaddress.IPv4Address, "ipv6": ipaddress.IPv6Address, "number": float, "string": str,
    "time": datetime.time, "uri": str, "uuid": uuid.UUID,
}  # fmt: skip


@pytest.mark.parametrize("name", gs.types.__all__)
def test_whatever_is_written_is_a_value(name: str) -> None:
    make = getattr(gs.types, name)
    grammar = make()
    for seed in range(50):
        assert type(grammar.parse(grammar.sample(seed, max_bytes=30))) is CLASSES[name]
    assert repr(grammar) == f"gs.types.{name}()"
    assert make() == grammar == pickle.loads(pickle.dumps(grammar))


@pytest.mark.property
@pytest.mark.parametrize("name", ["uuid", "ipv4", "ipv6", "email", "hostname", "uri"])
def test_formats_are_those_of_json_schema(name: str) -> None:
    plain, quoted = getattr(gs.types, name)(), gs.json_schema({"type": "string", "format": name})

    @given(st.integers(0, 2**32), st.integers(0, 40), st.sampled_from(["", "!", ".", "0", "ä"]))
    def run(seed: int, at: int, extra: str) -> None:
        text = plain.sample(seed, max_bytes=30)
        text = text[:at] + extra + text[at:]
        json_text = '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
        assert plain.matches(text) == quoted.matches(json_text)

    run()


@pytest.mark.parametrize(
    ("grammar", "values", "refused"),
    [
        (gs.types.integer(ge=-1, lt=11), {"-1": -1, "10": 10}, ["11", "-2", "1.0", "01", "+1", '"1"']),
        (gs.types.integer(multiple_of=5), {"-15": -15, "0": 0}, ["1", "51"]),
        (gs.types.number(gt=0, le=1.5), {"1.5": 1.5, "1": 1.0, "0.25": 0.25}, ["0", "1.51", "1e0", ".5"]),
        (gs.types.boolean(), {"true": True, "false": False}, ["True", "1"]),
        (gs.types.string(max_length=2), {'""': "", '"a\\""': 'a"'}, ["", "ab", '"abc"']),
        (gs.types.string(min_length=1, pattern="^[ab]*$"), {'"ab"': "ab"}, ['""', '"c"']),
        (
            gs.types.date(gt=datetime.date(2023, 12, 31), le=datetime.date(2024, 2, 29)),
            {"2024-01-01": datetime.date(2024, 1, 1), "2024-02-29": datetime.date(2024, 2, 29)},
            ["2023-12-31", "2024-03-01", "2024-02-30", "2024-1-1"],
        ),
        (
            gs.types.time(aware=False),
            {"12:00:00.5": datetime.time(12, 0, 0, 500_000)},
            ["12:00:00Z", "24:00:00", "12:00"],
        ),
        (
            gs.types.datetime(aware=True),
            {"2024-01-01T00:00:00Z": datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC)},
            ["2024-01-01T00:00:00", "2024-01-01 00:00:00Z", "0000-01-01T00:00:00Z"],
        ),
    ],
    ids=repr,
)  # fmt: skip
def test_bounds_of_primitives(grammar: gs.Grammar[Any], values: dict[str, Any], refused: list[str]) -> None:
    assert {text: grammar.parse(text) for text in values} == values
    assert [text for text in refused if grammar.matches(text)] == []
    assert eval(repr(grammar), {"gs": gs, "datetime": datetime}) == grammar


def test_bounds_without_members() -> None:
    with pytest.raises(gs.Unsatisfiable):
        gs.compile(gs.types.integer(gt=3, lt=4), gs.Vocabulary.bytes())
    with pytest.raises(gs.Unsatisfiable):
        gs.compile(gs.types.date(gt=datetime.date.max), gs.Vocabulary.bytes())


# ---------------------------------------------------------------------- dates
NEAR = st.integers(-400, 400).map(datetime.timedelta)
DATES = st.dates(datetime.date(2, 3, 1), datetime.date(9998, 3, 1)) | st.sampled_from(
    [datetime.date(1999, 12, 31), datetime.date(2000, 1, 1), datetime.date(2024, 2, 29), datetime.date(9990, 1, 9)]
)


@given(DATES, NEAR | st.just(datetime.timedelta(0)), st.sampled_from(["ge", "gt", "le", "lt"]))
def test_patterns_of_dates_are_their_order(bound: datetime.date, away: datetime.timedelta, name: str) -> None:
    day = bound + away
    within = {"ge": day >= bound, "gt": day > bound, "le": day <= bound, "lt": day < bound}[name]
    matches = partial(re.fullmatch, dates(**{name: bound}))
    assert bool(matches(day.isoformat())) == within
    assert not matches(day.isoformat() + "0")


@given(DATES, NEAR, st.integers(0, 2**32))
def test_dates_between_bounds(first: datetime.date, away: datetime.timedelta, seed: int) -> None:
    first, last = sorted((first, first + away))
    grammar = gs.grammar(Annotated[datetime.date, Ge(first), Le(last)])
    assert first <= grammar.parse(grammar.sample(seed)) <= last
    for day, within in ((first, True), (last, True), (last + datetime.timedelta(1), False)):
        assert grammar.matches(f'"{day}"') == within


def test_reports_are_about_types_and_schemas() -> None:
    of_type, of_schema = check_target(list[int]), check_target(gs.json_schema({"minimum": 3}))
    assert of_type is not None and of_type.ok
    assert of_schema is not None and [entry.keyword for entry in of_schema.entries] == ["minimum"]
    assert check_target(gs.json_schema({"minimum": 3}) | "none") is None
    assert check_target(gs.regex("a")) is None
