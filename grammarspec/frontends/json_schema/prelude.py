"""The start of every schema's grammar, made once: strings, numbers, punctuation, any value.

Two thirds of the nodes of a usual schema are the same in all schemas. Copying them takes a tenth of the time of making
them.
"""

from __future__ import annotations

from functools import cache

from grammarspec.builder import GrammarBuilder
from grammarspec.frontends.json_schema.json_text import JsonText

__all__ = ["CHAIN", "SchemaBuilder", "prelude"]

CHAIN = 64
"""Members or items after which the rest of an object or array becomes a rule (see :meth:`SchemaBuilder.cut`)."""


class SchemaBuilder(GrammarBuilder):
    """A builder that can be copied, and that counts zero-width nodes.

    A pattern that made some looks at the text around it, so it must be a terminal of its own.
    """

    __slots__ = ("looks",)

    def __init__(self) -> None:
        self.looks = 0
        super().__init__()

    @property
    def size(self) -> int:
        """How much has been described so far, in integers that go to the compiler."""
        return len(self._ops)

    def ahead(self, node: int) -> int:
        self.looks += 1
        return super().ahead(node)

    def behind(self, node: int) -> int:
        self.looks += 1
        return super().behind(node)

    def cut(self, node: int, kinds: int = 0) -> int:
        """The same language through a rule, so that what it is part of nests less deeply."""
        rule = self.rule("rest", kinds)
        self.define(rule, node)
        return self.call(rule)

    def copy(self) -> SchemaBuilder:
        """A builder of its own that continues from here."""
        new = SchemaBuilder.__new__(SchemaBuilder)
        new._ops, new._rules = self._ops[:], self._rules[:]
        new._blob, new._size = self._blob[:], self._size
        new._names, new._kinds = self._names[:], self._kinds[:]
        new._literals, new._codepoints = self._literals.copy(), self._codepoints.copy()
        new.nothing, new.empty, new.anything, new.looks = self.nothing, self.empty, self.anything, self.looks
        return new


@cache
def _prototype(compact: bool) -> tuple[SchemaBuilder, JsonText]:
    builder = SchemaBuilder()
    text = JsonText(builder, compact=compact)
    text.make_common()
    return builder, text


def prelude(*, compact: bool) -> tuple[SchemaBuilder, JsonText]:
    """A new builder with the common nodes, and what they are."""
    builder, text = _prototype(compact)
    own = builder.copy()
    return own, text.over(own)
