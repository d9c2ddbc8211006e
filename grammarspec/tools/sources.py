"""Tools from whatever declares one: functions with annotations, classes and JSON.

A function, a class or JSON goes in, a :class:`~grammarspec.tools.tool.Tool` comes out.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Iterable, Mapping
from contextlib import suppress
from dataclasses import field, make_dataclass
from functools import cache, lru_cache
from inspect import Parameter, isclass, signature, unwrap
from types import MethodType, SimpleNamespace
from typing import Any, ParamSpec, TypeAlias, TypeVar, get_type_hints, overload

from grammarspec.errors import UnsupportedFeature
from grammarspec.imports import importing
from grammarspec.tools.declaration import Declaration, arguments_schema
from grammarspec.tools.docstrings import parse
from grammarspec.tools.tool import Tool

__all__ = ["ToolLike", "as_tool", "as_tools", "class_tool", "function_tool", "tool"]

P = ParamSpec("P")
R = TypeVar("R")


ToolLike: TypeAlias = object
"""Whatever :func:`as_tool` takes. Type checkers infer ``list[object]`` for a list of tools with different parameters:
if this type were narrower, they would reject such lists."""


def as_tool(
    x: Any, *, name: str | None = None, description: str | None = None, call: Callable[[Any], Any] | None = None
) -> Tool[..., Any]:
    """A tool from whatever declares one.

    Args:
        x: a tool; a function, as :func:`tool` takes it; a class that Pydantic or msgspec treats as an object (a model,
            a dataclass, a ``TypedDict``, ...); JSON or an object of the MCP SDK, as :meth:`Tool.from_json` takes it.
        name, description: instead of the tool's own.
        call: for a class or JSON: the function that runs a call, given :attr:`ToolCall.args`.

    Raises:
        TypeError: ``x`` declares no tool, is a method without its instance, or has a parameter that no schema can
            describe.
        GrammarSyntaxError: the JSON is malformed.
        ValueError: the name is none of a tool (see :class:`Tool`).
        UnsupportedFeature: a type has no JSON. For functions and classes this is raised when the tool is first used,
            because their types are not looked at before.
        MissingPackage: functions and classes need Pydantic.
    """
    if isinstance(x, MethodType) and isinstance(x.__func__, Tool):
        x = x.__func__.__get__(x.__self__)
    if isinstance(x, Tool):
        if (name, description, call) != (None, None, None):
            raise TypeError(f"the tool {x.name} is one already, with a name, a description and a function of its own")
        if x._bind is not None:
            raise TypeError(f"the tool {x.name} is a method\n  hint: take it from an instance")
        return x
    if isclass(x):
        return class_tool(x, name, description, call)
    if isinstance(x, Mapping) or hasattr(x, "inputSchema") or hasattr(x, "input_schema"):
        return Tool.from_json(x, name=name, description=description, call=call)
    if call is not None:
        raise TypeError("a function is called itself: `call` is for classes and JSON")
    return as_tool(function_tool(x, name, description))


def as_tools(tools: Iterable[ToolLike]) -> dict[str, Tool[..., Any]]:
    """Tools by name.

    The same function, class or JSON gives the same tool each time, so that grammars compiled for it can be reused.

    Args:
        tools: as :func:`as_tool` takes them.

    Raises:
        ValueError: two have the same name.
        TypeError: ``tools`` is a single tool, or one of them declares no tool.
        GrammarError, MissingPackage: as :func:`as_tool`.
    """
    if isinstance(tools, str | Mapping | Tool) or not isinstance(tools, Iterable):
        raise TypeError("tools takes several tools, not a single one: write [tool]")
    found: dict[str, Tool[..., Any]] = {}
    for one in map(_cached, tools):
        if one.name in found:
            raise ValueError(f"two tools are named {one.name}")
        found[one.name] = one
    return found


def _cached(x: Any) -> Tool[..., Any]:
    """As :func:`as_tool`, but the same tool for the same argument, if arguments can be compared."""
    if isinstance(x, Mapping):
        try:
            return _tool_of_json(json.dumps(x))
        except (TypeError, ValueError):  # no JSON, or malformed: as_tool raises the right error
            return as_tool(x)
    return _tool_of(x) if isinstance(x, Hashable) else as_tool(x)


@lru_cache(maxsize=256)
def _tool_of(x: Hashable) -> Tool[..., Any]:
    return as_tool(x)


@lru_cache(maxsize=256)
def _tool_of_json(text: str) -> Tool[..., Any]:
    return as_tool(json.loads(text))


class _Decorator:
    """The decorator that :func:`tool` returns when it is given options."""

    def __init__(self, name: str | None, description: str | None) -> None:
        self._name, self._description = name, description

    def __call__(self, function: Callable[P, R]) -> Tool[P, R]:
        return tool(function, name=self._name, description=self._description)


@overload
def tool(function: Callable[P, R], /, *, name: str | None = None, description: str | None = None) -> Tool[P, R]: ...
@overload
def tool(*, name: str | None = None, description: str | None = None) -> _Decorator: ...
def tool(function: Any = None, /, *, name: str | None = None, description: str | None = None) -> Any:
    """A decorator for a function that models may call; it can still be called as before.

    The annotations of its parameters become a JSON Schema, as for :func:`grammarspec.grammar`: constraints in
    ``Annotated`` hold while a model writes. Parameters with defaults are optional. The docstring (in the style of
    Google, NumPy or Sphinx, if Griffe is installed) becomes the description of the tool and of its parameters. The
    function may be ``async``, and a method.

    Args:
        function: the function.
        name, description: what models are told; by default the function's name and docstring.

    Raises:
        TypeError: ``function`` is not a function, or has a parameter without an annotation, ``*args`` or ``**kwargs``.
        ValueError: the name is none of a tool (see :class:`Tool`).
    """
    if function is None:
        return _Decorator(name, description)
    if isclass(function):
        raise TypeError(f"{function.__name__} is a class, and a tool without a decorator\n  hint: pass it in tools=")
    return function_tool(function, name, description)


def function_tool(function: Callable[..., Any], name: str | None = None, description: str | None = None) -> Any:
    """A tool that calls a function; see :func:`tool`.

    Args:
        function: a function or method, not a tool.
        name, description: instead of the function's name and docstring.

    Returns:
        a :class:`Tool`.

    Raises:
        TypeError, ValueError: as :func:`tool`.
    """
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
    with importing:
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
    shown = arguments_schema(adapter.library_schema(), f"the tool {name}")
    shown.pop("title", None)
    if len(shown["properties"]) != len(parameters):  # pydantic.json_schema.SkipJsonSchema
        raise TypeError(f"models are not told of a parameter of the tool {name}\n  hint: wrap a function without it")
    for parameter, member in zip(parameters, shown["properties"].values(), strict=True):  # an alias may have renamed it
        if parameter.name in described:
            member.setdefault("description", described[parameter.name])
        if parameter.default is not Parameter.empty:
            _tell_default(member, parameter.default)
    return Declaration(
        description=text if description is None else description,
        parameters=shown,
        schema=arguments_schema(adapter.schema, f"the tool {name}"),
        read=_reader(adapter.read),
    )


def _hints(function: Callable[..., Any], name: str, parameters: list[Parameter]) -> dict[str, Any]:
    """The types of the parameters. That of the result is not looked up: it may exist for type checkers only."""
    annotations = SimpleNamespace(__annotations__={one.name: one.annotation for one in parameters})
    try:
        return get_type_hints(annotations, getattr(unwrap(function), "__globals__", {}), include_extras=True)
    except NameError as error:
        hint = "tools' types are looked up where the module of the function sees them"
        raise TypeError(f"an annotation of the tool {name} means nothing: {error}\n  hint: {hint}") from None


def _default(parameter: Parameter, hint: Any, tool: str) -> Any:
    """The field of a dataclass with the default of a parameter."""
    from pydantic.fields import FieldInfo

    extras = [one for one in getattr(hint, "__metadata__", ()) if isinstance(one, FieldInfo)]
    if isinstance(parameter.default, FieldInfo) or not all(one.is_required() for one in extras):
        better = f"write {parameter.name}: Annotated[..., Field(...)], and = before the default"
        where = f"the parameter {parameter.name} of the tool {tool}"
        raise TypeError(f"{where} has a default in a Field, which Python does not know\n  hint: {better}")
    return field() if parameter.default is Parameter.empty else field(default_factory=lambda: parameter.default)


def _tell_default(member: dict[str, Any], default: Any) -> None:
    from pydantic_core import PydanticSerializationError, to_jsonable_python

    with suppress(PydanticSerializationError):  # then the model is not told the default
        member.setdefault("default", to_jsonable_python(default))


def class_tool(
    type: Any, name: str | None = None, description: str | None = None, call: Callable[[Any], Any] | None = None
) -> Tool[..., Any]:
    """A tool whose arguments make an instance of a class.

    Args:
        type: the class.
        name, description: instead of the class's name and docstring.
        call: runs a call, given the instance.

    Raises:
        MissingPackage: Pydantic is not installed.
        ValueError: the name is none of a tool (see :class:`Tool`).
    """
    with importing:
        from grammarspec.frontends.types.adapters import known_adapter

    own: str = type.__name__ if name is None else name

    def declare() -> Declaration:
        adapter = known_adapter(type)
        shown = arguments_schema(adapter.library_schema(), f"the tool {own}")
        shown.pop("title", None)
        text, described = parse(shown.pop("description", ""))
        for member in shown["properties"].keys() & described:
            shown["properties"][member].setdefault("description", described[member])
        return Declaration(
            description=text if description is None else description,
            parameters=shown,
            schema=arguments_schema(adapter.schema, f"the tool {own}"),
            read=_reader(adapter.read),
        )

    return Tool(own, cache(declare), call, call)


def _reader(read: Callable[[str], Any]) -> Callable[[Mapping[str, Any]], Any]:
    return lambda arguments: read(json.dumps(dict(arguments)))
