"""Primitives as grammars, ``gs.types``: the public face of :mod:`grammarspec.frontends.types.texts`."""

from grammarspec.frontends.types.texts import *  # noqa: F403
from grammarspec.frontends.types.texts import __all__ as __all__  # noqa: PLC0414  # re-exported
