"""The declaration of a tool: what a model is told about it, and the JSON Schema that its arguments must satisfy."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from grammarspec.errors import GrammarSyntaxError

__all__ = ["Declaration", "arguments_schema"]

_DEFINED = re.compile(r"#/(\$defs|definitions)/([^/%~]+)")


@dataclass(frozen=True, slots=True)
class Declaration:
    """What a model is told about a tool, which arguments it can write, and how they are read.

    Attributes:
        description: what the tool does; may be empty.
        parameters: the JSON Schema of the arguments, an object, as the model sees it.
        schema: the JSON Schema that is enforced: ``parameters``, narrowed to what ``read`` accepts.
        read: turns arguments as JSON values into typed arguments.
    """

    description: str
    parameters: dict[str, Any]
    schema: dict[str, Any]
    read: Callable[[Mapping[str, Any]], Any]


def arguments_schema(schema: Mapping[str, Any], where: str) -> dict[str, Any]:
    """A JSON Schema of arguments with its type and properties at the top, where formats of tool calls look for them.

    Args:
        schema: of an object; may be a reference to one of its own definitions.
        where: what errors name as the place.

    Returns:
        a schema of the same objects, with the members ``type`` and ``properties``.

    Raises:
        GrammarSyntaxError: it is not the schema of an object.
    """
    found, passed = dict(schema), list[str]()
    while (named := _DEFINED.fullmatch(str(found.get("$ref")))) and found["$ref"] not in passed:
        passed.append(found.pop("$ref"))
        found = {**found.get(named[1], {}).get(named[2], {"type": "undefined"}), **found}
    if found.get("type", "object") != "object" or "$ref" in found:
        kind = found.get("$ref") or found["type"]
        raise GrammarSyntaxError(f"the arguments of a tool must be an object, and are: {kind}", where)
    for reference in passed:  # drop definitions that nothing refers to any more: models need not see them
        _, keyword, name = reference.split("/")
        rest = {**found, keyword: {other: it for other, it in found[keyword].items() if other != name}}
        if json.dumps(reference) not in json.dumps(rest, default=str):
            found = rest
    return {"type": "object", "properties": {}, **found}
