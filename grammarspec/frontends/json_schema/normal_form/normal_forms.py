"""Turns goals into shapes: gathers what the subschemas of a goal ask at once, and sorts it by the types of values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from grammarspec.errors import GrammarError, LimitExceeded
from grammarspec.frontends.json_schema.document.subschema import Subschema
from grammarspec.frontends.json_schema.json_values import ALL_TYPES, ARRAY, INTEGER, NUMBER, OBJECT, STRING, TYPE_BITS
from grammarspec.frontends.json_schema.keywords.combining import AllOf, Reference
from grammarspec.frontends.json_schema.keywords.conjunction import Concern, Conjunction
from grammarspec.frontends.json_schema.keywords.types_and_sizes import OF_TYPES
from grammarspec.frontends.json_schema.meaning.analysis import Analysis
from grammarspec.frontends.json_schema.normal_form.arrays import array_shape
from grammarspec.frontends.json_schema.normal_form.choices_on_presence import conditions
from grammarspec.frontends.json_schema.normal_form.constants import constants
from grammarspec.frontends.json_schema.normal_form.disjunctions import Disjunctions, are_many
from grammarspec.frontends.json_schema.normal_form.objects import object_shape
from grammarspec.frontends.json_schema.normal_form.presence import Presence
from grammarspec.frontends.json_schema.normal_form.scalars import number_shape, string_shape
from grammarspec.frontends.json_schema.normal_form.shapes import (
    ANY,
    ANY_ARRAY,
    ANY_NUMBER,
    ANY_OBJECT,
    ANY_STRING,
    ANY_VALUE,
    NO_VALUE,
    NONE,
    Alternatives,
    Goal,
    NumberShape,
    ObjectShape,
    Shape,
    Values,
    alone,
    both,
    place,
)

__all__ = ["NormalForms"]

MAX_COMBINATIONS = 2_000
"""The most combinations of an alternative (of ``anyOf`` and the like) with other keywords in one document.

Each becomes an alternative of the grammar, which costs whoever uses it, whatever work may be done to make it.
"""


_DISJOINED: Final = Concern.CONSTANTS | Concern.CHOICES | Concern.SIZE
"""What may make a shape other than :class:`.Values`."""


def _of_types(types: int, *, strict_integers: bool) -> Values:
    """All values of some types."""
    if types == ALL_TYPES:
        return ANY_VALUE
    digits_only = strict_integers and types & NUMBER == INTEGER
    return Values(types, number=NumberShape(types & NUMBER, digits_only=digits_only))


def _plain(*, strict_integers: bool) -> dict[Goal, Shape]:
    """The shapes of goals that all documents have: every value, none, and all values of one type."""
    shapes: dict[Goal, Shape] = {ANY: ANY_VALUE, NONE: NO_VALUE}
    for bits in TYPE_BITS.values():
        shapes[alone(OF_TYPES[bits])] = _of_types(bits, strict_integers=strict_integers)
    return shapes


_PLAIN: Final = {strict: _plain(strict_integers=strict) for strict in (False, True)}
_REFER_TO_NONE: Final = {goal: goal for goal in _PLAIN[False]}


class NormalForms:
    """The shapes of the goals of one document, each made when it is first asked for.

    Attributes:
        start: the goal of the document.
        any_order: whether the declared members of objects may come in any order.
    """

    def __init__(self, goals: Analysis, *, any_order: bool = False, closed: bool = False) -> None:
        """The shapes of a document; none are made yet.

        Args:
            goals: gathers the goals of the document.
            any_order: whether the declared members of objects may come in any order.
            closed: whether an object whose schema declares members but says nothing about others has no others.
        """
        self.goals, self.any_order, self.closed = goals, any_order, closed
        self.start = alone(goals.document.start)
        self._disjunctions = Disjunctions(goals, any_order=any_order)
        self._combinations = 0
        self._shapes: dict[Goal, Shape] = _PLAIN[goals.strict_integers].copy()
        self._resolved: dict[Goal, Goal] = _REFER_TO_NONE.copy()
        self._gathered: dict[Goal, Conjunction] = {}
        """The conjunctions of goals that were gathered to compare them with others, until their shapes are made."""

    def resolved(self, goal: Goal) -> Goal:
        """The goal of what a schema refers to, if it says no more; any other goal is returned as it is.

        So all references to one schema have one shape, which becomes one node.

        Raises:
            GrammarError: the reference points to nothing, or comes back to itself.
        """
        found = self._resolved.get(goal)
        if found is None:
            found = goal
            passed: dict[Goal, None] = {}
            # one that is met again contains itself, as Python objects can; gathering it ends there
            while found not in passed and len(found) == 1 and (target := self._referred(found[0])) is not None:
                passed[found] = None
                found = alone(target)
                found = self._resolved.get(found, found)
            self._resolved.update(dict.fromkeys([goal, *passed], found))
        return found

    def _referred(self, schema: Subschema) -> Subschema | None:
        """The schema that one is equivalent to, as it has a reference or an ``allOf`` of one part, and no more."""
        asked = () if schema.is_malformed else schema.assertions
        if len(asked) == 1 and asked[0].in_place:
            match asked[0]:
                case Reference(keyword, reference):
                    return self.goals.target(schema, reference, keyword)
                case AllOf([part]):
                    return part
        return None

    def __getitem__(self, goal: Goal) -> Shape:
        """The shape of a goal that :meth:`resolved` has returned.

        Raises:
            GrammarError: the goal cannot be enforced; the error names its place.
        """
        shape = self._shapes.get(goal)
        if shape is None:
            try:
                gathered = self._gathered.pop(goal, None) or self.goals.gather(goal)
                shape = self._shapes[goal] = self._shape(gathered)
            except GrammarError as error:
                if error.where:
                    raise
                raise type(error)(error.message, where=place(goal), hint=error.hint) from None
        return shape

    @property
    def take_less_if_narrowed(self) -> bool:
        """Whether a limit was hit after overlapping branches of ``oneOf`` were met, which can be narrowed instead."""
        exceeded = self._combinations > MAX_COMBINATIONS or self.goals.budget.is_used_up
        return exceeded and self.goals.has_overlaps

    def _shape(self, facts: Conjunction) -> Shape:
        if not facts.types:
            return NO_VALUE
        if not facts.asked & ~Concern.TYPES:
            return _of_types(facts.types, strict_integers=self.goals.strict_integers)
        if not facts.asked & _DISJOINED:
            return self._values(facts, ())
        if facts.enum is not None:
            found = constants(self.goals, facts)
            return self._alternatives(facts) if found is None else found
        presence: Sequence[Presence] = ()
        if facts.choices and (self.any_order or are_many(facts.choices)) and facts.types & OBJECT and not facts.some:
            presence = conditions(self.goals, facts)
        if (facts.choices and not presence) or facts.some:
            return self._alternatives(facts)
        return self._values(facts, presence)

    def _values(self, facts: Conjunction, presence: Sequence[Presence]) -> Values:
        types = facts.types
        return Values(
            types,
            string_shape(facts) if types & STRING else ANY_STRING,
            number_shape(facts, digits_only=self.goals.strict_integers) if types & NUMBER else ANY_NUMBER,
            array_shape(self.goals, facts, closed=self.closed) if types & ARRAY else ANY_ARRAY,
            self._object(facts, presence) if types & OBJECT else ANY_OBJECT,
        )

    def _object(self, facts: Conjunction, presence: Sequence[Presence]) -> ObjectShape:
        any_order = self.any_order or bool(presence)
        return object_shape(self.goals, facts, presence, any_order=any_order, closed=self.closed)

    def _alternatives(self, facts: Conjunction) -> Alternatives:
        """A conjunction with disjunctions as the union of its alternatives.

        Raises:
            LimitExceeded: there are too many combinations of alternatives.
        """
        found = []
        for alternative in self._disjunctions.alternatives(facts):
            goal = self.resolved(both(alternative.goal))
            found.append(goal)
            if alternative.facts is not None:
                self._combinations += 1
                if self._combinations > MAX_COMBINATIONS:
                    hint = "write the combinations that are meant as one anyOf"
                    message = f"more than {MAX_COMBINATIONS} combinations of anyOf, oneOf and the like"
                    raise LimitExceeded(message, where=place(goal), hint=hint)
                if goal not in self._shapes:
                    self._gathered[goal] = alternative.facts
        return Alternatives(found)
