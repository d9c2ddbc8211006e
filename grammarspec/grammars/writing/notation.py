"""Writing a language as rules, in any notation: the part that all notations share.

The nodes are written one by one, each behind those that it is made of. What is used more than once, or is long, becomes
a rule of its own, so that the text is about as long as the grammar is large.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable
from enum import IntEnum
from typing import ClassVar, Final, NamedTuple, NoReturn

from grammarspec._compiler import (
    OP_AHEAD,
    OP_ALT,
    OP_BEHIND,
    OP_BOTH,
    OP_BYTES,
    OP_CALL,
    OP_CALL_WITH,
    OP_CODEPOINTS,
    OP_COMPLEMENT,
    OP_LITERAL,
    OP_REPEAT,
    OP_SEQ,
    OP_TERMINAL,
    OP_WHEN,
    OP_WORDS,
)
from grammarspec._compiler import Grammar as Ir
from grammarspec.errors import Unsatisfiable, UnsupportedFeature
from grammarspec.grammars import marks
from grammarspec.grammars.writing.automata import Automaton, automaton
from grammarspec.grammars.writing.converted import Converted, Lost
from grammarspec.grammars.writing.graph import Graph, GraphNode, joined

__all__ = ["Level", "Notation", "Piece", "ranges_of_class"]

_LONG: Final = 200
"""Characters from which on a piece becomes a rule of its own."""
_SHORT: Final = 16
"""Characters up to which a piece that is used often is written in each place."""
_MOST_AUTOMATA: Final = 20
_MOST_FAILED: Final = 3
"""Automata that may turn out to be too large before no other is tried."""
_ALL: Final = ((0, 0x10FFFF),)
_LOOKS: Final = frozenset((OP_AHEAD, OP_BEHIND))
_CONTEXT: Final = frozenset((OP_CALL, OP_CALL_WITH, OP_WHEN))


class Level(IntEnum):
    """How tightly a piece holds together: what needs parentheses within what."""

    CHOICE = 0
    SEQUENCE = 1
    REPEATED = 2
    ATOM = 3


class Piece(NamedTuple):
    """A part of the text that is written.

    Attributes:
        text: how it is spelled.
        level: how tightly it holds together.
    """

    text: str
    level: Level

    def at(self, level: Level) -> str:
        """The text, in parentheses if it does not hold together so tightly."""
        return self.text if self.level >= level else f"({self.text})"


class Notation(ABC):
    """One grammar in one notation.

    Attributes:
        title: what the notation is called.
        definition: how a rule is written, from its name and its body.
        start_name: the name of the rule to start with.
    """

    title: ClassVar[str]
    definition: ClassVar[str]
    start_name: ClassVar[str]

    def __init__(self, ir: Ir) -> None:
        self.ir, self.graph = ir, Graph(ir)
        self.lost: dict[Lost, None] = {}
        self.lines: list[str] = []
        self.pieces: dict[int, Piece] = {}
        self.names: set[str] = {self.start_name}
        self.owners = self._owners()
        self.looks = self._with_looks()
        self.rules = {rule: self.new_name(self.graph.names[rule]) for rule in self.graph.rules}
        self.found: dict[int, Automaton] = {}
        self.uses = self._plan()

    # What a notation decides.

    @abstractmethod
    def spelled_name(self, name: str) -> str:
        """The name of a rule with only such characters as names may have here."""

    @abstractmethod
    def text(self, text: str) -> Piece:
        """Exactly this text, which is not empty."""

    @abstractmethod
    def characters(self, ranges: tuple[tuple[int, int], ...]) -> Piece:
        """One character of a set, which is not empty."""

    @abstractmethod
    def special(self, name: str) -> Piece:
        """A special token; its name is enclosed in angle brackets."""

    empty: ClassVar[Piece] = Piece('""', Level.ATOM)

    # The grammar as a whole.

    def write(self) -> Converted:
        """Write the grammar.

        Raises:
            Unsatisfiable: the grammar has no texts.
            UnsupportedFeature: it has bytes that are no text, or a special token that cannot be named.
        """
        graph = self.graph
        if graph.start not in graph.productive:
            raise Unsatisfiable("no text belongs to the grammar, so there is nothing to write")
        for number in sorted(self.uses):
            if number in graph.productive:
                self.pieces[number] = self.piece(number)
        lines = [self.definition.format(self.start_name, self.body(graph.start).text)]
        for rule, name in self.rules.items():
            body = graph.bodies[rule]
            if graph.remembers(rule):
                self.lose("values that must differ", body, f"{self.title} has no rules that remember values")
            if body in self.pieces:
                lines.append(self.definition.format(name, self.body(body).text))
        return Converted("\n".join([*self.head(), *lines, *self.lines]) + "\n", tuple(self.lost))

    def head(self) -> Iterable[str]:
        """The lines that stand before all rules."""
        return ()

    # Nodes.

    def piece(self, number: int) -> Piece:
        """A node as text; a rule of its own if it is used often, or long."""
        node = self.graph.nodes[number]
        piece = self.node(number, node)
        used = self.uses[number]
        if node.op not in (OP_CALL, OP_CALL_WITH) and (
            (used > 1 and len(piece.text) > _SHORT) or (used and len(piece.text) > _LONG)
        ):
            return self.named(number, piece)
        return piece

    def body(self, number: int) -> Piece:
        """A node as the whole body of a rule."""
        return self.pieces[number]

    def named(self, number: int, piece: Piece) -> Piece:
        """A piece as a rule of its own; what names it."""
        name = self.new_name(self.owners[number])
        self.lines.append(self.definition.format(name, piece.text))
        return Piece(name, Level.ATOM)

    def node(self, number: int, node: GraphNode) -> Piece:
        """A node as text."""
        if number in self.found:
            return self.by_automaton(number, self.found[number])
        if node.op == OP_LITERAL:
            return self.literal(node.texts[0], number)
        if node.op == OP_WORDS:
            return self.alternatives([self.literal(text, number) for text in node.texts])
        if node.op == OP_CODEPOINTS:
            return self.characters(joined(node.ranges))
        if node.op == OP_BYTES:
            return self.bytes(joined(node.ranges), number)
        if node.op == OP_SEQ:
            return self.sequence([self.pieces[part] for part in node.parts])
        if node.op == OP_ALT:
            return self.alternatives([self.pieces[part] for part in node.parts if part in self.pieces])
        if node.op == OP_REPEAT:
            if node.parts[0] not in self.pieces:
                return self.empty
            return self.repeated(self.pieces[node.parts[0]], *node.counts)
        if node.op == OP_TERMINAL:
            return self.pieces[node.parts[0]]
        if node.op in (OP_CALL, OP_CALL_WITH):
            return Piece(self.rules[node.rule], Level.ATOM)
        return self.without(number, node)

    def sequence(self, pieces: list[Piece]) -> Piece:
        """One after the other."""
        pieces = [piece for piece in pieces if piece != self.empty]
        if len(pieces) < 2:
            return pieces[0] if pieces else self.empty
        return Piece(" ".join(piece.at(Level.SEQUENCE) for piece in pieces), Level.SEQUENCE)

    def alternatives(self, pieces: list[Piece]) -> Piece:
        """Any of them."""
        pieces = list(dict.fromkeys(pieces))
        if len(pieces) == 1:
            return pieces[0]
        return Piece(" | ".join(piece.at(Level.CHOICE) for piece in pieces), Level.CHOICE)

    def repeated(self, piece: Piece, least: int, most: int | None) -> Piece:
        """So many times."""
        if piece == self.empty or most == 0:
            return self.empty
        if (least, most) == (1, 1):
            return piece
        signs = {(0, None): "*", (1, None): "+", (0, 1): "?"}
        upper = "" if most is None else most
        sign = signs.get((least, most)) or (f"{{{least}}}" if least == most else f"{{{least},{upper}}}")
        return Piece(piece.at(Level.ATOM) + sign, Level.REPEATED)

    def literal(self, data: bytes, number: int) -> Piece:
        """A text, in which special tokens are marked."""
        pieces = []
        for part, name in marks.split(data):
            if name is not None:
                if not re.fullmatch(r"<[^<>\s\[^*][^<>\s]*>", name):
                    self.refuse(f"the special token {name!r:.60}", number, "there, names are enclosed in < and >")
                pieces.append(self.special(name))
                continue
            try:
                pieces.append(self.text(part.decode()))
            except UnicodeDecodeError:
                self.refuse("bytes that are no text in UTF-8", number)
        return self.sequence(pieces)

    def bytes(self, ranges: tuple[tuple[int, int], ...], number: int) -> Piece:
        """One byte; where all are meant, it stands for any character in the texts of a grammar."""
        if ranges == ((0, 255),):
            return self.characters(_ALL)
        if ranges[-1][1] > 127:
            self.refuse("bytes that are no text in UTF-8", number)
        return self.characters(ranges)

    def without(self, number: int, node: GraphNode) -> Piece:
        """A node that cannot be written, as a piece with more texts."""
        if node.op == OP_WHEN:
            self.lose("a condition on what came before", number, f"{self.title} has no parameters that set bits")
            return self.empty
        if node.op in _LOOKS:
            self.lose("a lookaround", number, f"{self.title} has none, and as an automaton it is too large")
            return self.empty
        if node.op == OP_BOTH:
            kept = [part for part in node.parts if not self.graph.is_anything(part)] or [node.parts[0]]
            if len(kept) > 1:
                self.lose("an intersection", number, f"{self.title} has none, and as an automaton it is too large")
            plain = [part for part in kept if self.graph.nodes[part].op != OP_COMPLEMENT]
            return self.pieces[(plain or kept)[0]]
        self.lose("a complement", number, f"{self.title} has none, and as an automaton it is too large")
        return self.repeated(self.characters(_ALL), 0, None)

    # Operators by automata.

    def needs_automaton(self, number: int, node: GraphNode) -> bool:
        """Whether a node is a regular part that uses an operator which the notation lacks."""
        if number in self.looks:
            return number in self.units
        if node.op == OP_TERMINAL:
            return node.parts[0] in self.looks
        if node.op == OP_BOTH:
            return len([part for part in node.parts if not self.graph.is_anything(part)]) > 1
        return node.op == OP_COMPLEMENT

    def by_automaton(self, number: int, found: Automaton) -> Piece:
        """A regular part by the states of its automaton, each of which is a rule."""
        names = [self.new_name(self.owners[number]) for _ in found]
        for name, (accepts, moves) in zip(names, found, strict=True):
            led = [
                self.sequence([self.characters(ranges), Piece(names[target], Level.ATOM)])
                for target, ranges in moves.items()
            ]
            body = self.alternatives([*led, self.empty] if accepts or not led else led)
            self.lines.append(self.definition.format(name, body.text))
        return Piece(names[0], Level.ATOM)

    def _plan(self) -> Counter[int]:
        """Make the automata of the parts that need one, and find the nodes that are to be written.

        Returns:
            The nodes, each with the number of places in which it is used. Those within an automaton are none of them.
        """
        graph = self.graph
        pending = [graph.start, *(graph.bodies[rule] for rule in graph.rules)]
        uses = Counter(pending)
        done: set[int] = set()
        failed = 0
        while pending:
            number = pending.pop()
            if number in done:
                continue
            done.add(number)
            node = graph.nodes[number]
            hopeful = len(self.found) < _MOST_AUTOMATA and failed < _MOST_FAILED
            if hopeful and self.needs_automaton(number, node):
                found = automaton(self.ir, number - graph.start)
                if found is not None:
                    self.found[number] = found
                    continue
                failed += 1
            uses.update(node.parts)
            pending += node.parts
        return uses

    # Places.

    def _owners(self) -> dict[int, str]:
        """Of each node the name of the rule in which it stands first."""
        graph = self.graph
        owners: dict[int, str] = {}
        bodies = [(graph.start, "start"), *((graph.bodies[rule], graph.names[rule]) for rule in graph.rules)]
        for body, name in bodies:
            pending = [body]
            while pending:
                number = pending.pop()
                if number not in owners:
                    owners[number] = name
                    pending += graph.nodes[number].parts
        return owners

    def _with_looks(self) -> set[int]:
        """The nodes that hold a lookaround outside any terminal, and in :attr:`units` the largest of them."""
        graph = self.graph
        context: set[int] = set()
        looks: set[int] = set()
        for number in graph.reached:
            node = graph.nodes[number]
            if node.op in _CONTEXT or any(part in context for part in node.parts):
                context.add(number)
            elif node.op in _LOOKS or (node.op != OP_TERMINAL and any(part in looks for part in node.parts)):
                looks.add(number)
        tops = {graph.start, *(graph.bodies[rule] for rule in graph.rules)}
        tops |= {part for number in context for part in graph.nodes[number].parts}
        self.units = looks & tops
        return looks

    def new_name(self, name: str) -> str:
        """A name like this one that no rule has yet."""
        base = self.spelled_name(name)
        new, number = base, 0
        while new in self.names:
            number += 1
            new = f"{base}-{number}"
        self.names.add(new)
        return new

    def lose(self, feature: str, number: int, reason: str) -> None:
        """Note that something could not be written."""
        self.lost[Lost(feature, self.owners[number], reason)] = None

    def refuse(self, feature: str, number: int, hint: str = "") -> NoReturn:
        """Say that a grammar cannot be written.

        Raises:
            UnsupportedFeature: always.
        """
        where = f"the rule {self.owners[number]}"
        raise UnsupportedFeature(f"{feature} cannot be written in {self.title}", where, hint)


def ranges_of_class(ranges: tuple[tuple[int, int], ...]) -> tuple[str, tuple[tuple[int, int], ...]]:
    """The sign and the ranges of a class: of the set, or, if that is shorter, ``^`` and those of all others."""
    others, next_free = [], 0
    for low, high in ranges:
        if low > next_free:
            others.append((next_free, low - 1))
        next_free = high + 1
    if next_free <= _ALL[0][1]:
        others.append((next_free, _ALL[0][1]))
    return ("^", tuple(others)) if others and len(others) < len(ranges) else ("", ranges)
