"""Where a keyword allows fewer texts than JSON Schema has: the narrowings of ``docs/json-schema.md``, by place."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from grammarspec.frontends.json_schema.formats.table import FORMATS
from grammarspec.frontends.json_schema.lowering.item_counts import MAX_COUNTED
from grammarspec.grammars.builder import UNBOUNDED

__all__ = ["Choices", "narrowings", "whitespace"]


@dataclass(frozen=True, slots=True)
class Choices:
    """The options that decide what is narrowed, as :func:`grammarspec.json_schema` takes them."""

    any_order: bool = False
    closed: bool = False
    plain: bool = False
    minimal: bool = False
    ensure_ascii: bool = False


_STRINGS = "strings have one spelling per character"
_KEYS = "keys have one spelling per character"
_DISTINCT = "where it is to fail, undeclared members do not repeat names"
_TYPES: Final = {
    **dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"), "number"),
    **dict.fromkeys(("pattern", "format", "minLength", "maxLength"), "string"),
    **dict.fromkeys(("uniqueItems", "maxItems", "minItems"), "array"),
    **dict.fromkeys(
        ("properties", "patternProperties", "propertyNames", "additionalProperties", "required", "minProperties",
         "maxProperties", "dependentRequired", "dependentSchemas", "dependencies", "unevaluatedProperties"),
        "object",
    ),
}  # fmt: skip
"""The types of values that keywords are about."""


def whitespace(layout: object, *, written: bool) -> str:
    """What is narrowed for the whole text. ``written``: whitespace is what ``json.dumps`` writes."""
    if written:
        return "whitespace is exactly what json.dumps writes"
    if layout == "flexible":
        return (
            "whitespace where JSON allows it: up to 8 blanks, or a line break and up to 120; none around the document"
        )
    return "whitespace where JSON allows it is what the pattern matches; none around the document"


def narrowings(
    keyword: str, value: Any, schema: dict[Any, Any], choices: Choices, *, negated: bool, draft_4: bool
) -> Iterator[str]:
    """How a keyword that is enforced is narrowed; nothing if it is enforced exactly.

    Args:
        negated: the subschema may have to fail.
        draft_4: integers have no fraction and no exponent.
    """
    about = _TYPES.get(keyword)
    if about is not None and not _possible(about, schema.get("type")):
        return
    match keyword:
        case "type":
            yield from _of_types([value] if isinstance(value, str) else value, choices, draft_4)
        case "enum" | "const":
            yield from _of_constants(value if keyword == "enum" else [value], choices)
        case "pattern":
            yield _STRINGS
        case "format":
            yield from _of_format(value, negated)
        case "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum":
            if "multipleOf" not in schema:
                plain = choices.plain or (draft_4 and schema.get("type") == "integer")
                exponents = "" if plain else ", or d.ddde±x with an exponent from -307 to 307"
                yield f"numbers are plain decimals{exponents}"
        case "multipleOf":
            yield "numbers are plain decimals"
        case "uniqueItems":
            if value is True:
                yield "strings and numbers in the items have one spelling, objects in them do not repeat names"
        case "properties":
            yield _KEYS
            if len(value) > 1 and not choices.any_order:
                yield "members come in the order of properties"
            if choices.closed and not {"additionalProperties", "patternProperties"} & schema.keys():
                yield "no other members, unless a subschema says more (additional_properties=False)"
        case "required" | "dependentRequired" | "patternProperties" | "propertyNames":
            yield _KEYS
            if negated and keyword in ("patternProperties", "propertyNames"):
                yield _DISTINCT
        case "additionalProperties":
            if negated:
                yield _DISTINCT
        case "minProperties":
            closed = schema.get("additionalProperties") is False and "patternProperties" not in schema
            if value > max(1, len(schema.get("required", ()))) and not closed:
                yield "undeclared members do not repeat names, or count as one where names may be few"
        case "maxItems" | "maxLength" | "maxProperties" | "minContains" | "maxContains":
            if value >= UNBOUNDED:
                yield f"cut to {UNBOUNDED - 1}"
            if keyword == "maxItems" and value > MAX_COUNTED and "contains" in schema:
                yield "shared out evenly among the items that contains asks for"


def _possible(about: str, types: Any) -> bool:
    if not isinstance(types, str | list):
        return True
    return about in types or (about == "number" and "integer" in types)


def _of_types(types: list[str], choices: Choices, draft_4: bool) -> Iterator[str]:
    if "number" in types:
        if choices.plain:
            yield "numbers have no exponents"
    elif "integer" in types:
        plain = "integers are digits"
        yield plain if choices.plain or draft_4 else f"{plain}, a fraction of zeros, or d.ddde±x from 16 to 307"
    if "object" in types:
        yield _KEYS
    if "string" in types:
        if choices.minimal:
            yield "strings have one spelling"
        elif choices.ensure_ascii:
            yield "characters beyond ASCII are escaped"


def _of_constants(constants: list[Any], choices: Choices) -> Iterator[str]:
    found = list(_kinds(constants))
    if "string" in found:
        yield _STRINGS
    if "number" in found:
        yield "numbers are spelled as written, as json.dumps does" + ("" if choices.plain else ", and with .0")
    if "members" in found and not choices.any_order:
        yield "members come in the order given"


def _kinds(constants: list[Any]) -> Iterator[str]:
    pending = [*constants]
    while pending:
        constant = pending.pop()
        match constant:
            case str():
                yield "string"
            case bool() | None:
                pass
            case dict():
                if len(constant) > 1:
                    yield "members"
                yield "string"
                pending.extend(constant.values())
            case list():
                pending.extend(constant)
            case _:
                yield "number"


def _of_format(name: str, negated: bool) -> Iterator[str]:
    form = FORMATS.get(name)
    if form is None:  # of integers
        yield "numbers are plain decimals, or d.ddde±x with an exponent from -307 to 307"
        return
    yield _STRINGS
    if form.narrowed:
        yield form.narrowed
    if negated and form.excluded:
        yield f"where it is to fail, also all texts {form.excluded}"
