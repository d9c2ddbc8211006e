"""Conditions on which members are present, and nothing else: ``required`` in ``anyOf``, ``dependentRequired``, ...

Where the order of members is free, an object's rules know which of them have been written. So such conditions need not
be multiplied out into alternatives of the object: they are asked where it ends.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from grammarspec.frontends.json_schema.document.document import Schema
    from grammarspec.frontends.json_schema.meaning.analysis import Analysis
    from grammarspec.frontends.json_schema.meaning.conjunction import Conjunction

__all__ = ["Absent", "Both", "Either", "Presence", "Present", "allows_none", "condition", "names_in", "wanted"]


@dataclass(frozen=True, slots=True)
class Present:
    """All of these members are there."""

    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Absent:
    """None of these members is there."""

    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Both:
    """All of these conditions hold."""

    parts: tuple[Presence, ...]


@dataclass(frozen=True, slots=True)
class Either:
    """One of these conditions holds."""

    parts: tuple[Presence, ...]


Presence = Present | Absent | Both | Either

_KNOWN = frozenset(("members", "types", "required", "objects", "choices", "places"))
_MAX_DEPTH = 4


def condition(analysis: Analysis, alternatives: Sequence[Schema], depth: int = _MAX_DEPTH) -> Presence | None:
    """The condition on an object's members that one of these schemas holds; ``None`` if they ask for more than that."""
    if depth == 0:
        return None
    from grammarspec.frontends.json_schema.meaning.conjunction import OBJECT

    parts = []
    for alternative in alternatives:
        facts = analysis.gather([alternative])
        if facts.types & OBJECT:
            part = _of(analysis, facts, depth)
            if part is None:
                return None
            parts.append(part)
    return Either(tuple(parts))


def _of(analysis: Analysis, facts: Conjunction, depth: int) -> Presence | None:
    if not facts.__dict__.keys() <= _KNOWN:
        return None
    parts: list[Presence] = []
    if facts.required:
        parts.append(Present(tuple(facts.required)))
    absent = []
    for properties, patterns, additional in facts.objects:
        if patterns or additional is not True:
            return None
        for name, value in properties.items():
            if value is False:
                absent.append(name)
            elif value is not True:
                return None
    if absent:
        parts.append(Absent(tuple(absent)))
    for alternatives in facts.choices:
        part = condition(analysis, alternatives, depth - 1)
        if part is None:
            return None
        parts.append(part)
    return Both(tuple(parts))


def names_in(asked: Presence) -> set[str]:
    """The members that a condition is about."""
    if isinstance(asked, Present | Absent):
        return set(asked.names)
    return {name for part in asked.parts for name in names_in(part)}


def allows_none(asked: Presence) -> bool:
    """Whether a condition holds of no members."""
    match asked:
        case Present():
            return False
        case Absent():
            return True
        case Both():
            return all(map(allows_none, asked.parts))
    return any(map(allows_none, asked.parts))


def wanted(asked: Presence) -> set[str]:
    """The members whose presence a condition may need."""
    if isinstance(asked, Present):
        return set(asked.names)
    if isinstance(asked, Absent):
        return set()
    return {name for part in asked.parts for name in wanted(part)}
