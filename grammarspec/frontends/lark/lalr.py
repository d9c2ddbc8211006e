"""From an LALR parser to the parser of the grammar builder.

The tables say what each state does (:mod:`.tables`), and lark which terminals its lexer tries there. What is made here
is the same automaton in the builder's numbers, with lexemes as nodes (:mod:`.lexers`).

Where code makes tokens of indentation, they depend on what has been read, and this automaton is what counts it. So it
also stands for lark's parser of Earley's then, with all actions of its tables.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from grammarspec.frontends.lark.lexers import IGNORED, Lexemes
from grammarspec.frontends.lark.text import GrammarText
from grammarspec.grammars.builder import UNBOUNDED, GrammarBuilder

__all__ = ["lalr"]

_END = "$END"
_STATE = 16
"""Steps of an action or goto, beside those of the tables (:mod:`.tables`)."""


def lalr(parser: Any, starts: Sequence[str], text: GrammarText, builder: GrammarBuilder) -> int:
    """The node of the texts that a parser takes from any of the rules to start from.

    Args:
        parser: a ``lark.Lark`` with ``parser="lalr"`` and :class:`Tables`.
        text: the grammar, for positions in it.

    Raises:
        GrammarError: a terminal uses what is refused.
    """
    return _Tables(parser, text, builder).node(starts)


class _Tables:
    """The tables of one parser, in numbers."""

    def __init__(self, parser: Any, text: GrammarText, builder: GrammarBuilder) -> None:
        self.builder = builder
        self.tables = parser.parser.parser
        self.table = self.tables._parse_table
        lexer = parser.parser.lexer
        self.lexer = lexer.lexer if parser.parser.lexer_conf.postlex else lexer
        self.ignored = frozenset(parser.parser.lexer_conf.ignore)
        configuration = parser.parser.lexer_conf
        flags, re_module = configuration.g_regex_flags, configuration.re_module
        self.lexemes = Lexemes(configuration.terminals, text, flags, re_module, builder)
        self.postlex = configuration.postlex
        self.symbols: dict[str, int] = {}
        self.derived = {rule.origin.name for rule in parser.rules}
        self.rules: dict[int, int] = {}
        self.productions: list[tuple[int, list[int]]] = []
        self.numbers = {state: number for number, state in enumerate(self.table.states)}

    def node(self, starts: Sequence[str]) -> int:
        """The texts from any of these rules on."""
        modes: list[list[tuple[int, int, int]]] = []
        mode_numbers: dict[int, int] = {}
        states = []
        for state, moves in self.table.states.items():
            lexer = getattr(self.lexer, "lexers", {}).get(state, self.lexer)
            if id(lexer) not in mode_numbers:
                mode_numbers[id(lexer)] = len(modes)
                for mode in self.lexemes.modes(lexer.terminals, self.ignored):
                    modes.append([(self.symbol(name), node, last) for name, node, last in mode])
            actions, gotos = self.moves(state, moves)
            states.append((mode_numbers[id(lexer)], actions, gotos))
        left_out = self.tables.set_aside if self.tables.resolved else ()
        refused = [(state, *one) for state in left_out for one in self.set_aside(state)]
        indenter = self.indenter(self.postlex) if self.postlex else None
        nodes = [
            self.builder.parser(
                start,
                start=self.numbers[self.table.start_states[start]],
                end=self.numbers[self.table.end_states[start]],
                rules=self.productions,
                ignored=[self.symbol(IGNORED)],
                refused=refused,
                modes=modes,
                classes=len(self.lexemes.classes),
                states=states,
                indenter=indenter,
            )
            for start in starts
        ]
        return self.builder.alt(*nodes)

    def moves(self, state: int, moves: Any) -> tuple[list[tuple[int, int, int]], list[tuple[int, int]]]:
        """The actions and gotos of a state."""
        from lark.parsers.lalr_analysis import Shift

        actions, gotos = [], []
        for name, (action, argument) in moves.items():
            self.builder.budget.spend(_STATE)
            if action is not Shift:
                actions.append((self.symbol(name), 1, self.rule(argument)))
            elif name == _END:
                pass  # the text has ended before that
            elif name in self.derived:
                gotos.append((self.symbol(name), self.numbers[argument]))
            else:
                actions.append((self.symbol(name), 0, self.numbers[argument]))
        if not self.tables.resolved:
            actions += [(name, 1, rule) for rule, names in self.set_aside(state) for name in names]
        return actions, gotos

    def set_aside(self, state: int) -> Iterator[tuple[int, list[int]]]:
        """The rules that are complete in a state, and the terminals before which its table has something else."""
        for rule, terminals in self.tables.set_aside.get(state, {}).items():
            self.builder.budget.spend(_STATE)
            yield self.rule(rule), [*map(self.symbol, terminals)]

    def indenter(self, indenter: Any) -> tuple[int, int, int, int, list[int], list[int]]:
        """What a ``lark.indenter.Indenter`` is told to do, in numbers."""
        newline, indent, dedent = map(self.symbol, (indenter.NL_type, indenter.INDENT_type, indenter.DEDENT_type))
        opening, closing = (
            [*map(self.symbol, types)] for types in (indenter.OPEN_PAREN_types, indenter.CLOSE_PAREN_types)
        )
        return newline, indent, dedent, indenter.tab_len, opening, closing

    def symbol(self, name: str) -> int:
        """The number of a terminal, or of a rule."""
        return UNBOUNDED if name == _END else self.symbols.setdefault(name, len(self.symbols))

    def rule(self, rule: Any) -> int:
        """The number of a production."""
        known = self.rules.get(id(rule))
        if known is None:
            known = self.rules[id(rule)] = len(self.productions)
            parts = [self.symbol(symbol.name) for symbol in rule.expansion]
            self.productions.append((self.symbol(rule.origin.name), parts))
        return known
