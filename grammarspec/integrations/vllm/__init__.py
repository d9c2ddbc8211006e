"""grammarspec inside vLLM: ``vllm serve MODEL --structured-outputs-config.backend grammarspec``.

vLLM has no registry of backends for structured outputs; their names are part of its code. Therefore the functions in
which the names occur are wrapped (:mod:`.patches`), after a check that each has the expected parameters
(:mod:`.expected`). The backend is in :mod:`.backend`, the translation of a client's request in :mod:`.requests`, and
the settings are in :mod:`.settings`. ``docs/serving.md`` describes how to use it.
"""

from __future__ import annotations

import logging

from grammarspec.imports import importing
from grammarspec.integrations.vllm.expected import check
from grammarspec.integrations.vllm.settings import NAME, Settings

__all__ = ["Settings", "plugin", "register"]

_LOG = logging.getLogger("vllm.grammarspec")
_registered = False


def register(settings: Settings | None = None) -> None:
    """Make ``"grammarspec"`` a backend for structured outputs of vLLM in this process.

    ``vllm serve`` does this by itself (:func:`plugin`). With vLLM's offline API, call this function before
    ``vllm.LLM(model, structured_outputs_config={"backend": "grammarspec"})``. The processes of the engine get the
    settings as environment variables. Calling this function again changes the settings.

    Args:
        settings: limits and bounds; by default those in the environment variables (:class:`.Settings`).

    Raises:
        SettingsError: an environment variable has a wrong value, or one with the prefix of the settings is unknown.
        MissingPackage: vLLM is not installed.
        UnsupportedFeature: the adapter was not made for this version of vLLM, or a function of it is not as expected;
            the message says which. Then no function has been wrapped.
    """
    global _registered  # noqa: PLW0603  # vLLM is patched once in a process
    if settings is not None:
        settings.export()
    Settings.check_environment()
    if not _registered:
        check()
    with importing:
        from grammarspec.integrations.vllm.patches import choose, patch

    choose(Settings.of_environment())
    if not _registered:
        patch()
        _registered = True


def plugin() -> None:
    """The entry point, which vLLM calls in each of its processes, whichever backend is chosen.

    It calls :func:`register`, and logs an error instead of raising it. So a release of vLLM for which the adapter was
    not made still works, and only refuses the name of the backend.
    """
    try:
        register()
    except Exception as error:
        _LOG.warning("the backend %r for structured outputs is not available: %s", NAME, error)
