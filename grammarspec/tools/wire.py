"""Declarations of tools in JSON: OpenAI's two interfaces, Anthropic's, and the Model Context Protocol (MCP).

Sources: the schema of ``tools`` in OpenAI's chat completions and Responses, that in Anthropic's messages, and ``Tool``
in the specification of MCP (2025-06-18).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from grammarspec.errors import GrammarSyntaxError, UnsupportedFeature
from grammarspec.tools.declaration import Declaration, arguments_schema

__all__ = ["read_json_tool"]


def read_json_tool(given: Any, name: str | None = None, description: str | None = None) -> tuple[str, Declaration]:
    """The name and the declaration of a tool that JSON, or an object of the MCP SDK, declares.

    Args:
        given: see :meth:`grammarspec.Tool.from_json`.
        name, description: instead of those in the JSON.

    Raises:
        GrammarSyntaxError: the JSON is malformed.
        UnsupportedFeature: the tool is not a function.
    """
    if not isinstance(given, Mapping):
        members = ("name", "description", "inputSchema", "input_schema")
        given = {member: getattr(given, member) for member in members if hasattr(given, member)}
    where, body = "#", given
    if "function" in given:
        where, body = "#/function", given["function"]
        if not isinstance(body, Mapping):
            raise _malformed("a function must be an object", where)
    elif given.get("type", "function") != "function" and "input_schema" not in given:  # Anthropic's have other types
        hint = "declare it as a function"
        raise UnsupportedFeature(f"a tool of the type {given['type']!r}: only functions are known", "#/type", hint)
    own = body.get("name") if name is None else name
    if not isinstance(own, str):
        raise _malformed("a tool must have a name", f"{where}/name")
    text = body.get("description") if description is None else description
    if not isinstance(text, str | None):
        raise _malformed("a description must be a text", f"{where}/description")
    member = next((one for one in ("parameters", "inputSchema", "input_schema") if one in body), "parameters")
    parameters = body.get(member)
    if not isinstance(parameters, Mapping | None):
        raise _malformed("the parameters must be a JSON Schema of an object", f"{where}/{member}")
    schema = arguments_schema(dict(parameters or {}), f"{where}/{member}")
    return own, Declaration(text or "", schema, schema, dict)


def _malformed(message: str, where: str) -> GrammarSyntaxError:
    hint = 'a tool is {"type": "function", "function": {"name": ..., "description": ..., "parameters": ...}}'
    return GrammarSyntaxError(message, where, hint)
