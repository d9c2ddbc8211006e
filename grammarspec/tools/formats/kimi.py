"""The format of Kimi K3: a reply is a message of up to three parts, for reasoning, the answer, and calls.

A prompt ends within the first part, ``<|open|>think<|sep|>`` or, without reasoning, ``<|open|>response<|sep|>``. Which
of them it was shows when the reply closes it. Only ``<|open|>``, ``<|close|>`` and ``<|sep|>`` are special tokens; the
names of parts between them are text. Each argument says of which type it is.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeVar

from grammarspec.grammars.expressions import Grammar
from grammarspec.tools.formats.base import AnyTool, MarkerGrammar, Reply, ToolFormat, free_text, without_end
from grammarspec.tools.formats.xml import ArgumentElements

__all__ = ["KIMI_K3"]

T = TypeVar("T")

_MARKERS = ("<|open|>", "<|close|>", "<|sep|>")
_TEXT = free_text(*_MARKERS)
_ANSWER = "<|close|>think<|sep|><|open|>response<|sep|>"
_ANSWERED = "<|close|>response<|sep|>"
_END = "<|close|>message<|sep|>"
_TYPES = ("string", "number", "boolean", "null", "object", "array")


class KimiK3(ToolFormat):
    """A reply is reasoning, then text, an answer or nothing, and then calls, if any."""

    def reply(
        self, calls: Grammar[Any] | None, answer: Grammar[T] | None, *, required: bool, markers: MarkerGrammar
    ) -> Grammar[Reply[T]]:
        thoughts = _TEXT.named("reply.thoughts") + self.part(_ANSWER, markers)
        answered = self.part(_ANSWERED, markers)
        said: Grammar[Any] = _TEXT.named("reply.text") if answer is None else answer.named("reply.answer")
        rest: Grammar[Any] = said + answered
        if calls is not None:
            alone = answered + calls
            rest = alone if required else alone | rest if answer is not None else rest + calls.optional()
        return (thoughts.optional() + rest + self.part(_END, markers)).fields().map(_reply)

    def visible(self, text: str, tools: Iterable[AnyTool], *, answered: bool) -> str:
        _, reasoned, answer = text.partition(_ANSWER)
        if not reasoned and _ANSWERED not in text:
            return ""  # it may be reasoning
        said, closed, _ = (answer if reasoned else text).partition(_ANSWERED)
        return (said if closed else without_end(said, _ANSWERED)).rstrip()  # whitespace before calls is not text


def _reply(found: dict[str, Any]) -> Reply[Any]:
    calls, text = found.get("reply.calls", []), found.get("reply.text", "")
    said = text.rstrip() if calls else text
    return Reply(said, found.get("reply.answer"), calls, found.get("reply.thoughts", ""))


KIMI_K3 = KimiK3(
    name="kimi-k3",
    begin="<|open|>tools<|sep|>",
    call='<|open|>call tool="$name" index="$id"<|sep|>$arguments<|close|>call<|sep|>',
    end="<|close|>tools<|sep|>",
    markers=_MARKERS,
    id_form="$number",
    channels=True,
    arguments=ArgumentElements(
        '<|open|>argument key="$name" type="$type"<|sep|>$value<|close|>argument<|sep|>',
        "<|close|>",
        _MARKERS,
        types=tuple((one, (one,)) for one in _TYPES),
    ),
    signs=(r"<\|open\|>", r"<\|sep\|>", "argument"),
    source="https://github.com/pwilkin/llama.cpp/pull/20",
)
