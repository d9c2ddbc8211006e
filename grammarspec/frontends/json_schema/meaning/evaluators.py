"""``unevaluatedProperties`` beside so many conditional keywords that their outcomes are too many to enumerate.

Thirty ``if`` beside ``unevaluatedProperties`` have 2^30 outcomes (see ``unevaluated.py``). For each property, however,
it is known which of these subschemas evaluate it. If the property is present, one of them must hold, or the value of
the property must satisfy the schema of ``unevaluatedProperties``. That is one ``anyOf`` per property, so the result is
as large as the schema. Contradictions between these conditions are found later, when disjunctions are distributed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from grammarspec.frontends.json_schema.document.subschema import ANYTHING, NOTHING, Assertion, Malformed, Subschema
from grammarspec.frontends.json_schema.keywords.combining import AllOf, AnyOf, Conditional, Not, OneOf, Reference
from grammarspec.frontends.json_schema.keywords.dependencies import Dependents
from grammarspec.frontends.json_schema.keywords.goals import Goals
from grammarspec.frontends.json_schema.keywords.objects import Members, Required
from grammarspec.frontends.json_schema.keywords.types_and_sizes import IS_OBJECT
from grammarspec.frontends.json_schema.keywords.unevaluated import UnevaluatedItems, UnevaluatedMembers
from grammarspec.frontends.regex.matching import pattern_found

__all__ = ["conditions"]

_When = tuple[Subschema, ...]


class _Evaluator(NamedTuple):
    """The members that one subschema evaluates, and the conditions under which it does.

    Attributes:
        when: the schemas that must hold for the subschema to apply and to evaluate members; empty if it always does.
        names, patterns: the names, and the patterns of names, of the members that it evaluates.
        members: whether it evaluates all members.
    """

    when: _When
    names: Sequence[str]
    patterns: Sequence[str]
    members: bool


def conditions(goals: Goals, schema: Subschema) -> list[Subschema] | None:
    """A goal that is equivalent to a schema with ``unevaluatedProperties``.

    Returns:
        The subschemas of the goal; ``None`` if the schema cannot be rewritten like this, because it has
        ``unevaluatedItems``, a pattern that evaluates members only sometimes, or one that cannot be decided on a name.

    Raises:
        GrammarError: a keyword is malformed, or a reference points to nothing.
    """
    asked = None
    rest: list[Assertion] = []
    for assertion in schema.assertions:
        if isinstance(assertion, UnevaluatedItems):
            return None
        if isinstance(assertion, UnevaluatedMembers):
            asked = assertion.schema
        else:
            rest.append(assertion)
    assert asked is not None
    evaluators = list(_evaluators(goals, rest, schema, ()))
    always = [evaluator for evaluator in evaluators if not evaluator.when]
    sometimes = [evaluator for evaluator in evaluators if evaluator.when]
    names = dict.fromkeys(name for evaluator in always for name in evaluator.names)
    patterns = dict.fromkeys(pattern for evaluator in always for pattern in evaluator.patterns)
    parts = [schema.derived(*rest)]
    if any(evaluator.members for evaluator in always):
        return parts
    if any(evaluator.patterns for evaluator in sometimes):
        return None
    everything = [evaluator.when for evaluator in sometimes if evaluator.members]
    alike: dict[tuple[int, ...], list[str]] = defaultdict(list)
    for name in dict.fromkeys(name for evaluator in sometimes for name in evaluator.names):
        matched = [pattern_found(pattern, name, goals.budget) for pattern in patterns]
        if None in matched:
            return None
        if name not in names and True not in matched:
            those = (i for i, one in enumerate(sometimes) if one.members or name in one.names)
            alike[tuple(those)].append(name)

    def unless(whens: Sequence[_When], otherwise: Members) -> Subschema:
        ways = [when[0] if len(when) == 1 else schema.derived(AllOf(when)) for when in whens]
        said = schema.derived(otherwise)
        return schema.derived(AnyOf((said, *ways))) if ways else said

    for which, group in alike.items():
        parts.append(unless([sometimes[i].when for i in which], Members(dict.fromkeys(group, asked))))
    known = dict.fromkeys([*names, *(name for group in alike.values() for name in group)], ANYTHING)
    return [*parts, unless(everything, Members(known, dict.fromkeys(patterns, ANYTHING), asked, True))]


def _evaluators(goals: Goals, assertions: Sequence[Assertion], schema: Subschema, when: _When) -> Iterator[_Evaluator]:
    """The evaluators among the assertions of a subschema and of the subschemas that these apply to the same value."""
    names: tuple[str, ...] = ()
    patterns: tuple[str, ...] = ()
    members = False
    for assertion in assertions:
        match assertion:
            case Members():
                names, patterns = tuple(assertion.properties), tuple(assertion.patterns)
                members |= assertion.has_rest
            case UnevaluatedMembers():
                members = True
            case Malformed():
                raise assertion.error
    if names or patterns or members:
        yield _Evaluator(when, names, patterns, members)
    for assertion in assertions:
        for part, further in _guarded(goals, assertion, schema):
            if part is not ANYTHING and part is not NOTHING and not part.is_malformed:
                yield from _evaluators(goals, part.assertions, part, (*when, *further))


def _guarded(goals: Goals, assertion: Assertion, schema: Subschema) -> Iterator[tuple[Subschema, _When]]:
    """The schemas that an assertion applies to the same value, each with the schemas on which that depends."""
    match assertion:
        case Reference():
            yield goals.target(schema, assertion.reference, assertion.keyword), ()
        case AllOf():
            for part in assertion.parts:
                yield part, ()
        case AnyOf() | OneOf():
            for branch in assertion.branches:
                yield branch, (branch,)
        case Conditional(condition, then, otherwise):
            yield condition, (condition,)
            if then is not None:
                yield then, (condition,)
            if otherwise is not None:
                yield otherwise, (schema.derived(Not(condition)),)
        case Dependents() if assertion.evaluates:
            for name, dependent in assertion.schemas.items():
                yield dependent, (schema.derived(IS_OBJECT, Required((name,))),)
