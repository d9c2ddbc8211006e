"""Undeclared members: makes the node of one member whose name is not among the declared ones.

Keys are divided into classes by the set of ``patternProperties`` that match them. Each class is a regular language of
keys (an intersection of patterns and complements of patterns), and all its members have the same schemas for the value.

A *witness* (:class:`.SomeMember`) is a condition that at least one undeclared member must satisfy; it comes from the
negation of ``additionalProperties`` and the like.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from grammarspec.errors import UnsupportedFeature
from grammarspec.frontends.json_schema.document.subschema import ANYTHING, NOTHING, Subschema
from grammarspec.frontends.json_schema.keywords.conjunction import Conjunction, SomeMember
from grammarspec.frontends.json_schema.keywords.json_values import STRING
from grammarspec.frontends.json_schema.lowering.context import Lowering, Text
from grammarspec.frontends.json_schema.lowering.strings import pattern_text, text_of
from grammarspec.frontends.json_schema.meaning.evaluation import holds_facts
from grammarspec.frontends.json_schema.meaning.matching import exact_prefix, few_texts, is_endless

__all__ = ["has_endless_names", "undeclared_members"]

_MAX_CLASSES = 64  # classes of keys, that is sets of patterns that one key may match


def undeclared_members(
    lowering: Lowering, facts: Conjunction, declared: Sequence[str], witnesses: Sequence[SomeMember] = ()
) -> int | None:
    """The node of an undeclared member.

    Args:
        declared: the names that the member must not have.
        witnesses: conditions that the member must satisfy, all of them.

    Returns:
        The node of the name, the colon and the value; ``None`` if there can be no such member.

    Raises:
        UnsupportedFeature: there are too many patterns that may overlap, or the names cannot be described.
    """
    b, text = lowering.builder, lowering.text
    if not facts.names and not witnesses and not any(facet.patterns for facet in facts.objects):
        value = lowering.lower([facet.rest for facet in facts.objects])
        return None if value == b.nothing else text.member(text.key_except(declared), value)
    limits = _limits(lowering, facts, declared, witnesses)
    parts = []
    for matched, schemas in _classes(lowering, facts):
        value = lowering.lower([*schemas, *(witness.value for witness in witnesses)])
        if value == b.nothing:
            continue
        texts = [*matched, *limits]
        node = b.both(*(part.node for part in texts)) if texts else text.exact.any_text
        if b.nothing not in [part.node for part in texts]:
            key = text.exact_key(node, asserting=any(part.asserting for part in texts))
            parts.append(text.member(key, value))
    return b.alt(*parts) if parts else None


def has_endless_names(lowering: Lowering, facts: Conjunction, witness: SomeMember | None = None) -> bool:
    """Whether there are provably infinitely many names for undeclared members.

    Args:
        witness: count only names of members that can satisfy this condition.
    """
    if witness is not None and witness.name is not ANYTHING:
        return False
    patterns = {pattern for facet in facts.objects for pattern in facet.patterns}
    if facts.names:
        asked = lowering.goals.gather(facts.names)
        if not _is_open(asked):
            return False
        if any(facet.wanted for facet in asked.texts):  # only names that match this one pattern are allowed
            return not patterns and witness is None and not any(facet.rest is NOTHING for facet in facts.objects)
    if witness is not None:
        patterns.update(witness.patterns)
        patterns.update([] if witness.within is None else [witness.within])
    if not patterns:
        return True
    if len(patterns) > 1:
        return False
    (pattern,) = patterns
    outside = not any(facet.rest is NOTHING for facet in facts.objects)
    inside = True
    if witness is not None:
        outside, inside = outside and witness.within is None, pattern not in witness.patterns
    if is_endless(pattern):
        return inside and not any(facet.patterns.get(pattern) is NOTHING for facet in facts.objects)
    return outside


def _is_open(facts: Conjunction) -> bool:
    """Whether provably infinitely many strings satisfy a conjunction.

    It is simple enough for that if it has no ``enum``, no choices, no ``maxLength`` and no ``format``, and at most one
    pattern, of infinitely many texts; its negated patterns exclude few texts each.
    """
    if facts.enum is not None or facts.choices or facts.max_length is not None:
        return False
    patterns = [argument for keyword, argument, wanted, _ in facts.texts if wanted and keyword == "pattern"]
    refused = [argument for keyword, argument, wanted, _ in facts.texts if not wanted and keyword == "pattern"]
    if len(patterns) + len(refused) < len(facts.texts) or len(patterns) > 1 or not facts.types & STRING:
        return False
    return all(is_endless(pattern) for pattern in patterns) and all(few_texts(one) is not None for one in refused)


def _limits(
    lowering: Lowering, facts: Conjunction, declared: Sequence[str], witnesses: Sequence[SomeMember]
) -> list[Text]:
    """Regular languages to all of which the key of an undeclared member that satisfies these witnesses must belong."""
    b, exact = lowering.builder, lowering.text.exact
    limits = []
    taken = list(declared)
    if facts.names:
        limits.append(_name_text(lowering, facts.names))
    for witness in witnesses:
        taken += sorted(witness.names.difference(taken))
        for pattern in witness.patterns:
            where = partial(facts.first.where, "patternProperties", pattern)
            node, asserting = pattern_text(lowering, pattern, where)
            limits.append(Text(b.complement(node), asserting))
        if witness.within is not None:
            where = partial(facts.first.where, "patternProperties", witness.within)
            limits.append(pattern_text(lowering, witness.within, where))
        if witness.name is not ANYTHING:
            limits.append(_name_text(lowering, [witness.name]))
    if taken:
        limits.append(Text(b.complement(exact.words(taken)), False))
    return [Text(exact.any_text, False), *limits] if limits else limits


def _name_text(lowering: Lowering, goal: Sequence[Subschema]) -> Text:
    """The strings that satisfy the goal of a name (``propertyNames``), in the exact alphabet."""
    b, goals = lowering.builder, lowering.goals
    facts = goals.gather(goal)
    if not facts.types & STRING:
        return Text(b.nothing, False)
    if facts.enum is not None:
        answers = {c: holds_facts(goals, facts, c) for c in facts.enum if isinstance(c, str)}
        if None in answers.values():
            where = facts.first.pointer
            raise UnsupportedFeature("an enum with these other keywords in propertyNames", where=where)
        words = [name for name, holds in answers.items() if holds]
        return Text(lowering.text.exact.words(words) if words else b.nothing, False)
    if facts.choices:
        base = facts.base
        first, *others = facts.choices
        rest = [goals.choice(alternatives) for alternatives in others]
        texts = [_name_text(lowering, [*base, alternative, *rest]) for alternative in first]
        kept = [text for text in texts if text.node != b.nothing]
        if not kept:
            return Text(b.nothing, False)
        return Text(b.alt(*(text.node for text in kept)), any(text.asserting for text in kept))
    if facts.max_length is not None and facts.min_length > facts.max_length:
        return Text(b.nothing, False)
    return text_of(lowering, facts)


def _classes(lowering: Lowering, facts: Conjunction) -> Iterator[tuple[list[Text], list[Subschema]]]:
    """The classes of keys: the regular languages whose intersection the class is, and the schemas of the values."""
    b, exact = lowering.builder, lowering.text.exact
    patterns: dict[str, Text] = {}
    for facet in facts.objects:
        for pattern in facet.patterns:
            patterns[pattern] = pattern_text(lowering, pattern, partial(facts.where_pattern, facet, pattern))
    sets = _compatible_sets(list(patterns))
    if sets is None:
        where = facts.where("patternProperties")
        hint = "begin the patterns with ^ and different literal texts"
        raise UnsupportedFeature(f"{len(patterns)} patterns that may overlap in patternProperties", where, hint)
    for matched in sets:
        schemas = _schemas(facts, matched)
        if NOTHING in schemas:
            continue
        texts = [patterns[pattern] for pattern in matched]
        if not texts and patterns:
            texts.append(Text(exact.any_text, False))
        for pattern, text in patterns.items():
            if pattern not in matched and not any(_apart(pattern, other) for other in matched):
                texts.append(Text(b.complement(text.node), text.asserting))
        yield texts, schemas


def _schemas(facts: Conjunction, matched: frozenset[str]) -> list[Subschema]:
    """The schemas for the value of an undeclared member whose name matches exactly these patterns."""
    found: list[Subschema] = []
    for facet in facts.objects:
        own = [schema for pattern, schema in facet.patterns.items() if pattern in matched]
        found.extend(own or ([facet.rest] if facet.rest is not ANYTHING else []))
    return found


def _apart(one: str, other: str) -> bool:
    """Whether the literal prefixes of two patterns prove that no text matches both."""
    a, b = exact_prefix(one), exact_prefix(other)
    return not (a.startswith(b) or b.startswith(a))


def _compatible_sets(patterns: list[str]) -> list[frozenset[str]] | None:
    """All sets of patterns that one key may match, as far as :func:`_apart` shows; ``None`` if there are too many."""
    sets = [frozenset[str]()]
    for pattern in patterns:
        sets += [chosen | {pattern} for chosen in sets if not any(_apart(pattern, other) for other in chosen)]
        if len(sets) > _MAX_CLASSES:
            return None
    return sets
