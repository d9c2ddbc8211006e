"""Harmony, the format of gpt-oss: messages to channels. Calls go to ``commentary``, answers to ``final``.

A reply begins behind ``<|start|>assistant``. ``<|call|>`` and ``<|return|>`` end texts, so they are tokens that the
vocabulary has as its ends, and no part of the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import reduce
from operator import or_
from typing import Any, TypeVar

from grammarspec.grammars.expressions import Grammar
from grammarspec.tools.formats.arguments import TOJSON, schema_grammar
from grammarspec.tools.formats.base import AnyTool, Markers, NewCall, Reply, ToolFormat, free_text, without_end
from grammarspec.tools.tool import Tool, ToolCall

__all__ = ["HARMONY"]

T = TypeVar("T")

_MARKERS = ("<|start|>", "<|channel|>", "<|constrain|>", "<|message|>", "<|end|>", "<|call|>", "<|return|>")
_TEXT = free_text(*_MARKERS)
# The recipient stands in the channel's header, or (in chat templates) in the role's.
_HEADERS = (
    "<|channel|>commentary to=functions.$name <|constrain|>json<|message|>",
    "<|channel|>commentary to=functions.$name<|constrain|>json<|message|>",
    " to=functions.$name<|channel|>commentary <|constrain|>json<|message|>",
    " to=functions.$name<|channel|>commentary json<|message|>",
)


_NEXT = "<|end|><|start|>assistant"
_BEFORE = re.compile(
    rf"<\|channel\|>(?P<channel>analysis|commentary)<\|message\|>(?P<text>.*?)(?P<end>{re.escape(_NEXT)}|\Z)", re.DOTALL
)
_FINAL = re.compile(r"<\|channel\|>final(?: <\|constrain\|>json)?<\|message\|>(?P<text>.*)", re.DOTALL)


def _arguments(tool: Tool[..., Any], _markers: object) -> Grammar[dict[str, Any]]:
    """As JSON without spaces, as the model is trained, or with those of the chat template."""
    return schema_grammar(tool.schema, replace(TOJSON, separators=(",", ":"))) | schema_grammar(tool.schema)


class Harmony(ToolFormat):
    """Replies are messages: thoughts (``analysis``) and remarks (``commentary``), then a call or the answer."""

    def reply(
        self, calls: Grammar[Any] | None, answer: Grammar[T] | None, *, required: bool, markers: Markers
    ) -> Grammar[Reply[T]]:
        thought = self.spelled("<|channel|>analysis<|message|>", markers) + _TEXT.named("thoughts")
        remark = self.spelled("<|channel|>commentary<|message|>", markers) + _TEXT.named("remarks")
        before = (thought | remark) + self.spelled(_NEXT, markers)
        final = self.spelled("<|channel|>final", markers)
        said: Grammar[Any] = self.spelled("<|message|>", markers) + _TEXT.named("text")
        if answer is not None:
            kind = self.spelled(" <|constrain|>json", markers).optional()
            said = kind + self.spelled("<|message|>", markers) + answer.named("reply.answer")
        last: Grammar[Any] = final + said
        if calls is not None:
            last = calls if required else calls | last
        return (before.repeat() + last).fields().map(_reply)

    def visible(self, said: str, tools: Iterable[AnyTool], *, answered: bool) -> str:
        parts, at = [], 0
        while before := _BEFORE.match(said, at):
            at = before.end()
            if before["channel"] == "commentary" and not answered:
                parts.append(before["text"] if before["end"] else without_end(before["text"], _NEXT))
        if final := _FINAL.match(said, at):
            parts.append(final["text"])
        return "\n".join(parts)

    def one_call(self, tool: AnyTool, markers: Markers) -> Grammar[ToolCall]:
        headers = (self.spelled(header.replace("$name", tool.name), markers) for header in _HEADERS)
        call = reduce(or_, headers) + self.told(tool, markers).named("arguments")
        return call.fields().map(NewCall(tool))


def _reply(found: dict[str, Any]) -> Reply[Any]:
    said: Sequence[str] = [*found.get("remarks", ()), *([found["text"]] if "text" in found else [])]
    thoughts = "\n".join(found.get("thoughts", ()))
    return Reply("\n".join(said), found.get("reply.answer"), found.get("reply.calls", []), thoughts)


HARMONY = Harmony(
    name="harmony",
    call=f"{_HEADERS[0]}$arguments",
    markers=_MARKERS,
    single=True,
    frames=True,
    arguments=_arguments,
    signs=(r"<\|channel\|>", r"<\|message\|>", "functions"),
    source="https://developers.openai.com/cookbook/articles/openai-harmony",
)
