"""What the modules for one JSON type each (strings, numbers, arrays, objects) share while a document is lowered.

:class:`.GoalLowering` calls those modules and lowers goals for them. They import its base class, which is here, so that
the imports form no cycle.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import NamedTuple

from grammarspec.frontends.json_schema.json_values import ARRAY
from grammarspec.frontends.json_schema.lowering.formats import format_language
from grammarspec.frontends.json_schema.lowering.intervals import Intervals
from grammarspec.frontends.json_schema.lowering.multiples import Multiples
from grammarspec.frontends.json_schema.normal_form.shapes import Goal
from grammarspec.frontends.json_schema.spelling.builder import SchemaBuilder
from grammarspec.frontends.json_schema.spelling.json_text import JsonText, Ways
from grammarspec.grammars.builder import PART

__all__ = ["Lowering", "Text"]


class Text(NamedTuple):
    """A regular node over the contents of strings, before JSON's quotation marks and escapes are added.

    Attributes:
        node: the node, in the exact alphabet (``JsonText.exact``).
        asserting: whether the node contains zero-width assertions (lookahead or lookbehind).
    """

    node: int
    asserting: bool


class Lowering(ABC):
    """Makes the grammar nodes of one document.

    Attributes:
        builder: the grammar builder that holds the nodes.
        text: makes the spellings of JSON values. If the layout indents lines, it is the one for the nesting level of
            the value that is being lowered.
        any_order: whether the members of an object may come in any order.
        container: the type bit (``OBJECT`` or ``ARRAY``) of the value whose members or items are being lowered, if the
            layout indents lines; otherwise 0.
        patterns: the nodes made so far for patterns, by the arguments of :func:`.pattern_text`.
        composite: nodes of objects and arrays. They are large, so a second use of one becomes a call of a rule.
        height: an estimate of the nesting depth of the nodes made for the goal that is being lowered.
        in_elements: whether members and items are written as elements (``elements.py``).
    """

    in_elements = False

    def __init__(self, builder: SchemaBuilder, text: JsonText, *, any_order: bool) -> None:
        """Nothing is made yet; the arguments are attributes."""
        self.builder, self.text, self.any_order = builder, text, any_order
        self.container = 0
        self.patterns: dict[tuple[str, bool], Text] = {}
        self.composite: set[int] = set()
        self.height = 0
        self._parts: dict[int, int] = {}
        self._formats: dict[tuple[str, bool], int] = {}

    @abstractmethod
    def lower(self, goal: Goal) -> int:
        """The node of the values that satisfy a goal; it is made once for each goal and kind of spelling.

        Raises:
            GrammarError: the goal cannot be enforced, or the grammar becomes too large.
        """

    def values(self, goal: Goal) -> Ways:
        """The values that satisfy a goal as members are written; none if there is no such value.

        Raises:
            GrammarError: as :meth:`lower`.
        """
        node = self.lower(goal)
        return () if node == self.builder.nothing else (("", node),)

    def item(self, goal: Goal) -> int:
        """The node of the values that satisfy a goal as items are written.

        Raises:
            GrammarError: as :meth:`lower`.
        """
        return self.lower(goal)

    def format(self, name: str, *, around: bool = False) -> int:
        """The texts that surely are of a format, in the exact alphabet.

        Args:
            around: texts among which surely are all of the format, instead.
        """
        node = self._formats.get((name, around))
        if node is None:
            language = format_language(self.text.spelling, name, around=around)
            node = self._formats[name, around] = self.builder.embed(language)
        return node

    # Few schemas have bounds of numbers, so what makes their nodes is created at the first use.
    @cached_property
    def intervals(self) -> Intervals:
        """Makes the nodes of numbers between bounds."""
        return Intervals(self.builder, self.text)

    @cached_property
    def multiples(self) -> Multiples:
        """Makes the nodes of numbers with ``multipleOf``."""
        return Multiples(self.builder, self.intervals)

    def any_of(self, parts: Sequence[int]) -> int:
        """The union of these nodes, without duplicates and without nodes of the empty language."""
        nothing = self.builder.nothing
        kept = [part for part in dict.fromkeys(parts) if part != nothing]
        if not kept:
            return nothing
        if len(kept) == 1:
            return kept[0]
        node = self.builder.alt(*kept)
        if not self.composite.isdisjoint(kept):
            self.composite.add(node)
        return node

    # ------------------------------------------------------------------ levels
    def enter(self, container: int) -> None:
        """Begin the members of an object or the items of an array; :meth:`leave` ends them.

        Args:
            container: the type bit, ``OBJECT`` or ``ARRAY``.
        """
        if self.text.line is not None:
            self.container = container

    def leave(self) -> None:
        """End the members or items that :meth:`enter` began."""
        self.container = 0

    def inside(self, make: Callable[[], int]) -> int:
        """The node that ``make`` returns one nesting level deeper; an item of an array comes with its line break."""
        text, container = self.text, self.container
        if text.inner is None:
            return self.builder.nothing
        self.text, self.container = text.inner, 0
        node = make()
        self.text, self.container = text, container
        return text.item(node) if container == ARRAY and node != self.builder.nothing else node

    # ------------------------------------------------------------------ values that are compared
    def telling_apart(self, make: Callable[[], int]) -> int:
        """The node that ``make`` returns when values are spelled so that they can be compared (``uniqueItems``)."""
        text = self.text
        self.text = text.telling_apart
        node = make()
        self.text = text
        return node

    def part(self, node: int) -> int:
        """An item of an array with ``uniqueItems``: a call of a rule of its own, which the compiler does not inline."""
        part = self._parts.get(node)
        if part is None:
            rule = self.builder.rule("item", PART)
            self.builder.define(rule, node)
            part = self._parts[node] = self.builder.call(rule)
        return part
