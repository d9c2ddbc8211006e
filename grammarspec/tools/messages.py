"""Messages as OpenAI has them, and as chat templates want them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from grammarspec.errors import PromptError, UnsupportedFeature

__all__ = ["to_template_messages"]


def to_template_messages(messages: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Messages of OpenAI's chat completions as the chat templates of transformers read them.

    The arguments of calls become mappings (templates write them as JSON, or in their own way), the empty text stands
    for content that is ``None``, messages of results have the name of their tool, and what the model thought has both
    names that templates know, ``reasoning_content`` and ``thinking``. Other members stay as they are.

    Raises:
        PromptError: a message is malformed, or a result without its call; with the place as a JSON pointer.
        UnsupportedFeature: a call is none of a function, or is in the form that OpenAI had before ``tool_calls``.
    """
    names: dict[str, str] = {}  # of the tools that were called, by id
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
    calls = found.pop("tool_calls", None) or []
    if not isinstance(calls, Sequence) or isinstance(calls, str):
        raise PromptError(f"tool_calls must be a list, and is {_kind(calls)}", f"{where}/tool_calls")
    if calls:
        found["tool_calls"] = [_call(call, f"{where}/tool_calls/{at}", names) for at, call in enumerate(calls)]
    if found.get("content") is None and (calls or role == "tool"):
        found["content"] = ""
    if role == "tool":
        _name_result(found, where, names)
    thought = found.get("reasoning_content")
    if thought and not (calls and found["content"]):  # gpt-oss's template takes a text before calls as such, too
        found.setdefault("thinking", thought)
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
    """A call's arguments; servers write no text at all where there are none."""
    if isinstance(given, str):
        try:
            given = json.loads(given) if given else {}
        except ValueError as error:
            raise PromptError(f"arguments must be JSON: {error}", where) from None
    if not isinstance(given, Mapping):
        raise PromptError(f"arguments must be an object, or its JSON, and are {_kind(given)}", where)
    return dict(given)


def _name_result(message: dict[str, Any], where: str, names: dict[str, str]) -> None:
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
