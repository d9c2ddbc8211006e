"""Which values a goal has, where they are few.

A goal goes in; the values that may satisfy it come out, or ``None`` where no simple test shows that they are few. It is
needed where values must differ: an array with unique items cannot have more items than there are values for them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from decimal import Decimal
from itertools import product
from typing import Any

from grammarspec.frontends.json_schema.document.subschema import ANYTHING, NOTHING, Subschema
from grammarspec.frontends.json_schema.json_values import (
    ARRAY,
    FALSE,
    FRACTION,
    NULL,
    NUMBER,
    OBJECT,
    STRING,
    TRUE,
    Number,
    canonical,
    type_of,
)
from grammarspec.frontends.json_schema.keywords.conjunction import Conjunction
from grammarspec.frontends.json_schema.keywords.goals import Goals
from grammarspec.frontends.json_schema.meaning.evaluation import (
    holds_facts,
    is_closed,
    item_schemas,
    number_holds,
    property_schemas,
    text_holds,
)
from grammarspec.frontends.regex.matching import few_candidates, few_texts

__all__ = ["few_values"]

_MANY = 256  # the most values that are few
_MAX_DIGITS = 25  # of numbers between which multiples are counted
_DEPTH = 4  # how many choices, arrays and objects may be nested

_Values = dict[Any, Any]
"""Values by their canonical form."""


def few_values(goals: Goals, goal: Sequence[Subschema], *, closed: bool = False) -> set[Any] | None:
    """The values that satisfy a goal, in canonical form, if a simple test shows that they are few; otherwise ``None``.

    Values of which it is unknown whether they satisfy the goal are included.

    Args:
        closed: whether an object whose schema declares members but says nothing about others has no others.
    """
    found = _Few(goals, closed).of_goal(goal, _DEPTH)
    return None if found is None else set(found)


class _Few:
    """Lists the values of goals of one document."""

    def __init__(self, goals: Goals, closed: bool) -> None:
        self.goals, self.closed = goals, closed

    def of_goal(self, goal: Sequence[Subschema], depth: int) -> _Values | None:
        """The values of a goal; ``None`` if they may be many, or more than ``depth`` parts are nested."""
        facts = self.goals.gather(goal)
        if facts.enum is not None:
            kept = facts.copy()
            kept.enum = None
            return self._kept(kept, facts.enum)
        if depth == 0:
            return self._without_parts(facts)
        if facts.choices:
            return self._of_choice(facts, depth)
        found = self._without_parts(facts, parts=True)
        for bit, listed in ((ARRAY, self._arrays), (OBJECT, self._objects)):
            if found is not None and facts.types & bit:
                values = listed(facts, depth)
                found = None if values is None else found | self._kept(facts, values)
        return found

    def _kept(self, facts: Conjunction, values: Iterable[Any]) -> _Values:
        """Those values that may satisfy a conjunction."""
        return {canonical(value): value for value in values if holds_facts(self.goals, facts, value) is not False}

    def _of_choice(self, facts: Conjunction, depth: int) -> _Values | None:
        base, found = facts.base, _Values()
        rest = [self.goals.choice(alternatives) for alternatives in facts.choices[1:]]
        for alternative in facts.choices[0]:
            values = self.of_goal([*base, alternative, *rest], depth - 1)
            if values is None:
                return None
            found |= values
        return found

    def _without_parts(self, facts: Conjunction, *, parts: bool = False) -> _Values | None:
        """The values that are no arrays and objects.

        Args:
            parts: whether those are looked at elsewhere; if not, only the empty ones are few.
        """
        types = facts.types
        if facts.choices:
            return None
        if not parts and ((types & ARRAY and facts.max_items != 0) or (types & OBJECT and facts.max_properties != 0)):
            return None
        words = _few_words(facts) if types & STRING else ()
        if words is None:
            return None
        singles: list[tuple[int, Any]] = [(NULL, None), (TRUE, True), (FALSE, False)]
        if not parts:
            singles += [(ARRAY, []), (OBJECT, {})]
        found: list[Any] = [value for bit, value in singles if types & bit]
        found += words
        if types & NUMBER:
            numbers = _few_numbers(facts)
            if numbers is None:
                return None
            found += [number for number in numbers if types & type_of(number)]
        return {canonical(value): value for value in found}

    def _arrays(self, facts: Conjunction, depth: int) -> Iterable[Any] | None:
        """Arrays, of which there are few if their items have few values and their length an end."""
        prefix = max((len(facet.first) for facet in facts.arrays), default=0)
        most = facts.max_items
        if most is None and facts.unique is not None:
            rest = self.of_goal(item_schemas(facts, prefix), depth - 1)
            most = None if rest is None else prefix + len(rest)
        columns: list[list[Any]] = []
        arrays: list[list[Any]] = [[]]
        ways = 1
        while most is None or len(columns) < most:
            items = self.of_goal(item_schemas(facts, len(columns)), depth - 1)
            if items is None:
                return None
            if not items:
                break  # no array is longer than this
            ways *= len(items)
            if ways > _MANY or (most is None and len(columns) >= prefix):
                return None
            columns.append(list(items.values()))
            arrays += [list(array) for array in product(*columns)]
            if len(arrays) > _MANY:
                return None
        return arrays

    def _objects(self, facts: Conjunction, depth: int) -> Iterable[Any] | None:
        """Objects, of which there are few if their names and their values are."""
        if facts.max_properties == 0:
            return [{}]
        names = self._names(facts, depth)
        if names is None or len(names) > _MANY:
            return None
        objects: list[dict[str, Any]] = [{}]
        for name in names:
            schemas = property_schemas(facts, name)
            values = None if schemas is None else self.of_goal(schemas, depth - 1)
            if values is None:
                return None
            longer = [{**made, name: value} for made in objects for value in values.values()]
            objects = longer if name in facts.required else objects + longer
            if len(objects) > _MANY:
                return None
        return objects

    def _names(self, facts: Conjunction, depth: int) -> list[str] | None:
        """The names that members may have."""
        if facts.names:
            found = self.of_goal(facts.names, depth - 1)
            if found is not None:
                return [name for name in found.values() if isinstance(name, str)]
        names = dict.fromkeys(name for facet in facts.objects for name in facet.properties)
        for facet in facts.objects:
            for pattern, schema in facet.patterns.items():
                words = () if schema is NOTHING else few_texts(pattern)
                if words is None:
                    return None
                names |= dict.fromkeys(words)
        if is_closed(facts, closed=self.closed):
            return list(names)
        others = [facet.rest for facet in facts.objects if facet.rest is not ANYTHING]
        if not others or self.of_goal(others, depth - 1) != {}:
            return None
        return list(names)


def _few_words(facts: Conjunction) -> tuple[str, ...] | None:
    """The strings that satisfy a conjunction, if a simple test shows that they are few; otherwise ``None``."""
    if facts.max_length == 0:
        return ("",)
    for facet in facts.texts:
        if facet.keyword == "pattern" and facet.wanted:
            words = few_candidates(facet.argument, facts.max_length, _MANY)
            if words is not None:
                return tuple(word for word in words if text_holds(facts, word) is not False)
    return None


def _few_numbers(facts: Conjunction) -> list[Number] | None:
    """The numbers that satisfy a conjunction, if there are few of them between its bounds."""
    if facts.low is None or facts.high is None:
        return None
    low, high = Decimal(facts.low[0]), Decimal(facts.high[0])
    if low == high:
        found: list[Number] = [facts.low[0]]
    else:
        divisors = [Decimal(divisor) for divisor, wanted in facts.multiples if wanted]
        step = max([*divisors, *(() if facts.types & FRACTION else (Decimal(1),))], default=None)
        if step is None or high - low > _MANY * step or max(map(_digits, (low, high, step))) > _MAX_DIGITS:
            return None
        first, last = math.floor(low / step), math.ceil(high / step)
        found = [n * step for n in range(first, last + 1)]
    return [value for value in found if number_holds(facts, value) is not False]


def _digits(number: Decimal) -> int:
    """About how many digits a number takes when it is written out."""
    _, digits, exponent = number.as_tuple()
    return len(digits) + abs(int(exponent))
