"""Harmony, the format of gpt-oss: a reply is a sequence of messages, each to a channel.

Reasoning goes to the channel ``analysis``, remarks and calls to ``commentary``, the answer to ``final``. A reply begins
behind ``<|start|>assistant``. ``<|call|>`` and ``<|return|>`` are end-of-text tokens, and not part of the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import reduce
from operator import or_
from typing import Any, TypeVar

from grammarspec.grammars.expressions import Grammar
from grammarspec.tools.formats.arguments import TOJSON, schema_grammar
from grammarspec.tools.formats.base import AnyTool, CallReader, MarkerGrammar, Reply, ToolFormat, free_text, without_end
from grammarspec.tools.tool import Tool, ToolCall

__all__ = ["HARMONY"]

T = TypeVar("T")

_MARKERS = ("<|start|>", "<|channel|>", "<|constrain|>", "<|message|>", "<|end|>", "<|call|>", "<|return|>")
_TEXT = free_text(*_MARKERS)
# The recipient is in the header of the channel, or (in chat templates) in that of the role.
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
    """JSON without spaces, as the model was trained, or with the spaces of the chat template."""
    return schema_grammar(tool.schema, TOJSON._replace(separators=(",", ":"))) | schema_grammar(tool.schema)


class Harmony(ToolFormat):
    """A reply is reasoning (``analysis``) and remarks (``commentary``), then a call or the answer."""

    def reply(
        self, calls: Grammar[Any] | None, answer: Grammar[T] | None, *, required: bool, markers: MarkerGrammar
    ) -> Grammar[Reply[T]]:
        thought = self.part("<|channel|>analysis<|message|>", markers) + _TEXT.named("reply.thoughts")
        remark = self.part("<|channel|>commentary<|message|>", markers) + _TEXT.named("reply.remarks")
        before = (thought | remark) + self.part(_NEXT, markers)
        final = self.part("<|channel|>final", markers)
        content: Grammar[Any] = self.part("<|message|>", markers) + _TEXT.named("reply.text")
        if answer is not None:
            kind = self.part(" <|constrain|>json", markers).optional()
            content = kind + self.part("<|message|>", markers) + answer.named("reply.answer")
        last: Grammar[Any] = final + content
        if calls is not None:
            last = calls if required else calls | last
        return (before.repeat() + last).fields().map(_reply)

    def visible(self, text: str, tools: Iterable[AnyTool], *, answered: bool) -> str:
        parts, at = [], 0
        while before := _BEFORE.match(text, at):
            at = before.end()
            if before["channel"] == "commentary" and not answered:
                parts.append(before["text"] if before["end"] else without_end(before["text"], _NEXT))
        if final := _FINAL.match(text, at):
            parts.append(final["text"])
        return "\n".join(parts)

    def one_call(self, tool: AnyTool, markers: MarkerGrammar) -> Grammar[ToolCall]:
        headers = (self.part(header.replace("$name", tool.name), markers) for header in _HEADERS)
        call = reduce(or_, headers) + self.arguments_of(tool, markers).named("arguments")
        return call.fields().map(CallReader(tool))


def _reply(found: dict[str, Any]) -> Reply[Any]:
    final = [found["reply.text"]] if "reply.text" in found else []
    texts: Sequence[str] = [*found.get("reply.remarks", ()), *final]
    thoughts = "\n".join(found.get("reply.thoughts", ()))
    return Reply("\n".join(texts), found.get("reply.answer"), found.get("reply.calls", []), thoughts)


HARMONY = Harmony(
    name="harmony",
    call=f"{_HEADERS[0]}$arguments",
    markers=_MARKERS,
    single=True,
    channels=True,
    arguments=_arguments,
    signs=(r"<\|channel\|>", r"<\|message\|>", "functions"),
    source="https://developers.openai.com/cookbook/articles/openai-harmony",
)
