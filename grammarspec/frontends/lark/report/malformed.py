"""All that lark's loader refuses of a grammar's text, where lark itself stops at the first error.

Lark's parser of grammars is asked again for what stands behind a malformed line. (Its own ``find_grammar_errors``
copies all that was parsed for each error, and searches for a way to go on that may have no end.) Of statements that
lark refuses, and names that are not defined, its loader raises the first; so each is taken down, and taken out of the
way of the next: what is not defined is declared, and what is refused is left out.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from grammarspec.errors import GrammarError, GrammarSyntaxError
from grammarspec.frontends.lark.errors import lark_errors, owner, unexpected_input
from grammarspec.frontends.lark.imports import Imports
from grammarspec.frontends.lark.limits import check_text, without_long_gaps
from grammarspec.frontends.lark.opening import Opened
from grammarspec.frontends.lark.text import GrammarText

__all__ = ["MOST", "malformed"]

MOST: Final = 100
"""Errors after which no further ones are looked for, since each takes a look at the whole grammar."""

_UNDEFINED = re.compile(r"(?:Rule|Terminal) '(\w+)' used but not defined|Terminal used but not defined: (\w+)")
_CONTEXT = re.compile(r" in <string>:$")
_NEXT = re.compile(r"\n(?![ \t]*(?:[|\r\n]|->))")
"""The end of a line behind which a definition does not go on."""


def malformed(opened: Opened) -> list[GrammarError]:
    """The errors for which lark's loader refuses the text of a grammar, or what it imports.

    If the text would keep lark busy without end, that is the only one.
    """
    source = GrammarText(opened.text)
    found: list[GrammarError] = []
    try:
        check_text(source)
    except GrammarError as error:
        return [error]
    text = without_long_gaps(opened.text)
    _taken_down(found, source, lambda: _load(text, opened, source, found))
    if found and unexpected_input(found[0]) is not None:
        return _malformed_statements(text) or found  # none, if what is malformed is imported
    return found


def _malformed_statements(text: str) -> list[GrammarError]:
    """The errors of lark's parser of grammars, which takes one statement after the other.

    It is asked again for what stands behind the line of an error, and the lines that go on with the same definition.
    """
    from lark.load_grammar import _parse_grammar

    source, found, begin = GrammarText(text), list[GrammarError](), 0
    while len(found) < MOST:
        rest = text[begin:]
        if not _taken_down(found, GrammarText(rest), partial(_parse_grammar, rest, "<string>")):
            break
        unexpected = unexpected_input(found[-1])
        offset = getattr(unexpected, "pos_in_stream", None)
        if not isinstance(offset, int) or offset < 0:
            break
        message = _CONTEXT.sub("", found[-1].message)
        found[-1] = GrammarSyntaxError(message, source.at(begin + offset))
        behind = _NEXT.search(text, begin + offset)
        if behind is None:
            break
        begin = behind.end()
    return found


def _taken_down(found: list[GrammarError], source: GrammarText, do: Callable[[], object]) -> bool:
    """Do something; whether it raised an error, which is then added."""
    try:
        with lark_errors(source):
            do()
    except GrammarError as error:
        found.append(error)
        return True
    return False


def _load(text: str, opened: Opened, source: GrammarText, found: list[GrammarError]) -> None:
    """Load a grammar as lark's loader does, and add all errors."""
    from lark.load_grammar import GrammarBuilder, resolve_term_references

    class Loader(GrammarBuilder):
        """Lark's loader, which goes on behind errors."""

        def _define(self, *arguments: Any, **options: Any) -> None:
            _taken_down(found, source, lambda: super(Loader, self)._define(*arguments, **options))  # type: ignore[no-untyped-call]

        def _extend(self, *arguments: Any, **options: Any) -> None:
            _taken_down(found, source, lambda: super(Loader, self)._extend(*arguments, **options))  # type: ignore[no-untyped-call]

        def do_import(self, dotted_path: Any, base_path: Any, aliases: Any, base_mangle: Any = None) -> None:
            arguments = dotted_path, base_path, aliases, base_mangle
            if _taken_down(found, source, lambda: super(Loader, self).do_import(*arguments)):
                self.declare(*aliases.values())

        def resolve(self) -> None:
            """Put terminals into those that refer to them, which is the end of loading."""
            terminals = {name: one.tree for name, one in self._definitions.items() if one.is_term}
            resolve_term_references(terminals)  # type: ignore[no-untyped-call]

        def _grammar_error(self, is_term: bool, msg: str, *names: str) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
            if "{Type}" not in msg:  # behind other errors, lark cannot go on
                super()._grammar_error(is_term, msg, *names)  # type: ignore[no-untyped-call]
            elif names[0] not in undefined and len(found) < MOST:
                undefined.add(names[0])
                _taken_down(found, source, lambda: super(Loader, self)._grammar_error(is_term, msg, *names))  # type: ignore[no-untyped-call]

        def declare(self, *names: str) -> None:
            """Define what is not there, so that its uses are no further errors."""
            for name in names:
                if name not in self._definitions:
                    is_terminal = name.lstrip("_").isupper()
                    super()._define(name, is_terminal, _terminal() if is_terminal else None)  # type: ignore[no-untyped-call]

        def empty(self, name: str) -> None:
            """Take out what a definition holds."""
            definition = self._definitions[name]
            definition.tree, definition.params = _terminal() if definition.is_term else None, ()

    undefined = set[str]()
    imports = Imports(source, opened.file, opened.options.folders)
    loader = Loader(False, [imports])
    stages = [lambda: loader.load_grammar(text, imports.source_name), loader.resolve, loader.validate]
    for stage in stages:
        while _taken_down(found, source, stage):
            if len(found) >= MOST or not _mend(loader, found[-1].message):
                return
            stage = loader.resolve if stage is stages[0] else stage  # noqa: PLW2901  # which it ends with


def _terminal() -> Any:
    """Lark's tree of a terminal, whichever."""
    from lark.load_grammar import GrammarBuilder

    builder = GrammarBuilder()
    builder.load_grammar('X: "x"')
    return builder._definitions["X"].tree


def _mend(loader: Any, message: str) -> bool:
    """Take an error of the loader out of the way of the next; whether that is known how to do."""
    undefined, name = _UNDEFINED.search(message), owner(message)
    if undefined:
        loader.declare(undefined[1] or undefined[2])
    elif name in loader._definitions:
        loader.empty(name)
    else:
        return False
    return True
