"""The start of every schema's grammar, made once: strings, numbers, punctuation, any value.

Two thirds of the nodes of a usual schema are the same in all schemas. Copying them takes a tenth of the time of making
them.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from functools import lru_cache

from grammarspec.errors import GrammarError, Unsatisfiable
from grammarspec.frontends.json_schema.spelling.escaped import escaped
from grammarspec.frontends.json_schema.spelling.json_text import JsonText
from grammarspec.frontends.json_schema.spelling.spelling import Spelling
from grammarspec.frontends.regex.charsets import normalise
from grammarspec.grammars.builder import UNBOUNDED, GrammarBuilder

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

    def is_barren(self, node: int) -> bool:
        """Whether the compiler finds no text for a node, rules that are not defined yet aside. It is slow."""
        from grammarspec.constraint import compile
        from grammarspec.grammars.expressions import Grammar
        from grammarspec.vocabulary import Vocabulary

        part = self.copy()
        part._rules = array("I", [self.empty if body == UNBOUNDED else body for body in self._rules])
        try:
            compile(
                Grammar(part.build(node)),
                Vocabulary.from_tokens([*(bytes([byte]) for byte in range(256)), None], [256]),
            )
        except Unsatisfiable:
            return True
        except GrammarError:
            return False
        return False

    def copy(self) -> SchemaBuilder:
        """A builder of its own that continues from here."""
        new = self.__new__(type(self))
        new._ops, new._rules = self._ops[:], self._rules[:]
        new._blob, new._size = self._blob[:], self._size
        new._names, new._kinds = self._names[:], self._kinds[:]
        new._literals, new._codepoints = self._literals.copy(), self._codepoints.copy()
        new.nothing, new.empty, new.anything, new.looks = self.nothing, self.empty, self.anything, self.looks
        return new


class AsciiBuilder(SchemaBuilder):
    """A builder for text in ASCII: in strings, all other characters are spelled as ``\\u`` escapes."""

    __slots__ = ("_spelled",)

    def __init__(self) -> None:
        self._spelled: dict[tuple[tuple[int, int], ...], int] = {}
        super().__init__()

    def codepoints(self, ranges: Iterable[tuple[int, int]]) -> int:
        key = normalise(ranges)
        node = self._spelled.get(key)
        if node is None:
            plain, nodes = escaped(self, key)
            if plain or not nodes:
                nodes.insert(0, super().codepoints(plain))
            node = self._spelled[key] = self.alt(*nodes)
        return node

    def copy(self) -> AsciiBuilder:
        new = super().copy()
        assert isinstance(new, AsciiBuilder)
        new._spelled = self._spelled.copy()
        return new


@lru_cache(maxsize=32)
def _prototype(spelling: Spelling) -> tuple[SchemaBuilder, JsonText]:
    builder = AsciiBuilder() if spelling.ascii else SchemaBuilder()
    text = JsonText(builder, spelling)
    text.make_common()
    return builder, text


def prelude(spelling: Spelling) -> tuple[SchemaBuilder, JsonText]:
    """A new builder with the common nodes, and what they are."""
    builder, text = _prototype(spelling)
    own = builder.copy()
    return own, text.over(own)
