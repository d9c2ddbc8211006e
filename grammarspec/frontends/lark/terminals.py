r"""From the terminals of a ``.lark`` grammar to regular nodes, for lark's Earley parser and its dynamic lexers.

There a terminal is tried wherever it is expected, on all the text from there on. With the lexer ``dynamic``, it takes
what ``re.match`` takes: where that ends may depend on the text behind it, so its guards
(:mod:`grammarspec.frontends.regex.preference`) look past its end. With ``dynamic_complete``, it is tried on ever
shorter beginnings of its match, too. What it can take then are exactly the texts that ``re.match`` takes whole when
given alone, a regular language that does not depend on the text around it.

Ignored terminals may stand before each terminal and at the end of the text. Each is tried only once, on all the text
that follows, with either lexer. A terminal and what is ignored before it are one lexeme here, so that most guards of
what is ignored are decided by the terminal behind it.

What a terminal sees of the character before it (a lookbehind, ``\b`` at the beginning) is decided by the class of that
character (:mod:`grammarspec.frontends.regex.before`): where there are several classes, a terminal has lexemes for each,
and what is ignored has lexemes of its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from collections.abc import Sequence as Several
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from math import inf
from typing import Final

from grammarspec.errors import GrammarError, UnsupportedFeature
from grammarspec.frontends.lark.given_terminals import GivenTerminal
from grammarspec.frontends.lark.lexeme_parts import LexemeParts
from grammarspec.frontends.lark.loader import Source
from grammarspec.frontends.lark.tree import Literal, Pattern, terminals_of
from grammarspec.frontends.regex.alphabet import PlainText
from grammarspec.frontends.regex.before import behind, classes_before, wider_classes
from grammarspec.frontends.regex.charsets import Ranges, intersect, single, union
from grammarspec.frontends.regex.facts import ANYWHERE, BORDER, FactTable, Neighbour
from grammarspec.frontends.regex.lower import lexeme, lower
from grammarspec.frontends.regex.patterns import Dialect, parse
from grammarspec.frontends.regex.preference import preferred
from grammarspec.frontends.regex.reach import looks_outside
from grammarspec.frontends.regex.tree import EMPTY, NOTHING, Alternation, Chars, Node, Repeat, Sequence, Text
from grammarspec.grammars.builder import GrammarBuilder

__all__ = ["Terminals"]

_LOOKS_BACK = re.compile(r"\(\?(?:<[=!]|m)|\\[bBA]|\^")
"""What every expression has that looks at the text before it."""

_DECIDED: Final = 2_000
"""Steps of deciding the assertions of a terminal about the characters of a class before it."""
_PLACED: Final = 150
"""Steps of the lexemes that begin behind one class of characters and end in one."""


@dataclass(frozen=True, slots=True)
class _Ignored:
    """The ignored terminals.

    Attributes:
        blanks: the characters of those terminals that are one or more characters of a set. However a run of such
            characters is cut into lexemes, the text is the same, so that it needs no guards.
        greedy: those of them of which a lexeme takes as many characters as there are.
        others: whether there are other terminals.
        all: all of the terminals, with guards for where they end.
    """

    blanks: Ranges
    greedy: Ranges
    others: bool
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
    """The nodes of a grammar's terminals, each made once. A node includes what may be ignored before its terminal.

    Attributes:
        look_past_their_ends: whether any of the nodes made so far depends on the text behind it.
    """

    def __init__(
        self, source: Source, builder: GrammarBuilder, flags: int, dialect: Dialect, *, complete: bool
    ) -> None:
        """Make nothing yet.

        Args:
            flags: those for all terminals.
            dialect: the dialect of their expressions.
            complete: whether the lexer is ``dynamic_complete``.
        """
        self.source, self.builder, self.complete = source, builder, complete
        self.flags = flags
        self.dialect: Dialect = dialect
        self.look_past_their_ends = False
        self.used: set[str] = set()
        self.alphabet = PlainText(builder)
        self.table = FactTable()
        self.known: dict[str, int] = {}
        self.trees: dict[str, Node] = {}
        self.classes = (ANYWHERE,) if complete else self.classes_before()
        self.parts = LexemeParts(self.classes, self.table, self.alphabet, builder)

    def classes_before(self) -> tuple[Neighbour, ...]:
        """The classes of characters that the terminals of the grammar tell apart before them."""
        trees = []
        for pattern, origin in self.all_patterns():
            if _LOOKS_BACK.search(pattern.regex):
                self.builder.budget.spend(_DECIDED, f"{origin.title}, which may look back")
                with suppress(GrammarError):  # which is raised where the terminal is used, if it is
                    trees.append(self.tree(pattern, origin))
        return classes_before(trees, self.table)

    def all_patterns(self) -> Iterator[tuple[Pattern, _Origin]]:
        """The expressions of all terminals that rules or ``%ignore`` name, or that stand in rules."""
        names = dict.fromkeys(self.source.ignored)
        for rule in self.source.rules.values():
            for one in terminals_of(rule.body) if rule.body else ():
                if isinstance(one, Literal):
                    yield one.pattern, _Origin(self.source, raw=one.pattern.raw)
                else:
                    names[one.name] = None
        for name in names:
            with suppress(GrammarError):
                pattern = None if name in self.source.given else self.source.pattern(name)
                if pattern is not None:
                    yield pattern, _Origin(self.source, name=name)

    def named(self, name: str) -> int:
        """A terminal by its name.

        Raises:
            GrammarError: as :meth:`taken`; or the terminal is only declared.
        """
        node = self.known.get(name)
        if node is None and name in self.source.given:
            node = self.known[name] = self.embedded(self.source.given[name])
        if node is None:
            origin = _Origin(self.source, name=name)
            pattern = self.pattern(origin)
            node = self.known[name] = self.node(pattern, origin)
        return node

    def embedded(self, given: GivenTerminal) -> int:
        """A terminal whose texts are those of another grammar, and what may be ignored before it.

        Raises:
            GrammarError: as :attr:`ignored`.
        """
        node = self.builder.embed(given.grammar.ir)
        blanks = self.blanks_before(Neighbour(given.first, False))
        if blanks is EMPTY:
            return node
        return self.builder.seq(self.skipped if blanks is None else self.builder.terminal(self.lower(blanks)), node)

    def literal(self, pattern: Pattern) -> int:
        """A string or regular expression within a rule.

        Raises:
            GrammarError: as :meth:`taken`.
        """
        key = f"/{pattern.regex}/"
        node = self.known.get(key)
        if node is None:
            origin = _Origin(self.source, raw=pattern.raw)
            node = self.known[key] = self.node(pattern, origin)
        return node

    def node(self, pattern: Pattern, origin: _Origin) -> int:
        """A terminal, and what may be ignored before it.

        Raises:
            GrammarError: as :meth:`own_tree`, :meth:`preferred` and :attr:`ignored`.
        """
        self.used.add(pattern.regex)
        if len(self.classes) > 1:
            return self.builder.seq(self.skipped, self.placed(self.tree(pattern, origin), origin))
        tree = self.own_tree(pattern, origin)
        return self.lexeme(self.preferred(tree, origin, BORDER if self.complete else ANYWHERE))

    def any_of(self, patterns: Several[Pattern]) -> int:
        """One or several strings, each a terminal of its own.

        Raises:
            GrammarError: as :meth:`own_tree`.
        """
        self.used.update(pattern.regex for pattern in patterns)
        if len(self.classes) > 1:
            return self.builder.alt(*[self.literal(pattern) for pattern in patterns])
        words = tuple([self.own_tree(pattern, _Origin(self.source, raw=pattern.raw)) for pattern in patterns])
        return self.lexeme(words[0] if len(words) == 1 else Alternation(words))

    @cached_property
    def trailing(self) -> int:
        """What is ignored at the end of the text.

        Raises:
            GrammarError: as :attr:`ignored`.
        """
        blanks = self.blanks_before(BORDER)
        if blanks is EMPTY:
            return self.builder.empty
        return self.skipped if blanks is None else self.builder.terminal(self.lower(blanks))

    @cached_property
    def skipped(self) -> int:
        """Any number of ignored lexemes, each with guards.

        Raises:
            GrammarError: as :attr:`ignored`.
        """
        if not self.source.ignored:
            return self.builder.empty
        return self.builder.repeat(self.builder.alt(*self.skipped_lexemes), 0, None)

    @cached_property
    def skipped_lexemes(self) -> list[int]:
        """The ignored lexemes, each with guards.

        Raises:
            GrammarError: as :attr:`ignored`.
        """
        if len(self.classes) > 1:
            return [self.placed(*one) for one in self.ignored_trees()]
        return [self.open_lexeme(tree) for tree in self.ignored.all]

    @property
    def skipped_alone(self) -> list[int]:
        """The ignored lexemes, if the rules use none of them.

        Raises:
            GrammarError: as :attr:`ignored`.
        """
        patterns = [self.source.pattern(name) for name in self.source.ignored]
        used = any(pattern is not None and pattern.regex in self.used for pattern in patterns)
        used |= any(name in self.known for name in self.source.given)  # which have lexemes of their own
        return [] if used else self.skipped_lexemes

    def lower(self, tree: Node) -> int:
        """A regular node for a syntax tree."""
        return lower(tree, self.builder, self.alphabet)

    def lexeme(self, tree: Node) -> int:
        """A terminal's syntax tree, and what may be ignored before it, as a node.

        The node of a plain string is no ``terminal`` of the builder, so that the compiler can join neighbours.

        Raises:
            GrammarError: as :attr:`ignored`.
        """
        blanks = self.blanks_before(Neighbour(self.table.of(tree).first, False))
        if blanks is None:
            return self.builder.seq(self.skipped, self.unit(tree))
        if blanks is EMPTY and isinstance(tree, Text):
            return self.lower(tree)
        return self.unit(Sequence((blanks, tree)))

    def unit(self, tree: Node) -> int:
        """A terminal's syntax tree as a lexical unit; with ``dynamic_complete``, assertions see its own text only."""
        return self.builder.terminal(self.lower(tree)) if self.complete else self.open_lexeme(tree)

    def open_lexeme(self, tree: Node) -> int:
        """A syntax tree as a lexical unit whose assertions see the text behind it."""
        self.look_past_their_ends |= tree.asserts
        return lexeme(tree, self.builder, self.alphabet)

    def placed(self, tree: Node, origin: _Origin) -> int:
        """A terminal's lexemes, as the character before them is.

        Raises:
            UnsupportedFeature: it looks at more of the text before it; or as :meth:`preferred`.
        """
        self.look_past_their_ends = True
        wider = wider_classes(tree, self.classes, self.table)
        lexemes: dict[Neighbour, list[tuple[int, int]]] = {}
        for before in dict.fromkeys(wider):
            decided = self.behind(tree, origin, before)
            preferred = decided if decided is NOTHING else self.preferred(decided, origin, ANYWHERE)
            lexemes[before] = [] if decided is NOTHING else list(self.parts.placed(preferred))
            self.builder.budget.spend(_PLACED * len(lexemes[before]), f"{origin.title}, by its last character")
        if len(lexemes) == 1:
            return self.builder.lexemes((None, node, last) for node, last in lexemes[wider[0]])
        return self.builder.lexemes(
            (number, node, last) for number, before in enumerate(wider) for node, last in lexemes[before]
        )

    def behind(self, tree: Node, origin: _Origin, before: Neighbour) -> Node:
        """A terminal's syntax tree behind a character of a class, checked not to depend on more of the text before it.

        Raises:
            UnsupportedFeature: it does.
        """
        if tree.asserts and len(self.classes) > 1:
            self.builder.budget.spend(_DECIDED, f"{origin.title}, behind each character")
        decided = behind(tree, before, self.table)
        outside = looks_outside(decided, before, ANYWHERE, self.table, room_after=0 if self.complete else inf)
        if outside:
            message, hint = f"{origin.title} has {outside} of its own text", "say the condition in the rules instead"
            raise UnsupportedFeature(message, origin.where, hint)
        return decided

    def blanks_before(self, after: Neighbour) -> Node | None:
        """What is ignored, if it is just characters of a set, however these are cut into lexemes; else ``None``.

        Args:
            after: what may follow it.

        Raises:
            GrammarError: as :attr:`ignored`.
        """
        if len(self.classes) > 1:
            return None if self.source.ignored else EMPTY
        ignored = self.ignored
        if ignored.others or intersect(ignored.greedy, after.chars):
            return None
        return Repeat(Chars(ignored.blanks), 0, None) if ignored.blanks else EMPTY

    @cached_property
    def ignored(self) -> _Ignored:
        """The terminals that ``%ignore`` names.

        Raises:
            GrammarError: as :meth:`own_tree` and :meth:`preferred`; or one of them is only declared.
        """
        blanks: list[Ranges] = []
        greedy: list[Ranges] = []
        others = False
        every: list[Node] = []
        for own, origin in self.ignored_trees():
            tree = self.behind(own, origin, ANYWHERE)
            every.append(self.preferred(tree, origin, ANYWHERE))
            match tree:
                case Chars(ranges):
                    blanks.append(ranges)
                case Repeat(Chars(ranges), 1, None, lazy):
                    blanks.append(ranges)
                    greedy += [] if lazy else [ranges]
                case Text(text) if len(text) == 1:
                    blanks.append(single(ord(text)))
                case _:
                    others = True
        return _Ignored(union(*blanks), union(*greedy), others, tuple(every))

    def ignored_trees(self) -> Iterator[tuple[Node, _Origin]]:
        """The syntax trees of the terminals that ``%ignore`` names.

        Raises:
            GrammarError: as :meth:`tree`; or one of them is only declared.
        """
        for name in self.source.ignored:
            origin = _Origin(self.source, name=name)
            self.check_ignored(origin)
            pattern = self.pattern(origin)
            if name.startswith("__") and pattern.raw:  # an expression behind %ignore, which lark has named
                origin = _Origin(self.source, raw=pattern.raw)
            yield self.tree(pattern, origin), origin

    def check_ignored(self, origin: _Origin) -> None:
        """Refuse to ignore the texts of another grammar: an ignored terminal takes what its expression prefers.

        Raises:
            UnsupportedFeature: the terminal has the texts of another grammar.
        """
        if origin.name in self.source.given:
            message = f"{origin.title} is ignored, and has the texts of another grammar"
            hint = "define it in the file: what is ignored is cut by its regular expression"
            raise UnsupportedFeature(message, origin.where or self.source.text.statement("%ignore"), hint)

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
            GrammarError: as :meth:`tree`.
            UnsupportedFeature: it may look at text that decides nothing for it here.
        """
        return self.behind(self.tree(pattern, origin), origin, ANYWHERE)

    def tree(self, pattern: Pattern, origin: _Origin) -> Node:
        """A terminal's syntax tree, made once.

        Raises:
            GrammarError: as :meth:`new_tree`.
        """
        known = self.trees.get(pattern.regex)
        if known is None:
            known = self.trees[pattern.regex] = self.new_tree(pattern, origin)
        return known

    def new_tree(self, pattern: Pattern, origin: _Origin) -> Node:
        """A terminal's syntax tree.

        Raises:
            GrammarError: its regular expression is malformed or uses what is refused.
            UnsupportedFeature: it can be empty.
        """
        if pattern.literal and not self.flags & re.IGNORECASE:
            return Text(pattern.literal)
        try:
            tree = parse(pattern.regex, flags=self.flags, dialect=self.dialect)
        except GrammarError as error:
            where = f"{origin.where or origin.title}\n  in its expression, {error.where}"
            raise type(error)(f"{error.message} ({origin.title})", where, error.hint) from None
        if self.table.of(tree).nullable:
            raise UnsupportedFeature(
                f"{origin.title} can be empty", origin.where, "make it optional where it is used instead"
            )
        return tree

    def preferred(self, tree: Node, origin: _Origin, after: Neighbour) -> Node:
        """A terminal's syntax tree with guards; ``after`` is what may follow it.

        Raises:
            UnsupportedFeature: guards for it would be inexact or too many.
        """
        try:
            return preferred(tree, self.table, after)
        except UnsupportedFeature as error:
            raise UnsupportedFeature(f"{error.message} ({origin.title})", origin.where, error.hint) from None
