"""The HTTP application: routes, API keys, limits on bodies and on waiting requests, and clients that disconnect."""

from __future__ import annotations

import asyncio
import hmac
import json
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing, asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any, TypeVar

from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from grammarspec._compiler import CancelToken
from grammarspec.decoding.running import RunningBatch
from grammarspec.models.model import Model
from grammarspec.server import bodies
from grammarspec.server.answers import Ended, Form, Piece, Texts
from grammarspec.server.engine import Engine
from grammarspec.server.metrics import Gauges, Metrics
from grammarspec.server.prepared import Preparer, Work
from grammarspec.server.refusals import Refused, refusal_of
from grammarspec.server.settings import Settings

__all__ = ["application"]

_LOG = logging.getLogger(__name__)
_LEFT = 499  # the status that nginx logs for clients that disconnected
_BRIEF = 64 << 10  # the bytes of a body whose prompt takes little time to render
_THREADS = 2  # the number of threads that prepare new grammars, and of those that do everything else

T = TypeVar("T")


class _Left(Exception):
    """The client has disconnected."""


@dataclass(eq=False, slots=True)
class _Open:
    """A request that has not been answered yet.

    Attributes:
        arrived: whether its body has arrived.
        texts: the texts that are generated for it; ``None`` while it is being prepared.
    """

    arrived: bool = False
    texts: Texts | None = None

    @property
    def waits(self) -> bool:
        """Whether the request is being prepared, or waits for room in the batch."""
        return self.arrived and (self.texts is None or self.texts.waits)


def application(model: Model, settings: Settings) -> Starlette:
    """An ASGI application that serves a model; see :func:`grammarspec.server.serve`.

    Args:
        model: the model to serve. While the application runs, nothing else may use the model.
        settings: the name of the model, limits and bounds.
    """
    server = _Server(model, settings)

    @asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncIterator[None]:
        server.engine.start()
        try:
            yield
        finally:
            await asyncio.to_thread(server.close)

    routes = [
        Route("/v1/chat/completions", server.chat, methods=["POST"]),
        Route("/v1/completions", server.completion, methods=["POST"]),
        Route("/v1/models", server.models),
        Route("/v1/models/{name:path}", server.model),
        Route("/health", server.health),
        Route("/metrics", server.metrics_page),
    ]
    handlers: dict[Any, Any] = {404: _no_such_page, 405: _no_such_method}
    return Starlette(routes=routes, lifespan=lifespan, exception_handlers=handlers)


async def _no_such_page(request: Request, error: Any) -> Response:
    return _error(Refused(f"{request.url.path} does not exist on this server", code="not_found", status=404))


async def _no_such_method(request: Request, error: Any) -> Response:
    allowed = error.headers["Allow"]
    text = f"{request.url.path} takes {allowed}, not {request.method}"
    return _error(Refused(text, code="method_not_allowed", status=405), {"Allow": allowed})


class _Server:
    def __init__(self, model: Model, settings: Settings) -> None:
        self._settings, self._vocabulary = settings, model.vocabulary
        self._preparer = Preparer(model, settings)
        self._new = ThreadPoolExecutor(_THREADS, "grammarspec-grammars")
        self._brief = ThreadPoolExecutor(_THREADS, "grammarspec-brief")  # nobody waits here for another's new grammar
        batch = RunningBatch(model.model, model.vocabulary, proposers=model.proposers, gamma=model.gamma)
        self.engine = Engine(batch, settings.max_batch)
        self._open: set[_Open] = set()
        self._arriving = 0  # the bytes of bodies that have arrived in part
        self._metrics = Metrics(
            Gauges(
                lambda: self.engine.running,
                self._waiting,
                lambda: batch.rounds,
                lambda: dict(batch.phase_seconds),
                self._preparer.cache.stats,
            )
        )
        self._started = int(time.time())

    def _waiting(self) -> int:
        """The number of requests that are being prepared, or wait for room in the batch."""
        return sum(one.waits for one in self._open)

    def close(self) -> None:
        """Cancel running requests, and end the threads."""
        self.engine.close()
        for pool in (self._new, self._brief):
            pool.shutdown(cancel_futures=True)
        self._preparer.cache.close()

    # ------------------------------------------------------------------ routes
    async def chat(self, request: Request) -> Response:
        return await self._answered(request, "chat", bodies.chat)

    async def completion(self, request: Request) -> Response:
        return await self._answered(request, "completions", bodies.completion)

    async def models(self, request: Request) -> Response:
        if refused := self._unauthorised(request):
            return refused
        return JSONResponse({"object": "list", "data": [self._model_card()]})

    async def model(self, request: Request) -> Response:
        if refused := self._unauthorised(request):
            return refused
        if request.path_params["name"] != self._settings.name:
            text = f"the model does not exist; this server serves {self._settings.name!r}"
            return _error(Refused(text, "model", "model_not_found", 404))
        return JSONResponse(self._model_card())

    async def health(self, _request: Request) -> Response:
        alive = self.engine.alive
        return JSONResponse({"status": "ok" if alive else "the engine has stopped"}, 200 if alive else 503)

    async def metrics_page(self, _request: Request) -> Response:
        return Response(self._metrics.page(), media_type="text/plain; version=0.0.4")

    def _model_card(self) -> dict[str, Any]:
        return {"id": self._settings.name, "object": "model", "created": self._started, "owned_by": "grammarspec"}

    def _unauthorised(self, request: Request) -> Response | None:
        """The response to a request without the right API key; ``None`` if the request has the key."""
        key = self._settings.api_key
        given = request.headers.get("authorization", "")
        if key is None or hmac.compare_digest(given.encode(), f"Bearer {key}".encode()):
            return None
        refused = Refused("the API key is missing or wrong", code="invalid_api_key", status=401)
        return _error(refused, {"WWW-Authenticate": "Bearer"})

    # ------------------------------------------------------------------ answering
    async def _answered(self, request: Request, endpoint: str, read: Callable[..., bodies.Asked]) -> Response:
        """The response to a request of any kind, an error included. Counts the request in the metrics."""
        begin, opened = time.perf_counter(), _Open()

        def end(status: int) -> None:
            if opened in self._open:
                self._open.remove(opened)
                self._metrics.answered(endpoint, status, time.perf_counter() - begin)
                if status == _LEFT:
                    self._metrics.left()

        self._open.add(opened)
        response: Response | None = None
        try:
            response = self._unauthorised(request)
            if response is None:
                response = await self._generated(request, endpoint == "chat", read, opened, end, begin)
            return response
        except (_Left, ClientDisconnect):
            end(_LEFT)
            return Response(status_code=_LEFT)
        except asyncio.CancelledError:
            end(503)
            raise
        except Exception as error:
            refused_ = refusal_of(error)
            if refused_.status >= 500:
                _LOG.error("a request has failed", exc_info=error)
            response = _error(refused_)
            return response
        finally:  # a stream ends itself; whatever else happens here, the request waits no longer
            if not isinstance(response, _EventStream):
                end(500 if response is None else response.status_code)

    async def _generated(
        self,
        request: Request,
        chat: bool,
        read: Callable[..., bodies.Asked],
        opened: _Open,
        end: Callable[[int], None],
        begin: float,
    ) -> Response:
        if not self.engine.alive:
            raise Refused("the server is shutting down", code="shutting_down", status=503)
        data = await self._body(request)
        opened.arrived = True
        if self._waiting() > self._settings.max_waiting:
            raise _full(f"the queue is full: {self._settings.max_waiting} requests are waiting already")
        asked = read(bodies.parsed(data), self._settings, self._vocabulary.special_tokens)
        works = await _unless_left(request, self._prepared(asked, chat, len(data)))
        self._metrics.prepared(time.perf_counter() - begin)
        opened.texts = texts = Texts(self.engine, works, self._metrics, self._brief)
        tokens = sum(len(work.request.prompt) for work in works)
        form = Form(asked, chat, self._settings.name, self._vocabulary, tokens)
        texts.start()
        if asked.stream:
            return await self._streamed(request, texts, form, end)
        try:
            ended = await _unless_left(request, _collected(texts))
        finally:
            texts.stop()
        return JSONResponse(form.whole(ended))

    async def _streamed(self, request: Request, texts: Texts, form: Form, end: Callable[[int], None]) -> Response:
        """A stream, once its first event is there: a request that fails before is answered with an error status."""
        events = texts.events()
        try:
            first = await _unless_left(request, anext(events))
        except BaseException:
            texts.stop()
            raise

        async def all_events() -> AsyncIterator[Piece | Ended]:
            yield first
            async for event in events:
                yield event

        count = form.asked.n * len(form.asked.prompts)
        return _EventStream(form.stream(all_events(), count), texts.stop, end)

    async def _prepared(self, asked: bodies.Asked, chat: bool, size: int) -> list[Work]:
        """Prepare a request, whose body has ``size`` bytes, in a thread; if this is cancelled, the front-end stops."""
        cancel = CancelToken()

        def prepare() -> list[Work]:
            return self._preparer.prepare(asked, cancel, chat=chat)

        pool = self._brief if size <= _BRIEF and self._preparer.is_known(asked) else self._new
        try:
            return await asyncio.get_running_loop().run_in_executor(pool, prepare)
        except asyncio.CancelledError:
            cancel.cancel()
            raise

    async def _body(self, request: Request) -> bytes:
        """The body of a request.

        Raises:
            Refused: the body is too long or arrives too slowly, its content type is not JSON, or so many bodies are
                arriving that they would take more memory than those of all requests that may wait.
        """
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind != "application/json":  # browsers ask before pages of other sites may send this type (CORS)
            raise Refused("the content type must be application/json", code="unsupported_media_type", status=415)
        most, read = self._settings.max_body, bytearray()

        async def gather() -> None:
            async for chunk in request.stream():
                read.extend(chunk)
                self._arriving += len(chunk)
                if len(read) > most:
                    break
                if self._arriving > most * (self._settings.max_waiting + 1):
                    raise _full("too many bodies are arriving")

        try:
            await asyncio.wait_for(gather(), self._settings.body_timeout)
        except TimeoutError:
            raise Refused("the body did not arrive in time", code="timeout", status=408) from None
        finally:
            self._arriving -= len(read)
        if len(read) > most:
            text = f"the body has more than {most} bytes, the limit of this server"
            raise Refused(text, code="body_too_large", status=413, headers={"Connection": "close"})
        return bytes(read)


def _full(text: str) -> Refused:
    return Refused(text, code="queue_full", status=429, headers={"Retry-After": "1"})


async def _collected(texts: Texts) -> list[Ended]:
    async with aclosing(texts.events()) as events:  # type: ignore[type-var]
        return [event async for event in events if isinstance(event, Ended)]


async def _unless_left(request: Request, work: Awaitable[T]) -> T:
    """The result of some work, which is cancelled if the client disconnects.

    Raises:
        _Left: the client has disconnected.
    """
    task, watcher = asyncio.ensure_future(work), asyncio.ensure_future(_leaving(request.receive))
    try:
        await asyncio.wait({task, watcher}, return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            raise _Left
        return task.result()
    finally:
        for one in (task, watcher):
            one.cancel()
            with suppress(asyncio.CancelledError, Exception):
                await one


async def _leaving(receive: Receive) -> None:
    """Wait until the client disconnects."""
    while (await receive())["type"] != "http.disconnect":
        pass


def _error(refused: Refused, headers: dict[str, str] | None = None) -> Response:
    # in ASCII, since what a client wrote may hold lone surrogates, which have no bytes
    body = json.dumps(refused.body).encode()
    headers = {**refused.headers, **(headers or {})}
    return Response(body, refused.status, headers=headers, media_type="application/json")


class _EventStream(Response):
    """A response of server-sent events, which ends when the client disconnects.

    Args:
        pieces: the events.
        stop: called at the end of the response, whatever ended it; cancels the texts that have not ended.
        end: called with the status for the metrics.
    """

    def __init__(self, pieces: AsyncIterator[bytes], stop: Callable[[], None], end: Callable[[int], None]) -> None:
        super().__init__(media_type="text/event-stream", headers={"Cache-Control": "no-store"})
        del self.headers["content-length"]
        self._pieces, self._stop, self._end = pieces, stop, end

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def write() -> None:
            await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
            async for piece in self._pieces:
                await send({"type": "http.response.body", "body": piece, "more_body": True})
            await send({"type": "http.response.body", "body": b"", "more_body": False})

        writer, watcher = asyncio.ensure_future(write()), asyncio.ensure_future(_leaving(receive))
        status = _LEFT
        try:
            await asyncio.wait({writer, watcher}, return_when=asyncio.FIRST_COMPLETED)
            if writer.done():
                writer.result()
                status = 200
        except OSError:
            pass  # the client has disconnected
        finally:
            for task in (writer, watcher):
                task.cancel()
                with suppress(asyncio.CancelledError, Exception):
                    await task
            self._stop()
            self._end(status)
