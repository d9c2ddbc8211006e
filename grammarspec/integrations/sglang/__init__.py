"""grammarspec inside SGLang: ``python -m sglang.launch_server --model-path MODEL --grammar-backend grammarspec``.

SGLang has a registry of such backends and entry points for plugins, so nothing is patched. The backend is in
:mod:`.backend`, the grammar of one sequence in :mod:`.grammar`, what of SGLang is relied upon in :mod:`.expected`, and
what can be set in :mod:`.settings`. ``docs/serving.md`` says how to use it.
"""

from __future__ import annotations

import logging

from grammarspec.integrations.sglang.backend import register_backend
from grammarspec.integrations.sglang.expected import check
from grammarspec.integrations.sglang.settings import NAME, Settings

__all__ = ["Settings", "plugin", "register"]

_LOG = logging.getLogger("sglang.grammarspec")


def register(settings: Settings | None = None) -> None:
    """Make ``"grammarspec"`` a grammar backend of SGLang in this process; SGLang's server does so by itself.

    Args:
        settings: limits and bounds; those of the environment if not given (:class:`.Settings`).

    Raises:
        MissingPackage: SGLang is not installed.
        UnsupportedFeature: this version of SGLang is none that the adapter knows, or something in it is not as
            expected; the message names it. Nothing has been changed then.
    """
    if settings is not None:
        settings.export()
    check()
    register_backend()


def plugin() -> None:
    """What SGLang calls in each of its processes, whatever backend is chosen: :func:`register`, but an error is logged.

    So a release of SGLang that the adapter does not know goes on without it, and refuses its name.
    """
    try:
        register()
    except Exception as error:
        _LOG.warning("the grammar backend %r is not available: %s", NAME, error)
