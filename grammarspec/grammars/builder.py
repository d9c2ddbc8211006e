"""The grammar builder: how every front-end describes a language to the compiler.

A front-end creates one :class:`GrammarBuilder`, asks it for nodes, and calls :meth:`GrammarBuilder.build`
once. A node is a plain ``int``; creating one appends a few integers to a flat array, so that describing a
whole JSON Schema costs microseconds and crosses into Rust in a single call.

Languages are over **bytes**; text is UTF-8. Nodes are of two kinds:

* *regular* nodes: literals, classes, ``seq``/``alt``/``repeat`` of regular nodes, and the Boolean and
  zero-width operators ``both``, ``complement``, ``ahead``, ``behind``;
* *context-free* nodes: anything that contains ``call``, ``call_with`` or ``when``.

``both``, ``complement``, ``ahead``, ``behind`` and ``terminal`` take regular nodes only; the compiler
refuses the rest.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from typing import Self

from grammarspec._compiler import (
    FEW,
    ITEMS,
    NAMES,
    OP_AHEAD,
    OP_ALT,
    OP_BEHIND,
    OP_BOTH,
    OP_BYTES,
    OP_CALL,
    OP_CALL_WITH,
    OP_CODEPOINTS,
    OP_COMPLEMENT,
    OP_LEXEME,
    OP_LITERAL,
    OP_NOTHING,
    OP_PARSER,
    OP_REPEAT,
    OP_SEQ,
    OP_TERMINAL,
    OP_TEXT,
    OP_WHEN,
    OP_WORDS,
    OPENS,
    PART,
    UNBOUNDED,
    WHEN_ALL_SET,
    WHEN_CLEAR,
    WHEN_WITHIN,
)
from grammarspec._compiler import Grammar as Ir
from grammarspec.grammars.budget import Budget

__all__ = ["FEW", "ITEMS", "NAMES", "OPENS", "PART", "UNBOUNDED", "GrammarBuilder"]


class GrammarBuilder:
    """Collects the nodes and rules of one grammar.

    Attributes:
        budget: the work that whoever describes the grammar may do. The builder itself takes nothing of it.
    """

    __slots__ = (
        "_blob",
        "_codepoints",
        "_kinds",
        "_literals",
        "_names",
        "_ops",
        "_rules",
        "_size",
        "anything",
        "budget",
        "empty",
        "nothing",
    )  # fmt: skip

    def __init__(self, budget: Budget | None = None) -> None:
        """Nothing is described yet.

        Args:
            budget: the work that whoever describes the grammar may do; one with the limits' defaults if not given.
        """
        self.budget = budget or Budget()
        self._ops = array("I")
        self._blob = bytearray()
        self._size = 0
        self._rules = array("I")
        self._names: list[str] = []
        self._kinds = bytearray()
        self._literals: dict[bytes, int] = {}
        self._codepoints: dict[tuple[tuple[int, int], ...], int] = {}
        self.nothing = self._node(OP_NOTHING, ())
        """The empty language: no text at all."""
        self.empty = self._node(OP_SEQ, ())
        """The empty text."""
        self.anything = self.repeat(self.bytes_in(((0, 255),)), 0, None)
        """Every byte string (not only valid UTF-8)."""

    def copy(self) -> Self:
        """A builder with the same nodes and rules, to which others can be added without changing this one.

        A subclass with further attributes extends this to copy them.
        """
        new = self.__new__(type(self))
        new.budget = self.budget
        new._ops, new._rules = self._ops[:], self._rules[:]
        new._blob, new._size = self._blob[:], self._size
        new._names, new._kinds = self._names[:], self._kinds[:]
        new._literals, new._codepoints = self._literals.copy(), self._codepoints.copy()
        new.nothing, new.empty, new.anything = self.nothing, self.empty, self.anything
        return new

    @property
    def size(self) -> int:
        """How much has been described so far, in integers that go to the compiler."""
        return len(self._ops)

    def _node(self, op: int, operands: Sequence[int]) -> int:
        self._ops.extend((op, len(operands), *operands))
        node = self._size
        self._size = node + 1
        return node

    def literal(self, text: str | bytes) -> int:
        """Exactly this text; a ``str`` is encoded as UTF-8.

        Raises:
            UnicodeEncodeError: the text holds a lone surrogate.
        """
        data = text.encode() if isinstance(text, str) else text
        node = self._literals.get(data)
        if node is None:
            self._ops.extend((OP_LITERAL, 2, len(self._blob), len(data)))
            self._blob += data
            node = self._literals[data] = self._size
            self._size = node + 1
        return node

    def words(self, texts: Iterable[str | bytes]) -> int:
        """Any one of these texts, also of very many: they become a minimised trie.

        Raises:
            UnicodeEncodeError: a text holds a lone surrogate.
        """
        operands: list[int] = []
        for text in texts:
            data = text.encode() if isinstance(text, str) else text
            operands.append(len(self._blob))
            operands.append(len(data))
            self._blob += data
        return self._node(OP_WORDS, operands)

    def bytes_in(self, ranges: Iterable[tuple[int, int]]) -> int:
        """One byte within the inclusive ranges."""
        return self._node(OP_BYTES, [bound for pair in ranges for bound in pair])

    def codepoints(self, ranges: Iterable[tuple[int, int]]) -> int:
        """One code point within the inclusive ranges, as UTF-8. Surrogates are left out: UTF-8 has none."""
        key = tuple(ranges)
        node = self._codepoints.get(key)
        if node is None:
            node = self._codepoints[key] = self._node(OP_CODEPOINTS, [bound for pair in key for bound in pair])
        return node

    def any_text(self, most: int | None = None) -> int:
        """Any text in UTF-8 of at most ``most`` code points (``None``: of any length).

        Raises:
            OverflowError: as :meth:`repeat`.
        """
        return self.repeat(self.codepoints([(0, 0x10FFFF)]), 0, most)

    def seq(self, *nodes: int) -> int:
        """One after the other."""
        if len(nodes) == 1:
            return nodes[0]
        self._ops.extend((OP_SEQ, len(nodes), *nodes))
        node = self._size
        self._size = node + 1
        return node

    def alt(self, *nodes: int) -> int:
        """Any of them; of none, the empty language."""
        if len(nodes) == 1:
            return nodes[0]
        self._ops.extend((OP_ALT, len(nodes), *nodes))
        node = self._size
        self._size = node + 1
        return node

    def repeat(self, node: int, least: int, most: int | None) -> int:
        """``least`` to ``most`` times (``None``: no upper bound). Counts are never expanded.

        Raises:
            OverflowError: a count is 2**32 - 1 or more.
        """
        if least >= UNBOUNDED or (most is not None and most >= UNBOUNDED):
            raise OverflowError(f"a repetition count must be below {UNBOUNDED}")
        return self._node(OP_REPEAT, (node, least, UNBOUNDED if most is None else most))

    def optional(self, node: int) -> int:
        """Once or not at all."""
        return self._node(OP_REPEAT, (node, 0, 1))

    def both(self, *nodes: int) -> int:
        """Intersection: the texts that every one of these regular nodes has."""
        return nodes[0] if len(nodes) == 1 else self._node(OP_BOTH, nodes)

    def complement(self, node: int) -> int:
        """Every byte string that this regular node does not have. Intersect it with valid text."""
        return self._node(OP_COMPLEMENT, (node,))

    def ahead(self, node: int) -> int:
        """Zero-width: the *whole* rest of the text of this terminal belongs to this regular node.

        Python's ``(?=x)`` is ``ahead(seq(x, anything))``; ``(?!x)`` is ``ahead(complement(seq(x, anything)))``;
        ``\\Z`` is ``ahead(empty)``.
        """
        return self._node(OP_AHEAD, (node,))

    def behind(self, node: int) -> int:
        """Zero-width: *all* the text of this terminal so far belongs to this regular node.

        Python's ``(?<=x)`` is ``behind(seq(anything, x))``; ``\\A`` is ``behind(empty)``.
        """
        return self._node(OP_BEHIND, (node,))

    def terminal(self, node: int) -> int:
        """This regular node as a lexical unit of its own.

        It does not change the language. It tells the compiler where to cut: masks are cached per terminal and
        shared by all places and grammars that use an equal one, so strings, numbers and identifiers should
        be terminals, while punctuation and keys are best left to be joined with their neighbours.
        """
        return self._node(OP_TERMINAL, (node,))

    def lexeme(self, node: int) -> int:
        """This regular node as a lexical unit whose :meth:`ahead` sees all the text behind it, too.

        That text goes to the end of the :meth:`text` or :meth:`parser` around it. Nodes :meth:`behind` see the lexeme
        alone, as they do in a terminal.
        """
        return self._node(OP_LEXEME, (node,))

    def text(self, name: str, node: int, skipped: Sequence[int] = ()) -> int:
        """The texts of this node, as a whole: lexemes in it see no further. Returns a call of a rule of that name.

        ``skipped``: lexemes of which any number may stand before each lexeme in the node, and at its end.
        """
        rule = self.rule(name)
        self.define(rule, self._node(OP_TEXT, (node, *skipped)))
        return self.call(rule)

    def parser(
        self,
        name: str,
        *,
        start: int,
        end: int,
        starves: bool,
        rules: Iterable[tuple[int, Sequence[int]]],
        ignored: Sequence[int],
        modes: Iterable[Sequence[tuple[int, int, int]]],
        classes: int = 1,
        states: Iterable[tuple[int, Sequence[tuple[int, int, int]], Sequence[tuple[int, int]]]],
        indenter: tuple[int, int, int, int, Sequence[int], Sequence[int]] | None = None,
    ) -> int:
        """The texts that a lexer and an LR parser take. Returns a call of a rule of that name.

        The numbers of terminals and those of the symbols that rules derive are different ones.

        Args:
            start: the state before the text.
            end: the state in which all of the text has been read.
            starves: whether the tables may let tokens pass behind which no text ends.
            rules: for each rule the symbol that it derives, and the symbols that it consists of.
            ignored: the terminals that are passed over.
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
        operands: list[int] = [start, end, int(starves), classes]

        def put(items: Iterable[Sequence[int]]) -> None:
            listed = list(items)
            operands.append(len(listed))
            for item in listed:
                operands.extend(item)

        put([(symbol, len(parts), *parts) for symbol, parts in rules])
        put([(terminal,) for terminal in ignored])
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
        self.define(rule, self._node(OP_PARSER, operands))
        return self.call(rule)

    def rule(self, name: str, kinds: int = 0) -> int:
        """Declare a rule, to be given its body by :meth:`define`. Returns the rule's number, which is no node.

        ``kinds`` is for JSON only. It marks rules about arrays whose items must be distinct, or objects whose names
        must be, so that texts that repeat one are refused although the rule's body has them. It is a sum of

        * ``OPENS``: the first byte of the rule is the bracket of such an array or object;
        * ``ITEMS``: the commas and the bracket in the rule's own body end items of the array, which must all differ;
        * ``NAMES``: the colons in the rule's own body end names of members, which must all differ;
        * ``FEW``: with ``OPENS``, unless every item or name can still become infinitely many values until it ends;
        * ``PART``: none of these, but kept apart from the rules around it, as items must be.

        Values are compared by their spelling without whitespace, members in any order, and ``1.0`` as ``1``. So items
        must have no other spellings, and the names in them must differ. The caller guarantees that there are enough
        different values for all items that must come: the compiler only checks that there is one more.
        """
        self._names.append(name)
        self._kinds.append(kinds)
        self._rules.append(UNBOUNDED)
        return len(self._names) - 1

    def define(self, rule: int, body: int) -> None:
        """Give a declared rule its body."""
        self._rules[rule] = body

    def define_others(self, body: int) -> None:
        """Give this body to all declared rules that have none yet."""
        self._rules = array("I", [body if own == UNBOUNDED else own for own in self._rules])

    def call(self, rule: int) -> int:
        """What this rule describes. Rules may call themselves and each other in any way."""
        return self._node(OP_CALL, (rule,))

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
        return self._node(OP_CALL_WITH, (rule, int(fresh), at, width, same, *setting))

    def when_clear(self, bits: Iterable[int]) -> int:
        """The empty text, if the parameter of the rule around this node has none of the bits; else nothing."""
        return self._node(OP_WHEN, (WHEN_CLEAR, *bits))

    def when_set(self, bits: Iterable[int]) -> int:
        """The empty text, if the parameter of the rule around this node has all of the bits; else nothing."""
        return self._node(OP_WHEN, (WHEN_ALL_SET, *bits))

    def when_count(self, counter: tuple[int, int], least: int, most: int | None) -> int:
        """The empty text, if that counter of the parameter is in the range (inclusive); else nothing."""
        return self._node(OP_WHEN, (WHEN_WITHIN, *counter, least, UNBOUNDED if most is None else most))

    def embed(self, grammar: Ir) -> int:
        """The language of a grammar that was built before."""
        arrays = grammar.arrays(self._size, len(self._rules), len(self._blob))
        ops, rules, blob, names, kinds, start, size = arrays
        self._ops.frombytes(ops)
        self._rules.frombytes(rules)
        self._blob += blob
        self._names += names
        self._kinds += kinds
        self._size += size
        return start

    def build(self, start: int) -> Ir:
        """Hand everything to the compiler, ``start`` being the node that describes the whole text.

        Raises:
            GrammarError: a rule has no body, or the compiler refuses how a node is used (a Boolean operator on a
                context-free node, say).
        """
        ops, rules = self._ops.tobytes(), self._rules.tobytes()
        return Ir(ops, rules, bytes(self._blob), self._names, bytes(self._kinds), start)
