"""Objects: makes the node of the objects of a shape.

Declared members come in the order of their declaration, and undeclared ones anywhere between them. ``K(i)`` is "the
i-th or a later declared member, and the rest"; ``T(i)`` is "the rest after a member, in which only the i-th and later
declared members may still come"::

    K(i) = member(i) T(i+1)  |  K(i+1) if i is optional
    T(i) = ("," undeclared)*  ("," K(i)  |  nothing, if all from i on are optional)

Each of these is one node that contains the next ones, so the size is linear in the number of members. Objects for which
the members written so far must be remembered are made in ``members.py``.
"""

from __future__ import annotations

from collections.abc import Sequence

from grammarspec.errors import UnsupportedFeature
from grammarspec.frontends.json_schema.lowering.context import Lowering
from grammarspec.frontends.json_schema.lowering.members import Asked, Member, remembered_members
from grammarspec.frontends.json_schema.lowering.undeclared import undeclared_member
from grammarspec.frontends.json_schema.normal_form.shapes import (
    ANY,
    ANY_OBJECT,
    DeclaredMember,
    NameClass,
    ObjectShape,
    UndeclaredMembers,
)
from grammarspec.frontends.json_schema.spelling.builder import CHAIN
from grammarspec.frontends.json_schema.spelling.json_text import Ways

__all__ = ["object_node"]

_OF_ANY_MEMBERS = ObjectShape(undeclared=UndeclaredMembers((), (), (), [NameClass((), ANY)]))


def object_node(lowering: Lowering, shape: ObjectShape) -> int:
    """The node of the objects of a shape.

    Raises:
        UnsupportedFeature: a combination of keywords about names cannot be enforced.
    """
    b, text = lowering.builder, lowering.text
    if shape is ANY_OBJECT:
        if not lowering.in_elements:
            return text.object
        shape = _OF_ANY_MEMBERS
    least, most = shape.least, shape.most
    if most is not None and most < least:
        return b.nothing
    members: list[tuple[DeclaredMember, Ways]] = []
    for member in shape.members:
        values = lowering.values(member.value)
        if values:
            members.append((member, values))
        elif member.required:
            return b.nothing
    undeclared = None if shape.undeclared is None else undeclared_member(lowering, shape.undeclared)
    enough = shape.enough_names and undeclared is not None
    distinct = undeclared is not None and (text.distinct or (least > 1 and enough))
    witnesses: Sequence[tuple[int, tuple[int, ...]]] = ()
    if shape.witnesses:
        all_enough = enough and shape.enough_witnesses
        if distinct and not all_enough:
            message = "negated patternProperties or the like, of few names, with unique items"
            raise UnsupportedFeature(message, where=shape.where())
        distinct = distinct or all_enough
        witnesses = _witnesses(lowering, shape, distinct=distinct)
        if not witnesses:
            return b.nothing
    if most is not None and undeclared is None and not witnesses and most >= len(members):
        most = None
    if least > len(members) + (undeclared is not None or bool(witnesses)) and not enough:
        if undeclared is None:
            return b.nothing
        where = shape.where("minProperties", "maxProperties")
        hint = "declare more properties, or let the names of the others be any"
        raise UnsupportedFeature("minProperties that takes several undeclared properties of few names", where, hint)
    # the last member is ordered if all are
    free = len(members) + (undeclared is not None) > 1 and bool(members) and not members[-1][0].ordered
    if not (least > 1 or most is not None or witnesses or distinct or shape.presence or free):
        return _chain(lowering, members, undeclared, least)
    written = [
        Member(b.seq(*text.member(text.name(member.name), values)), member.required, not member.ordered, member.name)
        for member, values in members
    ]
    together = Asked(undeclared, witnesses, least, most, distinct, shape.few, shape.presence)
    return remembered_members(lowering, written, together)


def _witnesses(lowering: Lowering, shape: ObjectShape, *, distinct: bool) -> list[tuple[int, tuple[int, ...]]]:
    """The nodes of the undeclared members that the conditions on witnesses need.

    Args:
        distinct: whether names differ, so that different members may satisfy different conditions; otherwise one member
            must satisfy all of them.

    Returns:
        Each node with the indices of the conditions it satisfies (0 alone if not ``distinct``); empty if some condition
        cannot be satisfied.

    Raises:
        UnsupportedFeature: one member would have to satisfy several conditions and cannot.
    """
    kinds = shape.witnesses
    found = []
    for which, members in shape.witnessed:
        if distinct or len(which) == kinds:
            node = undeclared_member(lowering, members)
            if node is not None:
                found.append((node, which if distinct else (0,)))
    if not distinct and kinds > 1 and (not found or lowering.builder.is_barren(found[0][0])):
        required = sum(member.required for member in shape.members)
        if shape.most is not None and shape.most - required <= 1:
            return []  # there is no room for several members, and no single one satisfies all conditions
        raise UnsupportedFeature("several negated patternProperties or the like, of few names", where=shape.where())
    return [] if len({i for _, which in found for i in which}) < (kinds if distinct else 1) else found


def _chain(
    lowering: Lowering,
    members: Sequence[tuple[DeclaredMember, Ways]],
    undeclared: int | None,
    least: int,
) -> int:
    """The node of an object whose members come in the order of declaration: ``K(0)`` in braces.

    Args:
        members: the members, each with its values.
        undeclared: the node of an undeclared member; ``None`` if there can be none.
        least: whether there must be a member, as 0 or 1.
    """
    b, text = lowering.builder, lowering.text
    comma = text.comma
    more = () if undeclared is None else (b.repeat(b.seq(comma, undeclared), 0, None),)
    begun: int | None = None  # K(i), if anything can come
    rest: tuple[int, ...] = more  # the parts of T(i)
    optional = True  # all from i on are
    for count, (member, values) in enumerate(reversed(members), 1):
        here = b.seq(*text.member(text.name(member.name), values), *rest)
        if member.required:
            begun, optional = here, False
        else:
            begun = here if begun is None else b.alt(here, begun)
        if count % CHAIN == 0:
            begun = b.cut(begun)
        rest = (*more, b.optional(b.seq(comma, begun))) if optional else (*more, comma, begun)
    lowering.height += 4 * min(len(members), CHAIN)
    if undeclared is not None:
        first = b.seq(undeclared, *rest)
        begun = first if begun is None else b.alt(begun, first)
    may_be_empty = optional and least == 0
    if begun is None:
        return text.empty_object if may_be_empty else b.nothing
    full = b.seq(begun, text.close_object)
    return b.seq(text.open_object, b.alt(full, text.no_members) if may_be_empty else full)
