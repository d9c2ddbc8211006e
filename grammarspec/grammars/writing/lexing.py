"""Whether a lexer that takes as much as it can cuts every text of a grammar as the rules do.

It does if no lexeme, once complete, can be gone on with by the first byte of what follows it: neither by the lexeme
itself nor by another that is looked for at the same place. Which are looked for together is bounded from above,
by those that may follow each other, so that the answer errs on one side only.
"""

from __future__ import annotations

from typing import Final

from grammarspec._compiler import OP_CALL, OP_CALL_WITH, OP_REPEAT, OP_SEQ
from grammarspec._compiler import Grammar as Ir
from grammarspec.errors import LimitExceeded, Unsatisfiable
from grammarspec.grammars.builder import GrammarBuilder
from grammarspec.grammars.engine import Limits, byte_index, compile_ir
from grammarspec.grammars.writing.graph import Graph

__all__ = ["Lexing", "regular_runs"]

_MOST_LEXEMES: Final = 200
_LIMITS: Final = Limits(max_steps=200_000)
_MOST_LOOKS: Final = 100_000
"""Looks at nodes of rules, while what follows what is found."""
_MOST_TRIED: Final = 300
"""Questions that are asked of the engine."""

Run = tuple[int, ...]


class Lexing:
    """The lexemes of one grammar, and what follows them.

    Attributes:
        lexemes: the runs of regular nodes that are lexemes, and the special tokens, numbered; sets of them are the bits
            of numbers.
    """

    def __init__(self, ir: Ir, graph: Graph, regular: set[int]) -> None:
        self.graph, self.regular = graph, regular
        self.lexemes: dict[Run, int] = {}
        self.tried = self.looks = 0
        self.builder = GrammarBuilder()
        self.shift = self.builder.embed(ir) - graph.start
        self.nullable: set[int] = set()
        self.first: dict[int, int] = {}
        self.follow: dict[int, int] = {}
        """Of each lexeme, those that may follow it."""

    def is_certain(self) -> bool:
        """Whether every text is cut as the rules do; also false where that takes long to tell."""
        if self.graph.start in self.regular:
            return True
        try:
            self._find_first()
            self._find_follow()
            return len(self.lexemes) <= _MOST_LEXEMES and not self._conflict()
        except LimitExceeded:
            return False

    # Lexemes that follow each other.

    def runs(self, number: int) -> list[Run]:
        """What a node of a rule is made of, in order."""
        node = self.graph.nodes[number]
        parts = [part for part in node.parts if part in self.graph.productive]
        return regular_runs(tuple(parts), self.regular) if node.op == OP_SEQ else [(part,) for part in parts]

    def lexeme(self, run: Run) -> int:
        """The set of one lexeme."""
        return 1 << self.lexemes.setdefault(run, len(self.lexemes))

    def is_lexeme(self, run: Run) -> bool:
        """Whether it is one, or a special token, and not a part with rules in it."""
        return run[0] in self.regular or not (self.graph.follows(run[0]) or run[0] in self.nullable)

    def first_of(self, run: Run) -> int:
        """The lexemes that a part begins with."""
        return self.lexeme(run) if self.is_lexeme(run) else self.first.get(run[0], 0)

    def is_nullable(self, run: Run) -> bool:
        """Whether a part may be made of no lexeme."""
        return run[0] not in self.regular and run[0] in self.nullable

    def rule_nodes(self) -> list[int]:
        """The nodes that are no lexemes, for one more look at each.

        Raises:
            LimitExceeded: they were looked at too often.
        """
        nodes = [number for number in self.graph.reached if number not in self.regular]
        self.looks += len(nodes)
        if self.looks > _MOST_LOOKS:
            raise LimitExceeded("too many rules are looked at")
        return nodes

    def _find_first(self) -> None:
        changed = True
        while changed:
            changed = False
            for number in self.rule_nodes():
                node = self.graph.nodes[number]
                runs = [(self.graph.bodies[node.rule],)] if node.op in (OP_CALL, OP_CALL_WITH) else self.runs(number)
                if node.op == OP_SEQ:
                    nullable, first = True, 0
                    for run in runs:
                        first |= self.first_of(run) if nullable else 0
                        nullable = nullable and self.is_nullable(run)
                elif runs:
                    nullable = any(map(self.is_nullable, runs)) or (node.op == OP_REPEAT and not node.counts[0])
                    first = 0
                    for run in runs:
                        first |= self.first_of(run)
                else:
                    nullable, first = not node.texts, self.lexeme((number,)) if node.texts else 0
                if (nullable, first) != (number in self.nullable, self.first.get(number, 0)):
                    changed = True
                    self.first[number] = first
                    self.nullable |= {number} if nullable else set()

    def _find_follow(self) -> None:
        behind: dict[int, int] = {}
        changed = True

        def note(run: Run, follow: int) -> None:
            nonlocal changed
            table, key = (self.follow, self.lexemes[run]) if run in self.lexemes else (behind, run[0])
            if table.get(key, 0) | follow != table.get(key, 0):
                table[key] = table.get(key, 0) | follow
                changed = True

        while changed:
            changed = False
            for number in self.rule_nodes():
                node = self.graph.nodes[number]
                follow = behind.get(number, 0)
                if node.op in (OP_CALL, OP_CALL_WITH):
                    note((self.graph.bodies[node.rule],), follow)
                    continue
                runs = self.runs(number)
                for run in reversed(runs):
                    if node.op == OP_REPEAT:
                        follow |= self.first_of(run)
                    note(run, follow)
                    if node.op == OP_SEQ:
                        follow = self.first_of(run) | (follow if self.is_nullable(run) else 0)

    # Conflicts.

    def _conflict(self) -> bool:
        """Whether some lexeme may be gone on with at a place where another follows."""
        builder, numbers = self.builder, list(self.lexemes.values())
        runs = list(self.lexemes)
        nodes = [builder.seq(*(part + self.shift for part in run)) for run in runs]
        begins = {number: self._first_bytes(nodes[number]) for number in numbers if runs[number][0] in self.regular}
        start = (self.graph.start,)
        beside = self._beside(self.first_of(start), nodes, begins)
        found = []
        for number in begins:
            bytes_behind = self._bytes_of(self.follow.get(number, 0), begins)
            others = [nodes[other] for other in _bits(beside[number] | 1 << number) if other in begins]
            if bytes_behind:
                further = builder.seq(
                    nodes[number], builder.bytes_in([(b, b) for b in sorted(bytes_behind)]), builder.anything
                )
                found.append(builder.both(further, builder.alt(*others)))
        return self._has_texts(builder.alt(*found))

    def _beside(self, initial: int, nodes: list[int], begins: dict[int, tuple[frozenset[int], bool]]) -> dict[int, int]:
        """Of each lexeme, those that may be looked for at the same place."""
        beside = {number: initial if initial >> number & 1 else 0 for number in range(len(nodes))}
        together: dict[tuple[int, int], bool] = {}
        changed = True
        while changed:
            changed = False
            for number in range(len(nodes)):
                row = self.follow.get(number, 0)
                for other in _bits(beside[number] & ~(1 << number)):
                    pair = (min(number, other), max(number, other))
                    if pair not in together:
                        both = pair[0] in begins and pair[1] in begins
                        together[pair] = both and self._has_texts(self.builder.both(nodes[pair[0]], nodes[pair[1]]))
                    row |= self.follow.get(other, 0) if together[pair] else 0
                for following in _bits(self.follow.get(number, 0)):
                    if beside[following] | row != beside[following]:
                        beside[following] |= row
                        changed = True
        return beside

    def _bytes_of(self, lexemes: int, begins: dict[int, tuple[frozenset[int], bool]]) -> set[int]:
        """The first bytes of these lexemes; of those that may be empty, of what follows them as well."""
        found: set[int] = set()
        seen, pending = 0, lexemes
        while pending & ~seen:
            fresh, seen = pending & ~seen, seen | pending
            for number in _bits(fresh):
                first, nullable = begins.get(number, (frozenset[int](), False))
                found |= first
                pending |= self.follow.get(number, 0) if nullable else 0
        return found

    # Questions to the engine.

    def _first_bytes(self, node: int) -> tuple[frozenset[int], bool]:
        """The bytes that a regular node begins with, and whether it has the empty text."""
        self._count()
        try:
            constraint = compile_ir(self.builder.build(node), byte_index(), _LIMITS)
        except Unsatisfiable:
            return frozenset(), False
        following, ends = constraint.matcher().next_bytes()
        return frozenset(following), ends

    def _has_texts(self, node: int) -> bool:
        self._count()
        try:
            compile_ir(self.builder.build(node), byte_index(), _LIMITS)
        except Unsatisfiable:
            return False
        return True

    def _count(self) -> None:
        self.tried += 1
        if self.tried > _MOST_TRIED:
            raise LimitExceeded("too many lexemes are compared")


def regular_runs(parts: Run, regular: set[int]) -> list[Run]:
    """The parts of a sequence, with those joined that are regular and follow each other."""
    runs: list[Run] = []
    for part in parts:
        if runs and part in regular and runs[-1][0] in regular:
            runs[-1] = (*runs[-1], part)
        else:
            runs.append((part,))
    return runs


def _bits(number: int) -> list[int]:
    return [bit for bit in range(number.bit_length()) if number >> bit & 1]
