"""Gathers goals into conjunctions, and derives the schemas that goals need: negations and exclusive alternatives.

The subschemas of a document come in; records of constraints on one value (:class:`.Conjunction`) go out. How values are
spelled as text plays no part here.

The method is a tableau, as for description logics (Baader and Sattler, "An overview of tableau algorithms for
description logics", 2001), or an alternating automaton made explicit: a *goal* is a list of subschemas that must hold
at once. :meth:`Analysis.gather` turns a goal into a conjunction. Its disjunctions are distributed later, by making one
goal per alternative. Goals consist of the document's own subschemas and of schemas that are derived from them
(negations, parts). Each derived schema is made once, so there are finitely many goals, and recursive schemas end in
goals that have been met before.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

from grammarspec.errors import GrammarError, GrammarSyntaxError, LimitExceeded
from grammarspec.frontends.json_schema.document.resources import Document
from grammarspec.frontends.json_schema.document.subschema import ANYTHING, NOTHING, Subschema
from grammarspec.frontends.json_schema.formats.table import FORMATS, INTEGER_FORMATS
from grammarspec.frontends.json_schema.keywords.combining import AllOf, AnyOf, InPlace
from grammarspec.frontends.json_schema.keywords.conjunction import Concern, Conjunction
from grammarspec.frontends.json_schema.keywords.constants import Constants
from grammarspec.frontends.json_schema.keywords.outcomes import Outcome
from grammarspec.frontends.json_schema.meaning import emptiness, evaluation, negation, unevaluated
from grammarspec.frontends.json_schema.meaning.exclusive import exclusive
from grammarspec.frontends.regex.endless import some_text
from grammarspec.frontends.regex.matching import begin_apart
from grammarspec.grammars.budget import Budget

__all__ = ["Analysis"]

_GATHERING = 80  # steps of a conjunction, and of each subschema in it
_COLLECTING = 24
_MAX_SEARCHES = 300  # for texts that match some patterns and not others, in one document
_MAX_IN_PLACE = 100  # nesting depth of allOf, $ref and the like that apply to one value


class Analysis:
    """Gathers the goals of one document. It implements the protocol :class:`.Goals`, which assertions use.

    Attributes:
        document: the document with its references.
        budget: the work that the call may still do.
        narrow: whether overlapping branches of ``oneOf`` are narrowed (see :func:`.exclusive`).
        assert_formats: whether ``format`` is enforced.
        strict_integers: whether integers are spelled with digits only (draft 4).
        comparisons: how many goals have been tested for emptiness, which is limited.
        has_overlaps: whether such branches were met, and not narrowed.
    """

    def __init__(self, document: Document, budget: Budget, *, assert_formats: bool, narrow: bool = False) -> None:
        self.document, self.budget, self.narrow = document, budget, narrow
        self.assert_formats = assert_formats
        self.strict_integers = document.main.dialect.year == 4
        self.comparisons = 0
        self.has_overlaps = False
        self._choices: dict[tuple[Subschema, ...], Subschema] = {}
        self._no_text: dict[tuple[frozenset[str], frozenset[str]], bool] = {}
        self._acyclic: set[Subschema] = set()
        self._comparing: set[Subschema] = set()
        self._depth = 0

    # ------------------------------------------------------------------ goals
    def gather(self, goal: Sequence[Subschema]) -> Conjunction:
        """The conjunction of a goal: the constraints of all its subschemas in one record.

        Raises:
            LimitExceeded: the budget is used up.
            GrammarError: a keyword is malformed or cannot be enforced.
        """
        facts = Conjunction(self.budget)
        for schema in goal:
            self.collect(schema, facts)
        self.budget.spend(_GATHERING + _COLLECTING * len(facts.members))
        return facts

    def collect(self, schema: Subschema, facts: Conjunction) -> None:
        """Add the constraints of one subschema to a conjunction, in the order of its keywords.

        Raises:
            LimitExceeded: subschemas apply each other to the same value too deeply.
            GrammarError: a keyword is malformed or cannot be enforced.
        """
        members = facts.members
        if schema is ANYTHING or schema in members:
            return
        if schema is NOTHING:
            facts.asked |= Concern.TYPES
            facts.types = 0
            return
        assertions = schema.assertions
        members[schema] = None
        if self._depth == _MAX_IN_PLACE:
            message = f"the nesting depth of allOf, $ref and the like at one value is above {_MAX_IN_PLACE}"
            raise LimitExceeded(message, where=schema.pointer)
        self._depth += 1
        try:
            if schema.unevaluated:
                self._collect_outcomes(schema, facts)
            else:
                for assertion in assertions:
                    assertion.add(facts, self, schema)
        finally:
            self._depth -= 1

    def _collect_outcomes(self, schema: Subschema, facts: Conjunction) -> None:
        """Add a schema with ``unevaluatedProperties`` or ``unevaluatedItems``, as a choice of goals without them."""
        made: list[Subschema] = schema.derive("outcomes", lambda: self._without_unevaluated(schema))
        if len(made) == 1:
            self.collect(made[0], facts)
        else:
            facts.add_choice(made, last=False)

    def _without_unevaluated(self, schema: Subschema) -> list[Subschema]:
        return [schema.derived(AllOf(parts)) for parts in unevaluated.alternatives(self, schema)]

    def outcomes(self, schema: Subschema) -> Sequence[Outcome]:
        """The outcomes of all keywords of a schema but ``unevaluatedProperties`` and ``unevaluatedItems``.

        Exactly one of them holds for a value that satisfies those keywords.

        Raises:
            LimitExceeded: there are too many.
        """
        return unevaluated.outcomes_beside(self, schema)

    def impossible(self, facts: Conjunction) -> bool:
        """Whether a shallow test proves that no value satisfies a conjunction. It never raises a schema's error."""
        try:
            return emptiness.surely_no_value(self, facts, 1)
        except GrammarError:
            return False

    # ------------------------------------------------------------------ derived schemas
    def choice(self, alternatives: Sequence[Subschema]) -> Subschema:
        """The schema ``anyOf`` of some alternatives; for the same alternatives, the same object."""
        key = tuple(alternatives)
        made = self._choices.get(key)
        if made is None:
            start = self.document.start
            made = self._choices[key] = start.derived(AnyOf(key))
            made.origin = ANYTHING
        return made

    def negate(self, schema: Subschema) -> Subschema:
        """A schema for exactly the values that another one refuses; for the same schema, the same object.

        Raises:
            GrammarSyntaxError: the schema is malformed.
            UnsupportedFeature: the negation of a keyword cannot be expressed.
        """
        return negation.negate(self, schema)

    def enumerated(self, origin: Subschema, branches: Sequence[Subschema], *, differ: bool) -> Sequence[Subschema]:
        """The branches of ``anyOf`` or ``oneOf``, with one ``enum`` in place of those that only list constants.

        Args:
            origin: the schema in which the branches stand.
            branches: the branches.
            differ: whether those that list constants stay as they are if two of them have one in common.
        """
        if len(branches) < 2:
            return branches

        def make() -> Sequence[Subschema]:
            listing = [branch for branch in branches if evaluation.lists_constants(branch)]
            constants = evaluation.constants_of(self, listing, differ=differ) if len(listing) > 1 else None
            if constants is None:
                return branches
            one = origin.derived(Constants(constants))
            others = set(listing)
            kept = (one if branch is listing[0] else branch for branch in branches)
            return [branch for branch in kept if branch not in others]

        made: Sequence[Subschema] = origin.derive(("constants", differ), make)
        return made

    def exclusive(self, origin: Subschema, branches: Sequence[Subschema]) -> Sequence[Subschema]:
        """Alternatives that together are equivalent to ``oneOf``, and of which at most one holds for any value.

        Raises:
            LimitExceeded: there are too many branches to compare.
            UnsupportedFeature: a branch cannot be negated.
        """
        if origin in self._comparing:
            # The comparison of these branches has come back to itself through a recursive schema. The plain branches
            # are safe here: they only serve the tests for emptiness within that comparison, which then prove less.
            return branches

        def make() -> list[Subschema]:
            self._comparing.add(origin)
            try:
                return exclusive(self, origin, branches, self._narrows)
            finally:
                self._comparing.discard(origin)

        made: list[Subschema] = origin.derive("oneOf", make)
        return made

    def _narrows(self) -> bool:
        """Whether branches that overlap are narrowed; if not, steps are kept to do it after all."""
        if not (self.narrow or self.has_overlaps):
            self.has_overlaps = True
            self.budget.set_aside()
        return self.narrow

    # ------------------------------------------------------------------ references
    def resolve(self, schema: Subschema, reference: str, keyword: str) -> Subschema:
        """The subschema that a reference points to.

        Raises:
            GrammarError: it points to nothing.
        """
        return self.document.resolve(schema, reference, keyword)

    def target(self, schema: Subschema, reference: str, keyword: str) -> Subschema:
        """The subschema that a reference points to, after a check that no cycle of references applies to one value.

        Raises:
            GrammarSyntaxError: the reference leads back to itself without descending to a part of the value.
            GrammarError: it points to nothing.
        """
        self.budget.spend(5 * len(schema.scope.bindings))
        target = self.document.resolve(schema, reference, keyword)
        if target not in self._acyclic:
            self._check_cycle(target, schema, keyword)
        return target

    def _check_cycle(self, start: Subschema, origin: Subschema, keyword: str) -> None:
        """Search depth first, over the schemas that apply to the same value, for a cycle.

        A ``None`` on the stack marks the end of the schema that was entered last.
        """
        path: dict[Subschema, None] = {}
        stack: list[Subschema | None] = [start]
        while stack:
            schema = stack.pop()
            if schema is None:
                self._acyclic.add(path.popitem()[0])
                continue
            if schema in self._acyclic or schema.is_malformed:
                continue
            if schema in path:
                message = f"{keyword} comes back to itself without entering the value"
                raise GrammarSyntaxError(message, where=origin.where(keyword))
            applying = [assertion for assertion in schema.assertions if isinstance(assertion, InPlace)]
            if not applying:
                self._acyclic.add(schema)
                continue
            path[schema] = None
            stack.append(None)
            for assertion in applying:
                stack.extend(assertion.applied(self, schema))

    # ------------------------------------------------------------------ patterns
    def no_text(self, wanted: Sequence[str], refused: Sequence[str] = ()) -> bool:
        """Whether it is proved that no text matches all wanted patterns and none of the refused ones.

        Raises:
            LimitExceeded: the budget is used up.
        """
        if any(begin_apart(one, other) for one, other in combinations(wanted, 2)):
            return True
        if len(wanted) + len(refused) < 2:
            return False
        key = (frozenset(wanted), frozenset(refused))
        if key not in self._no_text:
            self._no_text[key] = len(self._no_text) < _MAX_SEARCHES and not some_text(*key, self.budget)
        return self._no_text[key]

    # ------------------------------------------------------------------ formats
    def asserts_format(self, name: str) -> bool:
        """Whether a ``format`` of strings is enforced."""
        return self.assert_formats and name in FORMATS

    def integer_format(self, name: str) -> tuple[int, int] | None:
        """The range of a ``format`` of integers; ``None`` if formats are not enforced or this is none of integers."""
        return INTEGER_FORMATS.get(name) if self.assert_formats else None
