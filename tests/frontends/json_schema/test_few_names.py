"""Members that must be there and have few possible names: all objects, and no dead ends on the way to them."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from typing import Any

import pytest

import grammarspec as gs
from tests.frontends.json_schema.judges import satisfies
from tests.frontends.json_schema.texts import BYTES, acceptor


def some(pattern: str) -> dict[str, Any]:
    """There is a member whose name matches a pattern."""
    return {"not": {"propertyNames": {"not": {"pattern": pattern}}}}


def named(pattern: str, **keywords: Any) -> dict[str, Any]:
    """Objects whose members have such names, and the value 1 unless more is asked."""
    return {"type": "object", "propertyNames": {"pattern": pattern}, "additionalProperties": {"const": 1}, **keywords}


PAIRS = "^[abc]{2}$"
SCHEMAS = [
    named(PAIRS, allOf=[some("a"), some("b"), some("c")], maxProperties=2),
    named(PAIRS, allOf=[some("a"), some("b"), some("c")], maxProperties=2, patternProperties={"bc": False}),
    named(PAIRS, allOf=[some("a"), some("b")], required=["ca"], maxProperties=2, properties={"ca": {"const": 1}}),
    named("^[ab]$", allOf=[some("a"), some("b")], maxProperties=2),
    named("^[abc]$", minProperties=2, maxProperties=3),
    named("^[abc]$", minProperties=2, maxProperties=2, properties={"a": {"const": 1}}),
    {
        **named("^[ab]$", maxProperties=2, additionalProperties={"enum": [1, 2]}),
        "not": {"additionalProperties": {"const": 1}},
    },
]


def texts(constraint: gs.Constraint) -> Iterator[str]:
    """All texts of a finite language; every state on the way leads to one."""
    pending = [(constraint.matcher(), b"")]
    while pending:
        matcher, text = pending.pop()
        following, ends = matcher.next_bytes()
        assert following or ends, text
        if ends:
            yield text.decode()
        for byte in following:
            longer = matcher.fork()
            assert longer.accept_token(byte)
            pending.append((longer, text + bytes([byte])))


def objects(values: list[int]) -> Iterator[dict[str, int]]:
    """All objects of up to three members with short names."""
    names = [first + second for first in "abc" for second in ("", *"abc")]
    for count in range(4):
        for chosen in itertools.permutations(names, count):
            if count < 3 or all(len(name) == 1 for name in chosen):
                for members in itertools.product(values, repeat=count):
                    yield dict(zip(chosen, members, strict=True))


@pytest.mark.parametrize("schema", SCHEMAS, ids=json.dumps)
def test_exactly_the_objects_that_satisfy_it(schema: Any) -> None:
    grammar = gs.json_schema(schema, whitespace="compact", property_order="any", numbers="plain")
    written = list(texts(gs.compile(grammar, BYTES)))
    expected = [json.dumps(one, separators=(",", ":")) for one in objects([1, 2]) if satisfies(schema, json.dumps(one))]
    assert sorted(set(written)) == sorted(expected)


def test_where_names_may_run_out_it_is_refused() -> None:
    with pytest.raises(gs.UnsupportedFeature, match="of few names"):
        gs.json_schema(named("^[ab]$", minProperties=2))
    with pytest.raises(gs.UnsupportedFeature, match="of few names"):
        gs.json_schema(named("^[abc]{2}$", allOf=[some("a"), some("b"), some("c")], maxProperties=20))


PATTERNS = ["^(cdn|Cdn)$", "^[a-c]x$", "^(pwa|PWA)$", "^n(log|ext)$", "^[0-3]:name$", "^[0-9]:key$", "x$"]


def test_overlapping_patterns_are_told_apart_by_their_texts() -> None:
    schema = {"patternProperties": {pattern: {"const": number} for number, pattern in enumerate(PATTERNS)}}
    schema = {"type": "object", **schema, "additionalProperties": False}
    grammar = gs.json_schema(schema)
    for name in ("cdn", "ax", "PWA", "next", "2:name", "2:key", "zx", "nx", "log", "4:name"):
        for value in range(len(PATTERNS)):
            one = {name: value}
            assert grammar.matches(json.dumps(one)) == satisfies(schema, json.dumps(one)), one


def test_too_many_patterns_that_overlap() -> None:
    schema = {"patternProperties": {f"{letter}": {"minimum": number} for number, letter in enumerate("abcdefgh")}}
    with pytest.raises(gs.UnsupportedFeature, match="8 patterns that may overlap"):
        gs.json_schema(schema)


@pytest.mark.parametrize("order", ["declared", "any"])
def test_many_names_that_are_finite_in_number(order: Any) -> None:
    names = {"type": "object", "propertyNames": {"pattern": "^..$"}, "allOf": [some("^a"), some("^b"), some("c$")]}
    accepts = acceptor(names, property_order=order)
    for text in ('{"ac": 1, "bx": 2}', '{"ax": 1, "zc": 2, "b-": 3}', '{"zz": 1, "bc": 2, "yy": 3, "a1": 4}'):
        assert accepts(text)
    for text in ("{}", '{"ac": 1}', '{"ac": 1, "bxx": 2}', '{"ax": 1, "bx": 2, "cx": 3}'):
        assert not accepts(text)


def test_no_room_for_several_names() -> None:
    with pytest.raises(gs.Unsatisfiable):
        acceptor(named("^..$", allOf=[some("^a"), some("^b")], maxProperties=1))
