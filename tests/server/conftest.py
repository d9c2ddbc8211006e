"""A server in a thread, on a free port."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import grammarspec as gs

pytest.importorskip("transformers")
pytest.importorskip("openai")
pytest.importorskip("starlette")
uvicorn = pytest.importorskip("uvicorn")

from grammarspec.server import Settings, application  # noqa: E402


@dataclass(frozen=True)
class Running:
    """A server that runs.

    Attributes:
        url: where it listens.
    """

    url: str

    def client(self, **options: Any) -> Any:
        """A client of OpenAI's."""
        import openai

        return openai.OpenAI(base_url=f"{self.url}/v1", **{"api_key": "none", "max_retries": 0, **options})

    def post(self, body: Any, path: str = "/v1/chat/completions", **options: Any) -> Any:
        """The response to a body, as it is."""
        import httpx

        sent = {"content": body} if isinstance(body, bytes) else {"json": body}
        headers = {"content-type": "application/json", **options.pop("headers", {})}
        return httpx.post(f"{self.url}{path}", headers=headers, timeout=60, **sent, **options)

    def metrics(self) -> dict[str, float]:
        """Its metrics, by name and labels."""
        import httpx

        lines = httpx.get(f"{self.url}/metrics").text.splitlines()
        return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines if line[:1] != "#")}

    def wait_for(self, name: str, value: float) -> None:
        """Wait until a metric has a value."""
        until = time.monotonic() + 30
        while self.metrics().get(name, 0.0) != value:
            assert time.monotonic() < until, (name, self.metrics().get(name))
            time.sleep(0.02)


@contextmanager
def serving(model: gs.Model, **settings: Any) -> Iterator[Running]:
    """Serve a model while the block runs."""
    app = application(model, Settings(**{"name": "tiny", **settings}))
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="warning", timeout_graceful_shutdown=5))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    try:
        until = time.monotonic() + 30
        while not server.started:
            assert thread.is_alive() and time.monotonic() < until
            time.sleep(0.01)
        yield Running(f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}")
    finally:
        server.should_exit = True
        thread.join(30)
    assert not thread.is_alive()


@pytest.fixture(scope="session")
def tiny_model(tiny_model_directory: Path) -> gs.Model:
    """The tests' tiny model, with room for prompts that tell of tools."""
    model = gs.Model.from_pretrained(tiny_model_directory)
    model.model.config.max_position_embeddings = 4096
    return model


@pytest.fixture(scope="session")
def tiny(tiny_model: gs.Model) -> Iterator[Running]:
    """It, served."""
    with serving(tiny_model) as running:
        yield running
