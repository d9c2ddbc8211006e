"""What SGLang's scheduler does with a grammar backend, as calls in the order in which it makes them.

Requests come in (:meth:`Scheduler.admit`), decode together (:meth:`Scheduler.step`), and have masks for trees of drafts
(:func:`traverse`). Written after SGLang 0.5.23.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import torch


@dataclass(eq=False)
class Sequence_:
    """A request: its grammar, what it generated, and why it ended."""

    grammar: Any = None
    tokens: list[int] = field(default_factory=list)
    ended: str = ""


class Scheduler:
    """A scheduler of one backend, whose model is a function of logits."""

    def __init__(self, backend: Any, width: int) -> None:
        self.backend, self.width = backend, width

    def admit(self, kind: str, text: str, *, reasoning: bool = False) -> Sequence_:
        """A request with its grammar; it has ended if there is none."""
        key = self.backend.get_request_grammar_key((kind, text), input_ids=[1], thinking_budget=None)
        value, hit = self.backend.get_cached_or_future_value(key, reasoning)
        sequence = Sequence_(value)
        if not hit:
            assert isinstance(value, Future)
            sequence.grammar = value.result()  # what is raised here would be an unexplained error
            self.backend.set_cache(key, sequence.grammar.copy())
        if hasattr(sequence.grammar, "error_message"):
            sequence.ended = f"Failed to compile {kind} grammar: {sequence.grammar.error_message}"
        return sequence

    def step(self, batch: Sequence[Sequence_], logits: torch.Tensor) -> list[int]:
        """One token for each sequence, the likeliest that its mask allows; those that have ended are not masked."""
        first = next(one.grammar for one in batch if one.grammar is not None)
        mask = first.allocate_vocab_mask(vocab_size=self.width, batch_size=len(batch), device="cpu")
        entries = [
            SimpleNamespace(row=row, grammar=one.grammar)
            for row, one in enumerate(batch)
            if one.grammar and not one.grammar.finished and not one.grammar.is_terminated()
        ]
        first.fill_vocab_mask_batched(entries, mask)
        mask = first.move_vocab_mask(mask, "cpu")
        logits = logits.clone()
        first.apply_vocab_mask(logits=logits, vocab_mask=mask)
        tokens: list[int] = logits.argmax(-1).tolist()
        for one, token in zip(batch, tokens, strict=True):
            if not one.ended:
                self.take(one, token)
        return tokens

    def take(self, sequence: Sequence_, token: int) -> None:
        """A sampled token, which ends the request where it is refused, or ends the text."""
        try:
            sequence.grammar.accept_token(token)
            sequence.tokens.append(token)
        except ValueError as error:
            sequence.ended = f"Grammar accept_token failed: {error}"
        if sequence.grammar.is_terminated():
            sequence.ended = "stop"
        sequence.grammar.finished = bool(sequence.ended)


def traverse(grammar: Any, tokens: list[int], child: list[int], sibling: list[int], mask: torch.Tensor) -> None:
    """The masks of a tree of drafts, depth first: row ``i`` is what may come behind the ``i``-th node."""

    def visit(node: int, parent: int) -> None:
        token = tokens[node]
        allowed = node == 0 or bool(int(mask[parent, token // 32]) >> token % 32 & 1)
        if allowed:
            if node:
                grammar.accept_token(token)
            if not grammar.is_terminated():
                grammar.fill_vocab_mask(mask, node)
                if child[node] != -1:
                    visit(child[node], node)
            if node:
                grammar.rollback(1)
        if sibling[node] != -1:
            visit(sibling[node], parent)

    visit(0, -1)
