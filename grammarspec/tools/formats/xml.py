"""Formats that write each argument in XML tags, strings without quotes: Qwen3-Coder and 3.5, GLM, MiniMax M2, and
DeepSeek since V3.2. Those of Kimi K3 and Cohere, whose replies or values differ more, are in modules of their own."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import Any

from grammarspec.errors import UnsupportedFeature
from grammarspec.frontends.json_schema.spelling.options import Notation, Quotes, Spelling
from grammarspec.grammars.expressions import Grammar, literal
from grammarspec.tools.formats.arguments import TOJSON, Parameter, parameters
from grammarspec.tools.formats.base import MarkerGrammar, ToolFormat, marked
from grammarspec.tools.tool import Tool

__all__ = ["DEEPSEEK_V3_2", "DEEPSEEK_V4", "GLM_4_5", "GLM_4_7", "MINIMAX_M2", "QWEN_XML", "ArgumentElements"]

_OTHERS = ("boolean", "null", "number", "array", "object")
_NAME = re.compile(r"[^\s<>]+")
_CAPITALS = Spelling(notation=Notation("None", "False", "True"))


@dataclass(frozen=True, slots=True)
class ArgumentElements:
    """The arguments of a call: an element for each, in the order of their declaration.

    Texts are written as they are, other values as JSON. What could be both a text and another value, such as ``5``, is
    read as JSON, unless elements say which of them they have.

    Attributes:
        element: an element, with ``$name``, ``$value`` and, if it says of which type the value is, ``$type``.
        end: what stands behind a value; no text contains it.
        tags: the parts of an element that vocabularies may have as special tokens.
        capitals: whether constants may be written as in Python, too, as some chat templates do.
        none: what may be written where a call has no arguments.
        types: the JSON types of each ``$type``; texts have one of their own.
    """

    element: str
    end: str
    tags: tuple[str, ...] = ()
    capitals: bool = False
    none: str = ""
    types: tuple[tuple[str, tuple[str, ...]], ...] = ()

    def __call__(self, tool: Tool[..., Any], markers: MarkerGrammar) -> Grammar[dict[str, Any]]:
        """The grammar of the arguments of a call.

        Raises:
            UnsupportedFeature: the schema is more than a list of parameters, or a name cannot be written in a tag.
        """
        declared = [*parameters(tool)]
        written = reduce(lambda a, b: a + b, (self._written(one, markers) for one in declared), literal("")).fields()
        if self.none and not any(one.required for one in declared):
            return written | literal(self.none).fields()
        return written

    def _written(self, parameter: Parameter, markers: MarkerGrammar) -> Grammar[Any]:
        """The grammar of the element of a parameter, or of nothing where that may be left out."""
        if not _NAME.fullmatch(parameter.name) or ('"$name"' in self.element and '"' in parameter.name):
            raise UnsupportedFeature(f"the name {parameter.name!r} in an XML tag", "#/properties")
        kinds = self.types or (("", (*_OTHERS, "string")),)
        elements = (self._element(parameter, kind, self._value(parameter, types), markers) for kind, types in kinds)
        element = reduce(or_, elements)
        return element if parameter.required else element.optional()

    def _value(self, parameter: Parameter, types: Sequence[str]) -> Grammar[Any]:
        """The grammar of the values of these types: texts as they are, others as JSON."""
        if "string" not in types:
            value: Grammar[Any] = parameter.grammar(TOJSON, *types)
            if self.capitals:
                value = value | parameter.grammar(_CAPITALS, "boolean", "null", read=ast.literal_eval)
            return value
        texts = Spelling(notation=Notation(quotes=Quotes(literal("").ir, self.end)))
        text = parameter.grammar(texts, "string", read=str)
        others = [one for one in types if one != "string"]
        return self._value(parameter, others) | text if others else text

    def _element(self, parameter: Parameter, kind: str, value: Grammar[Any], markers: MarkerGrammar) -> Grammar[Any]:
        """The grammar of an element with a value of one kind, which is named as the parameter."""
        name = parameter.name
        before, after = self.element.split("$value")
        begin = marked(before.replace("$type", kind).replace("$name", name), self.tags, markers)
        return begin + value.named(name) + marked(after, self.tags, markers)


QWEN_XML = ToolFormat(
    name="qwen-xml",
    call="<tool_call>\n<function=$name>\n$arguments</function>\n</tool_call>",
    separator="\n",
    markers=("<tool_call>", "</tool_call>"),
    arguments=ArgumentElements("<parameter=$name>\n$value\n</parameter>\n", "</parameter>", capitals=True),
    signs=(r"<tool_call>(?:\\n|\s)*<function=", r"<parameter="),
    source="https://huggingface.co/Qwen/Qwen3-Coder-30B-A3B-Instruct; https://huggingface.co/Qwen/Qwen3.5-4B",
)

_GLM_TAGS = ("<arg_key>", "</arg_key>", "<arg_value>", "</arg_value>")

GLM_4_5 = ToolFormat(
    name="glm-4.5",
    call="<tool_call>$name\n$arguments</tool_call>",
    separator="\n",
    markers=("<tool_call>", "</tool_call>", *_GLM_TAGS),
    arguments=ArgumentElements("<arg_key>$name</arg_key>\n<arg_value>$value</arg_value>\n", "</arg_value>", _GLM_TAGS),
    signs=(r"</arg_key>(?:\\n|\s)+<arg_value>",),
    source="https://huggingface.co/zai-org/GLM-4.6",
)

GLM_4_7 = ToolFormat(
    name="glm-4.7",
    call="<tool_call>$name$arguments</tool_call>",
    markers=("<tool_call>", "</tool_call>", *_GLM_TAGS),
    arguments=ArgumentElements("<arg_key>$name</arg_key><arg_value>$value</arg_value>", "</arg_value>", _GLM_TAGS),
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
    arguments=ArgumentElements('<parameter name="$name">$value</parameter>\n', "</parameter>"),
    signs=(r"<minimax:tool_call>", r"<invoke name="),
    source="https://huggingface.co/MiniMaxAI/MiniMax-M2",
)


def _dsml(name: str, calls: str, source: str) -> ToolFormat:
    """DeepSeek's markup language, whose tags hold a special token. A call without arguments has an empty line."""
    return ToolFormat(
        name=name,
        begin=f"<｜DSML｜{calls}>\n",
        call='<｜DSML｜invoke name="$name">\n$arguments</｜DSML｜invoke>',
        separator="\n",
        end=f"\n</｜DSML｜{calls}>",
        markers=(f"<｜DSML｜{calls}>", "｜DSML｜"),
        arguments=ArgumentElements(
            '<｜DSML｜parameter name="$name" string="$type">$value</｜DSML｜parameter>\n',
            "</｜DSML｜parameter>",
            ("｜DSML｜",),
            none="\n",
            types=(("false", _OTHERS), ("true", ("string",))),
        ),
        signs=("｜DSML｜", f"[^.]{calls}>"),
        source=source,
    )


DEEPSEEK_V3_2 = _dsml("deepseek-v3.2", "function_calls", "https://huggingface.co/deepseek-ai/DeepSeek-V3.2")

DEEPSEEK_V4 = _dsml("deepseek-v4", "tool_calls", "https://huggingface.co/deepseek-ai/DeepSeek-V4-Flash")
