"""Grammars in GBNF, llama.cpp's notation, and in XGrammar's EBNF, which is nearly the same.

Data flows one way: the text becomes tokens and rules (:mod:`.text`); the rules become nodes of the grammar builder
(:mod:`.rules`), escapes and classes by :mod:`.characters`, and XGrammar's ``TagDispatch`` by :mod:`.dispatch`. Why a
grammar has no texts is said by :mod:`.contradictions`.
"""

from __future__ import annotations

from functools import partial
from typing import Final

from grammarspec._compiler import CancelToken
from grammarspec.frontends.gbnf.contradictions import contradiction
from grammarspec.frontends.gbnf.rules import Rules
from grammarspec.frontends.gbnf.text import read
from grammarspec.grammars.budget import Budget
from grammarspec.grammars.builder import GrammarBuilder
from grammarspec.grammars.engine import Limits
from grammarspec.grammars.expressions import Grammar
from grammarspec.grammars.operators import Call

__all__ = ["gbnf"]

_READING: Final = 2
"""Steps for each character of a grammar."""


def gbnf(
    text: str,
    *,
    root: str = "root",
    limits: Limits | None = None,
    cancel: CancelToken | None = None,
) -> Grammar[str]:
    """The texts of a grammar in GBNF (llama.cpp) or in XGrammar's EBNF.

    The grammar means what it means there: rules over characters, without a lexer. Rules may be recursive in any way,
    on the left too, and counts are exact, however large. ``<name>`` is a special token of the model, as
    :func:`grammarspec.special` has it.

    Args:
        text: the grammar.
        root: the rule to start from.
        limits: what the call may use: ``max_steps`` and ``timeout`` of them.
        cancel: stops the work when it is cancelled.

    Raises:
        GrammarSyntaxError: the grammar is malformed, a rule is defined twice or not at all, or a character is a
            surrogate or beyond Unicode.
        UnsupportedFeature: it asks for tokens by their numbers, for any token but one, for a number of tokens
            (``max_tokens``) or captures, or has a lookahead or a macro other than ``TagDispatch``.
        LimitExceeded: a repetition count is above 2**32 - 2, or the limits are reached.
        Cancelled: ``cancel`` was cancelled.
        TypeError: ``text`` is no string.
    """
    if not isinstance(text, str):
        raise TypeError(f"gbnf() takes the text of a grammar, not {text!r:.60}")
    budget = Budget(limits, cancel)
    budget.allow(partial(len, text))
    budget.spend(_READING * len(text), f"the text of the grammar, {len(text)} characters")
    builder = GrammarBuilder(budget)
    source = read(text, budget)
    node = Rules(source, builder).start(root)
    call = Call(gbnf, (text,), {"root": root})
    return Grammar(builder.build(node), call=call, why_empty=lambda: contradiction(source, root))
