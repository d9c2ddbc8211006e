"""The shortest ending of a text that was begun well is one that ordinary parsers read.

Budgets close texts with it (``on_limit="close"``). A text may be begun with something that is valid and few parsers
read (a leap second, the year 0000); an ending adds nothing of that kind.
"""

from __future__ import annotations

import base64
import datetime
import ipaddress
import json
import math
import random
import uuid
from collections.abc import Callable
from functools import cache
from typing import Any
from urllib.parse import urlsplit

import pytest

import grammarspec as gs
from tests.tiers import draws, seed


def duration(text: str) -> object:
    from pydantic import TypeAdapter

    return TypeAdapter(datetime.timedelta).validate_python(text)


def pointer(text: str) -> object:
    assert text == "" or text.startswith("/")
    return text


def host(text: str) -> object:
    return text.encode("idna")


def mail(text: str) -> object:
    local, _, domain = text.rpartition("@")
    assert local and domain
    return host(domain)


FORMATS: dict[str, tuple[Callable[[str], object], list[str]]] = {
    "date": (datetime.date.fromisoformat, ["2024-02-29", "0001-01-01", "0400-02-29", "1999-12-31", "9999-09-30"]),
    "time": (datetime.time.fromisoformat, ["23:59:59.5Z", "00:00:00-00:30", "09:07:01+23:59"]),
    "date-time": (datetime.datetime.fromisoformat, ["0001-01-01T00:00:00Z", "2016-12-31T23:59:59.25+14:00"]),
    "date-time-local": (datetime.datetime.fromisoformat, ["2024-02-29T23:59:59.5"]),
    "time-local": (datetime.time.fromisoformat, ["23:59:59.5"]),
    "duration": (duration, ["P1DT2H3M4S", "P4W", "PT5M"]),
    "uuid": (uuid.UUID, ["f81d4fae-7dec-11d0-a765-00a0c91e6bf6", "00000000-0000-0000-0000-000000000000"]),
    "ipv4": (ipaddress.IPv4Address, ["192.168.0.255", "0.0.0.0"]),
    "ipv6": (ipaddress.IPv6Address, ["2001:db8::ff00:42:8329", "::ffff:192.0.2.128", "1:2:3:4:5:6:7:8"]),
    "uri": (urlsplit, ["https://user@example.com:8080/a%20b?c=d#e", "http://[2001:db8::7]/", "mailto:a@b.c"]),
    "hostname": (host, ["www.example-1.com"]),
    "email": (mail, ["joe.bloggs@mail.example.com", "a+b@c"]),
    "json-pointer": (pointer, ["/a~1b/0/~0"]),
    "byte": (lambda text: base64.b64decode(text, validate=True), ["TWFu", "TWE=", "TQ=="]),
}


@cache
def compiled(grammar: gs.Grammar[Any]) -> gs.Constraint:
    return gs.compile(grammar, gs.Vocabulary.bytes())


def ended(grammar: gs.Grammar[Any], beginning: str) -> str:
    """A text that was begun, with its shortest ending."""
    constraint = compiled(grammar)
    matcher, data = constraint.matcher(), beginning.encode()
    assert matcher.accept_tokens(data) == len(data), beginning
    return (data + bytes(constraint.shortest_completion(matcher.state))).decode()


@pytest.mark.parametrize("name", FORMATS)
def test_formats(name: str) -> None:
    read, texts = FORMATS[name]
    grammar = gs.json_schema({"type": "string", "format": name})
    for text in texts:
        for length in range(len(text) + 1):
            value = json.loads(ended(grammar, json.dumps(text)[: length + 1]))
            read(value)


@pytest.mark.parametrize(
    "grammar",
    [gs.types.date(), gs.types.datetime(), gs.types.time(), gs.types.uuid(), gs.types.ipv4(), gs.types.ipv6()],
)
@pytest.mark.property
def test_types(grammar: gs.Grammar[Any]) -> None:
    for number in range(draws(20)):
        text = grammar.sample(seed(number))
        for length in range(len(text) + 1):
            assert grammar.parse(ended(grammar, text[:length])) is not None


def test_the_year_0000_and_leap_seconds_are_never_added() -> None:
    date_time = gs.json_schema({"type": "string", "format": "date-time"})
    for begun in ("", "0", "00", "000", "2016-12-31T23:59:", "2016-12-31T23:59:59+"):
        assert datetime.datetime.fromisoformat(json.loads(ended(date_time, f'"{begun}'))).year > 0


def json_texts(count: int) -> list[str]:
    """Random JSON texts, in different layouts and escapes."""
    draw = random.Random(seed(5))

    def value(depth: int) -> Any:
        kind = draw.randrange(6 if depth else 4)
        if kind == 4:
            return [value(depth - 1) for _ in range(draw.randrange(4))]
        if kind == 5:
            return {draw.choice(("a", "é", "x y", "\U0001f600")): value(depth - 1) for _ in range(draw.randrange(4))}
        return (None, draw.random() < 0.5, draw.choice((0, -1, 1e-7, 12.5, -3e22, 10**20)), '\U0001f600é\n"')[kind]

    return [json.dumps(value(3), ensure_ascii=draw.random() < 0.5, indent=draw.choice((None, 2))) for _ in range(count)]


def check_readable(text: str) -> None:
    """Assert that a JSON text has finite numbers and whole characters."""
    numbers: list[str] = []
    value = json.loads(text, parse_float=numbers.append, parse_int=numbers.append)
    assert all(math.isfinite(float(number)) for number in numbers), numbers
    json.dumps(value, ensure_ascii=False).encode()


def is_readable(text: str) -> bool:
    try:
        check_readable(text)
    except AssertionError:
        return False
    return True


@pytest.mark.parametrize("options", [{}, {"property_order": "any", "ensure_ascii": True, "whitespace": "pretty"}])
@pytest.mark.property
def test_any_json(options: Any) -> None:
    grammar = gs.json_value(**options)
    for text in json_texts(draws(40)):
        written = text if grammar.matches(text) else grammar.sample(len(text))
        if not is_readable(written):
            continue  # "1E404" is JSON, but no number that Python has
        for length in range(len(written) + 1):
            check_readable(ended(grammar, written[:length]))


NUMBERS = ["0", "-0.5", "12.25", "1e5", "1E+300", "-3.0e-10", "100", "2" + "0" * 40, "1.5e20", "[-0]", '{"a": 1e-7}']


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "number"}, {"type": "integer"}, {"type": "number", "minimum": -1.5, "maximum": 1e300},
        {"type": "number", "exclusiveMinimum": 1e-300}, {"type": "number", "multipleOf": 0.25},
        {"type": "integer", "minimum": 10**30}, {"not": {"type": "string"}},
    ],
)  # fmt: skip
def test_numbers(schema: Any) -> None:
    grammar = gs.json_schema(schema)
    texts = [text for text in NUMBERS if grammar.matches(text)]
    for text in texts:
        for length in range(len(text) + 1):
            check_readable(ended(grammar, text[:length]))
    assert texts
