"""Subschemas that hold together, with what they evaluate (JSON Schema 2020-12 core, section 7.7.1)."""

from __future__ import annotations

from typing import NamedTuple

from grammarspec.frontends.json_schema.document.subschema import Subschema
from grammarspec.frontends.json_schema.keywords.json_values import ARRAY, OBJECT

__all__ = ["Outcome"]


class Outcome(NamedTuple):
    """Subschemas that hold together, and what they evaluate.

    Attributes:
        parts: the subschemas.
        names, patterns: members are evaluated whose name is one of these or matches one of these,
        members: or all are.
        first: so many items are evaluated,
        items: or all are;
        contained: and those that satisfy one of these.
    """

    parts: tuple[Subschema, ...] = ()
    names: tuple[str, ...] = ()
    patterns: tuple[str, ...] = ()
    members: bool = False
    first: int = 0
    items: bool = False
    contained: tuple[Subschema, ...] = ()

    def beside(self, other: Outcome) -> Outcome:
        """Both hold."""
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
        """Whether anything of values of these types is evaluated."""
        members = self.members or self.names or self.patterns
        items = self.items or self.first or self.contained
        return bool((types & OBJECT and members) or (types & ARRAY and items))
