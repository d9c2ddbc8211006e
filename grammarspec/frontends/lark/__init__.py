"""``.lark`` grammars."""

from __future__ import annotations

from os import PathLike
from pathlib import Path

from grammarspec._compiler import Grammar as Ir
from grammarspec.errors import LimitExceeded, UnsupportedFeature
from grammarspec.frontends.lark.loader import read
from grammarspec.frontends.lark.rules import Rules
from grammarspec.grammars.builder import GrammarBuilder
from grammarspec.grammars.expressions import Grammar
from grammarspec.grammars.operators import Call

__all__ = ["lark", "load"]

_PARSERS = ("earley", "lalr", "cyk")
_LEXERS = ("dynamic_complete", "auto", "basic", "contextual", "dynamic")


def lark(text: str, *, start: str = "start", parser: str | None = None, lexer: str | None = None) -> Grammar[str]:
    """The texts that a ``.lark`` grammar accepts.

    The grammar means what it means to ``lark.Lark(text, parser="earley", lexer="dynamic_complete")``: without a lexer
    pass, each terminal is tried wherever it is expected and may take any text that its regular expression, run by
    ``re.match``, would take whole. Ignored terminals may stand before each terminal and at the end. Priorities choose
    between parses, not between texts, and so make no difference.

    Args:
        start: the rule to start from.
        parser: ``"earley"`` or ``None``.
        lexer: ``"dynamic_complete"`` or ``None``.

    Raises:
        GrammarSyntaxError: lark rejects the grammar, or a terminal's regular expression is malformed.
        UnsupportedFeature: another parser or lexer is asked for; or a terminal is only declared, can be empty, looks
            ahead or behind past its own text, or holds what a regular expression must not (see :func:`regex`).
        LimitExceeded: nesting, counts or templates go too far.
        MissingPackage: the package ``lark`` is not installed.
    """
    options = {"start": start, "parser": parser, "lexer": lexer}
    return Grammar(_compiled(text, "<string>", start, parser, lexer), call=Call(lark, (text,), options))


def load(
    path: str | PathLike[str], *, start: str = "start", parser: str | None = None, lexer: str | None = None
) -> Grammar[str]:
    """As :func:`lark`, from a UTF-8 file; its relative imports start from its directory.

    Raises:
        OSError: the file cannot be read.
    """
    options = {"start": start, "parser": parser, "lexer": lexer}
    ir = _compiled(Path(path).read_text(encoding="utf-8"), str(path), start, parser, lexer)
    return Grammar(ir, call=Call(load, (str(path),), options))


def _compiled(text: str, source_name: str, start: str, parser: str | None, lexer: str | None) -> Ir:
    for option, value, known in (("parser", parser, _PARSERS), ("lexer", lexer, _LEXERS)):
        if value is not None and value not in known:
            raise ValueError(f"{option} must be one of {', '.join(known)}, or None, not {value!r}")
        if value is not None and value != known[0]:
            raise UnsupportedFeature(
                f"{option}={value!r} of lark is not supported",
                hint=f"{option}={known[0]!r} is what is available: no lexer pass, terminals where they are expected",
            )
    builder = GrammarBuilder()
    source = read(text, source_name)
    try:
        node = Rules(source, builder).start(start)
    except RecursionError:
        raise LimitExceeded("the grammar exceeds the limit on nesting depth") from None
    return builder.build(node)
