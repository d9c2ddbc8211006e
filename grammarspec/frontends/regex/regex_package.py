"""The syntax of the package ``regex`` in its version 0, which lark uses with ``regex=True``.

A pattern and flags go in, and a syntax tree comes out. The reference is https://pypi.org/project/regex. It is the
syntax of ``re``, with other sets of characters (of the package's own version of Unicode) and further constructs. What
is more than sets and lookarounds (fuzzy matching, recursion, matching backwards) is refused.
"""

from __future__ import annotations

import re
from typing import ClassVar, Final

from grammarspec.errors import GrammarSyntaxError
from grammarspec.frontends.regex.charsets import Ranges
from grammarspec.frontends.regex.python import PythonParser
from grammarspec.frontends.regex.tree import Chars, Node
from grammarspec.frontends.regex.unicode_sets import fold_case_by_package, package_set

__all__ = ["RegexPackageParser"]

_FLAGS: Final = {
    "IGNORECASE": 2, "MULTILINE": 8, "DOTALL": 16, "UNICODE": 32, "VERBOSE": 64, "ASCII": 128, "TEMPLATE": 1,
    "DEBUG": 512, "VERSION0": 8192, "BESTMATCH": 4096, "ENHANCEMATCH": 32768,
}  # fmt: skip
"""The flags that are known; the last of them change nothing where nothing is fuzzy."""
_REFUSED: Final = {
    "LOCALE": 4, "VERSION1": 256, "REVERSE": 1024, "WORD": 2048, "FULLCASE": 16384, "POSIX": 65536,
}  # fmt: skip
_MEANT: Final = re.IGNORECASE | re.MULTILINE | re.DOTALL | re.UNICODE | re.VERBOSE
_POSIX = re.compile(r"\[:(\^?)([A-Za-z_]+):\]")
_NAMED = re.compile(r"\(\?<(?![=!])")
_FUZZY = re.compile(r"\{[^{}]*[ides][^{}]*\}")
_EXTENSION = re.compile(r"\(\?(?:\||R\)|[0-9+-]+\)|&|P[>&]|[a-zA-Z0-9]*[bdefprVwW][a-zA-Z0-9]*[:)-])")
_FURTHER: Final = frozenset("GKLMRXghm")  # escapes that re does not have


class RegexPackageParser(PythonParser):
    """One parse of a pattern of the package ``regex``.

    Args:
        pattern: the pattern.
        flags: those of the package.

    Raises:
        ValueError: a flag is unknown.
        GrammarError: as :class:`~.parser.Parser`.
    """

    boundaries: ClassVar[str] = "AZbBz"

    def __init__(self, pattern: str, flags: int) -> None:
        flags = int(flags)
        if flags & ~sum((_FLAGS | _REFUSED).values()):
            raise ValueError(f"unknown flags for an expression of the package regex: {flags}")
        super().__init__(pattern, (flags & _MEANT) | (re.ASCII if flags & _FLAGS["ASCII"] else 0))
        for name, bit in _REFUSED.items():
            if flags & bit:
                self.refuse(f"the flag {name}", 0)

    def letter_class(self, letter: str) -> Ranges:
        return self.set(f"\\{letter}", self.at)

    def fold(self, ranges: Ranges) -> Ranges:
        if not self.flags & re.IGNORECASE:
            return ranges
        return fold_case_by_package(ranges, ascii_only=bool(self.flags & re.ASCII))

    def property_escape(self, negative: bool, offset: int) -> Ranges:
        short = not self.text.startswith("{", self.at)
        name = self.text[self.at : self.at + 1] if short else self.braced("name of a Unicode property", offset)
        self.at += short
        return self.set(f"\\{'P' if negative else 'p'}{{{name}}}", offset)

    def set(self, item: str, offset: int) -> Ranges:
        """The set that an item of a class stands for, by the package."""
        try:
            flags = self.flags
            return package_set(item, ascii_only=bool(flags & re.ASCII), ignore_case=bool(flags & re.IGNORECASE))
        except GrammarSyntaxError as error:
            self.fail(error.message, offset)

    def boundary(self, letter: str) -> Node:
        if letter == "B":  # holds in the empty text, other than in re
            return self.word_boundary(Chars(self.letter_class("w")), True)
        return super().boundary(letter)

    def common_escape(self, letter: str) -> int | Ranges:
        if letter in _FURTHER:
            self.refuse(f"\\{letter} of the package regex", self.at)
        return super().common_escape(letter)

    def character_class(self) -> Ranges:
        """Read ``[...]``. The package is asked for all of it: with ``IGNORECASE``, items depend on their neighbours."""
        offset = self.at
        super().character_class()
        return self.set(self.text[offset : self.at], offset)

    def class_item(self) -> int | Ranges:
        posix = _POSIX.match(self.text, self.at)
        if posix is None:
            return super().class_item()
        self.at = posix.end()
        return self.set(f"[{posix[0]}]", posix.start())

    def other(self, char: str) -> None:
        if char == "{" and _FUZZY.match(self.text, self.at):
            self.refuse("fuzzy matching", self.at)
        super().other(char)

    def open_group(self) -> None:
        offset = self.at
        if extension := _EXTENSION.match(self.text, offset):
            self.refuse(f"{extension[0]} of the package regex", offset)
        if _NAMED.match(self.text, offset):
            self.at += len("(?")
            self.named_group(offset)
            return
        super().open_group()
