"""``gs.check``: reports which constraints of a schema or type are enforced, and which are validated after generation.

A JSON Schema, a Python type or a grammar goes in; a :class:`~grammarspec.Report` comes out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from os import PathLike
from typing import TYPE_CHECKING, Any, Unpack

from grammarspec.frontends.json_schema import json_schema
from grammarspec.frontends.json_schema.document.loading import json_of
from grammarspec.frontends.json_schema.options import OptionsOfCall
from grammarspec.frontends.json_schema.report.verdicts import Entry, Report
from grammarspec.frontends.json_schema.report.verdicts import check as check_schema
from grammarspec.frontends.types.decorator import stored_options
from grammarspec.grammars.expressions import Grammar
from grammarspec.grammars.operators import Call, Leaf
from grammarspec.imports import importing

if TYPE_CHECKING:
    from typing_extensions import TypeForm

__all__ = ["check", "check_target"]


def check(
    what: Mapping[str, Any] | bool | str | bytes | PathLike[str] | TypeForm[Any], **options: Unpack[OptionsOfCall]
) -> Report:
    """The report on a JSON Schema, or on the schema of a Python type: how each keyword is enforced.

    For a type, the parts that cannot be enforced are listed by their places (``Order.lines[].price``), and the notes
    name the functions that validate a value after generation.

    Args:
        what: as :func:`grammarspec.json_schema` or :func:`grammarspec.grammar` takes it.
        options: as these take them. With ``unsupported="warn"``, what would be left out is ``"not enforced"``.

    Raises:
        GrammarSyntaxError: the text is not JSON.
        LimitExceeded: the schema is too large for a report.
        MissingPackage: Pydantic (or msgspec) is not installed.
        TypeError, ValueError: as :func:`grammarspec.json_schema`.
    """
    if isinstance(what, PathLike):
        what = json_of(what)
    if isinstance(what, Mapping | bool | str | bytes):
        return check_schema(what, **options)
    with importing:
        from grammarspec.frontends.types.adapters import refusals_of

    schema, refusals = refusals_of(what)
    chosen: dict[str, Any] = {"additional_properties": False, "numbers": "plain", **stored_options(what), **options}
    found = check_schema(schema, **chosen)
    entries = [Entry(error.where, "", "refused", error.message, error.hint) for error in refusals]
    notes = tuple(f"validated when whole: {name}" for name in dict.fromkeys(_validators(what)))
    return replace(found, entries=(*entries, *found.entries), notes=(*found.notes, *notes))


def check_target(target: Any) -> Report | None:
    """:func:`check` for what a model was asked to write: a type, or a grammar.

    Returns:
        The report on the type, or on the JSON Schema that the grammar was made of; ``None`` for any other grammar.

    Raises:
        GrammarError, MissingPackage: as :func:`check`.
    """
    if not isinstance(target, Grammar):
        return check(target)
    match target.node:
        case Leaf(call=Call(function=made_by, arguments=(schema,), options=options)) if made_by is json_schema:
            return check(schema, **options)
    return None


def _validators(type: Any) -> Iterator[str]:
    """The names of the functions of the user that Pydantic calls to validate values of a type."""
    from pydantic import PydanticSchemaGenerationError, PydanticUserError, TypeAdapter
    from pydantic_core import SchemaError

    try:
        core: Any = TypeAdapter(type).core_schema
    except (PydanticSchemaGenerationError, PydanticUserError, SchemaError):  # a type of msgspec's, or a refused one
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
    """The name of a function, unless it is Pydantic's own."""
    if not str(getattr(function, "__module__", "")).startswith("pydantic"):
        yield getattr(function, "__qualname__", None) or repr(function)
