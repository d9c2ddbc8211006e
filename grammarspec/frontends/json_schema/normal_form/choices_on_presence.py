"""Turns choices that only restrict which members an object has into conditions on the presence of members.

An example is ``anyOf`` of several ``required``. If members may come in any order, the rules of an object remember which
members have been written. They can then test such a condition at the end of the object, so the choice need not be
distributed into alternatives of the whole object.
"""

from __future__ import annotations

from collections.abc import Sequence

from grammarspec.frontends.json_schema.document.subschema import ANYTHING, NOTHING, Subschema
from grammarspec.frontends.json_schema.json_values import OBJECT
from grammarspec.frontends.json_schema.keywords.conjunction import Concern, Conjunction
from grammarspec.frontends.json_schema.keywords.goals import Goals
from grammarspec.frontends.json_schema.normal_form.presence import Absent, Both, Either, Presence, Present

__all__ = ["condition", "conditions"]

_KNOWN = Concern.TYPES | Concern.REQUIRED | Concern.MEMBERS | Concern.CHOICES
_MAX_DEPTH = 4


def conditions(goals: Goals, facts: Conjunction) -> list[Presence]:
    """The choices of a conjunction as conditions on the presence of members; none if one of them asks anything else."""
    found = [condition(goals, alternatives) for alternatives in facts.choices]
    known = [one for one in found if one is not None]
    return known if len(known) == len(found) else []


def condition(goals: Goals, alternatives: Sequence[Subschema], depth: int = _MAX_DEPTH) -> Presence | None:
    """The condition on an object's members that is equivalent to "one of these schemas holds".

    Args:
        depth: how deeply choices within the alternatives are followed.

    Returns:
        The condition; ``None`` if an alternative restricts anything but the presence of members.
    """
    if depth == 0:
        return None
    parts = []
    for alternative in alternatives:
        facts = goals.gather([alternative])
        if facts.types & OBJECT:
            part = _of(goals, facts, depth)
            if part is None:
                return None
            parts.append(part)
    return Either(tuple(parts))


def _of(goals: Goals, facts: Conjunction, depth: int) -> Presence | None:
    """The condition that is equivalent to one conjunction; ``None`` if it restricts anything else."""
    if facts.asked & ~_KNOWN:
        return None
    parts: list[Presence] = []
    if facts.required:
        parts.append(Present(tuple(facts.required)))
    absent = []
    for facet in facts.objects:
        if facet.patterns or facet.rest is not ANYTHING:
            return None
        for name, member in facet.properties.items():
            if member is NOTHING:
                absent.append(name)
            elif member is not ANYTHING:
                return None
    if absent:
        parts.append(Absent(tuple(absent)))
    for alternatives in facts.choices:
        part = condition(goals, alternatives, depth - 1)
        if part is None:
            return None
        parts.append(part)
    return Both(tuple(parts))
