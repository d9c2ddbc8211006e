"""Questions about goals that are answered in Python, without an automaton.

Does a constant satisfy a goal? Which subschemas apply to a property or an item?

Answers of the type ``bool | None`` are three-valued: ``None`` means "unknown", and a caller must then do what is right
for either answer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

from grammarspec.frontends.json_schema.document.subschema import ANYTHING, NOTHING, Subschema
from grammarspec.frontends.json_schema.json_values import (
    ARRAY,
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
    "constants_of", "divides", "holds", "holds_facts", "is_closed", "item_schemas", "lists_constants", "may_be",
    "number_holds", "property_schemas", "text_holds",
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
def lists_constants(branch: Subschema) -> bool:
    """Whether a schema has ``enum`` or ``const``, and ``type`` at most."""
    if branch.is_malformed:
        return False
    kinds = {type(assertion) for assertion in branch.assertions}
    return Constants in kinds and kinds <= {Constants, Types}


def constants_of(goals: Goals, branches: Sequence[Subschema], *, differ: bool) -> list[Any] | None:
    """The values of branches that list constants, and ask for types at most.

    Args:
        differ: whether no two branches may have a constant in common; otherwise ``None`` is returned.
    """
    found: list[Any] = []
    for branch in branches:
        facts = goals.gather([branch])
        found += [constant for constant in facts.enum or () if facts.types & type_of(constant)]
    return None if differ and len(set(map(canonical, found))) < len(found) else found
