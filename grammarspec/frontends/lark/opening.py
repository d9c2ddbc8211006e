"""Where a ``.lark`` grammar stands (a text, a file, the name of a shipped one), and under which options it is meant."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, Final

from grammarspec.frontends.lark.options import LarkOptions, Options, resolved
from grammarspec.frontends.lark.shipped import shipped_as

__all__ = ["DEFAULTS", "Opened", "OpeningOptions", "found", "opened"]

DEFAULTS: Final = {"start": "start", "parser": None, "lexer": None, "import_paths": (), "terminals": None}
"""Of the options of :func:`grammarspec.lark` that decide what a grammar means, but for those of ``LarkOptions``."""


class OpeningOptions(LarkOptions, total=False):
    """Options under which a grammar is opened: those of :func:`grammarspec.lark` that decide what it means."""

    start: str | Sequence[str]
    parser: str | None
    lexer: str | None
    import_paths: Sequence[str | PathLike[str]]


@dataclass(frozen=True)
class Opened:
    """A grammar that has been opened.

    Attributes:
        text: the grammar.
        file: the file that it was read from; ``None``: it is a text.
        options: those under which its language is meant.
    """

    text: str
    file: Path | None
    options: Options


def opened(what: str | PathLike[str], given: Mapping[str, Any]) -> Opened:
    """Open a grammar.

    Args:
        what: the text of a grammar; or the path of a file, or the name of a grammar of the package, as a ``Path``.
        given: options of :func:`grammarspec.lark`.

    Raises:
        OSError: the file cannot be read, or no grammar of the package has this name.
        UnicodeDecodeError: it is not UTF-8.
        TypeError, ValueError, UnsupportedFeature: as :func:`~.options.resolved`.
    """
    if isinstance(what, str):
        return Opened(what, None, resolved(**{**DEFAULTS, **given}))
    file, options = found(what, given)
    return Opened(file.read_text(encoding="utf-8"), file, options)


def found(path: str | PathLike[str], given: Mapping[str, Any]) -> tuple[Path, Options]:
    """The file of a path or of a shipped grammar's name, and the options: a shipped grammar has some of its own.

    Raises:
        FileNotFoundError: no grammar of the package has this name.
        TypeError, ValueError, UnsupportedFeature: as :func:`~.options.resolved`.
    """
    given, entry = {**DEFAULTS, **given}, shipped_as(path)
    if entry is None:
        return Path(path), resolved(**given)
    if given["parser"] is None and given["lexer"] is None:
        given = {**entry.options, **given, "parser": entry.parser, "lexer": entry.lexer}
    return entry.path, resolved(**given)
