"""``oneOf``: turns its branches into alternatives that exclude each other.

A branch that is proved disjoint from all others stays as it is. To a branch that may overlap others, the negations of
these are added.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from grammarspec.errors import LimitExceeded, UnsupportedFeature
from grammarspec.frontends.json_schema.document.subschema import Subschema
from grammarspec.frontends.json_schema.keywords.combining import AllOf, AnyOf
from grammarspec.frontends.json_schema.keywords.goals import Goals
from grammarspec.frontends.json_schema.keywords.objects import Required, absent
from grammarspec.frontends.json_schema.keywords.types_and_sizes import IS_OBJECT
from grammarspec.frontends.json_schema.meaning.overlaps import optional_tag, overlapping

__all__ = ["MAX_PAIRS", "exclusive"]

MAX_PAIRS = 20_000
"""Pairs of ``oneOf`` branches that are compared with each other."""


def exclusive(
    goals: Goals, origin: Subschema, branches: Sequence[Subschema], narrows: Callable[[], bool]
) -> list[Subschema]:
    """Alternatives that together are equivalent to ``oneOf``, and of which at most one holds for any value.

    If more than two branches overlap, and all of these have a property with disjoint constants (a tag) that is not
    required, the property becomes required in them instead. That is a narrowing; it leaves out little, since an object
    without the tag usually satisfies several branches.

    Args:
        goals: gathers and negates the branches.
        origin: the schema in which ``oneOf`` stands.
        branches: its branches.
        narrows: says whether to narrow a branch that overlaps another one to objects that lack a property which the
            other one requires, in place of adding the negation, which may take too many combinations. It is asked if
            there is such a branch.

    Returns:
        One alternative for each branch, in their order; a branch that overlaps no other is returned as it is.

    Raises:
        LimitExceeded: there are too many branches to compare.
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
            apart = [_unlike(goals, branches[j], branch, narrow=narrows()) for j in others]
        except UnsupportedFeature as error:
            hint = "use anyOf, or give the branches a required property with a different const in each"
            message = f"oneOf branches that are not provably disjoint, as one of them uses {error.message}"
            where = branch.pointer if branch.keywords else origin.where("oneOf")
            raise UnsupportedFeature(message, where=where, hint=hint) from None
        out.append(origin.derived(AllOf((branch, *apart))))
    return out


def _unlike(goals: Goals, other: Subschema, branch: Subschema, *, narrow: bool) -> Subschema:
    """A schema that excludes the values of ``other`` from ``branch``: its negation, or a narrower one if ``narrow``."""
    if narrow:
        theirs, own = goals.gather([other]).required, goals.gather([branch]).required
        lacking = tuple(name for name in theirs if name not in own)
        if lacking:
            ways = [other.derived(absent(name)) for name in lacking]
            made: Subschema = other.derive(("lacking", lacking), lambda: other.derived(AnyOf(ways)))
            return made
    return goals.negate(other)
