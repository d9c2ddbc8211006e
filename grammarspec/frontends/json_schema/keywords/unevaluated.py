"""``unevaluatedProperties`` and ``unevaluatedItems``: schemas for the members and items that nothing else evaluates.

They are rewritten in ``meaning/unevaluated.py``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from grammarspec.frontends.json_schema.document.subschema import Assertion, Subschema
from grammarspec.frontends.json_schema.json_values import ARRAY, OBJECT
from grammarspec.frontends.json_schema.keywords.arrays import some_item_fails
from grammarspec.frontends.json_schema.keywords.combining import AllOf, AnyOf, InPlace, negated
from grammarspec.frontends.json_schema.keywords.conjunction import Conjunction
from grammarspec.frontends.json_schema.keywords.goals import Goals
from grammarspec.frontends.json_schema.keywords.keyword import Holds, Keyword, replace_by_true
from grammarspec.frontends.json_schema.keywords.objects import Some
from grammarspec.frontends.json_schema.keywords.types_and_sizes import IS_OBJECT

__all__ = ["KEYWORDS", "Unevaluated", "UnevaluatedItems", "UnevaluatedMembers"]


@dataclass(slots=True, eq=False)
class Unevaluated(InPlace):
    """The parts of a value (members or items) that are not evaluated satisfy a schema."""

    types: ClassVar[int]
    """The type bit of the values that it constrains."""
    schema: Subschema

    def add(self, facts: Conjunction, goals: Goals, schema: Subschema) -> None:
        """Add nothing: a schema with this keyword is rewritten as a whole (see :attr:`.Subschema.unevaluated`)."""

    def applied(self, goals: Goals, schema: Subschema) -> Iterator[Subschema]:
        """None: its schema applies to parts of the value."""
        yield from ()


class UnevaluatedMembers(Unevaluated):
    """Members that are not evaluated satisfy a schema."""

    __slots__ = ()
    types = OBJECT

    def failures(self, goals: Goals, schema: Subschema) -> Iterator[tuple[Assertion, ...]]:
        """An outcome of the other keywords holds, and a member that it leaves unevaluated fails the schema."""
        for outcome in goals.outcomes(schema):
            if not outcome.members and not self.schema.is_empty:
                names = frozenset(outcome.names)
                some = Some(names, outcome.patterns, value=negated(self.schema, schema))
                yield (AllOf((*outcome.parts, schema.derived(IS_OBJECT, some))),)


class UnevaluatedItems(Unevaluated):
    """Items that are not evaluated satisfy a schema."""

    __slots__ = ()
    types = ARRAY

    def failures(self, goals: Goals, schema: Subschema) -> Iterator[tuple[Assertion, ...]]:
        """An outcome of the other keywords holds, and an item that it leaves unevaluated fails the schema."""
        for outcome in goals.outcomes(schema):
            if not outcome.items and not self.schema.is_empty:
                item = self.schema
                if outcome.contained:
                    item = schema.derived(AnyOf((*outcome.contained, item)))
                for failing in some_item_fails(outcome.first, item, schema):
                    yield (AllOf((*outcome.parts, schema.derived(*failing))),)


def _unevaluated_properties(schema: Subschema, value: Any) -> UnevaluatedMembers:
    return UnevaluatedMembers(_asked(schema, "unevaluatedProperties", value))


def _unevaluated_items(schema: Subschema, value: Any) -> UnevaluatedItems:
    return UnevaluatedItems(_asked(schema, "unevaluatedItems", value))


def _asked(schema: Subschema, keyword: str, value: Any) -> Subschema:
    asked = schema.child(value, keyword)
    schema.unevaluated = schema.unevaluated or not asked.is_empty
    return asked


KEYWORDS = (
    Keyword(
        "unevaluatedProperties", parse=_unevaluated_properties, makes=(UnevaluatedMembers,), holds=Holds.ONE,
        in_place=True, about=OBJECT, since=2019, vocabularies=("unevaluated",), neutral=replace_by_true,
    ),
    Keyword(
        "unevaluatedItems", parse=_unevaluated_items, makes=(UnevaluatedItems,), holds=Holds.ONE, in_place=True,
        about=ARRAY, since=2019, vocabularies=("unevaluated",), neutral=replace_by_true,
    ),
)  # fmt: skip
