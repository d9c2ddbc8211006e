"""The options of ``lark.Lark``, as far as they decide what a grammar means, and the parser that lark makes of them.

Which texts a ``.lark`` grammar accepts depends on its parser and its lexer. Other options shape trees, or say how lark
works: they are handed on to lark, which reads texts for trees and captures, and make no difference otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cache, partial
from os import PathLike
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final, TypedDict

from grammarspec.errors import UnsupportedFeature
from grammarspec.frontends.lark.errors import lark_errors
from grammarspec.frontends.lark.given_terminals import GivenTerminal, checked
from grammarspec.frontends.lark.imports import Imports
from grammarspec.frontends.lark.limits import without_long_gaps
from grammarspec.frontends.lark.tables import Tables
from grammarspec.frontends.lark.text import GrammarText
from grammarspec.frontends.regex.patterns import Dialect
from grammarspec.grammars.budget import Budget
from grammarspec.grammars.expressions import Grammar

__all__ = ["LarkOptions", "Options", "resolved"]

_LEXERS: Final = {
    "earley": ("dynamic", "dynamic_complete", "basic"),
    "lalr": ("contextual", "basic"),
}
"""The lexers of each parser that is supported; the first one is what ``"auto"`` stands for."""
_KNOWN: Final = ("dynamic", "dynamic_complete", "basic", "contextual")


class LarkOptions(TypedDict, total=False):
    """Options of ``lark.Lark``, beside those that the functions of this package name themselves."""

    postlex: Any
    g_regex_flags: int
    regex: bool
    source_path: str | PathLike[str] | None
    strict: bool
    priority: str | None
    ambiguity: str
    edit_terminals: Callable[[Any], Any] | None
    lexer_callbacks: Mapping[str, Callable[[Any], Any]]
    use_bytes: bool
    propagate_positions: bool | Callable[..., Any]
    maybe_placeholders: bool
    keep_all_tokens: bool
    tree_class: Any
    debug: bool
    cache: bool | str
    cache_grammar: bool
    ordered_sets: bool


_CODE: Final = {
    "edit_terminals": "it changes terminals by code",
    "lexer_callbacks": "they change tokens by code",
    "use_bytes": "texts are characters here, spelled in UTF-8",
}
"""Options that must be empty, and why."""
_WITHOUT_MEANING: Final = ("cache", "cache_grammar", "debug", "ordered_sets", "source_path", *_CODE)
"""Options that nothing here depends on: they are not handed on."""


class BasicTries:
    """Which terminals lark's basic lexer tries, in its order."""

    def __init__(self, conf: Any, comparator: object = None) -> None:
        """Sort the terminals of lark's configuration of a lexer, as its ``BasicLexer`` does."""
        self.terminals = sorted(
            conf.terminals, key=lambda t: (-t.priority, -t.pattern.max_width, -len(t.pattern.value), t.name)
        )
        undefined = set(conf.ignore) - {terminal.name for terminal in self.terminals}
        if undefined:
            raise ValueError(f"Ignore terminals are not defined: {undefined}")


class ContextualTries:
    """Which terminals lark's contextual lexer tries in each state of the parser."""

    def __init__(self, conf: Any, states: Mapping[int, Collection[str]], always_accept: Collection[str] = ()) -> None:
        """Select the terminals for each state, as lark's ``ContextualLexer`` does."""
        by_names: dict[frozenset[str], BasicTries] = {}
        self.lexers: dict[int, BasicTries] = {}
        for state, names in states.items():
            accepted = frozenset(names) | frozenset(conf.ignore) | frozenset(always_accept)
            if accepted not in by_names:
                conf_of_state = copy(conf)
                conf_of_state.terminals = [
                    conf.terminals_by_name[name] for name in accepted if name in conf.terminals_by_name
                ]
                by_names[accepted] = BasicTries(conf_of_state)
            self.lexers[state] = by_names[accepted]


def _unchecked(lexer: Callable[..., Any]) -> Callable[..., Any]:
    """A lexer of lark that takes its terminals to be sound."""

    def make(conf: Any, *args: Any, **kwargs: Any) -> Any:
        conf.skip_validation = True
        return lexer(conf, *args, **kwargs)

    return make


@cache
def _lexer_alone() -> Any:
    """Lark with the terminals of its basic lexer, and without Earley's parser.

    The parser begins with the sets FIRST and FOLLOW of all rules, which nothing here needs: half of the time, and half
    a second for a thousand key words.
    """
    from lark import Lark

    class LexerAlone(Lark):
        def _build_parser(self) -> Any:
            return SimpleNamespace(lexer=BasicTries(self.lexer_conf), lexer_conf=self.lexer_conf)

    return LexerAlone


@dataclass(frozen=True)
class Options:
    """Options that have been checked.

    Attributes:
        parser: ``"earley"`` or ``"lalr"``.
        lexer: ``"dynamic"``, ``"dynamic_complete"``, ``"basic"`` or ``"contextual"``.
        start: the rules to start from.
        folders: those with grammars that may be imported.
        given: terminals whose texts are those of another grammar.
        others: further options of lark, with their values.
    """

    parser: str
    lexer: str
    start: tuple[str, ...]
    folders: tuple[Path, ...]
    given: tuple[GivenTerminal, ...]
    others: tuple[tuple[str, Any], ...]

    @property
    def has_tables(self) -> bool:
        """Whether texts are read by the tables of an LALR parser (:mod:`.lalr`)."""
        return self.parser == "lalr" or dict(self.others).get("postlex") is not None

    @property
    def paths(self) -> tuple[str, ...]:
        """The folders, as ``import_paths``."""
        return tuple(map(str, self.folders))

    @property
    def flags(self) -> int:
        """The flags of :mod:`re` for all terminals."""
        return int(dict(self.others).get("g_regex_flags", 0))

    @property
    def dialect(self) -> Dialect:
        """The dialect of the expressions."""
        return "regex" if dict(self.others).get("regex") else "python"

    def tables(self, text: str, file: Path | None, grammar: Any, budget: Budget) -> Any:
        """Lark's parser of a grammar that cannot read: its lexers only say which terminals they would try, and a parser
        it has if :attr:`has_tables` alone.

        Making lark's own takes longer than all the rest where ``interegular`` is installed, whose search for terminals
        that collide is of use to nobody here. Where collisions are errors (``strict``), lark's own are made.

        Args:
            text, file, grammar: as for :meth:`open`.
            budget: pays for the tables of an LALR parser.

        Raises:
            GrammarSyntaxError, LimitExceeded, UnsupportedFeature: as :meth:`open`.
            Cancelled: as the budget.
        """
        if dict(self.others).get("strict"):
            self.open(text, file, grammar)
        if not self.has_tables:
            return self.open(text, file, grammar, made=_lexer_alone())
        is_lalr = self.parser == "lalr"
        plugins = {
            "BasicLexer": BasicTries,
            "ContextualLexer": ContextualTries,
            "LALR_Parser": partial(Tables, budget=budget, resolved=is_lalr),
        }
        others: dict[str, Any] = {} if is_lalr else {"parser": "lalr", "ambiguity": "auto", "strict": False}
        return self.open(text, file, grammar, _plugins=plugins, **others)

    def reader(self, text: str, file: Path | None, grammar: Any = None, **others: Any) -> Any:
        """Lark's parser of a grammar that has been checked before: as :meth:`open`, without that search."""
        from lark.lexer import BasicLexer, ContextualLexer

        plugins = {"BasicLexer": _unchecked(BasicLexer), "ContextualLexer": _unchecked(ContextualLexer)}
        return self.open(text, file, grammar, **others, _plugins=plugins)

    def open(
        self, text: str, file: Path | None, grammar: Any = None, made: Callable[..., Any] | None = None, **others: Any
    ) -> Any:
        """Lark's parser of a grammar.

        Args:
            text: the grammar.
            file: where it stands.
            grammar: what lark's loader has made of the text, if it has been loaded before.
            made: what makes it; ``None``: ``lark.Lark``.
            others: further options, in place of those given.

        Raises:
            GrammarSyntaxError, LimitExceeded, UnsupportedFeature: lark rejects the grammar under these options.
        """
        from lark import Lark

        source = GrammarText(text)
        imports = Imports(source, file, self.folders)
        with lark_errors(source):
            named = {"parser": self.parser, "lexer": self.lexer, **dict(self.others), **others}
            return (made or Lark)(
                grammar or without_long_gaps(text),
                start=list(self.start),
                import_paths=[imports],
                source_path=imports.source_name,
                **named,
            )


def resolved(
    *,
    start: str | Sequence[str],
    parser: str | None,
    lexer: str | None,
    import_paths: Sequence[str | PathLike[str]],
    terminals: Mapping[str, Grammar[Any]] | None,
    **others: Any,
) -> Options:
    """Check options, and fill in lark's defaults.

    Raises:
        TypeError: an option is of a wrong type, or lark has no such option.
        ValueError: lark has no such value, or the parser no such lexer.
        UnsupportedFeature: lark has it, and it is not supported; or a terminal is given what it cannot be.
        Unsatisfiable: a terminal is given a grammar without texts.
    """
    unknown = others.keys() - LarkOptions.__annotations__.keys()
    if unknown:
        raise TypeError(f"there is no option {', '.join(sorted(unknown))} of .lark grammars")
    if isinstance(import_paths, str | PathLike):
        raise TypeError("import_paths takes a sequence of paths, not one path")
    starts = (start,) if isinstance(start, str) else tuple(start) if isinstance(start, Sequence) else ()
    if not starts or not all(isinstance(name, str) for name in starts):
        raise TypeError(f"start takes the name of a rule, or several, not {start!r:.60}")
    parser = parser or "earley"
    if parser == "cyk":
        raise UnsupportedFeature("parser='cyk' of lark is not supported", hint='parser="earley" takes the same texts')
    if parser not in tuple(_LEXERS):
        raise ValueError(f"parser must be one of earley, lalr, or None, not {parser!r:.60}")
    lexer = _LEXERS[parser][0] if lexer in (None, "auto") else lexer
    if lexer not in _KNOWN:
        raise ValueError(f"lexer must be one of auto, {', '.join(_KNOWN)}, or None, not {lexer!r:.60}")
    if lexer not in _LEXERS[parser]:
        raise ValueError(f"parser={parser!r} has the lexers {', '.join(_LEXERS[parser])}, not {lexer!r}")
    _check_code(others)
    if not isinstance(others.get("g_regex_flags", 0), int):
        raise TypeError(f"g_regex_flags takes flags of re, not {others['g_regex_flags']!r:.60}")
    if others.get("postlex") is not None:
        check_postlex(others["postlex"])
        if lexer.startswith("dynamic"):
            raise ValueError(f"lexer={lexer!r} makes no tokens that postlex could change: pass lexer='basic'")
    kept = {name: value for name, value in others.items() if name not in _WITHOUT_MEANING}
    folders = tuple(Path(path) for path in import_paths)
    if others.get("source_path") is not None:
        folders += (Path(others["source_path"]).parent,)
    given = checked({} if terminals is None else terminals, lexer, others.get("g_regex_flags", 0))
    return Options(parser, lexer, starts, folders, given, tuple(kept.items()))


def check_postlex(postlex: Any) -> None:
    """Check that code that works on tokens is an ``Indenter`` of lark, whose attributes alone say what it does.

    Raises:
        UnsupportedFeature: it is other code.
    """
    from lark.indenter import Indenter

    name = type(postlex).__name__
    if not isinstance(postlex, Indenter):
        raise UnsupportedFeature(
            f"postlex={name} of lark is not supported: it is code that changes tokens",
            hint="pass an instance of a subclass of lark.indenter.Indenter",
        )
    for method in ("process", "_process", "handle_NL", "always_accept"):
        if getattr(type(postlex), method) is not getattr(Indenter, method):
            raise UnsupportedFeature(f"postlex={name} of lark is not supported: it has a method {method} of its own")


def _check_code(others: Mapping[str, Any]) -> None:
    """Refuse options that have Python code decide which texts there are.

    Raises:
        UnsupportedFeature: one of them does.
    """
    for name, why in _CODE.items():
        if others.get(name):
            raise UnsupportedFeature(f"the option {name} of lark is not supported: {why}")
