"""The two formats of Llama: one call as bare JSON (3), a list of Python calls (3.2 and 4)."""

from __future__ import annotations

import ast
import keyword
import re
from collections.abc import Iterable, Sequence
from typing import Any

from grammarspec.errors import UnsupportedFeature
from grammarspec.frontends.json_schema.spelling.options import Notation, Spelling
from grammarspec.grammars.builder import GrammarBuilder
from grammarspec.grammars.expressions import Grammar
from grammarspec.tools.formats.arguments import parameters
from grammarspec.tools.formats.base import AnyTool, MarkerGrammar, ToolFormat, calls_of
from grammarspec.tools.tool import Tool, ToolCall

__all__ = ["LLAMA_JSON", "PYTHON", "PYTHONIC"]


class _LlamaJson(ToolFormat):
    """A call may have ``<|python_tag|>`` before it, which the models write sometimes."""

    def calls(self, tools: Sequence[AnyTool], *, parallel: bool, markers: MarkerGrammar) -> Grammar[list[ToolCall]]:
        tag = self.part(_PYTHON_TAG, markers).optional()
        call = super().calls(tools, parallel=parallel, markers=markers)
        return (tag + call.named("calls")).fields().map(calls_of)

    def openings(self, tools: Iterable[AnyTool]) -> list[str]:
        return [*super().openings(tools), _PYTHON_TAG]


_PYTHON_TAG = "<|python_tag|>"

LLAMA_JSON = _LlamaJson(
    name="llama-json",
    call='{"name": "$name", "parameters": $arguments}',
    markers=(_PYTHON_TAG,),
    starts=("{", _PYTHON_TAG),
    single=True,
    signs=(r'\{\\?"name\\?": function name, \\?"parameters\\?"',),
    source="https://www.llama.com/docs/model-cards-and-prompt-formats/llama3_1",
)

PYTHON = Spelling(separators=(", ", ": "), minimal=True, plain=True, notation=Notation("None", "False", "True"))
"""As Python's literals are written."""

_FUNCTION = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*")


def python_arguments(tool: Tool[..., Any], _markers: object) -> Grammar[dict[str, Any]]:
    """The arguments as keyword arguments of Python, in the order of their declaration."""
    if not _FUNCTION.fullmatch(tool.name):
        raise UnsupportedFeature(f"the name {tool.name!r}, which is none of Python's")
    b = GrammarBuilder()
    comma = b.literal(", ")
    rest = b.empty  # what may follow the previous argument
    begun: int | None = None  # one of the arguments so far, and what may follow it
    may_end = True
    for parameter in reversed(list(parameters(tool))):
        name = parameter.name
        if not (name.isascii() and name.isidentifier()) or keyword.iskeyword(name):
            raise UnsupportedFeature(f"the name {name!r}, which is none of Python's", "#/properties")
        here = b.seq(b.literal(f"{name}="), b.embed(parameter.grammar(PYTHON).ir), rest)
        begun = here if begun is None or parameter.required else b.alt(here, begun)
        may_end = may_end and not parameter.required
        rest = b.seq(comma, begun)
        if may_end:
            rest = b.optional(rest)
    whole = b.empty if begun is None else b.optional(begun) if may_end else begun
    return Grammar(b.build(whole), read=_keywords)


def _keywords(text: str) -> dict[str, Any]:
    call = ast.parse(f"f({text})", mode="eval").body
    assert isinstance(call, ast.Call)
    return {str(one.arg): ast.literal_eval(one.value) for one in call.keywords}


PYTHONIC = ToolFormat(
    name="pythonic",
    begin="[",
    call="$name($arguments)",
    separator=", ",
    end="]",
    starts=("[",),
    arguments=python_arguments,
    signs=(r"\[func_name1\(",),
    source="https://www.llama.com/docs/model-cards-and-prompt-formats/llama4",
)
