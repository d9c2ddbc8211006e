"""The text of a ``.lark`` grammar, and where in it things stand, for error messages.

Lark's loader keeps no positions of what it has read. So one is looked up in the text when an error needs it: with a
scanner that knows comments, literals and names, or with a pattern of how definitions begin. What is imported stands in
another file and has no position in this one.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from itertools import dropwhile
from typing import Final

from grammarspec.positions import where

__all__ = ["TOKENS", "GrammarText"]

TOKENS: Final = re.compile(
    r"""//[^\n]*|\#[^\n]*|"(?:\\.|[^"\\\n])*"|/(?:\\.|[^/\\])+/|(?P<open>["/])|(?P<name>\w+)|(?P<colon>:)|(?P<line>\n)|.""",
    re.DOTALL,
)
"""One token: a comment, a literal, the beginning of a literal that never ends (``open``), a name, a colon, the end of a
line, or another character."""


@dataclass(frozen=True, slots=True)
class GrammarText:
    """A grammar's text.

    Each method answers with a position in it, as ``line L, column C`` and an excerpt, or with ``""`` if there is none.
    """

    text: str

    def at(self, offset: int) -> str:
        """The position of an offset."""
        return where(self.text, offset)

    def at_line(self, line: int, column: int) -> str:
        """The position of a line and column, both counted from 1, or of the end if the text is shorter."""
        lines = self.text.splitlines(keepends=True)[: line - 1]
        return self.at(min(len(self.text), sum(map(len, lines)) + column - 1))

    def definition(self, name: str) -> str:
        """Where a rule or terminal is defined."""
        first, _ = _definitions(self.text).get(name, (None, None))
        return "" if first is None else self.at(first)

    def redefinition(self, name: str) -> str:
        """Where a rule or terminal is defined for the last time."""
        _, last = _definitions(self.text).get(name, (None, None))
        return "" if last is None else self.at(last)

    def imported(self, name: str) -> str:
        """Where the first statement stands that imports a rule or terminal by its name."""
        place = _imports(self.text).get(name)
        return "" if place is None else self.at(place)

    def range(self, least: int, most: int) -> str:
        """Where a repetition with these counts stands."""
        found = re.search(rf"~[ \t]*{least}[ \t]*\.\.[ \t]*{most}\b", self.text)
        return self.at(found.start()) if found else ""

    def statement(self, keyword: str) -> str:
        """Where the first statement of a kind stands (``%ignore``, ``%declare``)."""
        found = re.search(rf"^[ \t]*{keyword}\b", self.text, re.MULTILINE)
        return self.at(found.start()) if found else ""

    def literal(self, raw: str) -> str:
        """Where a literal stands; ``raw`` is the literal as it is written."""
        offset = self.text.find(raw) if raw else -1
        return self.at(offset) if offset >= 0 else ""

    def use(self, name: str, user: str | None) -> str:
        """Where a name first stands, from the first mention of ``user`` on if that is given."""
        names = dropwhile(lambda token: user not in (None, token["name"]), TOKENS.finditer(self.text))
        return next((self.at(token.start()) for token in names if token["name"] == name), "")


@lru_cache(maxsize=4)  # reports ask for thousands of places in one text
def _definitions(text: str) -> dict[str, tuple[int, int]]:
    """By name, where each rule or terminal is defined first and last."""
    found: dict[str, tuple[int, int]] = {}
    for match in re.finditer(r"^[ \t]*(?:%\w+[ \t]+)?[!?]*(\w+)[ \t]*[.:{]", text, re.MULTILINE):
        first, _ = found.get(match[1], (match.start(1), 0))
        found[match[1]] = first, match.start(1)
    return found


@lru_cache(maxsize=4)
def _imports(text: str) -> dict[str, int]:
    """By each name in an import, where the first such statement begins."""
    found: dict[str, int] = {}
    for match in re.finditer(r"^[ \t]*%import([^\n]*)", text, re.MULTILINE):
        for name in re.findall(r"[ \t.(,](\w+)", match[1]):
            found.setdefault(name, match.start())
    return found
