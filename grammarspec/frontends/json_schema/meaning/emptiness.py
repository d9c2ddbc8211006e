"""Whether it is proved that no value satisfies a goal, by shallow tests without an automaton.

A yes is proved. A no only says that the tests here have found no proof; whoever asks must then do what is right for
either answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import ROUND_CEILING, Decimal
from itertools import product
from math import prod

from grammarspec.frontends.json_schema.document.subschema import NOTHING, Subschema
from grammarspec.frontends.json_schema.json_values import ARRAY, FRACTION, NUMBER, OBJECT, STRING
from grammarspec.frontends.json_schema.keywords.conjunction import Conjunction
from grammarspec.frontends.json_schema.keywords.goals import Goals
from grammarspec.frontends.json_schema.meaning.evaluation import holds_facts, item_schemas, property_schemas
from grammarspec.frontends.json_schema.meaning.implication import implies

__all__ = ["surely_empty", "surely_no_value"]


def surely_empty(goals: Goals, goal: Sequence[Subschema], depth: int) -> bool:
    """Whether it is proved that no value satisfies a goal.

    Args:
        depth: how deeply required members, required items and alternatives are examined.
    """
    goals.comparisons += 1
    if goals.comparisons > _MAX_COMPARISONS:
        return False
    return surely_no_value(goals, goals.gather(goal), depth)


def surely_no_value(goals: Goals, facts: Conjunction, depth: int) -> bool:
    """The same as :func:`surely_empty`, for a conjunction that has been gathered."""
    if facts.enum is not None:
        if len(facts.enum) > _MANY:
            return False
        return all(holds_facts(goals, facts, constant) is False for constant in facts.enum)
    types = facts.types
    if types & NUMBER and _no_number(facts):
        types &= ~NUMBER
    if types & STRING and _no_string(goals, facts):
        types &= ~STRING
    if types & ARRAY and _no_array(goals, facts, depth):
        types &= ~ARRAY
    if types & OBJECT and _no_object(goals, facts, depth):
        types &= ~OBJECT
    if not types or any(implies(goals, facts, schema) for schema in facts.refused):
        return True
    if depth > 0:
        base = facts.base
        for alternatives in facts.choices:
            if len(alternatives) <= 16 and all(surely_empty(goals, [*base, a], depth - 1) for a in alternatives):
                return True
    return False


_FEW_WAYS = 16  # in which a name may match one pattern of each facet
_MANY = 256  # the most constants that are tried one by one
_MAX_COMPARISONS = 20_000  # goals tested in one document; after that, no goal is found to be empty
_LARGE = 10**18  # beyond it, the compiler finds out whether an interval has integers


def _no_number(facts: Conjunction) -> bool:
    low, high = facts.low, facts.high
    if low is None or high is None:
        return False
    if low[0] > high[0] or (low[0] == high[0] and (low[1] or high[1])):
        return True
    if facts.types & FRACTION or low[0] < -_LARGE or high[0] > _LARGE:
        return False
    first = int(Decimal(low[0]).to_integral_value(ROUND_CEILING))
    first += 1 if low[1] and first == low[0] else 0
    return first > high[0] or (high[1] and first == high[0])


def _no_string(goals: Goals, facts: Conjunction) -> bool:
    if facts.max_length is not None and facts.min_length > facts.max_length:
        return True
    if len(facts.texts) < 2:
        return False
    wanted, refused = (
        [facet.argument for facet in facts.texts if facet.keyword == "pattern" and facet.wanted == kind]
        for kind in (True, False)
    )
    return bool(wanted) and goals.no_text(wanted, refused)


def _no_array(goals: Goals, facts: Conjunction, depth: int) -> bool:
    if facts.max_items is not None and facts.min_items > facts.max_items:
        return True
    if depth <= 0 or not facts.arrays:
        return False
    return any(
        surely_empty(goals, item_schemas(facts, i), depth - 1) for i in range(min(facts.min_items, 8))
    )  # one impossible item among the required ones is enough


def _no_object(goals: Goals, facts: Conjunction, depth: int) -> bool:
    if facts.max_properties is not None and facts.max_properties < max(facts.min_properties, len(facts.required)):
        return True
    if not facts.objects:
        return False
    if facts.min_properties > 0 and _no_name(goals, facts):
        return True
    for name in facts.required:
        schemas = property_schemas(facts, name)
        if schemas and NOTHING in schemas:
            return True
        if schemas and depth > 0 and surely_empty(goals, schemas, depth - 1):
            return True
    return False


def _no_name(goals: Goals, facts: Conjunction) -> bool:
    """Whether it is proved that no member can have a name, as facets that allow no further members share none."""
    closed = [facet for facet in facts.objects if facet.rest is NOTHING]
    if not closed or any(facet.properties for facet in closed):
        return False
    ways = [[pattern for pattern, value in facet.patterns.items() if value is not NOTHING] for facet in closed]
    return prod(map(len, ways)) <= _FEW_WAYS and all(goals.no_text(way) for way in product(*ways))
