"""The named groups of a pattern, as captures of the texts that match it.

Which texts match is decided by the engine. What the groups of a text are is left to Python's own :mod:`re`: there, they
depend on the order in which ways of matching are tried, and ``re`` is what defines that order.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping
from dataclasses import dataclass

from grammarspec.errors import UnsupportedFeature
from grammarspec.frontends.regex.python import PythonParser
from grammarspec.positions import where

__all__ = ["NamedGroups", "named_groups"]


@dataclass(frozen=True)
class NamedGroups:
    """Captures the named groups of a pattern; one that takes no part in a match is missing."""

    pattern: re.Pattern[str]

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the groups."""
        return tuple(self.pattern.groupindex)

    def __call__(self, text: str) -> Mapping[str, str]:
        """The groups of a text that matches as a whole."""
        found = self.pattern.fullmatch(text)
        assert found is not None, "the engine has matched the text by the same pattern"
        return {name: group for name, group in found.groupdict().items() if group is not None}


def named_groups(pattern: str, flags: int) -> NamedGroups | None:
    """The named groups of a pattern in Python's syntax, which has been read without an error; ``None``: it has none.

    Raises:
        UnsupportedFeature: it has some, and uses what ``re`` does not know (``\\p{...}``, lookbehinds of any width).
    """
    if "(?P<" not in pattern:
        return None
    parser = PythonParser(pattern, flags)
    parser.parse()
    if not parser.names:
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # re warns of what may mean something else in the future
            return NamedGroups(re.compile(pattern, flags))
    except (re.error, OverflowError, RecursionError) as error:
        name = next(iter(parser.names))
        raise UnsupportedFeature(
            f"the named group {name} in a pattern that Python's re does not take ({error})",
            where(pattern, pattern.find(f"(?P<{name}>")),
            "leave the name out, or build the pattern of several grammars and name these by .named()",
        ) from None
