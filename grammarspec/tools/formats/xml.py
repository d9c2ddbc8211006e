"""The format of Qwen3-Coder and Qwen3.5: an XML element for each argument, with texts unquoted."""

from __future__ import annotations

import ast
import re
from functools import reduce
from typing import Any

from grammarspec.errors import UnsupportedFeature
from grammarspec.frontends.json_schema.spelling.options import Notation, Quotes, Spelling
from grammarspec.grammars.expressions import Grammar, literal
from grammarspec.tools.formats.arguments import TOJSON, parameters
from grammarspec.tools.formats.base import ToolFormat
from grammarspec.tools.tool import Tool

__all__ = ["QWEN_XML"]

_NAME = re.compile(r"[^\s<>]+")
_TEXTS = Spelling(notation=Notation(quotes=Quotes(literal("").ir, "</parameter>")))
_CAPITALS = Spelling(notation=Notation("None", "False", "True"))


def xml_arguments(tool: Tool[..., Any], _markers: object) -> Grammar[dict[str, Any]]:
    """The grammar of an XML element for each argument, in the order of their declaration.

    Texts are written as they are, other values as JSON, and constants also as in Python, as chat templates do. What
    could be both a text and another value, such as ``5``, is read as JSON.

    Raises:
        UnsupportedFeature: the schema is more than a list of parameters, or a name cannot be written in a tag.
    """
    parts: list[Grammar[Any]] = [literal("")]
    for parameter in parameters(tool):
        if not _NAME.fullmatch(parameter.name):
            raise UnsupportedFeature(f"the name {parameter.name!r} in an XML tag", "#/properties")
        value = (
            parameter.grammar(TOJSON, "boolean", "null", "number", "array", "object")
            | parameter.grammar(_CAPITALS, "boolean", "null", read=ast.literal_eval)
            | parameter.grammar(_TEXTS, "string", read=str)
        )
        element = f"<parameter={parameter.name}>\n" + value.named(parameter.name) + "\n</parameter>\n"
        parts.append(element if parameter.required else element.optional())
    return reduce(lambda a, b: a + b, parts).fields()


QWEN_XML = ToolFormat(
    name="qwen-xml",
    call="<tool_call>\n<function=$name>\n$arguments</function>\n</tool_call>",
    separator="\n",
    markers=("<tool_call>", "</tool_call>"),
    arguments=xml_arguments,
    signs=(r"<tool_call>(?:\\n|\s)*<function=", r"<parameter="),
    source="https://huggingface.co/Qwen/Qwen3-Coder-30B-A3B-Instruct; https://huggingface.co/Qwen/Qwen3.5-4B",
)
