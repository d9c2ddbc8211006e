"""What a model is told about the answer that is asked for: the schema of its type as text for the prompt.

A type or grammar goes in, a text comes out. The answer is enforced whether it is told or not; a model that knows the
form, and what the descriptions of fields say, fills it better.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, Literal, get_args

from grammarspec.grammars.expressions import Grammar
from grammarspec.grammars.operators import Call, Leaf
from grammarspec.imports import importing

__all__ = ["INSTRUCTIONS", "Instructions", "instructions_for", "with_instructions"]

Instructions = Literal["auto", "schema", "compact"] | None
"""How a model is told of the type of its answer."""

INSTRUCTIONS: Final = ("auto", "schema", "compact", None)
"""All values of :data:`Instructions`."""


def instructions_for(target: Any, kind: Instructions) -> str:
    """What a model is told about an answer; empty if there is nothing to tell.

    Args:
        target: the type or grammar of the answer. Free text, and grammars that do not come from a schema, are not told.
        kind: ``"schema"``: the JSON Schema; ``"compact"``: a shorter form of it, as types are written in many
            languages; ``None`` and ``"auto"``: nothing, which was measured to be best (docs/models.md).
    """
    schema = None if kind in (None, "auto") else _schema_of(target)
    if not schema or schema == {"type": "string"}:
        return ""
    if not isinstance(target, Grammar) and (texts := _texts(schema)):
        return f"Answer with one of: {', '.join(texts)}"
    if kind == "schema":
        return f"Answer with JSON that satisfies this JSON Schema:\n{json.dumps(schema, ensure_ascii=False)}"
    return f"Answer with JSON of this form:\n{_Compact(schema).text()}"


def with_instructions(messages: Sequence[Mapping[str, Any]], told: str) -> list[Mapping[str, Any]]:
    """Messages with instructions at the end of the user's last one.

    Args:
        messages: the messages of a chat, whose contents are texts.
        told: the instructions; empty, or already there, they change nothing.
    """
    last = max((place for place, message in enumerate(messages) if message["role"] == "user"), default=None)
    if not told or last is None or any(told in str(message.get("content")) for message in messages):
        return list(messages)
    changed = {**messages[last], "content": f"{messages[last]['content']}\n\n{told}"}
    return [*messages[:last], changed, *messages[last + 1 :]]


def _schema_of(target: Any) -> Mapping[str, Any] | None:
    """The JSON Schema of a type, as its library writes it, or of a grammar that was made of one."""
    with importing:
        from grammarspec.frontends.json_schema import json_schema
        from grammarspec.frontends.types.adapters import known_adapter

    found: Any = None
    if isinstance(target, Grammar):
        match target.node:
            case Leaf(call=Call(function=made_by, arguments=(schema,))) if made_by is json_schema:
                found = json.loads(schema) if isinstance(schema, str | bytes) else schema
    elif not isinstance(target, re.Pattern) and not any(isinstance(part, Grammar) for part in get_args(target)):
        found = known_adapter(target).library_schema()
    return found if isinstance(found, Mapping) else None


def _texts(schema: Mapping[str, Any]) -> list[str]:
    """The texts of a schema that allows only some, which are written without quotes; else none."""
    values = schema.get("enum", [schema["const"]] if "const" in schema else [])
    return values if all(isinstance(value, str) for value in values) else []


class _Compact:
    """A JSON Schema as types are written in many languages: ``{name: string, tags: string[]}``.

    Args:
        schema: the schema. What has no such form stands there as it is, as JSON.
    """

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self._schema = schema
        self._definitions: Mapping[str, Any] = schema.get("$defs", schema.get("definitions", {}))
        self._open: list[str] = []  # the definitions that are being written
        self._recursive: set[str] = set()

    def text(self) -> str:
        """The text: the schema, and behind it the definitions that refer to themselves."""
        lines, written = [self._type(self._schema, "")], set[str]()
        while rest := sorted(self._recursive - written):
            written.add(rest[0])
            self._open = [rest[0]]
            lines.append(f"where {rest[0]} is {self._type(self._definitions[rest[0]], '')}")
        return "\n".join(lines)

    def _type(self, schema: Any, indent: str) -> str:
        if not isinstance(schema, Mapping):
            return "any" if schema is True else json.dumps(schema)
        if (name := str(schema.get("$ref", "")).rpartition("/")[2]) in self._definitions:
            return self._named(name, indent)
        if "const" in schema or "enum" in schema:
            return " | ".join(_json(value) for value in schema.get("enum", [schema.get("const")]))
        for keyword in ("anyOf", "oneOf"):
            if keyword in schema:
                return " | ".join(dict.fromkeys(self._type(part, indent) for part in schema[keyword]))
        kind = schema.get("type")
        if isinstance(kind, list):
            return " | ".join(self._type({**schema, "type": each}, indent) for each in kind)
        if kind == "object" or "properties" in schema:
            return self._object(schema, indent)
        if kind == "array":
            item = self._type(schema.get("items", True), indent)
            return f"({item})[]" if " | " in item else f"{item}[]"
        if kind in ("string", "integer", "number", "boolean", "null"):
            return " ".join([kind, *_limits(schema)])
        return _json(schema) if schema else "any"

    def _named(self, name: str, indent: str) -> str:
        if name in self._open:
            self._recursive.add(name)
            return name
        self._open.append(name)
        written = self._type(self._definitions[name], indent)
        self._open.pop()
        return written

    def _object(self, schema: Mapping[str, Any], indent: str) -> str:
        inner = f"{indent}  "
        required = schema.get("required", ())
        lines = []
        for name, part in schema.get("properties", {}).items():
            optional = "" if name in required else "?"
            comment = part.get("description", "") if isinstance(part, Mapping) else ""
            told = f"  // {' '.join(str(comment).split())}" if comment else ""
            lines.append(f"{inner}{name}{optional}: {self._type(part, inner)}{told}")
        if isinstance(schema.get("additionalProperties"), Mapping):
            lines.append(f"{inner}[name]: {self._type(schema['additionalProperties'], inner)}")
        about = f"  // {' '.join(str(schema['description']).split())}" if "description" in schema else ""
        return "\n".join([f"{{{about}", *lines, f"{indent}}}"]) if lines else "object"


_BOUNDS: Final = {"minimum": "at least", "exclusiveMinimum": "above", "maximum": "at most", "exclusiveMaximum": "below"}


def _limits(schema: Mapping[str, Any]) -> Iterator[str]:
    """What else a schema asks of a text or number, in words."""
    limits = [f"{words} {schema[name]}" for name, words in _BOUNDS.items() if name in schema]
    if "format" in schema:
        limits.insert(0, str(schema["format"]))
    if "pattern" in schema:
        limits.append(f"like {schema['pattern']}")
    if limits:
        yield f"({', '.join(limits)})"


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
