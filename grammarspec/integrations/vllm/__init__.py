"""grammarspec inside vLLM: ``vllm serve MODEL --structured-outputs-config.backend grammarspec``.

vLLM has no registry of such backends; their names stand in its code. So the functions that name them are wrapped
(:mod:`.patches`), after each was checked to be as it is expected (:mod:`.expected`). The backend itself is in
:mod:`.backend`, what becomes of a client's request in :mod:`.requests`, and what can be set in :mod:`.settings`.
``docs/serving.md`` says how to use it.
"""

from __future__ import annotations

import logging

from grammarspec.integrations.vllm.expected import check
from grammarspec.integrations.vllm.settings import NAME, Settings

__all__ = ["Settings", "plugin", "register"]

_LOG = logging.getLogger("vllm.grammarspec")
_registered = False


def register(settings: Settings | None = None) -> None:
    """Make ``"grammarspec"`` a backend for structured outputs of vLLM in this process.

    ``vllm serve`` does so by itself. With vLLM's offline API, call this before ``vllm.LLM(model,
    structured_outputs_config={"backend": "grammarspec"})``; the engine's processes are told by their environment.
    Calling it again changes the settings.

    Args:
        settings: limits and bounds; those of the environment if not given (:class:`.Settings`).

    Raises:
        MissingPackage: vLLM is not installed.
        UnsupportedFeature: this version of vLLM is none that the adapter knows, or something in it is not as expected;
            the message names it. Nothing has been changed then.
    """
    global _registered  # noqa: PLW0603  # vLLM is patched once in a process
    if settings is not None:
        settings.export()
    if _registered:
        return
    check()
    from grammarspec.integrations.vllm.patches import patch

    patch()
    _registered = True


def plugin() -> None:
    """What vLLM calls in each of its processes, whatever backend is chosen: :func:`register`, but an error is logged.

    So a release of vLLM that the adapter does not know goes on without it, and refuses its name.
    """
    try:
        register()
    except Exception as error:
        _LOG.warning("the backend %r for structured outputs is not available: %s", NAME, error)
