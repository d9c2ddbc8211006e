"""Adapters of Python types: the exact JSON Schema of a type, and the function that reads its values.

A type goes in; an :class:`Adapter` comes out. Pydantic provides the schemas of types and reads their values;
msgspec does so for its own structs and for attrs classes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, partial
from inspect import isclass
from types import SimpleNamespace
from typing import Any, Final, Literal, get_args, get_origin, get_type_hints

from grammarspec.errors import LimitExceeded, UnsupportedType, needed_by

with needed_by("Python types"):
    from pydantic import (
        PydanticSchemaGenerationError,
        PydanticUndefinedAnnotation,
        PydanticUserError,
        TypeAdapter,
    )
    from pydantic_core import PydanticOmit, SchemaError

    from grammarspec.frontends.types.exact_schemas import ExactSchema, UntitledSchema, made_exact, without_json
    from grammarspec.frontends.types.places import Places

__all__ = ["Adapter", "known_adapter", "new_adapter", "refusals_of", "type_name"]

_MAX_PARTS: Final = 3_000


@dataclass(frozen=True)
class Adapter:
    """The JSON Schema of a type, and the function that reads its values.

    Attributes:
        schema: its exact JSON Schema: every text that satisfies it can be read.
        read: makes a value of a JSON text.
        library_schema: makes the JSON Schema that the library itself has for the type. It is shorter and allows more in
            places; prompts show this one to models.
    """

    schema: dict[str, Any]
    read: Callable[[str], Any]
    library_schema: Callable[[], dict[str, Any]]


def known_adapter(type: Any) -> Adapter:
    """The adapter of a type, which is kept for as long as the process lives.

    Raises:
        UnsupportedType, LimitExceeded, MissingPackage: as :func:`new_adapter`.
    """
    try:
        hash(type)
    except TypeError:  # constraints in Annotated may be anything
        return new_adapter(type)
    return _known_adapter(type)


def new_adapter(type: Any) -> Adapter:
    """Make the adapter of a type: by msgspec for its structs and for attrs classes, by Pydantic for all others.

    Raises:
        UnsupportedType: the type has no JSON, or a constraint that cannot be enforced while generating.
        LimitExceeded: the type is nested too deeply.
        MissingPackage: msgspec is not installed.
    """
    if hasattr(type, "__struct_fields__") or hasattr(type, "__attrs_attrs__"):
        return _of_msgspec(type)
    adapter, refusals = _of_pydantic(type)
    if adapter is None:
        with suppress(ImportError):  # it may hold structs
            try:
                return _of_msgspec(type)
            except UnsupportedType as error:
                if not error.where.startswith("the type "):  # it knows the field
                    raise
    if refusals or adapter is None:
        raise refusals[0]
    return adapter


def refusals_of(type: Any) -> tuple[dict[str, Any], list[UnsupportedType]]:
    """What cannot be enforced of a type, and its schema, in which these parts allow anything.

    Raises:
        LimitExceeded: the type is nested too deeply for Pydantic.
    """
    try:
        return new_adapter(type).schema, []
    except UnsupportedType as error:
        refused = error
    try:
        adapter, refusals = _of_pydantic(type)
    except UnsupportedType:
        return {}, [refused]
    return ({}, [refused]) if adapter is None else (adapter.schema, refusals)


def _check_size(type: Any) -> None:
    """Refuse a type that Pydantic would take long for: it writes a part out wherever the part is used.

    Raises:
        LimitExceeded: the parts, written out, are many times those that there are.
    """
    sizes: dict[int, tuple[int, Any]] = {}  # by identity, with the part, so that this stays its own

    def size(part: Any) -> int:
        if id(part) not in sizes:
            inner = () if get_origin(part) is Literal else get_args(part)
            sizes[id(part)] = 1 + sum(map(size, inner)), part
        return sizes[id(part)][0]

    if size(type) > max(_MAX_PARTS, 4 * len(sizes)):
        message = f"the type's parts, written out wherever they are used, are more than {_MAX_PARTS}"
        raise LimitExceeded(message, f"{_place(type):.80}", "make the part that is used often a dataclass or a model")


def _of_pydantic(type: Any) -> tuple[Adapter | None, list[UnsupportedType]]:
    """What Pydantic makes of a type, and the refusals of its parts; ``None`` if Pydantic does not know the type.

    Raises:
        UnsupportedType: Pydantic refuses a constraint in it, or a name in it is not defined.
        LimitExceeded: the type is nested too deeply.
    """
    refusals: list[UnsupportedType] = []
    try:
        _check_size(type)
        adapter = TypeAdapter(type)
        places = Places(_short_name(type), adapter.core_schema)
        exact = partial(ExactSchema, places=places, refusals=refusals)
        schema = adapter.json_schema(schema_generator=exact)  # type: ignore[arg-type]
        read = Adapter(
            made_exact(schema), adapter.validate_json, lambda: adapter.json_schema(schema_generator=UntitledSchema)
        )
    except (PydanticSchemaGenerationError, PydanticUserError, PydanticOmit, ImportError) as error:
        _check_names(type)
        return None, [UnsupportedType(without_json(error).message, _place(type))]
    except SchemaError as error:
        reason = str(error).rpartition("Error: ")[2]  # before it stand the kinds of schemas that it is in
        raise UnsupportedType(f"Pydantic refuses the type: {reason}", _place(type)) from None
    except UnsupportedType as error:
        return None, [UnsupportedType(error.message, _place(type), error.hint)]
    except RecursionError:
        where = f"{_place(type):.80}"  # as deep as the type is, its name is long
        raise LimitExceeded("the nesting depth of the type is beyond what Pydantic can read", where) from None
    return read, refusals


def _check_names(type: Any) -> None:
    """Say which name means nothing, if that is why Pydantic does not know a type.

    Raises:
        UnsupportedType: a name is not defined.
    """
    with suppress(PydanticSchemaGenerationError, PydanticUserError, PydanticOmit, ImportError):
        try:
            TypeAdapter(type).rebuild(force=True)
        except PydanticUndefinedAnnotation as error:
            hint = "names in quotes are looked up in the module of the class that has them"
            raise UnsupportedType(f"the name {error.name!r} is not defined", _place(type), hint) from None


_known_adapter = cache(new_adapter)


def type_name(type: Any) -> str:
    """A type as it is written in Python code."""
    return str(type.__qualname__) if isclass(type) else repr(type)


def _place(type: Any) -> str:
    """The type, for errors."""
    return f"the type {_short_name(type)}"


def _short_name(type: Any) -> str:
    """The name of a type without what ``Annotated`` adds, which can be long."""
    with suppress(Exception):  # a name in quotes may mean nothing here
        type = get_type_hints(SimpleNamespace(__annotations__={"type": type}))["type"]
    return type_name(type).replace("typing.", "")


def _of_msgspec(type: Any) -> Adapter:
    with needed_by(_place(type)):
        import msgspec
    inspect = msgspec.inspect
    try:
        schema = made_exact(msgspec.json.schema(type), python_patterns=True)
    except (TypeError, NameError) as error:
        place, refused = _refused_part(type, type_name(type), msgspec.json.schema, error, []) or ("", error)
        message = f"the type has no JSON: {str(refused).splitlines()[-1]}"
        raise UnsupportedType(message, place if "." in place else _place(type)) from None
    for part in _parts(inspect.type_info(type), set()):
        if isinstance(part, inspect.DateTimeType | inspect.TimeType) and not part.tz:
            hint = "Annotated[datetime, msgspec.Meta(tz=True)] has a time zone"
            raise UnsupportedType("msgspec's times without time zones", _place(type), hint)
        if isinstance(part, inspect.DictType) and not isinstance(part.key_type, inspect.StrType):
            raise UnsupportedType("msgspec's names of members other than str", _place(type))
    read = msgspec.json.Decoder(type).decode
    return Adapter(schema, read, lambda: msgspec.json.schema(type))


def _refused_part(
    type: Any, place: str, schema: Callable[[Any], Any], error: Exception, met: list[Any]
) -> tuple[str, Exception] | None:
    """The innermost part that msgspec refuses, with its error: its place is as in :class:`Places`.

    ``None`` if all that it refuses was ``met`` before: types may refer to each other in circles.
    """
    if any(type is known for known in met):
        return None
    met.append(type)
    within = f"{place}[]" if isclass(origin := get_origin(type)) and issubclass(origin, Collection) else place
    parts = [(within, part) for part in get_args(type)]
    with suppress(TypeError, NameError):
        fields = get_type_hints(type, include_extras=True) if isclass(type) else {}
        parts += [(f"{place}.{name}", field) for name, field in fields.items()]
    is_innermost = True
    for where, part in parts:
        try:
            schema(part)
        except (TypeError, NameError) as refused:
            is_innermost = False
            if found := _refused_part(part, where, schema, refused, met):
                return found
    return (place, error) if is_innermost else None


def _parts(info: Any, seen: set[int]) -> Iterator[Any]:
    """A type, as msgspec describes it, and all the types that it is made of."""
    if id(info) in seen:
        return
    seen.add(id(info))
    yield info
    inner = info if isinstance(info, list | tuple) else [getattr(info, name) for name in info.__struct_fields__]
    for part in inner:
        if isinstance(part, list | tuple) or hasattr(part, "__struct_fields__"):
            yield from _parts(part, seen)
