"""Boolean conditions on which members of an object are present, such as ``anyOf`` of several ``required``."""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass

__all__ = [
    "Absent",
    "Both",
    "Either",
    "Presence",
    "Present",
    "allows_none",
    "apart",
    "holds_of_all",
    "names_in",
    "wanted",
]


@dataclass(frozen=True, slots=True)
class Present:
    """All of these members are present."""

    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Absent:
    """None of these members is present."""

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


def names_in(asked: Presence) -> set[str]:
    """The names of the members that a condition mentions."""
    if isinstance(asked, Present | Absent):
        return set(asked.names)
    return {name for part in asked.parts for name in names_in(part)}


def allows_none(asked: Presence) -> bool:
    """Whether a condition holds of the empty object."""
    match asked:
        case Present():
            return False
        case Absent():
            return True
        case Both():
            return all(map(allows_none, asked.parts))
    return any(map(allows_none, asked.parts))


def holds_of_all(asked: Presence, names: Container[str]) -> bool:
    """Whether a condition holds of any object that has all these members and may have others that it mentions."""
    match asked:
        case Present():
            return all(name in names for name in asked.names)
        case Absent():
            return False
        case Both():
            return all(holds_of_all(part, names) for part in asked.parts)
    return any(holds_of_all(part, names) for part in asked.parts)


def wanted(asked: Presence) -> set[str]:
    """The names of the members whose presence can help to satisfy a condition."""
    if isinstance(asked, Present):
        return set(asked.names)
    if isinstance(asked, Absent):
        return set()
    return {name for part in asked.parts for name in wanted(part)}


def apart(conditions: Sequence[Presence]) -> list[list[Presence]]:
    """The conditions in groups, such that those of different groups mention no member in common."""
    groups: list[tuple[set[str], list[Presence]]] = []
    for condition in conditions:
        names, together = names_in(condition), [condition]
        others = []
        for group in groups:
            if group[0].isdisjoint(names):
                others.append(group)
            else:
                names |= group[0]
                together = group[1] + together
        groups = [*others, (names, together)]
    return [together for _, together in groups]
