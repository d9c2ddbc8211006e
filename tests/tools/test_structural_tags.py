"""Structural tags: texts that each format has and has not, and what is refused, with its place."""

from __future__ import annotations

from typing import Any

import pytest

import grammarspec as gs

SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}


def tag(begin: str, end: Any = "</f>", content: Any = None) -> dict[str, Any]:
    return {"begin": begin, "content": content or {"type": "json_schema", "json_schema": SCHEMA}, "end": end}


def text(value: str) -> dict[str, Any]:
    return {"type": "const_string", "value": value}


def triggered(**options: Any) -> dict[str, Any]:
    return {"type": "triggered_tags", "triggers": ["<f="], "tags": [tag("<f=x>"), tag("<f=y>")], **options}


def xml(style: str, properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "json_schema", "json_schema": {"type": "object", "properties": properties}, "style": style}


PARAMETERS = {
    "type": "object",
    "properties": {"q": {"type": "string"}, "n": {"type": "integer"}},
    "required": ["q"],
}
X = '<f=x>{"a":1}</f>'


def _kimi(name: str, kind: str, value: str) -> str:
    return f'<|open|>argument key="{name}" type="{kind}"<|sep|>{value}<|close|>argument<|sep|>'


def _m3(name: str, value: str) -> str:
    return f"]<]minimax[>[<{name}>{value}]<]minimax[>[</{name}>"


def _cohere(name: str, kind: str, value: str) -> str:
    named = f' name="{name}"' if name else ""
    return f'<cofl:value{named} type="{kind}">{value}</cofl:value>'


FREE = {
    "type": "object",
    "properties": {"q": {"enum": ["ab", "<x>", 1]}, "l": {"type": "array"}},
    "additionalProperties": {"type": "string"},
}
TREE = {
    "$defs": {
        "tree": {
            "type": "object",
            "properties": {"v": {"type": "string"}, "of": {"type": "array", "items": {"$ref": "#/$defs/tree"}}},
            "required": ["v"],
        }
    },
    "$ref": "#/$defs/tree",
}
FORMATS: dict[str, tuple[dict[str, Any], list[str], list[str]]] = {  # a format, texts of it, and texts that are none
    "triggered tags": (
        triggered(),
        ["", "hello", X, f'so: {X} and <f=y>{{"a": 2}}</f>.', "<f", f"<{X}"],
        ["<f=", "<f=z>", '<f=x>{"a":1}', '<f=x>{"b":1}</f>', '<f=x>{"a":1,"b":2}</f>', f"{X}<f="],
    ),
    "at least one": (triggered(at_least_one=True), [X, f"{X} then {X}"], ["", "so", f"so {X}"]),
    "one": (triggered(at_least_one=True, stop_after_first=True), [X], ["", f"so {X}", f"{X} then", f"{X}{X}"]),
    "at most one": (triggered(stop_after_first=True), ["", "so", X, f"so {X}"], [f"{X} then", f"{X}{X}"]),
    "without": (triggered(excludes=["no"]), ["yes", f"yes {X}"], ["no", f"no {X}", f"{X} no"]),
    "separated": (
        {"type": "tags_with_separator", "tags": [tag("<f=x>")], "separator": ", "},
        ["", X, f"{X}, {X}"],
        [", ", f"{X}{X}", f"{X}, "],
    ),
    "separated, one": (
        {"type": "tags_with_separator", "tags": [tag("<f=x>")], "separator": "", "at_least_one": True},
        [X, X + X],
        ["", f"{X} "],
    ),
    "separated, first": (
        {
            "type": "tags_with_separator",
            "tags": [tag("<f=x>")],
            "separator": "",
            "at_least_one": True,
            "stop_after_first": True,
        },
        [X],
        ["", X + X],
    ),
    "free text in a tag": (
        {"type": "tag", **tag("<t>", "aa", {"type": "any_text"})},
        ["<t>aa", "<t>baa", "<t>\naa"],
        ["<t>", "<t>a", "<t>aaa", "<t>aabaa"],
    ),
    "several ends": (
        {"type": "tag", **tag("<t>", ["</t>", "\n"], {"type": "any_text", "excludes": ["x"]})},
        ["<t></t>", "<t>a\n"],
        ["<t>a</t>\n", "<t>x\n"],
    ),
    "an end that holds what is excluded": (
        {"type": "tag", **tag("", "<c>r<s>", {"type": "any_text", "excludes": ["<c>", "<o>"]})},
        ["hi<c>r<s>", "<c>r<s>", "h<<c>r<s>"],  # as XGrammar 0.2.8 answers
        ["hi", "hi<c>", "hi<o>x<c>r<s>", "hi<c>x<c>r<s>", "hi<c>r<s><c>r<s>"],
    ),
    "short free text": (
        {"type": "tag", **tag("<t>", "|", {"type": "any_text", "max_chars": 2})},
        ["<t>|", "<t>éé|"],
        ["<t>abc|", "<t>a||"],
    ),
    "triggered in a tag": (
        {"type": "tag", **tag("<t>", "</t>", triggered())},
        [f"<t>so {X}</t>", "<t></t>"],
        ["<t></t></t>", f"<t>{X}"],
    ),
    "sequence": (
        {
            "type": "sequence",
            "elements": [
                text("<think>"),
                {"type": "regex", "pattern": "[a-z]+"},
                {"type": "or", "elements": [{"type": "grammar", "grammar": 'root ::= "1" | "2"'}, text("3")]},
            ],
        },
        ["<think>ab1", "<think>a3"],
        ["<think>1", "<think>ab4"],
    ),
    "optional": ({"type": "optional", "content": text("a")}, ["", "a"], ["aa"]),
    "star": ({"type": "star", "content": text("a")}, ["", "aaa"], ["b"]),
    "plus": ({"type": "plus", "content": text("a")}, ["a", "aaa"], [""]),
    "repeat": ({"type": "repeat", "min": 1, "max": 2, "content": text("a")}, ["a", "aa"], ["", "aaa"]),
    "repeat without end": ({"type": "repeat", "min": 2, "max": -1, "content": text("a")}, ["aa", "a" * 9], ["a"]),
    "dispatch": (
        {"type": "dispatch", "rules": [["x=", {"type": "regex", "pattern": "[0-9]"}]], "excludes": ["!"]},
        ["", "so x=1 and x=2", "x"],
        ["x=", "x=a", "so!"],
    ),
    "dispatch once": (
        {"type": "dispatch", "rules": [["x=", {"type": "regex", "pattern": "[0-9]"}]], "loop": False},
        ["so", "so x=1"],
        ["x=1 so"],
    ),
    "whitespace": (
        {"type": "json_schema", "json_schema": {"type": "array"}, "max_whitespace_cnt": 1},
        ["[1, 2]", "[]"],
        ["[1,  2]"],
    ),
    "any order": (
        {"type": "json_schema", "json_schema": {**PARAMETERS, "required": ["q", "n"]}, "any_order": True},
        ['{"n":1,"q":""}', '{"q":"","n":1}'],
        ['{"q":""}', '{"q":"","n":1,"z":1}'],
    ),
    "qwen": (
        {"type": "json_schema", "json_schema": PARAMETERS, "style": "qwen_xml"},
        ["<parameter=q>a b</parameter>", "\n<parameter=q>\n5\n</parameter>\n<parameter=n>5</parameter>\n"],
        ["", "<parameter=n>5</parameter>", "<parameter=q>a</parameter><parameter=n>x</parameter>"],
    ),
    "qwen, older": (
        {"type": "qwen_xml_parameter", "json_schema": PARAMETERS},
        ["<parameter=q>a</parameter>"],
        ["<parameter=z>a</parameter>"],
    ),
    "minimax": (
        {"type": "json_schema", "json_schema": PARAMETERS, "style": "minimax_xml"},
        ['<parameter name="q">a</parameter><parameter name="n">-1</parameter>'],
        ['<parameter name="n">1</parameter>'],
    ),
    "glm": (
        {"type": "json_schema", "json_schema": PARAMETERS, "style": "glm_xml"},
        ["<arg_key>q</arg_key><arg_value>a</arg_value>\n<arg_key>n</arg_key><arg_value>1</arg_value>"],
        ["<arg_key>q</arg_key><arg_value>a"],
    ),
    "deepseek": (
        {"type": "json_schema", "json_schema": PARAMETERS, "style": "deepseek_xml"},
        [
            '<｜DSML｜parameter name="q" string="true">a</｜DSML｜parameter>'
            '<｜DSML｜parameter name="n" string="false">1</｜DSML｜parameter>'
        ],
        ['<｜DSML｜parameter name="q" string="false">a</｜DSML｜parameter>'],
    ),
    "deepseek 4.1": (
        {"type": "json_schema", "json_schema": PARAMETERS, "style": "deepseek_v4_1_xml"},
        [
            '<｜DSML｜ parameter name="q" string="true">a</｜DSML｜ parameter>'
            '<｜DSML｜ parameter name="n" string="false">1</｜DSML｜ parameter>'
        ],
        ['<｜DSML｜parameter name="q" string="true">a</｜DSML｜parameter>'],
    ),
    "kimi k3": (
        {"type": "json_schema", "json_schema": PARAMETERS, "style": "kimi_k3_xml"},
        [_kimi("q", "string", "a b"), _kimi("q", "string", "5") + "\n" + _kimi("n", "number", "5")],
        [
            "",
            _kimi("q", "number", "5"),
            _kimi("q", "string", "a") + _kimi("n", "integer", "5"),
            _kimi("q", "string", "a") + _kimi("n", "number", "5.5"),
            _kimi("q", "string", "a")[:-1],
        ],
    ),
    "kimi k3, a value of any type": (
        {"type": "json_schema", "json_schema": {"properties": {"v": {}}, "required": ["v"]}, "style": "kimi_k3_xml"},
        [
            _kimi("v", "string", "x"),
            _kimi("v", "number", "1.5"),
            _kimi("v", "boolean", "true"),
            _kimi("v", "null", "null"),
            _kimi("v", "array", "[1, 2]"),
            _kimi("v", "object", '{"a": 1}'),
        ],
        [_kimi("v", "null", "1"), _kimi("v", "array", "{}"), _kimi("v", "any", "1")],
    ),
    "minimax m3": (
        {"type": "json_schema", "json_schema": TREE, "style": "minimax_m3_xml"},
        [_m3("v", ""), _m3("v", "a b") + _m3("of", _m3("item", _m3("v", "c") + _m3("of", "")))],
        ["", _m3("v", "]<]minimax[>["), _m3("v", "a") + _m3("of", _m3("item", "")), _m3("v", "a").replace("/v", "/w")],
    ),
    "cohere": (
        {"type": "json_schema", "json_schema": TREE, "style": "cohere_xml"},
        [
            _cohere("v", "raw", "<a>"),
            _cohere("v", "raw", "a") + _cohere("of", "list", _cohere("", "dict", _cohere("v", "raw", "c"))),
        ],
        ["", _cohere("v", "json", "1"), _cohere("v", "raw", "a") + _cohere("of", "list", _cohere("", "dict", ""))],
    ),
    "cohere, any arguments": (
        {"type": "json_schema", "json_schema": {"type": "object"}, "style": "cohere_xml"},
        ["", _cohere("a", "dict", _cohere("b", "list", _cohere("", "raw", "x") + _cohere("", "json", "1")))],
        ["x", _cohere("a", "json", "x"), _cohere("a", "dict", "x"), _cohere("a<", "raw", "x")],
    ),
    "arguments in any order": (
        {"type": "json_schema", "json_schema": PARAMETERS, "style": "glm_xml", "any_order": True},
        ["<arg_key>n</arg_key><arg_value>1</arg_value><arg_key>q</arg_key><arg_value>a</arg_value>"],
        ["<arg_key>n</arg_key><arg_value>1</arg_value>", "<arg_key>q</arg_key><arg_value>a</arg_value>" * 2],
    ),
    "arguments of any name, and what no text holds": (
        {"type": "json_schema", "json_schema": FREE, "style": "qwen_xml", "excludes": ["<x>"], "max_whitespace_cnt": 1},
        [
            "",
            "<parameter=q>ab</parameter>\n<parameter=d-e>5</parameter>",
            "<parameter=z><y></parameter>",
            '<parameter=l>["<y>"]</parameter>',
        ],
        [
            "<parameter=q><x></parameter>",
            "<parameter=z>a<x></parameter>",
            "<parameter=q>2</parameter>",
            '<parameter=l>["<x>"]</parameter>',
            "<parameter=a b>1</parameter>",
            "\n\n<parameter=q>1</parameter>",
        ],
    ),
    "what no string of JSON holds": (
        {"type": "json_schema", "json_schema": FREE, "excludes": ["<x>", '"']},
        ["{}", '{"q":"ab","z":"<y>"}', '{"q":1}'],
        ['{"q":"<x>"}', '{"z":"a<x>"}', '{"a<x>":""}', '{"z":"a\\"b"}'],
    ),
}


@pytest.mark.parametrize("name", FORMATS)
def test_texts_of_a_format(name: str) -> None:
    form, members, others = FORMATS[name]
    grammar = gs.structural_tag({"type": "structural_tag", "format": form})
    assert [one for one in members if not grammar.matches(one)] == []
    assert [one for one in others if grammar.matches(one)] == []
    assert gs.structural_tag(form) == gs.structural_tag(form)


def test_the_older_notation() -> None:
    older = {"structures": [{"begin": "<f=x>", "schema": SCHEMA, "end": "</f>"}], "triggers": ["<f="]}
    grammar = gs.structural_tag(older)
    assert grammar.matches(f"so {X} then") and not grammar.matches("<f=y>")


def test_names_of_special_tokens_stand_for_tokens() -> None:
    names = {"<call>": 7, "</call>": 8, "<x>": 9}
    called = {"type": "triggered_tags", "triggers": ["<call>"], "tags": [tag("<call>add ", "</call>")]}
    grammar = gs.structural_tag(called, special_tokens=names)
    assert grammar.node.special_tokens == {"<call>", "</call>"}
    assert grammar.matches('so <call>add {"a":1}</call> then') and not grammar.matches("<call>sub ")
    by_number = {
        "type": "token_triggered_tags",
        "trigger_tokens": [7],
        "tags": [{"begin": {"type": "token", "token": 7}, "content": text("a"), "end": {"token": "</call>"}}],
        "exclude_tokens": ["<x>"],
    }
    grammar = gs.structural_tag(by_number, special_tokens=names)
    assert grammar.matches("so <call>a</call> then") and "<x>" not in grammar.node.special_tokens
    dispatch = {"type": "token_dispatch", "rules": [["<call>", text("a")]]}
    assert gs.structural_tag(dispatch, special_tokens=names).matches("so <call>a then")
    tokens = {"type": "any_tokens", "exclude_tokens": ["<x>"]}
    grammar = gs.structural_tag(tokens, special_tokens=names)
    assert grammar.matches("a <call> b </call>") and grammar.node.special_tokens == {"<call>", "</call>"}
    assert gs.structural_tag({"type": "token", "token": 9}, special_tokens=names).matches("<x>")
    assert not gs.structural_tag(text("<x>")).node.special_tokens


COUNTED = {"type": "any_text", "max_tokens": 3}


@pytest.mark.parametrize(
    ("form", "error", "said"),
    [
        (5, gs.GrammarSyntaxError, "object"),
        ("{", gs.GrammarSyntaxError, "not JSON"),
        ([], gs.GrammarSyntaxError, "object"),
        ({"type": "structural_tag"}, gs.GrammarSyntaxError, "'format' is missing"),
        ({"type": "structural_tag", "format": 1}, gs.GrammarSyntaxError, "#/format"),
        ({"type": "magic"}, gs.UnsupportedFeature, "magic"),
        ({"type": 5}, gs.GrammarSyntaxError, "#/type"),
        ({**text("a"), "colour": 1}, gs.UnsupportedFeature, "colour"),
        (text(5), gs.GrammarSyntaxError, "#/value"),  # type: ignore[arg-type]
        ({"type": "any_text", "max_tokens": 3}, gs.UnsupportedFeature, "#/max_tokens"),
        ({"type": "tag", **tag("<t>", "</t>", COUNTED)}, gs.UnsupportedFeature, "content"),
        ({"type": "any_text", "excludes": [""]}, gs.GrammarSyntaxError, "#/excludes/0"),
        ({"type": "token", "token": 5}, gs.UnsupportedFeature, "special"),
        ({"type": "token", "token": "a"}, gs.UnsupportedFeature, "special"),
        ({"type": "exclude_token"}, gs.UnsupportedFeature, "exclude_token"),
        ({"type": "sequence", "elements": []}, gs.GrammarSyntaxError, "elements"),
        ({"type": "sequence", "elements": [1]}, gs.GrammarSyntaxError, "#/elements/0"),
        ({"type": "or", "elements": {}}, gs.GrammarSyntaxError, "list"),
        ({"type": "repeat", "min": 2, "max": 1, "content": text("a")}, gs.GrammarSyntaxError, "2 to 1"),
        ({"type": "repeat", "min": True, "max": 1, "content": text("a")}, gs.GrammarSyntaxError, "whole number"),
        ({"type": "tag", "begin": "a", "content": text("b"), "end": []}, gs.GrammarSyntaxError, "#/end"),
        ({"type": "tag", "begin": 5, "content": text("b"), "end": ""}, gs.GrammarSyntaxError, "#/begin"),
        (triggered(triggers=["<g"]), gs.GrammarSyntaxError, "triggers"),
        (triggered(triggers=["<f", "<f="]), gs.GrammarSyntaxError, "triggers"),
        (triggered(triggers=["<f=", "<g="]), gs.GrammarSyntaxError, "<g="),
        (triggered(excludes=["<f=x"]), gs.UnsupportedFeature, "within another"),
        ({"type": "dispatch", "rules": []}, gs.GrammarSyntaxError, "rules"),
        ({"type": "dispatch", "rules": [["a"]]}, gs.GrammarSyntaxError, "#/rules/0"),
        ({"type": "dispatch", "rules": [["", text("a")]]}, gs.GrammarSyntaxError, "#/rules/0"),
        ({"type": "regex", "pattern": "("}, gs.GrammarSyntaxError, "#/pattern"),
        ({"type": "grammar", "grammar": "root ::= ("}, gs.GrammarSyntaxError, "#/grammar"),
        ({"type": "json_schema", "json_schema": {"items": {"$ref": "#/x"}}}, gs.GrammarSyntaxError, "schema/items"),
        ({"type": "json_schema", "json_schema": {}, "style": "runes"}, gs.UnsupportedFeature, "#/style"),
        ({"type": "json_schema", "json_schema": {}, "excludes": ["a", ""]}, gs.GrammarSyntaxError, "#/excludes/1"),
        ({"type": "json_schema", "json_schema": {"type": "array"}, "style": "glm_xml"}, gs.Unsatisfiable, "no object"),
        ({**FORMATS["whitespace"][0], "max_whitespace_cnt": 10**12}, gs.GrammarSyntaxError, "#/max_whitespace_cnt"),
        ({**FORMATS["qwen"][0], "max_whitespace_cnt": -5}, gs.GrammarSyntaxError, "#/max_whitespace_cnt"),
        (xml("qwen_xml", {"a<b": {}}), gs.UnsupportedFeature, "'a<b' in the tag of an element"),
        (xml("qwen_xml", {"a": {"const": "</parameter>"}}), gs.UnsupportedFeature, "#/json_schema/properties/a"),
        (xml("minimax_m3_xml", {"a": {"type": "object"}}), gs.UnsupportedFeature, "members that are not declared"),
        (xml("cohere_xml", {"a": {"const": {"b": 1}}}), gs.UnsupportedFeature, "#/json_schema/properties/a"),
        (xml("cohere_xml", {"a": {"uniqueItems": True}}), gs.UnsupportedFeature, "#/json_schema/properties/a"),
        (text("\ud800"), gs.GrammarSyntaxError, "surrogate"),
    ],
)
def test_what_is_not_enforced_is_refused(form: Any, error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        gs.structural_tag(form)


def test_hostile_tags_end() -> None:
    deep: dict[str, Any] = text("a")
    for _ in range(3000):
        deep = {"type": "optional", "content": deep}
    with pytest.raises(gs.LimitExceeded, match="nest"):
        gs.compile(gs.structural_tag(deep), gs.Vocabulary.bytes())
    wide = {"type": "sequence", "elements": [triggered() for _ in range(20_000)]}
    with pytest.raises(gs.LimitExceeded, match="max_steps"):
        gs.structural_tag(wide)
    tags = [tag(f"<f={i}>") for i in range(2000)]
    with pytest.raises(gs.GrammarError):
        gs.structural_tag({"type": "triggered_tags", "triggers": [f"<f={i}" for i in range(2000)], "tags": tags})
    cancelled = gs.CancelToken()
    cancelled.cancel()
    with pytest.raises(gs.Cancelled):
        gs.structural_tag(wide, cancel=cancelled)
