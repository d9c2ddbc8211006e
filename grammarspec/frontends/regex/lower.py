"""From the syntax tree to the builder's nodes, over any spelling of characters."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence as SequenceOf
from itertools import accumulate
from operator import and_

from grammarspec.frontends.regex.behind import looks_ahead
from grammarspec.frontends.regex.charsets import ALL, Ranges, single, union
from grammarspec.frontends.regex.facts import BORDER, FactTable
from grammarspec.frontends.regex.simplify import pad_left, pad_right, simplify
from grammarspec.frontends.regex.tree import (
    ANY_SUFFIX,
    ANY_TEXT,
    Alternation,
    AnyText,
    Assured,
    Chars,
    End,
    Node,
    Repeat,
    Rest,
    Sequence,
    Start,
    Text,
)
from grammarspec.grammars.builder import GrammarBuilder

__all__ = ["Alphabet", "PlainText", "lower", "lower_search"]


class Alphabet(ABC):
    """How characters are spelled in the output: as they are, or escaped in a JSON string, say.

    A character may have several spellings; then :meth:`codepoints` has all of them, as has ``any_text``.
    """

    builder: GrammarBuilder

    @property
    @abstractmethod
    def any_text(self) -> int:
        """Any text in this spelling, the empty one included."""

    @property
    def any_prefix(self) -> int:
        """As ``any_text``, for where the text is known to be valid, and only the borders of characters matter.

        Spellings that can be told from any position (UTF-8 is one) may answer ``builder.anything``.
        """
        return self.any_text

    @abstractmethod
    def codepoints(self, ranges: Ranges) -> int:
        """One character of the set."""

    def text(self, text: str) -> int:
        """These characters, one after the other."""
        return self.builder.seq(*(self.codepoints(single(ord(char))) for char in text))

    def words(self, texts: SequenceOf[str]) -> int:
        """Any one of these texts."""
        return self.builder.alt(*(self.text(text) for text in texts))


class PlainText(Alphabet):
    """Characters as they are, in UTF-8."""

    __slots__ = ("_any_text", "builder")

    def __init__(self, builder: GrammarBuilder) -> None:
        self.builder = builder
        self._any_text: int | None = None

    @property
    def any_text(self) -> int:
        if self._any_text is None:
            self._any_text = self.builder.repeat(self.builder.codepoints(ALL), 0, None)
        return self._any_text

    @property
    def any_prefix(self) -> int:
        return self.builder.anything

    def codepoints(self, ranges: Ranges) -> int:
        return self.builder.codepoints(ranges)

    def text(self, text: str) -> int:
        return self.builder.literal(text)

    def words(self, texts: SequenceOf[str]) -> int:
        return self.builder.words(texts)


def lower(node: Node, builder: GrammarBuilder, alphabet: Alphabet) -> int:
    """The texts that the pattern matches as a whole (``re.fullmatch``), as a regular node.

    Assertions refer to the terminal around that node: it must be (or be alone in) a ``terminal``.
    """
    table = FactTable()
    return _Lowering(builder, alphabet, table).node(simplify(node, BORDER, BORDER, table), True, True)


def lower_search(node: Node, builder: GrammarBuilder, alphabet: Alphabet, *, assured: bool = False) -> int:
    """The texts in which the pattern is found somewhere (``re.search``), as a regular node; see :func:`lower`.

    ``assured``: something else sees to it that the text is valid, so that the node need not, once it is found. Then
    nothing is left to ask, in an intersection or in its complement.
    """
    return lower(pad_left(pad_right(node, ANY_SUFFIX if assured else ANY_TEXT)), builder, alphabet)


class _Lowering:
    """Lowers simplified trees.

    The flags ``first`` and ``final`` that go down with a node say that wherever it matches, it begins at the start
    (ends at the end) of the whole text. There, a lookaround is an intersection with what follows (precedes) it, which
    is far cheaper to run than a zero-width node.
    """

    def __init__(self, builder: GrammarBuilder, alphabet: Alphabet, table: FactTable) -> None:
        self.builder, self.alphabet, self.table = builder, alphabet, table
        self.lowered: dict[int, int] = {}

    def node(self, node: Node, first: bool, final: bool) -> int:
        """The builder's node. What holds no assertion is lowered once, however often the tree shares it."""
        known = self.lowered.get(id(node))
        if known is None:
            known = self.new_node(node, first, final)
            if not node.asserts:
                self.lowered[id(node)] = known
        return known

    def new_node(self, node: Node, first: bool, final: bool) -> int:
        builder = self.builder
        match node:
            case Text(text):
                return self.alphabet.text(text)
            case Chars(ranges):
                return self.alphabet.codepoints(ranges) if ranges else builder.nothing
            case Sequence(parts):
                return self.sequence(parts, first, final)
            case Alternation(branches):
                return self.alternation(branches, first, final)
            case Repeat(body, 0, 1):
                return builder.optional(self.node(body, first, final))
            case Repeat(body, least, most):
                return builder.repeat(self.node(body, False, False), least, most)
            case Rest(ahead=ahead):
                restriction = self.restriction(node, first, final)
                return builder.ahead(restriction) if ahead else builder.behind(restriction)
            case Start():
                return builder.behind(builder.empty)
            case End():
                return builder.ahead(builder.empty)
            case AnyText(assured):
                if assured is Assured.SUFFIX:
                    return builder.anything
                return self.alphabet.any_prefix if assured is Assured.PREFIX else self.alphabet.any_text
        raise AssertionError(f"{type(node).__name__} is left after simplification")

    def restriction(self, rest: Rest, first: bool, final: bool) -> int:
        """What the rest of the text must belong to. That the text is valid is for the pattern around to see to.

        So once a lookaround's own pattern is decided, nothing of it is left to follow.
        """
        inner = self.node(rest.body, first or not rest.ahead, final or rest.ahead)
        return self.builder.complement(inner) if rest.negative else inner

    def sequence(self, parts: tuple[Node, ...], first: bool, final: bool) -> int:
        builder, table = self.builder, self.table
        if not any(part.asserts for part in parts):
            return builder.seq(*(self.node(part, False, False) for part in parts)) if parts else builder.empty
        widthless = [table.of(part).zero_width for part in parts]
        firsts = accumulate(widthless[:-1], and_, initial=first)
        finals = reversed(list(accumulate(reversed(widthless[1:]), and_, initial=final)))
        placed = list(zip(parts, firsts, finals, strict=True))
        cut = next((k for k, part in enumerate(parts) if final and isinstance(part, Rest) and part.ahead), len(parts))

        head: list[int] = []
        for k, (part, at_start, at_end) in enumerate(placed[:cut]):
            # an intersection ends here, and what looks ahead inside it would see no further
            closed = not any(map(looks_ahead, parts[:k]))
            if first and closed and isinstance(part, Rest) and not part.ahead:
                head = [builder.both(self.restriction(part, at_start, at_end), builder.seq(*head))]
            else:
                head.append(self.node(part, at_start, at_end))
        tail: list[int] = []
        for part, at_start, at_end in reversed(placed[cut:]):
            if isinstance(part, Rest) and part.ahead:
                tail = [builder.both(self.restriction(part, at_start, at_end), builder.seq(*tail))]
            else:
                tail.insert(0, self.node(part, at_start, at_end))
        return builder.seq(*head, *tail)

    def alternation(self, branches: tuple[Node, ...], first: bool, final: bool) -> int:
        """Characters join into one class and texts into one set of words; only the rest are branches."""
        classes: list[Ranges] = []
        texts: list[str] = []
        nodes: list[int] = []
        for branch in branches:
            if isinstance(branch, Chars):
                classes.append(branch.ranges)
            elif isinstance(branch, Text) and len(branch.text) == 1:
                classes.append(single(ord(branch.text)))
            elif isinstance(branch, Text):
                texts.append(branch.text)
            else:
                nodes.append(self.node(branch, first, final))
        if classes:
            nodes.append(self.new_node(Chars(union(*classes)), first, final))
        if texts:
            nodes.append(self.alphabet.words(texts) if len(texts) > 1 else self.alphabet.text(texts[0]))
        return self.builder.alt(*nodes)
