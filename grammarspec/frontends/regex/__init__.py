"""Regular expressions: Python's ``re`` and ECMA-262's (for JSON Schema)."""

from __future__ import annotations

import re
from typing import Literal

from grammarspec.errors import LimitExceeded
from grammarspec.frontends.regex.ecma262 import EcmaParser
from grammarspec.frontends.regex.lower import Alphabet, PlainText, lower, lower_search
from grammarspec.frontends.regex.python import PythonParser
from grammarspec.frontends.regex.tree import Node
from grammarspec.grammars.builder import GrammarBuilder
from grammarspec.grammars.expressions import Grammar
from grammarspec.grammars.operators import Call

__all__ = ["Alphabet", "Dialect", "PlainText", "lower", "lower_search", "parse", "regex"]

Dialect = Literal["python", "ecma262"]


def parse(pattern: str, *, flags: int | re.RegexFlag = 0, dialect: Dialect = "python") -> Node:
    """The syntax tree of a pattern. ``flags`` are those of :mod:`re`; only the Python dialect has any.

    Raises:
        GrammarSyntaxError: the pattern is malformed.
        UnsupportedFeature: it uses what no automaton can do (backreferences) or what is not supported yet.
        LimitExceeded: a repetition count is too large.
    """
    if dialect == "python":
        return PythonParser(pattern, flags).parse()
    if dialect != "ecma262":
        raise ValueError(f'dialect must be "python" or "ecma262", not {dialect!r}')
    if flags:
        raise ValueError("the dialect ecma262 takes no flags")
    return EcmaParser(pattern).parse()


def regex(pattern: str, *, flags: int | re.RegexFlag = 0, dialect: Dialect = "python") -> Grammar[str]:
    """The texts that match a regular expression as a whole (``re.fullmatch``).

    ``dialect="python"`` is the syntax of :mod:`re`, with ``\\p{...}`` (general categories; scripts and binary
    properties if the package ``regex`` is installed) and lookbehinds of any width. ``dialect="ecma262"`` is that of
    JSON Schema's ``pattern``, ECMA-262 with the ``u`` flag.

    Laziness makes no difference to which texts match. What would need more than an automaton, or changes the language
    by the order of attempts, is refused: backreferences, conditional groups, atomic groups, possessive quantifiers.

    Raises:
        GrammarSyntaxError: the pattern is malformed; the error shows where.
        UnsupportedFeature: the pattern uses one of the refused constructs.
        LimitExceeded: a repetition count is above 2**32 - 2, or groups are nested too deeply.
    """
    builder = GrammarBuilder()
    try:
        node = lower(parse(pattern, flags=flags, dialect=dialect), builder, PlainText(builder))
    except RecursionError:
        raise nested_too_deeply() from None
    options = {"flags": flags, "dialect": dialect}
    return Grammar(builder.build(builder.terminal(node)), call=Call(regex, (pattern,), options))


def nested_too_deeply() -> LimitExceeded:
    return LimitExceeded("a regular expression exceeds the limit on nesting depth", hint="nest its groups less deeply")
