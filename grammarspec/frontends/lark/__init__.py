"""Grammars in the syntax of the package ``lark``.

Data flows one way: the text of a grammar (:mod:`.text`) goes through lark's own loader (:mod:`.loader`), which makes
records of its rules (:mod:`.tree`) and regular expressions of its terminals; these become nodes of the grammar builder
(:mod:`.rules`, :mod:`.terminals`), or, for lark's LALR parser, the tables (:mod:`.tables`) of its states
(:mod:`.lalr_states`) become a parser of the builder (:mod:`.lalr`, :mod:`.lexers`). :mod:`.options` says under which of
lark's options that is done, :mod:`.limits` what is too large to be loaded, :mod:`.imports` what it may import, and
:mod:`.errors` how lark's errors are shown. Trees of generated texts are made by lark (:mod:`.parsing`).
:mod:`.contradictions` says why a grammar has no texts. Terminals can be given other grammars (:mod:`.given_terminals`).
Some grammars come with the package (:mod:`.shipped`, :mod:`.opening`). Reports on grammars and on their texts are made
in :mod:`.report`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypedDict, TypeVar, Unpack, overload

from grammarspec._compiler import CancelToken
from grammarspec.errors import GrammarSyntaxError
from grammarspec.frontends.json_schema import json_schema
from grammarspec.frontends.json_schema.options import Options as SchemaOptions
from grammarspec.frontends.lark.contradictions import contradiction
from grammarspec.frontends.lark.errors import too_deep
from grammarspec.frontends.lark.lalr import lalr
from grammarspec.frontends.lark.lexers import BasicTerminals
from grammarspec.frontends.lark.limits import charge_loading, check_expansion
from grammarspec.frontends.lark.loader import Source
from grammarspec.frontends.lark.loader import read as load_source
from grammarspec.frontends.lark.opening import DEFAULTS, Opened, found
from grammarspec.frontends.lark.options import LarkOptions, Options, resolved
from grammarspec.frontends.lark.parsing import Captures, Parsed, Transformed, Tree, check_transformer
from grammarspec.frontends.lark.rules import AnyTerminals, Rules
from grammarspec.frontends.lark.terminals import Terminals
from grammarspec.grammars.budget import Budget
from grammarspec.grammars.builder import GrammarBuilder
from grammarspec.grammars.engine import Limits
from grammarspec.grammars.expressions import Grammar
from grammarspec.grammars.operators import Call

if TYPE_CHECKING:
    from lark import Transformer
    from lark import Tree as LarkTree
    from lark.visitors import TransformerChain

__all__ = ["grammar_of", "lark", "load"]

T = TypeVar("T")


class _ReadOptions(TypedDict, total=False):
    start: str | Sequence[str]
    parser: str | None
    lexer: str | None
    import_paths: Sequence[str | PathLike[str]]
    terminals: Mapping[str, Grammar[Any]] | None
    tree: bool
    transformer: Any
    captures: Sequence[str]


class FileOptions(_ReadOptions, LarkOptions, SchemaOptions, total=False):
    """Options of :func:`load`, for files of either kind."""


@overload
def lark(
    text: str,
    *,
    start: str | Sequence[str] = "start",
    parser: str | None = None,
    lexer: str | None = None,
    import_paths: Sequence[str | PathLike[str]] = (),
    terminals: Mapping[str, Grammar[Any]] | None = None,
    tree: Literal[False] = False,
    transformer: None = None,
    captures: Sequence[str] = (),
    limits: Limits | None = None,
    cancel: CancelToken | None = None,
    **options: Unpack[LarkOptions],
) -> Grammar[str]: ...
@overload
def lark(
    text: str,
    *,
    start: str | Sequence[str] = "start",
    parser: str | None = None,
    lexer: str | None = None,
    import_paths: Sequence[str | PathLike[str]] = (),
    terminals: Mapping[str, Grammar[Any]] | None = None,
    tree: Literal[True],
    transformer: None = None,
    captures: Sequence[str] = (),
    limits: Limits | None = None,
    cancel: CancelToken | None = None,
    **options: Unpack[LarkOptions],
) -> Grammar[LarkTree[Any]]: ...
@overload
def lark(
    text: str,
    *,
    start: str | Sequence[str] = "start",
    parser: str | None = None,
    lexer: str | None = None,
    import_paths: Sequence[str | PathLike[str]] = (),
    terminals: Mapping[str, Grammar[Any]] | None = None,
    tree: Literal[False] = False,
    transformer: Transformer[Any, T] | TransformerChain[Any, T] | type[Transformer[Any, T]],
    captures: Sequence[str] = (),
    limits: Limits | None = None,
    cancel: CancelToken | None = None,
    **options: Unpack[LarkOptions],
) -> Grammar[T]: ...
@overload
def lark(
    text: str,
    *,
    start: str | Sequence[str] = "start",
    parser: str | None = None,
    lexer: str | None = None,
    import_paths: Sequence[str | PathLike[str]] = (),
    terminals: Mapping[str, Grammar[Any]] | None = None,
    tree: bool,
    transformer: None = None,
    captures: Sequence[str] = (),
    limits: Limits | None = None,
    cancel: CancelToken | None = None,
    **options: Unpack[LarkOptions],
) -> Grammar[Any]: ...
def lark(
    text: str,
    *,
    start: str | Sequence[str] = "start",
    parser: str | None = None,
    lexer: str | None = None,
    import_paths: Sequence[str | PathLike[str]] = (),
    terminals: Mapping[str, Grammar[Any]] | None = None,
    tree: bool = False,
    transformer: Any = None,
    captures: Sequence[str] = (),
    limits: Limits | None = None,
    cancel: CancelToken | None = None,
    **options: Unpack[LarkOptions],
) -> Grammar[Any]:
    """The texts that a ``.lark`` grammar accepts.

    The grammar means what it means to ``lark.Lark(text, parser=parser, lexer=lexer, ...)``: the texts are those that
    lark's ``parse`` takes. As there, the parser is ``"earley"`` unless another is named, with the lexer ``"dynamic"``;
    that of ``"lalr"`` is ``"contextual"``.

    Args:
        text: the grammar.
        start: the rule to start from; or several, for the texts of any of them.
        parser: ``"earley"``, ``"lalr"`` or ``None``.
        lexer: ``"dynamic"``, ``"dynamic_complete"`` or ``"basic"`` for ``parser="earley"``, ``"contextual"`` or
            ``"basic"`` for ``parser="lalr"``; ``"auto"`` or ``None``.
        import_paths: folders with grammars that it may import. It can import lark's own (``common``, ...) in any case,
            and reads no other files.
        terminals: grammars by the names of terminals, which the grammar declares (``%declare``) or defines: their texts
            are those of the grammars. With ``lexer="dynamic_complete"`` any grammars but those that have special tokens
            or named parts; with the others those of :func:`regex` (in Python's dialect), :func:`literal` and
            :func:`choice`, which lark tries as it does the file's own expressions.
        tree: whether a text means the ``lark.Tree`` that lark makes of it, with positions; else it means itself.
        transformer: a ``lark.Transformer``, or a class of which an instance is made for each text: a text means what it
            makes of the tree. Its errors are :class:`ValidationFailed` with their cause.
        captures: names of rules, aliases and terminals, as they are in lark's trees. :meth:`Grammar.match` has the list
            of the texts of each.
        limits: what the call may use: ``max_steps`` and ``timeout`` of them. By default the text may have 40,000
            characters, blanks in a row counted as one, since lark, once it reads, cannot be stopped.
        cancel: stops the work when it is cancelled, before or after lark has read the text.
        options: further options of ``lark.Lark``. Those that shape trees make a difference to trees alone.

    Raises:
        GrammarSyntaxError: lark rejects the grammar, an imported grammar is not there or cannot be read, a terminal's
            regular expression is malformed, or the grammar has no terminal of a name in ``terminals``.
        UnsupportedFeature: a terminal can be empty, looks behind past its own text, or holds what a regular expression
            must not (see :func:`regex`); Python code decides which texts there are (``lexer_callbacks``); lark needs a
            package for it that is not installed; it imports what it must not read; ``terminals`` has a grammar that a
            terminal cannot have; or, with ``postlex`` under Earley's parser, a rule begins with itself behind what can
            be empty.
        Unsatisfiable: one of ``terminals`` has no texts.
        LimitExceeded: nesting, counts or templates go too far, or the limits are reached.
        Cancelled: ``cancel`` was cancelled.
        MissingPackage: the package ``lark`` is not installed.
        TypeError: ``text`` is no string, ``import_paths`` is one path, ``captures`` one name, ``terminals`` no dict of
            grammars, ``transformer`` none of lark's, or lark has no such option.
        ValueError: lark has no such parser or lexer, or one that makes no tokens for ``postlex``; its trees have no
            parts of a name in ``captures``; or both ``tree`` and ``transformer`` are given.
    """
    if not isinstance(text, str):
        raise TypeError(f"lark() takes the text of a grammar, not {text!r:.60}\n  hint: gs.load(path) reads a file")
    named: dict[str, Any] = {"start": start, "parser": parser, "lexer": lexer, "import_paths": import_paths, **options}
    named["terminals"] = terminals
    checked = resolved(**named)
    reading = _Reading(checked, tree, transformer, captures)
    call = Call(lark, (text,), {**named, "import_paths": checked.paths, **reading.arguments()})
    return _grammar(text, None, checked, reading, call, Budget(limits, cancel))


def load(
    path: str | PathLike[str],
    *,
    limits: Limits | None = None,
    cancel: CancelToken | None = None,
    **options: Unpack[FileOptions],
) -> Grammar[Any]:
    """The grammar in a UTF-8 file: a JSON Schema in ``.json``, else one in lark's syntax, as :func:`lark`.

    Args:
        path: the file. A ``.lark`` file can also import, by relative imports, what stands in its folder. Or the name of
            a grammar that comes with the package, such as ``"json"``; docs/grammars.md lists them.
        limits, cancel: as for :func:`lark`.
        options: those of :func:`lark` for a ``.lark`` file, those of :func:`grammarspec.json_schema` for a JSON Schema.
            A grammar of the package has a parser and a lexer of its own, unless one of the two is given.

    Raises:
        OSError: the file cannot be read, or no grammar of the package has this name.
        UnicodeDecodeError: it is not UTF-8.
        TypeError: there is no such option for a file of its kind; or as :func:`lark`.
        GrammarError, MissingPackage, ValueError: as :func:`lark` and :func:`grammarspec.json_schema`.
    """
    is_schema = Path(path).suffix == ".json"
    known = (
        SchemaOptions.__annotations__ if is_schema else {**_ReadOptions.__annotations__, **LarkOptions.__annotations__}
    )
    unknown = [name for name in options if name not in known]
    if unknown:
        kind = "JSON Schema" if is_schema else ".lark file"
        raise TypeError(f"{path} is a {kind}, which has no options {', '.join(unknown)}")
    if is_schema:
        schema_options: Any = options
        return json_schema(Path(path).read_text(encoding="utf-8"), limits=limits, cancel=cancel, **schema_options)
    given: dict[str, Any] = {**DEFAULTS, **options}
    read_as = given.pop("tree", False), given.pop("transformer", None), given.pop("captures", ())
    file, checked = found(path, given)
    reading = _Reading(checked, *read_as)
    named = {**given, "import_paths": checked.paths, **reading.arguments()}
    call = Call(load, (str(path),), {name: named[name] for name in options})
    return _grammar(file.read_text(encoding="utf-8"), file, checked, reading, call, Budget(limits, cancel))


def grammar_of(opened: Opened, budget: Budget, source: Source | None = None) -> Grammar[str]:
    """The language of a grammar that has been opened; its texts mean themselves.

    Args:
        budget: the work that may be done.
        source: what has been read of it, if it has been.

    Raises:
        GrammarError, MissingPackage: as :func:`lark`.
    """
    call = Call(lark, (opened.text,))
    reading = _Reading(opened.options, False, None, ())
    return _grammar(opened.text, opened.file, opened.options, reading, call, budget, source)


class _Reading:
    """How texts of a grammar are read: options that have been checked."""

    def __init__(self, options: Options, tree: bool, transformer: Any, captures: Sequence[str]) -> None:
        """Check the options of :func:`lark`.

        Raises:
            TypeError: one of them is of a wrong type.
            ValueError: there is both a tree and a transformer.
            UnsupportedFeature: a transformer could not read lark's trees under its options.
        """
        if isinstance(captures, str):
            raise TypeError(f"captures takes a sequence of names, not one name: write captures=[{captures!r:.60}]")
        if not isinstance(tree, bool):
            raise TypeError(f"tree takes True or False, not {tree!r:.60}")
        if transformer is not None:
            if tree:
                raise ValueError("a text means its tree or what the transformer makes of it: give tree or transformer")
            check_transformer(transformer, options)
        self.tree, self.transformer, self.names = tree, transformer, tuple(dict.fromkeys(captures))

    def arguments(self) -> dict[str, Any]:
        """The options as arguments."""
        return {"tree": self.tree, "transformer": self.transformer, "captures": self.names}

    def reader(self, parsed: Parsed) -> Tree | Transformed | None:
        """What reads texts; ``None``: they mean themselves.

        Raises:
            GrammarError, ValueError: as :meth:`Parsed.check`.
        """
        if self.names or self.tree or self.transformer is not None:
            parsed.check(self.names)
        if self.transformer is not None:
            return Transformed(parsed, self.transformer)
        return Tree(parsed) if self.tree else None


def _grammar(
    text: str,
    file: Path | None,
    options: Options,
    reading: _Reading,
    call: Call,
    budget: Budget,
    source: Source | None = None,
) -> Grammar[Any]:
    """The language of the text of a grammar, and how its texts are read.

    Args:
        file: where the text stands; ``None``: it stands nowhere.
        source: what has been read of it, if it has been.
    """
    charge_loading(text, budget)
    source = source or load_source(text, file, options.folders, options.given)
    budget.allow(partial(len, source.text.text))
    for name in options.start:
        if name not in source.rules:
            raise GrammarSyntaxError(f"there is no rule {name!r} to start from", hint="pass start=...")
    builder = GrammarBuilder(budget)
    try:
        node = _node(source, text, file, options, builder)
    except RecursionError:
        raise too_deep() from None
    parsed = Parsed(text, file, options)
    return Grammar(
        builder.build(node),
        read=reading.reader(parsed),
        call=call,
        why_empty=lambda: contradiction(source, options.start[0], options.dialect),
        captures=Captures(parsed, reading.names) if reading.names else None,
    )


def _node(source: Source, text: str, file: Path | None, options: Options, builder: GrammarBuilder) -> int:
    """The node of a grammar's texts, by the parser and lexer of its options."""
    if options.has_tables:
        check_expansion(source.rules, builder.budget, tables=True)
        return lalr(options.tables(text, file, source.grammar, builder.budget), options.start, source.text, builder)
    if options.lexer == "basic":
        check_expansion(source.rules, builder.budget, tables=False)
        tables = options.tables(text, file, source.grammar, builder.budget)
        terminals: AnyTerminals = BasicTerminals(tables, source.text, builder)
    else:
        terminals = Terminals(
            source, builder, options.flags, options.dialect, complete=options.lexer == "dynamic_complete"
        )
    return Rules(source, terminals, builder).start(options.start)
