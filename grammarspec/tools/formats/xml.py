"""Formats that write each argument in XML tags, strings without quotes: Qwen3-Coder and 3.5, GLM, MiniMax M2."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from functools import reduce
from typing import Any

from grammarspec.errors import UnsupportedFeature
from grammarspec.frontends.json_schema.spelling.options import Notation, Quotes, Spelling
from grammarspec.grammars.expressions import Grammar, literal
from grammarspec.tools.formats.arguments import TOJSON, parameters
from grammarspec.tools.formats.base import MarkerGrammar, ToolFormat, marked
from grammarspec.tools.tool import Tool

__all__ = ["GLM_4_5", "GLM_4_7", "MINIMAX_M2", "QWEN_XML"]

_NAME = re.compile(r"[^\s<>]+")
_CAPITALS = Spelling(notation=Notation("None", "False", "True"))


@dataclass(frozen=True, slots=True)
class _Elements:
    """The arguments of a call: an element for each, in the order of their declaration.

    Texts are written as they are, other values as JSON. What could be both a text and another value, such as ``5``, is
    read as JSON.

    Attributes:
        element: an element, with ``$name`` and ``$value``.
        end: what stands behind a value; no text contains it.
        tags: the parts of an element that vocabularies may have as special tokens.
        capitals: whether constants may be written as in Python, too, as some chat templates do.
    """

    element: str
    end: str
    tags: tuple[str, ...] = ()
    capitals: bool = False

    def __call__(self, tool: Tool[..., Any], markers: MarkerGrammar) -> Grammar[dict[str, Any]]:
        """The grammar of the arguments of a call.

        Raises:
            UnsupportedFeature: the schema is more than a list of parameters, or a name cannot be written in a tag.
        """
        texts = Spelling(notation=Notation(quotes=Quotes(literal("").ir, self.end)))
        before, after = self.element.split("$value")
        parts: list[Grammar[Any]] = [literal("")]
        for parameter in parameters(tool):
            if not _NAME.fullmatch(parameter.name) or ('"$name"' in before and '"' in parameter.name):
                raise UnsupportedFeature(f"the name {parameter.name!r} in an XML tag", "#/properties")
            value: Grammar[Any] = parameter.grammar(TOJSON, "boolean", "null", "number", "array", "object")
            if self.capitals:
                value = value | parameter.grammar(_CAPITALS, "boolean", "null", read=ast.literal_eval)
            value = value | parameter.grammar(texts, "string", read=str)
            begin = marked(before.replace("$name", parameter.name), self.tags, markers)
            element = begin + value.named(parameter.name) + marked(after, self.tags, markers)
            parts.append(element if parameter.required else element.optional())
        return reduce(lambda a, b: a + b, parts).fields()


QWEN_XML = ToolFormat(
    name="qwen-xml",
    call="<tool_call>\n<function=$name>\n$arguments</function>\n</tool_call>",
    separator="\n",
    markers=("<tool_call>", "</tool_call>"),
    arguments=_Elements("<parameter=$name>\n$value\n</parameter>\n", "</parameter>", capitals=True),
    signs=(r"<tool_call>(?:\\n|\s)*<function=", r"<parameter="),
    source="https://huggingface.co/Qwen/Qwen3-Coder-30B-A3B-Instruct; https://huggingface.co/Qwen/Qwen3.5-4B",
)

_GLM_TAGS = ("<arg_key>", "</arg_key>", "<arg_value>", "</arg_value>")

GLM_4_5 = ToolFormat(
    name="glm-4.5",
    call="<tool_call>$name\n$arguments</tool_call>",
    separator="\n",
    markers=("<tool_call>", "</tool_call>", *_GLM_TAGS),
    arguments=_Elements("<arg_key>$name</arg_key>\n<arg_value>$value</arg_value>\n", "</arg_value>", _GLM_TAGS),
    signs=(r"</arg_key>(?:\\n|\s)+<arg_value>",),
    source="https://huggingface.co/zai-org/GLM-4.6",
)

GLM_4_7 = ToolFormat(
    name="glm-4.7",
    call="<tool_call>$name$arguments</tool_call>",
    markers=("<tool_call>", "</tool_call>", *_GLM_TAGS),
    arguments=_Elements("<arg_key>$name</arg_key><arg_value>$value</arg_value>", "</arg_value>", _GLM_TAGS),
    signs=(r"</arg_key><arg_value>",),
    source="https://huggingface.co/zai-org/GLM-4.7",
)

MINIMAX_M2 = ToolFormat(
    name="minimax-m2",
    begin="<minimax:tool_call>\n",
    call='<invoke name="$name">\n$arguments</invoke>',
    separator="\n",
    end="\n</minimax:tool_call>",
    markers=("<minimax:tool_call>", "</minimax:tool_call>"),
    arguments=_Elements('<parameter name="$name">$value</parameter>\n', "</parameter>"),
    signs=(r"<minimax:tool_call>", r"<invoke name="),
    source="https://huggingface.co/MiniMaxAI/MiniMax-M2",
)
