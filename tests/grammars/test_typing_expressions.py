"""What type checkers make of types among grammars, of ``gs.types`` and of ``gs.schema``; mypy reads this file, too."""

from __future__ import annotations

import datetime
from ipaddress import IPv4Address
from typing import Any, Literal, NamedTuple, assert_type
from uuid import UUID

from pydantic import BaseModel
from typing_extensions import TypedDict

import grammarspec as gs


class Day(NamedTuple):
    day: int


def test_types_among_grammars() -> None:
    word = gs.regex("[a-z]+")
    number = gs.regex("[0-9]+").map(int)
    assert_type(word + int, gs.Grammar[str])
    assert_type(int + word, gs.Grammar[str])
    assert_type(word | int, gs.Grammar[str | int])
    assert_type(word | list[int], gs.Grammar[str | list[int]])
    assert_type(number & str, gs.Grammar[int])
    assert_type(word.repeat(sep=int), gs.Grammar[list[str]])
    assert_type(number | Day | int, gs.Grammar[int | Day])
    assert_type(gs.grammar(int) | word, gs.Grammar[int | str])
    assert_type(word | gs.grammar(Literal["a"] | None), gs.Grammar[str | None])


def test_primitives() -> None:
    assert_type(gs.types.integer(ge=0), gs.Grammar[int])
    assert_type(gs.types.number(), gs.Grammar[float])
    assert_type(gs.types.boolean(), gs.Grammar[bool])
    assert_type(gs.types.string(max_length=3), gs.Grammar[str])
    assert_type(gs.types.date(), gs.Grammar[datetime.date])
    assert_type(gs.types.time(), gs.Grammar[datetime.time])
    assert_type(gs.types.datetime(aware=True), gs.Grammar[datetime.datetime])
    assert_type(gs.types.uuid(), gs.Grammar[UUID])
    assert_type(gs.types.ipv4(), gs.Grammar[IPv4Address])
    assert_type(gs.types.email(), gs.Grammar[str])
    assert_type("on " + gs.types.date(), gs.Grammar[str])


@gs.schema
class Plain:
    name: str
    age: int = 0


@gs.schema(whitespace="compact")
class Compact:
    name: str
    friend: Plain | None = None


@gs.schema(whitespace="compact")
class Model(BaseModel):
    name: str


@gs.schema
class Movie(TypedDict):
    year: int


def test_schemas() -> None:
    assert_type(Plain("Ada", 3), Plain)
    assert_type(Plain("Ada").name, str)
    assert_type(Compact(name="Ada", friend=Plain("Bob")).friend, Plain | None)
    assert_type(Model(name="Ada"), Model)
    assert_type(gs.grammar(Plain), gs.Grammar[Plain])
    assert_type(gs.grammar(Compact).parse('{"name":"a"}'), Compact)
    assert_type(gs.grammar(Movie), gs.Grammar[Movie])
    assert_type(gs.grammar(Plain) | Compact, gs.Grammar[Plain | Compact])


def test_wrong_arguments() -> None:
    def never(word: gs.Grammar[Any]) -> None:
        Plain(1)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
        Plain()  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
        word + 5  # type: ignore[operator]  # pyright: ignore[reportOperatorIssue, reportUnusedExpression]

    assert callable(never)
