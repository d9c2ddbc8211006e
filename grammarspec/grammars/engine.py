"""The compiler, as Python calls it: a grammar's IR and a vocabulary's index come in, a constraint goes out.

IR is the compiler's form of a grammar (intermediate representation), as :class:`~.builder.GrammarBuilder` makes it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from numbers import Integral, Real
from typing import Final

from grammarspec._compiler import CancelToken, Constraint, VocabularyIndex
from grammarspec._compiler import Grammar as Ir
from grammarspec._compiler import compile as _compile
from grammarspec.errors import Cancelled

__all__ = ["Limits", "byte_index", "check_cancel", "compile_ir", "given_or_default", "over_bytes"]

_MOST: Final = 2**63 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What one constraint may use. Exceeding any raises :class:`~grammarspec.errors.LimitExceeded`, which names it.

    Attributes:
        max_states: states alive at once; those that no matcher or pin holds are collected first.
        max_memory: bytes of interned structure and cached mask rows, after the same collection.
        max_steps: elementary steps of work (derivatives, operands of unions, nodes of the token trie, heads) in one
            call: a compile, a mask, a step. The default is half a second to a second. Calls with many tokens may take
            100 steps more for each byte of those that are allowed.
        max_call_steps: the same for each call after compiling, if it is not to be ``max_steps``.
        max_depth: nesting of the grammar's expressions.
        timeout: seconds that one call may take, or ``None`` for no limit. Unlike the others it depends on the machine.

    Raises:
        ValueError: a limit is below 1, or above 2**63 - 1; or ``timeout`` is not above 0.
        TypeError: a limit is no whole number, or ``timeout`` no number.
    """

    max_states: int = 1_000_000
    max_memory: int = 256 * 1024 * 1024
    max_steps: int = 4_000_000
    max_call_steps: int | None = None
    max_depth: int = 2_000
    timeout: float | None = None

    def __post_init__(self) -> None:
        for name in ("max_states", "max_memory", "max_steps", "max_depth"):
            _check_count(name, getattr(self, name), "")
        if self.max_call_steps is not None:
            _check_count("max_call_steps", self.max_call_steps, ", or None")
        if self.timeout is not None:
            if isinstance(self.timeout, bool) or not isinstance(self.timeout, Real):
                raise TypeError(f"timeout must be a number of seconds, or None, not {self.timeout!r:.60}")
            if not self.timeout > 0:
                raise ValueError("timeout must be above 0 seconds, or None")
            if isinstance(self.timeout, Integral) and self.timeout > _MOST:
                raise ValueError("timeout must be at most 2**63 - 1 if it is a whole number, or None")


def _check_count(name: str, value: object, otherwise: str) -> None:
    """Raise an error unless the value is a whole number that the compiler can hold."""
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise TypeError(f"{name} must be a whole number{otherwise}, not {value!r:.60}")
    if int(value) < 1:
        raise ValueError(f"{name} must be at least 1{otherwise}")
    if int(value) > _MOST:
        raise ValueError(f"{name} must be at most 2**63 - 1{otherwise}")


_DEFAULTS: Final = Limits()


def given_or_default(limits: Limits | None) -> Limits:
    """The limits that a caller has given; those with the defaults if none.

    Raises:
        TypeError: what was given is no :class:`Limits`.
    """
    if limits is None:
        return _DEFAULTS
    if not isinstance(limits, Limits):
        raise TypeError(f"limits must be a gs.Limits, not {limits!r:.60}")
    return limits


def check_cancel(cancel: CancelToken | None, where: str = "") -> None:
    """Look at the token that cancels a call.

    Args:
        where: the place that the error names.

    Raises:
        TypeError: what was given is no token.
        Cancelled: it is cancelled.
    """
    if cancel is None:
        return
    if not isinstance(cancel, CancelToken):
        raise TypeError(f"cancel must be a gs.CancelToken, not {cancel!r:.60}")
    if cancel.is_cancelled:
        raise Cancelled("the work was cancelled", where)


def compile_ir(
    ir: Ir,
    index: VocabularyIndex,
    limits: Limits | None = None,
    cancel: CancelToken | None = None,
) -> Constraint:
    """Compile a grammar for a vocabulary.

    Args:
        ir: the grammar.
        index: of a vocabulary that has the grammar's special tokens, or all bytes of their marks (:mod:`.marks`).
        limits: what compiling and running may use; :class:`Limits` with its defaults if not given.
        cancel: stops the work when it is cancelled.

    Raises:
        Unsatisfiable: no text of the language can be spelled with the vocabulary's tokens.
        LimitExceeded: a limit was hit.
        Cancelled: ``cancel`` was cancelled.
        GrammarError: the grammar uses an operator in a way that the compiler refuses.
        TypeError: ``limits`` is no :class:`Limits`, or ``cancel`` no :class:`.CancelToken`.
    """
    bounds = given_or_default(limits)
    check_cancel(cancel)
    return _compile(
        ir,
        index,
        bounds.max_states,
        bounds.max_memory,
        bounds.max_steps,
        bounds.max_depth,
        bounds.timeout,
        cancel,
        bounds.max_call_steps,
    )


def over_bytes(ir: Ir) -> Constraint:
    """Compile a grammar for the vocabulary of the 256 single bytes, for reading texts where there is no model.

    Raises:
        Unsatisfiable, LimitExceeded, GrammarError: as :func:`compile_ir`.
    """
    return compile_ir(ir, byte_index())


@cache
def byte_index() -> VocabularyIndex:
    """The index of the 256 single bytes as tokens; token 256 ends a text."""
    index = VocabularyIndex([*(bytes([value]) for value in range(256)), None], [256], [], 257)
    index.keep(0, 0)  # most grammars on it are tried once
    return index
