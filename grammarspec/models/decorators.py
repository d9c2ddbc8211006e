"""Functions that a model answers: the function returns the prompt, the decorator names the type of the answer."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial, update_wrapper
from inspect import iscoroutinefunction, isfunction
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, TypeVar, Unpack, overload

from grammarspec.errors import NoModel
from grammarspec.grammars.expressions import Grammar
from grammarspec.models.options import override, refuse_unknown

if TYPE_CHECKING:
    from typing_extensions import TypeForm

    from grammarspec.models.chat import Prompt
    from grammarspec.models.model import Model
    from grammarspec.models.options import Options
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
    """Make a model the default of the functions of :func:`output`, within the block and in what it awaits.

    A context variable keeps it, so it holds in tasks and in ``asyncio.to_thread``, but not in threads that are started
    in the block: these have to be run in a copy of the context (``contextvars.copy_context().run``), or to call
    ``function.using(model)``.

    Args:
        model: the model; a function that has one of its own (``using``) keeps it.
    """
    token = _model.set(model)
    try:
        yield model
    finally:
        _model.reset(token)


class _PromptFunction(Generic[P, T]):
    """What the sync and async kinds share: the function of the prompt, the type of the answer, options and model."""

    def __init__(
        self, function: Callable[..., Any], type: Any, options: Options, model: Model | None = None, kind: Any = None
    ) -> None:
        """A function with the type and the options of its answer.

        Args:
            function: returns the prompt.
            type: the type or grammar of the answer.
            options: the options of its calls.
            model: the model that answers; ``None``: that of :func:`use`.
            kind: ``classmethod`` or ``staticmethod``, if the function is one.
        """
        self._function, self._type, self._options, self._own, self._kind = function, type, options, model, kind
        update_wrapper(self, function)  # type: ignore[arg-type]  # only the two subclasses are callable

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {getattr(self._function, '__qualname__', self._function)!s}>"

    def __reduce__(self) -> str:
        # Pickled as functions are: by qualified name.
        return str(getattr(self._function, "__qualname__", repr(self)))

    def _require_model(self) -> Model:
        """The model that answers.

        Raises:
            NoModel: there is none.
        """
        model = self._own or _model.get()
        if model is None:
            name = getattr(self._function, "__name__", "this function")
            raise NoModel(
                f"{name} has no model", hint=f"write {name}.using(model), or call it within `with gs.use(model):`"
            )
        return model

    def _bound(self, instance: Any, owner: Any) -> Any:
        """This function with its first argument given, as a method of an instance or a class."""
        to = owner if self._kind is classmethod else instance
        if self._kind is staticmethod or to is None:
            return self
        bound = update_wrapper(partial(self._function, to), self._function)
        del bound.__wrapped__  # the unbound function: inspect.signature would show its parameter self
        return type(self)(bound, self._type, self._options, self._own)

    def _using(self, model: Model | None, options: Options) -> Any:
        refuse_unknown(options)
        return type(self)(self._function, self._type, override(self._options, options), model or self._own, self._kind)


class OutputFunction(_PromptFunction[P, T]):
    """A function that returns a prompt and is called for the value of the answer; made by :func:`output`."""

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> T:
        """The value of the model's answer to the prompt for these arguments.

        Raises:
            NoModel: there is no model.
            GrammarspecError and others: as :meth:`grammarspec.Model.batch`.
        """
        return self.run(*args, **kwargs).output

    def run(self, *args: P.args, **kwargs: P.kwargs) -> Result[T]:
        """The :class:`~grammarspec.Result` for these arguments.

        Raises:
            NoModel, GrammarspecError and others: as :meth:`__call__`.
        """
        found: Result[T] = self._require_model().run(self._function(*args, **kwargs), self._type, **self._options)
        return found

    def stream(self, *args: P.args, **kwargs: P.kwargs) -> Stream[T]:
        """The answer's text piece by piece.

        Raises:
            NoModel: there is no model.
            GrammarspecError and others: as :meth:`grammarspec.Model.stream`.
        """
        found: Stream[T] = self._require_model().stream(self._function(*args, **kwargs), self._type, **self._options)
        return found

    def prompt(self, *args: P.args, **kwargs: P.kwargs) -> Prompt:
        """The prompt for these arguments; no model is needed."""
        prompt: Prompt = self._function(*args, **kwargs)
        return prompt

    def using(self, model: Model | None = None, **options: Unpack[Options]) -> OutputFunction[P, T]:
        """The same function with another model, other options, or both.

        Args:
            model: the model that answers; ``None`` keeps the one that it has.
            options: replace those of the same names; see :class:`~grammarspec.models.options.Options`. Fields of a
                sampling replace those of a ``sampling`` that was given before.

        Raises:
            TypeError: there is no such option.
            TypeError, ValueError: a field does not fit that ``sampling``.
        """
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


class AsyncOutputFunction(_PromptFunction[P, T]):
    """An ``async`` function that returns a prompt, awaited for the value of the answer; made by :func:`output`."""

    async def __call__(self, *args: P.args, **kwargs: P.kwargs) -> T:
        """As :meth:`OutputFunction.__call__`; the model runs in a thread.

        Raises:
            NoModel, GrammarspecError and others: as :meth:`OutputFunction.__call__`.
        """
        return (await self.run(*args, **kwargs)).output

    async def run(self, *args: P.args, **kwargs: P.kwargs) -> Result[T]:
        """The :class:`~grammarspec.Result` for these arguments.

        Raises:
            NoModel, GrammarspecError and others: as :meth:`__call__`.
        """
        found: Result[T] = await self._require_model().arun(
            await self.prompt(*args, **kwargs), self._type, **self._options
        )
        return found

    async def stream(self, *args: P.args, **kwargs: P.kwargs) -> Stream[T]:
        """The answer's text piece by piece: ``async for piece in await function.stream(...)``.

        Raises:
            NoModel: there is no model.
            GrammarspecError and others: as :meth:`grammarspec.Model.stream`.
        """
        found: Stream[T] = self._require_model().stream(await self.prompt(*args, **kwargs), self._type, **self._options)
        return found

    async def prompt(self, *args: P.args, **kwargs: P.kwargs) -> Prompt:
        """The prompt for these arguments; no model is needed."""
        prompt: Prompt = await self._function(*args, **kwargs)
        return prompt

    def using(self, model: Model | None = None, **options: Unpack[Options]) -> AsyncOutputFunction[P, T]:
        """The same function with another model, other options, or both.

        Args:
            model: the model that answers; ``None`` keeps the one that it has.
            options: replace those of the same names; see :class:`~grammarspec.models.options.Options`. Fields of a
                sampling replace those of a ``sampling`` that was given before.

        Raises:
            TypeError: there is no such option.
            TypeError, ValueError: a field does not fit that ``sampling``.
        """
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
    """The decorator that :func:`output` returns."""

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
    """A decorator for a function that returns a prompt (a text, or messages): calling it returns the model's answer.

    The function may be ``async``, and a method; this decorator goes above ``@classmethod`` and ``@staticmethod``. The
    model is that of ``function.using(model)``, or of the block ``with gs.use(model):`` around the call.

    Args:
        type: of the answer: a grammar, or a type as :func:`grammarspec.grammar` takes it.
        options: see :class:`~grammarspec.models.options.Options`.

    Raises:
        TypeError: no type is given, or there is no such option. ``tools`` is no option, because a call of a tool is no
            value yet: ``gs.run_tools(model, function.prompt(...), tools, type=T)`` runs tools until there is one.
    """
    if isfunction(type):
        raise TypeError(f"the decorator needs the type of the answer: write @gs.output(str) before {type.__name__}")
    refuse_unknown(options)
    return _Decorator(type, options)
