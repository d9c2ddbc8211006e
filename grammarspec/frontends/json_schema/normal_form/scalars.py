"""The shapes of strings and numbers."""

from __future__ import annotations

from decimal import Decimal
from functools import partial

from grammarspec.frontends.json_schema.json_values import FRACTION, INTEGER, NUMBER, type_of
from grammarspec.frontends.json_schema.keywords.conjunction import Concern, Conjunction, TextFacet
from grammarspec.frontends.json_schema.normal_form.shapes import ANY_STRING, Format, NumberShape, Pattern, StringShape

__all__ = ["number_shape", "string_shape"]


def string_shape(facts: Conjunction) -> StringShape:
    """What a conjunction asks of strings."""
    if not facts.asked & (Concern.LENGTH | Concern.TEXT | Concern.EXCLUDED):
        return ANY_STRING
    if not facts.asked & (Concern.TEXT | Concern.EXCLUDED):
        return StringShape(facts.min_length, facts.max_length)
    excluded = [constant for constant in facts.excluded if isinstance(constant, str)]
    return StringShape(facts.min_length, facts.max_length, [_text(facet) for facet in facts.texts], excluded)


def _text(facet: TextFacet) -> Pattern | Format:
    if facet.keyword == "pattern":
        return Pattern(facet.argument, partial(facet.schema.where, "pattern"), facet.wanted)
    return Format(facet.argument, facet.wanted)


def number_shape(facts: Conjunction, *, digits_only: bool) -> NumberShape:
    """What a conjunction asks of numbers.

    Args:
        digits_only: whether integers are spelled with digits only.
    """
    types = facts.types & NUMBER
    digits_only = digits_only and types == INTEGER
    if types != FRACTION and not facts.asked & (Concern.NUMBER | Concern.EXCLUDED):
        return NumberShape(types, digits_only=digits_only)
    excluded = [
        Decimal(repr(number)) if isinstance(number, float) else number
        for number in facts.excluded
        if type_of(number) & types
    ]
    return NumberShape(types, facts.low, facts.high, facts.multiples, excluded, digits_only)
