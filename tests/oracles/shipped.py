"""The shipped grammars by lark itself, under the options that the index names, and texts that it derives from them."""

from __future__ import annotations

import random
import tomllib
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import lark
import lark.indenter
import pytest

from grammarspec.frontends.lark.shipped import shipped
from tests.tiers import slow

__all__ = ["FOLDER", "NAMES", "Derivations", "accepts", "cases", "parser"]

FOLDER = Path(__file__).parents[2] / "grammars"

NAMES = [slow(name) if name in {"latex", "python", "sql"} else name for name in shipped()]
"""The grammars as cases of tests. Three of them take seconds each."""


@cache
def parser(name: str) -> lark.Lark:
    """lark's parser. Where interegular is installed, lark would look for minutes whether terminals overlap."""
    entry = shipped()[name]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("lark.lexer.has_interegular", False)
        return lark.Lark.open(str(FOLDER / f"{name}.lark"), parser=entry.parser, lexer=entry.lexer, **entry.options)


def accepts(name: str) -> Callable[[str], bool]:
    """Whether lark accepts a text."""
    reference = parser(name)

    def contains(text: str) -> bool:
        try:
            reference.parse(text)
        except (lark.exceptions.UnexpectedInput, lark.indenter.DedentError):
            return False
        return True

    return contains


def cases(name: str) -> dict[str, list[str]]:
    """The texts of ``NAME.cases.toml``, to be accepted and to be rejected."""
    return tomllib.loads((FOLDER / f"{name}.cases.toml").read_text(encoding="utf-8"))


class Derivations:
    """Random texts of lark's plain rules, as lists of tokens.

    Args:
        words: texts of the terminals that are no plain strings, by name.
    """

    def __init__(self, reference: lark.Lark, words: Mapping[str, Sequence[str]]) -> None:
        self.words = {terminal.name: [terminal.pattern.value] for terminal in reference.terminals} | dict(words)
        self.rules: dict[str, list[list[Any]]] = {}
        for rule in reference.rules:
            self.rules.setdefault(rule.origin.name, []).append(rule.expansion)
        self.height: dict[str, int] = {}
        while len(self.height) < len(self.rules):
            for name, bodies in self.rules.items():
                known = [body for body in bodies if all(part.is_term or part.name in self.height for part in body)]
                if known and name not in self.height:
                    self.height[name] = min(map(self._height, known))

    def tokens(self, draw: random.Random, depth: int, most: int = 100) -> list[str]:
        """A text of about ``most`` tokens at most, derived within ``depth`` if it can be."""
        found: list[str] = []

        def derive(name: str, depth: int) -> None:
            bodies = self.rules[name]
            low = [body for body in bodies if self._height(body) <= depth and len(found) < most]
            for part in draw.choice(low or [min(bodies, key=self._height)]):
                if part.is_term:
                    found.append(draw.choice(self.words[part.name]))
                else:
                    derive(part.name, depth - 1)

        derive("start", depth)
        return found

    def _height(self, body: Sequence[Any]) -> int:
        return 1 + max((0 if part.is_term else self.height.get(part.name, 1000) for part in body), default=0)
