"""Models that answer with values: a prompt and a type in, a value of the type out."""

from __future__ import annotations

import asyncio
import codecs
import threading
from collections import OrderedDict
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, Generic, TypedDict, TypeVar, Unpack, overload

from grammarspec.constraint import Constraint, compile
from grammarspec.decoding import Generation, Logprob, Request, Sampling, Statistics, generate_batch
from grammarspec.decoding.proposers import DraftModel, Forced, Lookup, Proposer
from grammarspec.errors import Truncated
from grammarspec.expressions import Grammar
from grammarspec.loading import encode_prompt, load_draft, load_model, vocabulary_of

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase
    from typing_extensions import TypeForm

__all__ = ["Model", "Prompt", "Result", "Stream"]

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

Prompt = str | Sequence[Mapping[str, Any]]
"""What the user says, or the messages of a chat, as OpenAI has them."""


class Options(TypedDict, total=False):
    """What may be said with each prompt.

    Attributes:
        sampling: how tokens are chosen, and when to stop; greedily, and after 512 tokens, if not given.
        system: a system message before the prompt.
    """

    sampling: Sampling | None
    system: str | None


_CONSTRAINTS = 64
"""Compiled constraints that a model keeps; those that were used last."""


@dataclass(frozen=True, slots=True)
class Result(Generic[T_co]):
    """An answer.

    Attributes:
        output: the value.
        text: the text that it was read from.
        captures: the values of the grammar's named parts (see :meth:`grammarspec.Grammar.named`).
        finish_reason: ``"stop"``, or ``"closed"`` where the text was steered to an ending in time.
        prompt_tokens, completion_tokens: how many there were.
        statistics: what it cost; passes and times are those of the whole batch.
        logprobs: one for each token, if asked for.
    """

    output: T_co
    text: str
    captures: dict[str, Any]
    finish_reason: str
    prompt_tokens: int
    completion_tokens: int
    statistics: Statistics
    logprobs: list[Logprob] | None


class Model:
    """A causal language model of transformers with its tokenizer, asked for values of types. Thread-safe.

    Calls of different threads take turns; constraints are compiled once for each type or grammar.

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
        self.model, self.tokenizer, self.gamma = model, tokenizer, gamma
        self.vocabulary = vocabulary_of(model, tokenizer)
        usual: list[Proposer] = [Forced(), Lookup()]
        if draft is None:
            self.proposers: Sequence[Proposer] = usual
        else:
            self.proposers = list(draft) if isinstance(draft, Sequence) else [*usual, DraftModel(draft)]
        self._constraints: OrderedDict[Grammar[Any], Constraint] = OrderedDict()
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
            ImportError: torch or transformers is missing.
            OSError: there is no such model.
            ValueError: the draft model has other tokens.
        """
        model, tokenizer = load_model(path_or_name, **options)
        small = None if draft is None else load_draft(draft, vocabulary_of(model, tokenizer), **options)
        return cls(model, tokenizer, draft=small, gamma=gamma)

    # ------------------------------------------------------------------ values
    @overload
    def __call__(self, prompt: Prompt, type: Grammar[T], **options: Unpack[Options]) -> T: ...
    @overload
    def __call__(self, prompt: Prompt, type: TypeForm[T], **options: Unpack[Options]) -> T: ...
    def __call__(self, prompt: Prompt, type: Any, **options: Unpack[Options]) -> Any:
        """The answer to a prompt, as a value of a type; see :meth:`batch`."""
        return self.run(prompt, type, **options).output

    @overload
    def run(self, prompt: Prompt, type: Grammar[T], **options: Unpack[Options]) -> Result[T]: ...
    @overload
    def run(self, prompt: Prompt, type: TypeForm[T], **options: Unpack[Options]) -> Result[T]: ...
    def run(self, prompt: Prompt, type: Any, **options: Unpack[Options]) -> Result[Any]:
        """The answer to a prompt, with all that is known about it; see :meth:`batch`."""
        return self.batch([prompt], type, **options)[0]

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
            GrammarError: the type or grammar cannot be enforced.
            ValueError: a prompt is empty, too long, or refused by the chat template; no text fits the budget.
        """
        grammar = _grammar(type)
        requests = [self._request(prompt, grammar, options) for prompt in prompts]
        with self._turn:
            found = generate_batch(self.model, requests, self.vocabulary, proposers=self.proposers, gamma=self.gamma)
        return [_result(grammar, request, one) for request, [one] in zip(requests, found, strict=True)]

    @overload
    def stream(self, prompt: Prompt, type: Grammar[T], **options: Unpack[Options]) -> Stream[T]: ...
    @overload
    def stream(self, prompt: Prompt, type: TypeForm[T], **options: Unpack[Options]) -> Stream[T]: ...
    def stream(self, prompt: Prompt, type: Any, **options: Unpack[Options]) -> Stream[Any]:
        """The answer's text piece by piece, and then the :class:`Result`; see :meth:`batch`."""
        grammar = _grammar(type)
        return Stream(self, grammar, self._request(prompt, grammar, options))

    @overload
    async def arun(self, prompt: Prompt, type: Grammar[T], **options: Unpack[Options]) -> Result[T]: ...
    @overload
    async def arun(self, prompt: Prompt, type: TypeForm[T], **options: Unpack[Options]) -> Result[T]: ...
    async def arun(self, prompt: Prompt, type: Any, **options: Unpack[Options]) -> Result[Any]:
        """:meth:`run`, in a thread of its own."""
        return await asyncio.to_thread(lambda: self.run(prompt, type, **options))

    # ------------------------------------------------------------------ inside
    def _request(self, prompt: Prompt, grammar: Grammar[Any], options: Options) -> Request:
        tokens = encode_prompt(self.tokenizer, prompt, options.get("system"))
        sampling = options.get("sampling") or Sampling()
        return Request(prompt=tokens, matcher=self._constraint(grammar).matcher(), sampling=sampling)

    def _constraint(self, grammar: Grammar[Any]) -> Constraint:
        with self._turn:
            constraint = self._constraints.pop(grammar, None)
            if constraint is None:
                constraint = compile(grammar, self.vocabulary)
            self._constraints[grammar] = constraint
            if len(self._constraints) > _CONSTRAINTS:
                self._constraints.popitem(last=False)
            return constraint


class _Stopped(Exception):
    """Nobody reads the stream any more."""


class Stream(Generic[T_co]):
    """The text of an answer while it is generated: an iterator of pieces, sync or async.

    Generation begins with the first piece that is asked for, and stops when the stream is closed. What goes wrong is
    raised behind the last piece, :class:`~grammarspec.errors.Truncated` among it.
    """

    def __init__(self, model: Model, grammar: Grammar[T_co], request: Request) -> None:
        self._model, self._grammar, self._request = model, grammar, request
        self._pieces: SimpleQueue[str | None] = SimpleQueue()
        self._found: Generation | Exception | None = None
        self._closed = False
        self._thread: threading.Thread | None = None

    @property
    def result(self) -> Result[T_co]:
        """The whole answer; what is still to come of the text is waited for.

        Raises:
            Truncated and others: as :meth:`Model.batch`.
        """
        for _ in self:
            pass
        if self._found is None or isinstance(self._found, Exception):
            raise ValueError("the stream was closed before the text was whole")
        return _result(self._grammar, self._request, self._found)

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        if self._thread is None and not self._closed:
            self._thread = threading.Thread(target=self._generate, daemon=True)
            self._thread.start()
        piece = None if (self._found is not None and self._pieces.empty()) or self._closed else self._pieces.get()
        if piece is None:
            if isinstance(self._found, Exception) and not self._closed:
                raise self._found
            raise StopIteration
        return piece

    async def __aiter__(self) -> AsyncIterator[str]:
        while (piece := await asyncio.to_thread(next, self, None)) is not None:
            yield piece

    def close(self) -> None:
        """Stop generating."""
        self._closed = True

    def __enter__(self) -> Stream[T_co]:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _generate(self) -> None:
        decoder = codecs.getincrementaldecoder("utf-8")()

        def on_text(_request: int, _sample: int, data: bytes) -> None:
            if self._closed:
                raise _Stopped
            if piece := decoder.decode(data):
                self._pieces.put(piece)

        model = self._model
        try:
            with model._turn:
                [[found]] = generate_batch(
                    model.model,
                    [self._request],
                    model.vocabulary,
                    proposers=model.proposers,
                    gamma=model.gamma,
                    on_text=on_text,
                )
            self._found = _failure(found) or found
        except _Stopped:
            pass
        except Exception as error:
            self._found = error
        finally:
            self._pieces.put(None)


def _grammar(type: Any) -> Grammar[Any]:
    if isinstance(type, Grammar):
        return type
    from grammarspec.frontends.types import grammar

    return grammar(type)


def _failure(found: Generation) -> Exception | None:
    return Truncated(found.text) if found.finish_reason == "length" else found.error


def _result(grammar: Grammar[T], request: Request, found: Generation) -> Result[T]:
    from grammarspec.reading import match_marked

    failure = _failure(found)
    if failure is not None:
        raise failure
    match = match_marked(grammar, found.marked)
    return Result(
        output=match.value,
        text=found.text,
        captures=match.captures,
        finish_reason=found.finish_reason,
        prompt_tokens=len(request.prompt),
        completion_tokens=len(found.tokens),
        statistics=found.statistics,
        logprobs=found.logprobs,
    )
