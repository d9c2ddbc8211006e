"""Messages as OpenAI has them become messages that chat templates read."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grammarspec.errors import PromptError, UnsupportedFeature
from grammarspec.models.messages import to_template_messages
from grammarspec.tools.tool import ToolCall

USER = {"role": "user", "content": "Hello"}


def called(*calls: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": None, "tool_calls": list(calls)}


def call(arguments: Any, **more: Any) -> dict[str, Any]:
    return {"id": "1", "type": "function", "function": {"name": "f", "arguments": arguments}, **more}


def test_a_conversation() -> None:
    messages = [
        {"role": "system", "content": "Be brief."},
        USER,
        {**called(call('{"a": [1, "b"]}'), call("{}", id="2")), "reasoning_content": "Hm."},
        {"role": "tool", "tool_call_id": "2", "content": "two"},
        {"role": "tool", "tool_call_id": "1", "name": "g", "content": None},
        {"role": "assistant", "content": "Done.", "tool_calls": None},
    ]
    before = json.dumps(messages)
    assert to_template_messages(messages) == [
        *messages[:2],
        {
            "role": "assistant",
            "content": "",
            "reasoning_content": "Hm.",
            "thinking": "Hm.",
            "tool_calls": [call({"a": [1, "b"]}), call({}, id="2")],
        },
        {"role": "tool", "tool_call_id": "2", "name": "f", "content": "two"},
        {"role": "tool", "tool_call_id": "1", "name": "g", "content": ""},
        {"role": "assistant", "content": "Done."},
    ]
    assert json.dumps(messages) == before


JSON = st.recursive(st.none() | st.booleans() | st.integers() | st.text(), lambda inner: st.lists(inner, max_size=3))


@given(st.dictionaries(st.text(), JSON, max_size=3))
def test_calls_come_back(arguments: dict[str, Any]) -> None:
    [found] = to_template_messages([called(ToolCall("1", "f", arguments, None).to_openai())])
    assert found["tool_calls"] == [call(arguments)]
    assert to_template_messages([found]) == [found]


def test_calls_without_arguments() -> None:
    [found] = to_template_messages([called({"function": {"name": "f", "arguments": ""}})])
    assert found["tool_calls"] == [{"type": "function", "function": {"name": "f", "arguments": {}}}]


def test_results_by_name() -> None:
    result = {"role": "tool", "name": "f", "content": "1"}
    assert to_template_messages([result]) == [result]


@pytest.mark.parametrize(
    ("messages", "where", "said"),
    [
        ([USER, SimpleNamespace(role="assistant")], "#/1", "model_dump"),
        ([{"content": "a"}], "#/0/role", "must have a role"),
        ([{**USER, "tool_calls": "a"}], "#/0/tool_calls", "must be a list, and is of type str"),
        ([{**USER, "tool_calls": {"a": 1}}], "#/0/tool_calls", "must be a list, and is of type dict"),
        ([called("a")], "#/0/tool_calls/0", "must be a mapping, and is of type str"),
        ([called(call("{}"), {"id": "2"})], "#/0/tool_calls/1/function", "a function with a name"),
        ([called(call('{"a": }'))], "#/0/tool_calls/0/function/arguments", "must be JSON: Expecting value: line 1"),
        ([called(call("[1]"))], "#/0/tool_calls/0/function/arguments", "and are of type list"),
        ([called(call(None))], "#/0/tool_calls/0/function/arguments", "and are null"),
        ([called(call("{}")), {"role": "tool", "content": "a"}], "#/1/tool_call_id", "the id of its call"),
        ([called(call("{}")), {"role": "tool", "tool_call_id": "2"}], "#/1/tool_call_id", "has the id '2'"),
        ([{"role": "tool", "tool_call_id": "1"}, called(call("{}"))], "#/0/tool_call_id", "no call before"),
    ],
)
def test_malformed_messages(messages: Any, where: str, said: str) -> None:
    with pytest.raises(PromptError) as caught:
        to_template_messages(messages)
    assert said in str(caught.value)
    assert caught.value.where == where


@pytest.mark.parametrize(
    ("message", "where"),
    [
        ({"role": "function", "name": "f", "content": "1"}, "#/0/role"),
        ({"role": "assistant", "function_call": {"name": "f", "arguments": "{}"}}, "#/0/function_call"),
        (called({"id": "1", "type": "custom", "custom": {"name": "f", "input": "a"}}), "#/0/tool_calls/0/type"),
    ],
)
def test_what_is_not_read(message: dict[str, Any], where: str) -> None:
    with pytest.raises(UnsupportedFeature) as caught:
        to_template_messages([message])
    assert caught.value.where == where
