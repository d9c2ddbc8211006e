"""The compiler's form of a language as a graph of nodes."""

from __future__ import annotations

from array import array
from dataclasses import dataclass

from grammarspec._compiler import (
    FEW,
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
    OP_LEXEMES,
    OP_LITERAL,
    OP_NOTHING,
    OP_PARSER,
    OP_REPEAT,
    OP_SEQ,
    OP_TERMINAL,
    OP_TEXT,
    OP_WORDS,
    PART,
    UNBOUNDED,
)
from grammarspec._compiler import Grammar as Ir
from grammarspec.errors import UnsupportedFeature

__all__ = ["Graph", "GraphNode"]

_PARENTS = frozenset((OP_SEQ, OP_ALT, OP_BOTH, OP_COMPLEMENT, OP_AHEAD, OP_BEHIND, OP_TERMINAL))
_CALLS = frozenset((OP_CALL, OP_CALL_WITH))
_ALL_BYTES = ((0, 255),)


@dataclass(frozen=True, slots=True)
class GraphNode:
    """A node.

    Attributes:
        op: its operation, one of the compiler's ``OP_...``.
        parts: the nodes that it is made of.
        texts: of a literal, or of words, the texts.
        ranges: of bytes or code points, the inclusive ranges.
        counts: of a repetition, the least and the most (``None``: unbounded).
        rule: of a call, the number of the rule.
    """

    op: int
    parts: tuple[int, ...] = ()
    texts: tuple[bytes, ...] = ()
    ranges: tuple[tuple[int, int], ...] = ()
    counts: tuple[int, int | None] = (1, 1)
    rule: int = -1


class Graph:
    """The nodes of a language. Each stands behind the nodes that it is made of.

    Raises:
        UnsupportedFeature: terminals depend on the text behind them, or a parser's tables on more than rules say.

    Attributes:
        nodes: all nodes.
        bodies: the node of each rule's body.
        names: the name of each rule.
        start: the node of the whole language.
        reached: the nodes that are reached from the start, in ascending order.
        rules: the rules that are.
        productive: the nodes that have a text, as far as operators on regular languages do not take it away.
    """

    def __init__(self, ir: Ir) -> None:
        ops, rules, blob, self.names, self.kinds, self.start = ir.arrays()
        numbers, bodies = array("I"), array("I")
        numbers.frombytes(ops)
        bodies.frombytes(rules)
        self.bodies = bodies.tolist()
        self.nodes: list[GraphNode] = []
        at = 0
        while at < len(numbers):
            op, count = numbers[at], numbers[at + 1]
            self.nodes.append(_node(op, numbers[at + 2 : at + 2 + count].tolist(), blob))
            at += 2 + count
        self.reached, self.rules = self._reach()
        self.productive = self._find_productive()

    def follows(self, node: int) -> tuple[int, ...]:
        """The nodes that a node leads to: its parts, or the body of the rule that it calls."""
        found = self.nodes[node]
        return (self.bodies[found.rule],) if found.op in _CALLS else found.parts

    def remembers(self, rule: int) -> bool:
        """Whether the texts of a rule depend on values that it already has, which must differ."""
        return bool(self.kinds[rule] & ~(PART | FEW))

    def is_anything(self, node: int) -> bool:
        """Whether a node is any text, or any bytes."""
        found = self.nodes[node]
        if found.op == OP_TERMINAL:
            return self.is_anything(found.parts[0])
        if found.op != OP_REPEAT or found.counts != (0, None):
            return False
        inner = self.nodes[found.parts[0]]
        return joined(inner.ranges) == (_ALL_BYTES if inner.op == OP_BYTES else ((0, 0x10FFFF),))

    def _reach(self) -> tuple[list[int], list[int]]:
        found = {self.start}
        rules: dict[int, None] = {}
        pending = [self.start]
        while pending:
            node = pending.pop()
            if self.nodes[node].op in _CALLS:
                rules[self.nodes[node].rule] = None
            for other in self.follows(node):
                if other not in found:
                    found.add(other)
                    pending.append(other)
        return sorted(found), sorted(rules)

    def _find_productive(self) -> set[int]:
        """Each node is looked at again when one of those that it leads to is found to have a text."""
        users: dict[int, list[int]] = {}
        missing: dict[int, int] = {}
        ready: list[int] = []
        for number in self.reached:
            node = self.nodes[number]
            if node.op == OP_SEQ or (node.op == OP_REPEAT and node.counts[0]):
                needed = len(set(node.parts))
            elif node.op in _CALLS or node.op == OP_TERMINAL:
                needed = 1
            elif node.op == OP_ALT:
                needed = 1 if node.parts else -1
            else:
                needed = -1 if node.op == OP_NOTHING or (node.op == OP_CODEPOINTS and not node.ranges) else 0
            missing[number] = needed
            for other in set(self.follows(number)):
                users.setdefault(other, []).append(number)
            if not needed:
                ready.append(number)
        productive: set[int] = set()
        while ready:
            number = ready.pop()
            productive.add(number)
            for user in users.get(number, ()):
                missing[user] -= 1
                if missing[user] == 0:
                    ready.append(user)
        return productive


def _node(op: int, operands: list[int], blob: bytes) -> GraphNode:
    pairs = tuple(zip(operands[::2], operands[1::2], strict=False))
    if op in (OP_LITERAL, OP_WORDS):
        return GraphNode(op, texts=tuple(blob[at : at + size] for at, size in pairs))
    if op in (OP_BYTES, OP_CODEPOINTS):
        return GraphNode(op, ranges=pairs)
    if op == OP_REPEAT:
        inner, least, most = operands
        return GraphNode(op, (inner,), counts=(least, None if most == UNBOUNDED else most))
    if op in _CALLS:
        return GraphNode(op, rule=operands[0])
    if op in _PARENTS:
        return GraphNode(op, tuple(operands))
    if op in (OP_LEXEME, OP_LEXEMES, OP_TEXT, OP_PARSER):
        why = "a parser's tables" if op == OP_PARSER else "terminals that depend on the text behind them"
        raise UnsupportedFeature(
            f"grammars with {why} cannot be written in other notations",
            hint='of gs.lark, those with lexer="dynamic_complete" can',
        )
    return GraphNode(op)


def joined(ranges: tuple[tuple[int, int], ...]) -> tuple[tuple[int, int], ...]:
    """Ranges in ascending order with those joined that touch; surrogates, which no text has, part none."""
    merged: list[tuple[int, int]] = []
    for low, high in sorted(ranges):
        if merged and (low <= merged[-1][1] + 1 or (merged[-1][1], low) == (0xD7FF, 0xE000)):
            merged[-1] = (merged[-1][0], max(merged[-1][1], high))
        else:
            merged.append((low, high))
    return tuple(merged)
