"""Every public type of Pydantic and of annotated_types: what is written validates, or the type is refused."""

from __future__ import annotations

import datetime
import enum
import ipaddress
import json
import math
import re
import sys
import uuid
from collections import Counter
from collections.abc import Hashable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from importlib.util import find_spec
from typing import Annotated, Any, Literal, Optional

import annotated_types as at
import msgspec
import pydantic
import pydantic.networks
import pydantic.types
import pytest
from pydantic import BaseModel, ConfigDict, StringConstraints, TypeAdapter
from pydantic_core import core_schema
from pydantic_extra_types.country import CountryAlpha2
from pydantic_extra_types.currency_code import Currency

import grammarspec as gs
from grammarspec.errors import UnsupportedType
from grammarspec.frontends.types import texts_of_formats
from grammarspec.frontends.types.adapters import known_adapter
from tests.tiers import draws, some


class Pairs(enum.Enum):
    A = (1, 2)
    B = (3, 4)


class Stripped(str):
    """A type of the kind that libraries have: it validates in a function of its own."""

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> Any:
        return core_schema.no_info_after_validator_function(cls.check, core_schema.str_schema())

    @classmethod
    def check(cls, value: str) -> str:
        if value != "one of few":
            raise ValueError("another text")
        return value


class Hexadecimal(BaseModel):
    model_config = ConfigDict(val_json_bytes="hex")
    data: bytes


class Base64(BaseModel):
    model_config = ConfigDict(val_json_bytes="base64")
    data: bytes


# What is no type by itself, or only with arguments: an example of its use.
USES: dict[str, Any] = {
    "Strict": Annotated[int, pydantic.Strict()],
    "conbytes": pydantic.conbytes(min_length=2, max_length=4),
    "conlist": pydantic.conlist(int, min_length=1, max_length=3),
    "conset": pydantic.conset(int, min_length=1, max_length=3),
    "confrozenset": pydantic.confrozenset(int, min_length=1, max_length=3),
    "constr": pydantic.constr(strip_whitespace=True, to_upper=True, min_length=1, max_length=4),
    "conint": pydantic.conint(gt=3, le=12, multiple_of=3),
    "confloat": pydantic.confloat(gt=3, le=12),
    "condecimal": pydantic.condecimal(gt=0, max_digits=4, decimal_places=2),
    "condate": pydantic.condate(ge=datetime.date(2020, 1, 1)),
    "Secret": pydantic.Secret[int],
    "AllowInfNan": Annotated[float, pydantic.AllowInfNan()],
    "EncodedBytes": Annotated[bytes, pydantic.EncodedBytes(encoder=pydantic.Base64Encoder)],
    "EncodedStr": Annotated[str, pydantic.EncodedStr(encoder=pydantic.Base64Encoder)],
    "Base64Encoder": pydantic.Base64Str,
    "StringConstraints": Annotated[str, StringConstraints(strip_whitespace=True, to_lower=True)],
    "Json": pydantic.Json[list[int]],
    "ImportString": pydantic.ImportString[Any],
    "Tag": Annotated[Annotated[int, pydantic.Tag("i")] | Annotated[str, pydantic.Tag("s")],
                     pydantic.Discriminator(lambda value: "i" if isinstance(value, int) else "s")],
    "Discriminator": list[Annotated[int, pydantic.Field(description="none is needed")]],
    "GetPydanticSchema": Annotated[int, pydantic.GetPydanticSchema(lambda source, handler: handler(source))],
    "OnErrorOmit": list[pydantic.OnErrorOmit[int]],
    "FailFast": Annotated[list[int], pydantic.FailFast()],
    "UrlConstraints": Annotated[pydantic.HttpUrl, pydantic.UrlConstraints(max_length=30)],
    "SupportsGt": Annotated[int, at.Gt(3)], "SupportsGe": Annotated[int, at.Ge(3)],
    "SupportsLt": Annotated[int, at.Lt(3)], "SupportsLe": Annotated[int, at.Le(3)],
    "SupportsMod": Annotated[int, at.MultipleOf(3)], "SupportsDiv": Annotated[int, at.MultipleOf(3)],
    "Gt": Annotated[int, at.Gt(3)], "Ge": Annotated[int, at.Ge(3)], "Lt": Annotated[int, at.Lt(3)],
    "Le": Annotated[int, at.Le(3)], "Interval": Annotated[int, at.Interval(gt=3, le=9)],
    "MultipleOf": Annotated[int, at.MultipleOf(7)], "MinLen": Annotated[str, at.MinLen(3)],
    "MaxLen": Annotated[list[int], at.MaxLen(3)], "Len": Annotated[dict[str, int], at.Len(1, 2)],
    "Timezone": Annotated[datetime.datetime, at.Timezone(...)],
    "Unit": Annotated[float, at.Unit("m")], "Predicate": Annotated[str, at.Predicate(str.isascii)],
    "Not": Annotated[str, at.Not(str.isdigit)],
    "LowerCase": at.LowerCase[str], "UpperCase": at.UpperCase[str], "IsDigit": at.IsDigit[str],
    "IsDigits": at.IsDigit[str], "IsAscii": at.IsAscii[str], "IsFinite": at.IsFinite[float],
    "IsNotFinite": at.IsNotFinite[float], "IsNan": at.IsNan[float], "IsNotNan": at.IsNotNan[float],
    "IsInfinite": at.IsInfinite[float], "IsNotInfinite": at.IsNotInfinite[float],
    "GroupedMetadata": Annotated[int, at.Interval(ge=3)], "BaseMetadata": Annotated[int, at.Ge(3)],
    "DocInfo": Annotated[int, at.doc("a number")], "doc": Annotated[int, at.doc("a number")],
}  # fmt: skip
MORE: list[Any] = [
    Currency, Hexadecimal, Base64, list[pydantic.HttpUrl], dict[str, pydantic.Base64Bytes], uuid.UUID, Fraction,
    Annotated[str, StringConstraints(strip_whitespace=True, min_length=2, pattern="^[a-z ]+$")],
    Annotated[str, StringConstraints(to_upper=True)], Annotated[float, at.Predicate(math.isfinite)],
    Annotated[Sequence[int], at.Len(1, 2)], Annotated[Counter[str], at.Len(1, 2)],
    Annotated[str, StringConstraints(pattern=re.compile("^a", re.I))], Annotated[set[int], at.MinLen(2)],
    Annotated[dict[int, bool], at.MinLen(1)], Annotated[set[tuple[bool, datetime.date] | None], at.MinLen(1)],
    Annotated[set[Literal["a", 1]], at.MinLen(2)], Annotated[float, at.Gt(0.1), at.Lt(0.3)],
    Annotated[Decimal, pydantic.Field(max_digits=2, decimal_places=2)],
    Annotated[Decimal, pydantic.Field(max_digits=2, decimal_places=3)],
    Annotated[pydantic.FiniteFloat, at.Ge(-1), at.Lt(0)],
]  # fmt: skip
MORE_REFUSED: list[Any] = [
    Pairs, Literal[Pairs.A], Stripped, CountryAlpha2, ipaddress.IPv6Interface, Hashable, type[int],
    Annotated[int | str, at.Ge(3)], Annotated[ipaddress.IPv4Address, at.Ge(ipaddress.IPv4Address("1.1.1.1"))],
    *(Annotated[set[item], at.MinLen(2)] for item in (uuid.UUID, float, Any, datetime.datetime, int | bool)),
    Annotated[frozenset[Literal[1, True]], at.MinLen(2)], Annotated[dict[datetime.time, int], at.MinLen(2)],
]  # fmt: skip
NO_TYPES = {"EncoderProtocol", "validate_email"}
NEEDS = {"EmailStr": "email_validator", "NameEmail": "email_validator"}

REFUSED = {
    "SocketPath", "FilePath", "DirectoryPath", "NewPath", "ImportString", "Json", "PaymentCardNumber", "PastDate",
    "FutureDate", "PastDatetime", "FutureDatetime", "NameEmail", "Not", "IsNotFinite", "IsNan", "IsNotNan",
    "IsInfinite", "IsNotInfinite", "Tag",
}  # fmt: skip


def public() -> dict[str, Any]:
    names = {
        name: getattr(module, name)
        for module in (pydantic.types, pydantic.networks, at)
        for name in module.__all__
        if not name.startswith("__") and name not in NO_TYPES
    }
    return names | USES


def validates(type_: Any) -> None:
    """Texts of the grammar are values of the type, by Pydantic."""
    gs.grammar(type_)
    grammar, adapter = gs.grammar(tuple[type_]), TypeAdapter(tuple[type_])
    for seed in range(draws(300)):
        adapter.validate_json(grammar.sample(seed=seed))


@pytest.mark.property
@pytest.mark.parametrize("name", public())
def test_public_types(name: str) -> None:
    if name in NEEDS and find_spec(NEEDS[name]) is None:
        with pytest.raises(UnsupportedType, match="is not installed"):
            gs.grammar(public()[name])
    elif name in REFUSED:
        with pytest.raises(UnsupportedType):
            gs.grammar(public()[name])
    else:
        validates(public()[name])


@pytest.mark.property
@pytest.mark.parametrize("type_", MORE, ids=repr)
def test_more_types(type_: Any) -> None:
    validates(type_)


@pytest.mark.parametrize("type_", MORE_REFUSED, ids=repr)
def test_more_types_are_refused(type_: Any) -> None:
    with pytest.raises(UnsupportedType):
        gs.grammar(type_)


@pytest.mark.parametrize(
    ("type_", "named"),
    [
        (CountryAlpha2, "CountryAlpha2 validates in a function"),
        (Stripped, "Stripped validates in a function"),
        (Pairs, "the enum Pairs"),
        (pydantic.PaymentCardNumber, "PaymentCardNumber validates in a function"),
        (pydantic.FilePath, "PathType.validate_file"),
        (at.IsNan[float], "the predicate isnan"),
        (Annotated[int | str, at.Ge(3)], "the constraint ge"),
    ],
)
def test_refusals_name_what_cannot_be_enforced(type_: Any, named: str) -> None:
    with pytest.raises(UnsupportedType, match=named):
        gs.grammar(type_)


NEVER: list[tuple[Any, list[str]]] = [
    (pydantic.HttpUrl, ['"mailto:x"', '"ftp://a.b"', '"http://"', '"http://a.b:99999"', '"http://1.2.3.4.5"']),
    (pydantic.AnyUrl, ['"http:"', '"a"', '"http://[::1"']),
    (pydantic.IPvAnyAddress, ['"a"', '"1.2.3"', '"1.2.3.4/8"']),
    (pydantic.Base64Bytes, ['"a"', '"====’"', '"a-__"']),
    (pydantic.Base64Str, ['"/w=="', '"gICA"']),
    (Annotated[str, StringConstraints(strip_whitespace=True)], ['" a"', '"a\\n"']),
    (pydantic.UUID4, ['"00000000-0000-1000-8000-000000000000"']),
]


@pytest.mark.parametrize(("type_", "texts"), NEVER, ids=lambda value: repr(value)[:40])
def test_never_written(type_: Any, texts: list[str]) -> None:
    grammar = gs.grammar(list[type_])
    assert [text for text in texts if grammar.matches(f"[{text}]")] == []


WRITTEN: list[tuple[Any, list[str]]] = [
    (pydantic.HttpUrl, ["https://www.example.org/a/b?c=d#e", "http://u:p@10.0.0.1:8080/", "http://localhost"]),
    (pydantic.AnyUrl, ["https://example.org", "mailto:a@b.org", "urn:isbn:0451450523", "file:///etc/x"]),
    (pydantic.PostgresDsn, ["postgresql://user:pass@localhost:5432/db", "postgres://a:1,b:2/db"]),
    (pydantic.Base64Str, ["aGVsbG8=", "aGVsbG8gd29ybGQ=", "", "YQ=="]),
    (pydantic.ByteSize, ["1GB", "1.5 MiB"]),
    (pydantic.IPvAnyAddress, ["10.0.0.1", "::1"]),
]


@pytest.mark.parametrize(("type_", "texts"), WRITTEN, ids=lambda value: repr(value)[:40])
def test_written(type_: Any, texts: list[str]) -> None:
    grammar = gs.grammar(list[type_])
    for text in texts:
        assert grammar.matches(json.dumps([text])), text
        TypeAdapter(type_).validate_json(json.dumps(text))


def test_cases_are_those_of_python() -> None:
    everything = some([chr(c) for c in range(sys.maxunicode + 1) if not 0xD800 <= c <= 0xDFFF])
    for pattern, holds in (
        (texts_of_formats.LOWER_CASE, str.islower),
        (texts_of_formats.UPPER_CASE, str.isupper),
    ):
        one = gs.regex(pattern, dialect="ecma262")
        assert [c for c in everything if one.matches(c) and not holds(c)] == []


def test_mail_addresses() -> None:
    address = gs.regex(texts_of_formats.EMAIL[1:-1], dialect="ecma262")
    assert all(map(address.matches, ["a@b.org", "first.last+tag@mail.example.co", "A_b-c@x-y.museum"]))
    assert not any(map(address.matches, ["a", "a@b", "a@b.test", "a@-b.org", ".a@b.org", "a..b@c.org", "a@b.local"]))


class Click(BaseModel):
    type: Literal["click"] = "click"
    x: int = 0


class Say(BaseModel):
    type: Literal["say"] = "say"
    text: str = pydantic.Field("", alias="words")


@dataclass
class Wait:
    type: Literal["wait"] = "wait"


@pytest.mark.property
def test_tags_with_defaults_are_written() -> None:
    """Pydantic looks for the tag of a union before it fills in what is missing."""
    actions = list[Annotated[Click | Say | Wait, pydantic.Field(discriminator="type")]]
    grammar, adapter = gs.grammar(actions), TypeAdapter(actions)
    assert grammar.matches('[{"type":"click"},{"type":"say","words":"a"},{"type":"wait"}]')
    assert not any(map(grammar.matches, ['[{"x":1}]', "[{}]", '[{"type":"click","x":1,"words":5}]']))
    for number in range(draws(100, least=20)):
        adapter.validate_json(grammar.sample(seed=number))


class Upper(BaseModel):
    model_config = ConfigDict(str_strip_whitespace=True, str_to_upper=True, str_min_length=1, str_max_length=4)
    name: str
    more: list[Annotated[str, pydantic.Field(max_length=6)]] = []


@pytest.mark.property
def test_settings_of_all_strings_of_a_model() -> None:
    grammar = gs.grammar(Upper)
    assert all(map(grammar.matches, ['{"name":"A B"}', '{"name":"A","more":["ABCDEF"]}']))
    for name in ("  ", " A", "a", "", "ABCDE"):
        assert not grammar.matches(json.dumps({"name": name}))
    for number in range(draws(100, least=20)):
        Upper.model_validate_json(grammar.sample(seed=number))


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        (Annotated[int, pydantic.Field(le=3.5)], "'le' must be coercible to an integer"),
        (dict[str, Annotated[str, pydantic.Field(pattern="[a")]], "regex parse error"),
    ],
)
def test_constraints_that_pydantic_refuses(kind: Any, reason: str) -> None:
    with pytest.raises(UnsupportedType, match=f"Pydantic refuses the type: {reason}"):
        gs.grammar(kind)
    assert not gs.check(kind).ok


@pytest.mark.parametrize(
    ("kind", "texts"),
    [
        (Annotated[float, at.Gt(0.1)], ["0.1", "0.10000000000000000001", "0.10000000000000002", "0.2"]),
        (Annotated[float, at.Lt(0.1)], ["0.1", "0.09999999999999999999", "0.09999999999999999", "0"]),
        (Annotated[float, at.Ge(0.1)], ["0.1", "0.10000000000000000001", "0.09"]),
        (Annotated[float, at.Gt(0)], ["0", "0.0", "0." + "0" * 400 + "1", "0.001", "-1"]),
        (pydantic.FiniteFloat, ["1" * 310, "-" + "1" * 310, "1" * 300, "0"]),
        (Annotated[float, at.Gt(1), pydantic.AllowInfNan(False)], ["1", "2", "9" * 310]),
        (
            Annotated[Decimal, pydantic.Field(max_digits=2, decimal_places=2)],
            ["0", "0.5", "0.55", "0.555", "1", "-0.1"],
        ),
        (Annotated[Decimal, pydantic.Field(max_digits=2, decimal_places=3)], ["0.05", "0.055", "0.1", "1"]),
        (Annotated[Decimal, pydantic.Field(max_digits=3, decimal_places=2)], ["0", "9.99", "10", "0.001", "-9.9"]),
    ],
)
def test_numbers_at_their_bounds(kind: Any, texts: list[str]) -> None:
    grammar, adapter, seen = gs.grammar(kind), TypeAdapter(kind), set()
    for text in texts:
        try:
            adapter.validate_json(text)
            valid = True
        except pydantic.ValidationError:
            valid = False
        assert grammar.matches(text) == valid, text
        seen.add(valid)
    assert seen == {True, False}


_TEXTS = (
    *"aAb1_-][\\/\r٣²éαΩKſß一ⓐ\x1c\x85\xa0\ufeff\u2028\u200c\U0001f600", "", "ab", "abc", "a b", " a", "a\n", "\na",
    "b\na", "a1", "12", "12a", "éa", "a-b", "foo", "FOO", "xfoo", "foo bar", "aaa", "aaaa",
)  # fmt: skip
_RUST = r"""
^\d$ ^\D$ \w ^\W$ \s ^\S+$ [[:alpha:]] ^[[:^alpha:]]$ (?i)^foo (?i:k) (?P<y>a)b (?<y>a)b \ba a\b a\B ^a$ \Aa\z (?m)^a$
(?s)^.$ ^.$ \<foo\> \b{start}foo \b{end} \b{start-half}a a\b{end-half} ^\pL+$ ^\p{Greek}$ \p{lu} ^\P{L}$
^[a-z&&[^aeiou]]$ ^[\w--a]$ \x{41} \u0041 []a] [^\]] ^a{2,}$ ^a{3}$ ^(?:a|b|)$ a|^1 ^[^\d\s]+$ \/ ^[\[\]]$ ^\\$ [α-ω]
^(foo|bar)?\x20?b
"""
_PYTHON = r"""
^\d$ ^\D$ \w ^\W$ \s ^\S+$ (?i)^foo (?i:k) (?P<y>a)b \ba a\b a\B ^a$ \Aa\Z (?m)^a$ (?s)^.$ ^.$ (?=a)\w (?<!a)b (?<=a)b
(?!a)^. (?x)ab#c (?a)^\w$ \u0041 \N{SOLIDUS} []a] ^a{,2}$ (?:(?=a)a)+$ a|^1 ^(?:a*?)$
"""
_COMPILED = [re.compile("^foo$", re.I), re.compile("^a$", re.M), re.compile(r"^\w$", re.A), re.compile("^.$", re.S)]


@pytest.mark.parametrize(
    ("engine", "patterns"),
    [("rust-regex", _RUST.split()), ("python-re", _PYTHON.split()), ("rust-regex", _COMPILED)],
    ids=["Rust", "Python", "compiled"],
)
def test_patterns_are_read_as_pydantic_reads_them(engine: Any, patterns: list[str | re.Pattern[str]]) -> None:
    for pattern in patterns:
        config = ConfigDict(regex_engine=engine)
        made = pydantic.create_model(
            "Made", __config__=config, a=(Annotated[str, pydantic.Field(pattern=pattern)], ...)
        )
        grammar, seen = gs.grammar(made), set()
        for text in _TEXTS:
            written = json.dumps({"a": text}, ensure_ascii=False, separators=(",", ":"))
            try:
                made.model_validate_json(written)
                valid = True
            except pydantic.ValidationError:
                valid = False
            assert grammar.matches(written) == valid, (pattern, text)
            seen.add(valid)
        assert seen == {True, False}, pattern


def test_patterns_that_mean_the_same_stay_as_they_are() -> None:
    def schema(pattern: str) -> Any:
        return known_adapter(Annotated[str, pydantic.Field(pattern=pattern)]).schema["pattern"]

    for pattern in ("^[A-Z]{3}$", r"^(?:a|b)+\.[0-9]{2,}$", "é", "^(?<year>[0-9]{4})$"):
        assert schema(pattern) == pattern
    assert schema(r"^\d+$") == r"^\p{Nd}+$"
    assert len(schema(r"^[\w.-]+$")) < 130
    with pytest.raises(UnsupportedType, match="the flag x"):
        schema("(?x) a")


def test_patterns_of_msgspec_are_python_s() -> None:
    class Coded(msgspec.Struct):
        code: Annotated[str, msgspec.Meta(pattern=r"(?i)^\d[a-z]$")]

    grammar = gs.grammar(Coded)
    for text, valid in (("1A", True), ("٣b", True), ("1a\n", True), ("AA", False)):
        written = json.dumps({"code": text}, ensure_ascii=False, separators=(",", ":"))
        assert grammar.matches(written) == valid
        with nullcontext() if valid else pytest.raises(msgspec.ValidationError):
            msgspec.json.decode(written, type=Coded)


class Leaf(BaseModel):
    start: Annotated[datetime.datetime, at.Ge(datetime.datetime(2020, 1, 1))]
    path: pydantic.FilePath


class Outer(BaseModel):
    name: str
    ats: list[Leaf]
    by: dict[str, Leaf | None]


def test_refusals_have_places() -> None:
    with pytest.raises(UnsupportedType) as caught:
        gs.grammar(Outer)
    assert caught.value.where == "Outer.ats[].start"
    report = gs.check(Outer)
    assert not report.ok
    assert [entry.pointer for entry in report.of("refused")] == ["Outer.ats[].start", "Outer.ats[].path"]
    assert "#/properties/name/type" in {entry.pointer for entry in report.of("enforced")}


class Point(msgspec.Struct):
    at: list[complex]


class Line(msgspec.Struct):
    points: dict[str, Point]


class Chain(msgspec.Struct):
    next: Optional[Chain]  # noqa: UP045
    at: list[complex]


@dataclass
class Holder:
    line: int | Line


@dataclass
class Unfinished:
    items: list[NotDefinedYet]  # type: ignore[name-defined]  # noqa: F821


@pytest.mark.parametrize(
    ("type_", "where", "why"),
    [
        (Line, "Line.points[].at[]", "complex'> is not supported"),
        (Chain, "Chain.at[]", "complex'> is not supported"),
        (Holder, "Holder.line.points[].at[]", "complex'> is not supported"),
        (Unfinished, "the type Unfinished", "the name 'NotDefinedYet' is not defined"),
        (list[Unfinished], "the type list", "the name 'NotDefinedYet' is not defined"),
    ],
)
def test_refusals_of_msgspec_and_of_names_have_places(type_: Any, where: str, why: str) -> None:
    with pytest.raises(UnsupportedType, match=why) as caught:
        gs.grammar(type_)
    assert caught.value.where.startswith(where)
    assert [entry.pointer for entry in gs.check(type_).of("refused")] == [caught.value.where]


def test_types_without_json_are_reported() -> None:
    for type_ in (complex, type, CountryAlpha2):
        (entry,) = gs.check(type_).of("refused")
        assert entry.pointer.startswith("the type ")
