"""From the syntax tree to the builder's nodes, over an alphabet that says how characters are spelled.

Sequences, alternatives and repetitions are those of the builder. An assertion that is still undecided
(:class:`~.tree.Rest`) is a condition on all the text before or after its position, so it becomes a zero-width node
(``ahead``, ``behind``); where that text is the whole text of the terminal, it becomes an intersection (``both``), which
is far cheaper to run. The compiler runs both by derivatives (J. A. Brzozowski, "Derivatives of Regular Expressions",
1964; for lookaheads T. Miyazaki and Y. Minamide, "Derivatives of Regular Expressions with Lookahead", 2019).
"""

from __future__ import annotations

from itertools import accumulate
from operator import and_, or_

from grammarspec.frontends.regex.alphabet import Alphabet
from grammarspec.frontends.regex.charsets import Ranges, single, union
from grammarspec.frontends.regex.facts import ANYWHERE, BORDER, FactTable
from grammarspec.frontends.regex.lengths import of_lengths
from grammarspec.frontends.regex.lookbehind import looks_ahead
from grammarspec.frontends.regex.simplify import pad_left, pad_right, simplify
from grammarspec.frontends.regex.tree import (
    ANY_SUFFIX,
    ANY_TEXT,
    Alternation,
    AnyText,
    Chars,
    End,
    Node,
    Repeat,
    Rest,
    Sequence,
    Start,
    Text,
    Unchecked,
)
from grammarspec.grammars.builder import GrammarBuilder

__all__ = ["lexeme", "lower", "lower_search", "lower_search_of_lengths"]

_LOWERING = 50  # steps of a node, with what was done to simplify it


def lower(node: Node, builder: GrammarBuilder, alphabet: Alphabet) -> int:
    """The texts that a pattern matches as a whole (``re.fullmatch``), as a regular node.

    The pattern's assertions see the whole text of the terminal around the node, so the caller must make the node (or
    one that holds nothing but it) a ``terminal``.

    Raises:
        LimitExceeded, Cancelled: by the builder's budget.
        RecursionError: the tree is nested too deeply.
    """
    table = FactTable()
    return _Lowering(builder, alphabet, table).node(simplify(node, BORDER, BORDER, table), True, True)


def lexeme(node: Node, builder: GrammarBuilder, alphabet: Alphabet, *, open_end: bool = False) -> int:
    """The texts that a pattern matches as a whole, where its assertions about what follows see the text behind them.

    Returns a lexical unit: a ``terminal``, or a ``lexeme`` if there are such assertions. With ``open_end``, it is the
    regular node that such a lexeme is made of.

    Raises:
        LimitExceeded, Cancelled: by the builder's budget.
        RecursionError: the tree is nested too deeply.
    """
    table = FactTable()
    simple = simplify(node, BORDER, ANYWHERE, table)
    lowered = _Lowering(builder, alphabet, table).node(simple, True, False)
    if open_end:
        return lowered
    return builder.lexeme(lowered) if simple.asserts else builder.terminal(lowered)


def lower_search(node: Node, builder: GrammarBuilder, alphabet: Alphabet, *, unchecked_rest: bool = False) -> int:
    """The texts in which a pattern is found somewhere (``re.search``), as a regular node; see :func:`lower`.

    Args:
        unchecked_rest: after the match, the node takes any bytes, not only valid text. It is for a node, or the
            complement of one, that is intersected with valid text anyway: once the pattern is found, nothing is left
            to check, which is cheaper to run.

    Raises:
        RecursionError: as :func:`lower`.
    """
    return lower(pad_left(pad_right(node, ANY_SUFFIX if unchecked_rest else ANY_TEXT)), builder, alphabet)


def lower_search_of_lengths(
    node: Node, builder: GrammarBuilder, alphabet: Alphabet, lengths: tuple[int, int | None]
) -> int | None:
    """The texts in which a pattern is found somewhere that have so many characters, at least and at most.

    Returns:
        ``None`` if this takes an intersection with the texts of these lengths.

    Raises:
        RecursionError: as :func:`lower`.
    """
    table = FactTable()
    simple = simplify(pad_left(pad_right(node)), BORDER, BORDER, table)
    sized = None if simple.asserts else of_lengths(simple, *lengths, table)
    return None if sized is None else _Lowering(builder, alphabet, table).node(sized, True, True)


class _Lowering:
    """Lowers simplified trees.

    Two flags go down with a node: ``first``, that wherever it matches, it begins at the start of the whole text, and
    ``final``, that it ends at the end of it. There, a lookaround is an intersection with what follows (or precedes) it.
    """

    def __init__(self, builder: GrammarBuilder, alphabet: Alphabet, table: FactTable) -> None:
        self.builder, self.alphabet, self.table = builder, alphabet, table
        self.lowered: dict[int, int] = {}

    def node(self, node: Node, first: bool, final: bool) -> int:
        """The builder's node for a tree's node; one without assertions is lowered once, however often it is shared."""
        known = self.lowered.get(id(node))
        if known is None:
            known = self.new_node(node, first, final)
            if not node.asserts:
                self.lowered[id(node)] = known
        return known

    def new_node(self, node: Node, first: bool, final: bool) -> int:
        """A new node of the builder; see :meth:`node`."""
        builder = self.builder
        builder.budget.spend(_LOWERING)
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
            case AnyText(None):
                return self.alphabet.any_text
            case AnyText(unchecked):
                return self.alphabet.any_prefix if unchecked is Unchecked.PREFIX else builder.anything
        raise AssertionError(f"{type(node).__name__} is left after simplification")

    def restriction(self, rest: Rest, first: bool, final: bool) -> int:
        """The language that the rest of the text must belong to.

        It may hold invalid text, too: the pattern around the assertion holds valid text only. So once the assertion's
        own pattern is decided, nothing is left to run.
        """
        inner = self.node(rest.body, first or not rest.ahead, final or rest.ahead)
        return self.builder.complement(inner) if rest.negative else inner

    def sequence(self, parts: tuple[Node, ...], first: bool, final: bool) -> int:
        """A sequence, its lookarounds as intersections with what precedes or follows them wherever that is possible."""
        builder, table = self.builder, self.table
        if not any(part.asserts for part in parts):
            return builder.seq(*(self.node(part, False, False) for part in parts)) if parts else builder.empty
        widthless = [table.of(part).zero_width for part in parts]
        firsts = accumulate(widthless[:-1], and_, initial=first)
        finals = reversed(list(accumulate(reversed(widthless[1:]), and_, initial=final)))
        placed = list(zip(parts, firsts, finals, strict=True))
        cut = next((k for k, part in enumerate(parts) if final and isinstance(part, Rest) and part.ahead), len(parts))

        head: list[int] = []
        further = accumulate(map(looks_ahead, parts[:cut]), or_, initial=False)
        for (part, at_start, at_end), looking in zip(placed[:cut], further, strict=False):
            # the intersection holds the text up to here only: no assertion within it may look further
            if first and not looking and isinstance(part, Rest) and not part.ahead:
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
        """Alternatives: characters are joined into one class, texts into one set of words, others stay as they are."""
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
