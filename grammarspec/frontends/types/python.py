"""Python types as grammars: the JSON texts of their values, which are read back into values.

A type goes in; a grammar comes out. Its language is that of the type's exact JSON Schema
(:mod:`grammarspec.frontends.types.adapters`), so that every text that is generated becomes a value. Only validators
that the user wrote run after generation.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Any, TypeVar, Union, get_args, get_origin

from grammarspec.frontends.json_schema import json_schema
from grammarspec.frontends.types.adapters import known_adapter, type_name
from grammarspec.frontends.types.decorator import stored_options
from grammarspec.grammars.expressions import Grammar, choice, text

if TYPE_CHECKING:
    from typing_extensions import TypeForm

__all__ = ["grammar"]

T = TypeVar("T")


def grammar(type: TypeForm[T], **options: Any) -> Grammar[T]:
    """The JSON texts of a type's values; ``parse`` makes values of texts.

    At the top level, the values of ``str``, and of a ``Literal`` or ``Enum`` of texts only, are written without quotes.
    Objects have the declared fields only, unless the type allows others.

    Args:
        type: whatever Pydantic knows: its models, dataclasses, ``TypedDict``, ``NamedTuple``, enums, ``Literal``,
            unions, containers, ``Annotated`` with constraints, dates and times, and so on; or a struct of msgspec, or
            an attrs class.
        options: those of :func:`grammarspec.json_schema`; they take precedence over those of ``@gs.schema``.

    Raises:
        UnsupportedType: a type that has no JSON, or a constraint that cannot be enforced while generating.
        MissingPackage: Pydantic (or msgspec) is not installed.
        GrammarError, TypeError, ValueError: as :func:`grammarspec.json_schema`.
    """
    if isinstance(type, Grammar):
        return type
    if get_origin(type) is Union and any(isinstance(part, Grammar) for part in get_args(type)):
        # `Literal["a"] | g` is a Union: Python calls the operator of typing before that of the grammar
        return reduce(or_, [grammar(part, **options) for part in get_args(type)])
    options = {**stored_options(type), **options}
    call = f"gs.grammar({', '.join([type_name(type), *(f'{name}={value!r}' for name, value in options.items())])})"
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
