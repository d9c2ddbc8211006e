"""Compiling: a grammar and a vocabulary come in; a constraint goes out, which knows what tokens may come next."""

from __future__ import annotations

import copyreg
from typing import Any, NoReturn

from grammarspec._compiler import CancelToken, Constraint, Matcher, fill_bitmasks
from grammarspec.errors import GrammarError, LimitExceeded, Unsatisfiable, UnsupportedFeature
from grammarspec.grammars.engine import Limits, compile_ir, over_bytes
from grammarspec.grammars.expressions import Grammar
from grammarspec.grammars.operators import Intersection, Leaf, Node
from grammarspec.vocabulary import Vocabulary

__all__ = ["CancelToken", "Constraint", "Limits", "Matcher", "compile", "fill_bitmasks"]

_SHOWN = 120  # characters of an operand in an error


def compile(
    grammar: Grammar[Any],
    vocabulary: Vocabulary,
    *,
    limits: Limits | None = None,
    cancel: CancelToken | None = None,
) -> Constraint:
    """Compile a grammar for a vocabulary. The automaton is built lazily, as matchers reach its states.

    The result is thread-safe and made to be shared: take a ``constraint.matcher()`` for each sequence. Compiling an
    equal grammar again on the same vocabulary, under equal limits, finds the same automaton, with what its users have
    built of it, and for a while after the last of them has gone (:meth:`.Vocabulary.keep`). They share its limits, too.

    Args:
        grammar: the language.
        vocabulary: the tokens of the model.
        limits: what compiling and running may use; :class:`Limits` with its defaults if not given.
        cancel: ``cancel.cancel()``, from any thread, stops the constraint's work under way and all its later work. An
            automaton that can be cancelled is shared with no other call.

    Raises:
        Unsatisfiable: no text of the language can be spelled with this vocabulary's tokens, or the vocabulary lacks a
            special token of the grammar.
        UnsupportedFeature: a special token of the grammar is one that ends texts; the grammar uses an operator in a way
            that the compiler refuses.
        LimitExceeded: a limit was hit while compiling. As the rest of the automaton is built when matchers reach it,
            later calls may hit one, too.
        Cancelled: ``cancel`` was cancelled.
        TypeError: ``grammar`` is no grammar, ``vocabulary`` no vocabulary, ``limits`` no :class:`Limits`, or ``cancel``
            no :class:`CancelToken`.
    """
    if not isinstance(grammar, Grammar):
        hint = (
            f"gs.grammar({getattr(grammar, '__name__', '...')}) makes a grammar of a type, gs.json_schema of a schema"
        )
        raise TypeError(f"compile() takes a grammar, not {grammar!r:.80}\n  hint: {hint}")
    if not isinstance(vocabulary, Vocabulary):
        hint = "gs.Vocabulary.from_tokenizer(tokenizer) makes one; that of a gs.Model is model.vocabulary"
        raise TypeError(f"compile() takes a gs.Vocabulary, not {vocabulary!r:.80}\n  hint: {hint}")
    for name in sorted(grammar.node.special_tokens):
        _check_special(name, vocabulary)
    try:
        return compile_ir(grammar.ir, vocabulary.index, limits, cancel)
    except Unsatisfiable as error:
        raise _explained(error, grammar.node) from None
    except LimitExceeded as error:
        raise LimitExceeded(error.message, _placed(error.where, grammar.node), error.hint) from None


def _explained(error: Unsatisfiable, node: Node) -> Unsatisfiable:
    """The error with the smallest operand that has no texts, and why it has none, as far as that is known."""
    if not _is_empty(node):  # only this vocabulary cannot spell any
        return error
    while (inner := next(filter(_is_empty, node.operands), None)) is not None:
        node = inner
    if isinstance(node, Leaf) and node.why_empty is not None:
        return node.why_empty()
    message = "no text is in both languages" if isinstance(node, Intersection) else error.message
    return Unsatisfiable(message, _shown(node), error.hint)


def _placed(where: str, node: Node) -> str:
    """The place of an error in a grammar: where it is within it, if that is known, and the declaration itself."""
    return f"{where} of {_shown(node)}" if where else _shown(node)


def _shown(node: Node) -> str:
    """The expression that makes a grammar, as much of it as an error has room for."""
    said = repr(node)
    return said if len(said) <= _SHOWN else f"{said[:_SHOWN]}..."


def _is_empty(node: Node) -> bool:
    """Whether a node has no texts, even over all bytes."""
    try:
        over_bytes(node.ir)
    except Unsatisfiable:
        return True
    except GrammarError:  # it is refused, or too large: nothing is known
        pass
    return False


def _refuse_pickling(value: object) -> NoReturn:
    """What pickling does with automata, which are built in the memory of one process.

    Raises:
        TypeError: always.
    """
    hint = "pickle the gs.Grammar and the gs.Vocabulary, and compile them there: the automaton is built lazily anyway"
    raise TypeError(f"a {type(value).__name__} cannot be pickled or copied\n  hint: {hint}")


for kind in (Constraint, Matcher):
    copyreg.pickle(kind, _refuse_pickling)


def _check_special(name: str, vocabulary: Vocabulary) -> None:
    """Raise an error unless the vocabulary has the special token, as one that does not end texts."""
    token = vocabulary.special_tokens.get(name)
    if token is None:
        known = ", ".join(sorted(vocabulary.special_tokens)[:8]) or "none"
        hint = f"it has these, among others: {known}; gs.literal says the same as text"
        raise Unsatisfiable(f"the vocabulary has no special token {name!r}", hint=hint)
    if token in vocabulary.eos_token_ids:
        hint = "leave it out: this token comes where the grammar's texts end"
        raise UnsupportedFeature(f"the special token {name!r}, which ends texts, within a text", hint=hint)
