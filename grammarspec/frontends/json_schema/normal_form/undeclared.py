"""Undeclared members: what is asked of members whose names are not among the declared ones.

Names are divided into classes by the set of ``patternProperties`` that match them. All members of a class have the same
schemas for the value.

A *witness* (:class:`.SomeMember`) is a condition that at least one undeclared member must satisfy; it comes from the
negation of ``additionalProperties`` and the like.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial

from grammarspec.errors import GrammarError, UnsupportedFeature
from grammarspec.frontends.json_schema.document.subschema import ANYTHING, Subschema
from grammarspec.frontends.json_schema.json_values import STRING
from grammarspec.frontends.json_schema.keywords.conjunction import Conjunction, SomeMember
from grammarspec.frontends.json_schema.meaning.analysis import Analysis
from grammarspec.frontends.json_schema.meaning.evaluation import holds_facts
from grammarspec.frontends.json_schema.normal_form.scalars import string_shape
from grammarspec.frontends.json_schema.normal_form.shapes import (
    NONE,
    NameClass,
    Pattern,
    StringShape,
    UndeclaredMembers,
    both,
)
from grammarspec.frontends.regex.endless import infinitely_many, never_both, so_many, some_text
from grammarspec.frontends.regex.matching import begin_apart, parsed
from grammarspec.grammars.budget import Budget

__all__ = ["check_patterns", "has_enough_names", "has_names", "undeclared_members"]

_MAX_CLASSES = 64  # classes of names, that is sets of patterns that one name may match
_MAX_COMPARED = 32  # patterns that are compared with each other by their automata


def undeclared_members(
    goals: Analysis, facts: Conjunction, declared: Sequence[str], witnesses: Sequence[SomeMember] = ()
) -> UndeclaredMembers | None:
    """What is asked of an undeclared member.

    Args:
        declared: the names that the member must not have.
        witnesses: conditions that the member must satisfy, all of them.

    Returns:
        The record of such members; ``None`` if there plainly can be none.

    Raises:
        UnsupportedFeature: there are too many patterns that may overlap, or the names cannot be described.
    """
    classes = _classes(goals, facts, [witness.value for witness in witnesses])
    if not classes:
        return None
    taken = list(declared)
    patterns: list[Pattern] = []
    names = [_names(goals, facts.names)] if facts.names else []
    for witness in witnesses:
        taken += sorted(witness.names.difference(taken))
        within = [] if witness.within is None else [(witness.within, True)]
        for text, wanted in [*((text, False) for text in witness.patterns), *within]:
            patterns.append(Pattern(text, partial(facts.first.where, "patternProperties", text), wanted))
        if witness.name is not ANYTHING:
            names.append(_names(goals, [witness.name]))
    return UndeclaredMembers(taken, patterns, names, classes)


def check_patterns(facts: Conjunction) -> None:
    """Refuse malformed ``patternProperties``.

    Raises:
        GrammarError: a pattern is malformed, or uses a construct that is not supported.
    """
    for pattern in _patterns(facts):
        try:
            parsed(pattern.text)
        except GrammarError as error:
            raise pattern.refused(error) from None


def _patterns(facts: Conjunction) -> list[Pattern]:
    """All ``patternProperties``, each once."""
    found: dict[str, Pattern] = {}
    for facet in facts.objects:
        for text in facet.patterns:
            if text not in found:
                found[text] = Pattern(text, partial(facts.where_pattern, facet, text))
    return list(found.values())


# ---------------------------------------------------------------------- classes of names
def _classes(goals: Analysis, facts: Conjunction, further: list[Subschema]) -> list[NameClass]:
    """The classes of names whose values are not plainly impossible.

    Args:
        further: schemas that all values satisfy.

    Raises:
        UnsupportedFeature: there are too many classes, as patterns may overlap.
    """
    patterns = _patterns(facts)
    if not patterns:
        value = both([facet.rest for facet in facts.objects] + further)
        return [] if value is NONE else [NameClass((), value)]
    sets = _compatible_sets([pattern.text for pattern in patterns], goals.budget)
    if sets is None:
        where = facts.where("patternProperties")
        hint = "begin the patterns with ^ and different literal texts"
        raise UnsupportedFeature(f"{len(patterns)} patterns that may overlap in patternProperties", where, hint)
    classes = []
    for matched in sets:
        value = both([*_schemas(facts, matched), *further])
        if value is not NONE:
            inside = [pattern for pattern in patterns if pattern.text in matched]
            outside = [
                pattern._replace(wanted=False)
                for pattern in patterns
                if pattern.text not in matched and not any(begin_apart(pattern.text, other) for other in matched)
            ]
            classes.append(NameClass([*inside, *outside], value))
    return classes


def _schemas(facts: Conjunction, matched: frozenset[str]) -> list[Subschema]:
    """The schemas for the value of an undeclared member whose name matches exactly these patterns."""
    found: list[Subschema] = []
    for facet in facts.objects:
        own = [schema for pattern, schema in facet.patterns.items() if pattern in matched]
        found.extend(own or [facet.rest])
    return found


def _compatible_sets(patterns: list[str], budget: Budget) -> list[frozenset[str]] | None:
    """All sets of patterns that one name may match; ``None`` if there are too many.

    What :func:`.begin_apart` shows is seldom not enough; then texts that two patterns have in common are searched for.
    """
    sets = _sets(patterns, begin_apart)
    if sets is None and len(patterns) <= _MAX_COMPARED:
        sets = _sets(patterns, lambda one, other: begin_apart(one, other) or never_both(one, other, budget))
    return sets


def _sets(patterns: list[str], apart: Callable[[str, str], bool]) -> list[frozenset[str]] | None:
    """All sets of patterns of which no two are apart; ``None`` if there are too many."""
    sets = [frozenset[str]()]
    for pattern in patterns:
        sets += [chosen | {pattern} for chosen in sets if not any(apart(pattern, other) for other in chosen)]
        if len(sets) > _MAX_CLASSES:
            return None
    return sets


# ---------------------------------------------------------------------- names
def _names(goals: Analysis, goal: Sequence[Subschema]) -> list[StringShape]:
    """The strings that satisfy a goal (``propertyNames``): all that satisfy at least one of these shapes.

    Raises:
        UnsupportedFeature: for a constant it cannot be decided whether it satisfies the goal.
    """
    facts = goals.gather(goal)
    if not facts.types & STRING:
        return []
    if facts.enum is not None:
        answers = {c: holds_facts(goals, facts, c) for c in facts.enum if isinstance(c, str)}
        if None in answers.values():
            where = facts.first.pointer
            raise UnsupportedFeature("an enum with these other keywords in propertyNames", where=where)
        words = [name for name, holds in answers.items() if holds]
        return [StringShape(words=words)] if words else []
    if facts.choices:
        first, *others = facts.choices
        base, rest = facts.base, [goals.choice(alternatives) for alternatives in others]
        return [shape for alternative in first for shape in _names(goals, [*base, alternative, *rest])]
    if facts.max_length is not None and facts.min_length > facts.max_length:
        return []
    return [string_shape(facts)]


def has_enough_names(
    goals: Analysis,
    facts: Conjunction,
    declared: Sequence[str],
    count: int | None,
    witnesses: Sequence[SomeMember] = (),
) -> bool:
    """Whether there are provably so many names for undeclared members (``None``: infinitely many).

    Args:
        declared: names that they do not have.
        witnesses: count only names of members that can satisfy all these conditions.
    """
    taken = [f"^{re.escape(name)}$" for name in set(declared).union(*(witness.names for witness in witnesses))]
    return any(
        infinitely_many(wanted, refused, goals.budget)
        or (count is not None and so_many(wanted, [*refused, *taken], count, goals.budget))
        for wanted, refused in _asked_of_names(goals, facts, witnesses, exactly=True)
    )


def has_names(goals: Analysis, facts: Conjunction, witnesses: Sequence[SomeMember]) -> bool:
    """Whether there may be names, declared ones included, for an undeclared member that satisfies these conditions."""
    if _compatible_sets([pattern.text for pattern in _patterns(facts)], goals.budget) is None:
        return True
    return any(some_text(*asked, goals.budget) for asked in _asked_of_names(goals, facts, witnesses, exactly=False))


def _asked_of_names(
    goals: Analysis, facts: Conjunction, witnesses: Sequence[SomeMember], *, exactly: bool
) -> Iterator[tuple[list[str], list[str]]]:
    """For each class of names that has values: the patterns that its names match, and those that they do not match.

    Args:
        exactly: yield nothing if more is asked of names than patterns, and lengths that leave infinitely many.
    """
    wanted, refused = list[str](), list[str]()
    for goal in (facts.names, *([witness.name] for witness in witnesses)):
        if goal and exactly and not _asks_patterns(goals, goal):
            return
        for facet in goals.gather(goal).texts if goal else ():
            if facet.keyword == "pattern":
                (wanted if facet.wanted else refused).append(facet.argument)
    for witness in witnesses:
        refused += witness.patterns
        wanted += [] if witness.within is None else [witness.within]
    patterns = [pattern.text for pattern in _patterns(facts)]
    for matched in _compatible_sets(patterns, goals.budget) or ():
        value = [*_schemas(facts, matched), *(witness.value for witness in witnesses)]
        if both(value) is not NONE and not goals.impossible(goals.gather(value)):
            yield [*matched, *wanted], [*(pattern for pattern in patterns if pattern not in matched), *refused]


def _asks_patterns(goals: Analysis, names: Sequence[Subschema]) -> bool:
    """Whether nothing is asked of names but patterns, and lengths that leave infinitely many."""
    asked = goals.gather(names)
    if asked.enum is not None or asked.choices or asked.max_length is not None or not asked.types & STRING:
        return False
    return all(facet.keyword == "pattern" for facet in asked.texts)
