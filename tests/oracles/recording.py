"""A grammar builder that keeps what was described to it, for oracles that must not ask the compiler."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from grammarspec import _compiler as codes
from grammarspec._compiler import Grammar as Ir
from grammarspec.grammars.builder import UNBOUNDED, GrammarBuilder

__all__ = ["RecordingBuilder"]


class RecordingBuilder(GrammarBuilder):
    """A builder with a list of its nodes.

    Attributes:
        nodes: for each node its operation and its operands; those of literals and words are places in ``blob``.
        blob: the texts.
        bodies: the body of each rule.
    """

    def __init__(self) -> None:
        self.nodes: list[tuple[int, tuple[int, ...]]] = []
        self.blob = bytearray()
        self.bodies: list[int] = []
        super().__init__()

    def _kept(self, node: int, op: int, operands: Iterable[int]) -> int:
        """Keep a node; one that has been described before has a lower number."""
        if node == len(self.nodes):
            self.nodes.append((op, tuple(operands)))
        return node

    def _places(self, texts: Iterable[str | bytes]) -> list[int]:
        """Keep some texts."""
        found = []
        for text in texts:
            data = text.encode() if isinstance(text, str) else text
            found += [len(self.blob), len(data)]
            self.blob += data
        return found

    def node(self, op: int, operands: Sequence[int]) -> int:
        return self._kept(super().node(op, operands), op, operands)

    def literal(self, text: str | bytes) -> int:
        return self._kept(super().literal(text), codes.OP_LITERAL, self._places([text]))

    def words(self, texts: Iterable[str | bytes]) -> int:
        texts = list(texts)
        return self._kept(super().words(texts), codes.OP_WORDS, self._places(texts))

    def seq(self, *nodes: int) -> int:
        return self._kept(super().seq(*nodes), codes.OP_SEQ, nodes)

    def alt(self, *nodes: int) -> int:
        return self._kept(super().alt(*nodes), codes.OP_ALT, nodes)

    def both(self, *nodes: int) -> int:
        return self._kept(super().both(*nodes), codes.OP_BOTH, nodes)

    def repeat(self, node: int, least: int, most: int | None) -> int:
        operands = node, least, UNBOUNDED if most is None else most
        return self._kept(super().repeat(node, least, most), codes.OP_REPEAT, operands)

    def optional(self, node: int) -> int:
        return self._kept(super().optional(node), codes.OP_REPEAT, (node, 0, 1))

    def complement(self, node: int) -> int:
        return self._kept(super().complement(node), codes.OP_COMPLEMENT, (node,))

    def terminal(self, node: int) -> int:
        return self._kept(super().terminal(node), codes.OP_TERMINAL, (node,))

    def call(self, rule: int) -> int:
        return self._kept(super().call(rule), codes.OP_CALL, (rule,))

    def rule(self, name: str, kinds: int = 0) -> int:
        self.bodies.append(UNBOUNDED)
        return super().rule(name, kinds)

    def define(self, rule: int, body: int) -> None:
        self.bodies[rule] = body
        super().define(rule, body)

    def define_others(self, body: int) -> None:
        raise NotImplementedError("oracles take all rules as they are")

    def embed(self, grammar: Ir) -> int:
        raise NotImplementedError("what is embedded was described to another builder")
