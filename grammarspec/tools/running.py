"""The loop of models and tools: ask, run the calls, tell their results, until there is an answer."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from inspect import isawaitable, iscoroutine
from typing import TYPE_CHECKING, Any, Generic, Literal, Protocol, TypeVar, Unpack, overload

from grammarspec.errors import GrammarspecError
from grammarspec.grammars.expressions import Grammar
from grammarspec.tools.tool import Tool, ToolCall, ToolLike, as_tools

if TYPE_CHECKING:
    from typing_extensions import TypeForm

    from grammarspec.models.model import Options, Prompt

    class LoopOptions(Options, total=False):
        """What may be said to :func:`run_tools`, besides the options of a model.

        Attributes:
            max_rounds: how often the model is asked, at most; 8 if not given.
            on_limit: what becomes of the last round: that it calls tools again is an error (``"raise"``, if not given),
                or it cannot (``"answer"``).
            on_call: is given each call before it runs; what it raises ends the conversation.
            on_error: what a tool raises is told to the model (``"return"``, if not given), or is raised.
        """

        max_rounds: int
        on_limit: OnLimit
        on_call: Callable[[ToolCall], object]
        on_error: OnError


__all__ = ["Conversation", "FinishedCall", "ToolLimitExceeded", "arun_tools", "run_tools"]

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

OnError = Literal["return", "raise"]
OnLimit = Literal["raise", "answer"]


class Answer(Protocol):
    """What a model gives back: a value, or calls.

    Attributes:
        output: the value; ``None`` where there are calls.
        tool_calls: the calls.
        message: both as OpenAI's message of an assistant.
    """

    @property
    def output(self) -> Any: ...
    @property
    def tool_calls(self) -> Sequence[ToolCall]: ...
    @property
    def message(self) -> dict[str, Any]: ...


class Asked(Protocol):
    """A model that knows tools; :class:`grammarspec.Model` is one. It is asked ``run(messages, type, **options)``."""

    @property
    def run(self) -> Callable[..., Answer]: ...


class AsyncAsked(Protocol):
    """The same with ``arun``."""

    @property
    def arun(self) -> Callable[..., Awaitable[Answer]]: ...


@dataclass(frozen=True, slots=True)
class FinishedCall:
    """A call that has been run.

    Attributes:
        call: what the model wrote.
        result: what the tool returned.
        error: what it raised instead, or ``None``.
    """

    call: ToolCall
    result: Any
    error: Exception | None

    @property
    def message(self) -> dict[str, Any]:
        """OpenAI's message of a tool: texts as they are, other results as JSON, errors as ``Error: ...``.

        Raises:
            TypeError: the result has no JSON.
        """
        if self.error is not None:
            content = f"Error: {type(self.error).__name__}: {self.error}"
        else:
            content = self.result if isinstance(self.result, str) else _json(self.result, self.call.name)
        return {"role": "tool", "tool_call_id": self.call.id, "name": self.call.name, "content": content}


@dataclass(frozen=True, slots=True)
class Conversation(Generic[T_co]):
    """A conversation that has come to an answer.

    Attributes:
        output: the answer's value.
        messages: all of them, OpenAI-shaped: those of the prompt, the model's, the tools'.
        calls: all that were run, in order.
        rounds: how often the model was asked.
    """

    output: T_co
    messages: list[dict[str, Any]]
    calls: list[FinishedCall]
    rounds: int


class ToolLimitExceeded(GrammarspecError, RuntimeError):
    """The model still called tools in its last round.

    Attributes:
        messages: the conversation so far, with the results of all calls; it can be gone on with.
    """

    code = "tool-limit"

    def __init__(self, messages: list[dict[str, Any]], max_rounds: int) -> None:
        self.messages, self.max_rounds = messages, max_rounds
        hint = 'raise max_rounds, or have it answer in the last round: on_limit="answer"'
        super().__init__(f"no answer after {max_rounds} rounds of calls", hint=hint)

    def __reduce__(self) -> tuple[type[ToolLimitExceeded], tuple[list[dict[str, Any]], int]]:
        return type(self), (self.messages, self.max_rounds)


@overload
def run_tools(
    model: Asked, prompt: Prompt, tools: Sequence[ToolLike], *, type: Grammar[T], **options: Unpack[LoopOptions]
) -> Conversation[T]: ...
@overload
def run_tools(
    model: Asked, prompt: Prompt, tools: Sequence[ToolLike], *, type: TypeForm[T], **options: Unpack[LoopOptions]
) -> Conversation[T]: ...
@overload
def run_tools(
    model: Asked, prompt: Prompt, tools: Sequence[ToolLike], **options: Unpack[LoopOptions]
) -> Conversation[str]: ...
def run_tools(
    model: Asked, prompt: Prompt, tools: Sequence[ToolLike], *, type: Any = str, **options: Unpack[LoopOptions]
) -> Conversation[Any]:
    """Ask a model that may call tools, run its calls and tell it their results, until it answers.

    Args:
        model: a :class:`grammarspec.Model`, or whatever has its ``run``.
        prompt: what the user says, or the messages so far.
        tools: as :func:`grammarspec.tools.tool.as_tool` takes them; each must have a function.
        type: of the answer.
        options: see :class:`LoopOptions`.

    Raises:
        ToolLimitExceeded: the model still called tools in the last round.
        TypeError: a tool without a function, or an ``async`` one: for these there is :func:`arun_tools`; a tool's
            result that has no JSON.
    """
    talk = _Talk(prompt, tools, **options)
    for one in talk.tools.values():
        if one.is_async:
            raise TypeError(f"the tool {one.name} is async\n  hint: await grammarspec.tools.running.arun_tools(...)")
    while not talk.hear(model.run(talk.messages, type, **talk.options())):
        for call in talk.pending:
            talk.on_call(call)
            talk.tell(_run(talk.tools[call.name], call))
    return talk.conversation()


@overload
async def arun_tools(
    model: AsyncAsked, prompt: Prompt, tools: Sequence[ToolLike], *, type: Grammar[T], **options: Unpack[LoopOptions]
) -> Conversation[T]: ...
@overload
async def arun_tools(
    model: AsyncAsked, prompt: Prompt, tools: Sequence[ToolLike], *, type: TypeForm[T], **options: Unpack[LoopOptions]
) -> Conversation[T]: ...
@overload
async def arun_tools(
    model: AsyncAsked, prompt: Prompt, tools: Sequence[ToolLike], **options: Unpack[LoopOptions]
) -> Conversation[str]: ...
async def arun_tools(
    model: AsyncAsked, prompt: Prompt, tools: Sequence[ToolLike], *, type: Any = str, **options: Unpack[LoopOptions]
) -> Conversation[Any]:
    """:func:`run_tools` with ``model.arun``: the calls of one round run at the same time.

    Functions that are not ``async`` run in threads. With ``on_error="raise"``, the first error is raised when all calls
    of its round have ended.
    """
    talk = _Talk(prompt, tools, **options)
    while not talk.hear(await model.arun(talk.messages, type, **talk.options())):
        for call in talk.pending:
            talk.on_call(call)
        finished = await asyncio.gather(*[_arun(talk.tools[call.name], call) for call in talk.pending])
        for one in finished:
            talk.tell(one)
    return talk.conversation()


class _Talk:
    """A conversation under way: what the loops, sync and async, have in common."""

    def __init__(
        self,
        prompt: Prompt,
        tools: Sequence[ToolLike],
        *,
        max_rounds: int = 8,
        on_limit: OnLimit = "raise",
        on_call: Callable[[ToolCall], object] = lambda call: None,
        on_error: OnError = "return",
        **options: Any,
    ) -> None:
        if max_rounds < 1:
            raise ValueError(f"max_rounds must be at least 1, and is {max_rounds}")
        if on_limit not in ("raise", "answer"):
            raise ValueError(f"on_limit must be 'raise' or 'answer', not {on_limit!r}")
        if on_error not in ("return", "raise"):
            raise ValueError(f"on_error must be 'return' or 'raise', and is {on_error!r}")
        self.tools = as_tools(tools)
        hint = "declare it with call=function (Tool.from_json, as_tool)"
        for one in self.tools.values():
            if not one.is_callable:
                raise TypeError(f"the tool {one.name} has no function to run\n  hint: {hint}")
        user = [{"role": "user", "content": prompt}]
        self.messages: list[dict[str, Any]] = user if isinstance(prompt, str) else [dict(one) for one in prompt]
        self.calls: list[FinishedCall] = []
        self.pending: Sequence[ToolCall] = ()
        self.on_call = on_call
        self._max_rounds, self._on_limit, self._on_error, self._options = max_rounds, on_limit, on_error, options
        self._output: Any = None
        self._rounds = 0

    def options(self) -> dict[str, Any]:
        """Those of the next round.

        Raises:
            ToolLimitExceeded: there is none.
        """
        if self._rounds == self._max_rounds:
            raise ToolLimitExceeded(self.messages, self._max_rounds)
        options = {**self._options, "tools": list(self.tools.values())}
        if self._rounds > 0 and options.get("tool_choice", "auto") not in ("auto", "none"):
            options["tool_choice"] = "auto"  # or no round would be the last one
        self._rounds += 1
        if self._rounds == self._max_rounds and self._on_limit == "answer":
            options["tool_choice"] = "none"
        return options

    def hear(self, answer: Answer) -> bool:
        """Note a model's answer; whether it is the last one."""
        self.messages.append(answer.message)
        self.pending = answer.tool_calls
        self._output = answer.output
        return not self.pending

    def tell(self, finished: FinishedCall) -> None:
        """Note what a tool did."""
        if finished.error is not None and self._on_error == "raise":
            raise finished.error
        self.calls.append(finished)
        self.messages.append(finished.message)

    def conversation(self) -> Conversation[Any]:
        return Conversation(self._output, self.messages, self.calls, self._rounds)


def _run(tool: Tool[..., Any], call: ToolCall) -> FinishedCall:
    try:
        result = tool.call(call)
    except Exception as error:
        return FinishedCall(call, None, error)
    if iscoroutine(result):
        result.close()
        raise TypeError(f"the tool {tool.name} gave a coroutine\n  hint: await arun_tools(...)")
    return FinishedCall(call, result, None)


async def _arun(tool: Tool[..., Any], call: ToolCall) -> FinishedCall:
    try:
        result = tool.call(call) if tool.is_async else await asyncio.to_thread(tool.call, call)
        return FinishedCall(call, await result if isawaitable(result) else result, None)
    except Exception as error:
        return FinishedCall(call, None, error)


def _json(result: Any, tool: str) -> str:
    try:
        from pydantic_core import PydanticSerializationError, to_json
    except ImportError as missing:
        hint = "pip install 'grammarspec[types]', or return texts"
        raise ImportError(f"{missing}; results of tools that are no texts need: {hint}") from missing
    try:
        return to_json(result, inf_nan_mode="strings").decode()
    except PydanticSerializationError as error:
        raise TypeError(f"the result of the tool {tool} has no JSON: {error}") from None
