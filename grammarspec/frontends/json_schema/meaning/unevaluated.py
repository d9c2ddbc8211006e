"""``unevaluatedProperties`` and ``unevaluatedItems``: rewrites schemas with them into schemas without them.

These keywords apply to the members and items that no keyword beside them, nor in a subschema of such a keyword for the
same value, evaluates. What is evaluated depends on which subschemas of ``anyOf``, ``oneOf``, ``if`` and the like hold
(JSON Schema 2020-12 core, sections 10.3.1, 11.2 and 11.3). So a schema is expanded into *outcomes*: conjunctions
without such disjunctions, each with the names, patterns and items that it evaluates. In an outcome,
``unevaluatedProperties`` becomes ``additionalProperties`` beside ``properties`` and ``patternProperties`` that only
list the evaluated names, and ``unevaluatedItems`` becomes the ``items`` after ``prefixItems``.

The more subschemas hold, the more is evaluated, and the less these keywords restrict. So a value satisfies the schema
if some set of subschemas that hold evaluates enough; outcomes need not say that the other subschemas fail. Negation
alone needs *exact* outcomes, which say so.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations

from grammarspec.errors import LimitExceeded
from grammarspec.frontends.json_schema.document.subschema import ANYTHING, NOTHING, Assertion, Malformed, Subschema
from grammarspec.frontends.json_schema.keywords.arrays import Counted, Items
from grammarspec.frontends.json_schema.keywords.combining import AllOf, AnyOf, Conditional, Not, OneOf, Reference
from grammarspec.frontends.json_schema.keywords.dependencies import Dependents
from grammarspec.frontends.json_schema.keywords.goals import Goals
from grammarspec.frontends.json_schema.keywords.objects import Members, Required, absent
from grammarspec.frontends.json_schema.keywords.outcomes import Outcome
from grammarspec.frontends.json_schema.keywords.types_and_sizes import IS_OBJECT
from grammarspec.frontends.json_schema.keywords.unevaluated import Unevaluated, UnevaluatedItems, UnevaluatedMembers
from grammarspec.frontends.json_schema.meaning.evaluators import conditions

__all__ = ["alternatives", "outcomes_beside"]

MAX_OUTCOMES = 1_024
"""The most outcomes of one schema with ``unevaluatedProperties`` or ``unevaluatedItems``; others are rewritten."""
_JOINING = 35  # steps of an outcome that is joined of two


def alternatives(goals: Goals, schema: Subschema) -> list[Sequence[Subschema]]:
    """Goals without these keywords; a value satisfies the schema if and only if it satisfies at least one of them.

    Raises:
        LimitExceeded: there are too many outcomes.
    """
    try:
        return [outcome.parts or (ANYTHING,) for outcome in _Expansion(goals, exact=False).of(schema, 0)]
    except LimitExceeded:
        parts = conditions(goals, schema)
        if parts is None:
            raise
        return [parts]


def outcomes_beside(goals: Goals, schema: Subschema) -> list[Outcome]:
    """The outcomes of all other keywords; for a value that satisfies these keywords, exactly one outcome holds.

    Raises:
        LimitExceeded: there are too many outcomes.
    """
    types = 0
    for assertion in schema.assertions:
        if isinstance(assertion, Unevaluated):
            types |= assertion.types
    return _Expansion(goals, exact=True).beside(schema, types)


class _Expansion:
    """Expands schemas into outcomes.

    Args:
        goals: resolves references and makes ``oneOf`` exclusive.
        exact: whether outcomes also say which subschemas fail, so that no two outcomes hold for one value.
    """

    def __init__(self, goals: Goals, *, exact: bool) -> None:
        self.goals, self.exact = goals, exact

    def of(self, schema: Subschema, types: int) -> list[Outcome]:
        """The outcomes of a schema.

        Args:
            types: the types (as bits: ``OBJECT``, ``ARRAY``) for which it matters what is evaluated. Subschemas that
                evaluate nothing of them are not expanded.
        """
        if schema is ANYTHING or schema is NOTHING or schema.is_malformed:
            return [Outcome((schema,))]
        asked = [assertion for assertion in schema.assertions if isinstance(assertion, Unevaluated)]
        for assertion in asked:
            if not assertion.schema.is_empty:
                types |= assertion.types
        found = self.beside(schema, types)
        for assertion in asked:
            if isinstance(assertion, UnevaluatedMembers):
                found = [_members(schema, assertion, outcome) for outcome in found]
        for assertion in asked:
            if isinstance(assertion, UnevaluatedItems):
                found = [_items(schema, assertion, outcome) for outcome in found]
        return found

    def beside(self, schema: Subschema, types: int) -> list[Outcome]:
        """The outcomes of all keywords but ``unevaluatedProperties`` and ``unevaluatedItems``."""
        found = [Outcome()]
        # the schema itself comes where it declares members, so that members keep their order
        declaring = (assertion for assertion in schema.assertions if isinstance(assertion, Members | Required))
        own = next(declaring, None)
        if own is None:
            found = [_itself(schema)]
        for assertion in schema.assertions:
            if assertion.in_place:
                found = self._both(found, self._in_place(schema, assertion, types), schema)
            elif assertion is own:
                found = self._both(found, [_itself(schema)], schema)
        return found

    def _both(self, some: Sequence[Outcome], others: Sequence[Outcome], schema: Subschema) -> list[Outcome]:
        """The outcomes of a conjunction: each outcome of one part combined with each of the other.

        Raises:
            LimitExceeded: there are too many.
        """
        if len(some) * len(others) > MAX_OUTCOMES:
            message = f"more than {MAX_OUTCOMES} combinations of subschemas beside unevaluatedProperties or the like"
            raise LimitExceeded(message, where=schema.pointer)
        self.goals.budget.spend(_JOINING * len(some) * len(others))
        return [one.beside(other) for one in some for other in others]

    # ------------------------------------------------------------------ subschemas for the same value
    def _in_place(self, schema: Subschema, assertion: Assertion, types: int) -> list[Outcome]:
        """The outcomes of an assertion that applies subschemas to the same value."""
        match assertion:
            case Reference():
                return self.of(self.goals.target(schema, assertion.reference, assertion.keyword), types)
            case AllOf():
                found = [Outcome()]
                for part in assertion.parts:
                    found = self._both(found, self.of(part, types), schema)
                return found
            case AnyOf():
                return self._any_of(schema, assertion, types)
            case OneOf():
                return self._one_of(schema, assertion, types)
            case Conditional():
                return self._conditional(schema, assertion, types)
            case Dependents() if assertion.evaluates:
                return self._dependents(schema, assertion, types)
            case Unevaluated():
                return [Outcome()]
        return [Outcome((schema.derived(assertion),))]

    def _one_of(self, schema: Subschema, assertion: OneOf, types: int) -> list[Outcome]:
        found = []
        branches = assertion.branches
        for branch, alone in zip(branches, self.goals.exclusive(schema, branches), strict=True):
            # the negations of the other branches evaluate nothing
            rest = Outcome(() if alone is branch else (alone,))
            found += [outcome.beside(rest) for outcome in self.of(branch, types)]
        return _unless_alike(schema, assertion, found, types)

    def _any_of(self, schema: Subschema, assertion: AnyOf, types: int) -> list[Outcome]:
        branches = assertion.branches
        ways = [self.of(branch, types) for branch in branches]
        telling = [i for i, way in enumerate(ways) if any(outcome.evaluates(types) for outcome in way)]
        if not telling:
            return [Outcome((schema.derived(assertion),))]
        others = [branch for i, branch in enumerate(branches) if i not in telling]
        if len(telling) > MAX_OUTCOMES.bit_length():
            where = schema.where("anyOf")
            raise LimitExceeded(f"{len(telling)} subschemas beside an unevaluated… keyword", where=where)
        found = []
        if others:
            found.append(Outcome((schema.derived(AnyOf(others)), *self._failing(schema, branches, telling))))
        for size in range(1, len(telling) + 1):
            for chosen in combinations(telling, size):
                rest = [i for i in telling if i not in chosen]
                holding = [Outcome(tuple(self._failing(schema, branches, rest)))]
                for i in chosen:
                    holding = self._both(holding, ways[i], schema)
                found += holding
        return found

    def _failing(self, schema: Subschema, branches: Sequence[Subschema], which: Sequence[int]) -> Iterator[Subschema]:
        """The negations of these branches, if outcomes are exact; otherwise nothing."""
        for i in which if self.exact else ():
            yield schema.derived(Not(branches[i]))

    def _conditional(self, schema: Subschema, assertion: Conditional, types: int) -> list[Outcome]:
        then, otherwise = assertion.then or ANYTHING, assertion.otherwise or ANYTHING
        holds = self._both(self.of(assertion.condition, types), self.of(then, types), schema)
        if not self.exact and then.is_empty and otherwise.is_empty:
            fails = [Outcome()]
        else:
            failed = Outcome((schema.derived(Not(assertion.condition)),))
            fails = [failed.beside(other) for other in self.of(otherwise, types)]
        return _unless_alike(schema, assertion, [*holds, *fails], types)

    def _dependents(self, schema: Subschema, assertion: Dependents, types: int) -> list[Outcome]:
        found = [Outcome()]
        for name, dependent in assertion.schemas.items():
            with_it = Outcome((schema.derived(IS_OBJECT, Required((name,))),))
            present = [with_it.beside(other) for other in self.of(dependent, types)]
            without = Outcome((schema.derived(absent(name)),))
            alone = Dependents({name: dependent}, evaluates=True)
            found = self._both(found, _unless_alike(schema, alone, [without, *present], types), schema)
        return found


def _unless_alike(schema: Subschema, assertion: Assertion, found: list[Outcome], types: int) -> list[Outcome]:
    """These outcomes, or the unexpanded assertion as one outcome if none of them evaluates anything."""
    if any(outcome.evaluates(types) for outcome in found):
        return found
    return [Outcome((schema.derived(assertion),))]


def _itself(schema: Subschema) -> Outcome:
    """The outcome of the keywords of a schema that do not apply other schemas to the same value."""
    part = schema.kept
    found = Outcome(() if part is None else (part,))
    for assertion in schema.assertions:
        match assertion:
            case Members():
                names, patterns = tuple(assertion.properties), tuple(assertion.patterns)
                found = found._replace(names=names, patterns=patterns, members=assertion.has_rest)
            case Items():
                found = found._replace(first=len(assertion.first), items=assertion.has_rest)
            case Counted() if assertion.evaluates:
                found = found._replace(contained=(assertion.schema,))
            case Malformed():
                raise assertion.error
    return found


def _members(schema: Subschema, assertion: UnevaluatedMembers, outcome: Outcome) -> Outcome:
    """An outcome with ``unevaluatedProperties`` added, for the members that it leaves unevaluated."""
    if outcome.members or assertion.schema.is_empty:
        return outcome._replace(members=True)
    known, matched = dict.fromkeys(outcome.names, ANYTHING), dict.fromkeys(outcome.patterns, ANYTHING)
    asked = schema.derived(Members(known, matched, assertion.schema, True))
    return outcome._replace(parts=(*outcome.parts, asked), members=True)


def _items(schema: Subschema, assertion: UnevaluatedItems, outcome: Outcome) -> Outcome:
    """An outcome with ``unevaluatedItems`` added, for the items that it leaves unevaluated."""
    if outcome.items or assertion.schema.is_empty:
        return outcome._replace(items=True)
    rest = assertion.schema
    if outcome.contained:
        rest = schema.derived(AnyOf((*outcome.contained, rest)))
    asked = schema.derived(Items((ANYTHING,) * outcome.first, rest, True))
    return outcome._replace(parts=(*outcome.parts, asked), items=True)
