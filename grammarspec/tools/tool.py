"""Tools and calls: a function that models may call, and a call that a model has written."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, update_wrapper
from inspect import iscoroutinefunction
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, TypeVar, overload

from grammarspec.imports import importing
from grammarspec.tools.declaration import Declaration
from grammarspec.tools.wire import read_json_tool

if TYPE_CHECKING:
    from grammarspec.grammars.expressions import Grammar

__all__ = ["Tool", "ToolCall"]

P = ParamSpec("P")
P2 = ParamSpec("P2")
R_co = TypeVar("R_co", covariant=True)
S = TypeVar("S")

_NAME = re.compile(r"[A-Za-z0-9_./-]{1,128}")


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call of a tool, as a model has written it.

    Attributes:
        id: pairs the call with the message of its result.
        name: the tool's name.
        arguments: the arguments as JSON values.
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


class Tool(Generic[P, R_co]):
    """A function that models may call, made by :func:`grammarspec.tool`. It can be called as before.

    Attributes:
        name: the name that models call it by.
    """

    def __init__(
        self,
        name: str,
        declare: Callable[[], Declaration],
        function: Callable[P, R_co] | None = None,
        call: Callable[[Any], R_co] | None = None,
        bind: Callable[[Any], Tool[..., R_co]] | None = None,
    ) -> None:
        """A tool from its parts. Users have :func:`grammarspec.tools.sources.as_tool` make it.

        Args:
            name: the name that models call it by.
            declare: makes the declaration when it is first needed, and returns the same one each time.
            function: what ``tool(...)`` calls; ``None`` if the tool has no function.
            call: the same function, but with one argument: the typed arguments that ``Declaration.read`` makes.
            bind: for a method in a class: makes the tool of an instance.

        Raises:
            ValueError: the name is empty, longer than 128 characters, or has other characters than ASCII letters,
                digits and ``_ - . /``.
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
        """The JSON Schema of the arguments, an object, as the model sees it."""
        return self._declare().parameters

    @property
    def schema(self) -> dict[str, Any]:
        """The JSON Schema that is enforced: ``parameters``, narrowed to what :meth:`read` accepts."""
        return self._declare().schema

    @cached_property
    def grammar(self) -> Grammar[Any]:
        """The JSON texts of arguments, whose values are typed arguments (see :meth:`read`).

        Raises:
            GrammarError: the schema cannot be enforced.
        """
        with importing:
            from grammarspec.frontends.json_schema import json_schema

        return json_schema(self.schema, additional_properties=False, numbers="plain").map(self.read)

    @property
    def is_async(self) -> bool:
        """Whether its function is a coroutine function, so that the result of a call must be awaited."""
        return iscoroutinefunction(self._function)

    @property
    def is_callable(self) -> bool:
        """Whether it has a function. Tools that only a schema declares have none."""
        return self._call is not None

    def read(self, arguments: Mapping[str, Any]) -> Any:
        """Typed arguments from JSON values; see :attr:`ToolCall.args`.

        Args:
            arguments: JSON values by the names of parameters.

        Raises:
            ValueError: they are not valid (Pydantic's ``ValidationError`` is one).
        """
        return self._declare().read(arguments)

    def call(self, call: ToolCall) -> R_co:
        """Run a call that a model has written. The result of an async function must be awaited.

        Args:
            call: the call; its ``args`` are what the function gets.

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
            json: a declaration as in OpenAI's chat completions, ``{"type": "function", "function": {...}}``, in its
                Responses (flat), in Anthropic's messages or in MCP; or a ``Tool`` object of the MCP SDK.
            name, description: instead of those in the JSON.
            call: what runs the tool, given the arguments as one ``dict``; may be ``async``.

        Raises:
            GrammarSyntaxError: the JSON is malformed.
            UnsupportedFeature: the tool is not a function.
            ValueError: the name is none of a tool (see :class:`Tool`).
        """
        own, declaration = read_json_tool(json, name, description)
        return Tool(own, lambda: declaration, call, call)

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
            TypeError: the function has no parameter ``self``: binding it would take away another parameter.
        """
        if self._bind is not None:
            return self if instance is None else self._bind(instance)
        if instance is None or self._function is None:
            return self
        hint = "name its first parameter self, or put @staticmethod above"
        raise TypeError(f"the tool {self.name} is in a class, and is no method\n  hint: {hint}")
