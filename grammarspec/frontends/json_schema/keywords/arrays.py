"""Items of arrays: ``prefixItems``, ``items``, ``contains``, ``uniqueItems``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from grammarspec.frontends.json_schema.document.subschema import ANYTHING, NOTHING, Assertion, Subschema
from grammarspec.frontends.json_schema.json_values import ARRAY
from grammarspec.frontends.json_schema.keywords.combining import negated
from grammarspec.frontends.json_schema.keywords.conjunction import ArrayFacet, Concern, Conjunction, ItemCount
from grammarspec.frontends.json_schema.keywords.goals import Goals
from grammarspec.frontends.json_schema.keywords.keyword import Choices, Holds, Keyword, replace_by_true
from grammarspec.frontends.json_schema.keywords.narrowing import cut
from grammarspec.frontends.json_schema.keywords.types_and_sizes import IS_ARRAY, ITEMS, AtLeast
from grammarspec.frontends.json_schema.keywords.values import count, schema_list

__all__ = ["KEYWORDS", "Counted", "Items", "Unique", "some_item_fails"]


class Items(ArrayFacet, Assertion):
    """Each of the first items satisfies a schema of its own, and all further items satisfy another one."""

    __slots__ = ()

    def add(self, facts: Conjunction, goals: Goals, schema: Subschema) -> None:
        """Add the facet."""
        facts.asked |= Concern.ITEMS
        facts.arrays = [*facts.arrays, self]

    def failures(self, goals: Goals, schema: Subschema) -> Iterator[tuple[Assertion, ...]]:
        """An item is present and fails its schema: one way per position, and one for all further items."""
        for i, item in enumerate(self.first):
            if not item.is_empty:
                yield IS_ARRAY, AtLeast(ITEMS, i + 1), Items((*(ANYTHING,) * i, negated(item, schema)))
        yield from some_item_fails(len(self.first), self.rest, schema)


def some_item_fails(first: int, item: Subschema, schema: Subschema) -> Iterator[tuple[Assertion, ...]]:
    """The ways in which some item from the index ``first`` on fails the schema ``item``: one way, or none."""
    if item is NOTHING:
        yield IS_ARRAY, AtLeast(ITEMS, first + 1)
    elif not item.is_empty:
        yield IS_ARRAY, Counted(first, negated(item, schema), 1, None)


class Counted(ItemCount, Assertion):
    """The number of items that satisfy a schema is within bounds."""

    __slots__ = ()

    def add(self, facts: Conjunction, goals: Goals, schema: Subschema) -> None:
        """Add the count, if it has a bound other than "at least 0"."""
        if self.least > 0 or self.most is not None:
            facts.asked |= Concern.ITEMS
            facts.counts = [*facts.counts, self]

    def failures(self, goals: Goals, schema: Subschema) -> Iterator[tuple[Assertion, ...]]:
        """Fewer items satisfy the schema than the minimum, or more than the maximum."""
        if self.least > 0:
            yield IS_ARRAY, Counted(self.start, self.schema, 0, self.least - 1)
        if self.most is not None:
            yield IS_ARRAY, Counted(self.start, self.schema, self.most + 1, None)


class Unique(Assertion):
    """No two items are equal."""

    __slots__ = ()

    def add(self, facts: Conjunction, goals: Goals, schema: Subschema) -> None:
        """Record the subschema that has it."""
        facts.asked |= Concern.ITEMS
        facts.unique = schema

    def failures(self, goals: Goals, schema: Subschema) -> Iterator[tuple[Assertion, ...]]:
        """None: that two items are equal cannot be expressed (see ``negation.py``)."""
        yield from ()


# ---------------------------------------------------------------------- parsing
def _prefix_items(schema: Subschema, value: Any) -> Items:
    first = schema_list(schema, "prefixItems", value)
    keywords = schema.keywords
    has_rest = "items" in keywords
    return Items(first, schema.child(keywords["items"], "items") if has_rest else ANYTHING, has_rest)


def _items(schema: Subschema, value: Any) -> Items | None:
    if isinstance(value, list):
        if not schema.resource.dialect.assumed:
            raise schema.malformed("items", "a schema in draft 2020-12; prefixItems takes several")
        return _items_before_2020(schema, value)
    return None if "prefixItems" in schema.keywords else Items((), schema.child(value, "items"), True)


def _items_before_2020(schema: Subschema, value: Any) -> Items:
    if not isinstance(value, list):
        return Items((), schema.child(value, "items"), True)
    keywords = schema.keywords
    first = tuple(schema.child(part, "items", str(i)) for i, part in enumerate(value))
    has_rest = "additionalItems" in keywords
    rest = schema.child(keywords["additionalItems"], "additionalItems") if has_rest else ANYTHING
    return Items(first, rest, has_rest)


def _contains(schema: Subschema, value: Any) -> Counted:
    """``contains``, with ``minContains`` and ``maxContains`` where the dialect has them."""
    least, most, year, keywords = 1, None, schema.resource.dialect.year, schema.keywords
    if year >= 2019:
        if "minContains" in keywords:
            least = count(schema, "minContains", keywords["minContains"])
        if "maxContains" in keywords:
            most = count(schema, "maxContains", keywords["maxContains"])
    return Counted(0, schema.child(value, "contains"), least, most, year >= 2020)


_UNIQUE = Unique()


def _unique_items(schema: Subschema, value: Any) -> Unique | None:
    if not isinstance(value, bool):
        raise schema.malformed("uniqueItems", "a boolean")
    return _UNIQUE if value else None


# ---------------------------------------------------------------------- reports
def _unique_items_narrowings(value: Any, schema: Mapping[str, Any], choices: Choices, negated: bool) -> Iterator[str]:
    if value is True:
        yield "strings and numbers in the items have one spelling, objects in them do not repeat names"


def _prefix_items_neutral(schema: dict[str, Any], keyword: str, path: tuple[str, ...]) -> None:
    """Replace each schema by ``true``, so that the same items stay evaluated."""
    if isinstance(schema[keyword], list):
        schema[keyword] = [True] * len(schema[keyword])
    else:
        del schema[keyword]


def _contains_neutral(schema: dict[str, Any], keyword: str, path: tuple[str, ...]) -> None:
    """Replace the schema by ``true`` without bounds. All items then count as evaluated."""
    schema["contains"] = True
    schema.pop("maxContains", None)
    if "minContains" in schema:
        schema["minContains"] = 0


_APPLICATOR = ("applicator",)

KEYWORDS = (
    Keyword(
        "prefixItems", parse=_prefix_items, makes=(Items,), holds=Holds.LIST, about=ARRAY, since=2020,
        vocabularies=_APPLICATOR, neutral=_prefix_items_neutral,
    ),
    Keyword(
        "items", parse=_items, makes=(Items,), holds=Holds.ONE_OR_LIST, about=ARRAY, since=2020,
        vocabularies=_APPLICATOR, neutral=replace_by_true,
    ),
    Keyword(
        "items", parse=_items_before_2020, makes=(Items,), holds=Holds.ONE_OR_LIST, about=ARRAY, until=2019,
        vocabularies=_APPLICATOR, neutral=replace_by_true,
    ),
    Keyword(
        "additionalItems", holds=Holds.ONE, read_with=("items",), about=ARRAY, vocabularies=_APPLICATOR,
        neutral=replace_by_true,
    ),
    Keyword(
        "contains", parse=_contains, makes=(Counted,), holds=Holds.ONE, about=ARRAY, since=6,
        vocabularies=_APPLICATOR, tests=lambda keywords: "maxContains" in keywords, neutral=_contains_neutral,
    ),
    Keyword(
        "minContains", read_with=("contains",), about=ARRAY, since=2019, narrowings=cut, neutral=_contains_neutral
    ),
    Keyword("maxContains", read_with=("contains",), about=ARRAY, since=2019, narrowings=cut),
    Keyword("uniqueItems", parse=_unique_items, makes=(Unique,), about=ARRAY, narrowings=_unique_items_narrowings),
)  # fmt: skip
