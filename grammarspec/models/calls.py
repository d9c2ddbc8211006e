"""One call of a model: prompts go in, results come out, with a retry for each answer that a validator refuses.

A prompt is rendered by the chat template, encoded, and given the constraint of its turn (:meth:`Call.prepare`). Texts
are generated from it, and each is split into reasoning and answer and read (:meth:`Call.answers`).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from grammarspec.decoding import Generation, Request, Statistics
from grammarspec.errors import Truncated
from grammarspec.grammars import marks
from grammarspec.models.chat import Prompt, encode, messages_of
from grammarspec.models.generator import Generator
from grammarspec.models.options import CallOptions
from grammarspec.models.reasoning import Section, Splitter, prepare, split
from grammarspec.models.results import Result, Usage, ValidationFailed
from grammarspec.models.turns import Turn, VisibleText
from grammarspec.vocabulary import Vocabulary

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

__all__ = ["Call", "PreparedPrompt"]


@dataclass(frozen=True, slots=True)
class PreparedPrompt:
    """A prompt that can be generated from.

    Attributes:
        prompt: the prompt; in a retry, followed by the refused answers and what was wrong with them.
        section: the reasoning before the answer, if any.
        request: the prompt's tokens, the constraint of the answer, and the sampling options.
    """

    prompt: Prompt
    section: Section | None
    request: Request


@dataclass(slots=True)
class _Attempts:
    """The attempts at one answer.

    Attributes:
        prepared: the prompt of the current attempt.
        statistics, reasoning_tokens, count: what the attempts so far have cost, and how many there were.
        answer: the text of the last attempt without its reasoning, with special tokens marked.
        result: the result, once there is one.
    """

    prepared: PreparedPrompt
    statistics: Statistics = field(default_factory=Statistics)
    reasoning_tokens: int = 0
    count: int = 0
    answer: bytes = b""
    result: Result[Any] | None = None


@dataclass(frozen=True, slots=True)
class Call:
    """One call of a model.

    Attributes:
        generator, tokenizer, vocabulary: the model's.
        type: the type or grammar of the answer, as the caller gave it.
        turn: makes the messages of the prompt, the grammar of what the model may write, and reads what it has written.
        options: the options of the call.

    Raises:
        ValueError: ``retries`` is above 0, but the tokenizer has no chat template to send errors to the model.
    """

    generator: Generator
    tokenizer: PreTrainedTokenizerBase
    vocabulary: Vocabulary
    type: Any
    turn: Turn
    options: CallOptions

    def __post_init__(self) -> None:
        if self.options.retries and not self.tokenizer.chat_template:
            raise ValueError(f"retries={self.options.retries} needs a tokenizer with a chat template")

    def prepare(self, prompts: Sequence[Prompt], n: int = 1) -> list[PreparedPrompt]:
        """Make prompts ready to be generated from. What cannot be generated is refused here.

        Args:
            prompts: the prompts.
            n: how many answers each is to have.

        Raises:
            GrammarError, PromptError, TypeError, ValueError: as :meth:`grammarspec.Model.batch`.
        """
        rendered = [(prompt, *self._rendered(prompt)) for prompt in prompts]
        return [
            PreparedPrompt(
                prompt,
                section,
                Request(
                    prompt=tokens,
                    matcher=self.generator.constraint(self.turn.grammar, section, self.turn.gap).matcher(),
                    sampling=self.options.sampling,
                    n=n,
                ),
            )
            for prompt, tokens, section in rendered
        ]

    def answers(
        self,
        prepared: Sequence[PreparedPrompt],
        stop: threading.Event | None = None,
        on_text: Callable[[bytes], None] | None = None,
    ) -> list[Result[Any]]:
        """Generate the answers of prepared prompts, and read them; each answer is retried on its own.

        Args:
            prepared: the prompts; each can be used once.
            stop: generation stops when it is set.
            on_text: called with the next bytes of the text, for a single answer.

        Raises:
            Stopped: ``stop`` was set.
            Truncated, ValidationFailed and others: as :meth:`grammarspec.Model.batch`.
        """
        answers = [_Attempts(one) for one in prepared for _ in range(one.request.n)]
        texts = self.generator.generate([one.request for one in prepared], stop, on_text)
        waiting = answers
        while waiting:
            refused = []
            for one, text in zip(waiting, texts, strict=True):
                try:
                    one.result = self._result(one, text)
                except ValidationFailed as error:
                    if one.count > self.options.retries:
                        raise
                    more = self.turn.retry_messages(one.answer, error)
                    [one.prepared] = self.prepare([[*messages_of(one.prepared.prompt), *more]])
                    refused.append(one)
            waiting = refused
            texts = self.generator.generate([one.prepared.request for one in waiting], stop)
        return [one.result for one in answers if one.result is not None]

    def visible_text(self, prepared: PreparedPrompt) -> VisibleText:
        """A filter for the pieces of a growing text, which leaves out reasoning and calls of tools."""
        return VisibleText(self.turn, Splitter(prepared.section, self.turn.gap).feed)

    def _rendered(self, prompt: Prompt) -> tuple[list[int], Section | None]:
        """The tokens of a prompt, and the reasoning that comes before its answer."""
        options, has_template = self.options, bool(self.tokenizer.chat_template)
        text, section = prepare(
            self.tokenizer,
            self.vocabulary,
            self.turn.messages(prompt, options.system) if has_template else prompt,
            system=None if has_template else options.system,
            variables=self.turn.template_variables(options.template),
            reasoning=options.reasoning,
            max_chars=options.max_reasoning_chars,
            apart=not self.turn.has_reasoning,
        )
        self.turn.check_prompt(text)
        return encode(self.tokenizer, text), section

    def _result(self, attempts: _Attempts, generation: Generation) -> Result[Any]:
        """The result of an attempt.

        Raises:
            ValidationFailed: a validator refuses the value.
            Truncated: the text was cut short.
        """
        attempts.count += 1
        attempts.statistics.add(generation.statistics)
        if generation.error is not None:
            raise generation.error
        section, limited = attempts.prepared.section, generation.finish_reason == "length"
        reasoning, text = split(section, self.turn.gap, generation.text, ended=not limited)
        if text is None or (limited and not generation.whole):
            raise Truncated(generation.text)
        if section is not None and reasoning is not None:
            attempts.reasoning_tokens += section.count(generation.tokens, self.vocabulary)
        attempts.answer = marks.ending(generation.marked, text)
        try:
            found = self.turn.read(attempts.answer)
        except ValidationFailed as error:
            raise ValidationFailed(error.text, error.errors, attempts.count) from error.__cause__
        cost = attempts.statistics
        return Result(
            output=found.output,
            text=found.text,
            reasoning=found.reasoning or reasoning,
            captures=found.captures,
            tool_calls=found.calls,
            finish_reason=generation.finish_reason,
            usage=Usage(cost.prompt_tokens, cost.tokens, attempts.reasoning_tokens),
            attempts=attempts.count,
            statistics=cost,
            logprobs=generation.logprobs,
            type=self.type,
        )
