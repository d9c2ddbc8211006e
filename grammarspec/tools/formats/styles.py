"""The styles in which models write arguments as XML: an element for each parameter, with texts unquoted."""

from __future__ import annotations

from typing import Final, Literal

from grammarspec.frontends.json_schema.json_values import (
    ALL_TYPES,
    ARRAY,
    BOOLEAN,
    NULL,
    NUMBER,
    OBJECT,
    STRING,
)
from grammarspec.frontends.json_schema.spelling.options import Element, Elements

__all__ = ["STYLES"]

_OTHERS: Final = ALL_TYPES & ~STRING


def _plain(begin: str, end: str) -> Elements:
    """Elements that do not say of which type their values are."""
    return Elements((Element(STRING, "text", begin), Element(_OTHERS, "json", begin)), end, end)


def _dsml(begin: str, end: str) -> Elements:
    """Elements that say whether their values are texts."""
    text, other = (f'{begin} name="$name" string="{string}">' for string in ("true", "false"))
    return Elements((Element(STRING, "text", text), Element(_OTHERS, "json", other)), end, end)


def _kimi_k3() -> Elements:
    """Elements that name the types of their values."""
    types = {"boolean": BOOLEAN, "null": NULL, "number": NUMBER, "array": ARRAY, "object": OBJECT}
    begin = '<|open|>argument key="$name" type="{}"<|sep|>'
    others = [Element(bits, "json", begin.format(name)) for name, bits in types.items()]
    end = "<|close|>argument<|sep|>"
    return Elements((Element(STRING, "text", begin.format("string")), *others), end, end)


def _cohere() -> Elements:
    """Elements that name the forms of their values, objects and arrays among them as elements again."""

    def kind(name: str, types: int, form: Literal["text", "json", "elements"]) -> Element:
        return Element(types, form, f'<cofl:value name="$name" type="{name}">', f'<cofl:value type="{name}">')

    kinds = (
        kind("raw", STRING, "text"),
        kind("json", NUMBER | BOOLEAN | NULL, "json"),
        kind("dict", OBJECT, "elements"),
        kind("list", ARRAY, "elements"),
    )
    end = "</cofl:value>"
    return Elements(kinds, end, end, end)


def _minimax_m3() -> Elements:
    """Elements named as their members, in tags with a prefix; objects and arrays are elements again."""
    prefix = "]<]minimax[>["
    member, item = f"{prefix}<$name>", f"{prefix}<item>"
    kinds = (
        Element(STRING, "text", member, item),
        Element(NUMBER | BOOLEAN | NULL, "json", member, item),
        Element(OBJECT | ARRAY, "elements", member, item),
    )
    return Elements(kinds, f"{prefix}</$name>", prefix, f"{prefix}</item>")


STYLES: Final = {
    "qwen_xml": _plain("<parameter=$name>", "</parameter>"),
    "minimax_xml": _plain('<parameter name="$name">', "</parameter>"),
    "minimax_m3_xml": _minimax_m3(),
    "glm_xml": _plain("<arg_key>$name</arg_key><arg_value>", "</arg_value>"),
    "deepseek_xml": _dsml("<｜DSML｜parameter", "</｜DSML｜parameter>"),
    "deepseek_v4_1_xml": _dsml("<｜DSML｜ parameter", "</｜DSML｜ parameter>"),
    "cohere_xml": _cohere(),
    "kimi_k3_xml": _kimi_k3(),
}
"""The styles by the names that XGrammar has for them."""
