"""Requests as clients of a server send them, with what judges the texts: harmless ones, hostile ones, wrong ones."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

from grammarspec.serving import Request

__all__ = ["HOSTILE", "WRONG", "Asked", "harmless", "hostile", "instance_of", "schema_of", "wrong"]

Judge = Callable[[str], None]
"""Raises an error if a text is not what was asked for."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What a client asks for.

    Attributes:
        kind: ``"harmless"``, ``"hostile"`` or ``"wrong"``.
        name: what it is, for reports.
        request: the request.
        judge: judges a finished text.
    """

    kind: str
    name: str
    request: Request
    judge: Judge


def schema_of(number: int) -> dict[str, Any]:
    """A schema that differs from those of all other numbers: of six shapes, with names and bounds of its own.

    Strings of half of them have a greatest length.
    """
    text = {"type": "string", **({"maxLength": 12 + number % 20} if number % 12 >= 6 else {})}
    whole = {"type": "integer", "minimum": number % 7, "maximum": 1000 + number}
    line = {"sku": {"type": "string", "pattern": "^[A-Z]{2}[0-9]{4}$"}, "count": whole}
    item = {"type": "object", "properties": line, "required": list(line), "additionalProperties": False}
    shapes: list[dict[str, Any]] = [
        {"name": text, "age": {"type": "integer", "minimum": 0, "maximum": 150}, "email": text},
        {"lines": {"type": "array", "minItems": 1, "maxItems": 3, "items": item}},
        {"day": {"type": "string", "format": "date"}, "weather": {"enum": ["sun", "rain", f"snow {number}"]}},
        {"stars": {"type": "integer", "minimum": 1, "maximum": 5}, "title": text, "words": text},
        {"when": {"anyOf": [{"type": "null"}, text]}, "then": {"type": "boolean"}, "weight": {"type": "number"}},
        {"tags": {"type": "array", "items": {"enum": ["a", "b", "c", number]}, "maxItems": 3}},
    ]
    properties = {**shapes[number % len(shapes)], f"field_{number}": whole}
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties)[number % 2 :],
        "additionalProperties": False,
    }


def instance_of(number: int, draw: random.Random) -> dict[str, Any]:
    """A value that satisfies the schema of this number, with strings of English words."""

    def text() -> str:
        return " ".join(draw.choice(_WORDS) for _ in range(3))[: 12 + number % 20]

    def whole() -> int:
        return draw.randint(number % 7, 1000 + number)

    lines = [{"sku": f"AB{draw.randint(1000, 9999)}", "count": whole()} for _ in range(draw.randint(1, 3))]
    shapes: list[dict[str, Any]] = [
        {"name": text(), "age": draw.randint(0, 150), "email": text()},
        {"lines": lines},
        {"day": f"2026-{draw.randint(10, 12)}-{draw.randint(10, 28)}", "weather": draw.choice(["sun", "rain"])},
        {"stars": draw.randint(1, 5), "title": text(), "words": text()},
        {"when": draw.choice([None, text()]), "then": draw.random() < 0.5, "weight": draw.randint(0, 999) / 4},
        {"tags": draw.sample(["a", "b", "c", number], draw.randint(0, 3))},
    ]
    return {**shapes[number % len(shapes)], f"field_{number}": whole()}


_WORDS = ("river", "green", "quickly", "Paris", "window", "seven", "and", "paper", "of", "light", "mountain", "table")


@cache
def _validator(number: int) -> Any:
    import jsonschema

    checker = jsonschema.Draft202012Validator.FORMAT_CHECKER
    return jsonschema.Draft202012Validator(schema_of(number), format_checker=checker)


def _matching(pattern: str) -> Judge:
    def judge(text: str) -> None:
        if not re.fullmatch(pattern, text, re.DOTALL):
            raise ValueError(f"{text!r:.200} does not match {pattern!r:.200}")

    return judge


def _schema(number: int) -> Judge:
    def judge(text: str) -> None:
        value = json.loads(text)
        # RFC 3339 has a year 0, a leap year like the year 4, and jsonschema's dates, which are Python's, have none.
        if isinstance(value, dict) and str(value.get("day")).startswith("0000-"):
            value["day"] = f"0004-{value['day'][5:]}"
        _validator(number).validate(value)

    return judge


def harmless(draw: random.Random, schemas: int) -> Asked:
    """A request that must be answered.

    Args:
        draw: draws it.
        schemas: the number of different schemas that there are.
    """
    kind = draw.random()
    if kind < 0.1:
        digits = draw.randint(1, 8)
        pattern = f"[0-9]{{{digits}}}-[a-z]+"
        return Asked("harmless", "regex", Request.regex(pattern), _matching(pattern))
    if kind < 0.15:
        texts = [f"text {draw.randrange(1000)}" for _ in range(5)]
        return Asked("harmless", "choice", Request.choice(texts), _matching("|".join(texts)))
    if kind < 0.2:
        words = draw.randint(1, 3)
        asked = Request.grammar(f'root ::= "x" (" " [a-z]+){{{words}}} "."')
        return Asked("harmless", "grammar", asked, _matching(rf"x( [a-z]+){{{words}}}\."))
    number = draw.randrange(schemas)
    return Asked("harmless", "schema", Request.json_schema(schema_of(number)), _schema(number))


_GROWING = {"type": "string", "allOf": [{"pattern": f"^(.*{c}){{20}}"} for c in "abcdef"]}
_NESTED: Any = {"type": "string"}
for _ in range(5):
    _NESTED = {"type": "array", "items": _NESTED, "maxItems": 99}
_OPTIONAL = {"type": "object", "properties": {f"p{i}": {"type": "integer"} for i in range(3000)}}
_CHAIN = {"$ref": "#/$defs/d0", "$defs": {f"d{i}": {"anyOf": [{"$ref": f"#/$defs/d{(i + 1) % 300}"}, {"const": i}]}
                                          for i in range(300)}}  # fmt: skip

HOSTILE: dict[str, Request] = {
    "patterns whose states multiply": Request.json_schema(_GROWING),
    "nested arrays": Request.json_schema(_NESTED),
    "optional properties": Request.json_schema(_OPTIONAL),
    "a chain of references": Request.json_schema(_CHAIN),
    "nested counts": Request.regex("((((a{0,99}){0,99}){0,99}){0,99}){0,99}"),
    "a long tail": Request.regex("(a|b)*a(a|b){400}"),
    "choice of 20,000": Request.choice([f"text number {i}" for i in range(20_000)]),
    "an ambiguous grammar": Request.grammar('start: start start | "a" | "aa"\n'),
    "500,000 brackets": Request.regex("(" * 500_000),
}
"""What costs much work, or grows while it is used; each may be refused, ended by a limit, or answered."""

WRONG: dict[str, Request] = {
    "a reference to nothing": Request.json_schema({"properties": {"a": {"$ref": "#/nowhere"}}}),
    "a backreference": Request.regex(r"(a)\1"),
    "nothing satisfies it": Request.json_schema({"type": "array", "minItems": 3, "maxItems": 2}),
    "an undefined rule": Request.grammar("start: undefined"),
    "half a grammar": Request.grammar("root ::= ("),
    "no kind of tag": Request.structural_tag({"type": "structural_tag", "format": {"type": "magic"}}),
}
"""What must be refused."""


def hostile(draw: random.Random) -> Asked:
    """A hostile request."""
    name = draw.choice(list(HOSTILE))
    return Asked("hostile", name, HOSTILE[name], lambda _text: None)


def wrong(draw: random.Random) -> Asked:
    """A wrong request."""
    name = draw.choice(list(WRONG))
    return Asked("wrong", name, WRONG[name], lambda _text: None)
