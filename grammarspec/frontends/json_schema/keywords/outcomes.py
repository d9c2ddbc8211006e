"""Outcomes: subschemas that hold together, with the members and items that they evaluate.

That a member or an item is *evaluated* is defined in JSON Schema 2020-12 core, section 7.7.1.
"""

from __future__ import annotations

from typing import NamedTuple

from grammarspec.frontends.json_schema.document.subschema import Subschema
from grammarspec.frontends.json_schema.json_values import ARRAY, OBJECT

__all__ = ["Outcome"]


class Outcome(NamedTuple):
    """Subschemas that hold together, and what they evaluate.

    Attributes:
        parts: the subschemas.
        names, patterns: a member is evaluated if its name is one of these names or matches one of these patterns.
        members: whether all members are evaluated.
        first: the number of items, from the first on, that are evaluated.
        items: whether all items are evaluated.
        contained: an item that satisfies one of these schemas is evaluated, too.
    """

    parts: tuple[Subschema, ...] = ()
    names: tuple[str, ...] = ()
    patterns: tuple[str, ...] = ()
    members: bool = False
    first: int = 0
    items: bool = False
    contained: tuple[Subschema, ...] = ()

    def beside(self, other: Outcome) -> Outcome:
        """The outcome that this and another outcome hold together."""
        return Outcome(
            self.parts + other.parts,
            tuple(dict.fromkeys(self.names + other.names)),
            tuple(dict.fromkeys(self.patterns + other.patterns)),
            self.members or other.members,
            max(self.first, other.first),
            self.items or other.items,
            self.contained + other.contained,
        )

    def evaluates(self, types: int) -> bool:
        """Whether it evaluates members (if ``types`` has ``OBJECT``) or items (if it has ``ARRAY``)."""
        members = self.members or self.names or self.patterns
        items = self.items or self.first or self.contained
        return bool((types & OBJECT and members) or (types & ARRAY and items))
