"""Answers: the value, the text that it was read from, and what is known about how it came to be."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from grammarspec.errors import GrammarspecError
from grammarspec.positions import pointer_token

if TYPE_CHECKING:
    from grammarspec.decoding import Logprob, Statistics
    from grammarspec.frontends.json_schema.report.verdicts import Report
    from grammarspec.tools.tool import ToolCall

__all__ = ["Invalid", "Result", "Timing", "Usage", "ValidationFailed", "assistant_message", "rejections"]

T_co = TypeVar("T_co", covariant=True)


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens, of all attempts at an answer together.

    Attributes:
        prompt_tokens: of the prompts.
        completion_tokens: generated, reasoning and the token that ends the text included.
        reasoning_tokens: those of them that are reasoning, its markers included.
    """

    prompt_tokens: int
    completion_tokens: int
    reasoning_tokens: int = 0

    @property
    def total_tokens(self) -> int:
        """Of prompts and texts."""
        return self.prompt_tokens + self.completion_tokens


@dataclass(frozen=True, slots=True)
class Timing:
    """Seconds.

    Attributes:
        first_token: until the first token was known; ``None`` for an answer that took several attempts.
        total: of the whole generation, of all attempts together.
        phases: of the whole batch by what was done: ``draft``, ``mask``, ``target``, ``verify``, ``commit``.
    """

    first_token: float | None
    total: float
    phases: Mapping[str, float]


class Invalid(NamedTuple):
    """What a validator said.

    Attributes:
        where: a JSON pointer into the answer (``"#/age"``); ``"#"`` for the whole.
        message: what is wrong.
    """

    where: str
    message: str


class ValidationFailed(GrammarspecError, ValueError):
    """A validator of the answer's type refused the value, in every attempt.

    Attributes:
        text: the last answer.
        errors: what the validators said about it.
        attempts: how many answers there were.
    """

    code = "validation-failed"

    def __init__(self, text: str, errors: tuple[Invalid, ...], attempts: int = 1) -> None:
        self.text, self.errors, self.attempts = text, errors, attempts
        said = "\n".join(f"  {message}\n    at {where}" for where, message in errors)
        hint = "" if attempts > 1 else "retries=2 gives the model two more attempts, and tells it what is wrong"
        super().__init__(
            f"the answer is not valid (after {attempts} attempt{'s' * (attempts > 1)}):\n{said}", hint=hint
        )

    def __reduce__(self) -> tuple[type[ValidationFailed], tuple[str, tuple[Invalid, ...], int]]:
        return type(self), (self.text, self.errors, self.attempts)

    @property
    def feedback(self) -> str:
        """What a model is told before it answers again: each error on a line, with its place."""
        said = "\n".join(f"- {message}" if where == "#" else f"- {where}: {message}" for where, message in self.errors)
        return f"Your answer is not valid:\n{said}\nAnswer again with this corrected."


def rejections(error: Any) -> tuple[Invalid, ...] | None:
    """What validators said, of Pydantic, msgspec or plain Python; ``None`` for an error that is none of theirs."""
    pydantic, msgspec = sys.modules.get("pydantic_core"), sys.modules.get("msgspec")
    if pydantic is not None and isinstance(error, pydantic.ValidationError):
        return tuple(Invalid("/".join(("#", *map(pointer_token, one["loc"]))), one["msg"]) for one in error.errors())
    if msgspec is not None and isinstance(error, msgspec.ValidationError):
        return (Invalid("#", str(error)),)
    if isinstance(error, ValueError | AssertionError):
        return (Invalid("#", str(error)),)
    return None


def assistant_message(text: str, calls: Sequence[ToolCall], reasoning: str | None) -> dict[str, Any]:
    """What an assistant says, as OpenAI has it."""
    said: dict[str, Any] = {"role": "assistant", "content": text}
    if calls:
        said = {**said, "content": text or None, "tool_calls": [call.to_openai() for call in calls]}
    return said if reasoning is None else {**said, "reasoning_content": reasoning}


@dataclass(frozen=True, slots=True, kw_only=True)
class Result(Generic[T_co]):
    """An answer.

    Attributes:
        output: the value; ``None`` where tools were called.
        text: the text that it was read from, without the reasoning; where tools were called, the text before the calls.
        reasoning: what the model thought before, if it did.
        captures: the values of the grammar's named parts (see :meth:`grammarspec.Grammar.named`).
        tool_calls: the calls of tools that the model wrote, in order.
        finish_reason: ``"stop"``, or ``"closed"`` where the text was steered to an ending in time.
        usage: tokens, of all attempts.
        attempts: answers that it took; more than one with ``retries``.
        statistics: what it cost, of all attempts; passes and times are those of the whole batch.
        logprobs: one for each token, if asked for.
        type: what was asked for: a type or a grammar.
    """

    output: T_co
    text: str
    reasoning: str | None = None
    captures: dict[str, Any]
    tool_calls: tuple[ToolCall, ...] = ()
    finish_reason: str
    usage: Usage
    attempts: int = 1
    statistics: Statistics = field(repr=False)
    logprobs: list[Logprob] | None = field(default=None, repr=False)
    type: Any = field(repr=False)

    @property
    def timing(self) -> Timing:
        """How long it took."""
        cost = self.statistics
        first = cost.prefill_seconds if self.attempts == 1 else None
        return Timing(first, cost.prefill_seconds + cost.decode_seconds, dict(cost.phase_seconds))

    @property
    def message(self) -> dict[str, Any]:
        """The answer as the assistant's message of a chat, as OpenAI has it: to be put behind the others."""
        return assistant_message(self.text, self.tool_calls, self.reasoning)

    @property
    def report(self) -> Report | None:
        """What became of the type's constraints; ``None`` for grammars that no JSON Schema is behind.

        All that such a grammar says is enforced. Validators of one's own, which only see the whole value, are notes.
        """
        from grammarspec.frontends.types.report import check_target

        return check_target(self.type)
