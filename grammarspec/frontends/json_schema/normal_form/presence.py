"""Boolean conditions on which members of an object are present, such as ``anyOf`` of several ``required``."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Absent", "Both", "Either", "Presence", "Present", "allows_none", "names_in", "wanted"]


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


def wanted(asked: Presence) -> set[str]:
    """The names of the members whose presence can help to satisfy a condition."""
    if isinstance(asked, Present):
        return set(asked.names)
    if isinstance(asked, Absent):
        return set()
    return {name for part in asked.parts for name in wanted(part)}
