"""Existential conditions on members: "there is a member such that", as the negation of ``additionalProperties`` asks.

Such a condition becomes a disjunction: one of the declared members satisfies it, or an undeclared member does.
"""

from __future__ import annotations

from grammarspec.errors import UnsupportedFeature
from grammarspec.frontends.json_schema.document.subschema import NOTHING, Subschema
from grammarspec.frontends.json_schema.keywords.conjunction import Conjunction
from grammarspec.frontends.json_schema.keywords.goals import Goals
from grammarspec.frontends.json_schema.keywords.objects import Members, Required, SomeUndeclared
from grammarspec.frontends.json_schema.keywords.types_and_sizes import IS_OBJECT
from grammarspec.frontends.json_schema.meaning.evaluation import may_be
from grammarspec.frontends.regex.matching import few_texts

__all__ = ["some_alternatives"]


def some_alternatives(goals: Goals, facts: Conjunction) -> tuple[list[Subschema], list[Subschema]]:
    """The first existential condition of a conjunction (``facts.some``) as alternatives.

    There is an alternative for each declared name that the condition allows, and one for an undeclared member.

    Returns:
        The subschemas of the conjunction without the one that has the condition, and the alternatives.

    Raises:
        UnsupportedFeature: it is unknown whether the condition allows a declared name.
    """
    some = facts.some[0]
    base = facts.base
    asked = next(schema for schema in base if id(some) in map(id, schema.assertions))
    rest = [schema for schema in base if schema is not asked]
    names = dict.fromkeys(name for facet in facts.objects for name in facet.properties)
    names.update(facts.required)
    few = None if some.within is None else few_texts(some.within)
    names.update(dict.fromkeys(few or ()))

    def alternatives() -> list[Subschema]:
        made: list[Subschema] = []
        for name in names:
            answer = may_be(goals, some, name)
            if answer is None:
                raise UnsupportedFeature(f"whether {name!r} is among the names meant", where=asked.pointer)
            if answer:
                made.append(asked.derived(IS_OBJECT, Required((name,)), Members({name: some.value})))
        if few is None and not any(facet.rest is NOTHING and not facet.patterns for facet in facts.objects):
            made.append(asked.derived(IS_OBJECT, SomeUndeclared(*some)))
        return made

    return rest, asked.derive(("some", *names), alternatives)
