"""Turns choices that only restrict which members an object has into conditions on the presence of members.

An example is ``anyOf`` of several ``required``. If members may come in any order, the rules of an object remember which
members have been written. They can then test such a condition at the end of the object, so the choice need not be
distributed into alternatives of the whole object, whose number doubles with each choice.
"""

from __future__ import annotations

from collections.abc import Sequence

from grammarspec.frontends.json_schema.document.subschema import ANYTHING, NOTHING, Subschema
from grammarspec.frontends.json_schema.json_values import OBJECT
from grammarspec.frontends.json_schema.keywords.conjunction import Concern, Conjunction
from grammarspec.frontends.json_schema.keywords.goals import Goals
from grammarspec.frontends.json_schema.normal_form.presence import Absent, Both, Either, Presence, Present

__all__ = ["allows_types", "condition", "conditions"]

_KNOWN = Concern.TYPES | Concern.REQUIRED | Concern.MEMBERS | Concern.CHOICES
_MAX_DEPTH = 4


def conditions(goals: Goals, facts: Conjunction) -> list[Presence]:
    """The choices of a conjunction as conditions on the presence of members; none if one of them asks anything else."""
    found: list[Presence] = []
    for alternatives in facts.choices:
        one = condition(goals, alternatives)
        if one is None or not allows_types(goals, alternatives, facts.types & ~OBJECT):
            return []
        found.append(one)
    return found


def allows_types(goals: Goals, alternatives: Sequence[Subschema], types: int) -> bool:
    """Whether one of these schemas plainly allows all values of some types, which are not asked for anything else."""
    if not types:
        return True
    gathered = (goals.gather([alternative]) for alternative in alternatives)
    return any(
        facts.types & types == types
        and not facts.asked & ~_KNOWN
        and all(allows_types(goals, choice, types) for choice in facts.choices)
        for facts in gathered
    )


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
    return _either(parts)


def _either(parts: Sequence[Presence]) -> Presence:
    """One of some conditions. That x is absent, or present with other members, is that it is absent or they are there.

    So what such conditions ask can be seen from their parts.
    """
    single = {part.names[0] for part in parts if isinstance(part, Absent) and len(part.names) == 1}
    kept = [_without(part, single) for part in parts]
    return kept[0] if len(kept) == 1 else Either(tuple(kept))


def _without(asked: Presence, known: set[str]) -> Presence:
    """A condition on objects that are known to have some members."""
    match asked:
        case Present(names):
            left = tuple(name for name in names if name not in known)
            return Present(left) if left else Both(())
        case Both(parts):
            return _both([_without(part, known) for part in parts])
    return asked


def _both(parts: Sequence[Presence]) -> Presence:
    return parts[0] if len(parts) == 1 else Both(tuple(parts))


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
    return _both(parts)
