"""Negation: makes a schema for exactly the values that another one refuses.

A schema is the conjunction of its keywords (De Morgan), and a keyword fails only for values of the type it is about. So
the negation is an ``anyOf`` with one alternative per way in which a keyword can fail: "the value has that type, and the
keyword fails". Only the outermost level is negated: subschemas stay under ``not`` until their own negation is needed.
"""

from __future__ import annotations

from grammarspec.errors import GrammarSyntaxError, UnsupportedFeature
from grammarspec.frontends.json_schema.document.subschema import ANYTHING, NOTHING, Assertion, Subschema
from grammarspec.frontends.json_schema.json_values import type_of
from grammarspec.frontends.json_schema.keywords.arrays import Unique
from grammarspec.frontends.json_schema.keywords.combining import AnyOf
from grammarspec.frontends.json_schema.keywords.constants import Constants
from grammarspec.frontends.json_schema.keywords.goals import Goals
from grammarspec.frontends.json_schema.keywords.types_and_sizes import Types

__all__ = ["negate"]


def negate(goals: Goals, schema: Subschema) -> Subschema:
    """A schema for exactly the values that ``schema`` refuses; for the same schema, the same object.

    Raises:
        GrammarSyntaxError: the schema is malformed.
        UnsupportedFeature: the only keyword that can fail is ``uniqueItems``, whose failure cannot be expressed.
    """
    if schema is ANYTHING:
        return NOTHING
    if schema is NOTHING:
        return ANYTHING
    if schema.is_malformed:
        raise GrammarSyntaxError("not must be a schema", where=schema.pointer)
    negation: Subschema = schema.derive("not", lambda: _negation(goals, schema))
    return negation


def _negation(goals: Goals, schema: Subschema) -> Subschema:
    ways = [
        schema.derived(*failure)
        for assertion in schema.assertions
        if not _follows(assertion, schema)
        for failure in assertion.failures(goals, schema)
    ]
    if not ways:
        if any(isinstance(assertion, Unique) for assertion in schema.assertions):
            # Beside other keywords, the alternative in which uniqueItems fails is left out: a narrowing.
            raise UnsupportedFeature("uniqueItems inside not", where=schema.where("uniqueItems"))
        return NOTHING
    return ways[0] if len(ways) == 1 else schema.derived(AnyOf(ways))


def _follows(assertion: Assertion, schema: Subschema) -> bool:
    """Whether an assertion is about types, and the constants that are listed beside it have these.

    Then it fails only for what is none of the constants.
    """
    return isinstance(assertion, Types) and any(
        isinstance(other, Constants) and all(type_of(constant) & assertion.bits for constant in other.values)
        for other in schema.assertions
    )
