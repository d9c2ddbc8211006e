"""Constraint = grammar x vocabulary: compiling one, and the limits it works under."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from grammarspec import _compiler
from grammarspec._compiler import CancelToken, Constraint, Matcher, fill_bitmasks
from grammarspec.errors import Unsatisfiable, UnsupportedFeature
from grammarspec.expressions import Grammar
from grammarspec.vocabulary import Vocabulary

__all__ = ["CancelToken", "Constraint", "Limits", "Matcher", "compile", "compile_for", "fill_bitmasks"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What one constraint may use. Exceeding any raises :class:`~grammarspec.errors.LimitExceeded`, which names it.

    Attributes:
        max_states: states alive at once; those that no matcher or pin holds are collected first.
        max_memory: bytes of interned structure and cached mask rows, after the same collection.
        max_steps: elementary steps of work (derivatives, nodes of the token trie, heads) in one call: a compile, a
            mask, a step.
        max_depth: nesting of the grammar's expressions.
        timeout: seconds that one call may take, or ``None`` for no limit. Unlike the others it depends on the machine.
    """

    max_states: int = 1_000_000
    max_memory: int = 256 * 1024 * 1024
    max_steps: int = 50_000_000
    max_depth: int = 2_000
    timeout: float | None = None

    def __post_init__(self) -> None:
        for name in ("max_states", "max_memory", "max_steps", "max_depth"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1")
        if self.timeout is not None and not self.timeout > 0:
            raise ValueError("timeout must be above 0 seconds, or None")


def compile(
    grammar: Grammar[Any],
    vocabulary: Vocabulary,
    *,
    limits: Limits | None = None,
    cancel: CancelToken | None = None,
) -> Constraint:
    """Compile a grammar for a vocabulary. The automaton is built lazily, as matchers reach its states.

    The result is thread-safe and made to be shared: keep one per (grammar, vocabulary) and take a
    ``constraint.matcher()`` for each sequence.

    Args:
        limits: what compiling and running may use; :class:`Limits` with its defaults if not given.
        cancel: ``cancel.cancel()``, from any thread, stops what the constraint is doing and will do.

    Raises:
        Unsatisfiable: no text of the language can be spelled with this vocabulary's tokens; it lacks a special token.
        LimitExceeded: a limit was hit while compiling. What is built later may hit one in the call that needs it.
        GrammarError: the grammar uses an operator in a way that the compiler refuses.
    """
    for name in sorted(grammar._special):
        _check_special(name, vocabulary)
    return compile_for(grammar.ir, vocabulary.index, limits, cancel)


def compile_for(
    ir: _compiler.Grammar,
    index: _compiler.VocabularyIndex,
    limits: Limits | None = None,
    cancel: CancelToken | None = None,
) -> Constraint:
    """Compile for a vocabulary that has the special tokens of the grammar, or all bytes of their marks."""
    bounds = limits or Limits()
    return _compiler.compile(
        ir,
        index,
        bounds.max_states,
        bounds.max_memory,
        bounds.max_steps,
        bounds.max_depth,
        bounds.timeout,
        cancel,
    )


def _check_special(name: str, vocabulary: Vocabulary) -> None:
    token = vocabulary.special_tokens.get(name)
    if token is None:
        known = ", ".join(sorted(vocabulary.special_tokens)[:8]) or "none"
        hint = f"it has these, among others: {known}; gs.literal says the same as text"
        raise Unsatisfiable(f"the vocabulary has no special token {name!r}", hint=hint)
    if token in vocabulary.eos_token_ids:
        hint = "leave it out: this token comes where the grammar's texts end"
        raise UnsupportedFeature(f"the special token {name!r}, which ends texts, within a text", hint=hint)
