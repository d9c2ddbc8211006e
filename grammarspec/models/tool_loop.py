"""The loop of a model and its tools: ask the model, run its calls, tell it the results, until it answers.

A prompt and tools go in, a :class:`Conversation` with the value of the answer comes out.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from inspect import isawaitable, iscoroutine
from typing import TYPE_CHECKING, Any, Generic, Literal, Protocol, TypeVar, Unpack, overload

from grammarspec.errors import GrammarspecError, needed_by
from grammarspec.grammars.expressions import Grammar
from grammarspec.models.options import ModelOptions, refuse_unknown, unforced
from grammarspec.tools.sources import ToolLike, as_tools
from grammarspec.tools.tool import Tool, ToolCall

if TYPE_CHECKING:
    from typing_extensions import TypeForm

    from grammarspec.models.chat import Prompt

__all__ = ["Conversation", "FinishedCall", "LoopOptions", "ToolLimitExceeded", "arun_tools", "run_tools"]

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

OnError = Literal["return", "raise"]
OnLimit = Literal["raise", "answer"]


class LoopOptions(ModelOptions, total=False):
    """The options of :func:`run_tools`: those of a model, and these.

    An ``on_limit`` of a sampling can only be given within ``sampling``, because the name has another meaning here.

    Attributes:
        max_rounds: the greatest number of rounds, in each of which the model is called once; 8 by default.
        on_limit: what happens in the last round: calls of tools are an error (``"raise"``, the default), or the model
            must answer (``"answer"``).
        on_call: called with each call before it runs; an exception that it raises ends the conversation.
        on_error: whether an exception that a tool raises, or that its result has no JSON, is returned to the model as
            the call's result (``"return"``, the default), or raised (``"raise"``).
    """

    max_rounds: int
    on_limit: OnLimit
    on_call: Callable[[ToolCall], object]
    on_error: OnError


class Answer(Protocol):
    """The attributes of a result that the loop needs: a value, or calls of tools.

    Attributes:
        output: the value; ``None`` if there are calls.
        tool_calls: the calls.
        message: the value or the calls as an assistant's message in the form of OpenAI's chat completions.
    """

    @property
    def output(self) -> Any: ...
    @property
    def tool_calls(self) -> Sequence[ToolCall]: ...
    @property
    def message(self) -> dict[str, Any]: ...


class ToolModel(Protocol):
    """A model with the method that the loop calls, ``run(messages, type, **options)``."""

    @property
    def run(self) -> Callable[..., Answer]: ...


class AsyncToolModel(Protocol):
    """A model with the method that the ``async`` loop calls and awaits, ``arun``."""

    @property
    def arun(self) -> Callable[..., Awaitable[Answer]]: ...


@dataclass(frozen=True, slots=True)
class FinishedCall:
    """A call that has been run.

    Attributes:
        call: the call.
        result: what the tool returned.
        error: the exception that it raised instead, or a ``TypeError`` if its result has no JSON; or ``None``.
    """

    call: ToolCall
    result: Any
    error: Exception | None

    @property
    def message(self) -> dict[str, Any]:
        """The result as a message of a tool: texts as they are, other values as JSON, errors as ``Error: ...``.

        Raises:
            TypeError: the result has no JSON.
            MissingPackage: the result is not a text, and Pydantic is not installed.
        """
        if self.error is not None:
            content = f"Error: {type(self.error).__name__}: {self.error}"
        else:
            content = _content(self.result, self.call.name)
        return {"role": "tool", "tool_call_id": self.call.id, "name": self.call.name, "content": content}


@dataclass(frozen=True, slots=True)
class Conversation(Generic[T_co]):
    """A conversation that ended with an answer.

    Attributes:
        output: the value of the answer.
        messages: all messages in the form of OpenAI's chat completions: the prompt's, the model's and the tools'.
        calls: all calls, in the order in which they were run.
        rounds: how often the model was asked.
        finish_reason: of the answer: ``"length"`` if it was whole where the budget ran out, but could have gone on.
    """

    output: T_co
    messages: list[dict[str, Any]]
    calls: list[FinishedCall]
    rounds: int
    finish_reason: str = "stop"


class ToolLimitExceeded(GrammarspecError, RuntimeError):
    """The model still called tools in the last round.

    Attributes:
        messages: the conversation so far, with the results of all calls; it can be continued.
        max_rounds: how often the model was asked.
    """

    code = "tool-limit"

    def __init__(self, messages: list[dict[str, Any]], max_rounds: int) -> None:
        self.messages, self.max_rounds = messages, max_rounds
        hint = 'raise max_rounds, or have it answer in the last round: on_limit="answer"'
        super().__init__(f"no answer after {max_rounds} rounds of calls", hint=hint)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.messages, self.max_rounds), vars(self)


@overload
def run_tools(
    model: ToolModel, prompt: Prompt, tools: Sequence[ToolLike], *, type: Grammar[T], **options: Unpack[LoopOptions]
) -> Conversation[T]: ...
@overload
def run_tools(
    model: ToolModel, prompt: Prompt, tools: Sequence[ToolLike], *, type: TypeForm[T], **options: Unpack[LoopOptions]
) -> Conversation[T]: ...
@overload
def run_tools(
    model: ToolModel, prompt: Prompt, tools: Sequence[ToolLike], **options: Unpack[LoopOptions]
) -> Conversation[str]: ...
def run_tools(
    model: ToolModel, prompt: Prompt, tools: Sequence[ToolLike], *, type: Any = str, **options: Unpack[LoopOptions]
) -> Conversation[Any]:
    """Ask a model that may call tools, run its calls and tell it their results, until it answers.

    Args:
        model: a :class:`grammarspec.Model`, or an object with the same ``run``.
        prompt: a text of the user, or the messages so far.
        tools: as :func:`grammarspec.tools.sources.as_tool` takes them; each must have a function.
        type: the type or grammar of the answer; free text if not given.
        options: see :class:`LoopOptions`.

    Raises:
        ToolLimitExceeded: the model still called tools in the last round.
        TypeError: a tool has no function, or is ``async`` (:func:`arun_tools` runs these).
        ValueError: an option cannot have such a value.
        GrammarspecError and others: as :meth:`grammarspec.Model.run`; with ``on_error="raise"``, what a tool raises.
    """
    state = _LoopState(prompt, tools, **options)
    for one in state.tools.values():
        if one.is_async:
            raise TypeError(f"the tool {one.name} is async\n  hint: await gs.arun_tools(...)")
    while not state.add_answer(model.run(state.messages, type, **state.options())):
        for call in state.pending:
            state.on_call(call)
            state.add_call(_run(state.tools[call.name], call))
    return state.conversation()


@overload
async def arun_tools(
    model: AsyncToolModel,
    prompt: Prompt,
    tools: Sequence[ToolLike],
    *,
    type: Grammar[T],
    **options: Unpack[LoopOptions],
) -> Conversation[T]: ...
@overload
async def arun_tools(
    model: AsyncToolModel,
    prompt: Prompt,
    tools: Sequence[ToolLike],
    *,
    type: TypeForm[T],
    **options: Unpack[LoopOptions],
) -> Conversation[T]: ...
@overload
async def arun_tools(
    model: AsyncToolModel, prompt: Prompt, tools: Sequence[ToolLike], **options: Unpack[LoopOptions]
) -> Conversation[str]: ...
async def arun_tools(
    model: AsyncToolModel, prompt: Prompt, tools: Sequence[ToolLike], *, type: Any = str, **options: Unpack[LoopOptions]
) -> Conversation[Any]:
    """:func:`run_tools` for ``async`` programs: with ``model.arun``, and the calls of a round run at the same time.

    Functions that are not ``async`` run in threads. With ``on_error="raise"``, the first error is raised after all
    calls of its round have ended.

    Args:
        model: a :class:`grammarspec.Model`, or an object with the same ``arun``.
        prompt, tools, type, options: as for :func:`run_tools`.

    Raises:
        ToolLimitExceeded, TypeError, ValueError, GrammarspecError and others: as :func:`run_tools`.
    """
    state = _LoopState(prompt, tools, **options)
    while not state.add_answer(await model.arun(state.messages, type, **state.options())):
        for call in state.pending:
            state.on_call(call)
        finished = await asyncio.gather(*[_arun(state.tools[call.name], call) for call in state.pending])
        for one in finished:
            state.add_call(one)
    return state.conversation()


class _LoopState:
    """A conversation in progress: what the sync and the async loop share."""

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
        refuse_unknown(options, LoopOptions.__optional_keys__)
        if max_rounds < 1:
            raise ValueError(f"max_rounds must be at least 1, and is {max_rounds}")
        if on_limit not in ("raise", "answer"):
            hint = f"\n  hint: that of a sampling is given so: sampling=gs.Sampling(on_limit={on_limit!r})"
            sampling = hint if on_limit in ("cut", "close") else ""
            raise ValueError(f"on_limit must be 'raise' or 'answer', not {on_limit!r}{sampling}")
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
        self._finish_reason = "stop"
        self._rounds = 0

    def options(self) -> dict[str, Any]:
        """The options of the next round.

        Raises:
            ToolLimitExceeded: there were ``max_rounds`` rounds.
        """
        if self._rounds == self._max_rounds:
            raise ToolLimitExceeded(self.messages, self._max_rounds)
        options = {**self._options, "tools": list(self.tools.values())}
        if self._rounds > 0 and "tool_choice" in options:
            # a forced call in every round would leave no round for the answer
            options["tool_choice"] = unforced(options["tool_choice"])
        self._rounds += 1
        if self._rounds == self._max_rounds and self._on_limit == "answer":
            options["tool_choice"] = "none"
        return options

    def add_answer(self, answer: Answer) -> bool:
        """Add a model's answer; returns whether it is the last one."""
        self.messages.append(answer.message)
        self.pending = answer.tool_calls
        self._output = answer.output
        self._finish_reason = getattr(answer, "finish_reason", "stop")  # other models need not know of budgets
        return not self.pending

    def add_call(self, finished: FinishedCall) -> None:
        """Add the result of a call."""
        if finished.error is not None and self._on_error == "raise":
            raise finished.error
        self.calls.append(finished)
        self.messages.append(finished.message)

    def conversation(self) -> Conversation[Any]:
        """The finished conversation."""
        return Conversation(self._output, self.messages, self.calls, self._rounds, self._finish_reason)


def _run(tool: Tool[..., Any], call: ToolCall) -> FinishedCall:
    """Run a call."""
    try:
        result = tool.call(call)
    except Exception as error:
        return FinishedCall(call, None, error)
    if iscoroutine(result):
        result.close()
        raise TypeError(f"the tool {tool.name} gave a coroutine\n  hint: await gs.arun_tools(...)")
    return _finished(call, result)


async def _arun(tool: Tool[..., Any], call: ToolCall) -> FinishedCall:
    """Run a call: an async function as such, another in a thread."""
    try:
        result = tool.call(call) if tool.is_async else await asyncio.to_thread(tool.call, call)
        result = await result if isawaitable(result) else result
    except Exception as error:
        return FinishedCall(call, None, error)
    return _finished(call, result)


def _finished(call: ToolCall, result: Any) -> FinishedCall:
    """A call that gave a result. One that the model cannot be told is an error of the tool."""
    try:
        _content(result, call.name)
    except TypeError as error:
        return FinishedCall(call, result, error)
    return FinishedCall(call, result, None)


def _content(result: Any, tool: str) -> str:
    """What the model is told of a result.

    Raises:
        TypeError: it has no JSON, or is a text that UTF-8 cannot spell.
        MissingPackage: it is not a text, and Pydantic is not installed.
    """
    if not isinstance(result, str):
        return _json(result, tool)
    try:
        result.encode()
    except UnicodeEncodeError as error:
        raise TypeError(f"the result of the tool {tool} has a lone surrogate: {error}") from None
    return result


def _json(result: Any, tool: str) -> str:
    """The JSON of a result, by Pydantic."""
    with needed_by(f"the result of the tool {tool}, which is no text"):
        from pydantic_core import PydanticSerializationError, to_json
    try:
        return to_json(result, inf_nan_mode="strings").decode()
    except (PydanticSerializationError, ValueError, RecursionError) as error:
        raise TypeError(f"the result of the tool {tool} has no JSON: {error}") from None
