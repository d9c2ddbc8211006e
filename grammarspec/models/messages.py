"""Messages with calls of tools: from the form of OpenAI's chat completions to the one that chat templates read."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from grammarspec.errors import PromptError, UnsupportedFeature

__all__ = ["to_template_messages"]

_TEXTS = ("name", "tool_call_id", "reasoning_content")  # members that are texts, if they are there


def to_template_messages(messages: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Messages of OpenAI's chat completions as the chat templates of transformers read them.

    The arguments of calls become mappings (templates write them as JSON, or in their own way), content that is ``None``
    becomes the empty text, messages of results get the name of their tool, and reasoning gets both names that templates
    read, ``reasoning_content`` and ``thinking``. Other members stay as they are.

    Args:
        messages: the messages of a chat, in order.

    Raises:
        PromptError: a message is malformed, or a result has no call; with the place as a JSON pointer.
        UnsupportedFeature: a call is not of a function, or has the form ``function_call`` that OpenAI used before
            ``tool_calls``.
    """
    names: dict[str, str] = {}  # the names of the called tools, by the ids of the calls
    return [_message(message, f"#/{at}", names) for at, message in enumerate(messages)]


def _message(message: Any, where: str, names: dict[str, str]) -> dict[str, Any]:
    if not isinstance(message, Mapping):
        hint = "of an object of OpenAI's SDK take message.model_dump(exclude_none=True)"
        raise PromptError(f"a message must be a mapping, and is {_kind(message)}", where, hint)
    found = dict(message)
    role = found.get("role")
    if not isinstance(role, str):
        raise PromptError("a message must have a role", f"{where}/role")
    if role == "function" or found.get("function_call") is not None:
        place = f"{where}/role" if role == "function" else f"{where}/function_call"
        raise UnsupportedFeature("calls as they were before tool_calls", place, 'use tool_calls, and the role "tool"')
    for name in _TEXTS:
        if not isinstance(found.get(name), str | None):
            raise PromptError(f"{name} must be a text, and is {_kind(found[name])}", f"{where}/{name}")
    calls = found.pop("tool_calls", None) or []
    if not isinstance(calls, Sequence) or isinstance(calls, str):
        raise PromptError(f"tool_calls must be a list, and is {_kind(calls)}", f"{where}/tool_calls")
    if calls:
        found["tool_calls"] = [_call(call, f"{where}/tool_calls/{at}", names) for at, call in enumerate(calls)]
    if found.get("content") is None and (calls or role == "tool"):
        found["content"] = ""
    if role == "tool":
        _name_result(found, where, names)
    reasoning = found.get("reasoning_content")
    if reasoning and not (calls and found["content"]):  # gpt-oss's template takes a text before calls as such, too
        found.setdefault("thinking", reasoning)
    return found


def _call(call: Any, where: str, names: dict[str, str]) -> dict[str, Any]:
    if not isinstance(call, Mapping):
        raise PromptError(f"a call must be a mapping, and is {_kind(call)}", where)
    if call.get("type", "function") != "function":
        raise UnsupportedFeature(f"a call of the type {call['type']!r}: only functions are known", f"{where}/type")
    function = call.get("function")
    if not isinstance(function, Mapping) or not isinstance(function.get("name"), str):
        hint = 'a call is {"id": ..., "type": "function", "function": {"name": ..., "arguments": ...}}'
        raise PromptError("a call must have a function with a name", f"{where}/function", hint)
    arguments = _arguments(function.get("arguments"), f"{where}/function/arguments")
    if isinstance(call.get("id"), str):
        names[call["id"]] = function["name"]
    return {**call, "type": "function", "function": {**function, "arguments": arguments}}


def _arguments(given: Any, where: str) -> dict[str, Any]:
    """The arguments of a call; some servers write the empty text if there are none."""
    if isinstance(given, str):
        try:
            given = json.loads(given) if given else {}
        except ValueError as error:
            raise PromptError(f"arguments must be JSON: {error}", where) from None
        except RecursionError:
            raise PromptError("arguments are nested too deeply", where) from None
    if not isinstance(given, Mapping):
        raise PromptError(f"arguments must be an object, or its JSON, and are {_kind(given)}", where)
    return dict(given)


def _name_result(message: dict[str, Any], where: str, names: dict[str, str]) -> None:
    """Give a message of a result the name of the tool that was called."""
    call = message.get("tool_call_id")
    if call is None and isinstance(message.get("name"), str):
        return
    if not isinstance(call, str):
        raise PromptError("a tool's message must have the id of its call", f"{where}/tool_call_id")
    if call not in names:
        raise PromptError(f"no call before this message has the id {call!r}", f"{where}/tool_call_id")
    message.setdefault("name", names[call])


def _kind(value: Any) -> str:
    return "null" if value is None else f"of type {type(value).__name__}"
