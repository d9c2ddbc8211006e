"""All that makes a grammar be refused that lark's loader takes, where making its nodes stops at the first error.

The nodes are made as always, by the same classes; but an error is taken down, and something harmless stands in the
place of what it was about.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any, Final, Protocol, TypeVar

from grammarspec.errors import GrammarError, GrammarSyntaxError, UnsupportedFeature
from grammarspec.frontends.lark.lexers import BasicTerminals, Lexeme, Lexemes
from grammarspec.frontends.lark.limits import check_expansion
from grammarspec.frontends.lark.loader import Source
from grammarspec.frontends.lark.opening import Opened
from grammarspec.frontends.lark.options import Options
from grammarspec.frontends.lark.rules import AnyTerminals, Rules
from grammarspec.frontends.lark.terminals import Terminals
from grammarspec.frontends.lark.tree import Body, Pattern
from grammarspec.frontends.regex.facts import Neighbour
from grammarspec.frontends.regex.tree import Node, Text
from grammarspec.grammars.budget import Budget
from grammarspec.grammars.builder import GrammarBuilder

__all__ = ["ModeLexemes", "modes", "obstacles"]

T = TypeVar("T")

_PATTERN: Final = Pattern("\0", "\0", "\0", True)
_TREE: Final[Node] = Text("\0")
"""What stands in the place of terminals: a text that no grammar has."""


def obstacles(source: Source, opened: Opened, budget: Budget) -> tuple[list[GrammarError], Any]:
    """The errors for which a grammar is refused.

    Returns:
        the errors, and lark's parser of the grammar with one of lark's own lexers; ``None`` if there is none.
    """
    found: list[GrammarError] = []
    options, builder, parser = opened.options, GrammarBuilder(budget), None
    postlex = dict(options.others).get("postlex")
    budget.allow(partial(len, opened.text))
    try:
        if options.parser == "lalr" or options.lexer == "basic":
            parser = _parser(source, opened, budget, found)
            lexemes = ModeLexemes(source, parser, builder, found)
            for definitions, ignored in modes(parser):
                lexemes.modes(definitions, ignored)
    except GrammarError as error:
        found.append(error)
    try:
        if parser is None and postlex is None:
            # For lark's own lexers, too, if lark makes none: what is refused of terminals is mostly the same.
            terminals: AnyTerminals = _DynamicTerminals(source, builder, options, found)
            _Rules(source, terminals, builder, found).start(options.start)
        elif not options.has_tables and not found:
            terminals = BasicTerminals(parser, source.text, builder)
            _Rules(source, terminals, builder, found).start(options.start)
    except GrammarError as error:
        found.append(error)
    return found, parser


def modes(parser: Any) -> Iterator[tuple[list[Any], frozenset[str]]]:
    """The modes of the lexer of lark's parser: its terminals in the order in which they are tried, and the ignored."""
    configuration = parser.parser.lexer_conf
    lexer = parser.parser.lexer
    lexer = lexer.lexer if configuration.postlex else lexer
    different = {id(one): one for one in getattr(lexer, "lexers", {0: lexer}).values()}
    for one in different.values():
        yield one.terminals, frozenset(configuration.ignore)


def _parser(source: Source, opened: Opened, budget: Budget, found: list[GrammarError]) -> Any:
    """Lark's parser; where it is refused, one that is not strict, or one without tables, for all terminals.

    Raises:
        GrammarError: lark refuses the grammar for other reasons.
    """
    options = opened.options
    check_expansion(source.rules, budget, tables=options.has_tables)
    lenient = replace(options, others=_without(options, "strict"))
    for one in (options, lenient) if dict(options.others).get("strict") else (options,):
        try:
            return one.tables(opened.text, opened.file, source.grammar, budget)
        except GrammarError as error:
            if "Reduce/Reduce" not in error.message:  # those are conflicts, which are looked for by themselves
                found.append(error)
    loose = replace(options, parser="earley", lexer="basic", others=_without(options, "strict", "postlex"))
    return loose.tables(opened.text, opened.file, source.grammar, budget)


def _without(options: Options, *names: str) -> tuple[tuple[str, Any], ...]:
    return tuple(item for item in options.others if item[0] not in names)


class ModeLexemes(Lexemes):
    """The lexemes of lark's own lexers; of those that are refused, the errors."""

    def __init__(self, source: Source, parser: Any, builder: GrammarBuilder, found: list[GrammarError]) -> None:
        configuration = parser.parser.lexer_conf
        self.found = found
        flags, re_module = configuration.g_regex_flags, configuration.re_module
        super().__init__(configuration.terminals, source.text, flags, re_module, builder)

    def new_tree(self, definition: Any) -> Node:
        """The syntax tree of a terminal; of one that is refused, another."""
        return _or(self, lambda: super(ModeLexemes, self).new_tree(definition), _TREE)

    def behind(self, definition: Any, tree: Node, before: Neighbour) -> Node:
        """The syntax tree behind a character; of a terminal that is refused, another."""
        decided = _or(self, lambda: super(ModeLexemes, self).behind(definition, tree, before), None)
        if decided is None:
            decided = self.trees[definition.name] = _TREE
        return decided

    def lexemes(self, terminal: Any, rivals: Any, words: Any) -> list[Lexeme]:
        """The lexemes of a terminal; none, if they are refused."""
        return _or(self, lambda: super(ModeLexemes, self).lexemes(terminal, rivals, words), [])


class _DynamicTerminals(Terminals):
    """The terminals of lark's dynamic lexers; of those that are refused, the errors."""

    def __init__(self, source: Source, builder: GrammarBuilder, options: Options, found: list[GrammarError]) -> None:
        self.found = found
        complete = options.lexer == "dynamic_complete"
        super().__init__(source, builder, options.flags, options.dialect, complete=complete)

    def classes_before(self) -> tuple[Neighbour, ...]:
        """Looks at terminals that may not be used, too: what is refused is an error where it is used, if it is."""
        found, self.found = self.found, []
        classes = super().classes_before()
        self.found = found
        self.trees.clear()
        return classes

    def pattern(self, origin: Any) -> Pattern:
        return _or(self, lambda: super(_DynamicTerminals, self).pattern(origin), _PATTERN)

    def new_tree(self, pattern: Pattern, origin: Any) -> Node:
        return _or(self, lambda: super(_DynamicTerminals, self).new_tree(pattern, origin), _TREE)

    def behind(self, tree: Node, origin: Any, before: Neighbour) -> Node:
        return _or(self, lambda: super(_DynamicTerminals, self).behind(tree, origin, before), _TREE)

    def preferred(self, tree: Node, origin: Any, after: Any) -> Node:
        return _or(self, lambda: super(_DynamicTerminals, self).preferred(tree, origin, after), tree)


class _Rules(Rules):
    """The rules; of what is refused in them, the errors."""

    def __init__(
        self, source: Source, terminals: AnyTerminals, builder: GrammarBuilder, found: list[GrammarError]
    ) -> None:
        super().__init__(source, terminals, builder)
        self.found = found

    def node(self, body: Body, scope: Any) -> int:
        try:
            return super().node(body, scope)
        except (GrammarSyntaxError, UnsupportedFeature) as error:
            self.found.append(error)
            return self.builder.empty

    def repetition(self, node: int, operator: str, counts: tuple[str, ...]) -> int:
        return _or(self, lambda: super(_Rules, self).repetition(node, operator, counts), node)


class _Watched(Protocol):
    """What makes nodes, and takes down the errors of those that are refused."""

    found: list[GrammarError]
    builder: GrammarBuilder


def _or(maker: _Watched, make: Callable[[], T], otherwise: T) -> T:
    """What is made; or something else, if that is refused, and the error is added to those of the maker.

    Raises:
        LimitExceeded: the budget is used up, so that nothing else can be looked at.
    """
    try:
        return make()
    except GrammarError as error:
        if maker.builder.budget.is_used_up:
            raise
        maker.found.append(error)
        return otherwise
