"""Models that answer with values: a prompt and a type in, a value of the type out."""

from __future__ import annotations

import asyncio
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, Unpack, overload

from grammarspec._compiler import Grammar as CompiledGrammar
from grammarspec.constraint import Constraint, compile
from grammarspec.decoding import Generation, Request, Sampling, Statistics, generate_batch
from grammarspec.decoding.proposers import DraftModel, Forced, Lookup, Proposer
from grammarspec.errors import Truncated
from grammarspec.grammars import marks
from grammarspec.grammars.expressions import Grammar
from grammarspec.models.chat import Prompt, chat_template, encode, messages_of
from grammarspec.models.loading import load_draft, load_model, vocabulary_of
from grammarspec.models.options import Options, refuse_unknown
from grammarspec.models.reasoning import Section, Splitter, prepare, split
from grammarspec.models.results import Result, Usage, ValidationFailed
from grammarspec.models.streaming import Stopped, Stream
from grammarspec.models.turns import Shown, Turn, choice_of, tool_turn
from grammarspec.tools.tool import as_tools

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase
    from typing_extensions import TypeForm

    from grammarspec.tools.tool import ToolLike

__all__ = ["Model", "Options", "Prompt"]

T = TypeVar("T")


_KEPT = 64
"""Compiled constraints, and sets of tools, that a model keeps; those that were used last."""


@dataclass(slots=True)
class _Answer:
    """An answer in the making.

    Attributes:
        prompt: what it answers, with the attempts so far and what was wrong with them.
        tokens, section: the same as tokens, and the reasoning before the answer.
        statistics, reasoning_tokens, attempts: what the attempts have cost.
        said: the last of them, behind its reasoning, special tokens marked.
        result: there once a value is.
    """

    prompt: Prompt
    tokens: list[int]
    section: Section | None
    statistics: Statistics = field(default_factory=Statistics)
    reasoning_tokens: int = 0
    attempts: int = 0
    said: bytes = b""
    result: Result[Any] | None = None


class Model:
    """A causal language model of transformers with its tokenizer, asked for values of types. Thread-safe.

    Calls of different threads take turns; constraints are compiled once for each type or grammar. Where a coroutine
    is cancelled, generation stops.

    Attributes:
        vocabulary: its tokens.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        *,
        draft: PreTrainedModel | Sequence[Proposer] | None = None,
        gamma: int = 8,
    ) -> None:
        """Wrap a model that is loaded already.

        Args:
            draft: a smaller model with the same tokens, which drafts where neither the grammar nor the prompt does; or
                the proposers to use instead of all these (none: no drafts). Drafts change no text's probability.
            gamma: tokens of a draft at most.
        """
        if gamma < 0:
            raise ValueError(f"gamma must be at least 0, not {gamma}")
        if isinstance(draft, str | Path):
            raise TypeError(
                f"draft takes a model that is loaded, not {draft!r}: Model.from_pretrained loads one by name"
            )
        self.model, self.tokenizer, self.gamma = model, tokenizer, gamma
        self.vocabulary = vocabulary_of(model, tokenizer)
        usual: list[Proposer] = [Forced(), Lookup()]
        if draft is None:
            self.proposers: Sequence[Proposer] = usual
        else:
            self.proposers = list(draft) if isinstance(draft, Sequence) else [*usual, DraftModel(draft)]
        self._constraints: OrderedDict[tuple[CompiledGrammar, Section | None], Constraint] = OrderedDict()
        self._tool_turn = lru_cache(maxsize=_KEPT)(partial(tool_turn, tokenizer, self.vocabulary))
        self._turn = threading.Lock()

    @classmethod
    def from_pretrained(
        cls, path_or_name: str | Path, *, draft: str | Path | None = None, gamma: int = 8, **options: Any
    ) -> Model:
        """Load a model through transformers: a directory, a ``.gguf`` file, or a name on the Hugging Face hub.

        Args:
            draft: the same of a smaller model with the same tokens.
            options: passed on to ``from_pretrained`` of model and tokenizer.

        Raises:
            MissingPackage: torch or transformers is missing.
            OSError: there is no such model.
            DraftMismatch: the draft model has other tokens.
        """
        model, tokenizer = load_model(path_or_name, **options)
        small = None if draft is None else load_draft(draft, vocabulary_of(model, tokenizer), **options)
        return cls(model, tokenizer, draft=small, gamma=gamma)

    # ------------------------------------------------------------------ values
    @overload
    def __call__(self, prompt: Prompt, type: Grammar[T], **options: Unpack[Options]) -> T: ...
    @overload
    def __call__(self, prompt: Prompt, type: TypeForm[T], **options: Unpack[Options]) -> T: ...
    @overload
    def __call__(self, prompt: Prompt, **options: Unpack[Options]) -> str: ...
    def __call__(self, prompt: Prompt, type: Any = str, **options: Unpack[Options]) -> Any:
        """The answer to a prompt, as a value of a type; see :meth:`batch`."""
        return self._answers([prompt], type, options)[0].output

    @overload
    def run(self, prompt: Prompt, type: Grammar[T], **options: Unpack[Options]) -> Result[T]: ...
    @overload
    def run(self, prompt: Prompt, type: TypeForm[T], **options: Unpack[Options]) -> Result[T]: ...
    @overload
    def run(
        self, prompt: Prompt, type: Grammar[T], *, tools: Sequence[ToolLike], **options: Unpack[Options]
    ) -> Result[T | None]: ...
    @overload
    def run(
        self, prompt: Prompt, type: TypeForm[T], *, tools: Sequence[ToolLike], **options: Unpack[Options]
    ) -> Result[T | None]: ...
    @overload
    def run(self, prompt: Prompt, *, tools: Sequence[ToolLike], **options: Unpack[Options]) -> Result[str | None]: ...
    @overload
    def run(self, prompt: Prompt, **options: Unpack[Options]) -> Result[str]: ...
    def run(
        self, prompt: Prompt, type: Any = str, *, tools: Sequence[ToolLike] = (), **options: Unpack[Options]
    ) -> Result[Any]:
        """The answer to a prompt, with all that is known about it; see :meth:`batch`.

        Args:
            type: of the answer; free text if not given.
            tools: that the model may call instead of an answer, as :func:`grammarspec.tools.tool.as_tool` takes them:
                functions, classes, JSON. What it calls is in ``tool_calls`` of the result, whose output is then
                ``None``. Nothing is run: for that there is :func:`grammarspec.run_tools`.

        Raises:
            UnsupportedFeature: a tool's schema cannot be enforced in the model's format of calls.
            ValueError: ``tool_choice`` or ``tool_format`` is none, or there are no tools; two have one name.
            GrammarspecError and others: as :meth:`batch`.
        """
        return self._answers([prompt], type, options, tools=tools)[0]

    @overload
    def batch(self, prompts: Sequence[Prompt], type: Grammar[T], **options: Unpack[Options]) -> list[Result[T]]: ...
    @overload
    def batch(self, prompts: Sequence[Prompt], type: TypeForm[T], **options: Unpack[Options]) -> list[Result[T]]: ...
    def batch(self, prompts: Sequence[Prompt], type: Any, **options: Unpack[Options]) -> list[Result[Any]]:
        """The answers to several prompts, generated together.

        Args:
            prompts: texts of users, or messages of chats, which go through the tokenizer's chat template.
            type: a grammar, or a type as :func:`grammarspec.grammar` takes it.
            options: see :class:`Options`.

        Raises:
            Truncated: a text was cut short; ``Sampling(on_limit="close")`` would have closed it in time.
            ValidationFailed: a validator of the type refuses the value, in each of ``1 + retries`` attempts.
            GrammarError: the type or grammar cannot be enforced.
            UnsupportedFeature: a message holds what is no text; the chat template knows no system message.
            PromptError: a prompt is empty, malformed, too long, or refused by the chat template.
            BudgetTooSmall: no text fits the budget, which ``on_limit="close"`` would keep.
            ValueError: an option has no such value.
        """
        if isinstance(prompts, str):
            raise TypeError("batch() takes several prompts, not a single one: write batch([prompt], ...)")
        return self._answers(prompts, type, options)

    @overload
    def samples(self, prompt: Prompt, type: Grammar[T], n: int, **options: Unpack[Options]) -> list[Result[T]]: ...
    @overload
    def samples(self, prompt: Prompt, type: TypeForm[T], n: int, **options: Unpack[Options]) -> list[Result[T]]: ...
    def samples(self, prompt: Prompt, type: Any, n: int, **options: Unpack[Options]) -> list[Result[Any]]:
        """Several answers to one prompt, generated together; the prompt is read once. See :meth:`batch`.

        Args:
            n: how many; with a seed they differ by their number.

        Raises:
            ValueError: ``n`` is below 1, or above 1 with temperature 0, which chooses the same answer every time.
        """
        return self._answers([prompt], type, options, n=n)

    @overload
    def stream(self, prompt: Prompt, type: Grammar[T], **options: Unpack[Options]) -> Stream[T]: ...
    @overload
    def stream(self, prompt: Prompt, type: TypeForm[T], **options: Unpack[Options]) -> Stream[T]: ...
    @overload
    def stream(
        self, prompt: Prompt, type: Grammar[T], *, tools: Sequence[ToolLike], **options: Unpack[Options]
    ) -> Stream[T | None]: ...
    @overload
    def stream(
        self, prompt: Prompt, type: TypeForm[T], *, tools: Sequence[ToolLike], **options: Unpack[Options]
    ) -> Stream[T | None]: ...
    @overload
    def stream(
        self, prompt: Prompt, *, tools: Sequence[ToolLike], **options: Unpack[Options]
    ) -> Stream[str | None]: ...
    @overload
    def stream(self, prompt: Prompt, **options: Unpack[Options]) -> Stream[str]: ...
    def stream(
        self, prompt: Prompt, type: Any = str, *, tools: Sequence[ToolLike] = (), **options: Unpack[Options]
    ) -> Stream[Any]:
        """The answer's text piece by piece, and then the :class:`Result`; see :meth:`run`.

        Calls of tools are no part of the text; they are in the result.

        Raises:
            ValueError: ``retries`` are asked for: what was said cannot be taken back.
        """
        if options.get("retries"):
            raise ValueError("a stream cannot retry: what it has said cannot be taken back")
        turn = self._turn_of(type, tools, options)
        answer = self._prepared(prompt, turn, options)
        self._requests([answer], turn, options)  # what cannot be generated is refused here
        splitter = Splitter(answer.section, turn.gap)

        def generate(on_text: Callable[[bytes], None], stop: threading.Event) -> Result[Any]:
            return self._finished([answer], turn, type, options, 1, stop, on_text)[0]

        return Stream(generate, Shown(turn, splitter.feed))

    # ------------------------------------------------------------------ awaited
    @overload
    async def arun(self, prompt: Prompt, type: Grammar[T], **options: Unpack[Options]) -> Result[T]: ...
    @overload
    async def arun(self, prompt: Prompt, type: TypeForm[T], **options: Unpack[Options]) -> Result[T]: ...
    @overload
    async def arun(
        self, prompt: Prompt, type: Grammar[T], *, tools: Sequence[ToolLike], **options: Unpack[Options]
    ) -> Result[T | None]: ...
    @overload
    async def arun(
        self, prompt: Prompt, type: TypeForm[T], *, tools: Sequence[ToolLike], **options: Unpack[Options]
    ) -> Result[T | None]: ...
    @overload
    async def arun(
        self, prompt: Prompt, *, tools: Sequence[ToolLike], **options: Unpack[Options]
    ) -> Result[str | None]: ...
    @overload
    async def arun(self, prompt: Prompt, **options: Unpack[Options]) -> Result[str]: ...
    async def arun(
        self, prompt: Prompt, type: Any = str, *, tools: Sequence[ToolLike] = (), **options: Unpack[Options]
    ) -> Result[Any]:
        """:meth:`run`, in a thread of its own."""
        return (await self._awaited([prompt], type, options, tools=tools))[0]

    @overload
    async def abatch(
        self, prompts: Sequence[Prompt], type: Grammar[T], **options: Unpack[Options]
    ) -> list[Result[T]]: ...
    @overload
    async def abatch(
        self, prompts: Sequence[Prompt], type: TypeForm[T], **options: Unpack[Options]
    ) -> list[Result[T]]: ...
    async def abatch(self, prompts: Sequence[Prompt], type: Any, **options: Unpack[Options]) -> list[Result[Any]]:
        """:meth:`batch`, in a thread of its own."""
        return await self._awaited(prompts, type, options)

    @overload
    async def asamples(
        self, prompt: Prompt, type: Grammar[T], n: int, **options: Unpack[Options]
    ) -> list[Result[T]]: ...
    @overload
    async def asamples(
        self, prompt: Prompt, type: TypeForm[T], n: int, **options: Unpack[Options]
    ) -> list[Result[T]]: ...
    async def asamples(self, prompt: Prompt, type: Any, n: int, **options: Unpack[Options]) -> list[Result[Any]]:
        """:meth:`samples`, in a thread of its own."""
        return await self._awaited([prompt], type, options, n)

    astream = stream  # its pieces are iterated over with `for` or `async for`

    # ------------------------------------------------------------------ inside
    async def _awaited(
        self, prompts: Sequence[Prompt], type: Any, options: Options, n: int = 1, tools: Sequence[ToolLike] = ()
    ) -> list[Result[Any]]:
        stop = threading.Event()
        try:
            return await asyncio.to_thread(lambda: self._answers(prompts, type, options, n, stop, tools))
        finally:
            stop.set()  # where this was cancelled, the thread still runs

    def _answers(
        self,
        prompts: Sequence[Prompt],
        type: Any,
        options: Options,
        n: int = 1,
        stop: threading.Event | None = None,
        tools: Sequence[ToolLike] = (),
    ) -> list[Result[Any]]:
        if n < 1:
            raise ValueError(f"n must be at least 1, not {n}")
        if n > 1 and _sampling(options).temperature == 0:
            raise ValueError("at temperature 0 all answers are the same: give gs.Sampling a temperature")
        turn = self._turn_of(type, tools, options)
        first = [self._prepared(prompt, turn, options) for prompt in prompts]
        return self._finished(first, turn, type, options, n, stop)

    def _turn_of(self, type: Any, tools: Sequence[ToolLike], options: Options) -> Turn:
        refuse_unknown(options)
        known = as_tools(tools)
        return self._tool_turn(
            _grammar(type),
            tuple(known.values()),
            choice_of(options.get("tool_choice", "auto"), known),
            options.get("parallel", True),
            options.get("tool_format"),
            chat_template(self.tokenizer, tools=bool(known)),
        )

    def _prepared(self, prompt: Prompt, turn: Turn, options: Options) -> _Answer:
        text, section = prepare(
            self.tokenizer,
            self.vocabulary,
            turn.prompt(prompt, options.get("system")) if self.tokenizer.chat_template else prompt,
            system=None if self.tokenizer.chat_template else options.get("system"),
            variables=turn.variables(options.get("template")),
            reasoning=options.get("reasoning", "auto"),
            max_chars=options.get("max_reasoning_chars"),
            apart=not turn.reasons,
        )
        turn.check(text)
        return _Answer(prompt, encode(self.tokenizer, text), section)

    def _finished(
        self,
        first: Sequence[_Answer],
        turn: Turn,
        type: Any,
        options: Options,
        n: int = 1,
        stop: threading.Event | None = None,
        on_text: Callable[[bytes], None] | None = None,
    ) -> list[Result[Any]]:
        """The results of answers that are prepared, ``n`` of each; each is retried on its own."""
        retries = options.get("retries", 0)
        if retries < 0 or (retries and not self.tokenizer.chat_template):
            why = "must be at least 0" if retries < 0 else "needs a tokenizer with a chat template"
            raise ValueError(f"retries={retries} {why}")
        answers = [_Answer(one.prompt, one.tokens, one.section) for one in first for _ in range(n)]
        texts = self._generated(self._requests(first, turn, options, n), stop, on_text)
        waiting = answers
        while waiting:
            refused = []
            for answer, text in zip(waiting, texts, strict=True):
                try:
                    answer.result = self._read(answer, text, turn, type)
                except ValidationFailed as error:
                    if answer.attempts > retries:
                        raise
                    more = turn.again(answer.said, error)
                    again = self._prepared([*messages_of(answer.prompt), *more], turn, options)
                    answer.prompt, answer.tokens, answer.section = again.prompt, again.tokens, again.section
                    refused.append(answer)
            waiting = refused
            texts = self._generated(self._requests(waiting, turn, options), stop)
        return [answer.result for answer in answers if answer.result is not None]

    def _requests(self, answers: Sequence[_Answer], turn: Turn, options: Options, n: int = 1) -> list[Request]:
        return [
            Request(
                prompt=answer.tokens,
                matcher=self._constraint(turn, answer.section).matcher(),
                sampling=_sampling(options),
                n=n,
            )
            for answer in answers
        ]

    def _constraint(self, turn: Turn, section: Section | None) -> Constraint:
        key = (turn.grammar.ir, section)
        with self._turn:
            constraint = self._constraints.pop(key, None)
            if constraint is None:
                whole = section.before(turn.grammar, turn.gap, self.vocabulary) if section else turn.grammar
                constraint = compile(whole, self.vocabulary)
            self._constraints[key] = constraint
            if len(self._constraints) > _KEPT:
                self._constraints.popitem(last=False)
            return constraint

    def _generated(
        self,
        requests: Sequence[Request],
        stop: threading.Event | None = None,
        on_text: Callable[[bytes], None] | None = None,
    ) -> list[Generation]:
        def say(_request: int, _sample: int, data: bytes) -> None:
            if stop is not None and stop.is_set():
                raise Stopped
            if on_text is not None:
                on_text(data)

        with self._turn:
            if stop is not None and stop.is_set():
                raise Stopped
            found = generate_batch(
                self.model, requests, self.vocabulary, proposers=self.proposers, gamma=self.gamma, on_text=say
            )
        return [text for texts in found for text in texts]

    def _read(self, answer: _Answer, found: Generation, turn: Turn, type: Any) -> Result[Any]:
        answer.attempts += 1
        answer.statistics.add(found.statistics)
        if found.error is not None:
            raise found.error
        reasoning, text = split(answer.section, turn.gap, found.text)
        if found.finish_reason == "length" or text is None:
            raise Truncated(found.text)
        if answer.section is not None and reasoning is not None:
            answer.reasoning_tokens += answer.section.count(found.tokens, self.vocabulary)
        answer.said = marks.ending(found.marked, text)
        try:
            said = turn.read(answer.said)
        except ValidationFailed as error:
            raise ValidationFailed(error.text, error.errors, answer.attempts) from error.__cause__
        cost = answer.statistics
        return Result(
            output=said.output,
            text=said.text,
            reasoning=said.reasoning or reasoning,
            captures=said.captures,
            tool_calls=said.calls,
            finish_reason=found.finish_reason,
            usage=Usage(cost.prompt_tokens, cost.tokens, answer.reasoning_tokens),
            attempts=answer.attempts,
            statistics=cost,
            logprobs=found.logprobs,
            type=type,
        )


def _grammar(type: Any) -> Grammar[Any]:
    if isinstance(type, Grammar):
        return type
    from grammarspec.frontends.types.python import grammar

    return grammar(type)


def _sampling(options: Options) -> Sampling:
    sampling = options.get("sampling")
    if not isinstance(sampling, Sampling | None):
        raise TypeError(f"sampling must be a gs.Sampling, not {sampling!r}")
    return sampling or Sampling()
