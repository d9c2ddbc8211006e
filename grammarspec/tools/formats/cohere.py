"""Cohere's format of calls as XML: arguments, and values inside them, are elements that say of which form they are.

The chat template that writes it is ``cmd5-nested-xml`` of Cohere's library Melody.
"""

from __future__ import annotations

import json
import re
from typing import Any

from grammarspec.frontends.json_schema.json_values import OBJECT
from grammarspec.frontends.json_schema.spelling.options import Element, Elements
from grammarspec.grammars.expressions import Grammar
from grammarspec.tools.formats.arguments import TOJSON, schema_grammar
from grammarspec.tools.formats.base import ToolFormat
from grammarspec.tools.formats.styles import STYLES
from grammarspec.tools.tool import Tool

__all__ = ["COHERE_XML"]


class _Reader:
    """Reads objects that are written as elements, each of which says of which form its value is.

    Args:
        elements: how they are written.
    """

    def __init__(self, elements: Elements) -> None:
        self._elements = elements
        self._json = json.JSONDecoder()
        self._members = [(kind, _pattern(kind.member)) for kind in elements.kinds]
        self._items = [(kind, _pattern(kind.item)) for kind in elements.kinds]

    def __call__(self, text: str) -> dict[str, Any]:
        """The object that a text is; the text is one of the grammar."""
        whole: dict[str, Any] = {}
        around: list[dict[str, Any] | list[Any]] = [whole]  # the objects and arrays that have not ended
        at = 0
        while around:
            inner = around[-1]
            begun = _first(self._members if isinstance(inner, dict) else self._items, text, at)
            if begun is None:
                around.pop()
                at += len(self._elements.end)
                continue
            kind, begin = begun
            value, at = self._begin(kind, text, begin.end())
            if isinstance(inner, dict):
                inner[begin[1]] = value
            else:
                inner.append(value)
            if isinstance(value, dict | list):
                around.append(value)
        return whole

    def _begin(self, kind: Element, text: str, at: int) -> tuple[Any, int]:
        """The value of an element that begins here, and where the element ends; or where those in it begin."""
        if kind.form == "text":
            end = text.index(self._elements.mark, at)
            return text[at:end], end + len(self._elements.end)
        if kind.form == "json":
            value, end = self._json.raw_decode(text, at)
            return value, end + len(self._elements.end)
        return {} if kind.types == OBJECT else [], at


def _pattern(begin: str) -> re.Pattern[str]:
    """What matches the beginning of an element; its group is the name, if the element has one."""
    return re.compile(re.escape(begin).replace(re.escape("$name"), '([^"]*)'))


def _first(kinds: list[tuple[Element, re.Pattern[str]]], text: str, at: int) -> tuple[Element, re.Match[str]] | None:
    """The kind of the element that begins here, and what it begins with."""
    found = ((kind, begin.match(text, at)) for kind, begin in kinds)
    return next(((kind, match) for kind, match in found if match), None)


_ELEMENTS = STYLES["cohere_xml"]._replace(blanks=0)
_READER = _Reader(_ELEMENTS)


def _arguments(tool: Tool[..., Any], _markers: object) -> Grammar[dict[str, Any]]:
    """The arguments as elements, in the order of their declaration, without blanks between them."""
    return schema_grammar(tool.schema, TOJSON._replace(elements=_ELEMENTS), read=_READER)


COHERE_XML = ToolFormat(
    name="cohere-xml",
    begin="<cofl:tool_calls>",
    call='<cofl:tool_call id="$id" name="$name">$arguments</cofl:tool_call>',
    end="</cofl:tool_calls>",
    markers=("<cofl:tool_calls>", "</cofl:tool_calls>"),
    frames=(("<|START_TEXT|>", "<|END_TEXT|>"),),
    id_form="$number",
    arguments=_arguments,
    signs=("<cofl:tool_calls>", "<cofl:value"),
    source="https://github.com/cohere-ai/melody/blob/main/gen/templates/jinja/cmd5-nested-xml.jinja",
)
