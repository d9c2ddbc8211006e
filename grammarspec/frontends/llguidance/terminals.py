"""From the terminals of a grammar, and what stands in rules like them, to regular nodes of the grammar builder."""

from __future__ import annotations

import re
from typing import Final

from grammarspec.errors import GrammarError, LimitExceeded
from grammarspec.frontends.llguidance.parsing import Source
from grammarspec.frontends.llguidance.tree import (
    And,
    Choice,
    Json,
    Literal,
    Name,
    Node,
    Not,
    Pattern,
    Range,
    Repeat,
    Sequence,
    Special,
    Substring,
)
from grammarspec.frontends.regex.alphabet import PlainText
from grammarspec.frontends.regex.lower import lower
from grammarspec.frontends.regex.patterns import charge
from grammarspec.frontends.regex.rust import RustParser
from grammarspec.frontends.regex.tree import EMPTY
from grammarspec.frontends.regex.tree import Node as Tree
from grammarspec.grammars.builder import GrammarBuilder
from grammarspec.positions import where

__all__ = ["Terminals"]

_STEPS: Final = 20
"""Steps for each part of a terminal."""
_MOST_WRITTEN_OUT: Final = 40_000
"""Parts of a terminal, with those of the terminals that it names, each as often as it is named."""


class _WholeTexts(RustParser):
    """A pattern stands for all texts that it matches as a whole. So ``^`` at its beginning and ``$`` at its end make no
    difference; other assertions are refused, as llguidance refuses them."""

    def anchor(self, char: str) -> Tree:
        outermost = not self.outer and not self.flags & re.MULTILINE
        if not outermost or not (self.begin == 0 if char == "^" else self.at == len(self.text)):
            self.refuse(f"the assertion {char}", self.begin)
        return EMPTY

    def assertion(self, escape: str) -> Tree:
        self.refuse(f"the assertion {escape}", self.begin)


class Terminals:
    """The regular nodes of a grammar. Those of terminals that have a name are made once."""

    def __init__(self, source: Source, builder: GrammarBuilder) -> None:
        self.source, self.builder = source, builder
        self.alphabet = PlainText(builder)
        self.known: dict[str, int | None] = {}
        self.complements = 0
        self.size = 0
        self.sizes: dict[str, int] = {}

    def lexeme(self, node: Node) -> int:
        """A regular node, of which all texts are text.

        Raises:
            GrammarError: as :meth:`regular`.
        """
        before, self.size = self.complements, 0
        made = self.regular(node)
        builder = self.builder
        return builder.both(builder.any_text(), made) if self.complements > before else made

    def shortest(self, body: Node, suffix: Node | None) -> int:
        """The lexeme of a lazy rule: the texts of which no beginning is one, too.

        Raises:
            GrammarError: as :meth:`regular`.
        """
        builder = self.builder
        made = self.lexeme(body if suffix is None else Sequence((body, suffix)))
        return builder.both(made, builder.complement(self.longer(made)))

    def longer(self, made: int) -> int:
        """All texts that go on behind a text of a node."""
        return self.builder.seq(made, self.builder.bytes_in(((0, 255),)), self.builder.anything)

    def regular(self, node: Node) -> int:
        """The regular node of an expression.

        Raises:
            GrammarSyntaxError: a pattern is malformed, a name is not defined, or a terminal needs itself.
            UnsupportedFeature: a pattern uses what is refused.
            LimitExceeded: a count is too large.
            RecursionError: terminals are nested too deeply.
        """
        builder, source = self.builder, self.source
        builder.budget.spend(_STEPS)
        self.size += 1
        match node:
            case Literal(text, ignore_case):
                return self._literal(text, ignore_case)
            case Range(first, last):
                return builder.codepoints([(ord(first), ord(last))])
            case Pattern():
                return self._pattern(node)
            case Substring(pieces):
                return self._substring(pieces)
            case Name(name, place):
                return self._named(name, place)
            case Sequence(parts):
                return builder.seq(*map(self.regular, parts)) if parts else builder.empty
            case Choice(branches):
                return self._choice(branches)
            case And(parts):
                return builder.both(*map(self.regular, parts))
            case Not(inner):
                self.complements += 1
                return builder.complement(self.regular(inner))
            case Repeat(inner, least, most):
                return builder.repeat(self.regular(inner), least, most)
            case Special(_, place) | Json(_, place):
                what = "%json" if isinstance(node, Json) else f"the special token {node.name:.60}"
                return source.fail(f"{what} within a terminal", place, "name it in a rule")

    def _literal(self, text: str, ignore_case: bool) -> int:
        if not ignore_case or not text:
            return self.builder.literal(text)
        escaped = "".join(f"\\U{ord(char):08X}" for char in text)
        return lower(RustParser(escaped, "i").parse(), self.builder, self.alphabet)

    def _pattern(self, pattern: Pattern) -> int:
        charge(pattern.regex, self.builder.budget)
        try:
            tree = _WholeTexts(pattern.regex, pattern.flags).parse()
        except GrammarError as error:
            place = f"{where(self.source.text, pattern.place)}\n  in its expression, {error.where}"
            raise type(error)(error.message, place, error.hint) from None
        return lower(tree, self.builder, self.alphabet)

    def _substring(self, pieces: tuple[str, ...]) -> int:
        builder = self.builder
        tail = builder.empty
        starts = [tail]
        for piece in reversed(pieces):
            builder.budget.spend(_STEPS)
            tail = builder.optional(builder.seq(builder.literal(piece), tail))
            starts.append(tail)
        return builder.alt(*starts)

    def _choice(self, branches: tuple[Node, ...]) -> int:
        texts = [node.text for node in branches if isinstance(node, Literal) and not node.ignore_case]
        others = [node for node in branches if not isinstance(node, Literal) or node.ignore_case]
        words = [self.builder.words(texts)] if texts else []
        return self.builder.alt(*words, *map(self.regular, others))

    def _named(self, name: str, place: int) -> int:
        if name in self.known:
            made = self.known[name]
            if made is None:
                self.source.fail(f"the terminal {name} needs itself", place, "a rule may: write its name in lower case")
            self.size += self.sizes[name]
            if self.size > _MOST_WRITTEN_OUT:
                message = f"the terminals, written out, exceed the limit of {_MOST_WRITTEN_OUT} parts"
                raise LimitExceeded(message, where(self.source.text, place))
            return made
        if name not in self.source.terminals:
            if name in self.source.rules:
                self.source.fail(f"the rule {name} within a terminal", place, "write its name in upper case")
            self.source.fail(f"{name} is not defined", place)
        self.known[name] = None
        outer, self.size = self.size, 0
        made = self.known[name] = self.regular(self.source.terminals[name].body)
        self.sizes[name] = self.size
        self.size += outer
        return made
