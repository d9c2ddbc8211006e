"""llguidance's variant of lark's syntax.

llguidance's lexer takes as much as it can for each lexeme and never goes back, so that a grammar means there what it
means here only if no lexeme can be taken too far. Where that is certain, the regular parts are lexemes
(:class:`_Lexemes`); else each character is one (:class:`_Characters`), which is exact, and slower to run there.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import ClassVar, Final

from grammarspec._compiler import (
    OP_ALT,
    OP_BOTH,
    OP_CALL,
    OP_CALL_WITH,
    OP_COMPLEMENT,
    OP_LITERAL,
    OP_SEQ,
    OP_TERMINAL,
    OP_WHEN,
)
from grammarspec._compiler import Grammar as Ir
from grammarspec.grammars import marks
from grammarspec.grammars.writing.converted import Converted
from grammarspec.grammars.writing.graph import GraphNode
from grammarspec.grammars.writing.lexing import Lexing, regular_runs
from grammarspec.grammars.writing.notation import Level, Notation, Piece, ranges_of_class

__all__ = ["to_llguidance"]

_CONTEXT: Final = frozenset((OP_CALL, OP_CALL_WITH, OP_WHEN))


def to_llguidance(ir: Ir) -> Converted:
    """A language in llguidance's syntax; see :meth:`grammarspec.Grammar.to_llguidance`.

    Raises:
        Unsatisfiable: the language is empty.
        UnsupportedFeature: it has bytes that are no text, or a special token that cannot be named.
    """
    lexemes = _Lexemes(ir)
    return lexemes.write() if lexemes.are_certain() else _Characters(ir).write()


class _Characters(Notation):
    """Each character is a lexeme of its own."""

    title: ClassVar[str] = "llguidance's syntax"
    definition: ClassVar[str] = "{}: {}"
    start_name: ClassVar[str] = "start"

    def head(self) -> Iterable[str]:
        return ("%llguidance {}", "")

    def spelled_name(self, name: str) -> str:
        spelled = re.sub("[^a-z0-9_]+", "_", name.lower()).strip("_") or "rule"
        return spelled if spelled[0].isalpha() else f"rule_{spelled}"

    def text(self, text: str) -> Piece:
        return self.sequence([Piece(_quoted(char), Level.ATOM) for char in text])

    def characters(self, ranges: tuple[tuple[int, int], ...]) -> Piece:
        sign, listed = ranges_of_class(ranges)
        if (sign, listed) == ("", ((0, 0x10FFFF),)):
            return Piece("/(?s:.)/", Level.ATOM)
        spelled = []
        for low, high in listed:
            first, last = _escaped(chr(low)), _escaped(chr(high))
            spelled.append(first if low == high else f"{first}-{last}")
        return Piece(f"/[{sign}{''.join(spelled)}]/", Level.ATOM)

    def special(self, name: str) -> Piece:
        return Piece(name, Level.ATOM)


class _Lexemes(_Characters):
    """The regular parts are lexemes; operators on them are written as they are."""

    def __init__(self, ir: Ir) -> None:
        super().__init__(ir)
        self.regular = self._regular()
        self.named_lexemes: dict[tuple[int, ...], Piece] = {}

    def are_certain(self) -> bool:
        """Whether no lexeme can be taken too far."""
        nodes = self.graph.nodes
        if self.looks or any(
            nodes[number].op == OP_TERMINAL and nodes[number].parts[0] in self.looks for number in self.uses
        ):
            return False
        mixed = [node for number in self.graph.reached if (node := nodes[number]).op == OP_LITERAL and _is_mixed(node)]
        return not mixed and Lexing(self.ir, self.graph, self.regular).is_certain()

    def needs_automaton(self, number: int, node: GraphNode) -> bool:
        return False

    def _regular(self) -> set[int]:
        """The nodes without calls, conditions and special tokens."""
        found: set[int] = set()
        for number in self.graph.reached:
            node = self.graph.nodes[number]
            marked = any(marks.reserved(text) for text in node.texts)
            if node.op not in _CONTEXT and not marked and all(part in found for part in node.parts):
                found.add(number)
        return found

    def text(self, text: str) -> Piece:
        return Piece(_quoted(text), Level.ATOM)

    def new_terminal(self, name: str) -> str:
        """A name of a terminal that is not used yet."""
        base = self.spelled_name(name).upper()
        new, number = base, 0
        while new in self.names:
            number += 1
            new = f"{base}_{number}"
        self.names.add(new)
        return new

    def named(self, number: int, piece: Piece) -> Piece:
        if number not in self.regular:
            return super().named(number, piece)
        name = self.new_terminal(self.owners[number])
        self.lines.append(self.definition.format(name, piece.text))
        return Piece(name, Level.ATOM)

    def lexeme(self, run: tuple[int, ...]) -> Piece:
        """Regular nodes, one after the other, as one lexeme."""
        piece = self.sequence([self.pieces[number] for number in run])
        if piece.level == Level.ATOM and not piece.text.startswith("~"):
            return piece
        if run not in self.named_lexemes:
            name = self.new_terminal(self.owners[run[0]])
            self.lines.append(self.definition.format(name, piece.text))
            self.named_lexemes[run] = Piece(name, Level.ATOM)
        return self.named_lexemes[run]

    def node(self, number: int, node: GraphNode) -> Piece:
        if number in self.regular:
            if node.op == OP_BOTH:
                parts = [self.pieces[part] for part in node.parts if part in self.pieces]
                return Piece(" & ".join(part.at(Level.SEQUENCE) for part in parts), Level.CHOICE)
            if node.op == OP_COMPLEMENT:
                return self.complement(node)
            return super().node(number, node)
        if node.op == OP_SEQ:
            return self.sequence(self.runs(node.parts))
        if node.op == OP_ALT:
            return self.alternatives([self.in_rule(part) for part in node.parts if part in self.pieces])
        return super().node(number, node)

    def complement(self, node: GraphNode) -> Piece:
        """All other texts; of a part that has none, all texts."""
        if node.parts[0] not in self.pieces:
            return self.repeated(self.characters(((0, 0x10FFFF),)), 0, None)
        return Piece(f"~{self.pieces[node.parts[0]].at(Level.ATOM)}", Level.ATOM)

    def in_rule(self, number: int) -> Piece:
        """A node as a rule has it."""
        return self.lexeme((number,)) if number in self.regular else self.pieces[number]

    def runs(self, parts: tuple[int, ...]) -> list[Piece]:
        """The parts of a sequence in a rule; those that are regular and follow each other are one lexeme."""
        return [
            self.lexeme(run) if run[0] in self.regular else self.pieces[run[0]]
            for run in regular_runs(parts, self.regular)
        ]

    def body(self, number: int) -> Piece:
        return self.in_rule(number)


def _is_mixed(node: GraphNode) -> bool:
    """Whether a literal has both text and special tokens."""
    return len({name is None for _, name in marks.split(node.texts[0])}) > 1


def _quoted(text: str) -> str:
    return re.sub(r"\x7f", r"\\u007f", json.dumps(text, ensure_ascii=not text.isprintable()))


def _escaped(char: str) -> str:
    """A character within a class."""
    if char.isascii() and (char.isalnum() or char in " _"):
        return char
    return f"\\x{ord(char):02X}" if ord(char) < 128 else char if char.isalnum() else f"\\u{{{ord(char):X}}}"
