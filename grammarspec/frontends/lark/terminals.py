"""Terminals of a ``.lark`` grammar as regular nodes.

With lark's Earley parser and the lexer ``dynamic_complete``, a terminal is tried wherever it is expected, on the text
from there on and then on ever shorter beginnings of its match. What it can take are exactly the texts that
``re.match`` takes whole when given alone (see :mod:`grammarspec.frontends.regex.prefer`), so a terminal is a regular
language that knows nothing of its surroundings. An ignored terminal is tried but once, on all the text that follows, so
it does know: its guards look into the terminal behind it, and the two are one lexeme here.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from grammarspec.builder import GrammarBuilder
from grammarspec.errors import GrammarError, UnsupportedFeature
from grammarspec.frontends.lark.loader import Pattern, Source
from grammarspec.frontends.regex import PlainText, lower, parse
from grammarspec.frontends.regex.charsets import Ranges, intersect, union
from grammarspec.frontends.regex.facts import ANYWHERE, BORDER, Edge, FactTable
from grammarspec.frontends.regex.prefer import preferred
from grammarspec.frontends.regex.reach import looks_outside
from grammarspec.frontends.regex.tree import EMPTY, Alternation, Chars, Node, Repeat, Sequence, Text

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


class Terminals:
    """Makes and remembers the nodes of a grammar's terminals."""

    def __init__(self, source: Source, builder: GrammarBuilder) -> None:
        self.source, self.builder = source, builder
        self.alphabet = PlainText(builder)
        self.table = FactTable()
        self.by_pattern: dict[str, int] = {}

    def named(self, name: str) -> int:
        """A terminal, after whatever is ignored before it."""
        if self.source.terminals.get(name) is None:
            raise UnsupportedFeature(
                f"the terminal {name} is only declared: it comes from lexer or postlex code",
                self.source.where_literal(name),
                "define it in the grammar",
            )
        return self.lexeme(self.source.pattern(name), f"the terminal {name}", self.source.where(name))

    def literal(self, pattern: Pattern) -> int:
        """As :meth:`named`, for a string or regular expression inside a rule."""
        return self.lexeme(pattern, f"the terminal {pattern.raw}", self.source.where_literal(pattern.raw))

    def lexeme(self, pattern: Pattern, title: str, where: str) -> int:
        node = self.by_pattern.get(pattern.regex)
        if node is None:
            tree = preferred_or_refused(self.tree(pattern, title, where), self.table, BORDER, title, where)
            facts = self.table.of(tree)
            skipped = self.skipped(Edge(facts.first, False), facts.shortest, title)
            node = lower(Sequence((skipped, tree)), self.builder, self.alphabet)
            if skipped is not EMPTY or not isinstance(tree, Text):
                node = self.builder.terminal(node)
            self.by_pattern[pattern.regex] = node
        return node

    @cached_property
    def trailing(self) -> int:
        """What is ignored at the end of the text."""
        return self.builder.terminal(lower(self.skipped(BORDER, 0, ""), self.builder, self.alphabet))

    def skipped(self, after: Edge, room: int, title: str) -> Node:
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
                f"the end of an ignored terminal may depend on what comes after {title}, which follows it ({outside})",
                hint=f"make the end of {', '.join(self.source.ignored)} recognisable by the next character",
            )
        return node

    @cached_property
    def ignored(self) -> _Ignored:
        blanks: list[Ranges] = []
        greedy: list[Ranges] = []
        others: list[Node] = []
        every: list[Node] = []
        for name in self.source.ignored:
            title, where = f"the ignored terminal {name}", self.source.where(name)
            if self.source.terminals[name] is None:
                raise UnsupportedFeature(f"{title} is only declared", where, "define it in the grammar")
            tree = self.tree(self.source.pattern(name), title, where)
            every.append(preferred_or_refused(tree, self.table, ANYWHERE, title, where))
            match tree:
                case Chars(ranges):
                    blanks.append(ranges)
                case Repeat(Chars(ranges), 1, None, lazy):
                    blanks.append(ranges)
                    greedy += [] if lazy else [ranges]
                case _:
                    others.append(every[-1])
        return _Ignored(union(*blanks), union(*greedy), tuple(others), tuple(every))

    def tree(self, pattern: Pattern, title: str, where: str) -> Node:
        """A terminal's own syntax tree, checked to be one that stands for itself."""
        if pattern.literal:
            return Text(pattern.literal)
        try:
            tree = parse(pattern.regex)
        except GrammarError as error:
            inside = f"{where}\n  in its expression, {error.where}" if where else f"{title}, {error.where}"
            raise type(error)(f"{error.message} ({title})", inside, error.hint) from None
        outside = looks_outside(tree, ANYWHERE, ANYWHERE, self.table)
        if outside:
            raise UnsupportedFeature(
                f"{title} has {outside} of its own text", where, "state the condition in the grammar's rules"
            )
        if self.table.of(tree).nullable:
            raise UnsupportedFeature(f"{title} can be empty", where, "make it optional where it is used")
        return tree


def preferred_or_refused(tree: Node, table: FactTable, after: Edge, title: str, where: str) -> Node:
    try:
        return preferred(tree, table, after)
    except UnsupportedFeature as error:
        raise UnsupportedFeature(f"{error.message} ({title})", where, error.hint) from None
