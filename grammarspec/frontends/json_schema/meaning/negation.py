"""Negation: a schema for exactly the values that another one refuses, one level at a time.

A schema is the conjunction of its keywords, and each keyword fails only for values of its own type. So the negation is
an ``anyOf`` with one alternative per way in which a keyword fails, "of that type, and failing"; negations of subschemas
stay as ``not`` until they are needed.
"""

from __future__ import annotations

from grammarspec.errors import GrammarSyntaxError, UnsupportedFeature
from grammarspec.frontends.json_schema.document.subschema import ANYTHING, NOTHING, Subschema
from grammarspec.frontends.json_schema.keywords.arrays import Unique
from grammarspec.frontends.json_schema.keywords.combining import AnyOf
from grammarspec.frontends.json_schema.keywords.goals import Goals

__all__ = ["negate"]


def negate(goals: Goals, schema: Subschema) -> Subschema:
    """A schema for the values that ``schema`` refuses: the same one each time.

    Raises:
        GrammarSyntaxError: the schema is malformed.
        UnsupportedFeature: a keyword whose failure cannot be said.
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
        for failure in assertion.failures(goals, schema)
    ]  # fmt: skip
    if not ways:
        if any(isinstance(assertion, Unique) for assertion in schema.assertions):
            # Beside others it is a narrowing that this alternative is left out.
            raise UnsupportedFeature("uniqueItems inside not", where=schema.where("uniqueItems"))
        return NOTHING
    return ways[0] if len(ways) == 1 else schema.derived(AnyOf(ways))
