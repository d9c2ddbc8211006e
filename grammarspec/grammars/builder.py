"""The grammar builder: how every front-end describes a language to the compiler.

A front-end creates one :class:`GrammarBuilder`, asks it for nodes, and calls :meth:`GrammarBuilder.build`
once. A node is a plain ``int``. The nodes themselves are in the compiler, which hash-conses them as they are
described (:class:`grammarspec._compiler.IrBuilder`): the methods for usual nodes are there, those for others here.

Languages are over **bytes**; text is UTF-8. Nodes are of two kinds:

* *regular* nodes: literals, classes, ``seq``/``alt``/``repeat`` of regular nodes, and the Boolean and
  zero-width operators ``both``, ``complement``, ``ahead``, ``behind``;
* *context-free* nodes: anything that contains ``call``, ``call_with`` or ``when``.

``both``, ``complement``, ``ahead``, ``behind`` and ``terminal`` take regular nodes only; the compiler
refuses the rest.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Self

from grammarspec._compiler import (
    FEW,
    ITEMS,
    NAMES,
    OP_AHEAD,
    OP_BEHIND,
    OP_BYTES,
    OP_CALL_WITH,
    OP_CODEPOINTS,
    OP_LEXEME,
    OP_LEXEMES,
    OP_NOTHING,
    OP_PARSER,
    OP_TEXT,
    OP_WHEN,
    OPENS,
    PART,
    UNBOUNDED,
    WHEN_ALL_SET,
    WHEN_CLEAR,
    WHEN_WITHIN,
    IrBuilder,
)
from grammarspec.grammars.budget import Budget

__all__ = ["FEW", "ITEMS", "NAMES", "OPENS", "PART", "UNBOUNDED", "GrammarBuilder"]


class GrammarBuilder(IrBuilder):
    """Collects the nodes and rules of one grammar.

    Attributes:
        budget: the work that whoever describes the grammar may do. The builder itself takes nothing of it.
    """

    __slots__ = ("_codepoints", "anything", "budget", "empty", "nothing")

    def __init__(self, budget: Budget | None = None) -> None:
        """Nothing is described yet.

        Args:
            budget: the work that whoever describes the grammar may do; one with the limits' defaults if not given.
        """
        self.budget = budget or Budget()
        self._codepoints: dict[tuple[tuple[int, int], ...], int] = {}
        self.nothing = self.node(OP_NOTHING, ())
        """The empty language: no text at all."""
        self.empty = self.seq()
        """The empty text."""
        self.anything = self.repeat(self.bytes_in(((0, 255),)), 0, None)
        """Every byte string (not only valid UTF-8)."""

    def copy(self) -> Self:
        """A builder with the same nodes and rules, to which others can be added without changing this one.

        A subclass with further attributes extends this to copy them.
        """
        new = self.__new__(type(self))
        new.take_over(self)
        new.budget, new._codepoints = self.budget, self._codepoints.copy()
        new.nothing, new.empty, new.anything = self.nothing, self.empty, self.anything
        return new

    def bytes_in(self, ranges: Iterable[tuple[int, int]]) -> int:
        """One byte within the inclusive ranges."""
        return self.node(OP_BYTES, [bound for pair in ranges for bound in pair])

    def codepoints(self, ranges: Iterable[tuple[int, int]]) -> int:
        """One code point within the inclusive ranges, as UTF-8. Surrogates are left out: UTF-8 has none."""
        key = tuple(ranges)
        node = self._codepoints.get(key)
        if node is None:
            node = self._codepoints[key] = self.node(OP_CODEPOINTS, [bound for pair in key for bound in pair])
        return node

    def any_text(self, most: int | None = None) -> int:
        """Any text in UTF-8 of at most ``most`` code points (``None``: of any length).

        Raises:
            OverflowError: as :meth:`repeat`.
        """
        return self.repeat(self.codepoints([(0, 0x10FFFF)]), 0, most)

    def ahead(self, node: int) -> int:
        """Zero-width: the *whole* rest of the text of this terminal belongs to this regular node.

        Python's ``(?=x)`` is ``ahead(seq(x, anything))``; ``(?!x)`` is ``ahead(complement(seq(x, anything)))``;
        ``\\Z`` is ``ahead(empty)``.
        """
        return self.node(OP_AHEAD, (node,))

    def behind(self, node: int) -> int:
        """Zero-width: *all* the text of this terminal so far belongs to this regular node.

        Python's ``(?<=x)`` is ``behind(seq(anything, x))``; ``\\A`` is ``behind(empty)``.
        """
        return self.node(OP_BEHIND, (node,))

    def lexeme(self, node: int) -> int:
        """This regular node as a lexical unit whose :meth:`ahead` sees all the text behind it, too.

        That text goes to the end of the :meth:`text` or :meth:`parser` around it. Nodes :meth:`behind` see the lexeme
        alone, as they do in a terminal.
        """
        return self.node(OP_LEXEME, (node,))

    def lexemes(self, placed: Iterable[tuple[int | None, int, int]]) -> int:
        """Any of some lexemes, as the character before them is.

        Args:
            placed: the class of the character before (``None``: any); a lexeme or terminal, which cannot be empty; and
                the class of its last character. Class ``0`` is also that of the beginning of a :meth:`text`. All
                lexemes of a text are placed, or none is.
        """
        operands = [
            number for before, node, last in placed for number in (UNBOUNDED if before is None else before, node, last)
        ]
        return self.node(OP_LEXEMES, operands) if operands else self.nothing

    def text(self, name: str, node: int, skipped: Sequence[int] = ()) -> int:
        """The texts of this node, as a whole: lexemes in it see no further. Returns a call of a rule of that name.

        ``skipped``: lexemes of which any number may stand before each lexeme in the node, and at its end.
        """
        rule = self.rule(name)
        self.define(rule, self.node(OP_TEXT, (node, *skipped)))
        return self.call(rule)

    def parser(
        self,
        name: str,
        *,
        start: int,
        end: int,
        rules: Iterable[tuple[int, Sequence[int]]],
        ignored: Sequence[int],
        refused: Iterable[tuple[int, int, Sequence[int]]] = (),
        modes: Iterable[Sequence[tuple[int, int, int]]],
        classes: int = 1,
        states: Iterable[tuple[int, Sequence[tuple[int, int, int]], Sequence[tuple[int, int]]]],
        indenter: tuple[int, int, int, int, Sequence[int], Sequence[int]] | None = None,
    ) -> int:
        """The texts that a lexer and an LR parser take. Returns a call of a rule of that name.

        Where a state has several actions before a terminal, all of them are followed (generalised LR, Tomita 1985),
        which ends if no rule begins with itself behind what can be empty.

        The numbers of terminals and those of the symbols that rules derive are different ones.

        Args:
            start: the state before the text.
            end: the state in which all of the text has been read.
            rules: for each rule the symbol that it derives, and the symbols that it consists of.
            ignored: the terminals that are passed over.
            refused: where conflicts were resolved: a state, a rule that is complete there, and the terminals that may
                come behind it before which it is not reduced.
            modes: for each mode of the lexer, and each class of the character before, its lexemes: the terminal, the
                node of its texts, and the class of their last character. A terminal may have several. The nodes exclude
                by their assertions what the lexer reads otherwise.
            classes: the number of classes; ``0`` is that of the beginning of the text.
            states: for each state the first mode in which the lexer reads on; its actions: the terminal
                (``UNBOUNDED``: the end of the text), and ``0`` and the state to shift to, or ``1`` and the rule to
                reduce by; and its gotos: a symbol and the state after it.
            indenter: what makes tokens of the indentation of lines, as ``lark.indenter`` does: the terminal that ends
                lines, those of indents and dedents, the blanks that a tab is, and the terminals that open and close
                brackets.
        """
        operands: list[int] = [start, end, classes]

        def put(items: Iterable[Sequence[int]]) -> None:
            listed = list(items)
            operands.append(len(listed))
            for item in listed:
                operands.extend(item)

        put([(symbol, len(parts), *parts) for symbol, parts in rules])
        put([(terminal,) for terminal in ignored])
        put([(state, rule, len(terminals), *terminals) for state, rule, terminals in refused])
        put([(len(mode), *(number for lexeme in mode for number in lexeme)) for mode in modes])
        all_states = list(states)
        operands.append(len(all_states))
        for mode, actions, gotos in all_states:
            operands.append(mode)
            put(actions)
            put(gotos)
        if indenter is not None:
            *numbers, opening, closing = indenter
            operands += numbers
            put([(terminal,) for terminal in opening])
            put([(terminal,) for terminal in closing])
        rule = self.rule(name)
        self.define(rule, self.node(OP_PARSER, operands))
        return self.call(rule)

    def call_with(
        self,
        rule: int,
        *,
        setting: Iterable[int] = (),
        counting: tuple[int, int] | None = None,
        fresh: bool = False,
        like: int | None = None,
    ) -> int:
        """What this rule describes given a parameter, made from the parameter of the rule around this node.

        A parameter is a set of bits (numbers below 65,536), all clear where a rule is called by :meth:`call`. The
        callee gets the caller's (none, if ``fresh``) with the bits of ``setting`` set and the counter ``counting`` one
        higher. A counter is ``(at, width)``: ``width`` bits (1 to 32) from the bit ``at`` on; its last value is kept.

        A rule that depends on its parameter must not be able to call itself before any text; the compiler refuses it.
        Bits are never cleared, so that rules like "each key once" always come nearer to an end. The compiler proves,
        trying alternatives in their order, that each value of a parameter that can be reached allows some ending;
        alternatives that lead to one are best put first. Where that proof would take long, ``like`` names a rule that
        is looked at instead: given the same parameter, it can be completed if and only if the callee can.
        """
        at, width = counting or (0, 0)
        same = 0 if like is None else like + 1
        return self.node(OP_CALL_WITH, (rule, int(fresh), at, width, same, *setting))

    def when_clear(self, bits: Iterable[int]) -> int:
        """The empty text, if the parameter of the rule around this node has none of the bits; else nothing."""
        return self.node(OP_WHEN, (WHEN_CLEAR, *bits))

    def when_set(self, bits: Iterable[int]) -> int:
        """The empty text, if the parameter of the rule around this node has all of the bits; else nothing."""
        return self.node(OP_WHEN, (WHEN_ALL_SET, *bits))

    def when_count(self, counter: tuple[int, int], least: int, most: int | None) -> int:
        """The empty text, if that counter of the parameter is in the range (inclusive); else nothing."""
        return self.node(OP_WHEN, (WHEN_WITHIN, *counter, least, UNBOUNDED if most is None else most))
