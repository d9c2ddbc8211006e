"""Functions that ask a model: the body makes the prompt, the decorator names the type of the answer."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial, update_wrapper
from inspect import iscoroutinefunction
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, TypeVar, Unpack, overload

from grammarspec.expressions import Grammar

if TYPE_CHECKING:
    from typing_extensions import TypeForm

    from grammarspec.models import Model, Options, Prompt, Result, Stream

__all__ = ["AsyncOutputFunction", "OutputFunction", "output", "use"]

P = ParamSpec("P")
P2 = ParamSpec("P2")
S = TypeVar("S")
T = TypeVar("T")

_model: ContextVar[Model | None] = ContextVar("grammarspec_model", default=None)


@contextmanager
def use(model: Model) -> Iterator[Model]:
    """Within this block (and in what it awaits), functions of :func:`output` ask this model unless told otherwise."""
    token = _model.set(model)
    try:
        yield model
    finally:
        _model.reset(token)


class _Asking(Generic[P, T]):
    """What the two kinds of functions share: the prompt's function, the answer's type, the model."""

    def __init__(self, function: Callable[..., Any], type: Any, options: Options, model: Model | None = None) -> None:
        self._function, self._type, self._options, self._own = function, type, options, model
        update_wrapper(self, function)  # type: ignore[arg-type]  # it is called, once it is one of the two kinds

    def _asked(self) -> Model:
        model = self._own or _model.get()
        if model is None:
            name = getattr(self._function, "__name__", "this function")
            raise LookupError(
                f"{name} has no model: write {name}.using(model), or call it within `with gs.use(model):`"
            )
        return model

    def _bound(self, instance: Any) -> Any:
        return self._copy(update_wrapper(partial(self._function, instance), self._function), self._own)

    def _copy(self, function: Callable[..., Any], model: Model | None) -> Any:
        return type(self)(function, self._type, self._options, model)


class OutputFunction(_Asking[P, T]):
    """A function that returns a prompt, called for a value; made by :func:`output`."""

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> T:
        """Ask the model with the prompt for these arguments; raises as :meth:`grammarspec.Model.batch` does.

        Raises:
            LookupError: there is no model.
        """
        return self.run(*args, **kwargs).output

    def run(self, *args: P.args, **kwargs: P.kwargs) -> Result[T]:
        """The same, with all that is known about the answer."""
        found: Result[T] = self._asked().run(self._function(*args, **kwargs), self._type, **self._options)
        return found

    def stream(self, *args: P.args, **kwargs: P.kwargs) -> Stream[T]:
        """The answer's text piece by piece."""
        found: Stream[T] = self._asked().stream(self._function(*args, **kwargs), self._type, **self._options)
        return found

    def prompt(self, *args: P.args, **kwargs: P.kwargs) -> Prompt:
        """The prompt for these arguments."""
        prompt: Prompt = self._function(*args, **kwargs)
        return prompt

    def using(self, model: Model) -> OutputFunction[P, T]:
        """The same function, asking this model."""
        function: OutputFunction[P, T] = self._copy(self._function, model)
        return function

    @overload
    def __get__(self, instance: None, owner: type) -> OutputFunction[P, T]: ...
    @overload
    def __get__(
        self: OutputFunction[Concatenate[S, P2], T], instance: S, owner: type | None = None
    ) -> OutputFunction[P2, T]: ...
    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        """As a method, with ``self`` given."""
        return self if instance is None else self._bound(instance)


class AsyncOutputFunction(_Asking[P, T]):
    """An ``async`` function that returns a prompt, awaited for a value; made by :func:`output`."""

    async def __call__(self, *args: P.args, **kwargs: P.kwargs) -> T:
        """As :meth:`OutputFunction.__call__`; the model runs in a thread of its own."""
        return (await self.run(*args, **kwargs)).output

    async def run(self, *args: P.args, **kwargs: P.kwargs) -> Result[T]:
        """The same, with all that is known about the answer."""
        prompt, model = await self.prompt(*args, **kwargs), self._asked()
        found: Result[T] = await asyncio.to_thread(lambda: model.run(prompt, self._type, **self._options))
        return found

    async def prompt(self, *args: P.args, **kwargs: P.kwargs) -> Prompt:
        """The prompt for these arguments."""
        prompt: Prompt = await self._function(*args, **kwargs)
        return prompt

    def using(self, model: Model) -> AsyncOutputFunction[P, T]:
        """The same function, asking this model."""
        function: AsyncOutputFunction[P, T] = self._copy(self._function, model)
        return function

    @overload
    def __get__(self, instance: None, owner: type) -> AsyncOutputFunction[P, T]: ...
    @overload
    def __get__(
        self: AsyncOutputFunction[Concatenate[S, P2], T], instance: S, owner: type | None = None
    ) -> AsyncOutputFunction[P2, T]: ...
    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        """As a method, with ``self`` given."""
        return self if instance is None else self._bound(instance)


class _Decorator(Generic[T]):
    """What :func:`output` returns, which is to be put before a function."""

    def __init__(self, type: Any, options: Options) -> None:
        self._type, self._options = type, options

    @overload
    def __call__(self, function: Callable[P, Awaitable[Prompt]]) -> AsyncOutputFunction[P, T]: ...
    @overload
    def __call__(self, function: Callable[P, Prompt]) -> OutputFunction[P, T]: ...
    def __call__(self, function: Callable[..., Any]) -> Any:
        kind = AsyncOutputFunction if iscoroutinefunction(function) else OutputFunction
        return kind(function, self._type, self._options)


@overload
def output(type: Grammar[T], **options: Unpack[Options]) -> _Decorator[T]: ...
@overload
def output(type: TypeForm[T], **options: Unpack[Options]) -> _Decorator[T]: ...
def output(type: Any, **options: Unpack[Options]) -> _Decorator[Any]:
    """A decorator for a function that returns a prompt (a text, or messages): calling it gives the model's answer.

    The function may be ``async``, and a method. Its model is that of ``function.using(model)``, or of the block
    ``with gs.use(model):`` around the call.

    Args:
        type: of the answer: a grammar, or a type as :func:`grammarspec.grammar` takes it.
        options: see :class:`grammarspec.models.Options`.
    """
    return _Decorator(type, options)
