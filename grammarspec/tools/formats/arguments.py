"""The arguments of a call: as one JSON object, or parameter by parameter for formats that write them so."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from grammarspec.errors import GrammarError, UnsupportedFeature
from grammarspec.frontends.json_schema import language
from grammarspec.frontends.json_schema.document.dialects import DIALECTS, LATEST, dialect_of
from grammarspec.frontends.json_schema.keywords.tables import asserting
from grammarspec.frontends.json_schema.spelling.options import Spelling
from grammarspec.grammars.expressions import Grammar
from grammarspec.positions import pointer_token
from grammarspec.tools.tool import Tool

__all__ = ["TOJSON", "Parameter", "json_arguments", "parameters", "schema_grammar"]

TOJSON = Spelling(separators=(", ", ": "), minimal=True, plain=True)
"""How the filter ``tojson`` of chat templates writes values: as ``json.dumps``, with non-ASCII characters unescaped."""

_ASSERTED = {keyword for dialect in DIALECTS.values() for keyword in asserting(dialect)}
_TAKEN = {"type", "properties", "required", "additionalProperties"}


def schema_grammar(
    schema: Mapping[str, Any], spelling: Spelling = TOJSON, *, read: Callable[[str], Any] = json.loads
) -> Grammar[Any]:
    """The grammar of the values of a schema in one spelling.

    Objects have the declared members only, unless the schema has ``additionalProperties``.

    Args:
        schema: the JSON Schema.
        spelling: how values are written.
        read: makes a value of a text.

    Raises:
        GrammarError: the schema cannot be enforced.
    """
    return Grammar(language(schema, spelling, closed=True), read=read)


def json_arguments(tool: Tool[..., Any], _markers: object) -> Grammar[dict[str, Any]]:
    """The grammar of the arguments as one JSON object, with the spaces of chat templates.

    Raises:
        GrammarError: the tool's schema cannot be enforced.
    """
    return schema_grammar(tool.schema)


@dataclass(frozen=True, slots=True)
class Parameter:
    """A declared parameter of a tool.

    Attributes:
        name, required: what the schema says.
        schema: of the value; a whole document, in which references resolve as they do in the tool's schema.
    """

    name: str
    required: bool
    schema: dict[str, Any]

    def grammar(self, spelling: Spelling, *types: str, read: Callable[[str], Any] = json.loads) -> Grammar[Any]:
        """The grammar of the parameter's values in one spelling.

        Args:
            spelling: how values are written.
            types: the JSON types of the values; all types if none is given.
            read: makes a value of a text.

        Raises:
            GrammarError: the schema cannot be enforced; its place is in the tool's schema.
        """
        schema = {**self.schema, "type": list(types)} if types else self.schema
        try:
            return schema_grammar(schema, spelling, read=read)
        except GrammarError as error:
            where = error.where.replace("#/$defs/tool/", "#/", 1)
            where = f"#/properties/{pointer_token(self.name)}" if where in ("", "#") else where
            raise type(error)(error.message, where, error.hint) from None


_ID = "urn:grammarspec:tool"


def parameters(tool: Tool[..., Any]) -> Iterator[Parameter]:
    """The parameters of a tool, in the order of their declaration.

    Raises:
        UnsupportedFeature: the schema is more than a list of parameters.
    """
    schema = tool.schema
    values = {"type": "object", "additionalProperties": False}
    for keyword in filter(_ASSERTED.__contains__, schema):
        if keyword not in _TAKEN or schema[keyword] != values.get(keyword, schema[keyword]):
            hint = "declare the parameters as properties, or choose a format that writes arguments as JSON"
            raise UnsupportedFeature(f"the keyword {keyword} beside a list of parameters", f"#/{keyword}", hint)
    required = schema.get("required", ())
    properties = schema.get("properties", {})
    missing = [name for name in required if name not in properties]
    if missing:
        raise UnsupportedFeature(f"the required parameter {missing[0]!r} that is not declared", "#/required")
    dialect = dialect_of(schema, None, "#") or LATEST
    own = schema.get(dialect.id_keyword, _ID)
    document = {"$schema": dialect.uri, "$defs": {"tool": {dialect.id_keyword: own, **schema}}}
    for name in properties:
        reference = f"{own}#/properties/{quote(pointer_token(name), safe='~/')}"
        yield Parameter(name, name in required, {**document, "allOf": [{"$ref": reference}]})
