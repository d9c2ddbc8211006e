"""The interface through which the modules for one JSON type each (strings, numbers, arrays, objects) lower other goals.

:class:`.GoalLowering` implements the protocol :class:`Lowering` and calls those modules. They import the protocol only,
so that the imports form no cycle.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from grammarspec.frontends.json_schema.formats.table import Formats
from grammarspec.frontends.json_schema.lowering.intervals import Intervals
from grammarspec.frontends.json_schema.lowering.multiples import Multiples
from grammarspec.frontends.json_schema.normal_form.shapes import Goal
from grammarspec.frontends.json_schema.spelling.builder import SchemaBuilder
from grammarspec.frontends.json_schema.spelling.json_text import JsonText

__all__ = ["Lowering", "Text"]


class Text(NamedTuple):
    """A regular node over the contents of strings, before JSON's quotation marks and escapes are added.

    Attributes:
        node: the node, in the exact alphabet (``JsonText.exact``).
        asserting: whether the node contains zero-width assertions (lookahead or lookbehind).
    """

    node: int
    asserting: bool


class Lowering(Protocol):
    """Makes the grammar nodes of the goals of one document.

    Attributes:
        builder: the grammar builder that holds the nodes.
        text: makes the spellings of JSON values. If the layout indents lines, it is the one for the nesting level of
            the value that is being lowered.
        any_order: whether the members of an object may come in any order.
        container: the type bit (``OBJECT`` or ``ARRAY``) of the value whose members or items are being lowered, if the
            layout indents lines; otherwise 0.
        patterns: the nodes made so far for patterns, by the arguments of :func:`.pattern_text`.
        height: an estimate of the nesting depth of the nodes made for the goal that is being lowered.
    """

    builder: SchemaBuilder
    text: JsonText
    any_order: bool
    container: int
    patterns: dict[tuple[str, bool], Text]
    height: int

    @property
    def formats(self) -> Formats:
        """Makes the nodes of ``format``."""
        ...

    @property
    def intervals(self) -> Intervals:
        """Makes the nodes of numbers between bounds."""
        ...

    @property
    def multiples(self) -> Multiples:
        """Makes the nodes of numbers with ``multipleOf``."""
        ...

    def lower(self, goal: Goal) -> int:
        """The node of the values that satisfy a goal.

        Raises:
            GrammarError: the goal cannot be enforced, or the grammar becomes too large.
        """
        ...

    def any_of(self, parts: Sequence[int]) -> int:
        """The union of these nodes, without duplicates and without nodes of the empty language."""
        ...

    def enter(self, container: int) -> None:
        """Begin the members of an object or the items of an array; :meth:`leave` ends them.

        In between, goals are lowered as values one nesting level deeper, if the layout indents lines.

        Args:
            container: the type bit, ``OBJECT`` or ``ARRAY``.
        """
        ...

    def leave(self) -> None:
        """End the members or items that :meth:`enter` began."""
        ...

    def inside(self, make: Callable[[], int]) -> int:
        """The node that ``make`` returns when it is called one nesting level deeper.

        An item of an array comes with the line break and the indentation before it. Beyond the deepest level that the
        layout allows, the result is the empty language.
        """
        ...

    def telling_apart(self, make: Callable[[], int]) -> int:
        """The node that ``make`` returns when values are spelled so that they can be compared (``uniqueItems``)."""
        ...

    def part(self, node: int) -> int:
        """An item of an array with ``uniqueItems``: a call of a rule of its own, which the compiler does not inline."""
        ...
