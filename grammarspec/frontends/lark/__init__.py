"""Grammars in the syntax of the package ``lark``.

Data flows one way: the text of a grammar (:mod:`.text`) goes through lark's own loader (:mod:`.loader`), which makes
records of its rules (:mod:`.tree`) and regular expressions of its terminals; these become nodes of the grammar builder
(:mod:`.rules`, :mod:`.terminals`). :mod:`.options` says under which of lark's options that is done, :mod:`.limits` what
is too large to be loaded, :mod:`.imports` what it may import, and :mod:`.errors` how lark's errors are shown.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any

from grammarspec._compiler import CancelToken
from grammarspec._compiler import Grammar as Ir
from grammarspec.frontends.json_schema import json_schema
from grammarspec.frontends.lark.errors import too_deep
from grammarspec.frontends.lark.loader import Source, read
from grammarspec.frontends.lark.options import check_options
from grammarspec.frontends.lark.rules import Rules
from grammarspec.grammars.budget import Budget
from grammarspec.grammars.builder import GrammarBuilder
from grammarspec.grammars.engine import Limits
from grammarspec.grammars.expressions import Grammar
from grammarspec.grammars.operators import Call

__all__ = ["lark", "load"]


def lark(
    text: str,
    *,
    start: str = "start",
    parser: str | None = None,
    lexer: str | None = None,
    import_paths: Sequence[str | PathLike[str]] = (),
    limits: Limits | None = None,
    cancel: CancelToken | None = None,
) -> Grammar[str]:
    """The texts that a ``.lark`` grammar accepts.

    The grammar means what it means to ``lark.Lark(text, parser="earley", lexer="dynamic_complete")``: without a lexer
    pass, each terminal is tried wherever it is expected and may take any text that its regular expression, run by
    ``re.match``, would take whole. Ignored terminals may stand before each terminal and at the end. Priorities choose
    between parses, not between texts, and so make no difference.

    Args:
        text: the grammar.
        start: the rule to start from.
        parser: ``"earley"`` or ``None``.
        lexer: ``"dynamic_complete"`` or ``None``.
        import_paths: folders with grammars that it may import. It can import lark's own (``common``, ...) in any case,
            and reads no other files.
        limits: what the call may use, once lark has read the text: ``max_steps`` and ``timeout`` of them.
        cancel: stops the work when it is cancelled.

    Raises:
        GrammarSyntaxError: lark rejects the grammar, an imported grammar is not there or cannot be read, or a
            terminal's regular expression is malformed.
        UnsupportedFeature: another parser or lexer is asked for; or a terminal is only declared, can be empty, looks
            ahead or behind past its own text, or holds what a regular expression must not (see :func:`regex`); lark
            needs a package for it that is not installed; or it imports what it must not read.
        LimitExceeded: nesting, counts or templates go too far, or the limits are reached.
        Cancelled: ``cancel`` was cancelled.
        MissingPackage: the package ``lark`` is not installed.
        TypeError: ``text`` is no string, or ``import_paths`` is one path.
        ValueError: lark has no such parser or lexer.
    """
    if not isinstance(text, str):
        raise TypeError(f"lark() takes the text of a grammar, not {text!r:.60}\n  hint: gs.load(path) reads a file")
    check_options(parser=parser, lexer=lexer)
    folders = _folders(import_paths)
    options = {"start": start, "parser": parser, "lexer": lexer, "import_paths": tuple(map(str, folders))}
    budget = Budget(limits, cancel)
    return Grammar(_compiled(read(text, None, folders), start, budget), call=Call(lark, (text,), options))


def load(
    path: str | PathLike[str],
    *,
    start: str = "start",
    parser: str | None = None,
    lexer: str | None = None,
    import_paths: Sequence[str | PathLike[str]] = (),
    limits: Limits | None = None,
    cancel: CancelToken | None = None,
    **options: Any,
) -> Grammar[Any]:
    """The grammar in a UTF-8 file: a JSON Schema in ``.json``, else one in lark's syntax, as :func:`lark`.

    Args:
        path: the file. A ``.lark`` file can also import, by relative imports, what stands in its folder.
        start, parser, lexer, import_paths, limits, cancel: as for :func:`lark`.
        options: of :func:`grammarspec.json_schema`, for a JSON Schema.

    Raises:
        OSError: the file cannot be read.
        UnicodeDecodeError: it is not UTF-8.
        TypeError: there is no such option for a file of its kind, or ``import_paths`` is one path.
        GrammarError, MissingPackage, ValueError: as :func:`lark` and :func:`grammarspec.json_schema`.
    """
    folders = _folders(import_paths)
    lark_options = {"start": start, "parser": parser, "lexer": lexer, "import_paths": tuple(map(str, folders))}
    if Path(path).suffix == ".json":
        if lark_options != {"start": "start", "parser": None, "lexer": None, "import_paths": ()}:
            message = f"{path} is a JSON Schema: start, parser, lexer and import_paths are options of .lark files"
            raise TypeError(message)
        return json_schema(Path(path).read_text(encoding="utf-8"), limits=limits, cancel=cancel, **options)
    if options:
        raise TypeError(f"{path} is a .lark file, which has no options {', '.join(options)}")
    check_options(parser=parser, lexer=lexer)
    source = read(Path(path).read_text(encoding="utf-8"), Path(path), folders)
    return Grammar(_compiled(source, start, Budget(limits, cancel)), call=Call(load, (str(path),), lark_options))


def _folders(import_paths: Sequence[str | PathLike[str]]) -> list[Path]:
    """Folders as paths.

    Raises:
        TypeError: one path is given in place of several.
    """
    if isinstance(import_paths, str | PathLike):
        raise TypeError("import_paths takes a sequence of paths, not one path")
    return [Path(path) for path in import_paths]


def _compiled(source: Source, start: str, budget: Budget) -> Ir:
    """The language of a grammar that has been loaded."""
    budget.allow(partial(len, source.text.text))
    builder = GrammarBuilder(budget)
    try:
        node = Rules(source, builder).start(start)
    except RecursionError:
        raise too_deep() from None
    return builder.build(node)
