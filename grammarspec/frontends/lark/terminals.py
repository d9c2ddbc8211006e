"""From the terminals of a ``.lark`` grammar to regular nodes of the grammar builder.

With lark's Earley parser and the lexer ``dynamic_complete``, a terminal is tried wherever it is expected, on the text
from there on and then on ever shorter beginnings of its match. What it can take are exactly the texts that
``re.match`` takes whole when given alone (:mod:`grammarspec.frontends.regex.preference`). So a terminal is a regular
language that does not depend on the text around it.

Ignored terminals may stand before each terminal and at the end of the text. Each is tried only once, on all the text
that follows. So where it ends does depend on that text, and its guards look into the terminal behind it. Therefore a
terminal and what is ignored before it are one lexeme here.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from grammarspec.errors import GrammarError, UnsupportedFeature
from grammarspec.frontends.lark.loader import Source
from grammarspec.frontends.lark.tree import Pattern
from grammarspec.frontends.regex.alphabet import PlainText
from grammarspec.frontends.regex.charsets import Ranges, intersect, union
from grammarspec.frontends.regex.facts import ANYWHERE, BORDER, FactTable, Neighbour
from grammarspec.frontends.regex.lower import lower
from grammarspec.frontends.regex.patterns import parse
from grammarspec.frontends.regex.preference import preferred
from grammarspec.frontends.regex.reach import looks_outside
from grammarspec.frontends.regex.tree import EMPTY, Alternation, Chars, Node, Repeat, Sequence, Text
from grammarspec.grammars.builder import GrammarBuilder

__all__ = ["Terminals"]


@dataclass(frozen=True, slots=True)
class _Ignored:
    """The ignored terminals.

    Attributes:
        blanks: the characters of those terminals that are one or more characters of a set. However a run of such
            characters is cut into lexemes, the text is the same, so that it needs no guards.
        greedy: those of them of which a lexeme takes as many characters as there are.
        others: the other terminals, with guards for where they end.
        all: all of the terminals, with guards.
    """

    blanks: Ranges
    greedy: Ranges
    others: tuple[Node, ...]
    all: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class _Origin:
    """A terminal in messages: by its name or, within a rule, by its literal."""

    source: Source
    name: str = ""
    raw: str = ""

    @property
    def title(self) -> str:
        """What the terminal is called."""
        return f"the terminal {self.name or self.raw}"

    @property
    def where(self) -> str:
        """Where it is defined, or ``""`` if it is imported."""
        text = self.source.text
        return text.definition(self.name) if self.name else text.literal(self.raw)


class Terminals:
    """The nodes of a grammar's terminals, each made once. A node includes what may be ignored before its terminal."""

    def __init__(self, source: Source, builder: GrammarBuilder) -> None:
        self.source, self.builder = source, builder
        self.alphabet = PlainText(builder)
        self.table = FactTable()
        self.known: dict[str, int] = {}

    def named(self, name: str) -> int:
        """A terminal by its name.

        Raises:
            GrammarError: as :meth:`own_tree`, :meth:`preferred` and :meth:`skipped`; or the terminal is only declared.
        """
        node = self.known.get(name)
        if node is None:
            origin = _Origin(self.source, name=name)
            node = self.known[name] = self.lexeme(self.preferred(self.own_tree(self.pattern(origin), origin), origin))
        return node

    def literal(self, pattern: Pattern) -> int:
        """A string or regular expression within a rule.

        Raises:
            GrammarError: as :meth:`own_tree`, :meth:`preferred` and :meth:`skipped`.
        """
        key = f"/{pattern.regex}/"
        node = self.known.get(key)
        if node is None:
            origin = _Origin(self.source, raw=pattern.raw)
            node = self.known[key] = self.lexeme(self.preferred(self.own_tree(pattern, origin), origin))
        return node

    def any_of(self, texts: list[str]) -> int:
        """One or several strings, each a terminal of its own.

        Raises:
            UnsupportedFeature: as :meth:`skipped`.
        """
        words = tuple(map(Text, texts))
        return self.lexeme(words[0] if len(words) == 1 else Alternation(words))

    @cached_property
    def trailing(self) -> int:
        """What is ignored at the end of the text.

        Raises:
            UnsupportedFeature: as :meth:`skipped`.
        """
        skipped = self.skipped(BORDER, 0)
        return self.builder.empty if skipped is EMPTY else self.builder.terminal(self.lower(skipped))

    def lower(self, tree: Node) -> int:
        """A regular node for a syntax tree."""
        return lower(tree, self.builder, self.alphabet)

    def lexeme(self, tree: Node) -> int:
        """A terminal's syntax tree, and what may be ignored before it, as a node.

        The node of a plain string is no ``terminal`` of the builder, so that the compiler can join neighbours.

        Raises:
            UnsupportedFeature: as :meth:`skipped`.
        """
        facts = self.table.of(tree)
        skipped = self.skipped(Neighbour(facts.first, False), facts.shortest)
        node = self.lower(Sequence((skipped, tree)))
        return node if skipped is EMPTY and isinstance(tree, Text) else self.builder.terminal(node)

    def skipped(self, after: Neighbour, room: int) -> Node:
        """Any number of ignored lexemes.

        Args:
            after: what may follow them.
            room: a lower bound on the number of characters of the terminal that follows.

        Raises:
            UnsupportedFeature: where a lexeme ends may depend on text behind that terminal.
        """
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
                self.source.text.statement("%ignore"),
                f"make the ends of what is ignored ({', '.join(self.source.ignored)}) plain from the next character",
            )
        return node

    @cached_property
    def ignored(self) -> _Ignored:
        """The terminals that ``%ignore`` names.

        Raises:
            GrammarError: as :meth:`own_tree` and :meth:`preferred`; or one of them is only declared.
        """
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
        """The regular expression of a terminal that has a name.

        Raises:
            UnsupportedFeature: the terminal is only declared.
        """
        pattern = self.source.pattern(origin.name)
        if pattern is None:
            raise UnsupportedFeature(
                f"{origin.title} is only declared: it comes from lexer or postlex code",
                self.source.text.statement("%declare"),
                "define it in the grammar",
            )
        return pattern

    def own_tree(self, pattern: Pattern, origin: _Origin) -> Node:
        """A terminal's syntax tree, checked not to depend on the text around it.

        Raises:
            GrammarError: its regular expression is malformed or uses what is refused.
            UnsupportedFeature: it may look past its own text, or can be empty.
        """
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
        """A terminal's syntax tree with guards; ``after`` is what may follow it.

        Raises:
            UnsupportedFeature: guards for it would be inexact or too many.
        """
        try:
            return preferred(tree, self.table, after)
        except UnsupportedFeature as error:
            raise UnsupportedFeature(f"{error.message} ({origin.title})", origin.where, error.hint) from None
