"""Lexemes in parts, so that they can be sorted by the class of their last character.

What stands behind a lexeme may look at its last character (:mod:`grammarspec.frontends.regex.before`). A lexeme's own
text is intersected with the texts that end in a character of a class; the guards around it are left as they are.
"""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Sequence as Several
from dataclasses import dataclass

from grammarspec.frontends.regex.alphabet import Alphabet
from grammarspec.frontends.regex.charsets import intersect
from grammarspec.frontends.regex.facts import FactTable, Neighbour
from grammarspec.frontends.regex.lower import lexeme, lower
from grammarspec.frontends.regex.tree import ANY_TEXT, EMPTY, Chars, Look, Node, Sequence
from grammarspec.grammars.builder import GrammarBuilder

__all__ = ["LexemeParts", "Taken"]


@dataclass(frozen=True)
class Taken:
    """The lexemes of a terminal, as nodes: guards before them, their texts, and guards behind them.

    If guards stand within the texts, all of it is ``before``, and ``body`` is ``None``.
    """

    before: int
    body: int | None
    after: int


class LexemeParts:
    """Makes the nodes of lexemes that end in characters of a class."""

    def __init__(
        self, classes: Several[Neighbour], table: FactTable, alphabet: Alphabet, builder: GrammarBuilder
    ) -> None:
        self.classes, self.table, self.alphabet, self.builder = classes, table, alphabet, builder
        self.known: dict[int, int] = {}

    def endings(self, tree: Node) -> Iterator[tuple[int | None, int]]:
        """The classes that the last characters of a terminal are of.

        Returns:
            for each class the texts that end in it, as a node, and its number; the node is ``None`` where it is the
            only one.
        """
        last = self.table.of(tree).last
        possible = [number for number, one in enumerate(self.classes) if intersect(last, one.chars)]
        if len(possible) < 2:
            yield None, possible[0] if possible else 0
            return
        for number in possible:
            if number not in self.known:
                self.known[number] = self.text(Sequence((ANY_TEXT, Chars(self.classes[number].chars))))
            yield self.known[number], number

    def placed(self, tree: Node) -> Iterator[tuple[int, int]]:
        """The lexemes of a syntax tree with guards, and the class of their last character."""
        endings = list(self.endings(tree))
        if len(endings) == 1:
            yield lexeme(tree, self.builder, self.alphabet), endings[0][1]
            return
        taken = self.taken(tree)
        for ending, last in endings:
            yield self.lexeme(taken, [] if taken.body is None else [taken.body], ending), last

    def taken(self, tree: Node) -> Taken:
        """The lexemes of a syntax tree, in parts."""
        before, body, after = _parted(tree)
        return Taken(self.open(before), None if body is None else self.text(body), self.open(after))

    def lexeme(self, taken: Taken, texts: list[int], ending: int | None) -> int:
        """The lexemes whose texts are all of these, and end in a text of ``ending``."""
        builder = self.builder
        texts = texts if ending is None else [*texts, ending]
        if taken.body is not None:
            return builder.lexeme(builder.seq(taken.before, builder.both(*texts), taken.after))
        return builder.lexeme(builder.seq(taken.before, *[builder.behind(text) for text in texts]))

    def text(self, tree: Node) -> int:
        """The texts of a syntax tree without guards."""
        return lower(tree, self.builder, self.alphabet)

    def open(self, tree: Node) -> int:
        """A part of a lexeme, whose assertions see what follows."""
        return lexeme(tree, self.builder, self.alphabet, open_end=True)


def _parted(tree: Node) -> tuple[Node, Node | None, Node]:
    """The guards before a lexeme, its text, and the guards behind it; all of it and ``None`` if guards stand within."""
    parts: list[Node] = []
    todo = [tree]
    while todo:
        node = todo.pop()
        if isinstance(node, Sequence):
            todo += reversed(node.parts)
        else:
            parts.append(node)
    first = next((place for place, part in enumerate(parts) if not isinstance(part, Look)), len(parts))
    last = next((place for place in range(len(parts), first, -1) if not isinstance(parts[place - 1], Look)), first)
    if any(part.asserts for part in parts[first:last]):
        return tree, None, EMPTY
    return Sequence(tuple(parts[:first])), Sequence(tuple(parts[first:last])), Sequence(tuple(parts[last:]))
