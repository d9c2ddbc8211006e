"""The formats of FunctionGemma and Gemma 4: JSON with unquoted names, and special quotes around strings."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

from grammarspec.frontends.json_schema.spelling.options import Notation, Quotes, Spelling
from grammarspec.grammars.expressions import Grammar
from grammarspec.tools.formats.arguments import schema_grammar
from grammarspec.tools.formats.base import MarkerGrammar, ToolFormat
from grammarspec.tools.tool import Tool

__all__ = ["FUNCTION_GEMMA", "GEMMA_4"]

_SCALAR = re.compile(r"[^,\]}]+")


@dataclass(frozen=True)
class _Values:
    """The arguments in this notation; members are sorted by their names, as chat templates write them.

    Attributes:
        quote: what strings begin and end with.
    """

    quote: str

    def __call__(self, tool: Tool[..., Any], markers: MarkerGrammar) -> Grammar[dict[str, Any]]:
        notation = Notation(quotes=Quotes(markers(self.quote).ir, self.quote), bare_names=True)
        spelling = Spelling(separators=(",", ":"), plain=True, notation=notation)
        return schema_grammar(_sorted(tool.schema), spelling, read=_Reader(self.quote))


@dataclass(frozen=True)
class _Reader:
    """Reads a value in this notation."""

    quote: str

    def __call__(self, text: str) -> Any:
        return self._value(text, 0)[0]

    def _value(self, text: str, at: int) -> tuple[Any, int]:
        """The value that begins at an offset, and the offset behind it."""
        if text.startswith(self.quote, at):
            start = at + len(self.quote)
            end = text.index(self.quote, start)
            return text[start:end], end + len(self.quote)
        if text[at] == "[":
            items = []
            at += 1
            while text[at] != "]":
                item, at = self._value(text, at + (text[at] == ","))
                items.append(item)
            return items, at + 1
        if text[at] == "{":
            members = {}
            at += 1
            while text[at] != "}":
                at += text[at] == ","
                colon = text.index(":", at)
                name = text[at:colon]
                members[name], at = self._value(text, colon + 1)
            return members, at + 1
        scalar = _SCALAR.match(text, at)
        assert scalar is not None
        return json.loads(scalar[0]), scalar.end()


def _sorted(value: Any) -> Any:
    """A schema whose properties and constants are in the order in which Jinja's ``dictsort`` puts them."""
    if isinstance(value, dict):
        return {name: _sorted(value[name]) for name in sorted(value, key=str.lower)}
    return [_sorted(item) for item in value] if isinstance(value, list) else value


GEMMA_4 = ToolFormat(
    name="gemma-4",
    call="<|tool_call>call:$name$arguments<tool_call|>",
    markers=("<|tool_call>", "<tool_call|>", '<|"|>'),
    arguments=_Values('<|"|>'),
    signs=(r"<\|tool_call>call:",),
    source="https://ai.google.dev/gemma/docs/core/prompt-formatting-gemma4",
)

FUNCTION_GEMMA = ToolFormat(
    name="function-gemma",
    call="<start_function_call>call:$name$arguments<end_function_call>",
    markers=("<start_function_call>", "<end_function_call>", "<escape>"),
    arguments=_Values("<escape>"),
    signs=(r"<start_function_call>call:",),
    source="https://ai.google.dev/gemma/docs/functiongemma/formatting-and-best-practices",
)
