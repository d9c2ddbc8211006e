"""Grammars in the syntax of the package ``lark``.

Data flows one way: the text of a grammar (:mod:`.text`) goes through lark's own loader (:mod:`.loader`), which makes
records of its rules (:mod:`.tree`) and regular expressions of its terminals; these become nodes of the grammar builder
(:mod:`.rules`, :mod:`.terminals`). :mod:`.options` says under which of lark's options that is done, :mod:`.limits` what
is too large to be loaded, :mod:`.imports` what it may import, and :mod:`.errors` how lark's errors are shown. Trees of
generated texts are made by lark (:mod:`.parsing`). :mod:`.contradictions` says why a grammar has no texts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from inspect import signature
from os import PathLike
from pathlib import Path
from typing import Any, Final, Literal, Unpack, overload

from grammarspec._compiler import CancelToken
from grammarspec.frontends.json_schema import json_schema
from grammarspec.frontends.json_schema.options import OptionsOfCall
from grammarspec.frontends.lark.contradictions import contradiction
from grammarspec.frontends.lark.errors import too_deep
from grammarspec.frontends.lark.loader import read as load_source
from grammarspec.frontends.lark.options import check_options
from grammarspec.frontends.lark.parsing import Captures, Parsed, Tree
from grammarspec.frontends.lark.rules import Rules
from grammarspec.grammars.budget import Budget
from grammarspec.grammars.builder import GrammarBuilder
from grammarspec.grammars.engine import Limits
from grammarspec.grammars.expressions import Grammar
from grammarspec.grammars.operators import Call

__all__ = ["lark", "load"]

_LOADING: Final = 100
"""Steps that lark's loader takes for each character of a grammar: about twenty microseconds. Once it runs, nothing can
stop it."""


@overload
def lark(
    text: str,
    *,
    start: str = "start",
    parser: str | None = None,
    lexer: str | None = None,
    import_paths: Sequence[str | PathLike[str]] = (),
    read: Literal["text"] = "text",
    captures: Sequence[str] = (),
    limits: Limits | None = None,
    cancel: CancelToken | None = None,
) -> Grammar[str]: ...
@overload
def lark(
    text: str,
    *,
    start: str = "start",
    parser: str | None = None,
    lexer: str | None = None,
    import_paths: Sequence[str | PathLike[str]] = (),
    read: Literal["tree"],
    captures: Sequence[str] = (),
    limits: Limits | None = None,
    cancel: CancelToken | None = None,
) -> Grammar[Any]: ...
def lark(
    text: str,
    *,
    start: str = "start",
    parser: str | None = None,
    lexer: str | None = None,
    import_paths: Sequence[str | PathLike[str]] = (),
    read: Literal["text", "tree"] = "text",
    captures: Sequence[str] = (),
    limits: Limits | None = None,
    cancel: CancelToken | None = None,
) -> Grammar[Any]:
    """The texts that a ``.lark`` grammar accepts.

    The grammar means what it means to ``lark.Lark(text, parser="earley", lexer="dynamic_complete")``: without a lexer
    pass, each terminal is tried wherever it is expected and may take any text that its regular expression, run by
    ``re.match``, would take whole. Ignored terminals may stand before each terminal and at the end. Priorities choose
    between parses, not between texts, and so make no difference to which texts there are.

    Args:
        text: the grammar.
        start: the rule to start from.
        parser: ``"earley"`` or ``None``.
        lexer: ``"dynamic_complete"`` or ``None``.
        import_paths: folders with grammars that it may import. It can import lark's own (``common``, ...) in any case,
            and reads no other files.
        read: what a text means: itself, or the ``lark.Tree`` that lark makes of it, with positions.
        captures: names of rules, aliases and terminals, as they are in lark's trees. :meth:`Grammar.match` has the list
            of the texts of each.
        limits: what the call may use: ``max_steps`` and ``timeout`` of them. By default the text may have 40,000
            characters, blanks in a row counted as one, since lark, once it reads, cannot be stopped.
        cancel: stops the work when it is cancelled, before or after lark has read the text.

    Raises:
        GrammarSyntaxError: lark rejects the grammar, an imported grammar is not there or cannot be read, or a
            terminal's regular expression is malformed.
        UnsupportedFeature: another parser or lexer is asked for; or a terminal is only declared, can be empty, looks
            ahead or behind past its own text, or holds what a regular expression must not (see :func:`regex`); lark
            needs a package for it that is not installed; or it imports what it must not read.
        LimitExceeded: nesting, counts or templates go too far, or the limits are reached.
        Cancelled: ``cancel`` was cancelled.
        MissingPackage: the package ``lark`` is not installed.
        TypeError: ``text`` is no string, ``import_paths`` is one path, or ``captures`` one name.
        ValueError: lark has no such parser or lexer, its trees have no parts of a name in ``captures``, or ``read`` is
            neither of the two.
    """
    if not isinstance(text, str):
        raise TypeError(f"lark() takes the text of a grammar, not {text!r:.60}\n  hint: gs.load(path) reads a file")
    options = _checked(start, parser, lexer, import_paths, read, captures)
    return _grammar(text, None, options, Call(lark, (text,), options), Budget(limits, cancel))


def load(
    path: str | PathLike[str],
    *,
    start: str = "start",
    parser: str | None = None,
    lexer: str | None = None,
    import_paths: Sequence[str | PathLike[str]] = (),
    read: Literal["text", "tree"] = "text",
    captures: Sequence[str] = (),
    **options: Unpack[OptionsOfCall],
) -> Grammar[Any]:
    """The grammar in a UTF-8 file: a JSON Schema in ``.json``, else one in lark's syntax, as :func:`lark`.

    Args:
        path: the file. A ``.lark`` file can also import, by relative imports, what stands in its folder.
        start, parser, lexer, import_paths, read, captures: as for :func:`lark`.
        options: of :func:`grammarspec.json_schema`, for a JSON Schema; ``limits`` and ``cancel`` of them for both.

    Raises:
        OSError: the file cannot be read.
        UnicodeDecodeError: it is not UTF-8.
        TypeError: there is no such option for a file of its kind; or as :func:`lark`.
        GrammarError, MissingPackage, ValueError: as :func:`lark` and :func:`grammarspec.json_schema`.
    """
    lark_options = _checked(start, parser, lexer, import_paths, read, captures)
    if Path(path).suffix == ".json":
        defaults = signature(load).parameters
        given = [name for name, value in lark_options.items() if value != defaults[name].default]
        if given:
            raise TypeError(f"{path} is a JSON Schema: {', '.join(given)} can be given for .lark files only")
        return json_schema(Path(path).read_text(encoding="utf-8"), **options)
    limits, cancel = options.pop("limits", None), options.pop("cancel", None)
    if options:
        raise TypeError(f"{path} is a .lark file, which has no options {', '.join(options)}")
    text = Path(path).read_text(encoding="utf-8")
    return _grammar(text, Path(path), lark_options, Call(load, (str(path),), lark_options), Budget(limits, cancel))


def _checked(
    start: str,
    parser: str | None,
    lexer: str | None,
    import_paths: Sequence[str | PathLike[str]],
    read: str,
    captures: Sequence[str],
) -> dict[str, Any]:
    """The options of :func:`lark`, as its arguments.

    Raises:
        TypeError, ValueError, UnsupportedFeature: as :func:`lark`.
    """
    check_options(parser=parser, lexer=lexer)
    if isinstance(import_paths, str | PathLike):
        raise TypeError("import_paths takes a sequence of paths, not one path")
    if isinstance(captures, str):
        raise TypeError(f"captures takes a sequence of names, not one name: write captures=[{captures!r:.60}]")
    if read not in ("text", "tree"):
        raise ValueError(f'read must be "text" or "tree", not {read!r:.60}')
    paths, names = tuple(map(str, import_paths)), tuple(dict.fromkeys(captures))
    return {
        "start": start, "parser": parser, "lexer": lexer, "import_paths": paths, "read": read, "captures": names,
    }  # fmt: skip


def _grammar(text: str, file: Path | None, options: Mapping[str, Any], call: Call, budget: Budget) -> Grammar[Any]:
    """The language of the text of a grammar, and how its texts are read.

    Args:
        file: where the text stands; ``None``: it stands nowhere.
        options: those of :func:`lark`, checked.
    """
    folders = tuple(map(Path, options["import_paths"]))
    size = len(" ".join(text.split()))
    budget.spend(_LOADING * size, f"the text of the grammar, {size} characters")
    source, start = load_source(text, file, folders), options["start"]
    budget.allow(partial(len, source.text.text))
    builder = GrammarBuilder(budget)
    try:
        node = Rules(source, builder).start(start)
    except RecursionError:
        raise too_deep() from None
    names, trees = options["captures"], options["read"] == "tree"
    parsed = Parsed(text, file, folders, start)
    if names or trees:
        parsed.check(names)
    return Grammar(
        builder.build(node),
        read=Tree(parsed) if trees else None,
        call=call,
        why_empty=lambda: contradiction(source, start),
        captures=Captures(parsed, names) if names else None,
    )
