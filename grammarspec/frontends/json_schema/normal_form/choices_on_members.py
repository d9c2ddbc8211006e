"""Turns choices about the value of one member into a choice within that member.

"``a`` is a string, or ``a`` is a number" is "``a`` is a string or a number". Such choices come from
``unevaluatedProperties`` beside subschemas that declare one property each, and need not be distributed into
alternatives of the whole object, whose number doubles with each choice.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from grammarspec.frontends.json_schema.document.subschema import ANYTHING, NOTHING, Assertion, Subschema
from grammarspec.frontends.json_schema.json_values import OBJECT
from grammarspec.frontends.json_schema.keywords.combining import AllOf, AnyOf
from grammarspec.frontends.json_schema.keywords.conjunction import Concern, Conjunction
from grammarspec.frontends.json_schema.keywords.objects import Members, Required
from grammarspec.frontends.json_schema.meaning.analysis import Analysis
from grammarspec.frontends.json_schema.meaning.evaluation import property_schemas
from grammarspec.frontends.json_schema.normal_form.choices_on_presence import allows_types

__all__ = ["one_member"]

_KNOWN = Concern.TYPES | Concern.REQUIRED | Concern.MEMBERS


def one_member(goals: Analysis, facts: Conjunction, alternatives: Sequence[Subschema]) -> Subschema | None:
    """The schema that is equivalent to a choice, if its alternatives restrict the value of one member alone.

    Args:
        facts: the conjunction that has the choice.

    Returns:
        The schema, the same for the same alternatives; ``None`` if they restrict anything else.
    """
    gathered = [each for each in (goals.gather([one]) for one in alternatives) if each.types & OBJECT]
    if not all(map(_is_plain, gathered)) or not allows_types(goals, alternatives, facts.types & ~OBJECT):
        return None
    names = {name for each in gathered for name in _restricted(each)}
    if not gathered or len(names) > 1:
        return None
    origin = goals.choice(alternatives)
    made: Subschema = origin.derive("one member", lambda: origin.derived(*_asserted(origin, gathered, *names)))
    return made


def _is_plain(facts: Conjunction) -> bool:
    """Whether a conjunction asks nothing of objects but that declared members are there and have some values."""
    return not facts.asked & ~_KNOWN and not any(
        facet.has_rest or facet.has_patterns or facet.rest is not ANYTHING for facet in facts.objects
    )


def _restricted(facts: Conjunction) -> set[str]:
    """The names of the members of which a conjunction asks something."""
    declared = (item for facet in facts.objects for item in facet.properties.items())
    return {name for name, schema in declared if schema is not ANYTHING}.union(facts.required)


def _asserted(origin: Subschema, gathered: Sequence[Conjunction], name: str | None = None) -> Iterator[Assertion]:
    """What is asked by a choice of conjunctions that restrict the member of this name alone, or nothing."""
    facets = [facet for each in gathered for facet in each.objects]
    members: dict[str, Subschema] = dict.fromkeys((name for facet in facets for name in facet.properties), ANYTHING)
    if name is not None:
        if all(name in each.required for each in gathered):
            yield Required((name,))
        values = [property_schemas(each, name) or [ANYTHING] for each in gathered]
        if [ANYTHING] not in values:
            possible = [origin.derived(AllOf(value)) for value in values if NOTHING not in value]
            members[name] = origin.derived(AnyOf(possible)) if possible else NOTHING
    yield Members(members, in_document=any(facet.in_document for facet in facets))
