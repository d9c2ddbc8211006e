"""Models that answer with values: a prompt and a type go in, a value of the type comes out.

This module is the interface for users. A :class:`~grammarspec.models.calls.Call` does the work of each method, the
:class:`~grammarspec.models.generator.Generator` runs the model.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, Unpack, cast, overload

from grammarspec.decoding.proposers import DraftModel, Forced, Lookup, Proposer
from grammarspec.decoding.targets import can_draft
from grammarspec.grammars.engine import Limits, given_or_default
from grammarspec.grammars.expressions import Grammar
from grammarspec.imports import importing
from grammarspec.models.calls import Call
from grammarspec.models.chat import Prompt, chat_template
from grammarspec.models.generator import KEPT, Generator
from grammarspec.models.instructions import INSTRUCTIONS, Instructions
from grammarspec.models.loading import load_draft, load_model, vocabulary_of
from grammarspec.models.options import Options, resolve
from grammarspec.models.results import Result
from grammarspec.models.streaming import Stream
from grammarspec.models.turns import turn_of
from grammarspec.tools.sources import as_tools

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase
    from typing_extensions import TypeForm

    from grammarspec.tools.sources import ToolLike

__all__ = ["Model"]

T = TypeVar("T")


class Model:
    """A causal language model of transformers with its tokenizer, which answers with values of types. Thread-safe.

    Calls of different threads take turns. The constraint of a type or grammar is compiled on first use and kept. When a
    task that awaits an answer is cancelled, generation stops.

    Attributes:
        model, tokenizer: those of transformers.
        vocabulary: the model's tokens.
        proposers, gamma: where drafts come from, and the greatest number of their tokens.
        instructions: how prompts tell of the types of answers, where a call does not say.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        *,
        draft: PreTrainedModel | Sequence[Proposer] | None = None,
        gamma: int = 16,
        instructions: Instructions = "auto",
        limits: Limits | None = None,
    ) -> None:
        """Wrap a model that is loaded already.

        Args:
            model: a decoder-only model of transformers.
            tokenizer: its tokenizer.
            draft: a smaller model with the same tokens, which drafts where neither forced text nor a repetition of
                earlier text can be drafted; or the proposers to use instead of all these (an empty list: no drafts).
                Drafts do not change the probability of any text. A model that cannot take tokens back (one with
                recurrent layers, say) is run without drafts; to ask for some is an error when it generates.
            gamma: the greatest number of draft tokens in a round.
            instructions: how prompts tell of the types of answers, where a call does not say; see
                :class:`~grammarspec.models.options.ModelOptions`.
            limits: what the constraint of each answer may use, while it is compiled and while it runs; see
                :func:`grammarspec.compile`.

        Raises:
            ValueError: ``gamma`` is below 0, ``instructions`` has no such value, or no end-of-text token is known.
            TypeError: ``draft`` is a name: :meth:`from_pretrained` loads models by name; or ``limits`` is no
                :class:`grammarspec.Limits`.
            UnsupportedTokenizer: as :meth:`grammarspec.Vocabulary.from_tokenizer`.
            UnsupportedModel: ``model`` is an encoder-decoder model, or has an adapter that adds tokens to prompts.
        """
        if gamma < 0:
            raise ValueError(f"gamma must be at least 0, not {gamma}")
        if isinstance(draft, str | Path):
            raise TypeError(
                f"draft takes a model that is loaded, not {draft!r}: Model.from_pretrained loads one by name"
            )
        if instructions not in INSTRUCTIONS:
            raise ValueError(f"instructions must be 'auto', 'schema', 'compact' or None, not {instructions!r}")
        self.model, self.tokenizer, self.gamma, self.instructions = model, tokenizer, gamma, instructions
        self.vocabulary = vocabulary_of(model, tokenizer)
        usual: list[Proposer] = [Forced(), Lookup()]
        if draft is None:
            self.proposers: Sequence[Proposer] = usual if can_draft(model) else []
        else:
            self.proposers = list(draft) if isinstance(draft, Sequence) else [*usual, DraftModel(draft)]
        self._generator = Generator(model, self.vocabulary, self.proposers, gamma, given_or_default(limits))
        self._turns = lru_cache(maxsize=KEPT)(partial(turn_of, tokenizer, self.vocabulary))

    @classmethod
    def from_pretrained(
        cls,
        path_or_name: str | Path,
        *,
        draft: str | Path | None = None,
        gamma: int = 16,
        instructions: Instructions = "auto",
        limits: Limits | None = None,
        **options: Any,
    ) -> Model:
        """Load a model through transformers: a directory, a ``.gguf`` file, or a name on the Hugging Face hub.

        Args:
            path_or_name: as for :func:`grammarspec.models.loading.load_model`.
            draft: the same for a smaller model with the same tokens, which drafts.
            gamma, instructions, limits: as for a model that is loaded already.
            options: ``packed``, as for :func:`~grammarspec.models.loading.load_model`; all others are passed on to
                ``from_pretrained`` of model and tokenizer.

        Raises:
            MissingPackage: torch or transformers is missing.
            OSError: there is no such model.
            DraftMismatch: the draft model has other tokens.
            ValueError, UnsupportedTokenizer: as for a model that is loaded already.
        """
        model, tokenizer = load_model(path_or_name, **options)
        small = None if draft is None else load_draft(draft, vocabulary_of(model, tokenizer), **options)
        return cls(model, tokenizer, draft=small, gamma=gamma, instructions=instructions, limits=limits)

    # ------------------------------------------------------------------ values
    @overload
    def __call__(self, prompt: Prompt, type: Grammar[T], **options: Unpack[Options]) -> T: ...
    @overload
    def __call__(self, prompt: Prompt, type: TypeForm[T], **options: Unpack[Options]) -> T: ...
    @overload
    def __call__(self, prompt: Prompt, **options: Unpack[Options]) -> str: ...
    def __call__(self, prompt: Prompt, type: Any = str, **options: Unpack[Options]) -> Any:
        """The answer to a prompt, as a value of a type; see :meth:`batch`.

        Raises:
            GrammarspecError and others: as :meth:`batch`.
        """
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
            prompt: a text of the user, or the messages of a chat.
            type: the type or grammar of the answer; free text if not given.
            tools: the tools that the model may call instead of an answer, as :func:`grammarspec.tools.sources.as_tool`
                takes them: functions, classes, JSON. The calls are in ``tool_calls`` of the result, whose output is
                then ``None``. They are not run: :func:`grammarspec.run_tools` runs them.
            options: see :class:`~grammarspec.models.options.Options`.

        Raises:
            UnsupportedFeature: the schema of a tool cannot be enforced in the model's format of calls.
            ValueError: there is no such ``tool_choice`` or ``tool_format``, or two tools have the same name.
            GrammarspecError and others: as :meth:`batch`.
        """
        [result] = self._answers([prompt], type, options, tools=tools)
        return cast(Result[Any], result)

    @overload
    def batch(self, prompts: Sequence[Prompt], type: Grammar[T], **options: Unpack[Options]) -> list[Result[T]]: ...
    @overload
    def batch(self, prompts: Sequence[Prompt], type: TypeForm[T], **options: Unpack[Options]) -> list[Result[T]]: ...
    @overload
    def batch(
        self, prompts: Sequence[Prompt], type: Grammar[T], *, return_exceptions: bool, **options: Unpack[Options]
    ) -> list[Result[T] | Exception]: ...
    @overload
    def batch(
        self, prompts: Sequence[Prompt], type: TypeForm[T], *, return_exceptions: bool, **options: Unpack[Options]
    ) -> list[Result[T] | Exception]: ...
    def batch(
        self, prompts: Sequence[Prompt], type: Any, *, return_exceptions: bool = False, **options: Unpack[Options]
    ) -> list[Any]:
        """The answers to several prompts, generated together.

        Args:
            prompts: texts of users or messages of chats; the tokenizer's chat template renders them.
            type: a grammar, or a type as :func:`grammarspec.grammar` takes it.
            return_exceptions: as in ``asyncio.gather``: an answer that fails does not end the others; its error stands
                in its place. Otherwise the first error is raised, with the number of the answer as its ``index``.
            options: see :class:`~grammarspec.models.options.Options`.

        Raises:
            Truncated: a text was cut short; ``on_limit="close"`` would have closed it in time.
            ValidationFailed: a validator of the type refuses the value, in each of ``1 + retries`` attempts.
            GrammarError: the type or grammar cannot be enforced.
            MissingPackage: the type needs Pydantic or msgspec, which is not installed.
            UnsupportedFeature: a message has a part that is not text; the chat template has no system message; the
                loop cannot drive the model.
            PromptError: a prompt is empty, malformed, too long, or refused by the chat template.
            BudgetTooSmall: no whole text fits the budget (``on_limit="close"``).
            TypeError, ValueError: there is no such option, or an option cannot have such a value.
        """
        if isinstance(prompts, str):
            raise TypeError("batch() takes several prompts, not a single one: write batch([prompt], ...)")
        return self._answers(prompts, type, options, collect=return_exceptions)

    @overload
    def samples(self, prompt: Prompt, type: Grammar[T], n: int, **options: Unpack[Options]) -> list[Result[T]]: ...
    @overload
    def samples(self, prompt: Prompt, type: TypeForm[T], n: int, **options: Unpack[Options]) -> list[Result[T]]: ...
    @overload
    def samples(
        self, prompt: Prompt, type: Grammar[T], n: int, *, return_exceptions: bool, **options: Unpack[Options]
    ) -> list[Result[T] | Exception]: ...
    @overload
    def samples(
        self, prompt: Prompt, type: TypeForm[T], n: int, *, return_exceptions: bool, **options: Unpack[Options]
    ) -> list[Result[T] | Exception]: ...
    def samples(
        self, prompt: Prompt, type: Any, n: int, *, return_exceptions: bool = False, **options: Unpack[Options]
    ) -> list[Any]:
        """Several answers to one prompt, generated together; the prompt is read once. See :meth:`batch`.

        Args:
            prompt, type, return_exceptions, options: as for :meth:`batch`.
            n: the number of answers; with a seed they differ by their sample number.

        Raises:
            ValueError: ``n`` is below 1, or above 1 with temperature 0, which chooses the same answer every time.
            GrammarspecError and others: as :meth:`batch`.
        """
        return self._answers([prompt], type, options, n=n, collect=return_exceptions)

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
        """The text of an answer piece by piece, and then the :class:`Result`; see :meth:`run`.

        Reasoning and calls of tools are not part of the text; they are in the result. What cannot be generated is
        refused at once, before the first piece is read.

        Raises:
            ValueError: ``retries`` is above 0, or ``law="conditional"``: text that has been returned cannot be taken
                back.
            GrammarspecError and others: as :meth:`run`.
        """
        call = self._call(type, options, tools)
        if call.options.retries:
            raise ValueError("a stream cannot retry: what it has said cannot be taken back")
        if call.options.law != "masked":
            raise ValueError("a stream cannot choose among particles, which have all ended only then: call run or arun")
        prepared = call.prepare(prompt)

        def generate(on_text: Callable[[bytes], None], stop: threading.Event) -> Result[Any]:
            return call.answer(prepared, stop, on_text)

        return Stream(generate, call.visible_text(prepared))

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
        """:meth:`run` in a thread, to be awaited.

        Raises:
            GrammarspecError and others: as :meth:`run`.
        """
        [result] = await self._awaited([prompt], type, options, tools=tools)
        return cast(Result[Any], result)

    @overload
    async def abatch(
        self, prompts: Sequence[Prompt], type: Grammar[T], **options: Unpack[Options]
    ) -> list[Result[T]]: ...
    @overload
    async def abatch(
        self, prompts: Sequence[Prompt], type: TypeForm[T], **options: Unpack[Options]
    ) -> list[Result[T]]: ...
    @overload
    async def abatch(
        self, prompts: Sequence[Prompt], type: Grammar[T], *, return_exceptions: bool, **options: Unpack[Options]
    ) -> list[Result[T] | Exception]: ...
    @overload
    async def abatch(
        self, prompts: Sequence[Prompt], type: TypeForm[T], *, return_exceptions: bool, **options: Unpack[Options]
    ) -> list[Result[T] | Exception]: ...
    async def abatch(
        self, prompts: Sequence[Prompt], type: Any, *, return_exceptions: bool = False, **options: Unpack[Options]
    ) -> list[Any]:
        """:meth:`batch` in a thread, to be awaited.

        Raises:
            GrammarspecError and others: as :meth:`batch`.
        """
        return await self._awaited(prompts, type, options, collect=return_exceptions)

    @overload
    async def asamples(
        self, prompt: Prompt, type: Grammar[T], n: int, **options: Unpack[Options]
    ) -> list[Result[T]]: ...
    @overload
    async def asamples(
        self, prompt: Prompt, type: TypeForm[T], n: int, **options: Unpack[Options]
    ) -> list[Result[T]]: ...
    @overload
    async def asamples(
        self, prompt: Prompt, type: Grammar[T], n: int, *, return_exceptions: bool, **options: Unpack[Options]
    ) -> list[Result[T] | Exception]: ...
    @overload
    async def asamples(
        self, prompt: Prompt, type: TypeForm[T], n: int, *, return_exceptions: bool, **options: Unpack[Options]
    ) -> list[Result[T] | Exception]: ...
    async def asamples(
        self, prompt: Prompt, type: Any, n: int, *, return_exceptions: bool = False, **options: Unpack[Options]
    ) -> list[Any]:
        """:meth:`samples` in a thread, to be awaited.

        Raises:
            GrammarspecError and others: as :meth:`samples`.
        """
        return await self._awaited([prompt], type, options, n, collect=return_exceptions)

    astream = stream  # its pieces are iterated over with `for` or `async for`

    # ------------------------------------------------------------------ inside
    def _call(self, type: Any, options: Options, tools: Sequence[ToolLike] = ()) -> Call:
        """A call with its options resolved."""
        known = as_tools(tools)
        resolved = resolve(cast(Options, {"instructions": self.instructions, **options}), known)
        if known and resolved.lookahead is not None:
            raise ValueError("lookaheads judge answers: they cannot be given beside tools, which are called instead")
        turn = self._turns(
            _grammar(type),
            tuple(known.values()),
            resolved.tool_choice,
            resolved.parallel,
            resolved.tool_format,
            chat_template(self.tokenizer, tools=bool(known)),
            resolved.allowed_tools,
        )
        return Call(self._generator, self.tokenizer, self.vocabulary, type, turn, resolved)

    def _answers(
        self,
        prompts: Sequence[Prompt],
        type: Any,
        options: Options,
        n: int = 1,
        stop: threading.Event | None = None,
        tools: Sequence[ToolLike] = (),
        *,
        collect: bool = False,
    ) -> list[Any]:
        """The answers to prompts, ``n`` to each; what all the methods but :meth:`stream` do."""
        if n < 1:
            raise ValueError(f"n must be at least 1, not {n}")
        call = self._call(type, options, tools)
        if n > 1 and call.options.sampling.temperature == 0:
            raise ValueError("at temperature 0 all answers are the same: give a temperature")
        return call.answers(prompts, n, stop, collect=collect)

    async def _awaited(
        self,
        prompts: Sequence[Prompt],
        type: Any,
        options: Options,
        n: int = 1,
        tools: Sequence[ToolLike] = (),
        *,
        collect: bool = False,
    ) -> list[Any]:
        """:meth:`_answers` in a thread; where the task is cancelled, generation stops."""
        stop = threading.Event()
        try:
            work = partial(self._answers, prompts, type, options, n, stop, tools, collect=collect)
            return await asyncio.to_thread(work)
        finally:
            stop.set()  # where this was cancelled, the thread still runs


def _grammar(type: Any) -> Grammar[Any]:
    """The grammar of a type."""
    if isinstance(type, Grammar):
        return type
    with importing:
        from grammarspec.frontends.types.python import grammar

    return grammar(type)
