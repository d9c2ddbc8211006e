"""Regular expressions, in the syntax of Python's ``re`` and of its package ``regex``, of ECMA-262 (the one of JSON
Schema's ``pattern``), and of Rust's ``regex``.

A pattern's text goes in, and a regular node of the grammar builder comes out (:mod:`.patterns`), by these steps:

* :mod:`.python`, :mod:`.regex_package`, :mod:`.ecma262` or :mod:`.rust`, on the common :mod:`.parser`: from the text
  to a syntax tree (:mod:`.tree`), in which flags are resolved into sets of characters (:mod:`.charsets`,
  :mod:`.unicode_sets`);
* :mod:`.simplify`: decide the anchors and lookarounds that their neighbours decide (:mod:`.facts`);
* :mod:`.lower`: from the tree to the builder's nodes, over an alphabet (:mod:`.alphabet`).

What the named groups of a text are is asked of Python's ``re`` (:mod:`.groups`).

Patterns of types, whose libraries have dialects of their own, are written as ECMA-262 (:mod:`.ecma_text`).

JSON Schema asks of texts that a schema contains whether a pattern matches them: :mod:`.matching` tells, in Python.

The front-end of ``.lark`` grammars uses two steps more: :mod:`.preference` keeps of a terminal's texts those that a
backtracking matcher would take, and :mod:`.reach` proves that a terminal does not look past its own text.
"""

from __future__ import annotations

import re
from functools import partial

from grammarspec._compiler import CancelToken
from grammarspec.frontends.regex.alphabet import Alphabet, PlainText
from grammarspec.frontends.regex.contradictions import contradiction
from grammarspec.frontends.regex.groups import named_groups
from grammarspec.frontends.regex.lower import lower, lower_search
from grammarspec.frontends.regex.patterns import Dialect, charge, lower_pattern, parse, parser_of
from grammarspec.grammars.budget import Budget
from grammarspec.grammars.builder import GrammarBuilder
from grammarspec.grammars.engine import Limits
from grammarspec.grammars.expressions import Grammar
from grammarspec.grammars.operators import Call

__all__ = ["Alphabet", "Dialect", "PlainText", "lower", "lower_search", "parse", "regex"]


def regex(
    pattern: str | re.Pattern[str],
    *,
    flags: int | re.RegexFlag = 0,
    dialect: Dialect = "python",
    captures: bool = False,
    limits: Limits | None = None,
    cancel: CancelToken | None = None,
) -> Grammar[str]:
    """The texts that match a regular expression as a whole (``re.fullmatch``).

    ``dialect="python"`` is the syntax of :mod:`re`, with ``\\p{...}`` (general categories; scripts and binary
    properties if the package ``regex`` is installed) and lookbehinds of any width. ``dialect="ecma262"`` is that of
    JSON Schema's ``pattern``, ECMA-262 with the ``u`` flag. ``dialect="rust"`` is that of Rust's crate ``regex``,
    and ``dialect="regex"`` that of the package ``regex``, in its version 0.

    Laziness makes no difference to which texts match. Refused is what an automaton cannot decide (backreferences,
    conditional groups), and what makes the language depend on the order in which a matcher tries alternatives (atomic
    groups, possessive quantifiers).

    Args:
        pattern: the expression; or what ``re.compile`` made of one, whose flags are taken with it.
        flags: those of :mod:`re`, or of the package ``regex`` for its dialect.
        dialect: the syntax.
        captures: whether the groups ``(?P<name>...)`` of Python's dialect are captures (:meth:`Grammar.match`), as
            ``re.fullmatch`` finds them: of a group in a repetition the last text, of one that takes no part none. It
            takes exponential time for some patterns, so do not ask for captures where patterns come from strangers.
        limits: what the call may use: ``max_steps`` and ``timeout`` of them.
        cancel: stops the work when it is cancelled.

    Raises:
        TypeError: the pattern is no text.
        GrammarSyntaxError: the pattern is malformed; the error shows where.
        UnsupportedFeature: the pattern uses one of the refused constructs; or its groups are captures, and it has
            something that :mod:`re` does not know (``\\p{...}``, a lookbehind of varying width).
        LimitExceeded: a repetition count is above 2**32 - 2, groups are nested too deeply, or the limits are reached.
        Cancelled: ``cancel`` was cancelled.
        ValueError: the dialect or a flag is unknown, or the dialect takes no flags or captures; or a compiled pattern
            is given with flags or as one of another dialect.
    """
    if isinstance(pattern, re.Pattern):
        if flags or dialect != "python":
            raise ValueError("a compiled pattern has its own flags, and Python's syntax: give its text, or neither")
        flags = re.RegexFlag(pattern.flags) & ~(re.UNICODE | re.DEBUG)
        pattern = pattern.pattern
    if not isinstance(pattern, str):
        raise TypeError(f"regex() takes a pattern of text, not {pattern!r:.60}")
    if captures and dialect != "python":
        raise ValueError("captures are the named groups of Python's dialect")
    budget = Budget(limits, cancel)
    budget.allow(partial(len, pattern))
    charge(pattern, budget)
    builder = GrammarBuilder(budget)
    with budget.at(f"the pattern, {len(pattern)} characters"):
        node = builder.terminal(lower_pattern(pattern, builder, flags=flags, dialect=dialect))
    call = Call(regex, (pattern,), {"flags": flags, "dialect": dialect, "captures": captures})
    groups = named_groups(pattern, int(flags)) if captures else None
    return Grammar(
        builder.build(node),
        call=call,
        why_empty=lambda: contradiction(parser_of(pattern, flags, dialect)),
        captures=groups,
    )
