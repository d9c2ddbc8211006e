"""The shapes of objects: their declared members in order, all other members, and how many there are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, combinations
from typing import Final

from grammarspec.errors import UnsupportedFeature
from grammarspec.frontends.json_schema.document.subschema import ANYTHING, Subschema
from grammarspec.frontends.json_schema.keywords.conjunction import Concern, Conjunction
from grammarspec.frontends.json_schema.keywords.constants import Constants
from grammarspec.frontends.json_schema.meaning.analysis import Analysis
from grammarspec.frontends.json_schema.meaning.evaluation import holds, is_closed, property_schemas
from grammarspec.frontends.json_schema.normal_form.presence import Presence, names_in
from grammarspec.frontends.json_schema.normal_form.shapes import (
    ANY_OBJECT,
    NONE,
    DeclaredMember,
    Goal,
    ObjectShape,
    UndeclaredMembers,
    alone,
    both,
)
from grammarspec.frontends.json_schema.normal_form.undeclared import (
    check_patterns,
    has_enough_names,
    has_names,
    undeclared_members,
)

__all__ = ["object_shape"]

NO_OBJECT: Final = ObjectShape(least=1, most=0)
"""What no object satisfies."""

_ROOM = 32  # members beyond the required ones, where conditions need several of a finite number of names
_MAX_KINDS = 4  # conditions in ``witnesses``, of which one member may satisfy several


def object_shape(
    goals: Analysis, facts: Conjunction, presence: Sequence[Presence] = (), *, any_order: bool, closed: bool
) -> ObjectShape:
    """What a conjunction asks of objects.

    Args:
        presence: conditions on which members are present, in place of the conjunction's choices.
        any_order: whether declared members may come anywhere.
        closed: whether an object whose schema declares members but says nothing about others has no others.

    Raises:
        UnsupportedFeature: a combination of keywords about names cannot be enforced.
    """
    if facts.asked & Concern.SIZE:
        return _sized(goals, facts, presence, any_order=any_order, closed=closed)
    if not (facts.objects or facts.required or presence):
        return ANY_OBJECT
    members = _declared(goals, facts, presence, any_order=any_order)
    undeclared = _undeclared(goals, facts, members, closed=closed)
    few = any(facet.patterns for facet in facts.objects)
    return ObjectShape(members, undeclared, presence=presence, few=few, where=facts.where)


def _sized(
    goals: Analysis, facts: Conjunction, presence: Sequence[Presence], *, any_order: bool, closed: bool
) -> ObjectShape:
    """What a conjunction asks of objects, where something is asked of how many members there are, or of all names."""
    required, least, most = len(facts.required), facts.min_properties, facts.max_properties
    if not (facts.objects or required or least or facts.names or facts.witnesses or presence) and most is None:
        return ANY_OBJECT
    if most is not None and most < max(least, required):
        return NO_OBJECT
    members = _declared(goals, facts, presence, any_order=any_order)
    undeclared = _undeclared(goals, facts, members, closed=closed)
    names = [member.name for member in members]
    if least <= required:
        least = 0
    # several undeclared members may have to count, so their names must differ
    many = least > 1 or bool(facts.witnesses)
    room = None if most is None else most - required
    enough = many and undeclared is not None and has_enough_names(goals, facts, names, room)
    witnesses_enough = enough and _witnesses_have_names(goals, facts, names, room)
    if most is None and undeclared is not None and not witnesses_enough and _are_for_several(goals, facts, names):
        most, enough, witnesses_enough = required + _ROOM, True, True
    if not witnesses_enough and not all(has_names(goals, facts, [witness]) for witness in facts.witnesses):
        return NO_OBJECT
    return ObjectShape(
        members,
        undeclared,
        len(facts.witnesses),
        list(_witnessed(goals, facts, names)),
        least,
        most,
        presence,
        bool(facts.names or facts.witnesses or any(facet.patterns for facet in facts.objects)),
        enough,
        witnesses_enough,
        facts.where,
    )


def _undeclared(
    goals: Analysis, facts: Conjunction, declared: Sequence[DeclaredMember], *, closed: bool
) -> UndeclaredMembers | None:
    """What is asked of other members than the declared ones; ``None`` if there can be none."""
    if closed and is_closed(facts, closed=closed):
        return None
    return undeclared_members(goals, facts, [member.name for member in declared])


def _are_for_several(goals: Analysis, facts: Conjunction, declared: Sequence[str]) -> bool:
    """Whether the conditions ``facts.witnesses`` need several members, whose names last if there are few other members.

    No single member satisfies all conditions, which is proved. If then the names are finite in number, as two letters
    are, they could all be used up, unless it is bounded how many members there are.
    """
    return (
        len(facts.witnesses) > 1
        and not has_names(goals, facts, facts.witnesses)
        and has_enough_names(goals, facts, declared, _ROOM)
        and _witnesses_have_names(goals, facts, declared, _ROOM)
    )


def _witnesses_have_names(goals: Analysis, facts: Conjunction, declared: Sequence[str], room: int | None) -> bool:
    """Whether there is always another name for a member that satisfies some of the conditions ``facts.witnesses``.

    There is if there are infinitely many, or at least ``room``, the number of undeclared members that there can be.
    Where the conditions are about names alone, a member with such a name satisfies them, and no other one is needed.
    """
    witnesses = facts.witnesses
    if all(has_enough_names(goals, facts, declared, None, [witness]) for witness in witnesses):
        return True
    return room is not None and all(
        all(witness.value is ANYTHING for witness in some)
        or has_enough_names(goals, facts, declared, room, some)
        or not has_names(goals, facts, some)
        for some in ([witnesses[i] for i in which] for which in _kinds(facts))
    )


def _kinds(facts: Conjunction) -> Iterator[tuple[int, ...]]:
    """The sets of the conditions ``facts.witnesses`` that one member may satisfy, as indices, the largest first."""
    kinds = range(len(facts.witnesses))
    sizes = range(len(kinds), 0, -1) if len(kinds) <= _MAX_KINDS else (len(kinds), 1)
    return chain.from_iterable(combinations(kinds, size) for size in sizes)


def _witnessed(
    goals: Analysis, facts: Conjunction, names: Sequence[str]
) -> Iterator[tuple[tuple[int, ...], UndeclaredMembers]]:
    """The undeclared members that satisfy some of the conditions ``facts.witnesses``, with the indices of these.

    Sets of conditions that one member may satisfy come in the order of their size, the largest first.
    """
    for which in _kinds(facts):
        members = undeclared_members(goals, facts, names, [facts.witnesses[i] for i in which])
        if members is not None:
            yield which, members


# ---------------------------------------------------------------------- declared members
def _declared(
    goals: Analysis, facts: Conjunction, presence: Sequence[Presence], *, any_order: bool
) -> list[DeclaredMember]:
    """The declared members, with those that keep their place first, in order."""
    further = _further_names(facts, presence)
    required, facets = facts.required, facts.objects
    if len(facets) == 1 and not facets[0].patterns and not facts.names:
        declared, in_order = facets[0].properties, not any_order
        members = [DeclaredMember(name, alone(schema), name in required, in_order) for name, schema in declared.items()]
        for name in further:
            if name not in declared:
                members.append(DeclaredMember(name, alone(facets[0].rest), name in required, False))
        return members
    order: dict[str, None] = {}
    for i, facet in enumerate(facets):
        some = facet.properties
        # a facet that declares more decides the order
        if not any(some.keys() < other.properties.keys() for other in facets):
            order.update(dict.fromkeys(some))
        elif i == 0:
            order.update((name, None) for name, schema in some.items() if _is_constant(schema))
    ordered = 0 if any_order else len(order)
    order.update(further)
    return [
        DeclaredMember(name, _value(goals, facts, name), name in required, i < ordered) for i, name in enumerate(order)
    ]


def _is_constant(schema: Subschema) -> bool:
    """Whether a subschema has a ``const`` (or an ``enum`` of one value), as the tag of a discriminated union has."""
    return not schema.is_malformed and any(
        isinstance(assertion, Constants) and len(assertion.values) == 1 for assertion in schema.assertions
    )


def _further_names(facts: Conjunction, presence: Sequence[Presence]) -> Mapping[str, None]:
    """Names that count as declared as they are required, or as a condition on presence mentions them."""
    if not presence:
        return facts.required
    return {**facts.required, **dict.fromkeys(sorted(set().union(*map(names_in, presence))))}


def _value(goals: Analysis, facts: Conjunction, name: str) -> Goal:
    """The goal of the value of a declared member.

    Raises:
        UnsupportedFeature: it cannot be decided whether a pattern or ``propertyNames`` applies to the name.
    """
    schemas = property_schemas(facts, name)
    allowed = holds(goals, facts.names, name) if facts.names else True
    if allowed is False:
        return NONE
    if schemas is None or allowed is None:
        check_patterns(facts)
        keyword = "propertyNames" if allowed is None else "patternProperties"
        raise UnsupportedFeature(f"whether {keyword} applies to the name {name!r}", where=facts.first.pointer)
    return both(schemas)
