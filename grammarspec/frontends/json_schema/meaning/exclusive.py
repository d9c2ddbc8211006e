"""``oneOf``: its branches as alternatives that exclude each other.

Branches that are provably apart stay as they are. To one that overlaps others, "and none of these" is added.
"""

from __future__ import annotations

from collections.abc import Sequence

from grammarspec.errors import LimitExceeded, UnsupportedFeature
from grammarspec.frontends.json_schema.document.subschema import Subschema
from grammarspec.frontends.json_schema.keywords.combining import AllOf, AnyOf
from grammarspec.frontends.json_schema.keywords.goals import Goals
from grammarspec.frontends.json_schema.keywords.objects import Required, absent
from grammarspec.frontends.json_schema.keywords.types_and_sizes import IS_OBJECT
from grammarspec.frontends.json_schema.meaning.evaluation import optional_tag, overlapping

__all__ = ["MAX_PAIRS", "exclusive"]

MAX_PAIRS = 20_000
"""Pairs of ``oneOf`` branches that are compared with each other."""


def exclusive(goals: Goals, origin: Subschema, branches: Sequence[Subschema], *, narrow: bool) -> list[Subschema]:
    """Alternatives of which at most one holds for any value, and that together are ``oneOf`` of the branches.

    Where many overlap that a property of theirs would tell apart if it were required, "and has this property" is added
    to them (a narrowing: without it, an object is seldom of one branch only).

    Args:
        narrow: of a branch that overlaps another one, only those objects are kept that lack a property which that
            other one requires (a narrowing, too).

    Raises:
        LimitExceeded: the branches are too many to be compared.
        UnsupportedFeature: a branch cannot be negated.
    """
    overlaps = overlapping(goals, branches, MAX_PAIRS)
    if overlaps is None:
        message = f"oneOf with {len(branches)} branches that are not told apart by one required property"
        raise LimitExceeded(message, where=origin.where("oneOf"))
    tag = optional_tag(goals, [branches[i] for i in overlaps]) if len(overlaps) > 2 else None
    tagged = None if tag is None else origin.derived(IS_OBJECT, Required((tag,)))
    out: list[Subschema] = []
    for i, branch in enumerate(branches):
        others = overlaps.get(i, ())
        if not others:
            out.append(branch)
            continue
        if tagged is not None:
            out.append(origin.derived(AllOf((branch, tagged))))
            continue
        try:
            apart = [_unlike(goals, branches[j], branch, narrow=narrow) for j in others]
        except UnsupportedFeature as error:
            hint = "use anyOf, or give the branches a required property with a different const in each"
            message = f"oneOf branches that are not provably disjoint, as one of them uses {error.message}"
            raise UnsupportedFeature(message, where=origin.where("oneOf", i), hint=hint) from None
        out.append(origin.derived(AllOf((branch, *apart))))
    return out


def _unlike(goals: Goals, other: Subschema, branch: Subschema, *, narrow: bool) -> Subschema:
    """What tells values of ``branch`` from those of another one: that it refuses them."""
    if narrow:
        theirs, own = goals.gather([other]).required, goals.gather([branch]).required
        lacking = tuple(name for name in theirs if name not in own)
        if lacking:
            ways = [other.derived(absent(name)) for name in lacking]
            made: Subschema = other.derive(("lacking", lacking), lambda: other.derived(AnyOf(ways)))
            return made
    return goals.negate(other)
