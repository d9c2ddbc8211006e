"""One call of a model: prompts go in, results come out, with a retry for each answer that a validator refuses.

A prompt is rendered by the chat template, encoded, and given the constraint of its turn (:meth:`Call.prepare`). Texts
are generated from it, and each is split into reasoning and answer and read (:meth:`Call.answers`). Each answer fails on
its own.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from grammarspec.decoding import Generation, Request, Statistics
from grammarspec.decoding.conditional import Evidence
from grammarspec.errors import GrammarspecError, Truncated, UnsupportedFeature, ValidationFailed
from grammarspec.grammars import marks
from grammarspec.imports import importing
from grammarspec.models.chat import Prompt, encode, messages_of
from grammarspec.models.generator import Generator
from grammarspec.models.instructions import instructions_for, with_instructions
from grammarspec.models.options import CallOptions
from grammarspec.models.reasoning import Section, Splitter, prepare, split
from grammarspec.models.results import Result, Usage
from grammarspec.models.turns import Turn, VisibleText
from grammarspec.vocabulary import Vocabulary

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

    from grammarspec.decoding.lookahead import RewardLike

__all__ = ["Call", "PreparedPrompt"]


@dataclass(frozen=True, slots=True)
class PreparedPrompt:
    """A prompt that can be generated from.

    Attributes:
        prompt: the prompt; in a retry, followed by the refused answers and what was wrong with them.
        section: the reasoning before the answer, if any.
        request: the prompt's tokens, the constraint of the answer, and the sampling options.
        reward: what judges its lookaheads; ``None`` without lookaheads.
    """

    prompt: Prompt
    section: Section | None
    request: Request
    reward: RewardLike | None = None


@dataclass(slots=True)
class _Attempts:
    """The attempts at one answer.

    Attributes:
        index: the number of the answer among those of the call.
        prepared: the prompt of the current attempt.
        statistics, reasoning_tokens, count: what the attempts so far have cost, and how many there were.
        answer: the text of the last attempt without its reasoning, with special tokens marked.
    """

    index: int
    prepared: PreparedPrompt
    statistics: Statistics = field(default_factory=Statistics)
    reasoning_tokens: int = 0
    count: int = 0
    answer: bytes = b""


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

    def prepare(self, prompt: Prompt, n: int = 1, reward: RewardLike | None = None) -> PreparedPrompt:
        """Make a prompt ready to be generated from. What cannot be generated is refused here.

        Args:
            prompt: the prompt.
            n: how many answers it is to have.
            reward: what judges its lookaheads, if each prompt has another; that of the options if not given.

        Raises:
            GrammarError, PromptError, TypeError, ValueError: as :meth:`grammarspec.Model.batch`.
        """
        tokens, section = self._rendered(prompt)
        if self.options.lookahead is not None:
            reward = self._rewards(1)[0] if reward is None else reward
            if section is not None:
                hint = "reasoning=False, if the model can do without"
                raise UnsupportedFeature(
                    "lookaheads judge answers, and this model reasons before it answers", hint=hint
                )
        matcher = self.generator.constraint(self.turn.grammar, section, self.turn.gap).matcher()
        request = Request(prompt=tokens, matcher=matcher, sampling=self.options.sampling, n=n)
        self.generator.check(request)
        return PreparedPrompt(prompt, section, request, reward)

    def answer(self, prepared: PreparedPrompt, stop: threading.Event, on_text: Callable[[bytes], None]) -> Result[Any]:
        """Generate the answer of a prepared prompt, and read it.

        Args:
            prepared: the prompt; it can be used once.
            stop: generation stops when it is set.
            on_text: called with the next bytes of the text.

        Raises:
            Stopped: ``stop`` was set.
            Truncated, ValidationFailed and others: as :meth:`grammarspec.Model.batch`.
        """
        [(text, _)] = self._generate([prepared], stop, on_text)
        return self.result(prepared, text)

    def _generate(
        self,
        prepared: Sequence[PreparedPrompt],
        stop: threading.Event | None = None,
        on_text: Callable[[bytes], None] | None = None,
    ) -> list[tuple[Generation, Evidence | None]]:
        """The texts of prompts, as the options ask for them; with what particles say of a text, if it has any."""
        requests = [each.request for each in prepared]
        if self.options.law == "conditional":
            found = self.generator.conditional(requests, self.options.particles, stop)
            return [(one.text, one.evidence) for one in found]
        rewards = [each.reward for each in prepared if each.reward is not None]
        texts = self.generator.generate(requests, stop, on_text, lookahead=self.options.lookahead, rewards=rewards)
        return [(text, None) for text in texts]

    def _rewards(self, count: int) -> Sequence[RewardLike | None]:
        """The rewards of so many prompts.

        Raises:
            ValueError: another number of them is given.
        """
        with importing:
            from grammarspec.decoding.lookahead import Reward

        given: Any = self.options.reward
        if not isinstance(given, Sequence) or isinstance(given, Reward):
            return [given] * count
        if len(given) != count:
            raise ValueError(f"{len(given)} rewards are given for {count} prompts: give one, or one for each")
        return given

    def result(self, prepared: PreparedPrompt, generation: Generation) -> Result[Any]:
        """Read a text that was generated from a prepared prompt.

        Args:
            prepared: the prompt.
            generation: one of its texts.

        Raises:
            Truncated, ValidationFailed and others: as :meth:`grammarspec.Model.batch`.
        """
        return self._result(_Attempts(0, prepared), generation)

    def shown(self, prepared: PreparedPrompt, generation: Generation) -> tuple[str | None, str]:
        """The reasoning, if any, and the text for the user; no value is read, so that the text need not be whole.

        Args:
            prepared: the prompt.
            generation: one of its texts.
        """
        ended = generation.finish_reason != "length"
        reasoning, text = split(prepared.section, self.turn.gap, generation.text, ended=ended)
        return reasoning, self.turn.visible(text or "")

    def answers(
        self, prompts: Sequence[Prompt], n: int = 1, stop: threading.Event | None = None, *, collect: bool = False
    ) -> list[Any]:
        """Generate the answers of prompts, and read them; each answer is retried on its own.

        Args:
            prompts: the prompts.
            n: how many answers each is to have.
            stop: generation stops when it is set.
            collect: an answer that fails does not end the others: its error stands in its place.

        Returns:
            the results of all answers, in order; with ``collect``, among errors.

        Raises:
            Stopped: ``stop`` was set.
            Truncated, ValidationFailed and others: as :meth:`grammarspec.Model.batch`; of several answers, with the
                number of the one that failed.
        """
        several = collect or len(prompts) * n > 1
        found: list[Result[Any] | Exception | None] = [None] * (len(prompts) * n)

        def fail(index: int, error: Exception) -> None:
            if several:
                _number(error, index)
            if not collect:
                raise error
            found[index] = error

        waiting: list[_Attempts] = []
        requests: list[PreparedPrompt] = []
        rewards = self._rewards(len(prompts)) if self.options.lookahead is not None else [None] * len(prompts)
        for number, (prompt, reward) in enumerate(zip(prompts, rewards, strict=True)):
            try:
                prepared = self.prepare(prompt, n, reward)
            except Exception as error:
                if n > 1:  # all the answers have this prompt
                    raise
                fail(number, error)
                continue
            requests.append(prepared)
            waiting += [_Attempts(index, prepared) for index in range(number * n, (number + 1) * n)]
        while waiting:
            for one, (text, evidence) in zip(waiting, self._generate(requests, stop), strict=True):
                try:
                    found[one.index] = self._attempt(one, text, evidence)
                except Exception as error:
                    fail(one.index, error)
            waiting = [one for one in waiting if found[one.index] is None]
            requests = [one.prepared for one in waiting]
        return found

    def _attempt(
        self, attempts: _Attempts, generation: Generation, evidence: Evidence | None = None
    ) -> Result[Any] | None:
        """The result of an attempt; ``None`` if a validator refuses it and the model is to be asked again.

        Raises:
            ValidationFailed: it is refused, and there were as many attempts as there may be.
            Truncated and others: as :meth:`_result`; or the prompt of the next attempt cannot be generated from.
        """
        try:
            return self._result(attempts, generation, evidence)
        except ValidationFailed as error:
            if attempts.count > self.options.retries:
                raise
            more = self.turn.retry_messages(attempts.answer, error)
            messages = [*messages_of(attempts.prepared.prompt), *more]
            attempts.prepared = self.prepare(messages, reward=attempts.prepared.reward)
            return None

    def visible_text(self, prepared: PreparedPrompt) -> VisibleText:
        """A filter for the pieces of a growing text, which leaves out reasoning and calls of tools."""
        return VisibleText(self.turn, Splitter(prepared.section, self.turn.gap).feed)

    def _rendered(self, prompt: Prompt) -> tuple[list[int], Section | None]:
        """The tokens of a prompt, and the reasoning that comes before its answer."""
        options, has_template = self.options, bool(self.tokenizer.chat_template)
        told = instructions_for(self.type, options.instructions)
        if has_template:
            prompt = with_instructions(self.turn.messages(prompt, options.system), told)
        elif told and isinstance(prompt, str):
            prompt = f"{prompt}\n\n{told}"
        text, section = prepare(
            self.tokenizer,
            self.vocabulary,
            prompt,
            system=None if has_template else options.system,
            variables=self.turn.template_variables(options.template),
            reasoning=options.reasoning,
            max_chars=options.max_reasoning_chars,
            apart=not self.turn.has_reasoning,
        )
        self.turn.check_prompt(text)
        return encode(self.tokenizer, text), section

    def _result(self, attempts: _Attempts, generation: Generation, evidence: Evidence | None = None) -> Result[Any]:
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
            evidence=evidence,
            reward=generation.reward,
            type=self.type,
        )


def _number(error: Exception, index: int) -> None:
    """Have an error say which of several answers it is about."""
    if isinstance(error, GrammarspecError):
        error.index = index
    else:
        error.add_note(f"answer {index} (counted from 0)")
