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
from itertools import accumulate
from typing import Any
from uuid import uuid4

from grammarspec.decoding import Generation
from grammarspec.errors import Cancelled
from grammarspec.server.bodies import Asked
from grammarspec.server.engine import Engine, Job
from grammarspec.server.metrics import Metrics
from grammarspec.server.prepared import Answer, Work
from grammarspec.server.refusals import Refused, refusal_of
from grammarspec.tools.formats import CallPiece
from grammarspec.vocabulary import Vocabulary

__all__ = ["Ended", "Form", "Piece", "Texts"]


@dataclass(frozen=True, slots=True)
class Piece:
    """A piece of a growing text.

    Attributes:
        index: the number of the text among those of the request.
        text: what the user may see of the piece.
        calls: the pieces of calls.
    """

    index: int
    text: str
    calls: Sequence[CallPiece] = ()


@dataclass(frozen=True, slots=True)
class Ended:
    """A text that has ended.

    Attributes:
        index: its number.
        rest: the part of the text that no piece has had.
        sent_calls: the number of calls that pieces have had.
        answer: the text, divided into reasoning, calls and the rest.
        generation: the result of the decoding loop.
    """

    index: int
    rest: str
    sent_calls: int
    answer: Answer
    generation: Generation


class _Growing:
    """The pieces of one text. They have whole characters only, and no text that may be the beginning of a call."""

    def __init__(self, read: Callable[[str], tuple[str, list[CallPiece]]]) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._read = read
        self.shown = self.calls = 0

    def feed(self, data: bytes) -> tuple[str, list[CallPiece]]:
        text, calls = self._read(self._decoder.decode(data))
        self.shown += len(text)
        self.calls += sum(call.name is not None for call in calls)
        return text, calls


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
                self._growing.append(_Growing(work.growing()))
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
                    text, calls = self._growing[index].feed(event)
                    if text or calls:
                        yield Piece(index, text, calls)
                    continue
                if isinstance(event, Exception):
                    raise event
                self._metrics.text(event.statistics)
                answer = await self._loop.run_in_executor(self._pool, self._read[index], event)
                self._left -= 1
                growing = self._growing[index]
                yield Ended(index, answer.text[growing.shown :], growing.calls, answer, event)
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
        logprobs = self._logprobs(one.generation)
        return {"index": one.index, **shown, "logprobs": logprobs, "finish_reason": answer.finish_reason}

    def _logprobs(self, generation: Generation) -> dict[str, Any] | None:
        """The log-probabilities of the tokens of a text, without its end-of-text token, by the unmodified logits.

        Returns:
            in the form of chats, or of completions; ``None`` if they are not asked for.
        """
        if not self.asked.logprobs:
            return None
        pairs = zip(generation.tokens, generation.logprobs or (), strict=True)
        kept = [(token, one) for token, one in pairs if token not in self.vocabulary.eos_token_ids]
        if self.chat:
            content = [
                {**self._token(token, one.raw), "top_logprobs": [self._token(*each) for each in one.top]}
                for token, one in kept
            ]
            return {"content": content, "refusal": None}
        listed = [self._token(token, one.raw) for token, one in kept]
        texts = [one["token"] for one in listed]
        tops = [{found["token"]: found["logprob"] for found in map(self._token, *zip(*one.top, strict=True))}
                if one.top else {} for _, one in kept]  # fmt: skip
        offsets = list(accumulate(map(len, texts), initial=0))[:-1]
        values = [one["logprob"] for one in listed]
        return {"tokens": texts, "token_logprobs": values, "top_logprobs": tops, "text_offset": offsets}

    def _token(self, token: int, logprob: float) -> dict[str, Any]:
        """A token with its log-probability; OpenAI's form has -9999 for one that is impossible."""
        data = self.vocabulary.decode([token])
        value = logprob if math.isfinite(logprob) else -9999.0
        return {"token": data.decode(errors="replace"), "logprob": value, "bytes": list(data)}

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
                    if event.text:
                        yield self._event(event.index, {"content": event.text})
                    if event.calls:
                        yield self._event(event.index, {"tool_calls": _call_deltas(event.calls)})
                    continue
                ended.append(event)
                for delta in self._last_deltas(event):
                    yield self._event(event.index, delta)
                logprobs = self._logprobs(event.generation)
                yield self._event(event.index, {}, event.answer.finish_reason, logprobs)
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
        calls = [{"index": number, **call.to_openai()} for number, call in enumerate(one.answer.calls)]
        if calls := calls[one.sent_calls :]:
            deltas.append({"tool_calls": calls})
        return deltas

    def _event(
        self, index: int, delta: dict[str, Any], finish_reason: str | None = None, logprobs: Any = None
    ) -> bytes:
        shown = {"delta": delta} if self.chat else {"text": delta.get("content", "")}
        choice = {"index": index, **shown, "logprobs": logprobs, "finish_reason": finish_reason}
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


def _call_deltas(pieces: Sequence[CallPiece]) -> list[dict[str, Any]]:
    """The pieces of calls in OpenAI's form; consecutive ones of the same call are joined."""
    found: list[dict[str, Any]] = []
    for piece in pieces:
        if piece.name is not None:
            own = piece.id or f"call_{uuid4().hex[:24]}"
            function = {"name": piece.name, "arguments": piece.arguments}
            found.append({"index": piece.index, "id": own, "type": "function", "function": function})
        elif found and found[-1]["index"] == piece.index:
            found[-1]["function"]["arguments"] += piece.arguments
        else:
            found.append({"index": piece.index, "function": {"arguments": piece.arguments}})
    return found


def _data(value: dict[str, Any]) -> bytes:
    return b"data: " + json.dumps(value, allow_nan=False).encode() + b"\n\n"
