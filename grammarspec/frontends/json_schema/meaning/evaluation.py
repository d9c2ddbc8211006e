"""Questions about goals that are answered in Python, without an automaton.

Does a constant satisfy a goal? Is a goal unsatisfiable? Which subschemas apply to a property or an item? Which branches
of a ``oneOf`` may overlap?

Answers of the type ``bool | None`` are three-valued: ``None`` means "unknown", and a caller must then do what is right
for either answer.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from decimal import ROUND_CEILING, Decimal
from typing import Any

from grammarspec.errors import GrammarError
from grammarspec.frontends.json_schema.document.subschema import ANYTHING, NOTHING, Subschema
from grammarspec.frontends.json_schema.json_values import (
    ARRAY,
    FRACTION,
    NUMBER,
    OBJECT,
    STRING,
    Number,
    canonical,
    type_of,
)
from grammarspec.frontends.json_schema.keywords.conjunction import Conjunction, SomeMember
from grammarspec.frontends.json_schema.keywords.constants import Constants
from grammarspec.frontends.json_schema.keywords.goals import Goals
from grammarspec.frontends.json_schema.keywords.types_and_sizes import Types
from grammarspec.frontends.json_schema.keywords.unevaluated import UnevaluatedMembers
from grammarspec.frontends.regex.matching import pattern_found

__all__ = [
    "constants_of", "divides", "holds", "holds_facts", "is_closed", "item_schemas", "may_be", "number_holds",
    "optional_tag", "overlapping", "property_schemas", "surely_empty", "surely_no_value", "text_holds",
]  # fmt: skip


def _all(answers: list[bool | None]) -> bool | None:
    return False if False in answers else None if None in answers else True


def _any(answers: list[bool | None]) -> bool | None:
    return True if True in answers else None if None in answers else False


# ---------------------------------------------------------------------- parts of values
def property_schemas(facts: Conjunction, name: str) -> list[Subschema] | None:
    """The subschemas for the value of the member ``name``; ``None`` if it is unknown whether a pattern matches it."""
    found: list[Subschema] = []
    facts.budget.spend(3 * len(facts.objects))
    for facet in facts.objects:
        member = facet.properties.get(name)
        evaluated = member is not None
        if member is not None:
            found.append(member)
        for pattern, schema in facet.patterns.items():
            matched = pattern_found(pattern, name, facts.budget)
            if matched is None:
                return None
            if matched:
                evaluated = True
                found.append(schema)
        if not evaluated and facet.rest is not ANYTHING:
            found.append(facet.rest)
    return found


def item_schemas(facts: Conjunction, index: int) -> list[Subschema]:
    """The subschemas that apply to the item at ``index``."""
    return [facet.first[index] if index < len(facet.first) else facet.rest for facet in facts.arrays]


def is_closed(facts: Conjunction, *, closed: bool) -> bool:
    """Whether undeclared members are left out by default (the narrowing ``additional_properties=False``).

    They are if the document declares properties, and no subschema has a keyword about other members.
    """
    if not closed or facts.witnesses or any(facet.has_rest or facet.has_patterns for facet in facts.objects):
        return False
    if any(isinstance(asked, UnevaluatedMembers) for schema in facts.members for asked in schema.assertions):
        return False
    return any(facet.in_document and _declares(facet.properties) for facet in facts.objects)


def _declares(properties: Mapping[str, Subschema]) -> bool:
    """Whether ``properties`` declares a member that may be present, or is empty."""
    return not properties or any(value is not NOTHING for value in properties.values())


# ---------------------------------------------------------------------- constants
def holds(goals: Goals, goal: Sequence[Subschema], value: Any) -> bool | None:
    """Whether a constant satisfies a goal; ``None`` if unknown."""
    return holds_facts(goals, goals.gather(goal), value)


def holds_facts(goals: Goals, facts: Conjunction, value: Any) -> bool | None:
    """Whether a constant satisfies a conjunction; ``None`` if unknown."""
    bit = type_of(value)
    if not facts.types & bit:
        return False
    if facts.allowed_constants is not None and canonical(value) not in facts.allowed_constants:
        return False
    if facts.excluded and canonical(value) in facts.excluded_constants:
        return False
    answers: list[bool | None] = []
    if bit & NUMBER:
        answers.append(number_holds(facts, Decimal(repr(value)) if isinstance(value, float) else value))
    elif bit == STRING:
        answers.append(text_holds(facts, value))
    elif bit == ARRAY:
        answers.append(_array_holds(goals, facts, value))
    elif bit == OBJECT:
        answers.append(_object_holds(goals, facts, value))
    for alternatives in facts.choices:
        answers.append(_any([holds(goals, [alternative], value) for alternative in alternatives]))
    return _all(answers)


def number_holds(facts: Conjunction, value: Number) -> bool | None:
    """Whether a number satisfies the bounds and divisors of a conjunction; ``None`` if unknown."""
    if facts.low is not None and (value < facts.low[0] or (value == facts.low[0] and facts.low[1])):
        return False
    if facts.high is not None and (value > facts.high[0] or (value == facts.high[0] and facts.high[1])):
        return False
    return _all([divided if wanted else _not(divided) for divided, wanted in _divisions(facts, value)])


def _divisions(facts: Conjunction, value: Number) -> list[tuple[bool | None, bool]]:
    return [(divides(divisor, value), wanted) for divisor, wanted in facts.multiples]


def _not(answer: bool | None) -> bool | None:
    return None if answer is None else not answer


_MAX_SHIFT = 400  # decimal places between a number and a divisor


def divides(divisor: Number, value: Number) -> bool | None:
    """Whether ``value`` is an integer multiple of ``divisor``, exactly; ``None`` if either has too many digits."""
    _, digits, exponent = Decimal(divisor).as_tuple()
    _, value_digits, value_exponent = Decimal(value).as_tuple()
    assert isinstance(exponent, int)
    assert isinstance(value_exponent, int)
    if max(len(digits), len(value_digits)) > _MAX_SHIFT or abs(exponent - value_exponent) > _MAX_SHIFT:
        return None
    lowest = min(exponent, value_exponent)
    whole = int("".join(map(str, digits))) * int(10 ** (exponent - lowest))
    scaled = int("".join(map(str, value_digits))) * int(10 ** (value_exponent - lowest))
    return scaled % whole == 0


def text_holds(facts: Conjunction, value: str) -> bool | None:
    """Whether a string satisfies the lengths and patterns of a conjunction; ``None`` if unknown (a ``format``, say)."""
    if len(value) < facts.min_length or (facts.max_length is not None and len(value) > facts.max_length):
        return False
    answers: list[bool | None] = []
    for facet in facts.texts:
        found = pattern_found(facet.argument, value, facts.budget) if facet.keyword == "pattern" else None
        answers.append(found if facet.wanted else _not(found))
    return _all(answers)


def _array_holds(goals: Goals, facts: Conjunction, value: list[Any]) -> bool | None:
    if len(value) < facts.min_items or (facts.max_items is not None and len(value) > facts.max_items):
        return False
    if facts.unique is not None and len({canonical(item) for item in value}) < len(value):
        return False
    answers = [holds(goals, item_schemas(facts, i), item) for i, item in enumerate(value)] if facts.arrays else []
    for count in facts.counts:
        found = [holds(goals, [count.schema], item) for item in value[count.start :]]
        sure, possible = found.count(True), len(found) - found.count(False)
        least, most = count.least, count.most
        if possible < least or (most is not None and sure > most):
            answers.append(False)
        else:
            answers.append(True if sure >= least and (most is None or possible <= most) else None)
    return _all(answers)


def _object_holds(goals: Goals, facts: Conjunction, value: Mapping[str, Any]) -> bool | None:
    if len(value) < facts.min_properties or (facts.max_properties is not None and len(value) > facts.max_properties):
        return False
    if any(name not in value for name in facts.required):
        return False
    answers: list[bool | None] = []
    for name, member in value.items():
        schemas = property_schemas(facts, name)
        answers.append(None if schemas is None else holds(goals, schemas, member))
        if facts.names:
            answers.append(holds(goals, facts.names, name))
    for some in [*facts.some, *facts.witnesses]:
        found = [_all([may_be(goals, some, n), holds(goals, [some.value], m)]) for n, m in value.items()]
        answers.append(_any(found))
    return _all(answers)


def may_be(goals: Goals, some: SomeMember, name: str) -> bool | None:
    """Whether the condition on the name in "there is a member such that" holds of this name; ``None`` if unknown."""
    if name in some.names:
        return False
    answers = [_not(pattern_found(pattern, name, goals.budget)) for pattern in some.patterns]
    if some.within is not None:
        answers.append(pattern_found(some.within, name, goals.budget))
    if some.name is not ANYTHING:
        answers.append(holds(goals, [some.name], name))
    return _all(answers)


# ---------------------------------------------------------------------- enumerations
def constants_of(goals: Goals, branches: Sequence[Subschema], *, differ: bool) -> list[Any] | None:
    """The values of branches with ``enum`` or ``const``, and ``type`` at most; ``None`` if one has other keywords.

    Args:
        differ: whether no two branches may have a constant in common; otherwise ``None`` is returned.
    """
    found: list[Any] = []
    for branch in branches:
        if branch.is_malformed:
            return None
        kinds = {type(assertion) for assertion in branch.assertions}
        if Constants not in kinds or not kinds <= {Constants, Types}:
            return None
        facts = goals.gather([branch])
        if facts.enum is None:
            return None
        found += [constant for constant in facts.enum if facts.types & type_of(constant)]
    return None if differ and len(set(map(canonical, found))) < len(found) else found


# ---------------------------------------------------------------------- emptiness
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
    if types & STRING and facts.max_length is not None and facts.min_length > facts.max_length:
        types &= ~STRING
    if types & ARRAY and _no_array(goals, facts, depth):
        types &= ~ARRAY
    if types & OBJECT and _no_object(goals, facts, depth):
        types &= ~OBJECT
    if not types:
        return True
    if depth > 0:
        base = facts.base
        for alternatives in facts.choices:
            if len(alternatives) <= 16 and all(surely_empty(goals, [*base, a], depth - 1) for a in alternatives):
                return True
    return False


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
    for name in facts.required:
        schemas = property_schemas(facts, name)
        if schemas and NOTHING in schemas:
            return True
        if schemas and depth > 0 and surely_empty(goals, schemas, depth - 1):
            return True
    return False


# ---------------------------------------------------------------------- disjointness
def overlapping(goals: Goals, branches: Sequence[Subschema], max_pairs: int) -> Mapping[int, list[int]] | None:
    """For each branch that is not proved disjoint from all others, the indices of the branches it may overlap.

    Branches with a *tag* (a required property, or the value itself, with an ``enum``) are compared by it first, so that
    a long union with a discriminator needs no comparison of all pairs.

    Args:
        max_pairs: the most pairs that are compared.

    Returns:
        The overlaps; ``None`` if more than ``max_pairs`` pairs would have to be compared.
    """
    tags = [_tags(goals, branch) for branch in branches]
    candidates = _candidate_pairs(tags, max_pairs)
    if candidates is None:
        return None
    overlaps: dict[int, list[int]] = defaultdict(list)
    for i, j in candidates:
        if not _apart(goals, branches[i], branches[j]):
            overlaps[i].append(j)
            overlaps[j].append(i)
    return overlaps


def _apart(goals: Goals, one: Subschema, other: Subschema) -> bool:
    try:
        return surely_empty(goals, [one, other], 3)
    except GrammarError:  # the lowering of the branch raises it again, if it matters
        return False


_Tags = dict[str | None, frozenset[Any]]


def _tags(goals: Goals, branch: Subschema) -> _Tags:
    """The tags of a branch: the values of its ``enum`` under ``None``, or those of required properties by name."""
    facts = goals.gather([branch])
    if facts.enum is not None:
        return {None: frozenset(map(canonical, facts.enum))}
    tags: _Tags = {}
    if facts.types == OBJECT:
        for name in facts.required:
            schemas = property_schemas(facts, name)
            value = goals.gather(schemas) if schemas else None
            if value is not None and value.enum is not None:
                tags[name] = frozenset(map(canonical, value.enum))
    return tags


def optional_tag(goals: Goals, branches: Sequence[Subschema]) -> str | None:
    """The name of a property that has an ``enum`` in each branch, all of them disjoint; ``None`` if there is none."""
    try:
        conjunctions = [goals.gather([branch]) for branch in branches]
        for name in dict.fromkeys(name for facet in conjunctions[0].objects for name in facet.properties):
            seen: set[Any] = set()
            for facts in conjunctions:
                schemas = property_schemas(facts, name)
                enum = goals.gather(schemas).enum if schemas else None
                values = None if enum is None else set(map(canonical, enum))
                if values is None or not seen.isdisjoint(values):
                    break
                seen |= values
            else:
                return name
    except GrammarError:  # the lowering of the branch raises it again, with its place
        return None
    return None


def _candidate_pairs(tags: list[_Tags], max_pairs: int) -> list[tuple[int, int]] | None:
    """The pairs of branches that no common tag proves disjoint; ``None`` if there are more than ``max_pairs``."""
    everywhere = set(tags[0]).intersection(*tags[1:])
    best: list[tuple[int, int]] | None = None
    for name in everywhere:
        holders: dict[Any, list[int]] = defaultdict(list)
        for i, own in enumerate(tags):
            for value in own[name]:
                holders[value].append(i)
        if sum(len(group) ** 2 for group in holders.values()) > 20 * max_pairs:
            continue  # too many even to list them
        pairs = {(i, j) for group in holders.values() for i in group for j in group if i < j}
        if best is None or len(pairs) < len(best):
            best = sorted(pairs)
    if best is None:
        if len(tags) * (len(tags) - 1) // 2 > max_pairs:
            return None
        best = [(i, j) for j in range(len(tags)) for i in range(j)]
    return best if len(best) <= max_pairs else None
