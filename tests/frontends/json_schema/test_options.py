"""The choices for generation: layouts, escapes, numbers, closed objects."""

from __future__ import annotations

import json
import random
import re
from decimal import Decimal
from inspect import signature
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

import grammarspec as gs
from grammarspec.frontends.json_schema.options import Options, OptionsOfCall, check_options
from tests.counting import discard, examples
from tests.frontends.json_schema.schemas import NAMES, PLAIN
from tests.frontends.json_schema.texts import BYTES, acceptor, walk

# Options, and the arguments with which json.dumps writes the same.
CANONICAL: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"whitespace": "compact"}, {"separators": (",", ":")}),
    ({"whitespace": "pretty"}, {"indent": 2}),
    ({"whitespace": "pretty", "indent": 4, "separators": (",", ":")}, {"indent": 4, "separators": (",", ":")}),
    ({"separators": (", ", ": ")}, {}),
    ({"indent": "\t"}, {"indent": "\t"}),
    ({"indent": 0, "separators": (" ,", ": ")}, {"indent": 0, "separators": (" ,", ": ")}),
]
WRITTEN = st.sampled_from(CANONICAL)
TEXT = st.text(st.sampled_from('ab/\x00\x1f"\\\n \x7f\x80\u00e9\u2028\ud7ff\ue000\uffff\U00010000\U0001f600\U0010ffff'))
SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3), max_leaves=8
)
TREE = {"properties": {"a": {"$ref": "#"}, "b": {"items": {"$ref": "#"}, "type": "array"}}, "type": "object"}


def _accepts(schema: Any, text: str, **options: Any) -> bool:
    return acceptor(schema, **options)(text)


# ---------------------------------------------------------------------- layouts
@pytest.mark.parametrize(("options", "arguments"), CANONICAL, ids=str)
def test_exactly_what_json_dumps_writes(options: dict[str, Any], arguments: dict[str, Any]) -> None:
    value = {"a": {"b": [{}, {"a": {}, "b": []}], "c": [[], [1, {"d": None}]]}, "b": [{"b": [{"a": {}}]}], "e": "x"}
    text = json.dumps(value, **arguments)
    others = {json.dumps(value, **other) for _, other in CANONICAL} - {text}
    counted = {"properties": {"a": {}, "b": {}}, "minProperties": 2, "maxProperties": 3}
    for schema in ({}, TREE, {"const": value}, {"enum": [value, 1]}, counted):
        accepts = acceptor(schema, **options)
        assert accepts(text)
        assert not any(map(accepts, [*others, text + " ", " " + text, text.replace("[]", "[ ]")]))


@examples(150)
@given(WRITTEN, VALUES, st.booleans(), st.sampled_from(["any", "minimal"]))
def test_values_as_json_dumps_writes_them(written: Any, value: Any, ascii_: bool, escapes: Any) -> None:
    options, arguments = written
    text = json.dumps(value, ensure_ascii=ascii_, **arguments)
    for schema in ({}, {"const": value}):
        assert _accepts(schema, text, ensure_ascii=ascii_, escapes=escapes, **options)


def _rewritten(text: str, **arguments: Any) -> str:
    """The text as ``json.dumps`` writes its value, but for numbers, which stay as they are."""

    def members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len(dict(pairs)) < len(pairs):  # undeclared names may come again; a dict has them once
            discard("a repeated name")
        return dict(pairs)

    def keep(number: str) -> str:
        return f"<number {number}>"

    value = json.loads(text, parse_int=keep, parse_float=keep, object_pairs_hook=members)
    return re.sub(r'"<number (.*?)>"', r"\1", json.dumps(value, **arguments))


@examples(250, kept=0.8)
@given(PLAIN, WRITTEN, st.booleans(), st.booleans(), st.integers(0, 2**32), st.sampled_from([5, 30, 90]))
def test_whatever_is_written_is_canonical(
    schema: Any, written: Any, ascii_: bool, closed: bool, seed: int, length: int
) -> None:
    layout, arguments = written
    options = {**layout, "ensure_ascii": ascii_, "escapes": "minimal", "additional_properties": not closed}
    try:
        constraint = gs.compile(gs.json_schema(schema, **options), BYTES)
        text = walk(constraint, random.Random(seed), length).decode()
    except (gs.Unsatisfiable, gs.UnsupportedFeature, gs.LimitExceeded) as error:
        discard(f"a refusal: {error.code}")
    assert text == _rewritten(text, ensure_ascii=ascii_, **arguments)
    assert text.isascii() if ascii_ else _accepts(schema, text)


@pytest.mark.parametrize("order", ["declared", "any"])
def test_indentation_by_depth(order: Any) -> None:
    accepts = acceptor(TREE, whitespace="pretty", property_order=order)
    assert accepts('{\n  "a": {\n    "b": [\n      {},\n      {\n        "a": {}\n      }\n    ]\n  },\n  "b": []\n}')
    assert not accepts('{\n  "a": {\n  "b": []\n  }\n}')
    assert not accepts('{\n  "a": {\n    "b": []\n    }\n}')
    assert not accepts('{\n  "b": [\n    {},\n      {}\n  ]\n}')
    assert not accepts('{\n  "b": [\n  ]\n}')
    assert accepts('{\n  "b": [],\n  "a": {}\n}') == (order == "any")


def test_indentation_of_every_kind_of_array_and_object() -> None:
    value = {"k1": [1, "x", None], "k2": [True, True, 1], "z": {"w": 1}}
    schema = {
        "patternProperties": {"^k1": {"prefixItems": [{}, {}], "contains": {"const": "x"}, "maxContains": 1}},
        "properties": {"k2": {"minItems": 2, "maxItems": 3}, "z": {"minProperties": 1, "maxProperties": 1}},
        "not": {"additionalProperties": {"type": "object"}},
    }
    for text in (json.dumps(value, indent=2), json.dumps({"k1": ["x"], "k2": [1, 1], "z": {"": []}}, indent=2)):
        assert _accepts(schema, text, whitespace="pretty")
        assert not _accepts(schema, text.replace("    ", "   "), whitespace="pretty")
    unique = {"items": {"enum": [{"a": 1}, [2], 3]}, "type": "array", "uniqueItems": True}
    assert _accepts(unique, json.dumps([[2], 3, {"a": 1}], indent=2), whitespace="pretty")
    assert not _accepts(unique, json.dumps([[2], [2]], indent=2), whitespace="pretty")


@pytest.mark.parametrize("schema", [{}, TREE, {"items": {"$ref": "#"}}, {"prefixItems": [{"$ref": "#"}]}], ids=str)
def test_indentation_has_32_levels(schema: Any) -> None:
    accepts = acceptor(schema, indent=1)
    pair = ("{}", lambda inner: {"a": inner}) if schema is TREE else ("[]", lambda inner: [inner])
    value = json.loads(pair[0])
    for _ in range(32):
        value = pair[1](value)
    assert accepts(json.dumps(value, indent=1))
    assert not accepts(json.dumps(pair[1](value), indent=1))
    assert acceptor(schema)(json.dumps(pair[1](value), separators=(",", ":")))


def test_recursion_that_never_ends_is_found() -> None:
    endless = {"properties": {"a": {"$ref": "#"}}, "required": ["a"], "type": "object"}
    with pytest.raises(gs.Unsatisfiable):
        acceptor(endless, whitespace="pretty")


def test_whitespace_by_pattern() -> None:
    accepts = acceptor({}, whitespace=re.compile(r"\s?"))
    for text in ("[1,2]", "[ 1\n,\t2\r]", '{ "a" : { } }'):
        assert accepts(text)
    for text in ("[  1]", "[\u00a01]", "[\x0b1]", " 1"):
        assert not accepts(text)
    accepts = acceptor({"properties": {"a": {}}}, whitespace=re.compile("(?=..$) +", re.DOTALL))
    assert accepts('{  "a"  :  1  }')
    assert not accepts('{"a":1}')


# ---------------------------------------------------------------------- characters
@pytest.mark.parametrize("name", ["\x7f", "\u00e9", "\ud7ff\ue000\uffff", "\U00010000\U0001f600\U0010ffff", "a\n"])
def test_ascii_in_keys_constants_and_patterns(name: str) -> None:
    plain, ascii_ = json.dumps(name, ensure_ascii=False), json.dumps(name)
    schemas: list[tuple[Any, str]] = [
        ({"const": name}, "{}"),
        ({"enum": [name, *map(str, range(40))]}, "{}"),
        ({"pattern": f"^[{name}]+$"}, "{}"),
        ({"minLength": len(name), "maxLength": len(name)}, "{}"),
        ({"properties": {name: {"const": 1}}, "additionalProperties": False, "minProperties": 1}, "{{{}:1}}"),
        ({"patternProperties": {f"^{name}$": {"const": 1}}, "additionalProperties": False}, "{{{}:1}}"),
        ({"additionalProperties": {"const": 1}, "propertyNames": {"const": name}}, "{{{}:1}}"),
    ]
    for schema, frame in schemas:
        accepts = acceptor(schema, ensure_ascii=True)
        assert accepts(frame.format(ascii_)), schema
        if plain != ascii_:
            assert not accepts(frame.format(plain)), schema
            assert acceptor(schema)(frame.format(plain)), schema


def test_ascii_leaves_no_way_around() -> None:
    accepts = acceptor({"not": {"const": "\u00e9"}}, ensure_ascii=True)
    assert accepts('"\\u00e8"')
    assert not any(map(accepts, ('"\\u00e9"', '"\\u00E9"', '"\u00e8"')))
    accepts = acceptor({"format": "iri", "type": "string"}, ensure_ascii=True)
    assert accepts('"http://\\u00e9.example/\\ud83d\\ude00"')
    assert not any(map(accepts, ('"http://\u00e9.example/"', '"http://\\ud83d.example/"')))
    with pytest.raises(gs.GrammarSyntaxError, match="surrogate"):
        gs.json_schema({"const": "\ud800"}, ensure_ascii=True)


@given(st.lists(st.tuples(st.integers(0, 0x10FFFF), st.integers(0, 0x2FFFF)), max_size=3), st.characters())
def test_sets_of_characters_in_ascii(ranges: list[tuple[int, int]], char: str) -> None:
    ends = [(low, min(low + width, 0x10FFFF)) for low, width in ranges]
    ends.append((0x2192, 0x2192))  # a pattern of surrogates alone is malformed
    pattern = "^[" + "".join(f"\\u{{{low:x}}}-\\u{{{high:x}}}" for low, high in ends) + "]$"
    accepts = acceptor({"pattern": pattern, "type": "string"}, ensure_ascii=True)
    near = [char, *(chr(code) for low, high in ends for code in (low - 1, low, high, high + 1) if 0 <= code < 0x110000)]
    for one in near:
        if not 0xD800 <= ord(one) <= 0xDFFF:
            assert accepts(json.dumps(one)) == any(low <= ord(one) <= high for low, high in ends)


def test_minimal_escapes() -> None:
    accepts = acceptor({"type": "string"}, escapes="minimal")
    assert accepts('"/\\n\\u001f\u00e9"')
    assert not any(map(accepts, ('"\\/"', '"\\u000a"', '"\\u0041"', '"\\u001F"')))
    accepts = acceptor({"type": "string"}, escapes="minimal", ensure_ascii=True)
    assert accepts('"\\u00e9\\ud83d\\ude00"')
    assert not any(map(accepts, ('"\\u00E9"', '"\u00e9"', '"\\u0041"', '"\\ud83d"')))


# ---------------------------------------------------------------------- numbers
def test_plain_numbers() -> None:
    plain = {"numbers": "plain"}
    for schema in ({"type": "integer"}, {"type": "integer", "minimum": 3, "maximum": 10**40}, {"enum": [5, 10**20]}):
        accepts = acceptor(schema, **plain)
        assert accepts("5")
        assert accepts("100000000000000000000")
        assert not any(map(accepts, ("5.0", "5e0", "1e20", "1.0e+20")))
    for schema in ({"type": "number"}, {"type": "number", "minimum": 0.5}, {"multipleOf": 0.25}):
        accepts = acceptor(schema, **plain)
        assert accepts("5")
        assert accepts("12.50")
        assert not any(map(accepts, ("5e0", "1.25e1", "1E3")))
    accepts = acceptor({"type": "number", "not": {"type": "integer"}}, **plain)
    assert accepts("0.5")
    assert not any(map(accepts, ("5", "5.0", "5e-1")))
    assert acceptor({"enum": [1.0, 2.5, 0, -0.0]}, **plain)("1.0")
    for constant, texts in (("1.50", ["1.5", "1.50"]), ("2e3", ["2000"]), ("0", ["0"]), ("-3.0", ["-3", "-3.0"])):
        accepts = acceptor(f'{{"const": {constant}}}', **plain)
        written = [*texts, constant, f"{float(constant)!r}", texts[0] + ".0", f"{Decimal(constant):e}"]
        assert [text for text in dict.fromkeys(written) if accepts(text)] == texts
    with pytest.raises(gs.LimitExceeded, match="digits"):
        gs.json_schema('{"const": 1e500}', numbers="plain")


# ---------------------------------------------------------------------- closed objects
def test_closed_objects() -> None:
    def closed(schema: Any) -> Any:
        return acceptor(schema, additional_properties=False, whitespace="compact")

    integer = {"type": "integer"}
    accepts = closed({"properties": {"a": {"properties": {"b": integer}, "type": "object"}}, "required": ["c"]})
    assert accepts('{"a":{"b":1},"c":0}')
    assert not any(map(accepts, ('{"c":0,"d":0}', '{"a":{"c":1},"c":0}')))
    assert closed({"type": "object"})('{"a":1}')
    assert not closed({"type": "object", "properties": {}})('{"a":1}')
    for saying in ({"additionalProperties": integer}, {"additionalProperties": True}, {"patternProperties": {"x": {}}}):
        assert closed({"properties": {"a": {}}, **saying})('{"a":"","x":1}')
    # each subschema adds its properties
    both = {"allOf": [{"properties": {"a": {}}}, {"properties": {"b": {}}}], "type": "object"}
    assert closed(both)('{"a":1,"b":2}')
    assert not closed(both)('{"a":1,"c":2}')
    assert closed({**both, "additionalProperties": True})('{"a":1,"c":2}')
    either = {
        "anyOf": [{"required": ["a"], "properties": {"a": {}}}, {"properties": {"b": {}}}],
        "properties": {"k": {}},
    }
    assert closed(either)('{"a":1,"k":2}')
    assert closed(either)('{"b":1,"k":2}')
    assert not closed(either)('{"a":1,"k":2,"x":0}')
    # what is forbidden, or asked for by a dependency, is not declared
    assert closed({"type": "object", "not": {"required": ["a"]}})('{"x":1}')
    depending = closed({"type": "object", "dependentRequired": {"a": ["b"]}})
    assert depending('{"x":1}')
    assert depending('{"a":1,"b":2,"x":1}')
    assert closed({"$ref": "#/$defs/t", "$defs": {"t": {"properties": {"a": {}}}}, "type": "object"})('{"a":1}')


OBJECTS = st.dictionaries(NAMES, st.integers(0, 2), max_size=3)


@examples(150, kept=0.5)
@given(PLAIN, st.lists(OBJECTS, min_size=1, max_size=5))
def test_closing_only_removes(schema: Any, values: list[Any]) -> None:
    try:
        accepts = acceptor(schema, additional_properties=False)
    except (gs.Unsatisfiable, gs.UnsupportedFeature, gs.LimitExceeded) as error:
        discard(f"a refusal: {error.code}")
    for value in values:
        if accepts(json.dumps(value)):
            assert jsonschema.Draft202012Validator(schema).is_valid(value)


@examples(100)
@given(st.dictionaries(NAMES, st.just({"type": "integer"}), max_size=3), st.lists(OBJECTS, min_size=1, max_size=5))
def test_closing_is_additional_properties_false(properties: Any, values: list[Any]) -> None:
    schema = {"type": "object", "properties": properties}
    closed = acceptor(schema, additional_properties=False)
    said = acceptor({**schema, "additionalProperties": False})
    for value in values:
        assert closed(json.dumps(value)) == said(json.dumps(value))


# ---------------------------------------------------------------------- wrong values
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"whitespace": "free"}, "whitespace must be"),
        ({"whitespace": re.compile("x+")}, "no JSON whitespace matches 'x\\+'"),
        ({"whitespace": re.compile(rb" ")}, "whitespace must be a pattern of text"),
        ({"whitespace": re.compile(r"( )\1")}, "whitespace: the backreference"),
        ({"whitespace": re.compile(" "), "indent": 2}, "whitespace cannot be a pattern where"),
        ({"whitespace": re.compile(" "), "separators": (",", ":")}, "whitespace cannot be a pattern where"),
        ({"whitespace": "compact", "indent": 2}, "has no line breaks to indent"),
        ({"indent": -1}, "indent must be"),
        ({"indent": 33}, "indent must be"),
        ({"indent": True}, "indent must be"),
        ({"indent": "--"}, "indent must be"),
        ({"separators": (";", ":")}, "separators must be"),
        ({"separators": ",:"}, "separators must be"),
        ({"separators": (",", ":\u00a0")}, "separators must be"),
        ({"ensure_ascii": 1}, "ensure_ascii must be"),
        ({"escapes": "few"}, "escapes must be"),
        ({"numbers": "integer"}, "numbers must be"),
        ({"additional_properties": None}, "additional_properties must be"),
    ],
    ids=str,
)
def test_wrong_values(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        gs.json_schema({}, **options)


def test_the_options_are_the_same_wherever_they_are_listed() -> None:
    parameters = dict(list(signature(gs.json_schema).parameters.items())[1:])
    checked = signature(check_options).parameters
    of_the_call = {"limits", "cancel"}
    assert {name: (one.annotation, one.default) for name, one in parameters.items() if name not in of_the_call} == {
        name: (one.annotation, one.default) for name, one in checked.items()
    }
    listed = {name: kind.__forward_arg__ for name, kind in OptionsOfCall.__annotations__.items()}
    assert listed == {name: one.annotation for name, one in parameters.items()}
    assert OptionsOfCall.__optional_keys__ == parameters.keys()
    assert Options.__optional_keys__ == checked.keys()
