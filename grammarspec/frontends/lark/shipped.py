"""The grammars that come with grammarspec, by name.

They stand in ``grammars/``, at the top of the repository; in an installed package, in the folder of that name beside
this module (``compiler/build.rs`` puts them there).
Their ``index.toml`` lists them, with the parser and the lexer that each is written for: a ``.lark`` file does not say
that itself, and means something else under others.
"""

from __future__ import annotations

import errno
import re
import tomllib
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from importlib import import_module
from importlib.resources import files
from os import PathLike
from pathlib import Path
from typing import Any

__all__ = ["Shipped", "shipped", "shipped_as"]


@dataclass(frozen=True, slots=True)
class Shipped:
    """An entry of the index.

    Attributes:
        name: the name by which it is loaded.
        what: the texts that it accepts, in words.
        parser, lexer: the options of ``lark.Lark`` that it is written for.
        example: a text that it accepts.
        postlex: the class of ``lark.indenter`` that it needs besides, or ``""``.
        flags: the flag of :mod:`re` that all of its terminals have, or ``""``. Where key words are written in either
            case, it is ``ASCII``: otherwise ``ſ`` would be an ``s``.
    """

    name: str
    what: str
    parser: str
    lexer: str
    example: str
    postlex: str = ""
    flags: str = ""

    @property
    def options(self) -> dict[str, Any]:
        """Further options that it is written for."""
        options: dict[str, Any] = {}
        if self.postlex:
            options["postlex"] = getattr(import_module("lark.indenter"), self.postlex)()
        if self.flags:
            options["g_regex_flags"] = re.RegexFlag[self.flags]
        return options

    @property
    def path(self) -> Path:
        """The file, beside which it finds those that it imports."""
        return _folder() / f"{self.name}.lark"


@cache
def shipped() -> dict[str, Shipped]:
    """The grammars by name, in the order of the index."""
    index = tomllib.loads((_folder() / "index.toml").read_text(encoding="utf-8"))
    return {
        name: Shipped(name, **{**entry, "example": entry["example"].removeprefix("\n")})
        for name, entry in index.items()
    }


def shipped_as(path: str | PathLike[str]) -> Shipped | None:
    """The grammar of a bare name, without suffix and folders, that is no file's; ``None`` for other paths.

    Raises:
        FileNotFoundError: no grammar has this name.
    """
    file = Path(path)
    name = str(path)
    if file.name != name or file.suffix or (file.exists() and not file.is_dir()):
        return None
    if name not in shipped():
        near = get_close_matches(name, shipped(), 1)
        meant = f" (did you mean {near[0]}?)" if near else ""
        message = f"No such file, and no shipped grammar of this name{meant}; there are {', '.join(sorted(shipped()))}"
        raise FileNotFoundError(errno.ENOENT, message, name)
    return shipped()[name]


def _folder() -> Path:
    top = Path(__file__).resolve().parents[3]
    if (top / "grammars" / "index.toml").is_file() and (top / "pyproject.toml").is_file():
        return top / "grammars"  # a checkout: the copies beside this module may be older
    return Path(str(files("grammarspec.frontends.lark") / "grammars"))
