"""Does a text belong to the language of a builder's node? Straight from the definitions, and slowly.

The recogniser shares nothing with the compiler: it reads what was described to a builder, and takes every operator at
its word:
a node *spans* ``text[i:j]`` or it does not, and :meth:`_Recogniser.ends` lists the ``j`` for an ``i``. Made for short
texts (under 40 bytes) and small grammars.

Zero-width assertions speak of the whole text of their *terminal*: the nearest enclosing ``terminal`` node or, where
there is none, the largest regular node around them. So a terminal is tried on each span ``(first, last)`` separately,
with that *context* handed down to the assertions inside.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from grammarspec import _compiler as codes
from tests.oracles.recording import RecordingBuilder

__all__ = ["accepts", "recogniser"]

_Node = tuple[int, tuple[int, ...]]
_Context = tuple[int, int]
_Parameter = frozenset[int]


def accepts(builder: RecordingBuilder, start: int, text: bytes) -> bool:
    """Whether ``text`` belongs to the language of the node ``start``."""
    return recogniser(builder, start)(text)


def recogniser(builder: RecordingBuilder, start: int) -> Callable[[bytes], bool]:
    """As :func:`accepts`, with the nodes read once for many texts."""
    nodes, blob, rules = list(builder.nodes), bytes(builder.blob), list(builder.bodies)
    regular, asserting = _properties(nodes)

    def run(text: bytes) -> bool:
        return _Recogniser(nodes, blob, rules, regular, asserting, text).accepts(start)

    return run


def _children(node: _Node) -> tuple[int, ...]:
    op, operands = node
    if op in (
        codes.OP_SEQ,
        codes.OP_ALT,
        codes.OP_BOTH,
        codes.OP_COMPLEMENT,
        codes.OP_AHEAD,
        codes.OP_BEHIND,
        codes.OP_TERMINAL,
    ):
        return operands
    return operands[:1] if op == codes.OP_REPEAT else ()


def _properties(nodes: list[_Node]) -> tuple[list[bool], list[bool]]:
    """Per node: is it regular (no call inside), and does it hold an assertion about the terminal around it."""
    regular: list[bool] = []
    asserting: list[bool] = []
    for node in nodes:  # children come before their parents
        op, children = node[0], _children(node)
        regular.append(
            op not in (codes.OP_CALL, codes.OP_CALL_WITH, codes.OP_WHEN) and all(regular[child] for child in children)
        )
        asserting.append(
            op in (codes.OP_AHEAD, codes.OP_BEHIND)
            or (op != codes.OP_TERMINAL and any(asserting[child] for child in children))
        )
    return regular, asserting


class _Recogniser:
    """One text against one grammar."""

    def __init__(
        self, nodes: list[_Node], blob: bytes, rules: list[int], regular: list[bool], asserting: list[bool], text: bytes
    ) -> None:
        self.nodes, self.blob, self.rules, self.regular, self.asserting = nodes, blob, rules, regular, asserting
        self.text = text
        self.called: dict[tuple[int, int, _Parameter], frozenset[int]] = {}
        self.regular_ends = cache(self._regular_ends)

    def accepts(self, start: int) -> bool:
        """The least fixpoint over the rules: begin with no spans, add what the bodies give until nothing is new."""
        while True:
            before = dict(self.called)
            found = self.ends(start, 0, frozenset())
            for rule, i, parameter in before:
                self.called[rule, i, parameter] |= self.ends(self.rules[rule], i, parameter)
            if self.called == before:
                return len(self.text) in found

    def ends(self, node: int, i: int, parameter: _Parameter) -> frozenset[int]:
        """All ``j`` such that the node, outside any terminal, in a rule with this parameter, spans ``text[i:j]``."""

        def inner(child: int, at: int) -> frozenset[int]:
            return self.ends(child, at, parameter)

        if self.regular[node]:
            return self.terminal_ends(node, i, len(self.text))
        op, operands = self.nodes[node]
        if op == codes.OP_CALL:
            return self.called.setdefault((operands[0], i, frozenset()), frozenset())
        if op == codes.OP_CALL_WITH:
            return self.called.setdefault((operands[0], i, _updated(parameter, operands[1:])), frozenset())
        if op == codes.OP_WHEN:
            return frozenset({i} if _holds(parameter, operands) else ())
        if op == codes.OP_SEQ:
            return self.sequence(operands, i, inner)
        if op == codes.OP_ALT:
            return frozenset().union(*(inner(child, i) for child in operands))
        if op == codes.OP_REPEAT:
            return self.repetition(operands, i, inner)
        raise ValueError("a Boolean operator, an assertion or a terminal over a context-free node")

    def terminal_ends(self, node: int, i: int, limit: int) -> frozenset[int]:
        """All ``j`` up to ``limit`` such that the regular node, as a terminal of its own, spans ``text[i:j]``."""
        if not self.asserting[node]:
            return frozenset(j for j in self.regular_ends(node, i, (0, len(self.text))) if j <= limit)
        return frozenset(j for j in range(i, limit + 1) if j in self.regular_ends(node, i, (i, j)))

    def _regular_ends(self, node: int, i: int, context: _Context) -> frozenset[int]:
        """All ``j`` such that the regular node spans ``text[i:j]`` inside a terminal that spans ``context``."""
        op, operands = self.nodes[node]
        text, (first, last), whole = self.text, context, (0, len(self.text))
        if not self.asserting[node] and context != whole:  # what surrounds it does not matter: compute it once
            return frozenset(j for j in self.regular_ends(node, i, whole) if j <= last)

        def inner(child: int, at: int) -> frozenset[int]:
            return self.regular_ends(child, at, context)

        everywhere = frozenset(range(i, last + 1))
        match op:
            case codes.OP_NOTHING:
                return frozenset()
            case codes.OP_LITERAL | codes.OP_WORDS:
                words = {self.blob[at : at + size] for at, size in zip(operands[::2], operands[1::2], strict=True)}
                return frozenset(j for j in everywhere if text[i:j] in words)
            case codes.OP_BYTES:
                return frozenset(j for j in everywhere if j == i + 1 and _within(text[i], operands))
            case codes.OP_CODEPOINTS:
                return frozenset(j for j in everywhere if _is_codepoint(text[i:j], operands))
            case codes.OP_SEQ:
                return self.sequence(operands, i, inner)
            case codes.OP_ALT:
                return frozenset().union(*(inner(child, i) for child in operands))
            case codes.OP_REPEAT:
                return self.repetition(operands, i, inner)
            case codes.OP_BOTH:
                return everywhere.intersection(*(inner(child, i) for child in operands))
            case codes.OP_COMPLEMENT:
                return everywhere - inner(operands[0], i)
            case codes.OP_AHEAD:
                return frozenset({i} if last in inner(operands[0], i) else ())
            case codes.OP_BEHIND:
                return frozenset({i} if i in inner(operands[0], first) else ())
            case codes.OP_TERMINAL:
                return self.terminal_ends(operands[0], i, last)
        raise ValueError(f"unknown operation {op}")

    def sequence(self, children: tuple[int, ...], i: int, ends: Callable[[int, int], frozenset[int]]) -> frozenset[int]:
        here = frozenset({i})
        for child in children:
            here = frozenset().union(*(ends(child, at) for at in here))
        return here

    def repetition(
        self, operands: tuple[int, ...], i: int, ends: Callable[[int, int], frozenset[int]]
    ) -> frozenset[int]:
        """More rounds than the text has bytes include an empty one, which can be left out or done again.

        So from ``len(text) + 1`` rounds on, one more changes nothing, and both bounds can be cut to that.
        """
        child, least, most = operands
        enough = len(self.text) + 1
        here, found = frozenset({i}), frozenset[int]()
        for count in range(min(most, enough) + 1):
            if count >= min(least, enough):
                found |= here
            here = frozenset().union(*(ends(child, at) for at in here))
        return found


def _count(parameter: _Parameter, at: int, width: int) -> int:
    return sum(1 << i for i in range(width) if at + i in parameter)


def _updated(parameter: _Parameter, operands: tuple[int, ...]) -> _Parameter:
    fresh, at, width, _, *bits = operands
    new = (frozenset() if fresh else parameter) | set(bits)
    if width:
        count = min(_count(new, at, width) + 1, (1 << width) - 1)
        new = frozenset(bit for bit in new if not at <= bit < at + width)
        new |= {at + i for i in range(width) if count >> i & 1}
    return new


def _holds(parameter: _Parameter, operands: tuple[int, ...]) -> bool:
    kind, *rest = operands
    if kind == codes.WHEN_WITHIN:
        at, width, least, most = rest
        return least <= _count(parameter, at, width) <= most
    return parameter.isdisjoint(rest) if kind == codes.WHEN_CLEAR else parameter.issuperset(rest)


def _within(value: int, bounds: tuple[int, ...]) -> bool:
    return any(low <= value <= high for low, high in zip(bounds[::2], bounds[1::2], strict=True))


def _is_codepoint(data: bytes, bounds: tuple[int, ...]) -> bool:
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return False
    return len(text) == 1 and _within(ord(text), bounds)
