"""The order of members, the spelling of keys, whitespace."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.frontends.json_schema.texts import acceptor

INTEGER = {"type": "integer"}


def _objects(schema: dict[str, Any]) -> Callable[[str], bool]:
    """Tells of names, single letters, whether an object of them in this order is accepted, each with the value 1."""
    accepts = acceptor({"type": "object", **schema})
    return lambda names: accepts(json.dumps(dict.fromkeys(names, 1)))


def _properties(names: str, **values: Any) -> dict[str, Any]:
    return {"properties": {**dict.fromkeys(names, INTEGER), **values}}


def test_declared_properties_come_in_order_and_others_anywhere() -> None:
    schema = {"type": "object", **_properties("abc"), "required": ["d", "e", "b"], "additionalProperties": INTEGER}
    for more in ({}, {"maxProperties": 7}, {"minProperties": 4}):
        accepts = _objects({**schema, **more})
        assert all(map(accepts, ("abcde", "ebdx", "dabec", "xaydzbe", "debcx")))
        assert not any(map(accepts, ("bade", "abce", "abcd", "cbde", "xdex")))
    accepts = acceptor(schema)
    for text in (
        '{"a": 1, "a": 2, "b": 0, "d": 0, "e": 0}',
        '{"b": 0, "d": 0, "e": 0, "d": 0}',
        '{"b": 0, "d": "x", "e": 0}',
    ):
        assert not accepts(text)


def test_order_over_several_subschemas() -> None:
    accepts = _objects({"allOf": [_properties("b")], **_properties("a")})
    assert accepts("ba")
    assert not accepts("ab")
    assert _objects({**_properties("a"), "allOf": [_properties("b")]})("ab")
    choice = {"anyOf": [{"required": ["b"], **_properties("b")}, {"required": ["c"]}]}
    assert _objects({**choice, **_properties("a")})("ba")
    assert _objects({**_properties("a"), **choice})("ab")
    # as if each subschema were written out where it is applied, choices too
    accepts = _objects(
        {"allOf": [{**_properties("a"), **choice, **_properties("d")}, _properties("e")], **_properties("f")}
    )
    assert accepts("dbef")
    assert not any(map(accepts, ("deb", "fdb", "bdfe")))
    excluded = {"oneOf": [{"allOf": [_properties("ab")], **_properties("c")}, {**_properties("c"), "required": ["x"]}]}
    assert _objects(excluded)("abc")


def test_of_two_orders_the_longer_one_counts() -> None:
    accepts = _objects({**_properties("ac"), "anyOf": [_properties("abc"), _properties("adc")]})
    assert all(map(accepts, ("abc", "adc", "ac")))
    assert not any(map(accepts, ("cab", "cda", "ca")))
    accepts = _objects({"anyOf": [_properties("ba"), _properties("a")], **_properties("abc")})
    assert accepts("abc")
    assert not accepts("bac")
    tags = [_properties("a", z={"const": value}) for value in (1, 2)]
    accepts = _objects({"oneOf": tags, **_properties("abz")})
    assert accepts("zab")
    assert not accepts("abz")
    assert _objects({**_properties("abz"), "oneOf": tags})("abz")


@pytest.mark.parametrize("name", ["foo", "\u00e9", 'q"\\/', "\n\x01", "\U0001f600", ""])
def test_a_key_has_one_spelling(name: str) -> None:
    accepts = acceptor({"type": "object", "properties": {name: INTEGER}, "patternProperties": {"^zz": False}})
    plain = json.dumps(name, ensure_ascii=False)
    assert accepts(f"{{{plain}: 1}}")
    assert not accepts(f'{{{plain}: "x"}}')
    escaped = '"' + "".join(f"\\u{unit:04x}" for unit in memoryview(name.encode("utf-16-le")).cast("H")) + '"'
    if escaped != plain:
        assert not accepts(f'{{{escaped}: "x"}}')
        assert not accepts(f"{{{escaped}: 1}}")
    assert not accepts('{"\\u007a\\u007a": 1}')


def test_free_strings_take_every_escape_of_json() -> None:
    accepts = acceptor({"type": "string"})
    for text in ('"\\u0041\\u00E9\\ud83D\\uDe00"', '"\\"\\\\\\/\\b\\f\\n\\r\\t"', '"\u2028\x7f"'):
        assert accepts(text)
        assert isinstance(json.loads(text), str)
    for text in ('"\\ud800"', '"\\udc00"', '"\\ud800\\u0041"', '"\\v"', '"\\u12"', '"\n"', '"\t"', '"a'):
        assert not accepts(text)


LAYOUTS: list[dict[str, Any]] = [{}, {"separators": (",", ":")}, *({"indent": indent} for indent in (0, 2, 4, "\t"))]


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_layouts_of_json_dumps(layout: dict[str, Any]) -> None:
    value: Any = {"a": [1, {"b": None}], "c": {}, "d": []}
    for _ in range(9):  # two levels each
        value = {"x": [value]}
    assert acceptor({})(json.dumps(value, **layout))


def test_whitespace_is_bounded() -> None:
    accepts = acceptor({"type": "array"})
    assert accepts("[ \t 1 ,\r\n\t2 ]")
    assert not accepts(" []")
    assert not accepts("[] ")
    assert not accepts("[" + " " * 1000 + "1]")
    assert not accepts("[\n\n\n1]")


def test_compact() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "array"}}, "required": ["a"]}
    accepts = acceptor(schema, whitespace="compact")
    assert accepts('{"x":{"y":[1,2]},"a":[]}')
    for text in ('{ "a":[]}', '{"a" :[]}', '{"a": []}', '{"a":[ ]}', '{"a":[]} ', '{"a":[1, 2]}'):
        assert not accepts(text)
