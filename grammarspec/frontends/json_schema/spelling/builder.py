"""The grammar builder of a schema: one that can be asked about a node, and spell characters in ASCII.

It is :class:`~grammarspec.grammars.builder.GrammarBuilder` with what only the JSON Schema front-end needs.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Self

from grammarspec.errors import GrammarError, Unsatisfiable
from grammarspec.frontends.json_schema.spelling.unicode_escapes import escape_nodes
from grammarspec.frontends.regex.charsets import normalise
from grammarspec.grammars.builder import GrammarBuilder
from grammarspec.grammars.engine import over_bytes

__all__ = ["CHAIN", "AsciiBuilder", "SchemaBuilder"]

CHAIN: Final = 64
"""Members or items after which the rest of an object or array becomes a rule (see :meth:`SchemaBuilder.cut`)."""


class SchemaBuilder(GrammarBuilder):
    """A builder that counts zero-width nodes.

    Attributes:
        looks: how many zero-width nodes have been made. A pattern that made some looks at the text around it, so it
            must be a terminal of its own.
    """

    __slots__ = ("looks",)

    def __init__(self) -> None:
        self.looks = 0
        super().__init__()

    def ahead(self, node: int) -> int:
        self.looks += 1
        return super().ahead(node)

    def behind(self, node: int) -> int:
        self.looks += 1
        return super().behind(node)

    def cut(self, node: int, kinds: int = 0) -> int:
        """The same language through a rule, so that expressions that hold it nest less deeply."""
        rule = self.rule("rest", kinds)
        self.define(rule, node)
        return self.call(rule)

    def is_barren(self, node: int) -> bool:
        """Whether the compiler finds that no text belongs to a node. It is slow: it compiles the node.

        Rules that are not defined yet are taken to be the empty text. ``False`` where the compiler cannot tell.
        """
        part = self.copy()
        part.define_others(part.empty)
        try:
            over_bytes(part.build(node))
        except Unsatisfiable:
            return True
        except GrammarError:
            return False
        return False

    def copy(self) -> Self:
        new = super().copy()
        new.looks = self.looks
        return new


class AsciiBuilder(SchemaBuilder):
    """A builder of texts in ASCII: within strings, all other characters are spelled as ``\\u`` escapes."""

    __slots__ = ("_spelled",)

    def __init__(self) -> None:
        self._spelled: dict[tuple[tuple[int, int], ...], int] = {}
        super().__init__()

    def codepoints(self, ranges: Iterable[tuple[int, int]]) -> int:
        key = normalise(ranges)
        node = self._spelled.get(key)
        if node is None:
            plain, nodes = escape_nodes(self, key)
            if plain or not nodes:
                nodes.insert(0, super().codepoints(plain))
            node = self._spelled[key] = self.alt(*nodes)
        return node

    def copy(self) -> Self:
        new = super().copy()
        new._spelled = self._spelled.copy()
        return new
