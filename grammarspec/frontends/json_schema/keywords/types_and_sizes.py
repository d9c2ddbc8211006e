"""``type``, and the bounds of the sizes of strings, arrays and objects."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from grammarspec.frontends.json_schema.document.subschema import Assertion, Everywhere, Parser, Subschema
from grammarspec.frontends.json_schema.json_values import ALL_TYPES, ARRAY, OBJECT, STRING, TYPE_BITS
from grammarspec.frontends.json_schema.keywords.conjunction import Concern, Conjunction
from grammarspec.frontends.json_schema.keywords.goals import Goals
from grammarspec.frontends.json_schema.keywords.keyword import Choices, Keyword
from grammarspec.frontends.json_schema.keywords.narrowing import KEYS, cut
from grammarspec.frontends.json_schema.keywords.values import count

__all__ = [
    "IS_ARRAY", "IS_OBJECT", "IS_STRING", "ITEMS", "KEYWORDS", "LENGTH", "MAX_COUNTED", "MEMBERS", "OF_TYPES",
    "AtLeast", "AtMost", "Measure", "Types",
]  # fmt: skip


class Types(Assertion):
    """The value is of one of these types."""

    __slots__ = ("bits",)

    def __init__(self, bits: int) -> None:
        self.bits = bits

    def add(self, facts: Conjunction, goals: Goals, schema: Subschema) -> None:
        """Keep only the types that are among these."""
        facts.asked |= Concern.TYPES
        facts.types &= self.bits

    def failures(self, goals: Goals, schema: Subschema) -> Iterator[tuple[Assertion, ...]]:
        """The value is of another type."""
        if self.bits != ALL_TYPES:
            yield (Types(ALL_TYPES & ~self.bits),)


_TYPES: Final = {name: Types(bits) for name, bits in TYPE_BITS.items()}
IS_STRING, IS_ARRAY, IS_OBJECT = _TYPES["string"], _TYPES["array"], _TYPES["object"]
OF_TYPES: Final[Mapping[int, Subschema]] = {bits: Everywhere({}, Types(bits)) for bits in range(1, ALL_TYPES + 1)}
"""For each set of types, as bits, a schema that only asks for them."""


def _type(schema: Subschema, value: Any) -> Types:
    if isinstance(value, str):
        known = _TYPES.get(value)
        if known is not None:
            return known
    elif isinstance(value, list):
        bits = 0
        for name in value:
            if not isinstance(name, str) or name not in TYPE_BITS:
                break
            bits |= TYPE_BITS[name]
        else:
            return Types(bits)
    raise schema.malformed("type", f"one of {', '.join(TYPE_BITS)} (or an array of them)")


def _type_narrowings(value: Any, schema: Mapping[str, Any], choices: Choices, negated: bool) -> Iterator[str]:
    types = [value] if isinstance(value, str) else value
    if "number" in types:
        if choices.plain:
            yield "numbers have no exponents"
    elif "integer" in types:
        plain = "integers are digits"
        exact = choices.plain or choices.draft_4
        yield plain if exact else f"{plain}, a fraction of zeros, or d.ddde±x from 16 to 307"
    if "object" in types:
        yield KEYS
    if "string" in types:
        if choices.minimal:
            yield "strings have one spelling"
        elif choices.ensure_ascii:
            yield "characters beyond ASCII are escaped"


# ---------------------------------------------------------------------- sizes
MAX_COUNTED: Final = 1_000
"""The largest ``maxItems`` beside ``contains`` that is counted exactly; a larger one is narrowed."""


class Measure(NamedTuple):
    """A size of values: the length of strings, the number of items or of members.

    Attributes:
        types: the assertion that a value is of the type that has this size.
        bit: the bit of :class:`.Concern` for bounds of it.
        least, most: the names of the attributes of a conjunction that hold its bounds.
    """

    types: Types
    bit: int
    least: str
    most: str


LENGTH: Final = Measure(IS_STRING, Concern.LENGTH, "min_length", "max_length")
ITEMS: Final = Measure(IS_ARRAY, Concern.ITEMS, "min_items", "max_items")
MEMBERS: Final = Measure(IS_OBJECT, Concern.SIZE, "min_properties", "max_properties")


@dataclass(slots=True, eq=False)
class AtLeast(Assertion):
    """Values of the type of a measure have at least this size."""

    measure: Measure
    count: int

    def add(self, facts: Conjunction, goals: Goals, schema: Subschema) -> None:
        """Raise the minimum."""
        _, bit, least, _ = self.measure
        facts.asked |= bit
        if self.count > getattr(facts, least):
            setattr(facts, least, self.count)

    def failures(self, goals: Goals, schema: Subschema) -> Iterator[tuple[Assertion, ...]]:
        """The size is smaller."""
        if self.count > 0:
            yield self.measure.types, AtMost(self.measure, self.count - 1)


@dataclass(slots=True, eq=False)
class AtMost(Assertion):
    """Values of the type of a measure have at most this size."""

    measure: Measure
    count: int

    def add(self, facts: Conjunction, goals: Goals, schema: Subschema) -> None:
        """Lower the maximum."""
        _, bit, _, most = self.measure
        facts.asked |= bit
        known = getattr(facts, most)
        if known is None or self.count < known:
            setattr(facts, most, self.count)

    def failures(self, goals: Goals, schema: Subschema) -> Iterator[tuple[Assertion, ...]]:
        """The size is larger."""
        yield self.measure.types, AtLeast(self.measure, self.count + 1)


def _at_least(keyword: str, measure: Measure) -> Parser:
    return lambda schema, value: AtLeast(measure, count(schema, keyword, value))


def _at_most(keyword: str, measure: Measure) -> Parser:
    return lambda schema, value: AtMost(measure, count(schema, keyword, value))


def _min_properties_narrowings(value: Any, schema: Mapping[str, Any], choices: Choices, negated: bool) -> Iterator[str]:
    closed = schema.get("additionalProperties") is False and "patternProperties" not in schema
    if value > max(1, len(schema.get("required", ()))) and not closed:
        yield "undeclared members do not repeat names, or count as one where names may be few"


def _max_items_narrowings(value: Any, schema: Mapping[str, Any], choices: Choices, negated: bool) -> Iterator[str]:
    yield from cut(value, schema, choices, negated)
    if value > MAX_COUNTED and "contains" in schema:
        yield "shared out evenly among the items that contains asks for"


KEYWORDS = (
    Keyword("type", parse=_type, makes=(Types,), narrowings=_type_narrowings),
    Keyword("minLength", parse=_at_least("minLength", LENGTH), makes=(AtLeast,), about=STRING),
    Keyword("maxLength", parse=_at_most("maxLength", LENGTH), makes=(AtMost,), about=STRING, narrowings=cut),
    Keyword("minItems", parse=_at_least("minItems", ITEMS), makes=(AtLeast,), about=ARRAY),
    Keyword(
        "maxItems", parse=_at_most("maxItems", ITEMS), makes=(AtMost,), about=ARRAY, narrowings=_max_items_narrowings
    ),
    Keyword(
        "minProperties",
        parse=_at_least("minProperties", MEMBERS),
        makes=(AtLeast,),
        about=OBJECT,
        narrowings=_min_properties_narrowings,
    ),
    Keyword("maxProperties", parse=_at_most("maxProperties", MEMBERS), makes=(AtMost,), about=OBJECT, narrowings=cut),
)
