"""The text of an answer while it is generated."""

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
    """Nobody waits for what is generated any more."""


class Stream(Generic[T_co]):
    """The text of an answer while it is generated, without the reasoning: an iterator of pieces, sync or async.

    Generation begins with the first piece that is asked for, and stops when the stream is closed, or the task that
    awaits a piece is cancelled. What goes wrong is raised behind the last piece,
    :class:`~grammarspec.errors.Truncated` among it.
    """

    def __init__(
        self,
        generate: Callable[[Callable[[bytes], None], threading.Event], Result[T_co]],
        split: Callable[[str], str],
    ) -> None:
        """A stream of what ``generate`` says.

        Args:
            generate: hands the bytes of the text on as it grows, until the event is set; gives the result.
            split: of a piece of the text, what belongs to the answer.
        """
        self._generate, self._split = generate, split
        self._pieces: SimpleQueue[str | None] = SimpleQueue()
        self._found: Result[T_co] | Exception | None = None
        self._closed = threading.Event()
        self._thread: threading.Thread | None = None

    @property
    def result(self) -> Result[T_co]:
        """The whole answer; what is still to come of the text is waited for.

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
        """Stop generating."""
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
        decoder = codecs.getincrementaldecoder("utf-8")()
        said = 0

        def hand_on(piece: str) -> None:
            nonlocal said
            if piece:
                said += len(piece)
                self._pieces.put(piece)

        try:
            found = self._generate(lambda data: hand_on(self._split(decoder.decode(data))), self._closed)
            hand_on(found.text[said:])  # what could have been a marker
            self._found = found
        except Stopped:
            pass
        except Exception as error:
            self._found = error
        finally:
            self._pieces.put(None)
