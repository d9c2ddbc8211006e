"""Responses from generated texts: server-sent events with pieces of texts, or one body with the whole texts.

The engine's thread puts pieces and finished texts into a queue of the event loop; everything else here runs in the
event loop.
"""

from __future__ import annotations

import asyncio
import codecs
import json
import math
import time
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import Executor
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any
from uuid import uuid4

from grammarspec.decoding import Generation
from grammarspec.errors import Cancelled
from grammarspec.server.bodies import Asked
from grammarspec.server.engine import Engine, Job
from grammarspec.server.metrics import Metrics
from grammarspec.server.prepared import Answer, Work
from grammarspec.server.refusals import Refused, refusal_of
from grammarspec.vocabulary import Vocabulary

__all__ = ["Ended", "Form", "Piece", "Texts"]


@dataclass(frozen=True, slots=True)
class Piece:
    """A piece of a growing text.

    Attributes:
        index: the number of the text among those of the request.
        text: the piece.
    """

    index: int
    text: str


@dataclass(frozen=True, slots=True)
class Ended:
    """A text that has ended.

    Attributes:
        index: its number.
        rest: the part of the text that no piece has had.
        answer: the text, divided into reasoning, calls and the rest.
        generation: the result of the decoding loop.
    """

    index: int
    rest: str
    answer: Answer
    generation: Generation


class _Growing:
    """The pieces of one text. They have whole characters only, and nothing that may be the beginning of a call."""

    def __init__(self, visible: Callable[[str], str]) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._visible = visible
        self.shown = 0

    def feed(self, data: bytes) -> str:
        piece = self._visible(self._decoder.decode(data))
        self.shown += len(piece)
        return piece


class Texts:
    """The texts of one request, while they are generated. Used in the event loop only.

    Args:
        engine: generates the texts.
        works: for each prompt, what to generate.
        metrics: counts the texts.
        pool: the threads in which finished texts are parsed.
    """

    def __init__(self, engine: Engine, works: Sequence[Work], metrics: Metrics, pool: Executor) -> None:
        self._engine, self._metrics, self._pool = engine, metrics, pool
        self._events: asyncio.Queue[tuple[int, bytes | Generation | Exception]] = asyncio.Queue()
        self._loop = asyncio.get_running_loop()
        self._read: list[Callable[[Generation], Answer]] = []
        self._growing: list[_Growing] = []
        self._jobs: list[Job] = []
        for work in works:
            first = len(self._read)
            self._jobs.append(Job(work.request, partial(self._put, first), partial(self._put, first)))
            for _ in range(work.request.n):
                self._read.append(work.read)
                self._growing.append(_Growing(work.visible()))
        self._left = len(self._read)

    def _put(self, first: int, sample: int, event: bytes | Generation | Exception) -> None:
        """Called in the engine's thread."""
        with suppress(RuntimeError):  # the event loop is closed: nobody listens
            self._loop.call_soon_threadsafe(self._events.put_nowait, (first + sample, event))

    def start(self) -> None:
        """Submit the jobs to the engine.

        Raises:
            Refused: the server is shutting down.
        """
        try:
            for job in self._jobs:
                self._engine.submit(job)
        except RuntimeError:
            self.stop()
            raise Refused("the server is shutting down", code="shutting_down", status=503) from None

    @property
    def waits(self) -> bool:
        """Whether texts of the request still wait for room in the batch."""
        return not all(job.joined for job in self._jobs)

    def stop(self) -> None:
        """Cancel the texts that have not ended."""
        if self._left:
            self._left = 0
            for job in self._jobs:
                self._engine.cancel(job)

    async def events(self) -> AsyncIterator[Piece | Ended]:
        """The pieces and the ends of the texts, as the engine produces them.

        Raises:
            Refused: a text has failed. The other texts of the request are cancelled.
        """
        try:
            while self._left:
                index, event = await self._events.get()
                if isinstance(event, bytes):
                    if piece := self._growing[index].feed(event):
                        yield Piece(index, piece)
                    continue
                if isinstance(event, Exception):
                    raise event
                self._metrics.text(event.statistics)
                answer = await self._loop.run_in_executor(self._pool, self._read[index], event)
                self._left -= 1
                yield Ended(index, answer.text[self._growing[index].shown :], answer, event)
        except Refused:
            raise
        except Exception as error:
            raise _failure(error) from error
        finally:
            self.stop()


def _failure(error: Exception) -> Refused:
    if isinstance(error, Cancelled):
        return Refused(error.message, code="shutting_down", status=503)
    return refusal_of(error)


@dataclass(slots=True)
class Form:
    """Writes the response to one request, to a chat completion or to a completion.

    Attributes:
        asked: the request.
        chat: whether the request is for a chat completion.
        model: the name of the model.
        vocabulary: the tokens of the model.
        prompt_tokens: the number of tokens of all prompts together.
    """

    asked: Asked
    chat: bool
    model: str
    vocabulary: Vocabulary
    prompt_tokens: int
    _id: str = field(default_factory=lambda: uuid4().hex)
    _created: int = field(default_factory=lambda: int(time.time()))

    # ------------------------------------------------------------------ whole responses
    def whole(self, ended: Sequence[Ended]) -> dict[str, Any]:
        """The response with all texts.

        Args:
            ended: the texts, in any order.
        """
        choices = [self._choice(one) for one in sorted(ended, key=lambda one: one.index)]
        kind = "chat.completion" if self.chat else "text_completion"
        return {**self._head(kind), "choices": choices, "usage": self._usage(ended)}

    def _choice(self, one: Ended) -> dict[str, Any]:
        answer = one.answer
        if not self.chat:
            shown: dict[str, Any] = {"text": answer.text}
        else:
            content = answer.text or None if answer.calls else answer.text
            message: dict[str, Any] = {"role": "assistant", "content": content, "refusal": None}
            if answer.calls:
                message["tool_calls"] = [call.to_openai() for call in answer.calls]
            if answer.reasoning is not None:
                message["reasoning_content"] = answer.reasoning
            shown = {"message": message}
        logprobs = self._logprobs(one.generation) if self.asked.logprobs else None
        return {"index": one.index, **shown, "logprobs": logprobs, "finish_reason": answer.finish_reason}

    def _logprobs(self, generation: Generation) -> dict[str, Any]:
        """The log-probabilities of the tokens of a text, without its end-of-text token, by the unmodified logits."""
        listed = []
        for token, one in zip(generation.tokens, generation.logprobs or (), strict=True):
            if token in self.vocabulary.eos_token_ids:
                continue
            data = self.vocabulary.decode([token])
            value = one.raw if math.isfinite(one.raw) else -9999.0
            text = data.decode(errors="replace")
            listed.append({"token": text, "logprob": value, "bytes": list(data), "top_logprobs": []})
        return {"content": listed, "refusal": None}

    # ------------------------------------------------------------------ streams
    async def stream(self, events: AsyncIterator[Piece | Ended], count: int) -> AsyncIterator[bytes]:
        """The response as server-sent events.

        Args:
            events: the pieces and the ends of the texts.
            count: the number of texts.
        """
        if self.chat:
            for index in range(count):
                yield self._event(index, {"role": "assistant", "content": ""})
        ended: list[Ended] = []
        try:
            async for event in events:
                if isinstance(event, Piece):
                    yield self._event(event.index, {"content": event.text})
                    continue
                ended.append(event)
                for delta in self._last_deltas(event):
                    yield self._event(event.index, delta)
                yield self._event(event.index, {}, event.answer.finish_reason)
        except Refused as error:  # too late for another status: the headers have been sent
            yield _data(error.body)
            return
        if self.asked.include_usage:
            yield _data({**self._head(self._piece_kind), "choices": [], "usage": self._usage(ended)})
        yield b"data: [DONE]\n\n"

    def _last_deltas(self, one: Ended) -> list[dict[str, Any]]:
        deltas: list[dict[str, Any]] = []
        if self.chat and one.answer.reasoning is not None:
            deltas.append({"reasoning_content": one.answer.reasoning})
        if one.rest:
            deltas.append({"content": one.rest})
        if one.answer.calls:
            calls = [{"index": number, **call.to_openai()} for number, call in enumerate(one.answer.calls)]
            deltas.append({"tool_calls": calls})
        return deltas

    def _event(self, index: int, delta: dict[str, Any], finish_reason: str | None = None) -> bytes:
        shown = {"delta": delta} if self.chat else {"text": delta.get("content", "")}
        choice = {"index": index, **shown, "logprobs": None, "finish_reason": finish_reason}
        usage = {"usage": None} if self.asked.include_usage else {}
        return _data({**self._head(self._piece_kind), "choices": [choice], **usage})

    # ------------------------------------------------------------------ both
    @property
    def _piece_kind(self) -> str:
        return "chat.completion.chunk" if self.chat else "text_completion"

    def _head(self, kind: str) -> dict[str, Any]:
        name = f"{'chatcmpl' if self.chat else 'cmpl'}-{self._id}"
        return {"id": name, "object": kind, "created": self._created, "model": self.model}

    def _usage(self, ended: Sequence[Ended]) -> dict[str, Any]:
        """The numbers of tokens. The end-of-text token of a text is counted, too."""
        tokens = sum(len(one.generation.tokens) for one in ended)
        reasoning = sum(one.answer.reasoning_tokens for one in ended)
        return {
            "prompt_tokens": self.prompt_tokens,
            "completion_tokens": tokens,
            "total_tokens": self.prompt_tokens + tokens,
            "completion_tokens_details": {"reasoning_tokens": reasoning},
        }


def _data(value: dict[str, Any]) -> bytes:
    return b"data: " + json.dumps(value, allow_nan=False).encode() + b"\n\n"
