"""Results: the value of an answer, the text that it was read from, and what generating it cost."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from grammarspec.errors import Invalid, ValidationFailed
from grammarspec.imports import importing
from grammarspec.positions import pointer_token

if TYPE_CHECKING:
    from grammarspec.decoding import Logprob, Statistics
    from grammarspec.decoding.conditional import Evidence
    from grammarspec.frontends.json_schema.report.verdicts import Report
    from grammarspec.tools.tool import ToolCall

__all__ = ["Result", "Timing", "Usage", "assistant_message", "rejections"]

T_co = TypeVar("T_co", covariant=True)


@dataclass(frozen=True, slots=True)
class Usage:
    """Numbers of tokens, summed over all attempts at an answer.

    Attributes:
        prompt_tokens: tokens of the prompts.
        completion_tokens: generated tokens, reasoning and end-of-text tokens included.
        reasoning_tokens: those of them that are reasoning, its markers included.
    """

    prompt_tokens: int
    completion_tokens: int
    reasoning_tokens: int = 0

    @property
    def total_tokens(self) -> int:
        """Tokens of prompts and generated texts."""
        return self.prompt_tokens + self.completion_tokens


@dataclass(frozen=True, slots=True)
class Timing:
    """Times in seconds.

    Attributes:
        first_token: until the first tokens were committed; ``None`` for an answer that took several attempts.
        total: of the whole generation, of all attempts together.
        phases: of the whole batch by phase: ``draft``, ``mask``, ``target``, ``verify``, ``commit``.
    """

    first_token: float | None
    total: float
    phases: Mapping[str, float]


def rejections(error: Any) -> tuple[Invalid, ...] | None:
    """The errors of validators in an exception.

    Args:
        error: an exception that reading an answer raised.

    Returns:
        the errors, of Pydantic, msgspec or plain Python (``ValueError``, ``AssertionError``); ``None`` for an exception
        of another kind, which is not the answer's fault.
    """
    pydantic, msgspec = sys.modules.get("pydantic_core"), sys.modules.get("msgspec")
    if pydantic is not None and isinstance(error, pydantic.ValidationError):
        return tuple(Invalid("/".join(("#", *map(pointer_token, one["loc"]))), one["msg"]) for one in error.errors())
    if msgspec is not None and isinstance(error, msgspec.ValidationError):
        return (Invalid("#", str(error)),)
    if isinstance(error, ValidationFailed):  # of a grammar that reads texts by code of the user's
        return error.errors
    if isinstance(error, ValueError | AssertionError):
        return (Invalid("#", str(error)),)
    return None


def assistant_message(text: str, calls: Sequence[ToolCall], reasoning: str | None) -> dict[str, Any]:
    """A message of an assistant in the form of OpenAI's chat completions.

    Args:
        text: its content.
        calls: its calls of tools.
        reasoning: its ``reasoning_content``; ``None`` leaves that out.
    """
    message: dict[str, Any] = {"role": "assistant", "content": text}
    if calls:
        message = {**message, "content": text or None, "tool_calls": [call.to_openai() for call in calls]}
    return message if reasoning is None else {**message, "reasoning_content": reasoning}


@dataclass(frozen=True, slots=True, kw_only=True)
class Result(Generic[T_co]):
    """An answer.

    Attributes:
        output: the value; ``None`` if tools were called.
        text: the text that it was read from, without the reasoning; if tools were called, the text before the calls.
        reasoning: the reasoning before the answer; ``None`` if there was none.
        captures: the values of the grammar's named parts (see :meth:`grammarspec.Grammar.named`).
        tool_calls: the calls of tools that the model wrote, in order.
        finish_reason: ``"stop"``; or ``"closed"`` if the text was steered to an ending before the budget ran out; or
            ``"length"`` if the budget ran out where the text was whole, but could have gone on, as free text can.
        usage: numbers of tokens, of all attempts.
        attempts: the number of answers that it took; more than one only with ``retries``.
        statistics: what it cost, of all attempts; passes and times are those of the whole batch.
        logprobs: one for each token, if the sampling asks for them.
        evidence: with ``law="conditional"``, the effective sample size of the last attempt's particles, and their
            estimate of the probability that the model writes a valid text without masks; ``None`` otherwise.
        reward: that of the text, if it was generated with lookaheads.
        type: the type or grammar that the caller gave.
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
    evidence: Evidence | None = field(default=None, repr=False)
    reward: float | None = None
    type: Any = field(repr=False)

    @property
    def timing(self) -> Timing:
        """The times of the generation, in seconds."""
        cost = self.statistics
        first = cost.prefill_seconds if self.attempts == 1 else None
        return Timing(first, cost.prefill_seconds + cost.decode_seconds, dict(cost.phase_seconds))

    @property
    def message(self) -> dict[str, Any]:
        """The answer as an assistant's message in the form of OpenAI's chat completions, to continue the chat with."""
        return assistant_message(self.text, self.tool_calls, self.reasoning)

    @property
    def report(self) -> Report | None:
        """How each constraint of the type is enforced; ``None`` for a grammar that does not come from a JSON Schema.

        Such a grammar is enforced as a whole. Validators of the user's own, which see the whole value only, are notes.

        Raises:
            LimitExceeded: the schema is too large for a report.
        """
        with importing:
            from grammarspec.frontends.types.report import check_target

        return check_target(self.type)
