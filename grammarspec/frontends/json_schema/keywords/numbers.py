"""Bounds and divisors of numbers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from grammarspec.frontends.json_schema.document.subschema import Assertion, Parser, Subschema
from grammarspec.frontends.json_schema.json_values import NUMBER, Number
from grammarspec.frontends.json_schema.keywords.conjunction import Concern, Conjunction
from grammarspec.frontends.json_schema.keywords.goals import Goals
from grammarspec.frontends.json_schema.keywords.keyword import Choices, Keyword
from grammarspec.frontends.json_schema.keywords.narrowing import numbers
from grammarspec.frontends.json_schema.keywords.types_and_sizes import Types
from grammarspec.frontends.json_schema.keywords.values import number

__all__ = ["KEYWORDS", "High", "Low", "Multiple"]

_IS_NUMBER = Types(NUMBER)


@dataclass(slots=True, eq=False)
class Low(Assertion):
    """Numbers are at least this value, or (if ``exclusive``) greater."""

    value: Number
    exclusive: bool

    def add(self, facts: Conjunction, goals: Goals, schema: Subschema) -> None:
        """Raise the lower bound."""
        facts.narrow_low(self.value, self.exclusive)

    def failures(self, goals: Goals, schema: Subschema) -> Iterator[tuple[Assertion, ...]]:
        """The number is below the bound."""
        yield _IS_NUMBER, High(self.value, not self.exclusive)


@dataclass(slots=True, eq=False)
class High(Assertion):
    """Numbers are at most this value, or (if ``exclusive``) less."""

    value: Number
    exclusive: bool

    def add(self, facts: Conjunction, goals: Goals, schema: Subschema) -> None:
        """Lower the upper bound."""
        facts.narrow_high(self.value, self.exclusive)

    def failures(self, goals: Goals, schema: Subschema) -> Iterator[tuple[Assertion, ...]]:
        """The number is above the bound."""
        yield _IS_NUMBER, Low(self.value, not self.exclusive)


@dataclass(slots=True, eq=False)
class Multiple(Assertion):
    """Numbers are multiples of a divisor, or (if not ``wanted``) are not."""

    divisor: Number
    wanted: bool = True

    def add(self, facts: Conjunction, goals: Goals, schema: Subschema) -> None:
        """Add the divisor."""
        facts.asked |= Concern.NUMBER
        facts.multiples = [*facts.multiples, (self.divisor, self.wanted)]

    def failures(self, goals: Goals, schema: Subschema) -> Iterator[tuple[Assertion, ...]]:
        """A number for which the opposite holds."""
        yield _IS_NUMBER, Multiple(self.divisor, not self.wanted)


def _bound(kind: type[Low] | type[High], keyword: str, *, exclusive: bool) -> Parser:
    return lambda schema, value: kind(number(schema, keyword, value), exclusive)


def _bound_of_draft_4(kind: type[Low] | type[High], keyword: str, modifier: str) -> Parser:
    """A parser of a bound of draft 4, where another keyword says whether the bound is exclusive."""

    def parse(schema: Subschema, value: Any) -> Assertion:
        exclusive = schema.keywords.get(modifier, False)
        if not isinstance(exclusive, bool):
            raise schema.malformed(modifier, "a boolean in draft 4")
        return kind(number(schema, keyword, value), exclusive)

    return parse


def _multiple_of(schema: Subschema, value: Any) -> Multiple:
    divisor = number(schema, "multipleOf", value)
    if divisor <= 0:
        raise schema.malformed("multipleOf", "greater than 0")
    return Multiple(divisor)


def _bound_narrowings(value: Any, schema: Mapping[str, Any], choices: Choices, negated: bool) -> Iterator[str]:
    if "multipleOf" not in schema:
        yield numbers(exponents=not (choices.plain or (choices.draft_4 and schema.get("type") == "integer")))


def _multiple_of_narrowings(value: Any, schema: Mapping[str, Any], choices: Choices, negated: bool) -> Iterator[str]:
    yield numbers(exponents=False)


def _bounds(kind: type[Low] | type[High], inclusive: str, exclusive: str) -> tuple[Keyword, ...]:
    """The records of the two keywords of a bound, for draft 4 and for later dialects."""
    about = {"makes": (kind,), "about": NUMBER, "narrowings": _bound_narrowings}
    return (
        Keyword(inclusive, parse=_bound_of_draft_4(kind, inclusive, exclusive), until=4, **about),  # type: ignore[arg-type]
        Keyword(exclusive, read_with=(inclusive,), until=4, about=NUMBER, narrowings=_bound_narrowings),
        Keyword(inclusive, parse=_bound(kind, inclusive, exclusive=False), since=6, **about),  # type: ignore[arg-type]
        Keyword(exclusive, parse=_bound(kind, exclusive, exclusive=True), since=6, **about),  # type: ignore[arg-type]
    )


KEYWORDS = (
    *_bounds(Low, "minimum", "exclusiveMinimum"),
    *_bounds(High, "maximum", "exclusiveMaximum"),
    Keyword("multipleOf", parse=_multiple_of, makes=(Multiple,), about=NUMBER, narrowings=_multiple_of_narrowings),
)
