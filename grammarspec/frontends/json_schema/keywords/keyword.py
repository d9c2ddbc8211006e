"""The record of a keyword, with everything that the front-end knows about it.

A keyword has one :class:`Keyword` for each range of dialects in which its meaning is the same. For most keywords, the
record *parses* the value to an assertion: a typed record that can add its constraint to a conjunction and list the ways
in which it fails. Some keywords are *read with* another one (``then`` with ``if``), whose record parses both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

from grammarspec.frontends.json_schema.document.dialects import Dialect
from grammarspec.frontends.json_schema.document.subschema import Parser
from grammarspec.frontends.json_schema.json_values import ALL_TYPES

__all__ = ["Choices", "Holds", "Keyword", "Narrowings", "Neutral", "Role", "always", "drop", "never", "replace_by_true"]


class Role(Enum):
    """The purpose of a keyword."""

    ASSERTION = auto()
    """It constrains values."""
    ANNOTATION = auto()
    """It constrains nothing."""
    IDENTIFIER = auto()
    """It names a schema, or holds schemas that references point to."""


class Holds(Enum):
    """Where the value of a keyword has subschemas: it is one, or a list or a map of them."""

    NOTHING = auto()
    ONE = auto()
    LIST = auto()
    ONE_OR_LIST = auto()
    MAP = auto()
    MAP_OR_NAMES = auto()
    """A map of which some values are lists of names."""

    def children(self, keyword: str, value: Any) -> Iterator[tuple[tuple[str, ...], Any]]:
        """The path and the value of each subschema in the value of a keyword, malformed ones included."""
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
    """The options of :func:`grammarspec.json_schema` on which the narrowings of keywords depend."""

    any_order: bool = False
    closed: bool = False
    plain: bool = False
    minimal: bool = False
    ensure_ascii: bool = False
    draft_4: bool = False
    """Integers have no fraction and no exponent."""


Narrowings = Callable[[Any, Mapping[str, Any], Choices, bool], Iterator[str]]
"""Describes the narrowings of a keyword: the ways in which the grammar has fewer texts than JSON Schema allows.

Arguments: the value of the keyword, all keywords of its schema, the options, and whether the schema may be negated.
"""

Neutral = Callable[[dict[str, Any], str, tuple[str, ...]], None]
"""Changes a copy of a schema so that a keyword constrains nothing, without a change to what other keywords mean.

For example, the names in ``properties`` stay declared, so that ``additionalProperties`` still does not apply to them.
Arguments: the copy, the name of the keyword, and the path within its value of the part that cannot be enforced.
"""


def drop(schema: dict[str, Any], keyword: str, path: tuple[str, ...]) -> None:
    """Remove the keyword."""
    del schema[keyword]


def replace_by_true(schema: dict[str, Any], keyword: str, path: tuple[str, ...]) -> None:
    """Replace the value of the keyword by ``true``, which allows everything."""
    schema[keyword] = True


def _exact(value: Any, schema: Mapping[str, Any], choices: Choices, negated: bool) -> Iterator[str]:
    """No narrowings: the keyword is enforced exactly."""
    return iter(())


def never(keywords: Mapping[str, Any]) -> bool:
    """The keyword never tests whether a subschema fails."""
    return False


def always(keywords: Mapping[str, Any]) -> bool:
    """The keyword always tests whether a subschema fails."""
    return True


@dataclass(frozen=True, slots=True, eq=False)
class Keyword:
    """The record of a keyword.

    Attributes:
        name: as schemas write it.
        role: its purpose.
        parse: makes its assertion; ``None`` if the record of another keyword parses it, or if it asserts nothing.
        makes: the classes of the assertions that it is parsed to.
        holds: where its value has subschemas.
        in_place: whether these apply to the same value, and not to parts of it.
        read_with: keywords of which at least one must be present for it to have a meaning.
        about: the types, as bits, of the values that it can refuse; values of other types satisfy it.
        since, until: the years of the first and the last dialect that has it (4, 6, 7, 2019 or 2020).
        vocabularies: the vocabularies of 2019-09 and 2020-12 that have it; one of them must be active.
        tests: whether it, in a schema with these keywords, tests its subschemas (as ``not`` does), so that a weaker
            subschema may make the whole schema stricter.
        narrowings: describes where the grammar has fewer texts than the keyword allows.
        neutral: leaves it out of a schema.
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
            active |= {"unevaluated"}  # from 2020 on, this is a vocabulary of its own
        return not active.isdisjoint(self.vocabularies)
