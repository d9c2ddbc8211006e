"""An engine without a model: a batch of sequences, whose tokens are drawn at random among those that the masks allow.

Requests are lowered in another process, as a server's API does, and arrive as bytes. They are compiled in the threads
of a :class:`.GrammarCache`. Each step fills the masks of all running sequences, those along drafts too, and has each
sequence accept a token or a part of its draft. After a random number of tokens a text is ended the shortest way.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing import get_context
from time import perf_counter, process_time
from typing import Any

import numpy as np

import grammarspec as gs
from benchmarks.serving.requests import Asked
from grammarspec.errors import GrammarspecError
from grammarspec.serving import GrammarCache, GuardedMatcher, Lowered, fill_bitmasks
from grammarspec.serving.requests import Request

__all__ = ["Api", "Ended", "Scheduler"]

_DRAFT = 3  # the number of tokens of a draft
_WRONG = (GrammarspecError, TypeError, ValueError, RecursionError)

_vocabulary: gs.Vocabulary | None = None
_limits: gs.Limits | None = None


def _begin(vocabulary: gs.Vocabulary, limits: gs.Limits) -> None:
    global _vocabulary, _limits  # of the process of the API
    _vocabulary, _limits = vocabulary, limits


def _lower(request: Request) -> bytes | str:
    """The bytes of a request; a message if it is refused."""
    try:
        return request.lower(_vocabulary, limits=_limits).to_bytes()
    except _WRONG as error:
        return f"{type(error).__name__}: {error!s:.300}"


def _memory() -> int:
    import psutil

    return int(psutil.Process().memory_info().rss)


class Api:
    """The process that lowers requests.

    Args:
        vocabulary: the tokens of the model; the process gets them pickled.
        limits: the limits of each request.
    """

    def __init__(self, vocabulary: gs.Vocabulary, limits: gs.Limits) -> None:
        arguments = (vocabulary, limits)
        context = get_context("spawn")
        self._pool = ProcessPoolExecutor(1, mp_context=context, initializer=_begin, initargs=arguments)

    def lower(self, request: Request) -> Future[bytes | str]:
        """The bytes of a request, or the message of the error that refuses it."""
        return self._pool.submit(_lower, request)

    def memory(self) -> Future[int]:
        """The resident bytes of the process."""
        return self._pool.submit(_memory)

    def close(self) -> None:
        """End the process."""
        self._pool.shutdown(cancel_futures=True)


@dataclass(frozen=True, slots=True)
class Ended:
    """A request that has ended.

    Attributes:
        asked: the request.
        how: ``"finished"``, ``"refused"`` (by the API), ``"not compiled"`` (by the engine), ``"failed"`` (by a limit,
            in the middle of the text) or ``"cancelled"``.
        text: its text, if it has finished.
        error: what refused it, or made it fail.
        first_mask: the seconds from the request to its first mask in a step; NaN if there was none.
        tokens: the number of its tokens.
    """

    asked: Asked
    how: str
    text: str = ""
    error: str = ""
    first_mask: float = float("nan")
    tokens: int = 0


@dataclass(eq=False, slots=True)
class _Sequence:
    asked: Asked
    began: float
    free: int
    """The number of tokens that are drawn at random, before the text is ended the shortest way."""
    drafts: bool
    leaves_after: int | None
    """The number of tokens after which the client leaves."""
    lowering: Future[bytes | str] | None = None
    compiling: Future[Any] | None = None
    guarded: GuardedMatcher | None = None
    tokens: list[int] = field(default_factory=list)
    first_mask: float = float("nan")
    draft: list[int] = field(default_factory=list)
    row: int = 0


class Scheduler:
    """Runs so many requests at once.

    Args:
        vocabulary: the tokens of the model.
        api: lowers the requests.
        cache: compiles them.
        concurrency: the number of requests that are under way.
        ask: draws the next request.
        draw: draws tokens, lengths and what clients do.
        cancelled: the share of requests whose clients leave in the middle of the text.
        drafted: the share of sequences that have drafts.
        threads: the number of threads that compute masks.

    Attributes:
        steps: the seconds of filling the masks of each step, and the process's seconds of CPU time meanwhile; the
            reader may clear it.
    """

    def __init__(
        self,
        vocabulary: gs.Vocabulary,
        api: Api,
        cache: GrammarCache,
        concurrency: int,
        ask: Callable[[], Asked],
        draw: random.Random,
        *,
        cancelled: float = 0.01,
        drafted: float = 0.2,
        threads: int = 0,
    ) -> None:
        self._vocabulary, self._api, self._cache, self._concurrency = vocabulary, api, cache, concurrency
        self._ask, self._draw, self._threads = ask, draw, threads
        self._cancelled, self._drafted = cancelled, drafted
        self._waiting: list[_Sequence] = []
        self._running: list[_Sequence] = []
        self._rows = gs.allocate_bitmask(concurrency * (1 + _DRAFT), vocabulary.size)
        self.steps: list[tuple[float, float]] = []

    def step(self) -> list[Ended]:
        """Admit requests, and make one step of those that run; what has ended leaves."""
        while len(self._waiting) + len(self._running) < self._concurrency:
            self._waiting.append(self._new())
        ended = self._admit()
        if not self._running:
            if not ended:
                self._wait()
            return ended
        self._fill()
        for sequence in list(self._running):
            found = self._advance(sequence)
            if found is not None:
                self._running.remove(sequence)
                ended.append(found)
        return ended

    def _new(self) -> _Sequence:
        asked, draw = self._ask(), self._draw
        leaves = draw.randint(0, 20) if draw.random() < self._cancelled else None
        sequence = _Sequence(asked, perf_counter(), draw.randint(0, 60), draw.random() < self._drafted, leaves)
        sequence.lowering = self._api.lower(asked.request)
        return sequence

    def _admit(self) -> list[Ended]:
        ended, left = [], []
        for sequence in self._waiting:
            if sequence.lowering is not None and sequence.lowering.done():
                data = sequence.lowering.result()
                sequence.lowering = None
                if isinstance(data, str):
                    ended.append(Ended(sequence.asked, "refused", error=data))
                    continue
                sequence.compiling = self._cache.submit(Lowered.from_bytes(data))
            if sequence.compiling is not None and sequence.compiling.done():
                try:
                    sequence.guarded = GuardedMatcher(sequence.compiling.result().matcher())
                except GrammarspecError as error:
                    ended.append(Ended(sequence.asked, "not compiled", error=str(error)))
                    continue
                sequence.compiling = None
                self._running.append(sequence)
                continue
            left.append(sequence)
        self._waiting = left
        return ended

    def _wait(self) -> None:
        """Wait a little for the API or the compiler."""
        for sequence in self._waiting:
            future = sequence.lowering or sequence.compiling
            if future is not None:
                with suppress(TimeoutError):
                    future.exception(timeout=0.01)
                return

    def _fill(self) -> None:
        """Fill the masks of all running sequences; a failure is kept by its sequence."""
        matchers, index, drafts, row = [], [], [], 0
        for sequence in self._running:
            assert sequence.guarded is not None
            draft = []
            if sequence.drafts and sequence.guarded.failure is None and len(sequence.tokens) < sequence.free:
                draft = sequence.guarded.forced_tokens()[:_DRAFT]
                draft += [self._draw.choice(sequence.tokens or [0]) for _ in range(_DRAFT - len(draft))]
            sequence.draft, sequence.row = draft, row
            matchers.append(sequence.guarded.matcher)
            index.append(row)
            drafts.append(draft)
            row += 1 + len(draft)
        begin, begin_cpu = perf_counter(), process_time()
        results = fill_bitmasks(matchers, self._rows, rows_index=index, drafts=drafts, threads=self._threads)
        self.steps.append((perf_counter() - begin, process_time() - begin_cpu))
        now = perf_counter()
        for sequence, result in zip(self._running, results, strict=True):
            assert sequence.guarded is not None
            if not sequence.tokens:
                sequence.first_mask = now - sequence.began
            if not isinstance(result, int):
                sequence.guarded.fail(result)
                sequence.draft = []
            elif self._draw.random() < 0.5:  # the model agrees with the draft
                sequence.draft = sequence.draft[:result]
            else:
                sequence.draft = []

    def _advance(self, sequence: _Sequence) -> Ended | None:
        """Have a sequence accept its next tokens; what became of it, if it has ended."""
        guarded = sequence.guarded
        assert guarded is not None
        if sequence.leaves_after is not None and len(sequence.tokens) >= sequence.leaves_after:
            return self._ended(sequence, "cancelled")
        if guarded.failure is None:
            new = [*sequence.draft, self._next(sequence, sequence.row + len(sequence.draft))]
            if sequence.draft and self._draw.random() < 0.2:  # drafts that are taken back, as vLLM does
                if not guarded.accept_tokens(sequence.draft):
                    raise AssertionError(f"a draft of which each token is allowed was refused: {sequence.draft}")
                guarded.rollback(len(sequence.draft))
            if guarded.accept_tokens(new):
                sequence.tokens += new
            elif guarded.failure is None:
                raise AssertionError(f"a token that the mask allows was refused, among {new}")
        if guarded.failure is not None:
            return self._ended(sequence, "failed", error=str(guarded.failure))
        return self._ended(sequence, "finished") if guarded.is_terminated else None

    def _next(self, sequence: _Sequence, row: int) -> int:
        """A token that the row allows."""
        guarded = sequence.guarded
        assert guarded is not None
        ends = self._vocabulary.eos_token_ids
        mask = self._rows[row]
        if len(sequence.tokens) >= sequence.free and not sequence.draft:
            if guarded.matcher.is_accepting:
                return int(ends[0])
            try:
                return int(guarded.matcher.constraint.shortest_completion(guarded.matcher.state)[0])
            except GrammarspecError as error:
                guarded.fail(error)
                return 0
        words = np.flatnonzero(mask)
        if not len(words):
            raise AssertionError(f"no token is allowed after {sequence.tokens}")
        word = int(self._draw.choice(words))
        bits = np.flatnonzero(np.unpackbits(mask[word : word + 1].view(np.uint8), bitorder="little"))
        return word * 32 + int(self._draw.choice(bits))

    def _ended(self, sequence: _Sequence, how: str, error: str = "") -> Ended:
        text = ""
        if how == "finished":
            ends = self._vocabulary.eos_token_ids
            tokens = [token for token in sequence.tokens if token not in ends]
            text = self._vocabulary.decode(tokens).decode()
        return Ended(sequence.asked, how, text, error, sequence.first_mask, len(sequence.tokens))
