"""Terminals of a ``.lark`` grammar as regular nodes.

With lark's Earley parser and the lexer ``dynamic_complete``, a terminal is tried wherever it is expected, on the text
from there on and then on ever shorter beginnings of its match. What it can take are exactly the texts that ``re.match``
takes whole when given alone (see :mod:`grammarspec.frontends.regex.preference`), so a terminal is a regular language
that knows nothing of its surroundings. An ignored terminal is tried but once, on all the text that follows, so it does
know: its guards look into the terminal behind it, and the two are one lexeme here.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from grammarspec.errors import GrammarError, UnsupportedFeature
from grammarspec.frontends.lark.loader import Pattern, Source
from grammarspec.frontends.regex import PlainText, lower, parse
from grammarspec.frontends.regex.charsets import Ranges, intersect, union
from grammarspec.frontends.regex.facts import ANYWHERE, BORDER, FactTable, Neighbour
from grammarspec.frontends.regex.preference import preferred
from grammarspec.frontends.regex.reach import looks_outside
from grammarspec.frontends.regex.tree import EMPTY, Alternation, Chars, Node, Repeat, Sequence, Text
from grammarspec.grammars.builder import GrammarBuilder

__all__ = ["Terminals"]


@dataclass(frozen=True, slots=True)
class _Ignored:
    """The ignored terminals.

    Attributes:
        blanks: those that are any number of characters of a set, all sets together. However such a run is cut into
            lexemes, the text is the same.
        greedy: the part of ``blanks`` of which a lexeme takes as much as there is.
        others: the rest, with guards for where they end.
        all: all of them, with guards.
    """

    blanks: Ranges
    greedy: Ranges
    others: tuple[Node, ...]
    all: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class _Origin:
    """Where a terminal comes from, for messages: its name or, inside a rule, its literal."""

    source: Source
    name: str = ""
    raw: str = ""

    @property
    def title(self) -> str:
        return f"the terminal {self.name or self.raw}"

    @property
    def where(self) -> str:
        return self.source.where(self.name) if self.name else self.source.where_literal(self.raw)


class Terminals:
    """Makes and remembers the nodes of a grammar's terminals. Each includes what may be ignored before it."""

    def __init__(self, source: Source, builder: GrammarBuilder) -> None:
        self.source, self.builder = source, builder
        self.alphabet = PlainText(builder)
        self.table = FactTable()
        self.known: dict[str, int] = {}

    def named(self, name: str) -> int:
        """A terminal by its name."""
        node = self.known.get(name)
        if node is None:
            origin = _Origin(self.source, name=name)
            node = self.known[name] = self.lexeme(self.preferred(self.own_tree(self.pattern(origin), origin), origin))
        return node

    def literal(self, pattern: Pattern) -> int:
        """A string or regular expression inside a rule."""
        key = f"/{pattern.regex}/"
        node = self.known.get(key)
        if node is None:
            origin = _Origin(self.source, raw=pattern.raw)
            node = self.known[key] = self.lexeme(self.preferred(self.own_tree(pattern, origin), origin))
        return node

    def any_of(self, texts: list[str]) -> int:
        """One or several strings, each a terminal of its own."""
        words = tuple(map(Text, texts))
        return self.lexeme(words[0] if len(words) == 1 else Alternation(words))

    @cached_property
    def trailing(self) -> int:
        """What is ignored at the end of the text."""
        skipped = self.skipped(BORDER, 0)
        return self.builder.empty if skipped is EMPTY else self.builder.terminal(self.lower(skipped))

    def lower(self, tree: Node) -> int:
        return lower(tree, self.builder, self.alphabet)

    def lexeme(self, tree: Node) -> int:
        """Plain strings are left for the compiler to join with their neighbours; the rest are terminals."""
        facts = self.table.of(tree)
        skipped = self.skipped(Neighbour(facts.first, False), facts.shortest)
        node = self.lower(Sequence((skipped, tree)))
        return node if skipped is EMPTY and isinstance(tree, Text) else self.builder.terminal(node)

    def skipped(self, after: Neighbour, room: int) -> Node:
        """Any number of ignored lexemes, before what begins as ``after`` says and has ``room`` characters or more."""
        ignored = self.ignored
        if not ignored.all:
            return EMPTY
        followers = union(after.chars, *(self.table.of(other).first for other in ignored.others))
        if intersect(ignored.greedy, followers):
            node: Node = Repeat(Alternation(ignored.all), 0, None)
        else:
            blank = Repeat(Chars(ignored.blanks), 0, None) if ignored.blanks else EMPTY
            node = Sequence((blank, Repeat(Sequence((Alternation(ignored.others), blank)), 0, None)))
            node = node if ignored.others else blank
        outside = None if after == BORDER else looks_outside(node, ANYWHERE, after, self.table, 0, room)
        if outside:
            raise UnsupportedFeature(
                f"where an ignored terminal ends may depend on text beyond the terminal after it ({outside})",
                self.source.where_statement("%ignore"),
                f"make the ends of what is ignored ({', '.join(self.source.ignored)}) plain from the next character",
            )
        return node

    @cached_property
    def ignored(self) -> _Ignored:
        blanks: list[Ranges] = []
        greedy: list[Ranges] = []
        others: list[Node] = []
        every: list[Node] = []
        for name in self.source.ignored:
            origin = _Origin(self.source, name=name)
            tree = self.own_tree(self.pattern(origin), origin)
            every.append(self.preferred(tree, origin, ANYWHERE))
            match tree:
                case Chars(ranges):
                    blanks.append(ranges)
                case Repeat(Chars(ranges), 1, None, lazy):
                    blanks.append(ranges)
                    greedy += [] if lazy else [ranges]
                case _:
                    others.append(every[-1])
        return _Ignored(union(*blanks), union(*greedy), tuple(others), tuple(every))

    def pattern(self, origin: _Origin) -> Pattern:
        if self.source.terminals[origin.name] is None:
            raise UnsupportedFeature(
                f"{origin.title} is only declared: it comes from lexer or postlex code",
                self.source.where_statement("%declare"),
                "define it in the grammar",
            )
        return self.source.pattern(origin.name)

    def own_tree(self, pattern: Pattern, origin: _Origin) -> Node:
        """A terminal's syntax tree, checked to be one that stands for itself."""
        if pattern.literal:
            return Text(pattern.literal)
        try:
            tree = parse(pattern.regex)
        except GrammarError as error:
            where = f"{origin.where or origin.title}\n  in its expression, {error.where}"
            raise type(error)(f"{error.message} ({origin.title})", where, error.hint) from None
        outside = looks_outside(tree, ANYWHERE, ANYWHERE, self.table)
        if outside:
            message, hint = f"{origin.title} has {outside} of its own text", "say the condition in the rules instead"
            raise UnsupportedFeature(message, origin.where, hint)
        if self.table.of(tree).nullable:
            raise UnsupportedFeature(
                f"{origin.title} can be empty", origin.where, "make it optional where it is used instead"
            )
        return tree

    def preferred(self, tree: Node, origin: _Origin, after: Neighbour = BORDER) -> Node:
        try:
            return preferred(tree, self.table, after)
        except UnsupportedFeature as error:
            raise UnsupportedFeature(f"{error.message} ({origin.title})", origin.where, error.hint) from None
