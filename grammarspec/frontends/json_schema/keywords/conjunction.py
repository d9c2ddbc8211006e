"""Conjunctions: the constraints of several subschemas on one value, merged into one record.

A *conjunction* is the normal form of ``allOf``: it has the constraints of all keywords of subschemas that must hold at
once, sorted by the JSON type that they are about. Merging is exact: bounds are intersected, and keywords that depend on
each other within one subschema (``properties`` and ``additionalProperties``) stay together as one *facet*. Disjunctions
(``anyOf``, ``oneOf``, ``not``, ...) are kept as *choices*, lists of alternatives.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, Final, Literal, NamedTuple

from grammarspec.frontends.json_schema.document.subschema import ANYTHING, Subschema
from grammarspec.frontends.json_schema.json_values import ALL_TYPES, Bound, Number, canonical
from grammarspec.grammars.budget import Budget

__all__ = ["ArrayFacet", "Concern", "Conjunction", "ItemCount", "ObjectFacet", "SomeMember", "TextFacet"]


class TextFacet(NamedTuple):
    """A ``pattern`` or ``format`` that a string must satisfy, or must not satisfy.

    Attributes:
        keyword, argument: ``pattern`` or ``format``, and its value.
        wanted: whether strings must satisfy it; if not, they must fail to.
        schema: the subschema with the keyword, for errors.
    """

    keyword: Literal["pattern", "format"]
    argument: str
    wanted: bool
    schema: Subschema


class ArrayFacet(NamedTuple):
    """``prefixItems`` and ``items`` of one subschema, as they are called from 2020-12 on.

    Attributes:
        first: the schemas of the first items, one per position.
        rest: the schema of all further items.
        has_rest: whether the subschema has the keyword for ``rest``.
    """

    first: Sequence[Subschema] = ()
    rest: Subschema = ANYTHING
    has_rest: bool = False


class ItemCount(NamedTuple):
    """A bounded number of items satisfies a schema: ``contains``, and the negation of ``items``.

    Attributes:
        start: the index of the first item that may count.
        schema: the schema; an item that satisfies it counts.
        least, most: bounds of the number of items that count; a ``most`` of ``None`` is no bound.
        evaluates: whether the items that count are evaluated (``contains`` from 2020-12 on).
    """

    start: int
    schema: Subschema
    least: int
    most: int | None
    evaluates: bool = False


class ObjectFacet(NamedTuple):
    """``properties``, ``patternProperties`` and ``additionalProperties`` of one subschema.

    Attributes:
        properties, patterns: the schemas of members, by name and by the pattern that names match.
        rest: the schema of all other members.
        has_rest: whether the subschema has ``additionalProperties``.
        has_patterns: whether the subschema has ``patternProperties``.
        in_document: whether the keywords are written in the document; if not, the facet belongs to a derived schema.
    """

    properties: Mapping[str, Subschema] = {}
    patterns: Mapping[str, Subschema] = {}
    rest: Subschema = ANYTHING
    has_rest: bool = False
    has_patterns: bool = False
    in_document: bool = False


class SomeMember(NamedTuple):
    """There is a member with such a name and such a value: the negation of ``additionalProperties`` and the like.

    Its name is not one of ``names``, matches none of ``patterns``, matches ``within`` if that is given, and satisfies
    the schema ``name``. Its value satisfies the schema ``value``.
    """

    names: frozenset[str] = frozenset()
    patterns: tuple[str, ...] = ()
    within: str | None = None
    name: Subschema = ANYTHING
    value: Subschema = ANYTHING


class Concern:
    """The aspects of a value that a conjunction may constrain, as bits."""

    TYPES, CONSTANTS, EXCLUDED, NUMBER, LENGTH, TEXT, ITEMS, MEMBERS, REQUIRED, SIZE, CHOICES = (
        1 << bit for bit in range(11)
    )
    """``SIZE`` is about objects: the number of members, their names, and conditions "there is a member such that"."""


_LAST: Final = 1 << 30


class Conjunction:
    """The constraints on one value that must hold at once.

    The defaults are class attributes: most conjunctions set two or three of them.
    """

    asked: int = 0
    """The aspects that it constrains, as bits of :class:`.Concern`."""

    types: int = ALL_TYPES
    enum: Sequence[Any] | None = None
    excluded: Sequence[Any] = ()  # numbers and strings that it must not be

    low: Bound | None = None
    high: Bound | None = None
    multiples: Sequence[tuple[Number, bool]] = ()  # divisors, each with whether it must divide

    min_length: int = 0
    max_length: int | None = None
    texts: Sequence[TextFacet] = ()

    min_items: int = 0
    max_items: int | None = None
    arrays: Sequence[ArrayFacet] = ()
    counts: Sequence[ItemCount] = ()
    unique: Subschema | None = None  # the subschema with uniqueItems

    min_properties: int = 0
    max_properties: int | None = None
    required: Mapping[str, None] = {}  # read only; a conjunction sets its own
    objects: Sequence[ObjectFacet] = ()
    names: Sequence[Subschema] = ()  # propertyNames
    some: Sequence[SomeMember] = ()  # conditions, each to be met by a declared or an undeclared member
    witnesses: Sequence[SomeMember] = ()  # conditions, each to be met by an undeclared member

    refused: Sequence[Subschema] = ()  # schemas that must fail, beside what else says so, to find contradictions
    choices: Sequence[Sequence[Subschema]] = ()  # of each, one alternative must hold
    places: Sequence[int] = ()  # for each choice, how many of ``objects`` come before it, for the order of members

    def __init__(self, budget: Budget) -> None:
        self.budget = budget
        self.members: dict[Subschema, None] = {}
        """The subschemas that it was gathered from, with those that references and ``allOf`` apply."""

    @property
    def first(self) -> Subschema:
        """The first of its subschemas."""
        return next(iter(self.members))

    @property
    def base(self) -> list[Subschema]:
        """Its subschemas, without the keywords that apply other schemas to the same value.

        Those schemas are in the list themselves, or in ``choices``.
        """
        return [kept for schema in self.members if not schema.unevaluated and (kept := schema.kept) is not None]

    @cached_property
    def allowed_constants(self) -> frozenset[Any] | None:
        """The constants of ``enum`` in canonical form."""
        return None if self.enum is None else frozenset(map(canonical, self.enum))

    @cached_property
    def excluded_constants(self) -> frozenset[Any]:
        """The excluded constants in canonical form."""
        return frozenset(map(canonical, self.excluded))

    def copy(self) -> Conjunction:
        """A copy with the same constraints, whose attributes can be set without changing this one."""
        made = Conjunction(self.budget)
        made.__dict__.update(self.__dict__)
        made.__dict__.pop("allowed_constants", None)
        made.__dict__.pop("excluded_constants", None)
        return made

    def add_choice(self, alternatives: Sequence[Subschema], *, last: bool = True) -> None:
        """Add a choice: one of these alternatives must hold.

        Args:
            last: whether the properties that the alternatives declare come after all others; if not, they come after
                the properties that have been added so far.
        """
        self.asked |= Concern.CHOICES
        self.choices = [*self.choices, alternatives]
        self.places = [*self.places, _LAST if last else len(self.objects)]

    def narrow_low(self, value: Number, exclusive: bool) -> None:
        """Add a lower bound."""
        self.asked |= Concern.NUMBER
        if self.low is None or value > self.low[0] or (value == self.low[0] and exclusive):
            self.low = (value, exclusive)

    def narrow_high(self, value: Number, exclusive: bool) -> None:
        """Add an upper bound."""
        self.asked |= Concern.NUMBER
        if self.high is None or value < self.high[0] or (value == self.high[0] and exclusive):
            self.high = (value, exclusive)

    def where(self, *keywords: str) -> str:
        """The JSON pointer of the first of these keywords in its subschemas; without any, that of a subschema."""
        for schema in self.members:
            for keyword in keywords:
                if keyword in schema.origin.keywords:
                    return schema.where(keyword)
        return self.first.pointer

    def where_pattern(self, facet: ObjectFacet, pattern: str) -> str:
        """The JSON pointer of one of the ``patternProperties`` of a facet."""
        owners = (schema for schema in self.members if id(facet) in map(id, schema.assertions))
        return next(owners, ANYTHING).where("patternProperties", pattern)
