"""Streams: a thread generates an answer, and an iterator returns its text piece by piece."""

from __future__ import annotations

import asyncio
import codecs
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from queue import SimpleQueue
from typing import Generic, TypeVar

from grammarspec.models.results import Result

__all__ = ["Stopped", "Stream"]

T_co = TypeVar("T_co", covariant=True)


class Stopped(Exception):
    """Raised inside generation to end it, after the stream was closed or the waiting task was cancelled."""


class Stream(Generic[T_co]):
    """The text of an answer while it is generated, without the reasoning: an iterator of pieces, sync or async.

    Generation begins when the first piece is read. It stops when the stream is closed, or the task that awaits a
    piece is cancelled. Errors, such as :class:`~grammarspec.errors.Truncated`, are raised after the last piece.
    """

    def __init__(
        self,
        generate: Callable[[Callable[[bytes], None], threading.Event], Result[T_co]],
        visible: Callable[[str], str],
    ) -> None:
        """A stream over a function that generates.

        Args:
            generate: called once, with a function and an event. It calls the function with the next bytes of the text
                as it grows, returns the result, and raises :class:`Stopped` once the event is set.
            visible: takes a piece of the text and returns the characters of the answer that it makes visible.
        """
        self._generate, self._visible = generate, visible
        self._pieces: SimpleQueue[str | None] = SimpleQueue()
        self._found: Result[T_co] | Exception | None = None
        self._closed = threading.Event()
        self._thread: threading.Thread | None = None

    @property
    def result(self) -> Result[T_co]:
        """The result; waits for the rest of the text.

        Raises:
            ValueError: the stream was closed before.
            Truncated and others: as :meth:`grammarspec.Model.batch`.
        """
        for _ in self:
            pass
        if self._found is None or isinstance(self._found, Exception):
            raise ValueError("the stream was closed before the text was whole")
        return self._found

    async def aresult(self) -> Result[T_co]:
        """:attr:`result`, awaited."""
        async for _ in self:
            pass
        return self.result

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        if self._thread is None and not self._closed.is_set():
            self._thread = threading.Thread(target=self._run, daemon=True)
            self._thread.start()
        over = self._closed.is_set() or (self._found is not None and self._pieces.empty())
        piece = None if over else self._pieces.get()
        if piece is None:
            if isinstance(self._found, Exception) and not self._closed.is_set():
                raise self._found
            raise StopIteration
        return piece

    async def __aiter__(self) -> AsyncIterator[str]:
        try:
            while (piece := await asyncio.to_thread(next, self, None)) is not None:
                yield piece
        except asyncio.CancelledError:
            self.close()
            raise

    def close(self) -> None:
        """Stop generation; no more pieces come."""
        self._closed.set()

    def __enter__(self) -> Stream[T_co]:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def __aenter__(self) -> Stream[T_co]:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.close()

    def _run(self) -> None:
        """Generate, in a thread of its own."""
        decoder = codecs.getincrementaldecoder("utf-8")()
        handed_out = 0

        def put(piece: str) -> None:
            nonlocal handed_out
            if piece:
                handed_out += len(piece)
                self._pieces.put(piece)

        try:
            found = self._generate(lambda data: put(self._visible(decoder.decode(data))), self._closed)
            put(found.text[handed_out:])  # what was held back because it could have begun a marker or a call
            self._found = found
        except Stopped:
            pass
        except Exception as error:
            self._found = error
        finally:
            self._pieces.put(None)
