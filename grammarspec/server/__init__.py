"""A server for one machine, with OpenAI's HTTP interface: a model comes in, and answers any client of OpenAI's.

A request's body is read and each of its fields understood or refused (:mod:`.bodies`, :mod:`.fields`); its prompt is
rendered and its grammar compiled, in threads of their own (:mod:`.prepared`); it joins the batch of the one thread that
owns the model (:mod:`.engine`), and what comes out of it becomes responses (:mod:`.answers`). :mod:`.app`
has the routes.
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

__all__ = ["Settings", "application", "serve"]


def serve(model: Model, settings: Settings, *, host: str = "127.0.0.1", port: int = 8000, grace: int = 30) -> None:
    """Serve a model until the process is interrupted.

    Args:
        model: what is served.
        settings: what the server takes on.
        host, port: where it listens; with port 0, the system chooses one.
        grace: seconds that requests under way have to end when the server is told to stop; then they are cut short.

    Raises:
        SystemExit: the address cannot be used.
    """
    app = application(model, settings)
    config = uvicorn.Config(app, host=host, port=port, timeout_graceful_shutdown=grace, log_level="info")
    uvicorn.Server(config).run()
