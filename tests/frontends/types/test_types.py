# ruff: noqa: UP007, UP045  (the old spellings of unions are tested, too)
"""Python types: whatever random choices write becomes a value of the type, and that value's JSON is in the language."""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import enum
import ipaddress
import json
import pathlib
import pickle
import random
import uuid
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable
from typing import Annotated, Any, Generic, Literal, NamedTuple, NewType, NotRequired, Optional, TypeVar, Union

import attrs
import msgspec
import pytest
from annotated_types import Ge, Gt, Le, Len, Lt, MultipleOf
from hypothesis import given
from hypothesis import strategies as st
from pydantic import (
    UUID4,
    AfterValidator,
    AliasChoices,
    AliasPath,
    AwareDatetime,
    Base64Bytes,
    BaseModel,
    Field,
    FilePath,
    HttpUrl,
    IPvAnyAddress,
    Json,
    NaiveDatetime,
    StringConstraints,
    TypeAdapter,
    ValidationError,
    create_model,
    field_validator,
)
from pydantic.types import PaymentCardNumber
from typing_extensions import TypeAliasType, TypedDict

import grammarspec as gs

T = TypeVar("T")


class Person(BaseModel):
    age: int
    name: str = "x"
    tags: list[str] = []


class Tree(BaseModel):
    value: int
    children: list[Tree] = []


class Box(BaseModel, Generic[T]):
    item: T


class Cat(BaseModel):
    kind: Literal["cat"]
    lives: int


class Dog(BaseModel):
    kind: Literal["dog"]
    name: str


class Bounded(BaseModel):
    share: float = Field(gt=0, lt=1)
    code: str = Field(pattern="^[A-Z]{3}$")
    parts: list[int] = Field(min_length=1, max_length=2)


class Open(BaseModel, extra="allow"):
    age: int


class Color(enum.Enum):
    RED = "r"
    GREEN = "g"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


class Mixed(enum.Enum):
    ONE = 1
    TWO = "two"


class Pairs(enum.Enum):
    NEAR = (0, 1)
    FAR = (0, 9)


@dataclasses.dataclass
class Point:
    x: int
    label: Optional[str] = None


class Movie(TypedDict):
    year: int
    title: NotRequired[str]


class Pair(NamedTuple):
    a: int
    b: str = "q"


class Struct(msgspec.Struct):
    a: int
    b: Annotated[str, msgspec.Meta(max_length=3)] = "x"
    day: datetime.date | None = None
    raw: bytes = b""


@attrs.define
class Attrs:
    a: int
    at: Annotated[datetime.datetime, msgspec.Meta(tz=True)] | None = None
    cost: decimal.Decimal = decimal.Decimal(0)


UserId = NewType("UserId", int)
Numbers = TypeAliasType("Numbers", list[int])

# Each type, and the class of its values where isinstance can tell.
TYPES: list[tuple[Any, Any]] = [
    (int, int), (float, float), (bool, bool), (str, str), (None, type(None)), (bytes, bytes), (Any, object),
    (datetime.date, datetime.date), (datetime.datetime, datetime.datetime), (datetime.time, datetime.time),
    (datetime.timedelta, datetime.timedelta), (AwareDatetime, datetime.datetime), (NaiveDatetime, datetime.datetime),
    (uuid.UUID, uuid.UUID), (decimal.Decimal, decimal.Decimal), (pathlib.Path, pathlib.Path),
    (ipaddress.IPv4Address, ipaddress.IPv4Address), (ipaddress.IPv6Address, ipaddress.IPv6Address),
    (ipaddress.IPv4Network, ipaddress.IPv4Network), (ipaddress.IPv4Interface, ipaddress.IPv4Interface),
    (dict[str, int], dict), (dict[int, str], dict), (dict[bool, int], dict), (dict[float, int], dict),
    (dict[datetime.date, int], dict), (dict[uuid.UUID, int], dict), (dict[Color, int], dict),
    (dict[Literal["a", "b"], int], dict), (dict[str, list[Person]], dict), (dict[Any, int], dict),
    (defaultdict[str, int], defaultdict), (Counter[str], Counter), (OrderedDict[str, int], OrderedDict),
    (tuple[int, str], tuple), (tuple[int, ...], tuple), (tuple[()], tuple), (list[int], list), (list[Point], list),
    (set[int], set), (frozenset[str], frozenset), (deque[int], deque), (set[tuple[int, bool]], set),
    (Literal[1, "a", None], object), (Literal["a", "b"], str), (Optional[int], object), (int | str, (int, str)),
    (Union[Person, None], (Person, type(None))), (list[int | None], list),
    (Annotated[Cat | Dog, Field(discriminator="kind")], (Cat, Dog)), (Person | Point, (Person, Point)),
    (Person, Person), (Tree, Tree), (Box[int], Box[int]), (Box[list[str]], Box[list[str]]), (Bounded, Bounded),
    (Open, Open), (Color, Color), (Level, Level), (Mixed, Mixed), (Point, Point), (Movie, dict), (Pair, Pair),
    (UserId, int), (Numbers, list), (Struct, Struct), (list[Struct], list), (Attrs, Attrs),
    (Annotated[int, Ge(3), Le(9)], int), (Annotated[float, Gt(0), Lt(1)], float), (Annotated[str, Len(2, 4)], str),
    (Annotated[list[int], Len(1, 3)], list), (Annotated[int, MultipleOf(5)], int),
    (Annotated[float, MultipleOf(0.5)], float), (Annotated[str, Field(pattern="^[a-z]+$")], str),
    (Annotated[decimal.Decimal, Field(max_digits=5, decimal_places=2)], decimal.Decimal),
    (Annotated[decimal.Decimal, Field(gt=0, le=100)], decimal.Decimal), (Annotated[set[int], Len(2, 3)], set),
    (Annotated[bytes, Len(2, 3)], bytes), (Annotated[dict[str, int], Len(1, 2)], dict),
    (Annotated[datetime.date, Ge(datetime.date(2019, 12, 30)), Lt(datetime.date(2020, 2, 1))], datetime.date),
    (HttpUrl, HttpUrl), (UUID4, uuid.UUID), (Base64Bytes, bytes),
    (IPvAnyAddress, (ipaddress.IPv4Address, ipaddress.IPv6Address)),
    (Annotated[str, StringConstraints(strip_whitespace=True)], str),
]  # fmt: skip
# What Pydantic writes otherwise than it is generated: decimals as texts, long spans with years, numbers with exponents.
REWRITTEN = (datetime.timedelta, dict[float, int], Annotated[float, MultipleOf(0.5)])

# Texts that are near those of a type, and not among them.
NEVER_WRITTEN: dict[Any, list[str]] = {
    Annotated[int, Ge(3), Le(9)]: ["2", "10", "3.5", '"5"'],
    Annotated[float, Gt(0), Lt(1)]: ["0", "1", "0.0"],
    Annotated[int, MultipleOf(5)]: ["3"],
    Annotated[list[int], Len(1, 3)]: ["[]", "[1, 2, 3, 4]"],
    Annotated[decimal.Decimal, Field(max_digits=5, decimal_places=2)]: ["1000", "1.234", "-1000"],
    Annotated[bytes, Len(2, 3)]: ['"é"', '"a"'],
    set[int]: ["[1, 1]", "[1, 1.0]"],
    dict[int, str]: ['{"a": "b"}', '{"1.5": "b"}'],
    datetime.date: ['"2023-02-29"', '"0000-01-01"', '"2024-13-01"'],
    Annotated[datetime.date, Ge(datetime.date(2019, 12, 30)), Lt(datetime.date(2020, 2, 1))]: [
        '"2019-12-29"',
        '"2020-02-01"',
        '"2030-01-01"',
    ],
    datetime.datetime: ['"2024-01-01T23:59:60Z"', '"2024-01-01 00:00:00"'],
    AwareDatetime: ['"2024-01-01T00:00:00"'],
    NaiveDatetime: ['"2024-01-01T00:00:00Z"'],
    ipaddress.IPv4Network: ['"10.0.0.1/24"', '"10.0.0.0/33"'],
    Person: ['{"age": 1, "other": 2}', "{}", '{"name": "a"}'],
    Bounded: ['{"share": 0.5, "code": "ab", "parts": [1]}'],
    Movie: ['{"title": "a"}', '{"year": 1, "other": 2}'],
    tuple[int, str]: ["[1]", '[1, "a", 2]'],
    Color: ["b", '"r"'],
    HttpUrl: ['"mailto:a@b.org"', '"http://"', '"http://a.b:99999"'],
    Base64Bytes: ['"a"', '"YQ="'],
    IPvAnyAddress: ['"localhost"', '"1.2.3"'],
    UUID4: ['"00000000-0000-1000-8000-000000000000"'],
    Annotated[str, StringConstraints(strip_whitespace=True)]: ['" a"', '"a\\n"'],
    Struct: ['{"a": 1, "b": "abcd"}', '{"a": 1, "day": "2023-02-29"}', '{"a": 1, "raw": "abc"}'],
}
UNSUPPORTED: list[Any] = [
    complex, type, Callable[[], int], ipaddress.IPv6Network, dict[tuple[int, int], str],
    msgspec.defstruct("At", [("at", datetime.datetime)]), msgspec.defstruct("Map", [("map", dict[int, int])]),
    Annotated[datetime.datetime, Ge(datetime.datetime(2020, 1, 1))],
    Annotated[decimal.Decimal, Field(max_digits=3)], Json[list[int]], FilePath, PaymentCardNumber, Pairs,
]  # fmt: skip


def _written(grammar: gs.Grammar[Any], seed: int) -> str:
    """A text by random choice among the allowed bytes, mostly those that JSON is made of."""
    rng, matcher, constraint = random.Random(seed), grammar.node.byte_constraint.matcher(), grammar.node.byte_constraint
    out = bytearray()
    while len(out) < 40:
        following, may_end = matcher.next_bytes()
        if not following or (may_end and rng.random() < 0.2):
            break
        usual = [byte for byte in following if chr(byte) in '{}[],:"0123456789truefalsn.-TZ']
        byte = rng.choice(usual if usual and rng.random() < 0.85 else following)
        assert matcher.accept_token(byte)
        out.append(byte)
    if not matcher.is_accepting:
        out += bytes(token for token in constraint.shortest_completion(matcher.state) if token < 256)
    return out.decode()


@pytest.mark.property
@pytest.mark.parametrize(("type_", "class_"), TYPES, ids=lambda value: repr(value)[:60])
def test_whatever_is_written_is_a_value(type_: Any, class_: Any) -> None:
    grammar, wider = gs.grammar(type_), gs.grammar(type_, numbers="any")

    @given(st.integers(0, 2**32))
    def run(seed: int) -> None:
        text = _written(grammar, seed)
        value = grammar.parse(text)
        assert isinstance(value, class_), text
        if type_ in (Struct, list[Struct], Attrs):
            again = msgspec.json.encode(value).decode()
        elif type_ in REWRITTEN or class_ is decimal.Decimal:
            return
        else:
            again = TypeAdapter(type_).dump_json(value).decode()
        unquoted = type_ in (str, bytes, Color, Literal["a", "b"])
        back = wider.parse(json.loads(again) if unquoted else again)
        assert back == value, (text, again)
        assert isinstance(back, class_)

    run()


@pytest.mark.parametrize(("type_", "refused"), NEVER_WRITTEN.items(), ids=lambda value: repr(value)[:60])
def test_constraints_hold_while_generating(type_: Any, refused: list[str]) -> None:
    grammar = gs.grammar(type_)
    assert [text for text in refused if grammar.matches(text)] == []


def test_texts_at_the_top_level_have_no_quotes() -> None:
    assert gs.grammar(str).parse("a\nb") == "a\nb"
    assert gs.grammar(Color).parse("r") is Color.RED
    assert gs.grammar(Literal["yes", "no"]).parse("no") == "no"
    assert gs.grammar(list[Color]).parse('["g"]') == [Color.GREEN]


def test_types_that_take_others_do() -> None:
    assert gs.grammar(Open).parse('{"age": 1, "other": 2}').model_extra == {"other": 2}
    assert gs.grammar(Person, additional_properties=True).matches('{"age": 1, "other": 2}')
    assert gs.grammar(Person, property_order="any").parse('{"name": "a", "age": 1}') == Person(age=1, name="a")


@pytest.mark.parametrize("type_", UNSUPPORTED, ids=lambda value: repr(value)[:60])
def test_what_cannot_be_enforced_is_refused(type_: Any) -> None:
    with pytest.raises(gs.UnsupportedFeature, match="the type"):
        gs.grammar(type_)


LATE = Annotated[datetime.datetime, Field(ge=datetime.datetime(2020, 1, 1), description="late")]


@pytest.mark.parametrize(
    ("type_", "name"),
    [
        (LATE, "datetime"),
        (list[LATE], "list[datetime.datetime]"),
        (Annotated[list["Unknown"], Len(1)], "Annotated[list['Unknown'], Len(min_length=1, max_length=None)]"),  # type: ignore[name-defined] # noqa: F821
    ],
)
def test_refused_types_have_short_names(type_: Any, name: str) -> None:
    with pytest.raises(gs.UnsupportedFeature) as caught:
        gs.grammar(type_)
    assert caught.value.where == f"the type {name}"


def test_aliases_are_names() -> None:
    choices = AliasChoices(AliasPath("b", "c"), "d")
    model: Any = create_model("Choice", a=(int, Field(validation_alias=choices)))
    assert gs.grammar(model).parse('{"d": 1}').a == 1
    for path in (AliasPath("b", "c"), AliasChoices(AliasPath("b", 0))):
        with pytest.raises(gs.UnsupportedFeature, match=r"at Path\.a"):
            gs.grammar(create_model("Path", a=(int, Field(1, validation_alias=path))))
    with pytest.raises(gs.UnsupportedFeature, match=r"at Keys\.a"):
        gs.grammar(TypedDict("Keys", {"a": Annotated[int, Field(validation_alias=AliasPath("b", "c"))]}))


def test_validators_of_ones_own_run_afterwards() -> None:
    def even(value: int) -> int:
        if value % 2:
            raise ValueError("odd")
        return value

    grammar = gs.grammar(Annotated[int, AfterValidator(even)])
    assert grammar.parse("4") == 4
    with pytest.raises(ValidationError, match="odd"):
        grammar.parse("3")


def test_grammars_of_types_are_values() -> None:
    grammar = gs.grammar(Person)
    assert repr(grammar) == "gs.grammar(Person)"
    assert repr(gs.grammar(list[int])) == "gs.grammar(list[int])"
    assert gs.grammar(grammar) is grammar
    assert gs.grammar(Person) == grammar != gs.grammar(Point)
    assert pickle.loads(pickle.dumps(grammar)).parse('{"age": 3}') == Person(age=3)
    people = ("- " + grammar.named("person") + "\n").repeat(1)
    assert people.match('- {"age": 1}\n- {"age": 2}\n').captures["person"] == [Person(age=1), Person(age=2)]


def test_checked() -> None:
    class Even(BaseModel):
        number: Annotated[int, Ge(0)]

        @field_validator("number")
        @classmethod
        def even(cls, number: int) -> int:
            return number

    report = gs.check(Even)
    assert report.ok
    assert {entry.pointer: entry.verdict for entry in report.entries}["#/properties/number/minimum"] == "narrowed"
    assert report.notes[-1].startswith("validated when whole: ") and report.notes[-1].endswith("Even.even")
    (refused,) = gs.check(complex).of("refused")
    assert (refused.pointer, refused.detail) == ("the type complex", "complex numbers, which JSON has not")
