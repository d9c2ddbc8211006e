"""Whether what a conjunction asks plainly implies a schema, which then need not be asked as well.

Choices often have an alternative that the rest of a goal implies: beside a required ``kind`` that is ``"a"``, the
alternative "``kind`` is not ``"b"``" of a negated branch holds. Such a choice is decided, and need not be distributed.

A yes is proved; a no only says that the simple test here has found no proof.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from grammarspec.errors import GrammarError
from grammarspec.frontends.json_schema.document.subschema import ANYTHING, NOTHING, Subschema
from grammarspec.frontends.json_schema.json_values import ARRAY, NUMBER, OBJECT, STRING, canonical, type_of
from grammarspec.frontends.json_schema.keywords.conjunction import Conjunction, ObjectFacet, SomeMember
from grammarspec.frontends.json_schema.keywords.goals import Goals
from grammarspec.frontends.json_schema.keywords.objects import Members
from grammarspec.frontends.json_schema.meaning.evaluation import (
    holds_facts,
    item_schemas,
    may_be,
    property_schemas,
)

__all__ = ["declares_nothing_new", "implies", "implies_one"]

_DEPTH = 3  # of members in members, and of choices
_COMPARING = 30  # steps of a comparison
_LOOKING = 3  # steps for each schema that another one may be a copy of
_CHARACTERS = 10  # of a schema that are written in one step
_MANY = 64  # the most constants that are tried one by one


def implies(goals: Goals, facts: Conjunction, schema: Subschema, depth: int = _DEPTH) -> bool:
    """Whether it is proved that all values of a conjunction satisfy a schema. It never raises a schema's error.

    Args:
        depth: how deeply members and choices are examined.
    """
    try:
        goals.budget.spend(_COMPARING)
        if schema is ANYTHING or _is_among(goals, schema, facts.members):
            return True
        return depth > 0 and schema is not NOTHING and _implies(goals, facts, _alone(goals, schema), depth)
    except GrammarError:
        return False


def _alone(goals: Goals, schema: Subschema) -> Conjunction:
    """The conjunction of one schema, which is gathered once: the same ones are compared many times."""
    gathered: Conjunction = schema.derive("alone", lambda: goals.gather([schema]))
    return gathered


def _is_among(goals: Goals, schema: Subschema, known: Collection[Subschema]) -> bool:
    """Whether a schema is among others, or a copy of it that is read alike where it stands."""
    if schema in known:
        return True
    goals.budget.spend(_LOOKING * len(known))
    written = _written(goals, schema)
    return written is not None and any(
        written == _written(goals, other) and schema.resource is other.resource and schema.scope is other.scope
        for other in known
    )


def _written(goals: Goals, schema: Subschema) -> str | None:
    """How a schema of the document is written, where ``1``, ``1.0`` and ``true`` differ; ``None`` for derived ones."""

    def make() -> str | None:
        if not schema.keywords:
            return None
        text = repr(schema.keywords)
        goals.budget.spend(len(text) // _CHARACTERS)
        return text

    written: str | None = schema.derive("written", make)
    return written


def _implies(goals: Goals, facts: Conjunction, asked: Conjunction, depth: int) -> bool:
    if facts.enum is not None:
        return len(facts.enum) <= _MANY and all(
            holds_facts(goals, facts, constant) is False or holds_facts(goals, asked, constant) is True
            for constant in facts.enum
        )
    types = facts.types
    return (
        asked.enum is None
        and types & ~asked.types == 0
        and _excludes(facts, asked)
        and (not types & NUMBER or _implies_number(facts, asked))
        and (not types & STRING or _implies_text(facts, asked))
        and (not types & ARRAY or _implies_items(goals, facts, asked, depth))
        and (not types & OBJECT or _implies_members(goals, facts, asked, depth))
        and all(implies_one(goals, facts, choice, depth - 1) for choice in asked.choices)
    )


def implies_one(goals: Goals, facts: Conjunction, choice: Sequence[Subschema], depth: int = _DEPTH) -> bool:
    """Whether it is proved that every value of a conjunction satisfies one of some alternatives.

    Either all of them satisfy the same one, or one alternative is that a member is absent, and those values that have
    the member satisfy another one, as with dependent schemas that the rest of a goal implies.
    """
    if any(_each_implies(goals, known, choice, depth) for known in facts.choices):
        return True
    for alternative in choice:
        if implies(goals, facts, alternative, depth):
            return True
        name = _absent(alternative)
        if name is not None and name not in facts.required:
            present = facts.copy()
            present.types &= OBJECT
            present.required = {**facts.required, name: None}
            if any(implies(goals, present, other, depth) for other in choice if other is not alternative):
                return True
    return False


def _each_implies(goals: Goals, known: Sequence[Subschema], choice: Sequence[Subschema], depth: int) -> bool:
    """Whether each alternative of a choice implies the one in the same place of another choice, as with copies."""
    if known is choice:
        return True
    return (
        depth > 1
        and len(known) == len(choice)
        and all(
            one is other or implies(goals, _alone(goals, one), other, depth - 1)
            for one, other in zip(known, choice, strict=True)
        )
    )


def _absent(schema: Subschema) -> str | None:
    """The name of the member that must be absent, if a schema asks nothing else."""
    if schema.is_malformed or len(schema.assertions) != 1:
        return None
    (asked,) = schema.assertions
    if not isinstance(asked, Members) or asked.patterns or asked.rest is not ANYTHING or len(asked.properties) != 1:
        return None
    ((name, value),) = asked.properties.items()
    return name if value is NOTHING else None


def _excludes(facts: Conjunction, asked: Conjunction) -> bool:
    return all(
        not facts.types & type_of(constant) or canonical(constant) in facts.excluded_constants
        for constant in asked.excluded
    )


def _implies_number(facts: Conjunction, asked: Conjunction) -> bool:
    if asked.low is not None and (facts.low is None or facts.low < asked.low):
        return False
    if asked.high is not None and (
        facts.high is None
        or facts.high[0] > asked.high[0]
        or (facts.high[0] == asked.high[0] and asked.high[1] and not facts.high[1])
    ):
        return False
    return all(multiple in facts.multiples for multiple in asked.multiples)


def _implies_items(goals: Goals, facts: Conjunction, asked: Conjunction, depth: int) -> bool:
    if asked.min_items > facts.min_items or (asked.unique is not None and facts.unique is None):
        return False
    if asked.max_items is not None and (facts.max_items is None or facts.max_items > asked.max_items):
        return False
    if any(count not in facts.counts for count in asked.counts):
        return False
    if all(facet in facts.arrays for facet in asked.arrays):
        return True
    prefix = max(len(facet.first) for facet in (*facts.arrays, *asked.arrays))
    return prefix <= _MANY and all(
        _implies_all(goals, item_schemas(facts, index), item_schemas(asked, index), depth)
        for index in range(prefix + 1)
    )


def _implies_all(goals: Goals, known: Sequence[Subschema], asked: Sequence[Subschema], depth: int) -> bool:
    """Whether the schemas that are known to hold of a part of a value imply those that are asked of it."""
    left = [schema for schema in asked if not _is_among(goals, schema, known) and not schema.asks_nothing]
    if not left or NOTHING in known:
        return True
    if depth <= 1 or not known:
        return False
    facts = goals.gather(known)
    return all(implies(goals, facts, schema, depth - 1) for schema in left)


def _implies_text(facts: Conjunction, asked: Conjunction) -> bool:
    if asked.min_length > facts.min_length:
        return False
    if asked.max_length is not None and (facts.max_length is None or facts.max_length > asked.max_length):
        return False
    known = {(facet.keyword, facet.argument, facet.wanted) for facet in facts.texts}
    return all((facet.keyword, facet.argument, facet.wanted) in known for facet in asked.texts)


def _implies_members(goals: Goals, facts: Conjunction, asked: Conjunction, depth: int) -> bool:
    if asked.names or asked.witnesses or not asked.required.keys() <= facts.required.keys():
        return False
    if asked.min_properties > max(facts.min_properties, len(facts.required)):
        return False
    if asked.max_properties is not None and (
        facts.max_properties is None or facts.max_properties > asked.max_properties
    ):
        return False
    return all(_implies_facet(goals, facts, facet, depth) for facet in asked.objects) and all(
        _some_is_implied(goals, facts, some, depth) for some in asked.some
    )


def _implies_facet(goals: Goals, facts: Conjunction, facet: ObjectFacet, depth: int) -> bool:
    if facet in facts.objects:
        return True
    if facet.patterns or facet.rest is not ANYTHING:
        return any(_is_narrower(goals, known, facet, depth) for known in facts.objects)
    return all(_implies_member(goals, facts, *member, depth) for member in facet.properties.items())


def _is_narrower(goals: Goals, known: ObjectFacet, asked: ObjectFacet, depth: int) -> bool:
    """Whether one facet asks as much as another one of each member, name by name and pattern by pattern."""
    pairs = [(known.rest, asked.rest)]
    for mine, theirs in ((known.properties, asked.properties), (known.patterns, asked.patterns)):
        if mine.keys() != theirs.keys():
            return False
        pairs += [(schema, theirs[name]) for name, schema in mine.items()]
    return all(_implies_all(goals, [one], [other], depth) for one, other in pairs)


def _implies_member(goals: Goals, facts: Conjunction, name: str, schema: Subschema, depth: int) -> bool:
    """Whether a member of this name, if there can be one, satisfies a schema."""
    value = property_schemas(facts, name)
    return value is not None and _implies_all(goals, value, [schema], depth)


def _some_is_implied(goals: Goals, facts: Conjunction, some: SomeMember, depth: int = _DEPTH) -> bool:
    """Whether it is proved that a required member satisfies the condition "there is a member such that"."""
    return any(
        may_be(goals, some, name) is True and _implies_member(goals, facts, name, some.value, depth)
        for name in facts.required
    )


def declares_nothing_new(goals: Goals, facts: Conjunction, alternatives: Sequence[Subschema]) -> bool:
    """Whether alternatives declare no member that a conjunction does not declare.

    Where one does, leaving it out could change the order of members, and which are allowed where undeclared ones are
    not.
    """
    known = {name for facet in facts.objects for name in facet.properties}
    return all(
        facet.properties.keys() <= known
        for alternative in alternatives
        for facet in _alone(goals, alternative).objects
        if facet.in_document
    )
