"""``pattern`` and ``format``, which constrain strings; some formats (``int32``) constrain integers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from grammarspec.frontends.json_schema.document.subschema import Assertion, Subschema
from grammarspec.frontends.json_schema.formats.table import FORMATS
from grammarspec.frontends.json_schema.json_values import FRACTION, NUMBER, STRING
from grammarspec.frontends.json_schema.keywords.conjunction import Concern, Conjunction, TextFacet
from grammarspec.frontends.json_schema.keywords.goals import Goals
from grammarspec.frontends.json_schema.keywords.keyword import Choices, Keyword
from grammarspec.frontends.json_schema.keywords.narrowing import STRINGS, numbers
from grammarspec.frontends.json_schema.keywords.numbers import High, Low
from grammarspec.frontends.json_schema.keywords.types_and_sizes import IS_STRING, Types
from grammarspec.frontends.json_schema.keywords.values import text

__all__ = ["KEYWORDS", "Format", "Text"]


class Text(TextFacet, Assertion):
    """Strings match a pattern or have a format, or (if not ``wanted``) do not."""

    __slots__ = ()

    def add(self, facts: Conjunction, goals: Goals, schema: Subschema) -> None:
        """Add the facet."""
        facts.asked |= Concern.TEXT
        facts.texts = [*facts.texts, self]

    def failures(self, goals: Goals, schema: Subschema) -> Iterator[tuple[Assertion, ...]]:
        """A string for which the opposite holds."""
        yield IS_STRING, Text(self.keyword, self.argument, not self.wanted, self.schema)


class Format(Assertion):
    """``format``: it constrains values only if formats are enforced and this one is known."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def add(self, facts: Conjunction, goals: Goals, schema: Subschema) -> None:
        """Add a facet of the text, or the bounds of a format of integers."""
        integers = goals.integer_format(self.name)
        if integers is not None:
            facts.asked |= Concern.TYPES
            facts.types &= ~FRACTION
            facts.narrow_low(integers[0], False)
            facts.narrow_high(integers[1], False)
        elif goals.asserts_format(self.name):
            self._text(schema).add(facts, goals, schema)

    def failures(self, goals: Goals, schema: Subschema) -> Iterator[tuple[Assertion, ...]]:
        """A string does not have the format, or a number is no integer or out of the bounds of the format."""
        integers = goals.integer_format(self.name)
        if integers is not None:
            yield (Types(FRACTION),)
            yield Types(NUMBER), High(integers[0], True)
            yield Types(NUMBER), Low(integers[1], True)
        elif goals.asserts_format(self.name):
            yield from self._text(schema).failures(goals, schema)

    def _text(self, schema: Subschema) -> Text:
        return Text("format", self.name, True, schema)


def _pattern(schema: Subschema, value: Any) -> Text:
    return Text("pattern", text(schema, "pattern", value), True, schema)


def _format(schema: Subschema, value: Any) -> Format:
    return Format(text(schema, "format", value))


def _pattern_narrowings(value: Any, schema: Mapping[str, Any], choices: Choices, negated: bool) -> Iterator[str]:
    yield STRINGS


def _format_narrowings(value: Any, schema: Mapping[str, Any], choices: Choices, negated: bool) -> Iterator[str]:
    form = FORMATS.get(value)
    if form is None:  # a format of integers
        yield numbers(exponents=True)
        return
    yield STRINGS
    if form.narrowed:
        yield form.narrowed
    if negated and form.excluded:
        yield f"where it is to fail, also all texts {form.excluded}"


KEYWORDS = (
    Keyword("pattern", parse=_pattern, makes=(Text,), about=STRING, narrowings=_pattern_narrowings),
    Keyword(
        "format",
        parse=_format,
        makes=(Format,),
        about=STRING,
        vocabularies=("format", "format-annotation", "format-assertion"),
        narrowings=_format_narrowings,
    ),
)
