"""Formats of tool calls: what is written reads back, as a text and through chat templates; nothing else is taken."""

from __future__ import annotations

import re
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

import grammarspec as gs
from grammarspec.tools.formats import FORMATS, detect_format, tool_format
from grammarspec.tools.tool import Tool, ToolCall
from tests.counting import examples
from tests.tools.declared import PING, WEATHER, tool, tools
from tests.tools.rendering import TEMPLATES, message, reply

NAMES = list(FORMATS)


def _said(calls: Any) -> list[tuple[str, Any]]:
    return [(call.name, call.arguments) for call in calls]


# ---------------------------------------------------------------------- random tools, random walks
@pytest.mark.parametrize("name", NAMES)
@examples(40)
@given(tools=tools(), seed=st.integers(0, 2**32))
def test_whatever_is_written_are_valid_calls_that_chat_templates_write_alike(
    name: str, tools: list[Tool[..., Any]], seed: int
) -> None:
    pytest.importorskip("transformers")
    grammar = FORMATS[name].grammar(tools, choice="required")
    found = grammar.parse(grammar.sample(seed))
    schemas = {tool.name: tool.schema for tool in tools}
    assert found.calls
    for call in found.calls:
        Draft202012Validator(schemas[call.name]).validate(call.arguments)
    again = grammar.parse(reply((TEMPLATES / f"{name}.jinja").read_text(), message(found.calls), tools))
    assert _said(again.calls) == _said(found.calls)


# ---------------------------------------------------------------------- by hand
_CITY = '{"city": "Paris", "days": 3}'
CALLS = {
    "hermes": '<tool_call>\n{"name": "get_weather", "arguments": ARGUMENTS}\n</tool_call>',
    "llama-json": '{"name": "get_weather", "parameters": ARGUMENTS}',
    "json": '{"name": "get_weather", "arguments": ARGUMENTS}',
    "mistral-v2": '[TOOL_CALLS] [{"name": "get_weather", "arguments": ARGUMENTS}]',
    "mistral-v3": '[TOOL_CALLS] [{"name": "get_weather", "arguments": ARGUMENTS, "id": "abcDEF123"}]',
    "mistral-v3-tekken": '[TOOL_CALLS][{"name": "get_weather", "arguments": ARGUMENTS, "id": "abcDEF123"}]',
    "mistral-v11": "[TOOL_CALLS]get_weather[CALL_ID]abcDEF123[ARGS]ARGUMENTS",
    "mistral-v13": "[TOOL_CALLS]get_weather[ARGS]ARGUMENTS",
    "deepseek-v3": (
        "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>get_weather\n```json\nARGUMENTS\n```"
        "<｜tool▁call▁end｜><｜tool▁calls▁end｜>"
    ),
    "deepseek-v3.1": (
        "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>get_weather<｜tool▁sep｜>ARGUMENTS<｜tool▁call▁end｜>"
        "<｜tool▁calls▁end｜>"
    ),
    "kimi-k2": (
        "<|tool_calls_section_begin|><|tool_call_begin|>functions.get_weather:0<|tool_call_argument_begin|>ARGUMENTS"
        "<|tool_call_end|><|tool_calls_section_end|>"
    ),
    "cohere": (
        '<|START_ACTION|>[\n    {"tool_call_id": "0", "tool_name": "get_weather", "parameters": ARGUMENTS}\n]'
        "<|END_ACTION|>"
    ),
    "harmony": "<|channel|>commentary to=functions.get_weather <|constrain|>json<|message|>ARGUMENTS",
    "phi-4-mini": '<|tool_call|>[{"name": "get_weather", "arguments": ARGUMENTS}]<|/tool_call|>',
    "granite-3": '<|tool_call|>[{"name": "get_weather", "arguments": ARGUMENTS}]',
}
_DSML = (
    '<｜DSML｜CALLS>\n<｜DSML｜invoke name="get_weather">\n'
    '<｜DSML｜parameter name="city" string="true">Paris</｜DSML｜parameter>\n'
    '<｜DSML｜parameter name="days" string="false">3</｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜CALLS>'
)
WRITTEN = {name: call.replace("ARGUMENTS", _CITY) for name, call in CALLS.items()} | {
    "qwen-xml": (
        "<tool_call>\n<function=get_weather>\n<parameter=city>\nParis\n</parameter>\n"
        "<parameter=days>\n3\n</parameter>\n</function>\n</tool_call>"
    ),
    "glm-4.5": (
        "<tool_call>get_weather\n<arg_key>city</arg_key>\n<arg_value>Paris</arg_value>\n"
        "<arg_key>days</arg_key>\n<arg_value>3</arg_value>\n</tool_call>"
    ),
    "glm-4.7": (
        "<tool_call>get_weather<arg_key>city</arg_key><arg_value>Paris</arg_value>"
        "<arg_key>days</arg_key><arg_value>3</arg_value></tool_call>"
    ),
    "minimax-m2": (
        '<minimax:tool_call>\n<invoke name="get_weather">\n<parameter name="city">Paris</parameter>\n'
        '<parameter name="days">3</parameter>\n</invoke>\n</minimax:tool_call>'
    ),
    "deepseek-v3.2": _DSML.replace("CALLS", "function_calls"),
    "deepseek-v4": _DSML.replace("CALLS", "tool_calls"),
    "kimi-k3": (
        '<|close|>response<|sep|><|open|>tools<|sep|><|open|>call tool="get_weather" index="1"<|sep|>'
        '<|open|>argument key="city" type="string"<|sep|>Paris<|close|>argument<|sep|>'
        '<|open|>argument key="days" type="number"<|sep|>3<|close|>argument<|sep|>'
        "<|close|>call<|sep|><|close|>tools<|sep|><|close|>message<|sep|>"
    ),
    "cohere-xml": (
        '<cofl:tool_calls><cofl:tool_call id="0" name="get_weather">'
        '<cofl:value name="city" type="raw">Paris</cofl:value><cofl:value name="days" type="json">3</cofl:value>'
        "</cofl:tool_call></cofl:tool_calls>"
    ),
    "pythonic": '[get_weather(city="Paris", days=3)]',
    "gemma-4": '<|tool_call>call:get_weather{city:<|"|>Paris<|"|>,days:3}<tool_call|>',
    "function-gemma": "<start_function_call>call:get_weather{city:<escape>Paris<escape>,days:3}<end_function_call>",
}
_ELEMENT = "<parameter=days>\n3\n</parameter>\n"
_WRONG_DSML = [
    ('<｜DSML｜parameter name="days" string="false">3</｜DSML｜parameter>\n', ""), ("days", "hours"), (">3<", ">8<"),
    ('string="false"', 'string="true"'), ('string="true"', 'string="false"'), ("Paris", "</｜DSML｜parameter>"),
    ("</｜DSML｜invoke>\n", "</｜DSML｜invoke>"),
]  # fmt: skip
WRONG = {
    "deepseek-v3.2": _WRONG_DSML,
    "deepseek-v4": _WRONG_DSML,
    "qwen-xml": [(_ELEMENT, ""), (_ELEMENT, _ELEMENT.replace("days", "hours")), ("3\n", "8\n"), ("3\n", "three\n"),
                 (_ELEMENT, _ELEMENT * 2), ("Paris", "Paris" * 5)],
    "glm-4.5": [("<arg_key>days</arg_key>\n<arg_value>3</arg_value>\n", ""), ("days", "hours"), (">3<", ">8<"),
                (">3<", ">three<"), ("Paris", "Paris" * 5), ("</arg_key>\n", "</arg_key>")],
    "glm-4.7": [("<arg_key>days</arg_key><arg_value>3</arg_value>", ""), ("days", "hours"), (">3<", ">8<"),
                ("Paris", "</arg_value>"), ("</arg_key>", "</arg_key>\n")],
    "minimax-m2": [('<parameter name="days">3</parameter>\n', ""), ("days", "hours"), (">3<", ">8<"),
                   (">3<", ">three<"), ("Paris", "</parameter>"), ("</invoke>\n", "</invoke>")],
    "kimi-k3": [('"number"', '"string"'), ('"string"', '"number"'), ("days", "hours"), (">3<", ">8<"),
                (">3<", ">three<"), ('<|open|>argument key="days" type="number"<|sep|>3<|close|>argument<|sep|>', ""),
                ("Paris", "<|close|>"), ("<|close|>tools<|sep|>", ""), ("<|close|>message<|sep|>", "")],
    "cohere-xml": [('"json"', '"raw"'), ('"raw"', '"json"'), ("days", "hours"), (">3<", ">8<"), (">3<", ">three<"),
                   ('<cofl:value name="days" type="json">3</cofl:value>', ""), ("Paris", "</cofl:value>"),
                   ("</cofl:value></cofl:tool_call>", "</cofl:value>\n</cofl:tool_call>")],
    "pythonic": [(", days=3", ""), ("days=3", "days=3, hours=2"), ("days=3", 'days="3"'), ('"Paris"', "Paris"),
                 ("city=", ""), ("days=3", "days=3,"), (", days", ",days")],
    "gemma-4": [(",days:3", ""), ("days:3", "days:3,hours:2"), ('days:3', 'days:<|"|>3<|"|>'), ("days:3", '"days":3'),
                ('<|"|>Paris<|"|>', "Paris"), ("city:", "city: ")],
    "function-gemma": [(",days:3", ""), ("days:3", "days:3,hours:2"), ("3", "<escape>3<escape>"), ("city:", "town:"),
                       ("<escape>Paris<escape>", '"Paris"'), ("days:3", "days:9")],
}  # fmt: skip
_WRONG_JSON = [
    (', "days": 3', ""), ('"days": 3', '"days": 3, "hours": 2'), ('"days": 3', '"days": "3"'),
    ('"days": 3', '"days": 8'), ('"city"', '"town"'), ('"Paris"', "'Paris'"), ('"Paris"', "null"),
    ('"days": 3', '"days":  3'),
]  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_calls_written_by_hand(name: str) -> None:
    text = WRITTEN[name]
    for choice in ("auto", "required", "get_weather"):
        found = tool_format(name).grammar([WEATHER, PING], choice=choice).parse(text)
        assert _said(found.calls) == [("get_weather", {"city": "Paris", "days": 3})]
        assert found.calls[0].args == {"city": "Paris", "days": 3} and found.text == ""
    grammar = tool_format(name).grammar([WEATHER, PING], choice="required")
    for old, new in [("get_weather", "get_whether"), *WRONG.get(name, _WRONG_JSON)]:
        assert old in text and not grammar.matches(text.replace(old, new)), (old, new)
    for near in (text + " ", text + "\nDone.", text[:-1], "Well: " + text, "", "{}"):
        assert not grammar.matches(near), near
    assert not tool_format(name).grammar([WEATHER, PING], choice="ping").matches(text)


@pytest.mark.parametrize("name", [name for name in NAMES if not FORMATS[name].single])
def test_several_calls_come_if_they_may(name: str) -> None:
    pytest.importorskip("transformers")
    tools = [WEATHER, PING]
    calls = [ToolCall("abcDEF123", "get_weather", {"city": "Oslo", "days": 1, "unit": "C"}, None), _PINGED]
    text = reply((TEMPLATES / f"{name}.jinja").read_text(), message(calls), tools)
    for choice in ("auto", "required"):
        assert _said(FORMATS[name].grammar(tools, choice=choice).parse(text).calls) == _said(calls)
        assert not FORMATS[name].grammar(tools, choice=choice, parallel=False).matches(text)
    assert not FORMATS[name].grammar(tools, choice="ping").matches(text)


_PINGED = ToolCall("abcDEF124", "ping", {}, None)


@pytest.mark.parametrize("name", [name for name in NAMES if FORMATS[name].single])
def test_formats_of_single_calls_take_no_second(name: str) -> None:
    grammar = FORMATS[name].grammar([WEATHER, PING])
    assert not grammar.matches(WRITTEN[name] * 2) and not grammar.matches("\n".join([WRITTEN[name]] * 2))


# ---------------------------------------------------------------------- text, answers, choices
_AROUND = {
    "harmony": ("<|channel|>final<|message|>", ""),
    "kimi-k3": ("", "<|close|>response<|sep|><|close|>message<|sep|>"),
}


def _reply_of(name: str, text: str) -> str:
    """A reply that is this text, or this answer."""
    before, after = _AROUND.get(name, ("", ""))
    return before + text + after


@pytest.mark.parametrize("name", [name for name in NAMES if not FORMATS[name].starts and name != "harmony"])
def test_text_may_come_before_calls(name: str) -> None:
    grammar = FORMATS[name].grammar([WEATHER])
    found = grammar.parse("I look it up: {1} [2].\n" + WRITTEN[name])
    assert found.text == "I look it up: {1} [2]." and len(found.calls) == 1
    assert grammar.parse(_reply_of(name, "No need. \n")).text == "No need. \n"
    assert not grammar.matches(WRITTEN[name] + "\nDone.")
    marker = FORMATS[name].markers[0]
    assert not grammar.matches(_reply_of(name, f"I write {marker} now."))


@pytest.mark.parametrize("name", [name for name in NAMES if FORMATS[name].frames])
def test_text_and_answers_may_have_markers_around_them(name: str) -> None:
    form = FORMATS[name]
    sky = gs.regex("blue|grey")
    for begin, end in form.frames:
        assert form.grammar([WEATHER]).parse(f"{begin}It is blue.{end}").text == "It is blue."
        assert form.grammar([], answer=sky).parse(f"{begin}blue{end}").answer == "blue"
        for wrong in (f"{begin}It is blue.", f"It is blue.{end}", f"{begin}{begin}{end}", f"{begin}{end} "):
            assert not form.grammar([WEATHER]).matches(wrong)
        assert not form.grammar([WEATHER], choice="required").matches(f"{begin}{end}")
        text = f"{begin}It is <| blue.{end}"
        shown = [form.visible(text[:length], [WEATHER], answered=False) for length in range(len(text) + 1)]
        assert shown[-1] == "It is <| blue." and all(shown[-1].startswith(one) for one in shown)


@pytest.mark.parametrize("name", [name for name in NAMES if FORMATS[name].starts])
def test_text_comes_instead_of_calls_that_nothing_marks(name: str) -> None:
    grammar = FORMATS[name].grammar([WEATHER])
    assert grammar.parse("No need: {1} [2].").text == "No need: {1} [2]."
    for start in FORMATS[name].starts:
        assert not grammar.matches(start) and not grammar.matches(f"\n {start} no call")
    assert grammar.parse("").text == ""


def test_a_call_of_llama_may_come_behind_a_tag() -> None:
    grammar = tool_format("llama-json").grammar([WEATHER], choice="required")
    [call] = grammar.parse("<|python_tag|>" + WRITTEN["llama-json"]).calls
    assert call.arguments == {"city": "Paris", "days": 3}


@pytest.mark.parametrize("name", NAMES)
def test_answers_have_a_grammar(name: str) -> None:
    answer = gs.json_schema({"type": "object", "properties": {"sky": {"enum": ["blue", "grey"]}}, "required": ["sky"]})
    text = _reply_of(name, '{"sky": "blue"}')
    for choice in ("auto", "none"):
        grammar = FORMATS[name].grammar([WEATHER], choice=choice, answer=answer)
        found = grammar.parse(text)
        assert found.answer == {"sky": "blue"} and found.calls == [] and found.text == ""
        assert not grammar.matches(_reply_of(name, "It is blue.")) and not grammar.matches(
            text.replace("blue", "green")
        )
        assert grammar.matches(WRITTEN[name]) == (choice == "auto")
    assert not FORMATS[name].grammar([WEATHER], choice="required", answer=answer).matches(text)


@pytest.mark.parametrize("name", NAMES)
def test_without_calls_there_is_text(name: str) -> None:
    for grammar in (FORMATS[name].grammar([]), FORMATS[name].grammar([WEATHER], choice="none")):
        found = grammar.parse(_reply_of(name, "It is blue."))
        assert found.text == "It is blue." and found.answer is None and found.calls == []


def test_choices_that_cannot_be() -> None:
    hermes = tool_format("hermes")
    with pytest.raises(ValueError, match=r"get_weather, ping.*'weather'"):
        hermes.grammar([WEATHER, PING], choice="weather")
    with pytest.raises(ValueError, match="no tools"):
        hermes.grammar([], choice="required")
    with pytest.raises(ValueError, match="same name"):
        hermes.grammar([PING, PING])
    with pytest.raises(ValueError, match="hermes"):
        tool_format("homer")


def test_messages_of_harmony() -> None:
    grammar = tool_format("harmony").grammar([WEATHER, PING])
    thought = "<|channel|>analysis<|message|>They ask for rain.<|end|><|start|>assistant"
    remark = "<|channel|>commentary<|message|>I look it up.<|end|><|start|>assistant"
    found = grammar.parse(thought + remark + WRITTEN["harmony"])
    assert (found.reasoning, found.text, len(found.calls)) == ("They ask for rain.", "I look it up.", 1)
    found = grammar.parse(thought + thought + "<|channel|>final<|message|>Rain.")
    assert (found.reasoning, found.text, found.calls) == ("They ask for rain.\nThey ask for rain.", "Rain.", [])
    for header in (
        "<|channel|>commentary to=functions.ping <|constrain|>json",
        "<|channel|>commentary to=functions.ping<|constrain|>json",
        " to=functions.ping<|channel|>commentary <|constrain|>json",
        " to=functions.ping<|channel|>commentary json",
    ):
        assert grammar.parse(header + "<|message|>{}").calls[0].name == "ping"
    assert grammar.parse(WRITTEN["harmony"].replace(": ", ":").replace(", ", ",")).calls[0].args["days"] == 3
    for wrong in (
        "<|channel|>analysis<|message|>Hm.",
        "Rain.",
        thought,
        remark,
        "<|channel|>final<|message|>a<|end|>b",
    ):
        assert not grammar.matches(wrong)
    required = tool_format("harmony").grammar([PING], choice="required")
    assert required.matches(thought + header + "<|message|>{}")
    assert not required.matches(thought + "<|channel|>final<|message|>No.")
    answer = tool_format("harmony").grammar([], answer=gs.json_schema({"type": "integer"}))
    assert answer.parse("<|channel|>final <|constrain|>json<|message|>7").answer == 7
    named = tool_format("harmony").grammar(
        [], answer=gs.regex("(?P<text>a)(?P<thoughts>b)", captures=True)
    )  # names of the user's own
    found = named.parse("<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>final<|message|>ab")
    assert (found.answer, found.text, found.reasoning) == ("ab", "", "Hm.")


def test_parts_of_messages_of_kimi_k3() -> None:
    form = tool_format("kimi-k3")
    grammar = form.grammar([WEATHER, PING])
    thought = "They ask for rain.<|close|>think<|sep|><|open|>response<|sep|>"
    found = grammar.parse(thought + "I look it up." + WRITTEN["kimi-k3"])
    assert (found.reasoning, found.text, len(found.calls)) == ("They ask for rain.", "I look it up.", 1)
    found = grammar.parse(_reply_of("kimi-k3", thought + "Rain."))
    assert (found.reasoning, found.text, found.calls) == ("They ask for rain.", "Rain.", [])
    for wrong in (thought + thought, "Rain.<|close|>response<|sep|>", "a<|sep|>b", "<|open|>think<|sep|>"):
        assert not grammar.matches(_reply_of("kimi-k3", wrong))
    required = form.grammar([WEATHER], choice="required")
    assert required.matches(thought + WRITTEN["kimi-k3"]) and not required.matches("No." + WRITTEN["kimi-k3"])
    answer = form.grammar([PING], answer=gs.json_schema({"type": "integer"}))
    assert answer.parse(_reply_of("kimi-k3", thought + "7")).answer == 7
    whole = thought + "I look it up <| now." + WRITTEN["kimi-k3"]
    shown = [form.visible(whole[:length], [WEATHER], answered=False) for length in range(len(whole) + 1)]
    assert shown[-1] == "I look it up <| now." and all(shown[-1].startswith(one) for one in shown)
    assert form.visible(_reply_of("kimi-k3", "No reasoning."), [WEATHER], answered=False) == "No reasoning."


def test_values_of_kimi_k3_say_their_types() -> None:
    value = {"v": {}, "w": {"type": ["string", "null"]}}
    grammar = tool_format("kimi-k3").grammar([tool("f", {"type": "object", "properties": value})], choice="required")
    call = (
        '<|close|>response<|sep|><|open|>tools<|sep|><|open|>call tool="f" index="1"<|sep|>{}<|close|>call<|sep|>'
        "<|close|>tools<|sep|><|close|>message<|sep|>"
    )
    element = '<|open|>argument key="v" type="{}"<|sep|>{}<|close|>argument<|sep|>'
    values = {"string": ("5", "5"), "number": ("5", 5), "boolean": ("true", True), "null": ("null", None)}
    values |= {"array": ('[1, "<|close|>"]', [1, "<|close|>"]), "object": ('{"a": {}}', {"a": {}})}
    for kind, (written, read) in values.items():
        assert grammar.parse(call.format(element.format(kind, written))).calls[0].arguments == {"v": read}
        for other in values.keys() - {kind, "string"} if kind != "string" else ():
            assert not grammar.matches(call.format(element.format(other, written)))
    null = call.format(element.replace('"v"', '"w"').format("null", "null"))
    assert grammar.parse(null).calls[0].arguments == {"w": None}
    assert not grammar.matches(null.replace('"null"', '"number"'))


def test_cohere_writes_objects_and_arrays_as_elements() -> None:
    place = {"type": "object", "properties": {"name": {"type": "string"}, "at": {"type": "array", "items": {}}}}
    grammar = tool_format("cohere-xml").grammar(
        [tool("f", {"type": "object", "properties": {"places": {"type": "array", "items": place}}})]
    )
    call = '<cofl:tool_calls><cofl:tool_call id="0" name="f">{}</cofl:tool_call></cofl:tool_calls>'
    values = [("json", "1.5"), ("raw", "1.5"), ("list", ""), ("dict", ""), ("json", "null")]
    text = call.format(
        '<cofl:value name="places" type="list"><cofl:value type="dict">'
        '<cofl:value name="name" type="raw">"Oslo" & <b></cofl:value><cofl:value name="at" type="list">'
        + "".join(f'<cofl:value type="{kind}">{value}</cofl:value>' for kind, value in values)
        + "</cofl:value></cofl:value></cofl:value>"
    )
    expected = {"places": [{"name": '"Oslo" & <b>', "at": [1.5, "1.5", [], {}, None]}]}
    assert grammar.parse(text).calls[0].arguments == expected
    assert grammar.parse(call.format("")).calls[0].arguments == {}
    for old, new in (
        ('"dict"', '"list"'),
        ("1.5", '"1.5"'),
        ("</cofl:value></cofl:value>", "</cofl:value>"),
        ("name=", "n="),
    ):
        assert not grammar.matches(text.replace(old, new, 1)), old


# ---------------------------------------------------------------------- ids and markers
_IDS = {
    "kimi-k2": ("functions.get_weather:0", ":"),
    "kimi-k3": ("1", "x"),
    "cohere": ("0", "x"),
    "cohere-xml": ("0", "x"),
}


@pytest.mark.parametrize("name", NAMES)
def test_calls_have_ids(name: str) -> None:
    grammar = FORMATS[name].grammar([WEATHER])
    [one], [other] = grammar.parse(WRITTEN[name]).calls, grammar.parse(WRITTEN[name]).calls
    if "$id" in FORMATS[name].call:
        written, wrong = _IDS.get(name, ("abcDEF123", "abcDEF12"))
        assert one.id == other.id == written
        assert not grammar.matches(WRITTEN[name].replace(written, wrong))
    else:
        assert one.id != other.id and one.id.isascii()
        assert len(one.id) == 9 if name.startswith("mistral") else one.id.startswith("call_")


@pytest.mark.parametrize("name", [name for name in NAMES if FORMATS[name].markers])
def test_markers_are_what_the_vocabulary_has(name: str) -> None:
    asked = set()

    def marker(name: str) -> gs.Grammar[str]:
        asked.add(name)
        return gs.literal("\ufdd0" + name[1:])

    grammar = FORMATS[name].grammar([WEATHER, PING], choice="required", markers=marker)
    assert asked <= {*FORMATS[name].markers, *chain.from_iterable(FORMATS[name].frames)}
    longest_first = sorted(map(re.escape, asked), key=len, reverse=True)
    text = re.sub("|".join(longest_first), lambda found: "\ufdd0" + found[0][1:], WRITTEN[name])
    if name != "llama-json":  # its marker is optional
        assert text != WRITTEN[name] and not grammar.matches(WRITTEN[name])
    assert grammar.matches(text)


@pytest.mark.parametrize("name", NAMES)
def test_grammars_of_the_same_tools_are_equal(name: str) -> None:
    form = FORMATS[name]
    assert form.grammar([WEATHER, PING]) == form.grammar([WEATHER, PING]) != form.grammar([WEATHER])


# ---------------------------------------------------------------------- detection
@pytest.mark.parametrize("name", NAMES)
def test_chat_templates_tell_their_format(name: str) -> None:
    found = detect_format((TEMPLATES / f"{name}.jinja").read_text())
    assert found is (None if name == "json" else FORMATS[name])


def test_the_page_has_all_formats_in_their_order() -> None:
    page = (Path(__file__).parents[2] / "docs" / "tools.md").read_text(encoding="utf-8")
    assert re.findall(r'^\| `"(.+?)"` \|', page, flags=re.MULTILINE) == list(FORMATS)


def test_templates_without_calls_tell_nothing() -> None:
    chat = "{% for message in messages %}{{ '<|im_start|>' + message.role + message.content }}{% endfor %}"
    assert detect_format(chat) is None and detect_format(None) is None
    assert detect_format(chat + "{{ '<tool_call>' + name + '\\n<arg_key>' }}") is None


def test_response_templates_tell_it_too() -> None:
    fields = {
        "tool_calls": {
            "open": ["<tool_call>\n<function="],
            "close": "</tool_call>",
            "content_args": {"key": "<parameter="},
        }
    }
    assert detect_format("{{ messages }}", {"version": 1, "fields": fields}) is tool_format("qwen-xml")


def test_models_without_a_format_are_told_of_one() -> None:
    told = tool_format("json").instructions([WEATHER, PING])
    assert '"name": "get_weather"' in told and '"name": "ping"' in told and "$" not in told
    assert tool_format("hermes").instructions([WEATHER]) == ""


# ---------------------------------------------------------------------- nested deeply
_ANYTHING = tool("f", {"type": "object", "properties": {"v": {}}})


def test_elements_are_read_as_deep_as_they_are_written() -> None:
    depth = 3000
    begin, end = '<cofl:value type="list">', "</cofl:value>"
    value = f'<cofl:value name="v" type="list">{begin * depth}{end * depth}{end}'
    call = f'<cofl:tool_calls><cofl:tool_call id="0" name="f">{value}</cofl:tool_call></cofl:tool_calls>'
    [read] = tool_format("cohere-xml").grammar([_ANYTHING]).parse(call).calls
    inner, levels = read.arguments["v"], 0
    while inner:
        [inner], levels = inner, levels + 1
    assert levels == depth


def test_what_is_too_deep_for_python_is_said_so() -> None:
    depth = 100_000
    text = '<tool_call>\n{"name": "f", "arguments": {"v": ' + "[" * depth + "]" * depth + "}}\n</tool_call>"
    grammar = tool_format("hermes").grammar([_ANYTHING])
    with pytest.raises(gs.LimitExceeded, match="nested more deeply than can be read"):
        grammar.parse(text)
