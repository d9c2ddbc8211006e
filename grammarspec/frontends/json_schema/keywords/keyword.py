"""The record of a keyword: all that is known about it, in one place.

A keyword has a :class:`Keyword` for each range of dialects in which it means the same. Most are read by themselves:
their record *parses* the value to an assertion, a typed record that adds itself to a conjunction and knows how it
fails. Some are *read with* another keyword, whose record then parses both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

from grammarspec.frontends.json_schema.document.dialects import Dialect
from grammarspec.frontends.json_schema.document.subschema import Parser
from grammarspec.frontends.json_schema.keywords.json_values import ALL_TYPES

__all__ = ["Choices", "Holds", "Keyword", "Narrowings", "Neutral", "Role", "always", "drop", "never", "replace_by_true"]


class Role(Enum):
    """What a keyword is for."""

    ASSERTION = auto()
    """It asks something of a value."""
    ANNOTATION = auto()
    """It asks nothing."""
    IDENTIFIER = auto()
    """It names schemas, or holds those that references name."""


class Holds(Enum):
    """Where the subschemas of a keyword stand in its value."""

    NOTHING = auto()
    ONE = auto()
    LIST = auto()
    ONE_OR_LIST = auto()
    MAP = auto()
    MAP_OR_NAMES = auto()
    """A map of which some values are lists of names."""

    def children(self, keyword: str, value: Any) -> Iterator[tuple[tuple[str, ...], Any]]:
        """The path and the value of each, malformed or not."""
        if isinstance(value, list) and self in (Holds.LIST, Holds.ONE_OR_LIST):
            for i, part in enumerate(value):
                yield (keyword, str(i)), part
        elif self in (Holds.ONE, Holds.ONE_OR_LIST):
            yield (keyword,), value
        elif isinstance(value, dict) and self in (Holds.MAP, Holds.MAP_OR_NAMES):
            for name, part in value.items():
                if self is Holds.MAP or not isinstance(part, list):
                    yield (keyword, str(name)), part


@dataclass(frozen=True, slots=True)
class Choices:
    """The options that decide what is narrowed, as :func:`grammarspec.json_schema` takes them."""

    any_order: bool = False
    closed: bool = False
    plain: bool = False
    minimal: bool = False
    ensure_ascii: bool = False
    draft_4: bool = False
    """Integers have no fraction and no exponent."""


Narrowings = Callable[[Any, Mapping[str, Any], Choices, bool], Iterator[str]]
"""From the value, the keywords that it stands among, the options, and whether the schema may have to fail, to the ways
in which fewer texts are allowed than JSON Schema does."""

Neutral = Callable[[dict[str, Any], str, tuple[str, ...]], None]
"""Changes a copy of a schema so that a keyword asks nothing, and still says to others what it says.

Arguments: the copy, the name of the keyword, and the path within its value of what is refused.
"""


def drop(schema: dict[str, Any], keyword: str, path: tuple[str, ...]) -> None:
    """The keyword goes."""
    del schema[keyword]


def replace_by_true(schema: dict[str, Any], keyword: str, path: tuple[str, ...]) -> None:
    """The keyword allows everything."""
    schema[keyword] = True


def _exact(value: Any, schema: Mapping[str, Any], choices: Choices, negated: bool) -> Iterator[str]:
    return iter(())


def never(keywords: Mapping[str, Any]) -> bool:
    """No subschema's failing matters."""
    return False


def always(keywords: Mapping[str, Any]) -> bool:
    """A subschema's failing matters."""
    return True


@dataclass(frozen=True, slots=True, eq=False)
class Keyword:
    """What is known about a keyword.

    Attributes:
        name: as schemas write it.
        role: what it is for.
        parse: what it asserts; ``None`` if another one's record parses it, or if it asserts nothing.
        makes: the kinds of assertions that it is parsed to.
        holds: which subschemas it holds.
        in_place: whether they apply to the same value, so that it is resolved before values are looked at.
        read_with: the keywords without one of which it says nothing.
        about: the types of the values that it can refuse, as bits; all others satisfy it.
        since, until: the years of the first and the last dialect that has it (4, 6, 7, 2019 or 2020).
        vocabularies: those of 2019-09 and 2020-12 that have it: it is known if one of them is.
        tests: whether it matters, beside these keywords, that a subschema fails, and not only that it holds.
        narrowings: where fewer texts are allowed than it asks for.
        neutral: how it is left out.
    """

    name: str
    role: Role = Role.ASSERTION
    parse: Parser | None = None
    makes: tuple[type, ...] = ()
    holds: Holds = Holds.NOTHING
    in_place: bool = False
    read_with: tuple[str, ...] = ()
    about: int = ALL_TYPES
    since: int = 4
    until: int = 2020
    vocabularies: tuple[str, ...] = ("validation",)
    tests: Callable[[Mapping[str, Any]], bool] = never
    narrowings: Narrowings = _exact
    neutral: Neutral = drop

    def is_of(self, dialect: Dialect) -> bool:
        """Whether a dialect has the keyword."""
        if not self.since <= dialect.year <= self.until:
            return False
        active = dialect.vocabularies
        if active is None or self.role is not Role.ASSERTION:
            return True
        if dialect.year == 2019 and "applicator" in active:
            active |= {"unevaluated"}  # which is a vocabulary of its own from 2020 on
        return not active.isdisjoint(self.vocabularies)
