"""``@gs.schema``: what it makes of which classes, and which options hold."""

from __future__ import annotations

import dataclasses
import enum
from typing import Any, NamedTuple

import attrs
import msgspec
import pydantic
import pytest
from typing_extensions import TypedDict

import grammarspec as gs


@gs.schema
class City:
    name: str
    people: int = 0
    tags: list[str] = dataclasses.field(default_factory=list)


def test_plain_classes_become_dataclasses() -> None:
    assert City("Oslo") == City(name="Oslo", people=0, tags=[])
    assert gs.grammar(City).parse('{"name": "Oslo", "people": 3}') == City("Oslo", 3)
    assert not gs.grammar(City).matches('{"people": 3}')


def test_subclasses_are_dataclasses_of_their_own() -> None:
    @gs.schema
    class Capital(City):
        country: str = "?"

    assert gs.grammar(Capital).parse('{"name": "Oslo", "country": "Norway"}') == Capital("Oslo", country="Norway")


class Pydantic(pydantic.BaseModel):
    a: int


@dataclasses.dataclass(frozen=True)
class Data:
    a: int


@pydantic.dataclasses.dataclass
class PydanticData:
    a: int


class Dict(TypedDict):
    a: int


class Tuple(NamedTuple):
    a: int


class Struct(msgspec.Struct):
    a: int


@attrs.define
class Attrs:
    a: int


class Color(enum.Enum):
    RED = 1


@pytest.mark.parametrize("class_", [Pydantic, Data, PydanticData, Dict, Tuple, Struct, Attrs, Color])
def test_other_classes_stay_as_they_are(class_: Any) -> None:
    before = gs.grammar(class_)
    names = set(vars(class_))
    assert gs.schema(class_) is class_
    assert gs.schema(whitespace="compact")(class_) is class_
    assert set(vars(class_)) - names == {"__grammarspec_options__"}
    after = gs.grammar(class_)
    text = before.sample(1)
    assert after.parse("".join(text.split())) == before.parse(text)


@gs.schema(whitespace="compact", property_order="any")
class Pair:
    a: int
    b: int = 0


def test_options_hold_where_the_class_is_asked_for() -> None:
    assert gs.grammar(Pair).parse('{"b":1,"a":2}') == Pair(2, 1)
    assert not gs.grammar(Pair).matches('{"a": 2}')
    assert gs.grammar(list[Pair]).matches('[{"a": 2}]')
    assert repr(gs.grammar(Pair)) == "gs.grammar(Pair, whitespace='compact', property_order='any')"


def test_options_of_the_call_go_before() -> None:
    assert gs.grammar(Pair, whitespace="flexible").parse('{"b": 1, "a": 2}') == Pair(2, 1)


def test_options_are_not_inherited() -> None:
    class Triple(Pair):
        pass

    assert gs.grammar(Triple).matches('{"a": 2}')


def test_wrong_options_are_refused_at_once() -> None:
    with pytest.raises(TypeError, match="whitspace"):
        gs.schema(whitspace="compact")
    with pytest.raises(ValueError, match="whitespace"):
        gs.schema(whitespace="none")
    with pytest.raises(ValueError, match="dialect must be one of"):
        gs.schema(dialect="draft3")
    with pytest.raises(TypeError, match="decorates a class, not 5"):
        gs.schema(5)  # type: ignore[call-overload]
