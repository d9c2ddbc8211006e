"""What a text of a ``.lark`` grammar is made of: lark itself parses it, once it has been generated.

The engine recognises texts and builds no trees. So a grammar that is asked for trees or captures keeps what lark needs
to read it, and its texts are read by :class:`Tree` and :class:`Captures`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from grammarspec.frontends.lark.options import Options

__all__ = ["Captures", "Parsed", "Tree"]


@dataclass(frozen=True)
class Parsed:
    """A grammar as lark reads it.

    Attributes:
        text: the grammar.
        file: the file that it was read from; ``None``: it is a text.
        options: those under which its language is meant.
    """

    text: str
    file: Path | None
    options: Options

    def tree(self, text: str) -> Any:
        """Lark's tree of a text of the language, with positions; of several trees, the one that lark prefers."""
        from lark.exceptions import UnexpectedInput

        parser, starts = _parser(self), self.options.start
        for start in starts[:-1]:
            try:
                return parser.parse(text, start=start)
            except UnexpectedInput:
                continue
        return parser.parse(text, start=starts[-1])

    def check(self, names: Sequence[str]) -> None:
        """Check that lark can make trees, and that these may have parts of such names.

        Raises:
            GrammarError: lark rejects the grammar.
            ValueError: no part has one of the names.
        """
        parser = _parser(self)
        known = {rule.alias or rule.options.template_source or rule.origin.name for rule in parser.rules}
        known |= {terminal.name for terminal in parser.terminals}
        for name in names:
            if name not in known or name.startswith("_"):
                hint = "trees have no rules and terminals that begin with _, and aliases in place of rules"
                raise ValueError(f"captures: trees of the grammar have no parts named {name!r:.60}\n  hint: {hint}")


@lru_cache(maxsize=32)
def _parser(grammar: Parsed) -> Any:
    """Lark's parser of a grammar, under the options that the language is that of, and with positions."""
    return grammar.options.open(grammar.text, grammar.file, propagate_positions=True)


@dataclass(frozen=True)
class Tree:
    """Makes lark's tree of a text."""

    grammar: Parsed

    def __call__(self, text: str) -> Any:
        return self.grammar.tree(text)


@dataclass(frozen=True)
class Captures:
    """Captures the texts of rules and terminals: of each name a list, in the order in which they begin."""

    grammar: Parsed
    names: tuple[str, ...]

    def __call__(self, text: str) -> Mapping[str, list[str]]:
        found: dict[str, list[str]] = {name: [] for name in self.names}
        pending = [self.grammar.tree(text)]
        while pending:
            part = pending.pop()
            if hasattr(part, "children"):
                name, meta = part.data, part.meta
                pending += reversed(part.children)
                here = "" if meta.empty else text[meta.start_pos : meta.end_pos]
            else:
                name, here = getattr(part, "type", None), part  # a placeholder is None
            if name in found:
                found[name].append(str(here))
        return found
