"""All that a set of subschemas asks of one value, gathered per type.

A *conjunction* is the normal form of ``allOf``: the keywords of several subschemas that hold at once, merged into one
record of per-type constraints. Merging is exact because nothing is rewritten: bounds are narrowed, and the keywords
that look at each other within one subschema (``properties`` and ``additionalProperties``) stay together as one *facet*.
What is a disjunction (``anyOf``, ``oneOf``, ``not``, ...) is kept aside as a list of alternatives.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from functools import cached_property
from typing import Any, Final, NamedTuple

from grammarspec.errors import GrammarSyntaxError
from grammarspec.frontends.json_schema.document.document import Schema
from grammarspec.frontends.json_schema.meaning.presence import Presence

__all__ = [
    "ALL_TYPES", "ARRAY", "BOOLEAN", "FALSE", "FRACTION", "INTEGER", "NULL", "NUMBER", "OBJECT", "STRING", "TRUE",
    "TYPE_BITS", "ArrayFacet", "Bound", "Conjunction", "ItemCount", "Number", "ObjectFacet", "SomeMember", "TextFacet",
    "canonical", "is_finite", "is_whole", "type_of",
]  # fmt: skip

NULL, FALSE, TRUE, INTEGER, FRACTION, STRING, ARRAY, OBJECT = (1 << bit for bit in range(8))
BOOLEAN, NUMBER, ALL_TYPES = FALSE | TRUE, INTEGER | FRACTION, 255

TYPE_BITS: Final = {
    "null": NULL,
    "boolean": BOOLEAN,
    "integer": INTEGER,
    "number": NUMBER,
    "string": STRING,
    "array": ARRAY,
    "object": OBJECT,
}

Number = int | Decimal
Bound = tuple[Number, bool]
"""A bound and whether it is exclusive."""

ObjectFacet = tuple[Mapping[str, Schema], Mapping[str, Schema], Schema]
"""``properties``, ``patternProperties`` and ``additionalProperties`` of one subschema."""

ArrayFacet = tuple[Sequence[Schema], Schema]
"""The schemas of the first items, and that of all further ones."""

_LAST = 1 << 30

TextFacet = tuple[str, str, bool, Schema]
"""A keyword (``pattern`` or ``format``), its value, whether it is to hold or to fail, and where it stands."""


class ItemCount(NamedTuple):
    """So many of the items from an index on satisfy a schema: ``contains``, and the negation of ``items``."""

    start: int
    schema: Schema
    least: int
    most: int | None


class SomeMember(NamedTuple):
    """Some member has such a name and such a value: the negations of ``additionalProperties`` and its like.

    Its name is not one of ``names``, matches none of ``patterns``, matches ``within`` if that is given, and satisfies
    the schema ``name``.
    """

    names: frozenset[str] = frozenset()
    patterns: tuple[str, ...] = ()
    within: str | None = None
    name: Schema = True
    value: Schema = True


class Conjunction:
    """What must hold of one value at once.

    The defaults are class attributes: most conjunctions set two or three of them.
    """

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
    unique: Schema | None = None  # where uniqueItems stands

    min_properties: int = 0
    max_properties: int | None = None
    required: Mapping[str, None] = {}  # read only; a conjunction sets its own
    objects: Sequence[ObjectFacet] = ()
    names: Sequence[Schema] = ()  # propertyNames
    some: Sequence[SomeMember] = ()  # each by a declared or an undeclared member
    witnesses: Sequence[SomeMember] = ()  # each by an undeclared member

    choices: Sequence[Sequence[Schema]] = ()  # of each, one alternative must hold
    presence: Sequence[Presence] = ()  # conditions on which members are there
    places: Sequence[int] = ()  # for each choice, how many of ``objects`` declare their properties before it
    refused: Sequence[tuple[int, str, Schema]] = ()  # keywords that are not enforced, and the types they are about

    def __init__(self) -> None:
        self.members: dict[int, Schema] = {}
        """The subschemas it was gathered from, references and ``allOf`` resolved, by ``id()``."""

    @property
    def is_free(self) -> bool:
        """Whether nothing at all is asked."""
        return len(self.__dict__) == 1

    @cached_property
    def allowed_constants(self) -> frozenset[Any] | None:
        """The constants of ``enum`` in canonical form."""
        return None if self.enum is None else frozenset(map(canonical, self.enum))

    @cached_property
    def excluded_constants(self) -> frozenset[Any]:
        """The excluded constants in canonical form."""
        return frozenset(map(canonical, self.excluded))

    def without(self, *names: str) -> Conjunction:
        """A copy that does not ask what these attributes do."""
        copy = Conjunction()
        derived = ("allowed_constants", "excluded_constants")
        copy.__dict__.update((k, v) for k, v in self.__dict__.items() if k not in names and k not in derived)
        return copy

    def add_choice(self, alternatives: Sequence[Schema], *, last: bool = True) -> None:
        """One of these must hold, too. The properties that they declare come last, or behind those met up to now."""
        self.choices = [*self.choices, alternatives]
        self.places = [*self.places, _LAST if last else len(self.objects)]

    def narrow_low(self, value: Number, exclusive: bool) -> None:
        """At least (or more than) ``value``."""
        if self.low is None or value > self.low[0] or (value == self.low[0] and exclusive):
            self.low = (value, exclusive)

    def narrow_high(self, value: Number, exclusive: bool) -> None:
        """At most (or less than) ``value``."""
        if self.high is None or value < self.high[0] or (value == self.high[0] and exclusive):
            self.high = (value, exclusive)


def is_finite(value: float | Decimal) -> bool:
    """Neither an infinity nor not-a-number."""
    return Decimal(value).is_finite()


def is_whole(value: Number | float) -> bool:
    """Whether the finite number has no fractional part (for JSON Schema, 1.0 is an integer)."""
    return isinstance(value, int) or Decimal(value) == Decimal(value).to_integral_value()


def type_of(value: Any) -> int:
    """The type bit of a constant.

    Raises:
        GrammarSyntaxError: it is no JSON value.
    """
    match value:
        case str():
            return STRING
        case None:
            return NULL
        case True:
            return TRUE
        case False:
            return FALSE
        case int():
            return INTEGER
        case float() | Decimal():
            if is_finite(value):
                return INTEGER if is_whole(value) else FRACTION
        case dict():
            return OBJECT
        case list():
            return ARRAY
    raise GrammarSyntaxError(f"{value!r:.60} is no JSON value")


def canonical(value: Any) -> Any:
    """A hashable form, the same for constants that JSON Schema holds equal (1 and 1.0; objects in any order)."""
    match value:
        case str():
            return value
        case None | True | False:
            return (value,)  # apart from 1 and 0
        case int() | Decimal():
            return value  # 1 == Decimal("1.0"), with equal hashes
        case float():
            return Decimal(repr(value))
        case list():
            return ("[", *map(canonical, value))
        case dict():
            return ("{", frozenset((key, canonical(member)) for key, member in value.items()))
    raise GrammarSyntaxError(f"{value!r:.60} is no JSON value")
