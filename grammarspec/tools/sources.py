"""Tools from what Python programs have: functions with annotations, and classes."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import field, make_dataclass
from functools import cache
from inspect import Parameter, signature, unwrap
from types import SimpleNamespace
from typing import Any, get_type_hints

from grammarspec.errors import UnsupportedFeature
from grammarspec.tools.docstrings import parse
from grammarspec.tools.tool import Declaration, Tool, arguments_schema

__all__ = ["class_tool", "function_tool"]


def function_tool(function: Callable[..., Any], name: str | None = None, description: str | None = None) -> Any:
    """A tool that calls a function, with its parameters; see :func:`grammarspec.tool`."""
    if isinstance(function, classmethod | staticmethod):
        raise TypeError("gs.tool goes below @classmethod and @staticmethod")
    if isinstance(function, Tool):
        raise TypeError(f"the tool {function.name} is one already")
    if not callable(function) or not hasattr(function, "__name__"):
        raise TypeError(f"{function!r} is no function\n  hint: write one with `def` that calls it")
    name = function.__name__ if name is None else name
    parameters = list(signature(function).parameters.values())
    is_method = bool(parameters) and parameters[0].name in ("self", "cls")
    own = parameters[is_method:]
    for parameter in own:
        where = f"the parameter {parameter.name} of the tool {name}"
        if parameter.kind in (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD):
            raise TypeError(f"{where} takes any number of arguments, which no schema can tell\n  hint: name each")
        if parameter.annotation is Parameter.empty:
            raise TypeError(f"{where} has no annotation\n  hint: say its type, as in {parameter.name}: str")
    declare = cache(lambda: _declaration(function, name, description, own))
    if is_method:
        return Tool(name, declare, function, bind=lambda self: _bound(name, declare, function.__get__(self), own))
    return _bound(name, declare, function, own)


def _bound(
    name: str, declare: Callable[[], Declaration], function: Callable[..., Any], parameters: list[Parameter]
) -> Any:
    first = [one.name for one in parameters if one.kind is Parameter.POSITIONAL_ONLY]
    named = [one.name for one in parameters if one.kind is not Parameter.POSITIONAL_ONLY]

    def call(args: Any) -> Any:
        return function(*[getattr(args, name) for name in first], **{name: getattr(args, name) for name in named})

    return Tool(name, declare, function, call)


def _declaration(
    function: Callable[..., Any], name: str, description: str | None, parameters: list[Parameter]
) -> Declaration:
    from grammarspec.frontends.types.adapters import new_adapter  # it needs Pydantic

    hints = _hints(function, name, parameters)
    fields = [(one.name, hints[one.name], _default(one, hints[one.name], name)) for one in parameters]
    try:
        adapter = new_adapter(make_dataclass(name, fields, kw_only=True))
    except UnsupportedFeature:
        for parameter in parameters:  # which one?
            try:
                new_adapter(make_dataclass(name, [(parameter.name, hints[parameter.name])]))
            except UnsupportedFeature as error:
                where = f"the parameter {parameter.name} of the tool {name}"
                raise UnsupportedFeature(error.message, where, error.hint) from None
        raise
    text, described = parse(function.__doc__ or "")
    told = arguments_schema(adapter.library_schema(), f"the tool {name}")
    told.pop("title", None)
    if len(told["properties"]) != len(parameters):  # pydantic.json_schema.SkipJsonSchema
        raise TypeError(f"models are not told of a parameter of the tool {name}\n  hint: wrap a function without it")
    for parameter, member in zip(parameters, told["properties"].values(), strict=True):  # an alias may have renamed it
        if parameter.name in described:
            member.setdefault("description", described[parameter.name])
        if parameter.default is not Parameter.empty:
            _tell_default(member, parameter.default)
    return Declaration(
        description=text if description is None else description,
        parameters=told,
        schema=arguments_schema(adapter.schema, f"the tool {name}"),
        read=_reader(adapter.read),
    )


def _hints(function: Callable[..., Any], name: str, parameters: list[Parameter]) -> dict[str, Any]:
    """The parameters' types; that of the result, which may exist for type checkers only, is not looked up."""
    annotations = SimpleNamespace(__annotations__={one.name: one.annotation for one in parameters})
    try:
        return get_type_hints(annotations, getattr(unwrap(function), "__globals__", {}), include_extras=True)
    except NameError as error:
        hint = "tools' types are looked up where the module of the function sees them"
        raise TypeError(f"an annotation of the tool {name} means nothing: {error}\n  hint: {hint}") from None


def _default(parameter: Parameter, hint: Any, tool: str) -> Any:
    """A dataclass's field with the default of a parameter."""
    from pydantic.fields import FieldInfo

    extras = [one for one in getattr(hint, "__metadata__", ()) if isinstance(one, FieldInfo)]
    if isinstance(parameter.default, FieldInfo) or not all(one.is_required() for one in extras):
        better = f"write {parameter.name}: Annotated[..., Field(...)], and = before the default"
        where = f"the parameter {parameter.name} of the tool {tool}"
        raise TypeError(f"{where} has a default in a Field, which Python does not know\n  hint: {better}")
    return field() if parameter.default is Parameter.empty else field(default_factory=lambda: parameter.default)


def _tell_default(member: dict[str, Any], default: Any) -> None:
    from pydantic_core import PydanticSerializationError, to_jsonable_python

    with suppress(PydanticSerializationError):  # the model can leave the argument out all the same
        member.setdefault("default", to_jsonable_python(default))


def class_tool(
    type: Any, name: str | None = None, description: str | None = None, call: Callable[[Any], Any] | None = None
) -> Tool[..., Any]:
    """A tool whose arguments make an instance of a class, which ``call`` takes."""
    from grammarspec.frontends.types.adapters import known_adapter

    own: str = type.__name__ if name is None else name

    def declare() -> Declaration:
        adapter = known_adapter(type)
        told = arguments_schema(adapter.library_schema(), f"the tool {own}")
        told.pop("title", None)
        text, described = parse(told.pop("description", ""))
        for member in told["properties"].keys() & described:
            told["properties"][member].setdefault("description", described[member])
        return Declaration(
            description=text if description is None else description,
            parameters=told,
            schema=arguments_schema(adapter.schema, f"the tool {own}"),
            read=_reader(adapter.read),
        )

    return Tool(own, cache(declare), call, call)


def _reader(read: Callable[[str], Any]) -> Callable[[Mapping[str, Any]], Any]:
    return lambda arguments: read(json.dumps(dict(arguments)))
