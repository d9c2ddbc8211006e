"""grammarspec inside SGLang: ``python -m sglang.launch_server --model-path MODEL --grammar-backend grammarspec``.

SGLang has a registry of grammar backends, and entry points for plugins, so no function of it is replaced. The backend
is in :mod:`.backend`, the grammar of one sequence in :mod:`.grammar`, the list of names of SGLang that are used in
:mod:`.expected`, and the settings in :mod:`.settings`. ``docs/serving.md`` describes how to use it.
"""

from __future__ import annotations

import logging

from grammarspec.integrations.sglang.backend import register_backend
from grammarspec.integrations.sglang.expected import check
from grammarspec.integrations.sglang.settings import NAME, Settings

__all__ = ["Settings", "plugin", "register"]

_LOG = logging.getLogger("sglang.grammarspec")


def register(settings: Settings | None = None) -> None:
    """Register ``"grammarspec"`` as a grammar backend of SGLang in this process; SGLang's server calls :func:`plugin`.

    Args:
        settings: limits and bounds; by default those in the environment variables (:class:`.Settings`).

    Raises:
        SettingsError: an environment variable has a wrong value, or one with the prefix of the settings is unknown.
        MissingPackage: SGLang is not installed.
        UnsupportedFeature: the adapter was not made for this version of SGLang, or a name in it is not as expected; the
            message says which. Then nothing has been registered.
    """
    if settings is not None:
        settings.export()
    Settings.check_environment()
    check()
    register_backend()


def plugin() -> None:
    """The entry point, which SGLang calls in each of its processes, whichever backend is chosen.

    It calls :func:`register`, and logs an error instead of raising it. So a release of SGLang for which the adapter was
    not made still works, and only refuses the name of the backend.
    """
    try:
        register()
    except Exception as error:
        _LOG.warning("the grammar backend %r is not available: %s", NAME, error)
