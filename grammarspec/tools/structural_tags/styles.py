"""The styles in which models write arguments as XML: an element for each parameter, with texts unquoted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from grammarspec.errors import UnsupportedFeature
from grammarspec.frontends.json_schema.spelling.options import Notation, Quotes, Spelling
from grammarspec.grammars.builder import GrammarBuilder
from grammarspec.grammars.expressions import literal
from grammarspec.tools.formats.arguments import TOJSON, parameters
from grammarspec.tools.tool import Tool

__all__ = ["STYLES", "Style", "xml_parameters"]

_OTHERS: Final = ("boolean", "null", "number", "array", "object")


@dataclass(frozen=True, slots=True)
class Style:
    """How a parameter is written.

    Attributes:
        text: what stands before a text, with ``$name`` for the parameter's.
        other: what stands before another value, which is JSON; with ``$type`` for its type, if that is written.
        end: what stands behind a value; no text holds it.
    """

    text: str
    other: str
    end: str


def _dsml(begin: str, end: str) -> Style:
    return Style(f'{begin} name="$name" string="true">', f'{begin} name="$name" string="false">', end)


STYLES: Final = {
    "qwen_xml": Style("<parameter=$name>", "<parameter=$name>", "</parameter>"),
    "minimax_xml": Style('<parameter name="$name">', '<parameter name="$name">', "</parameter>"),
    "glm_xml": Style("<arg_key>$name</arg_key><arg_value>", "<arg_key>$name</arg_key><arg_value>", "</arg_value>"),
    "deepseek_xml": _dsml("<｜DSML｜parameter", "</｜DSML｜parameter>"),
    "deepseek_v4_1_xml": _dsml("<｜DSML｜ parameter", "</｜DSML｜ parameter>"),
    "kimi_k3_xml": Style(
        '<|open|>argument key="$name" type="string"<|sep|>',
        '<|open|>argument key="$name" type="$type"<|sep|>',
        "<|close|>argument<|sep|>",
    ),
}
"""The styles by the names that XGrammar has for them."""


def xml_parameters(builder: GrammarBuilder, schema: Any, style: Style, text: Callable[[str], int]) -> int:
    """An element for each parameter of a schema, in the order of their declaration, with blanks as one likes.

    What could be both a text and another value, such as ``5``, may be either.

    Args:
        builder: where the nodes go.
        schema: the JSON Schema, of an object that lists its members.
        style: how elements are written.
        text: makes the node of a text, in which there may be names of special tokens.

    Raises:
        UnsupportedFeature: the schema is more than a list of parameters, or a name cannot be written in a tag.
        GrammarError: the schema cannot be enforced.
    """
    if not isinstance(schema, dict):
        raise UnsupportedFeature(
            "a schema that is no list of parameters", "#", "declare them as properties of an object"
        )
    blanks = builder.terminal(builder.repeat(builder.words(["\n", " ", "\t", "\r"]), 0, 16))
    unquoted = Spelling(notation=Notation(quotes=Quotes(literal("").ir, style.end)))
    nodes = [blanks]
    for parameter in parameters(Tool.from_json({"name": "arguments", "parameters": schema})):
        if not parameter.name or any(c in '<>"&' or c.isspace() for c in parameter.name):
            raise UnsupportedFeature(f"the name {parameter.name!r:.60} in an XML tag", "#/properties")
        typed = [(style.other.replace("$type", one), TOJSON, (one,)) for one in _OTHERS]
        others = typed if "$type" in style.other else [(style.other, TOJSON, _OTHERS)]
        ways: list[tuple[str, Spelling, tuple[str, ...]]] = [*others, (style.text, unquoted, ("string",))]
        builder.budget.spend(2_500 * len(ways))  # a grammar for each, with a builder of its own
        forms = []
        for begin, spelling, types in ways:
            ir = parameter.grammar(spelling, *types).ir
            forms.append(builder.seq(text(begin.replace("$name", parameter.name)), blanks, builder.embed(ir), blanks))
        element = builder.seq(builder.alt(*forms), text(style.end), blanks)
        nodes.append(element if parameter.required else builder.optional(element))
    return builder.seq(*nodes)
