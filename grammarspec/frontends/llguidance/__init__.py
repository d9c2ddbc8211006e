"""Grammars in llguidance's variant of lark's syntax.

Data flows one way: the text becomes tokens (:mod:`.tokens`) and records of rules and terminals (:mod:`.parsing`,
:mod:`.tree`, :mod:`.common`); terminals become regular nodes of the grammar builder (:mod:`.terminals`), rules the
others (:mod:`.rules`). :mod:`.rows` tells which lexemes stand beside lazy ones.
"""

from __future__ import annotations

from functools import partial
from typing import Final

from grammarspec._compiler import CancelToken
from grammarspec.errors import LimitExceeded
from grammarspec.frontends.llguidance.parsing import read
from grammarspec.frontends.llguidance.rules import Rules
from grammarspec.grammars.budget import Budget
from grammarspec.grammars.builder import GrammarBuilder
from grammarspec.grammars.engine import Limits
from grammarspec.grammars.expressions import Grammar
from grammarspec.grammars.operators import Call

__all__ = ["llguidance"]

_READING: Final = 2
"""Steps for each character of a grammar."""


def llguidance(
    text: str,
    *,
    start: str = "start",
    limits: Limits | None = None,
    cancel: CancelToken | None = None,
) -> Grammar[str]:
    """The texts of a grammar in llguidance's variant of lark's syntax.

    A text belongs to the grammar if it can be cut into lexemes that the rules allow, with what ``%ignore`` names
    between them. llguidance itself cuts from left to right and takes as much as it can for each lexeme, so that it
    refuses some of these texts; it takes no others. Rules that are ``lazy`` or have a ``suffix`` end as early as they
    do there.
    ``%json`` is as :func:`grammarspec.json_schema` has it.

    Args:
        text: the grammar.
        start: the rule to start from.
        limits: what the call may use: ``max_steps`` and ``timeout`` of them.
        cancel: stops the work when it is cancelled.

    Raises:
        GrammarSyntaxError: the grammar is malformed, a name is defined twice or not at all, or a terminal needs itself.
        UnsupportedFeature: it asks for tokens by their numbers, counts tokens, sets a temperature, takes text back
            (``stop``), names captures, has templates, parameters, priorities or other grammars; a pattern asserts
            something; or whether a lazy rule ends a lexeme depends on more than the place of the lexeme.
        LimitExceeded: nesting or counts go too far, or the limits are reached.
        Cancelled: ``cancel`` was cancelled.
        TypeError: ``text`` is no string.
    """
    if not isinstance(text, str):
        raise TypeError(f"llguidance() takes the text of a grammar, not {text!r:.60}")
    budget = Budget(limits, cancel)
    budget.allow(partial(len, text))
    budget.spend(_READING * len(text), f"the text of the grammar, {len(text)} characters")
    builder = GrammarBuilder(budget)
    try:
        node = Rules(read(text, budget), builder).start(start)
    except RecursionError:
        raise LimitExceeded("the terminals of the grammar exceed the limit on nesting depth") from None
    return Grammar(builder.build(node), call=Call(llguidance, (text,), {"start": start}))
