"""All that a set of subschemas asks of one value, gathered per type.

A *conjunction* is the normal form of ``allOf``: the keywords of several subschemas that hold at once, merged into one
record of per-type constraints. Merging is exact because nothing is rewritten: bounds are narrowed, and the keywords
that look at each other within one subschema (``properties`` and ``additionalProperties``) stay together as one *facet*.
What is a disjunction (``anyOf``, ``oneOf``, ``not``, ...) is kept aside as a list of alternatives.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, Final, Literal, NamedTuple

from grammarspec.frontends.json_schema.document.subschema import ANYTHING, Subschema
from grammarspec.frontends.json_schema.keywords.json_values import ALL_TYPES, Bound, Number, canonical
from grammarspec.frontends.json_schema.keywords.presence import Presence

__all__ = ["ArrayFacet", "Concern", "Conjunction", "ItemCount", "ObjectFacet", "SomeMember", "TextFacet"]


class TextFacet(NamedTuple):
    """What the text of a string must or must not be.

    Attributes:
        keyword, argument: ``pattern`` or ``format``, and its value.
        wanted: whether it is to hold or to fail.
        schema: where it stands.
    """

    keyword: Literal["pattern", "format"]
    argument: str
    wanted: bool
    schema: Subschema


class ArrayFacet(NamedTuple):
    """``prefixItems`` and ``items`` of one subschema, as they are called from 2020-12 on.

    Attributes:
        first: the schemas of the first items.
        rest: that of all further ones.
        has_rest: whether the subschema says what ``rest`` is.
    """

    first: Sequence[Subschema] = ()
    rest: Subschema = ANYTHING
    has_rest: bool = False


class ItemCount(NamedTuple):
    """So many of the items from an index on satisfy a schema: ``contains``, and the negation of ``items``.

    Attributes:
        evaluates: whether those that do are evaluated (``contains`` from 2020-12 on).
    """

    start: int
    schema: Subschema
    least: int
    most: int | None
    evaluates: bool = False


class ObjectFacet(NamedTuple):
    """``properties``, ``patternProperties`` and ``additionalProperties`` of one subschema.

    Attributes:
        properties, patterns: by name and by pattern.
        rest: the schema of all other members.
        has_rest: whether the subschema says what ``rest`` is,
        has_patterns: or says something of patterns.
        in_document: whether the document itself says so, and not a schema that was derived.
    """

    properties: Mapping[str, Subschema] = {}
    patterns: Mapping[str, Subschema] = {}
    rest: Subschema = ANYTHING
    has_rest: bool = False
    has_patterns: bool = False
    in_document: bool = False


class SomeMember(NamedTuple):
    """Some member has such a name and such a value: the negations of ``additionalProperties`` and its like.

    Its name is not one of ``names``, matches none of ``patterns``, matches ``within`` if that is given, and satisfies
    the schema ``name``.
    """

    names: frozenset[str] = frozenset()
    patterns: tuple[str, ...] = ()
    within: str | None = None
    name: Subschema = ANYTHING
    value: Subschema = ANYTHING


class Concern:
    """What a conjunction may ask something about, as bits."""

    TYPES, CONSTANTS, EXCLUDED, NUMBER, LENGTH, TEXT, ITEMS, MEMBERS, REQUIRED, SIZE, CHOICES, PRESENCE = (
        1 << bit for bit in range(12)
    )
    """``SIZE`` is about objects: their number of members, their names, and what must be among them."""


_LAST: Final = 1 << 30


class Conjunction:
    """What must hold of one value at once.

    The defaults are class attributes: most conjunctions set two or three of them.
    """

    asked: int = 0
    """What it asks something about, as bits of :class:`.Concern`."""

    types: int = ALL_TYPES
    enum: Sequence[Any] | None = None
    excluded: Sequence[Any] = ()  # numbers and strings that it must not be

    low: Bound | None = None
    high: Bound | None = None
    multiples: Sequence[tuple[Number, bool]] = ()  # a divisor, and whether it must or must not divide

    min_length: int = 0
    max_length: int | None = None
    texts: Sequence[TextFacet] = ()

    min_items: int = 0
    max_items: int | None = None
    arrays: Sequence[ArrayFacet] = ()
    counts: Sequence[ItemCount] = ()
    unique: Subschema | None = None  # where uniqueItems stands

    min_properties: int = 0
    max_properties: int | None = None
    required: Mapping[str, None] = {}  # read only; a conjunction sets its own
    objects: Sequence[ObjectFacet] = ()
    names: Sequence[Subschema] = ()  # propertyNames
    some: Sequence[SomeMember] = ()  # each by a declared or an undeclared member
    witnesses: Sequence[SomeMember] = ()  # each by an undeclared member

    choices: Sequence[Sequence[Subschema]] = ()  # of each, one alternative must hold
    places: Sequence[int] = ()  # for each choice, how many of ``objects`` declare their properties before it
    presence: Sequence[Presence] = ()  # conditions on which members are there

    def __init__(self) -> None:
        self.members: dict[Subschema, None] = {}
        """The subschemas it was gathered from, references and ``allOf`` resolved."""

    @property
    def first(self) -> Subschema:
        """The first of its subschemas."""
        return next(iter(self.members))

    @property
    def base(self) -> list[Subschema]:
        """Its subschemas without the keywords that were resolved into it or into its choices."""
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
        """Another one that asks the same."""
        made = Conjunction()
        made.__dict__.update(self.__dict__)
        made.__dict__.pop("allowed_constants", None)
        made.__dict__.pop("excluded_constants", None)
        return made

    def add_choice(self, alternatives: Sequence[Subschema], *, last: bool = True) -> None:
        """One of these must hold, too. The properties that they declare come last, or behind those met up to now."""
        self.asked |= Concern.CHOICES
        self.choices = [*self.choices, alternatives]
        self.places = [*self.places, _LAST if last else len(self.objects)]

    def narrow_low(self, value: Number, exclusive: bool) -> None:
        """At least (or more than) ``value``."""
        self.asked |= Concern.NUMBER
        if self.low is None or value > self.low[0] or (value == self.low[0] and exclusive):
            self.low = (value, exclusive)

    def narrow_high(self, value: Number, exclusive: bool) -> None:
        """At most (or less than) ``value``."""
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
