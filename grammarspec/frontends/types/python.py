"""Python types as grammars: the JSON texts of their values, which are read back into values.

A type goes in; a grammar comes out. Its language is that of the type's exact JSON Schema
(:mod:`grammarspec.frontends.types.adapters`), so that every text that is generated becomes a value. Only validators
that the user wrote run after generation.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce
from operator import or_
from os import PathLike
from typing import TYPE_CHECKING, Any, TypeVar, Union, Unpack, get_args, get_origin, overload

from grammarspec.frontends.json_schema import json_schema
from grammarspec.frontends.json_schema.options import OptionsOfCall
from grammarspec.frontends.regex import regex
from grammarspec.frontends.types.adapters import known_adapter, type_name
from grammarspec.frontends.types.decorator import stored_options
from grammarspec.grammars.expressions import Grammar, choice, text

if TYPE_CHECKING:
    from typing_extensions import TypeForm

__all__ = ["grammar"]

T = TypeVar("T")


@overload
def grammar(type: re.Pattern[str], **options: Unpack[OptionsOfCall]) -> Grammar[str]: ...
@overload
def grammar(type: TypeForm[T], **options: Unpack[OptionsOfCall]) -> Grammar[T]: ...
def grammar(type: Any, **options: Unpack[OptionsOfCall]) -> Grammar[Any]:
    """The JSON texts of a type's values; ``parse`` makes values of texts.

    At the top level, the values of ``str``, and of a ``Literal`` or ``Enum`` of texts only, are written without quotes.
    Objects have the declared fields only, unless the type allows others.

    Args:
        type: whatever Pydantic knows: its models, dataclasses, ``TypedDict``, ``NamedTuple``, enums, ``Literal``,
            unions, containers, ``Annotated`` with constraints, dates and times, and so on; or a struct of msgspec, or
            an attrs class; or what ``re.compile`` returns, as :func:`grammarspec.regex` takes it.
        options: those of :func:`grammarspec.json_schema`, ``limits`` and ``cancel`` among them; they take precedence
            over those of ``@gs.schema``.

    Raises:
        TypeError: ``type`` is a text, a schema, a path or another value, and no type.
        UnsupportedType: a type that has no JSON, or a constraint that cannot be enforced while generating.
        MissingPackage: Pydantic (or msgspec) is not installed.
        GrammarError, TypeError, ValueError: as :func:`grammarspec.json_schema`.
    """
    if isinstance(type, Grammar):
        return type
    if get_origin(type) is Union and any(isinstance(part, Grammar) for part in get_args(type)):
        # `Literal["a"] | g` is a Union: Python calls the operator of typing before that of the grammar
        return reduce(or_, [grammar(part, **options) for part in get_args(type)])
    if isinstance(type, re.Pattern):
        if options:
            raise TypeError(f"a regular expression has no options {', '.join(options)}: those are of JSON")
        return regex(type)
    _refuse_values(type)
    options = {**stored_options(type), **options}
    said = [f"{name}={value!r}" for name, value in options.items() if name not in ("limits", "cancel")]
    call = f"gs.grammar({', '.join([type_name(type), *said])})"
    schema = known_adapter(type).schema
    values = schema.get("enum", [schema["const"]] if "const" in schema else None)
    if schema.keys() <= {"type"} and schema.get("type") == "string":
        free = text()
        return Grammar(free.ir, read=_Read(type, quoted=False), call=call)
    if values is not None and "$defs" not in schema and all(isinstance(value, str) for value in values):
        return Grammar(choice(values).ir, read=_Read(type, quoted=False), call=call)
    options = {"additional_properties": False, "numbers": "plain", **options}
    made = json_schema(schema, **options).node
    return Grammar(made.ir, read=_Read(type, quoted=True), call=call, why_empty=getattr(made, "why_empty", None))


def _refuse_values(value: Any) -> None:
    """Raise an error for values that are easily taken for types."""
    if isinstance(value, str):
        hint = f"gs.regex({value!r:.60}) takes a pattern, gs.literal({value!r:.60}) means exactly this text"
    elif isinstance(value, PathLike):
        hint = "gs.load(path) takes a file with a grammar or a JSON Schema"
    elif isinstance(value, Mapping):
        hint = "gs.json_schema(schema) makes the grammar of a JSON Schema"
    elif isinstance(value, list | tuple | set | frozenset):
        hint = "gs.choice(texts) means one of several texts, Literal[...] one of several values"
    elif isinstance(value, bytes | bool | int | float):
        hint = (
            "Literal[...] means exactly this value" if not isinstance(value, bytes) else "decode it: grammars are text"
        )
    elif hasattr(value, "json_schema") and hasattr(value, "validate_json"):
        hint = "give the type that the TypeAdapter is for, or gs.json_schema(adapter)"
    else:
        return
    raise TypeError(f"{value!r:.60} is no type\n  hint: {hint}")


@dataclass(frozen=True)
class _Read:
    """Makes a value of a type from a text of its grammar.

    Attributes:
        quoted: the text is JSON; if not, it is a string's text without quotes.
    """

    type: Any
    quoted: bool

    def __call__(self, text: str) -> Any:
        return known_adapter(self.type).read(text if self.quoted else json.dumps(text))
