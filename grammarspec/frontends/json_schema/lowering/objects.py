"""Objects: makes the node of the objects that satisfy a conjunction.

Declared members come in the order of their declaration, and undeclared ones anywhere between them. ``K(i)`` is "the
i-th or a later declared member, and the rest"; ``T(i)`` is "the rest after a member, in which only the i-th and later
declared members may still come"::

    K(i) = member(i) T(i+1)  |  K(i+1) if i is optional
    T(i) = ("," undeclared)*  ("," K(i)  |  nothing, if all from i on are optional)

Each of these is one node that contains the next ones, so the size is linear in the number of members. Objects for which
the members written so far must be remembered are made in ``members.py``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import combinations

from grammarspec.errors import UnsupportedFeature
from grammarspec.frontends.json_schema.document.subschema import NOTHING, Subschema
from grammarspec.frontends.json_schema.keywords.conjunction import Concern, Conjunction
from grammarspec.frontends.json_schema.keywords.constants import Constants
from grammarspec.frontends.json_schema.keywords.presence import names_in
from grammarspec.frontends.json_schema.keywords.unevaluated import UnevaluatedMembers
from grammarspec.frontends.json_schema.lowering.context import Lowering
from grammarspec.frontends.json_schema.lowering.keys import has_endless_names, undeclared_members
from grammarspec.frontends.json_schema.lowering.members import Asked, Member, remembered_members
from grammarspec.frontends.json_schema.lowering.strings import pattern_text
from grammarspec.frontends.json_schema.meaning.evaluation import holds, property_schemas
from grammarspec.frontends.json_schema.spelling.builder import CHAIN

__all__ = ["object_node"]

_MAX_KINDS = 4  # conditions in ``witnesses``, of which one member may satisfy several


def object_node(lowering: Lowering, facts: Conjunction) -> int:
    """The node of the objects that a conjunction allows.

    Raises:
        UnsupportedFeature: a combination of keywords about names cannot be enforced.
    """
    b, text = lowering.builder, lowering.text
    if not facts.asked & (Concern.MEMBERS | Concern.REQUIRED | Concern.SIZE | Concern.PRESENCE):
        return text.object
    least, most = facts.min_properties, facts.max_properties
    asked = (facts.objects, facts.required, facts.names, facts.witnesses, facts.presence, least)
    if not any(asked) and most is None:
        return text.object
    if most is not None and (most < least or most < len(facts.required)):
        return b.nothing
    names, values, ordered = _declared(lowering, facts)
    members = []
    for i, (name, value) in enumerate(zip(names, values, strict=True)):
        if value != b.nothing:
            node = text.member(text.name(name), value)
            members.append(Member(node, name in facts.required, lowering.any_order or i >= ordered, name))
        elif name in facts.required:
            return b.nothing
    undeclared = None if _is_closed(lowering, facts) else undeclared_members(lowering, facts, names)
    if least <= len(facts.required):
        least = 0
    # several undeclared members may have to count, so their names must differ
    many = least > 1 or bool(facts.witnesses)
    endless = many and undeclared is not None and has_endless_names(lowering, facts)
    distinct = undeclared is not None and (text.distinct or (least > 1 and endless))
    witnesses: Sequence[tuple[int, tuple[int, ...]]] = ()
    if facts.witnesses:
        all_endless = endless and all(has_endless_names(lowering, facts, witness) for witness in facts.witnesses)
        if distinct and not all_endless:
            where = facts.first.pointer
            raise UnsupportedFeature("negated patternProperties or the like, of few names, with unique items", where)
        distinct = distinct or all_endless
        witnesses = _witnesses(lowering, facts, names, distinct=distinct)
        if not witnesses:
            return b.nothing
    if most is not None and undeclared is None and not witnesses and most >= len(members):
        most = None
    if least > len(members) + (undeclared is not None or bool(witnesses)) and not endless:
        if undeclared is None:
            return b.nothing
        where = facts.where("minProperties", "maxProperties")
        hint = "declare more properties, or let the names of the others be any"
        raise UnsupportedFeature("minProperties that takes several undeclared properties of few names", where, hint)
    free = any(member.free for member in members) and len(members) + (undeclared is not None) > 1
    if not (least > 1 or most is not None or witnesses or distinct or facts.presence or free):
        return _chain(lowering, members, undeclared, may_be_empty=least == 0 and not facts.required)
    few = bool(facts.names or facts.witnesses or any(facet.patterns for facet in facts.objects))
    together = Asked(undeclared, witnesses, least, most, distinct, few, facts.presence)
    return remembered_members(lowering, members, together)


def _witnesses(
    lowering: Lowering, facts: Conjunction, names: Sequence[str], *, distinct: bool
) -> list[tuple[int, tuple[int, ...]]]:
    """The nodes of the undeclared members that the conditions ``facts.witnesses`` need.

    Args:
        names: the declared names.
        distinct: whether names differ, so that different members may satisfy different conditions; otherwise one member
            must satisfy all of them.

    Returns:
        Each node with the indices of the conditions it satisfies (0 alone if not ``distinct``); empty if some condition
        cannot be satisfied.

    Raises:
        UnsupportedFeature: one member would have to satisfy several conditions and cannot.
    """
    kinds = range(len(facts.witnesses))
    sets = [tuple(kinds)]
    if distinct:
        sizes = range(len(kinds), 0, -1) if len(kinds) <= _MAX_KINDS else (len(kinds), 1)
        sets = [which for size in sizes for which in combinations(kinds, size)]
    found = []
    for which in sets:
        node = undeclared_members(lowering, facts, names, [facts.witnesses[i] for i in which])
        if node is not None:
            found.append((node, which if distinct else (0,)))
    if not distinct and len(kinds) > 1 and (not found or lowering.builder.is_barren(found[0][0])):
        where = facts.first.pointer
        raise UnsupportedFeature("several negated patternProperties or the like, of few names", where)
    return [] if len({i for _, which in found for i in which}) < (len(kinds) if distinct else 1) else found


def _is_closed(lowering: Lowering, facts: Conjunction) -> bool:
    """Whether undeclared members are left out by default (the narrowing ``additional_properties=False``).

    They are if the document declares properties, and no subschema has a keyword about other members.
    """
    if not lowering.closed or facts.witnesses or any(facet.has_rest or facet.has_patterns for facet in facts.objects):
        return False
    if any(isinstance(asked, UnevaluatedMembers) for schema in facts.members for asked in schema.assertions):
        return False
    return any(facet.in_document and _declares(facet.properties) for facet in facts.objects)


def _declares(properties: Mapping[str, Subschema]) -> bool:
    """Whether ``properties`` declares a member that may be present, or is empty."""
    return not properties or any(value is not NOTHING for value in properties.values())


def _declared(lowering: Lowering, facts: Conjunction) -> tuple[list[str], list[int], int]:
    """The declared members.

    Returns:
        The names, the node of the value of each, and how many of them (from the first on) are in order; those after may
        come anywhere.
    """
    if len(facts.objects) == 1 and not facts.objects[0].patterns and not facts.names:
        facet = facts.objects[0]
        names = list(facet.properties)
        values = [lowering.lower((schema,)) for schema in facet.properties.values()]
        for name in _further_names(facts):
            if name not in facet.properties:
                names.append(name)
                values.append(lowering.lower((facet.rest,)))
        return names, values, len(facet.properties)
    order: dict[str, None] = {}
    for i, facet in enumerate(facts.objects):
        some = facet.properties
        # a facet that declares more decides the order
        if not any(some.keys() < other.properties.keys() for other in facts.objects):
            order.update(dict.fromkeys(some))
        elif i == 0:
            order.update((name, None) for name, schema in some.items() if _is_constant(schema))
    ordered = len(order)
    order.update(_further_names(facts))
    return list(order), [_value(lowering, facts, name) for name in order], ordered


def _is_constant(schema: Subschema) -> bool:
    """Whether a subschema has a ``const`` (or an ``enum`` of one value), as the tag of a discriminated union has."""
    return not schema.is_malformed and any(
        isinstance(assertion, Constants) and len(assertion.values) == 1 for assertion in schema.assertions
    )


def _further_names(facts: Conjunction) -> dict[str, None]:
    """Names that count as declared as they are required, or as a condition on presence mentions them."""
    if not facts.presence:
        return dict(facts.required)
    return {**facts.required, **dict.fromkeys(sorted(set().union(*map(names_in, facts.presence))))}


def _value(lowering: Lowering, facts: Conjunction, name: str) -> int:
    """The node of the value of a declared member.

    Raises:
        UnsupportedFeature: it cannot be decided whether a pattern or ``propertyNames`` applies to the name.
    """
    schemas = property_schemas(facts, name)
    allowed = holds(lowering.goals, facts.names, name) if facts.names else True
    if allowed is False:
        return lowering.builder.nothing
    if schemas is None or allowed is None:
        where = facts.first.pointer
        for facet in facts.objects:
            for pattern in facet.patterns:
                pattern_text(lowering, pattern, partial(facts.where_pattern, facet, pattern))
        keyword = "propertyNames" if allowed is None else "patternProperties"
        raise UnsupportedFeature(f"whether {keyword} applies to the name {name!r}", where=where)
    return lowering.lower(schemas)


def _chain(
    lowering: Lowering,
    members: Sequence[Member],
    undeclared: int | None,
    *,
    may_be_empty: bool,
) -> int:
    """The node of an object whose members come in the order of declaration: ``K(0)`` in braces."""
    b, text = lowering.builder, lowering.text
    comma = text.comma
    more = None if undeclared is None else b.repeat(b.seq(comma, undeclared), 0, None)
    begun: int | None = None  # K(i), if anything can come
    rest = b.empty if more is None else more  # T(i)
    optional = True  # all from i on are
    for count, member in enumerate(reversed(members), 1):
        here = b.seq(member.node, rest)
        if member.required:
            begun, optional = here, False
        else:
            begun = here if begun is None else b.alt(here, begun)
        if count % CHAIN == 0:
            begun = b.cut(begun)
        rest = b.seq(comma, begun)
        if optional:
            rest = b.optional(rest)
        if more is not None:
            rest = b.seq(more, rest)
    lowering.height += 4 * min(len(members), CHAIN)
    if undeclared is not None:
        first = b.seq(undeclared, rest)
        begun = first if begun is None else b.alt(begun, first)
    if begun is None:
        return text.empty_object if may_be_empty else b.nothing
    full = b.seq(begun, text.close_object)
    return b.seq(text.open_object, b.alt(full, b.literal(b"}")) if may_be_empty else full)
