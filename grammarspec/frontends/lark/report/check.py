"""``gs.check_lark``: all that is found in a ``.lark`` grammar.

The text or the file of a grammar comes in; a :class:`~.findings.GrammarReport` goes out.
"""

from __future__ import annotations

from collections.abc import Iterator
from os import PathLike
from typing import Unpack

from grammarspec.constraint import CancelToken, Limits, compile
from grammarspec.errors import GrammarError, GrammarSyntaxError, needed_by
from grammarspec.frontends.lark import grammar_of
from grammarspec.frontends.lark.errors import too_deep
from grammarspec.frontends.lark.limits import charge_loading
from grammarspec.frontends.lark.loader import Source, read
from grammarspec.frontends.lark.opening import Opened, OpeningOptions, opened
from grammarspec.frontends.lark.report.collisions import collisions
from grammarspec.frontends.lark.report.conflicts import conflicts
from grammarspec.frontends.lark.report.findings import Finding, GrammarReport
from grammarspec.frontends.lark.report.malformed import MOST, malformed
from grammarspec.frontends.lark.report.naming import Names
from grammarspec.frontends.lark.report.obstacles import ModeLexemes, obstacles
from grammarspec.frontends.lark.report.symbols import symbols
from grammarspec.grammars.budget import Budget
from grammarspec.grammars.builder import GrammarBuilder
from grammarspec.vocabulary import Vocabulary

__all__ = ["check_lark"]


def check_lark(
    what: str | PathLike[str],
    *,
    limits: Limits | None = None,
    cancel: CancelToken | None = None,
    **options: Unpack[OpeningOptions],
) -> GrammarReport:
    """What is found in a ``.lark`` grammar: all that makes it be refused, and what may be a mistake.

    That are rules and terminals that nothing uses or that have no texts, terminals of which lark's own lexers silently
    take one for the other (:attr:`.Finding.kind` ``"collision"``), and conflicts that lark's LALR parser silently
    resolves.

    Args:
        what: the text of a grammar; or, as a ``Path``, its file, or the name of a grammar of the package.
        limits, cancel: as for :func:`grammarspec.lark`.
        options: those of :func:`grammarspec.lark`, by which it is decided what is refused. A grammar of the package
            has a parser and a lexer of its own, unless one of the two is given.

    Raises:
        OSError: the file cannot be read, or no grammar of the package has this name.
        UnicodeDecodeError: it is not UTF-8.
        Cancelled: ``cancel`` was cancelled.
        MissingPackage: the package ``lark`` is not installed.
        UnsupportedFeature: an option is refused.
        TypeError, ValueError: as :func:`grammarspec.lark`.
    """
    with needed_by(".lark grammars"):
        import lark  # noqa: F401
    grammar, budget = opened(what, options), Budget(limits, cancel)
    try:
        charge_loading(grammar.text, budget)
        try:
            source = read(grammar.text, grammar.file, grammar.options.folders, grammar.options.given)
        except GrammarError as error:
            refused = malformed(grammar) or [error]
            notes = [f"no more than {MOST} errors are looked for"] if len(refused) >= MOST else []
            return GrammarReport.of(map(Finding.of, refused), notes)
        for name in grammar.options.start:
            if name not in source.rules:
                raise GrammarSyntaxError(f"there is no rule {name!r} to start from", hint="pass start=...")
        return _of_source(source, grammar, limits, cancel)
    except GrammarError as error:
        return GrammarReport.of([Finding.of(error)])
    except RecursionError:
        return GrammarReport.of([Finding.of(too_deep())])


def _of_source(source: Source, grammar: Opened, limits: Limits | None, cancel: CancelToken | None) -> GrammarReport:
    """The report on a grammar that lark's loader takes; each of its parts may use the limits."""
    errors, parser = obstacles(source, grammar, Budget(limits, cancel))
    found = [Finding.of(error) for error in errors]
    notes: list[str] = []
    names = Names(source, parser.terminals if parser is not None else ())
    if parser is not None:
        found += conflicts(source, grammar, names)
        lexemes = ModeLexemes(source, parser, GrammarBuilder(), [])
        colliding, notes = collisions(parser, lexemes, names)
        found += colliding
    found += symbols(source, grammar.options)
    if not any(finding.kind == "refused" for finding in found):
        found += _last(grammar, source, Budget(limits, cancel))
    return GrammarReport.of(found, notes)


def _last(grammar: Opened, source: Source, budget: Budget) -> Iterator[Finding]:
    """What is still refused once the whole grammar is made and compiled: one that has no texts, say."""
    try:
        compile(grammar_of(grammar, budget, source), Vocabulary.bytes())
    except GrammarError as error:
        yield Finding.of(error)
