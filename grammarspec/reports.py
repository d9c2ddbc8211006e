"""What of a type holds while it is generated, and what is validated afterwards."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from grammarspec.expressions import Grammar
from grammarspec.frontends.json_schema.report import Report, check

__all__ = ["report"]


def report(type: Any) -> Report | None:
    """What becomes of the constraints of a type, or of what made a grammar.

    Its notes name the functions that validate a value once it is whole.

    Returns:
        ``None`` for a grammar that was made of no JSON Schema.
    """
    if isinstance(type, Grammar):
        match type._call:
            case ("json_schema", (schema,), options):
                return check(schema, **options)
        return None
    from grammarspec.frontends.types import known_adapter

    found = check(known_adapter(type).schema, additional_properties=False, numbers="plain")
    notes = tuple(f"validated when whole: {name}" for name in dict.fromkeys(_validators(type)))
    return replace(found, notes=(*found.notes, *notes))


def _validators(type: Any) -> Iterator[str]:
    """The names of the functions that Pydantic calls with values of a type, but for its own."""
    from pydantic import PydanticSchemaGenerationError, TypeAdapter

    try:
        core: Any = TypeAdapter(type).core_schema
    except PydanticSchemaGenerationError:  # a type of msgspec's
        return
    waiting, seen = [core], set[int]()
    while waiting:
        part = waiting.pop()
        if id(part) in seen:
            continue
        seen.add(id(part))
        if isinstance(part, dict):
            function = part.get("function")
            if str(part.get("type")).startswith("function-") and isinstance(function, dict):
                yield from _name(function["function"])
            if part.get("post_init"):
                yield f"{part['cls'].__qualname__}.{part['post_init']}"
            waiting += [value for name, value in part.items() if name not in ("serialization", "metadata")]
        elif isinstance(part, list | tuple):
            waiting += part


def _name(function: Any) -> Iterator[str]:
    if not str(getattr(function, "__module__", "")).startswith("pydantic"):
        yield getattr(function, "__qualname__", None) or repr(function)
