"""A server for one machine with OpenAI's HTTP interface: it serves one model to any client of that interface.

The body of a request is parsed, and every field that is not supported is refused (:mod:`.bodies`, :mod:`.fields`). The
prompt is rendered and the grammar compiled in worker threads (:mod:`.prepared`). The request then joins the batch of
the one thread that runs the model (:mod:`.engine`), and the generated texts become responses (:mod:`.answers`). The
routes are in :mod:`.app`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from grammarspec.errors import needed_by

if TYPE_CHECKING:
    from grammarspec.models.model import Model

with needed_by("the server"):
    import prometheus_client as _prometheus_client  # noqa: F401
    import uvicorn

    from grammarspec.server.app import application
    from grammarspec.server.settings import Settings
    from grammarspec.serving.bounds import check_whole

__all__ = ["Settings", "application", "serve"]


def serve(model: Model, settings: Settings, *, host: str = "127.0.0.1", port: int = 8000, grace: int = 30) -> None:
    """Serve a model until the process is interrupted.

    Args:
        model: the model to serve.
        settings: the name of the model, limits and bounds.
        host, port: the address to listen on; with port 0, the operating system chooses a free port.
        grace: when the server is told to stop, running requests may take this many seconds to finish; then they are
            cancelled.

    Raises:
        TypeError, ValueError: ``port`` or ``grace`` is not a whole number, or out of range.
        SystemExit: the address cannot be used.
    """
    check_whole("port", port, 0)
    check_whole("grace", grace, 0)
    if port >= 1 << 16:
        raise ValueError(f"port must be at most 65535, not {port}")
    app = application(model, settings)
    config = uvicorn.Config(app, host=host, port=port, timeout_graceful_shutdown=grace, log_level="info")
    uvicorn.Server(config).run()
