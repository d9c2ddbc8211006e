"""How symbols are called in reports: by their names; strings and expressions within rules, as they are written."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from grammarspec.frontends.lark.loader import Source

__all__ = ["END", "Names"]

END = "the end of the text"


class Names:
    """The names of a grammar's symbols."""

    def __init__(self, source: Source, definitions: Iterable[Any] = ()) -> None:
        """Make the names.

        Args:
            definitions: lark's records of terminals.
        """
        self.defined = source.terminals
        self.definitions = {one.name: one for one in definitions}

    def of(self, name: str) -> str:
        """What a rule or terminal is called."""
        definition = self.definitions.get(name)
        if name == "$END":
            return END
        return name if definition is None or name in self.defined else definition.pattern.raw or name
