"""Functions that ask a model: the body makes the prompt, the decorator names the type of the answer."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial, update_wrapper
from inspect import iscoroutinefunction, isfunction
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, TypeVar, Unpack, overload

from grammarspec.errors import NoModel
from grammarspec.grammars.expressions import Grammar
from grammarspec.models.options import refuse_unknown

if TYPE_CHECKING:
    from typing_extensions import TypeForm

    from grammarspec.models.chat import Prompt
    from grammarspec.models.model import Model, Options
    from grammarspec.models.results import Result
    from grammarspec.models.streaming import Stream

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

    def __init__(
        self, function: Callable[..., Any], type: Any, options: Options, model: Model | None = None, kind: Any = None
    ) -> None:
        """A function with its options.

        Args:
            kind: ``classmethod`` or ``staticmethod``, if it is one.
        """
        self._function, self._type, self._options, self._own, self._kind = function, type, options, model, kind
        update_wrapper(self, function)  # type: ignore[arg-type]  # it is called, once it is one of the two kinds

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {getattr(self._function, '__qualname__', self._function)!s}>"

    def __reduce__(self) -> str:
        # Pickled as functions are: by the name under which it is found.
        return str(getattr(self._function, "__qualname__", repr(self)))

    def _asked(self) -> Model:
        model = self._own or _model.get()
        if model is None:
            name = getattr(self._function, "__name__", "this function")
            raise NoModel(
                f"{name} has no model", hint=f"write {name}.using(model), or call it within `with gs.use(model):`"
            )
        return model

    def _bound(self, instance: Any, owner: Any) -> Any:
        to = owner if self._kind is classmethod else instance
        if self._kind is staticmethod or to is None:
            return self
        bound = update_wrapper(partial(self._function, to), self._function)
        del bound.__wrapped__  # it has a parameter more, and inspect.signature would show that
        return type(self)(bound, self._type, self._options, self._own)

    def _using(self, model: Model | None, options: Options) -> Any:
        refuse_unknown(options)
        return type(self)(self._function, self._type, {**self._options, **options}, model or self._own, self._kind)


class OutputFunction(_Asking[P, T]):
    """A function that returns a prompt, called for a value; made by :func:`output`."""

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> T:
        """Ask the model with the prompt for these arguments; raises as :meth:`grammarspec.Model.batch` does.

        Raises:
            NoModel: there is no model.
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

    def using(self, model: Model | None = None, **options: Unpack[Options]) -> OutputFunction[P, T]:
        """The same function, asking this model, with these options in place of its own."""
        function: OutputFunction[P, T] = self._using(model, options)
        return function

    @overload
    def __get__(self, instance: None, owner: type) -> OutputFunction[P, T]: ...
    @overload
    def __get__(
        self: OutputFunction[Concatenate[S, P2], T], instance: S, owner: type | None = None
    ) -> OutputFunction[P2, T]: ...
    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        """As a method, with ``self`` given."""
        return self._bound(instance, owner)


class AsyncOutputFunction(_Asking[P, T]):
    """An ``async`` function that returns a prompt, awaited for a value; made by :func:`output`."""

    async def __call__(self, *args: P.args, **kwargs: P.kwargs) -> T:
        """As :meth:`OutputFunction.__call__`; the model runs in a thread of its own."""
        return (await self.run(*args, **kwargs)).output

    async def run(self, *args: P.args, **kwargs: P.kwargs) -> Result[T]:
        """The same, with all that is known about the answer."""
        found: Result[T] = await self._asked().arun(await self.prompt(*args, **kwargs), self._type, **self._options)
        return found

    async def stream(self, *args: P.args, **kwargs: P.kwargs) -> Stream[T]:
        """The answer's text piece by piece: ``async for piece in await function.stream(...)``."""
        found: Stream[T] = self._asked().stream(await self.prompt(*args, **kwargs), self._type, **self._options)
        return found

    async def prompt(self, *args: P.args, **kwargs: P.kwargs) -> Prompt:
        """The prompt for these arguments."""
        prompt: Prompt = await self._function(*args, **kwargs)
        return prompt

    def using(self, model: Model | None = None, **options: Unpack[Options]) -> AsyncOutputFunction[P, T]:
        """The same function, asking this model, with these options in place of its own."""
        function: AsyncOutputFunction[P, T] = self._using(model, options)
        return function

    @overload
    def __get__(self, instance: None, owner: type) -> AsyncOutputFunction[P, T]: ...
    @overload
    def __get__(
        self: AsyncOutputFunction[Concatenate[S, P2], T], instance: S, owner: type | None = None
    ) -> AsyncOutputFunction[P2, T]: ...
    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        """As a method, with ``self`` given."""
        return self._bound(instance, owner)


class _Decorator(Generic[T]):
    """What :func:`output` returns, which is to be put before a function."""

    def __init__(self, type: Any, options: Options) -> None:
        self._type, self._options = type, options

    @overload
    def __call__(self, function: Callable[P, Awaitable[Prompt]]) -> AsyncOutputFunction[P, T]: ...
    @overload
    def __call__(self, function: Callable[P, Prompt]) -> OutputFunction[P, T]: ...
    def __call__(self, function: Any) -> Any:
        inner = function.__func__ if isinstance(function, classmethod | staticmethod) else function
        if not callable(inner):
            raise TypeError(f"gs.output(...) takes a function that returns a prompt, not {type(inner).__name__}")
        made: Any = AsyncOutputFunction if iscoroutinefunction(inner) else OutputFunction
        return made(inner, self._type, self._options, None, None if inner is function else type(function))


@overload
def output(type: Grammar[T], **options: Unpack[Options]) -> _Decorator[T]: ...
@overload
def output(type: TypeForm[T], **options: Unpack[Options]) -> _Decorator[T]: ...
def output(type: Any, **options: Unpack[Options]) -> _Decorator[Any]:
    """A decorator for a function that returns a prompt (a text, or messages): calling it gives the model's answer.

    The function may be ``async``, and a method; of a class method or static method, this decorator stands above
    ``@classmethod`` or ``@staticmethod``. Its model is that of ``function.using(model)``, or of the block
    ``with gs.use(model):`` around the call.

    Args:
        type: of the answer: a grammar, or a type as :func:`grammarspec.grammar` takes it.
        options: see :class:`grammarspec.models.model.Options`.

    Raises:
        TypeError: there is no type: the decorator is used without one; there is no such option. Tools are none: a
            model that calls some has no value yet. ``gs.run_tools(model, function.prompt(...), tools, type=T)`` goes on
            until it has.
    """
    if isfunction(type):
        raise TypeError(f"the decorator needs the type of the answer: write @gs.output(str) before {type.__name__}")
    refuse_unknown(options)
    return _Decorator(type, options)
