"""The order of members, the spelling of keys, whitespace."""

from __future__ import annotations

import json
from typing import Any

import pytest
from json_schema.texts import acceptor

INTEGER = {"type": "integer"}


def test_declared_properties_come_in_order_and_others_anywhere() -> None:
    schema = {"type": "object", "properties": {"a": INTEGER, "b": INTEGER, "c": INTEGER}, "required": ["d"]}
    accepts = acceptor(schema)
    for text in (
        '{"a": 1, "b": 2, "c": 3, "d": 4}',
        '{"x": 0, "a": 1, "y": 0, "z": 0, "c": 3, "d": 0, "w": 0}',
        '{"d": 0}',
    ):
        assert accepts(text)
    for text in ('{"b": 1, "a": 1, "d": 0}', '{"d": 0, "a": 1}', '{"a": 1, "a": 2, "d": 0}', '{"x": 0}'):
        assert not accepts(text)


def test_order_over_several_subschemas() -> None:
    accepts = acceptor({"allOf": [{"properties": {"b": INTEGER}}], "properties": {"a": INTEGER}, "type": "object"})
    assert accepts('{"b": 1, "a": 2}')
    assert not accepts('{"a": 2, "b": 1}')
    accepts = acceptor({"properties": {"a": INTEGER}, "allOf": [{"properties": {"b": INTEGER}}], "type": "object"})
    assert accepts('{"a": 2, "b": 1}')
    choice = {"anyOf": [{"required": ["b"], "properties": {"b": INTEGER}}, {"required": ["c"]}]}
    assert acceptor({**choice, "properties": {"a": INTEGER}, "type": "object"})('{"b": 2, "a": 1}')
    assert acceptor({"properties": {"a": INTEGER}, **choice, "type": "object"})('{"a": 1, "b": 2}')


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
