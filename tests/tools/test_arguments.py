"""Arguments in spellings that are not JSON: raw texts in XML, Python's literals, Gemma's bare names."""

from __future__ import annotations

from typing import Any

import pytest

import grammarspec as gs
from grammarspec.tools.formats import tool_format
from tests.tools.declared import tool


def _arguments(name: str, schema: dict[str, Any], text: str) -> dict[str, Any]:
    [call] = tool_format(name).grammar([tool("f", schema)], choice="required").parse(text).calls
    return call.arguments


def _object(required: list[str] | None = None, **properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties) if required is None else required}


# ---------------------------------------------------------------------- XML
def _xml(**arguments: str) -> str:
    elements = "".join(f"<parameter={name}>\n{value}\n</parameter>\n" for name, value in arguments.items())
    return f"<tool_call>\n<function=f>\n{elements}</function>\n</tool_call>"


@pytest.mark.parametrize(
    ("schema", "text", "value"),
    [
        ({"type": "string"}, 'He said "no",\n\tand <b>left</b> \\n', 'He said "no",\n\tand <b>left</b> \\n'),
        ({"type": "string"}, "", ""),
        ({"type": "string"}, "5", "5"),
        ({"type": "string", "enum": ["a b", "c"]}, "a b", "a b"),
        ({"type": "string", "pattern": "^a+$"}, "aa", "aa"),
        ({"type": "integer"}, "5", 5),
        ({"type": "boolean"}, "true", True),
        ({"type": "boolean"}, "False", False),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, "null", None),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, "None", None),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, "nothing", "nothing"),
        ({"type": ["integer", "string"]}, "5", 5),
        ({"type": ["integer", "string"]}, "5th", "5th"),
        ({"type": "array", "items": {"type": "string"}}, '["a", "b"]', ["a", "b"]),
        ({"type": "object", "properties": {"x": {"type": "boolean"}}}, '{"x": true}', {"x": True}),
        ({"const": 7}, "7", 7),
        ({}, '{"a": [1]}', {"a": [1]}),
        ({}, "anything", "anything"),
    ],
)
def test_values_of_xml_elements(schema: dict[str, Any], text: str, value: Any) -> None:
    found = _arguments("qwen-xml", _object(k=schema), _xml(k=text))["k"]
    assert found == value and type(found) is type(value)


@pytest.mark.parametrize(
    ("schema", "text"),
    [
        ({"type": "string"}, "a</parameter>b"),
        ({"type": "string", "maxLength": 2}, "abc"),
        ({"enum": ["a"]}, '"a"'),
        ({"type": "string", "format": "date"}, "2024-02-30"),
        ({"type": "integer"}, "5.0"),
        ({"type": "boolean"}, "TRUE"),
        ({"type": "array", "items": {"type": "boolean"}}, "[True]"),
        ({"type": "object", "properties": {"x": {"type": "null"}}}, '{"x": null, "y": null}'),
    ],
)
def test_what_xml_elements_do_not_take(schema: dict[str, Any], text: str) -> None:
    grammar = tool_format("qwen-xml").grammar([tool("f", _object(k=schema))], choice="required")
    assert not grammar.matches(_xml(k=text))


def test_optional_elements_come_in_order() -> None:
    schema = _object(["b"], a={"type": "integer"}, b={"type": "integer"}, c={"type": "integer"})
    grammar = tool_format("qwen-xml").grammar([tool("f", schema)], choice="required")
    assert [grammar.matches(_xml(**dict.fromkeys(names, "1"))) for names in ("abc", "b", "bc", "a", "ba", "")] == [
        True, True, True, False, False, False,
    ]  # fmt: skip


@pytest.mark.parametrize(
    "draft", ["http://json-schema.org/draft-04/schema#", "http://json-schema.org/draft-07/schema#"]
)
def test_references_lead_where_they_did(draft: str) -> None:
    schema = {
        **_object(**{"a~/b%": {"$ref": "#/definitions/letter"}, "c": {"$ref": "#/properties/a~0~1b%25"}}),
        "$schema": draft, "definitions": {"letter": {"enum": ["x", "y"]}}, "x-order": 3,
    }  # fmt: skip
    grammar = tool_format("qwen-xml").grammar([tool("f", schema)], choice="required")
    assert grammar.matches(_xml(**{"a~/b%": "x", "c": "y"}))
    assert not grammar.matches(_xml(**{"a~/b%": "x", "c": "z"}))


# ---------------------------------------------------------------------- Python
@pytest.mark.parametrize(
    ("schema", "text", "value"),
    [
        ({"type": "string"}, r'"a \"b\" \\ \n é \u0007"', 'a "b" \\ \n é \x07'),
        ({"type": ["boolean", "null"]}, "None", None),
        ({"type": "boolean"}, "True", True),
        ({"type": "number"}, "-0.5", -0.5),
        ({"enum": [["a", None], {"b": False}]}, '["a", None]', ["a", None]),
        ({"enum": [["a", None], {"b": False}]}, '{"b": False}', {"b": False}),
        ({}, '{"a": [1, True, {"b": None}]}', {"a": [1, True, {"b": None}]}),
    ],
)
def test_python_literals(schema: dict[str, Any], text: str, value: Any) -> None:
    found = _arguments("pythonic", _object(k=schema), f"[f(k={text})]")["k"]
    assert found == value and type(found) is type(value)


@pytest.mark.parametrize("text", ["true", "null", "'a'", "0x10", "1_000", "(1, 2)", '"a" "b"', '"\\x41"', "x"])
def test_other_python_is_not_taken(text: str) -> None:
    grammar = tool_format("pythonic").grammar([tool("f", _object(k={}))], choice="required")
    assert not grammar.matches(f"[f(k={text})]")


def test_optional_arguments_of_python_come_in_order() -> None:
    schema = _object(["b"], a={"type": "integer"}, b={"type": "integer"}, c={"type": "integer"})
    grammar = tool_format("pythonic").grammar([tool("f", schema)], choice="required")
    for names, right in {"abc": True, "b": True, "bc": True, "ab": True, "a": False, "ba": False, "": False}.items():
        assert grammar.matches("[f({})]".format(", ".join(f"{name}=1" for name in names))) == right, names


def test_many_parameters() -> None:
    names = [f"p{i}" for i in range(60)]
    many = tool("f", _object([], **{name: {"type": "integer"} for name in names}))
    for name, text in (
        ("pythonic", "[f(p3=1, p10=2)]"),
        ("qwen-xml", _xml(p3="1", p10="2")),
        ("gemma-4", "<|tool_call>call:f{p10:2,p3:1}<tool_call|>"),
    ):
        [call] = tool_format(name).grammar([many], choice="required").parse(text).calls
        assert call.arguments == {"p3": 1, "p10": 2}


# ---------------------------------------------------------------------- Gemma
@pytest.mark.parametrize(("name", "quote"), [("gemma-4", '<|"|>'), ("function-gemma", "<escape>")])
def test_values_of_gemma(name: str, quote: str) -> None:
    schema = _object(
        [], b={"type": "array", "items": {"enum": ["x", None, 2.5, True]}}, a={"type": "string"},
        Ab={"type": "object", "properties": {"z": {}, "y": {}}}, d={"type": "object", "additionalProperties": {}},
    )  # fmt: skip
    form = tool_format(name)

    def text(arguments: str) -> str:
        return form.call.replace("$name", "f").replace("$arguments", arguments.replace("'", quote))

    for arguments, value in {
        "{}": {},
        "{a:'any \"text\" {with: [all,], \\n}\n'}": {"a": 'any "text" {with: [all,], \\n}\n'},
        "{a:'',Ab:{y:['','a,b'],z:{}},b:['x',null,2.5,true]}": {
            "a": "", "Ab": {"y": ["", "a,b"], "z": {}}, "b": ["x", None, 2.5, True],
        },
        "{d:{a-b:1,$c:[],ü:{k:'v'}}}": {"d": {"a-b": 1, "$c": [], "ü": {"k": "v"}}},
    }.items():  # fmt: skip
        assert _arguments(name, schema, text(arguments)) == value
    grammar = form.grammar([tool("f", schema)], choice="required")
    for wrong in ("{b:[],a:''}", "{a:'', b:[]}", "{d:{a b:1}}", "{d:{'a':1}}", '{a:"x"}', "{a:''''}", "{b:['y']}"):
        assert not grammar.matches(text(wrong)), wrong


# ---------------------------------------------------------------------- refused
@pytest.mark.parametrize(
    ("name", "function", "schema", "message", "place"),
    [
        ("pythonic", "get-it", _object(), "name 'get-it'", "get-it, #"),
        ("pythonic", "f", _object(**{"from": {}}), "name 'from'", "f, #/properties"),
        (
            "pythonic",
            "f",
            {**_object(), "additionalProperties": True},
            "additionalProperties",
            "#/additionalProperties",
        ),
        ("pythonic", "f", _object(k={"type": "array", "uniqueItems": True}), "must differ", "#/properties/k"),
        ("qwen-xml", "f", {**_object(a={}), "minProperties": 1}, "minProperties", "#/minProperties"),
        ("qwen-xml", "f", _object(**{"a b": {}}), "name 'a b'", "#/properties"),
        ("minimax-m2", "f", _object(**{'a"b': {}}), "name 'a\"b'", "#/properties"),
        ("qwen-xml", "f", _object(k={"enum": ["</parameter>"]}), "'</parameter>'", "#/properties/k"),
        ("gemma-4", "f", _object(k={"type": "array", "uniqueItems": True}), "must differ", "#/properties/k"),
        ("gemma-4", "f", _object(**{"a:b": {}}), "'a:b'", "f, #"),
        ("function-gemma", "f", _object(k={"const": "<escape>"}), "'<escape>'", "#/properties/k"),
        ("hermes", "f", _object(k={"pattern": r"(a)\1"}), "backreference", "#/properties/k/pattern"),
    ],
)
def test_what_a_spelling_cannot_say_is_refused(
    name: str, function: str, schema: dict[str, Any], message: str, place: str
) -> None:
    with pytest.raises(gs.UnsupportedFeature) as caught:
        tool_format(name).grammar([tool(function, schema)])
    assert message in caught.value.message and name in caught.value.message
    assert caught.value.where.startswith(f"the tool {function}, ") and place in caught.value.where
    assert caught.value.hint
