"""What schemas mean, before anything is spelled: conjunctions, negations and exclusive alternatives of subschemas.

The method is a tableau, as for description logics (Baader and Sattler, "An overview of tableau algorithms for
description logics", 2001), or an alternating automaton made explicit: a *goal* is a list of subschemas that must hold
at once. :meth:`Analysis.gather` turns a goal into a :class:`.Conjunction`; what is left as a disjunction is distributed
by making one goal per alternative. Goals consist of the document's own subschemas and of schemas that are derived from
them once (negations, parts), so there are finitely many and recursion closes.
"""

from __future__ import annotations

from collections.abc import Sequence

from grammarspec.errors import GrammarError, GrammarSyntaxError, LimitExceeded
from grammarspec.frontends.json_schema.document.resources import Document
from grammarspec.frontends.json_schema.document.subschema import ANYTHING, NOTHING, Subschema
from grammarspec.frontends.json_schema.formats.table import FORMATS, INTEGER_FORMATS
from grammarspec.frontends.json_schema.keywords.combining import AllOf, AnyOf, InPlace
from grammarspec.frontends.json_schema.keywords.conjunction import Concern, Conjunction
from grammarspec.frontends.json_schema.keywords.constants import Constants
from grammarspec.frontends.json_schema.keywords.outcomes import Outcome
from grammarspec.frontends.json_schema.meaning import evaluation, negation, unevaluated
from grammarspec.frontends.json_schema.meaning.exclusive import exclusive

__all__ = ["Analysis", "TooManyCombinations"]

MAX_CONJUNCTIONS = 30_000
"""Conjunctions of subschemas that one document may ask for: one per subschema, and those of combinations."""
_MAX_IN_PLACE = 100  # allOf, $ref and the like, one inside the other, at one value


class TooManyCombinations(LimitExceeded):
    """An exact answer takes too many combinations of subschemas; a narrower one may not."""


class Analysis:
    """The meaning of one document's schemas: the :class:`.Goals` that assertions are gathered by.

    Attributes:
        strict_integers: integers are digits only (draft 4).
        comparisons: how often it was asked whether anything satisfies a goal.
    """

    def __init__(self, document: Document, *, assert_formats: bool, narrow: bool = False) -> None:
        self.document, self.narrow = document, narrow
        self.assert_formats = assert_formats
        self.strict_integers = document.main.dialect.year == 4
        self.comparisons = 0
        self._choices: dict[tuple[Subschema, ...], Subschema] = {}
        self._acyclic: set[Subschema] = set()
        self._comparing: set[Subschema] = set()
        self._depth = 0
        self._gathered = 0

    # ------------------------------------------------------------------ goals
    def gather(self, goal: Sequence[Subschema]) -> Conjunction:
        """All that the subschemas ask at once.

        Raises:
            LimitExceeded: too many conjunctions were asked for.
            GrammarError: a keyword is malformed or cannot be enforced.
        """
        self._gathered += 1
        if self._gathered > MAX_CONJUNCTIONS:
            raise TooManyCombinations(f"schema size: more than {MAX_CONJUNCTIONS} conjunctions of subschemas")
        facts = Conjunction()
        for schema in goal:
            self.collect(schema, facts)
        return facts

    def collect(self, schema: Subschema, facts: Conjunction) -> None:
        """Add what one subschema asks, in the order in which its keywords stand.

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
        """What a schema with ``unevaluatedProperties`` or ``unevaluatedItems`` asks."""
        made: list[Subschema] = schema.derive("outcomes", lambda: self._without_unevaluated(schema))
        if len(made) == 1:
            self.collect(made[0], facts)
        else:
            facts.add_choice(made, last=False)

    def _without_unevaluated(self, schema: Subschema) -> list[Subschema]:
        return [schema.derived(AllOf(parts)) for parts in unevaluated.alternatives(self, schema)]

    def outcomes(self, schema: Subschema) -> Sequence[Outcome]:
        """The outcomes of all keywords but those about what is unevaluated: exactly one holds for a value."""
        return unevaluated.outcomes_beside(self, schema)

    def impossible(self, facts: Conjunction) -> bool:
        """Whether nothing can satisfy a conjunction, as far as a shallow look shows; errors are left for later."""
        try:
            return evaluation.surely_no_value(self, facts, 1)
        except GrammarError:
            return False

    # ------------------------------------------------------------------ derived schemas
    def choice(self, alternatives: Sequence[Subschema]) -> Subschema:
        """A schema that says that one of these holds: the same one for the same alternatives."""
        key = tuple(alternatives)
        made = self._choices.get(key)
        if made is None:
            start = self.document.start
            made = self._choices[key] = start.derived(AnyOf(key))
            made.origin = ANYTHING
        return made

    def negate(self, schema: Subschema) -> Subschema:
        """A schema for the values that another one refuses: the same one each time."""
        return negation.negate(self, schema)

    def enumerated(self, origin: Subschema, branches: Sequence[Subschema], *, differ: bool) -> Subschema | None:
        """One ``enum`` for branches that are some constants each; ``None`` if they ask for more."""

        def make() -> Subschema | None:
            constants = evaluation.constants_of(self, branches, differ=differ)
            return None if constants is None else origin.derived(Constants(constants))

        made: Subschema | None = origin.derive(("constants", differ), make)
        return made

    def exclusive(self, origin: Subschema, branches: Sequence[Subschema]) -> Sequence[Subschema]:
        """Alternatives that together are ``oneOf`` of the branches, of which at most one holds for any value."""
        if origin in self._comparing:
            # Recursion: whether the branches are apart is asked to find out just that. Without an answer nothing is
            # proved from them, and no grammar is made of what is found meanwhile.
            return branches

        def make() -> list[Subschema]:
            self._comparing.add(origin)
            try:
                return exclusive(self, origin, branches, narrow=self.narrow)
            finally:
                self._comparing.discard(origin)

        made: list[Subschema] = origin.derive("oneOf", make)
        return made

    # ------------------------------------------------------------------ references
    def resolve(self, schema: Subschema, reference: str, keyword: str) -> Subschema:
        """What a reference points to."""
        return self.document.resolve(schema, reference, keyword)

    def target(self, schema: Subschema, reference: str, keyword: str) -> Subschema:
        """What a reference points to, once it is sure that it does not come back without entering the value.

        Raises:
            GrammarSyntaxError: it does.
        """
        target = self.document.resolve(schema, reference, keyword)
        if target not in self._acyclic:
            self._check_cycle(target, schema, keyword)
        return target

    def _check_cycle(self, start: Subschema, origin: Subschema, keyword: str) -> None:
        """Depth first over the schemas that apply to the same value; ``None`` in the stack ends one."""
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
            path[schema] = None
            stack.append(None)
            for assertion in schema.assertions:
                if isinstance(assertion, InPlace):
                    stack.extend(assertion.applied(self, schema))

    # ------------------------------------------------------------------ formats
    def asserts_format(self, name: str) -> bool:
        """Whether a format of strings is enforced."""
        return self.assert_formats and name in FORMATS

    def integer_format(self, name: str) -> tuple[int, int] | None:
        """The least and the greatest number of a format of integers that is enforced."""
        return INTEGER_FORMATS.get(name) if self.assert_formats else None
