"""Tools and calls: what a model is told of a function, what it may write as arguments, and what it wrote."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache, update_wrapper
from inspect import isclass, iscoroutinefunction
from types import MethodType
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, TypeAlias, TypeVar, overload

from grammarspec.errors import GrammarSyntaxError

if TYPE_CHECKING:
    from grammarspec.grammars.expressions import Grammar

__all__ = ["Declaration", "Tool", "ToolCall", "ToolLike", "arguments_schema", "as_tool", "as_tools", "tool"]

P = ParamSpec("P")
P2 = ParamSpec("P2")
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)
S = TypeVar("S")

_NAME = re.compile(r"[A-Za-z0-9_./-]{1,128}")
_DEFINED = re.compile(r"#/(\$defs|definitions)/([^/%~]+)")


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call that a model wrote.

    Attributes:
        id: pairs the call with the message of its result.
        name: of the tool.
        arguments: as the model wrote them, as JSON values.
        args: the same as typed values: an object with the parameters as attributes (functions), an instance (classes),
            or ``arguments`` itself (tools declared as JSON).
    """

    id: str
    name: str
    arguments: dict[str, Any]
    args: Any

    def to_openai(self) -> dict[str, Any]:
        """As a member of ``tool_calls`` in a message of OpenAI's chat completions."""
        arguments = json.dumps(self.arguments, ensure_ascii=False)
        return {"id": self.id, "type": "function", "function": {"name": self.name, "arguments": arguments}}


@dataclass(frozen=True, slots=True)
class Declaration:
    """What a model is told of a tool, and what becomes of the arguments that it writes.

    Attributes:
        description: what the tool does; may be empty.
        parameters: the JSON Schema of the arguments, an object, as the model is told it.
        schema: the JSON Schema that is enforced: as narrow as what ``read`` takes.
        read: from JSON values to typed arguments.
    """

    description: str
    parameters: dict[str, Any]
    schema: dict[str, Any]
    read: Callable[[Mapping[str, Any]], Any]


class Tool(Generic[P, R_co]):
    """A function that models may call. It stays callable as it was; made by :func:`grammarspec.tool`.

    Attributes:
        name: how models call it.
    """

    def __init__(
        self,
        name: str,
        declare: Callable[[], Declaration],
        function: Callable[P, R_co] | None = None,
        call: Callable[[Any], R_co] | None = None,
        bind: Callable[[Any], Tool[..., R_co]] | None = None,
    ) -> None:
        """A tool from its parts; :func:`as_tool` makes them.

        Args:
            declare: makes the declaration when it is first needed; gives the same each time.
            function: what ``tool(...)`` calls.
            call: the same, of typed arguments as ``read`` makes them.
            bind: of a method that still lacks its ``self``: makes the tool of an instance.

        Raises:
            ValueError: the name is empty, long, or has other characters than ASCII letters, digits and ``_ - . /``.
        """
        if not _NAME.fullmatch(name):
            raise ValueError(f"{name!r} is no name of a tool: 1 to 128 ASCII letters, digits, _, -, . or /")
        self.name = name
        self._declare, self._function, self._call, self._bind = declare, function, call, bind
        if function is not None:
            update_wrapper(self, function, updated=())

    def __repr__(self) -> str:
        return f"<tool {self.name}>"

    @property
    def description(self) -> str:
        """What the tool does, for the model; may be empty."""
        return self._declare().description

    @property
    def parameters(self) -> dict[str, Any]:
        """The JSON Schema of the arguments, an object, as the model is told it."""
        return self._declare().parameters

    @property
    def schema(self) -> dict[str, Any]:
        """The JSON Schema that is enforced: ``parameters``, as narrow as what :meth:`read` takes."""
        return self._declare().schema

    @cached_property
    def grammar(self) -> Grammar[Any]:
        """The JSON texts of the arguments, read as typed arguments."""
        from grammarspec.frontends.json_schema import json_schema

        return json_schema(self.schema, additional_properties=False, numbers="plain").map(self.read)

    @property
    def is_async(self) -> bool:
        """Whether calling it gives something to await."""
        return iscoroutinefunction(self._function)

    @property
    def is_callable(self) -> bool:
        """Whether it has a function; tools declared by a schema alone have none."""
        return self._call is not None

    def read(self, arguments: Mapping[str, Any]) -> Any:
        """JSON arguments as typed ones; see :attr:`ToolCall.args`.

        Raises:
            ValueError: they are not valid (Pydantic's ``ValidationError`` is one).
        """
        return self._declare().read(arguments)

    def call(self, call: ToolCall) -> R_co:
        """Run a call that a model wrote; of an async function this is to be awaited.

        Raises:
            TypeError: the tool has no function.
        """
        if self._call is None:
            raise self._no_function()
        return self._call(call.args)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R_co:
        """Call the function.

        Raises:
            TypeError: the tool has none.
        """
        if self._function is None:
            raise self._no_function()
        return self._function(*args, **kwargs)

    def _no_function(self) -> TypeError:
        hint = "declare it with call=function (Tool.from_json, as_tool)"
        return TypeError(f"the tool {self.name} has no function\n  hint: {hint}")

    @staticmethod
    def from_json(
        json: Any, *, name: str | None = None, description: str | None = None, call: Callable[[Any], Any] | None = None
    ) -> Tool[..., Any]:
        """A tool that JSON declares.

        Args:
            json: ``{"type": "function", "function": {...}}`` of OpenAI's chat completions; the flat shape of its
                Responses; Anthropic's; that of MCP, whose ``Tool`` objects are taken as well.
            name, description: instead of those in the JSON.
            call: what runs the tool, given the arguments as one ``dict``; may be ``async``.

        Raises:
            GrammarSyntaxError: the JSON is malformed.
            UnsupportedFeature: it is no function.
        """
        from grammarspec.tools.wire import json_tool

        return json_tool(json, name, description, call)

    def to_openai(self) -> dict[str, Any]:
        """As a member of ``tools`` in a request of OpenAI's chat completions."""
        function = {"name": self.name, "description": self.description, "parameters": self.parameters}
        return {"type": "function", "function": function}

    @overload
    def __get__(self, instance: None, owner: type) -> Tool[P, R_co]: ...
    @overload
    def __get__(self: Tool[Concatenate[S, P2], R_co], instance: S, owner: type | None = None) -> Tool[P2, R_co]: ...
    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        """As a method, with ``self`` given.

        Raises:
            TypeError: the function has no parameter ``self``, and would lose another.
        """
        if self._bind is not None:
            return self if instance is None else self._bind(instance)
        if instance is None or self._function is None:
            return self
        hint = "name its first parameter self, or put @staticmethod above"
        raise TypeError(f"the tool {self.name} is in a class, and is no method\n  hint: {hint}")


ToolLike: TypeAlias = object
"""What :func:`as_tool` takes. Type checkers make a list of objects of tools with different parameters, so a narrower
type would refuse what is right."""


def as_tool(
    x: Any, *, name: str | None = None, description: str | None = None, call: Callable[[Any], Any] | None = None
) -> Tool[..., Any]:
    """A tool from whatever declares one.

    Args:
        x: a tool; a function, as :func:`tool` takes it; a class that Pydantic or msgspec knows as an object (a model,
            a dataclass, a ``TypedDict``, ...); JSON, or an object of MCP's, as :meth:`Tool.from_json` takes it.
        name, description: instead of the tool's own.
        call: for a class or JSON: the function that runs it, given :attr:`ToolCall.args`.

    Raises:
        TypeError: there is nothing here to make a tool of; a method without its instance.
        GrammarSyntaxError: the JSON is malformed.
        UnsupportedFeature: a type that has no JSON, now or when the tool is first used.
        ImportError: functions and classes need Pydantic.
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
        from grammarspec.tools.sources import class_tool

        return class_tool(x, name, description, call)
    if isinstance(x, Mapping) or hasattr(x, "inputSchema") or hasattr(x, "input_schema"):
        from grammarspec.tools.wire import json_tool

        return json_tool(x, name, description, call)
    if call is not None:
        raise TypeError("a function is called itself: `call` is for classes and JSON")
    from grammarspec.tools.sources import function_tool

    return as_tool(function_tool(x, name, description))


def as_tools(tools: Iterable[ToolLike]) -> dict[str, Tool[..., Any]]:
    """Tools by name. What declares one is the same tool each time, so that what was compiled for it is found again.

    Raises:
        ValueError: two have the same name.
        TypeError: this is a single tool, or one of them is none.
    """
    if isinstance(tools, str | Mapping | Tool) or not isinstance(tools, Iterable):
        raise TypeError("tools takes several tools, not a single one: write [tool]")
    found: dict[str, Tool[..., Any]] = {}
    for one in map(_kept, tools):
        if one.name in found:
            raise ValueError(f"two tools are named {one.name}")
        found[one.name] = one
    return found


def _kept(x: Any) -> Tool[..., Any]:
    if isinstance(x, Mapping):
        try:
            return _tool_of_json(json.dumps(x))
        except (TypeError, ValueError):  # what is wrong with it is said where it is read
            return as_tool(x)
    return _tool_of(x) if isinstance(x, Hashable) else as_tool(x)


@lru_cache(maxsize=256)
def _tool_of(x: Hashable) -> Tool[..., Any]:
    return as_tool(x)


@lru_cache(maxsize=256)
def _tool_of_json(text: str) -> Tool[..., Any]:
    return as_tool(json.loads(text))


def arguments_schema(schema: Mapping[str, Any], where: str) -> dict[str, Any]:
    """A JSON Schema of arguments with the type and the properties at its top, where formats of tools look for them.

    Raises:
        GrammarSyntaxError: it is no schema of an object.
    """
    found, passed = dict(schema), list[str]()
    while (named := _DEFINED.fullmatch(str(found.get("$ref")))) and found["$ref"] not in passed:
        passed.append(found.pop("$ref"))
        found = {**found.get(named[1], {}).get(named[2], {"type": "undefined"}), **found}
    if found.get("type", "object") != "object" or "$ref" in found:
        kind = found.get("$ref") or found["type"]
        raise GrammarSyntaxError(f"the arguments of a tool must be an object, and are: {kind}", where)
    for reference in passed:  # models need not be told what nothing refers to any more
        _, keyword, name = reference.split("/")
        rest = {**found, keyword: {other: it for other, it in found[keyword].items() if other != name}}
        if json.dumps(reference) not in json.dumps(rest, default=str):
            found = rest
    return {"type": "object", "properties": {}, **found}


class _Decorator:
    """What :func:`tool` returns when it is given options."""

    def __init__(self, name: str | None, description: str | None) -> None:
        self._name, self._description = name, description

    def __call__(self, function: Callable[P, R]) -> Tool[P, R]:
        return tool(function, name=self._name, description=self._description)


@overload
def tool(function: Callable[P, R], /, *, name: str | None = None, description: str | None = None) -> Tool[P, R]: ...
@overload
def tool(*, name: str | None = None, description: str | None = None) -> _Decorator: ...
def tool(function: Any = None, /, *, name: str | None = None, description: str | None = None) -> Any:
    """A decorator for a function that models may call; it stays callable as it is.

    Parameters become a JSON Schema by their annotations, as :func:`grammarspec.grammar` has them: constraints in
    ``Annotated`` hold while a model writes. Parameters with defaults stay optional. What the docstring says (in the
    style of Google, NumPy or Sphinx, if Griffe is installed) becomes the description, and those of the parameters. The
    function may be ``async``, and a method.

    Args:
        name, description: for the model; by default the function's name and docstring.

    Raises:
        TypeError: not a function; a parameter without an annotation, or ``*args``, or ``**kwargs``.
    """
    if function is None:
        return _Decorator(name, description)
    if isclass(function):
        raise TypeError(f"{function.__name__} is a class, and a tool without a decorator\n  hint: pass it in tools=")
    from grammarspec.tools.sources import function_tool

    return function_tool(function, name, description)
