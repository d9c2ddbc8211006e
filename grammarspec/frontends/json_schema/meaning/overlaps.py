"""Which branches of a ``oneOf`` may hold of one value."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from grammarspec.errors import GrammarError
from grammarspec.frontends.json_schema.document.subschema import Subschema
from grammarspec.frontends.json_schema.json_values import OBJECT, canonical
from grammarspec.frontends.json_schema.keywords.goals import Goals
from grammarspec.frontends.json_schema.meaning.emptiness import surely_empty
from grammarspec.frontends.json_schema.meaning.evaluation import property_schemas

__all__ = ["optional_tag", "overlapping"]


def overlapping(goals: Goals, branches: Sequence[Subschema], max_pairs: int) -> Mapping[int, list[int]] | None:
    """For each branch that is not proved disjoint from all others, the indices of the branches it may overlap.

    Branches with a *tag* (a required property, or the value itself, with an ``enum``) are compared by it first, so that
    a long union with a discriminator needs no comparison of all pairs.

    Args:
        max_pairs: the most pairs that are compared.

    Returns:
        The overlaps; ``None`` if more than ``max_pairs`` pairs would have to be compared.
    """
    tags = [_tags(goals, branch) for branch in branches]
    candidates = _candidate_pairs(tags, max_pairs)
    if candidates is None:
        return None
    overlaps: dict[int, list[int]] = defaultdict(list)
    for i, j in candidates:
        if not _apart(goals, branches[i], branches[j]):
            overlaps[i].append(j)
            overlaps[j].append(i)
    return overlaps


def _apart(goals: Goals, one: Subschema, other: Subschema) -> bool:
    try:
        return surely_empty(goals, [one, other], 3)
    except GrammarError:  # the lowering of the branch raises it again, if it matters
        return False


_Tags = dict[str | None, frozenset[Any]]


def _tags(goals: Goals, branch: Subschema) -> _Tags:
    """The tags of a branch: the values of its ``enum`` under ``None``, or those of required properties by name."""
    facts = goals.gather([branch])
    if facts.enum is not None:
        return {None: frozenset(map(canonical, facts.enum))}
    tags: _Tags = {}
    if facts.types == OBJECT:
        for name in facts.required:
            schemas = property_schemas(facts, name)
            value = goals.gather(schemas) if schemas else None
            if value is not None and value.enum is not None:
                tags[name] = frozenset(map(canonical, value.enum))
    return tags


def optional_tag(goals: Goals, branches: Sequence[Subschema]) -> str | None:
    """The name of a property that has an ``enum`` in each branch, all of them disjoint; ``None`` if there is none."""
    try:
        conjunctions = [goals.gather([branch]) for branch in branches]
        for name in dict.fromkeys(name for facet in conjunctions[0].objects for name in facet.properties):
            seen: set[Any] = set()
            for facts in conjunctions:
                schemas = property_schemas(facts, name)
                enum = goals.gather(schemas).enum if schemas else None
                values = None if enum is None else set(map(canonical, enum))
                if values is None or not seen.isdisjoint(values):
                    break
                seen |= values
            else:
                return name
    except GrammarError:  # the lowering of the branch raises it again, with its place
        return None
    return None


def _candidate_pairs(tags: list[_Tags], max_pairs: int) -> list[tuple[int, int]] | None:
    """The pairs of branches that no common tag proves disjoint; ``None`` if there are more than ``max_pairs``."""
    everywhere = set(tags[0]).intersection(*tags[1:])
    best: list[tuple[int, int]] | None = None
    for name in everywhere:
        holders: dict[Any, list[int]] = defaultdict(list)
        for i, own in enumerate(tags):
            for value in own[name]:
                holders[value].append(i)
        if sum(len(group) ** 2 for group in holders.values()) > 20 * max_pairs:
            continue  # too many even to list them
        pairs = {(i, j) for group in holders.values() for i in group for j in group if i < j}
        if best is None or len(pairs) < len(best):
            best = sorted(pairs)
    if best is None:
        if len(tags) * (len(tags) - 1) // 2 > max_pairs:
            return None
        best = [(i, j) for j in range(len(tags)) for i in range(j)]
    return best if len(best) <= max_pairs else None
