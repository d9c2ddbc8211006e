"""From the text of a pattern, in any dialect, to its syntax tree or its node in a grammar."""

from __future__ import annotations

import re
from typing import Literal

from grammarspec.errors import LimitExceeded
from grammarspec.frontends.regex.alphabet import PlainText
from grammarspec.frontends.regex.ecma262 import EcmaParser
from grammarspec.frontends.regex.lower import lower
from grammarspec.frontends.regex.parser import Parser
from grammarspec.frontends.regex.python import PythonParser
from grammarspec.frontends.regex.regex_package import RegexPackageParser
from grammarspec.frontends.regex.rust import RustParser
from grammarspec.frontends.regex.tree import Node
from grammarspec.grammars.budget import Budget
from grammarspec.grammars.builder import GrammarBuilder

__all__ = ["Dialect", "charge", "lower_pattern", "parse", "parser_of"]

Dialect = Literal["python", "ecma262", "rust", "regex"]

_SIGNS = "()[]{}|*+?.\\^$"  # what a pattern is made of beside plain text
_STEPS = 40  # of a budget, to read one of them


def charge(pattern: str, budget: Budget) -> None:
    """Take the steps of reading a pattern, before it is read.

    Raises:
        LimitExceeded: the budget is used up.
        Cancelled: the call was cancelled.
    """
    budget.spend(_STEPS * sum(map(pattern.count, _SIGNS)))


def parse(pattern: str, *, flags: int | re.RegexFlag = 0, dialect: Dialect = "python") -> Node:
    """The syntax tree of a pattern. ``flags`` are those of :mod:`re` or of the package ``regex``, for their dialects.

    Raises:
        GrammarSyntaxError: the pattern is malformed.
        UnsupportedFeature: it uses what no automaton can do (backreferences) or what is not supported yet.
        LimitExceeded: a repetition count is too large.
        ValueError: the dialect or a flag is unknown, or the dialect takes no flags.
    """
    return parser_of(pattern, flags, dialect).parse()


def parser_of(pattern: str, flags: int | re.RegexFlag, dialect: Dialect) -> Parser:
    """What reads a pattern. The arguments are those of :func:`parse`, and so are the errors.

    Raises:
        GrammarSyntaxError, ValueError: as :func:`parse`.
    """
    if dialect == "python":
        return PythonParser(pattern, flags)
    if dialect == "regex":
        return RegexPackageParser(pattern, flags)
    if dialect not in ("ecma262", "rust"):
        raise ValueError(f'dialect must be "python", "ecma262", "rust" or "regex", not {dialect!r}')
    if flags:
        raise ValueError(f"the dialect {dialect} takes no flags")
    return EcmaParser(pattern) if dialect == "ecma262" else RustParser(pattern)


def lower_pattern(
    pattern: str, builder: GrammarBuilder, *, flags: int | re.RegexFlag = 0, dialect: Dialect = "python"
) -> int:
    """The plain texts that a pattern matches as a whole (``re.fullmatch``), as a regular node; see :func:`lower`.

    Raises:
        GrammarError: as :func:`parse`.
        LimitExceeded: groups are nested too deeply.
    """
    try:
        return lower(parse(pattern, flags=flags, dialect=dialect), builder, PlainText(builder))
    except RecursionError:
        message = "a regular expression exceeds the limit on nesting depth"
        raise LimitExceeded(message, hint="nest its groups less deeply") from None
