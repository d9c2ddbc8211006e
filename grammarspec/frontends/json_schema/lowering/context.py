"""What the parts of the lowering need of the whole: the nodes of other goals, and where they are made.

The whole is :class:`.GoalLowering`, which uses the parts; they know it by this protocol only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from grammarspec.frontends.json_schema.document.subschema import Subschema
from grammarspec.frontends.json_schema.formats.table import Formats
from grammarspec.frontends.json_schema.keywords.conjunction import Conjunction
from grammarspec.frontends.json_schema.lowering.intervals import Intervals
from grammarspec.frontends.json_schema.lowering.multiples import Multiples
from grammarspec.frontends.json_schema.meaning.analysis import Analysis
from grammarspec.frontends.json_schema.spelling.builder import SchemaBuilder
from grammarspec.frontends.json_schema.spelling.json_text import JsonText

__all__ = ["Lowering", "Text"]


class Text(NamedTuple):
    """A regular node in the exact alphabet, and whether it holds zero-width assertions."""

    node: int
    asserting: bool


class Lowering(Protocol):
    """Makes the nodes of one document's goals.

    Attributes:
        goals: what the schemas mean.
        builder: of the nodes.
        text: how values are spelled; where lines are indented, at the level of the value that is being lowered.
        any_order: members may come in any order.
        closed: objects that have ``properties`` have no others, if the schema says nothing.
        container: where lines are indented, the type of the object or array whose members or items are being lowered;
            or 0.
        intervals, multiples: makers of numbers.
        patterns: the nodes of the patterns that have been made.
        height: how deeply the nodes of the goal being lowered nest, roughly.
    """

    goals: Analysis
    builder: SchemaBuilder
    text: JsonText
    any_order: bool
    closed: bool
    container: int
    intervals: Intervals
    multiples: Multiples
    patterns: dict[tuple[str, bool], Text]
    height: int

    @property
    def formats(self) -> Formats:
        """The formats, made when the first is used."""
        ...

    def lower(self, goal: Sequence[Subschema], facts: Conjunction | None = None) -> int:
        """The values that satisfy all the subschemas at once (``facts``: gathered already); of none, any value."""
        ...

    def distribute(self, facts: Conjunction) -> int:
        """The values of a conjunction with choices."""
        ...

    def any_of(self, parts: Sequence[int]) -> int:
        """Alternatives without the impossible and the repeated."""
        ...

    def enter(self, container: int) -> None:
        """What is lowered until :meth:`leave` stands in an object or array (the type's bit) at this level."""
        ...

    def leave(self) -> None:
        """The end of what :meth:`enter` began."""
        ...

    def inside(self, make: Callable[[], int]) -> int:
        """What ``make`` makes one level further in: a member's value, or an item on its line."""
        ...

    def telling_apart(self, make: Callable[[], int]) -> int:
        """What ``make`` makes of values that must be told apart."""
        ...

    def part(self, node: int) -> int:
        """An item of an array whose items are compared: a rule that is kept apart from the array's."""
        ...
